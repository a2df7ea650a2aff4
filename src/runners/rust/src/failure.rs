//! What can go wrong, by the exit code and cause that the contract gives it.

use std::any::Any;

use ort::ErrorCode;

/// Why there is no result.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: what was given cannot be used.
    BadInput(String),
    /// Exit code 3: the provider is not there. Never answered by falling back.
    Skipped(String),
    /// Exit code 1, with the contract's word for the cause.
    Failed {
        cause: &'static str,
        message: String,
    },
    /// A value that this language cannot give or take: a case's verdict, else bad input.
    Unsupported(String),
}

pub type Outcome<T> = Result<T, Failure>;

/// Makes a `Failure::BadInput` from a format string and its arguments.
macro_rules! bad_input {
    ($($part:tt)*) => { $crate::failure::Failure::BadInput(format!($($part)*)) };
}
pub(crate) use bad_input;

impl Failure {
    /// Returns the failure of a call of ONNX Runtime that ran a model on given inputs.
    pub fn of_run(error: ort::Error) -> Self {
        match error.code() {
            ErrorCode::InvalidArgument => Failure::BadInput(error.to_string()),
            _ => Failure::crash(error.to_string()),
        }
    }

    /// Returns the failure of making a session of `model`.
    pub fn of_model(error: ort::Error, model: &str) -> Self {
        match error.code() {
            ErrorCode::RuntimeException
            | ErrorCode::EngineError
            | ErrorCode::ExecutionProviderFailure => Failure::crash(format!("{model}: {error}")),
            _ if is_out_of_memory(error.message()) => Failure::crash(format!("{model}: {error}")),
            _ => bad_input!("{model}: {error}"),
        }
    }

    /// Returns a crash, or that there was not enough memory when the words say so.
    pub fn crash(message: String) -> Self {
        let cause = if is_out_of_memory(&message) {
            "out-of-memory"
        } else {
            "crash"
        };
        Failure::Failed { cause, message }
    }

    pub fn message(&self) -> &str {
        match self {
            Failure::BadInput(text) | Failure::Skipped(text) | Failure::Unsupported(text) => text,
            Failure::Failed { message, .. } => message,
        }
    }
}

/// What a panic said.
pub fn words(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("without words")
}

/// ONNX Runtime has no code of its own for it.
fn is_out_of_memory(message: &str) -> bool {
    ["bad_alloc", "Failed to allocate memory", "out of memory"]
        .iter()
        .any(|words| message.contains(words))
}
