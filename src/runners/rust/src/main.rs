//! ONNX Runtime from Rust, under the runner contract (docs/runner-contract.md).

mod arguments;
mod cases;
mod cuda;
mod dtype;
mod engine;
mod failure;
mod inputs;
mod latency;
mod load;
mod options;
mod process;
mod train;
mod values;
mod writer;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::panic;
use std::path::Path;
use std::process::ExitCode;

use serde_json::{Value, json};

use arguments::{Arguments, Mode, Provider};
use failure::{Failure, Outcome};
use latency::Fields;
use options::Options;

const NAME: &str = "rust";

fn main() -> ExitCode {
    // What panics say is part of our one line.
    panic::set_hook(Box::new(|_| ()));
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut record = Fields::from_iter([("runner".to_owned(), json!(NAME))]);
    let ended = panic::catch_unwind(panic::AssertUnwindSafe(|| run(&words, &mut record)))
        .unwrap_or_else(|panic| {
            let said = format!("panic: {}", failure::words(&*panic));
            Err(Failure::crash(said))
        });
    let code = match &ended {
        Ok(()) => 0,
        Err(failure) => report(failure, &mut record),
    };
    // Of cases the record is what came of each.
    let apart = record.get("mode") == Some(&json!("cases"));
    if let Some(file) = arguments::record_file(&words).filter(|_| !apart)
        && let Err(error) = write(&file, &record)
    {
        eprintln!("{NAME}: {}: cannot be written: {error}", file.display());
        return ExitCode::from(1);
    }
    ExitCode::from(code)
}

/// Does what the arguments say; fills the record.
fn run(words: &[OsString], record: &mut Fields) -> Outcome<()> {
    let arguments = Arguments::parse(words)?;
    record.insert("mode".to_owned(), json!(arguments.mode.name()));
    let provider = arguments.provider;
    record.insert("provider_requested".to_owned(), json!(provider.name()));
    let options = Options::read(arguments.options.as_deref())?;
    if provider == Provider::Cuda {
        cuda::Driver::load().ok_or_else(cuda::no_device)?;
    }
    let fields = match &arguments.mode {
        Mode::Latency { job, profile } => {
            latency::run(&arguments, job, profile.as_deref(), &options)?
        }
        Mode::Load {
            job,
            arrivals,
            sessions,
        } => load::run(&arguments, job, (arrivals, *sessions), &options)?,
        Mode::Cases { file, skip } => {
            return cases::run(&arguments, (file, *skip), &options);
        }
        Mode::Train(training) => train::run(&arguments, training, &options, record)?,
    };
    let (set, not_set) = options.told(provider);
    record.extend(fields);
    record.extend([
        ("status".to_owned(), json!("ok")),
        ("provider_used".to_owned(), json!(provider.name())),
        ("session_options".to_owned(), set),
        ("options_not_set".to_owned(), json!(not_set)),
        ("input_residency".to_owned(), json!("host")),
        ("build_info".to_owned(), json!(ort::info())),
        ("cpus_allowed".to_owned(), json!(process::cpus_allowed())),
        ("library_file".to_owned(), json!(process::library_file())),
        (
            "language_version".to_owned(),
            json!(concat!("Rust ", env!("RUSTC_VERSION"))),
        ),
    ]);
    Ok(())
}

/// Says what failed, notes it in the record, and returns the exit code.
fn report(failure: &Failure, record: &mut Fields) -> u8 {
    let message = failure.message();
    let line = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let (cause, code) = match failure {
        Failure::Skipped(_) => {
            eprintln!("{NAME}: skipped: {line}");
            record.insert("status".to_owned(), json!("skipped"));
            record.insert("reason".to_owned(), json!(message));
            return 3;
        }
        Failure::BadInput(_) | Failure::Unsupported(_) => ("bad-input", 2),
        Failure::Failed { cause, .. } => (*cause, 1),
    };
    eprintln!("{NAME}: {line}");
    record.insert("status".to_owned(), json!("failed"));
    record.insert("cause".to_owned(), json!(cause));
    record.insert("message".to_owned(), json!(message));
    code
}

/// Writes under a temporary name in the same folder, and renames; leaves nothing where that fails.
fn write(file: &Path, record: &Fields) -> io::Result<()> {
    let folder = file.parent().unwrap_or(Path::new(""));
    if !folder.as_os_str().is_empty() {
        fs::create_dir_all(folder)?;
    }
    let mut name = OsString::from(".");
    name.push(file.file_name().unwrap_or_default());
    name.push(format!(".{}", std::process::id()));
    let temporary = folder.join(name);
    fs::write(&temporary, format!("{}\n", Value::Object(record.clone())))
        .and_then(|()| fs::rename(&temporary, file))
        .inspect_err(|_| {
            // What could not be made is not there to be removed.
            let _ = fs::remove_file(&temporary);
        })
}
