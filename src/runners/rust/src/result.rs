//! What the program leaves: raw arrays, JSON lines, and what Linux knew of it; and how it ends.

use std::any::Any;
use std::fmt::{Display, Write as _};
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use ort::ErrorCode;

use crate::refuse;
use crate::values::Output;

/// Why there is no result: the contract's word for the cause, or `skipped`, or `unsupported`, a
/// value that this language cannot give or take.
#[derive(Debug)]
pub struct Failure {
    pub cause: &'static str,
    pub message: String,
}

pub type Outcome<T> = Result<T, Failure>;

impl Failure {
    pub fn new(cause: &'static str, said: impl Display) -> Self {
        let message = said.to_string();
        Failure { cause, message }
    }

    /// A crash, or that there was not enough memory, for which ONNX Runtime has no code.
    pub fn crash(said: impl Display) -> Self {
        let message = said.to_string();
        let words = ["bad_alloc", "Failed to allocate memory", "out of memory"];
        let is_memory = words.iter().any(|words| message.contains(words));
        Failure { cause: if is_memory { "out-of-memory" } else { "crash" }, message }
    }

    pub fn of_run(error: ort::Error) -> Self {
        match error.code() {
            ErrorCode::InvalidArgument => Failure::new("bad-input", error),
            _ => Failure::crash(error),
        }
    }

    pub fn of_model(error: ort::Error, model: &Path) -> Self {
        use ErrorCode::{EngineError, ExecutionProviderFailure, RuntimeException};
        let crash = Failure::crash(format!("{}: {error}", model.display()));
        match error.code() {
            RuntimeException | EngineError | ExecutionProviderFailure => crash,
            _ if crash.cause == "out-of-memory" => crash,
            _ => Failure { cause: "bad-input", ..crash },
        }
    }

    pub fn unwritable(path: &Path, error: io::Error) -> Self {
        Failure::crash(format!("{}: cannot be written: {error}", path.display()))
    }

    pub fn of_panic(cause: &'static str, panic: &(dyn Any + Send)) -> Self {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
        Failure::new(cause, format!("panic: {}", text.unwrap_or("without words")))
    }

    /// Says it on standard error; returns the last line of the results, and the exit code.
    pub fn ending(self) -> (Line, ExitCode) {
        let (cause, code) = match self.cause {
            "skipped" => {
                let line = Line::status("skipped").text("reason", &self.message);
                return (line, refuse(&format!("skipped: {}", self.message), 3));
            }
            "bad-input" | "unsupported" => ("bad-input", 2),
            cause => (cause, 1),
        };
        let line = Line::status("failed").text("cause", cause).text("message", &self.message);
        (line, refuse(&self.message, code))
    }
}

/// A JSON object on one line.
#[derive(Default)]
pub struct Line(String);

impl Line {
    pub fn status(status: &str) -> Self {
        Line::default().text("status", status)
    }

    pub fn text(self, key: &str, text: &str) -> Self {
        let mut quoted = String::new();
        for letter in text.chars() {
            match letter {
                '"' | '\\' => quoted.extend(['\\', letter]),
                '\0'..' ' => write!(quoted, "\\u{:04x}", letter as u32).expect("in memory"),
                _ => quoted.push(letter),
            }
        }
        self.json(key, format_args!("\"{quoted}\""))
    }

    /// Adds a number, or other JSON as it is.
    pub fn json(mut self, key: &str, value: impl Display) -> Self {
        let before = if self.0.is_empty() { "" } else { ", " };
        write!(self.0, "{before}\"{key}\": {value}").expect("in memory");
        self
    }
}

/// The folder of all results but outputs.
pub struct Results {
    pub folder: PathBuf,
    lines: File,
}

impl Results {
    pub fn open(folder: &Path) -> Outcome<Self> {
        let path = folder.join("result.jsonl");
        let lines = File::options().append(true).create(true).open(&path);
        let lines = lines.map_err(|error| Failure::unwritable(&path, error))?;
        Ok(Results { folder: folder.to_owned(), lines })
    }

    /// Appends a line; a file of Rust has no buffer that a crash would lose.
    pub fn say(&mut self, line: Line) -> Outcome<()> {
        let said = self.lines.write_all(format!("{{{}}}\n", line.0).as_bytes());
        said.map_err(|error| Failure::unwritable(&self.folder.join("result.jsonl"), error))
    }

    pub fn numbers(&self, name: &str, numbers: impl Iterator<Item = u64>) -> Outcome<()> {
        self.write(name, &numbers.flat_map(u64::to_le_bytes).collect::<Vec<u8>>())
    }

    /// Copies what Linux knows of this process right now.
    pub fn process(&self) -> Outcome<()> {
        let [status, maps] = ["status", "maps"].map(|name| fs::read(format!("/proc/self/{name}")));
        self.write("status.txt", &status.unwrap_or_default())?;
        self.write("maps.txt", &maps.unwrap_or_default())
    }

    fn write(&self, name: &str, bytes: &[u8]) -> Outcome<()> {
        let path = self.folder.join(name);
        fs::write(&path, bytes).map_err(|error| Failure::unwritable(&path, error))
    }
}

/// Type, shape and file of each output, batches joined along their first axis; None: no tensor.
#[derive(Default)]
pub struct Outputs(Vec<Option<(u32, Vec<i64>, File)>>);

impl Outputs {
    /// Adds what a run gave. `rows`: of its batch, which every output must have; 0: without one.
    pub fn add(&mut self, folder: &Path, found: &[Output], rows: usize) -> Outcome<()> {
        self.0.resize_with(found.len(), || None);
        for (number, output) in found.iter().enumerate().filter(|(_, one)| one.dtype != 0) {
            let shape = &output.shape;
            if rows > 0 && shape.first() != Some(&(rows as i64)) {
                let said = format!("output '{}' has shape {shape:?} for a batch", output.name);
                let said = format!("{said} of {rows} rows, expected them first");
                return Err(Failure::new("bad-input", said));
            }
            let path = folder.join(format!("output-{number}.bin"));
            let unwritable = |error| Failure::unwritable(&path, error);
            let file = match &mut self.0[number] {
                Some((_, whole, _)) if whole[1..] != shape[1..] => {
                    let said = format!("output '{}' has shape {shape:?}", output.name);
                    let said = format!("{said} after {whole:?}: batches cannot be joined");
                    return Err(Failure::new("bad-input", said));
                }
                Some((_, whole, file)) => {
                    whole[0] += shape[0];
                    file
                }
                empty => {
                    let file = File::create(&path).map_err(unwritable)?;
                    &mut empty.insert((output.dtype, shape.clone(), file)).2
                }
            };
            file.write_all(&output.bytes).map_err(unwritable)?;
        }
        Ok(())
    }

    /// Type and shape of each, as the results say them.
    pub fn told(&self) -> String {
        let outputs = self.0.iter().map(|joined| match joined {
            Some((dtype, shape, _)) => format!("[{dtype}, {shape:?}]"),
            None => "null".to_owned(),
        });
        format!("[{}]", outputs.collect::<Vec<_>>().join(", "))
    }
}
