//! Mode `cases`: many small models, each run once, without times.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::{Value, json};

use crate::arguments::{Arguments, Provider};
use crate::engine::Runtime;
use crate::failure::{self, Failure, Outcome, bad_input};
use crate::inputs::Inputs;
use crate::options::Options;
use crate::writer::{Writer, unwritable};

#[derive(Deserialize)]
struct Case {
    name: String,
    model: PathBuf,
    inputs: PathBuf,
    outputs: PathBuf,
}

/// Runs the cases from `skip` on; appends to the record what came of each.
pub fn run(arguments: &Arguments, (file, skip): (&Path, usize), options: &Options) -> Outcome<()> {
    let at = file.display();
    let text = fs::read(file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
    let cases: Vec<Case> = serde_json::from_slice(&text).map_err(|error| {
        bad_input!("{at}: expected a list of cases with name, model, inputs, outputs: {error}")
    })?;
    let runtime = Runtime::load(&arguments.library)?;
    let mut record = append_to(&arguments.record)?;
    for (index, case) in cases.iter().enumerate().skip(skip) {
        let mut say = |verdict: Value| {
            let mut line = json!({ "case": index, "name": case.name });
            if let (Value::Object(line), Value::Object(verdict)) = (&mut line, verdict) {
                line.extend(verdict);
            }
            record
                .write_all(format!("{line}\n").as_bytes())
                .map_err(|error| unwritable(&arguments.record, error))
        };
        say(json!({ "status": "started" }))?;
        say(match verdict(&runtime, case, options, arguments.provider) {
            Ok(()) => json!({ "status": "ok" }),
            Err(Failure::Unsupported(message)) => {
                json!({ "status": "unsupported", "message": message })
            }
            Err(other) => json!({ "status": "failed", "message": other.message() }),
        })?;
    }
    Ok(())
}

fn append_to(record: &Path) -> Outcome<File> {
    if let Some(folder) = record.parent() {
        fs::create_dir_all(folder).map_err(|error| unwritable(folder, error))?;
    }
    OpenOptions::new()
        .append(true)
        .create(true)
        .open(record)
        .map_err(|error| unwritable(record, error))
}

/// The crate panics on values that it does not know, such as an optional that is absent.
fn verdict(runtime: &Runtime, case: &Case, options: &Options, provider: Provider) -> Outcome<()> {
    let ended = panic::catch_unwind(AssertUnwindSafe(|| one(runtime, case, options, provider)));
    ended.unwrap_or_else(|panic| {
        let said = format!("the ort crate panicked: {}", failure::words(&*panic));
        Err(Failure::Unsupported(said))
    })
}

fn one(runtime: &Runtime, case: &Case, options: &Options, provider: Provider) -> Outcome<()> {
    let inputs = Inputs::read(&case.inputs)?;
    let mut engine = runtime.open(&case.model, options, provider, None)?;
    let mut writer = Writer::new(&case.outputs, engine.output_names())?;
    for feed in inputs.batches() {
        engine.check(&feed)?;
        engine.step(&feed)?;
        writer.add(
            &engine.outputs,
            inputs.rows().map(|_| feed[0].shape[0] as usize),
        )?;
    }
    writer.finish()
}
