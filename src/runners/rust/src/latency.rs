//! Mode `latency`: all rows once, then timed until it is known well.

use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::arguments::{Arguments, Job};
use crate::engine::{Engine, Runtime, Times};
use crate::failure::Outcome;
use crate::inputs::{Feed, Inputs};
use crate::options::Options;
use crate::process;
use crate::writer::Writer;

const INTERVAL_WIDTH: f64 = 0.02;
/// Half of the 97.5 % quantile of the normal distribution.
const HALF_Z95: f64 = 0.98;
const GROWTH: f64 = 1.25;
const PROFILED_RUNS: usize = 10;

/// Fields of the record.
pub type Fields = Map<String, Value>;

/// Runs all rows, writes the outputs, then measures; returns the record's fields.
pub fn run(
    arguments: &Arguments,
    job: &Job,
    profile: Option<&Path>,
    options: &Options,
) -> Outcome<Fields> {
    let inputs = Inputs::read(&job.inputs)?;
    let batches = inputs.batches();
    let runtime = Runtime::load(&arguments.library)?;
    let mut engine = runtime.open(&job.model, options, arguments.provider, None)?;
    let mut fields = all_rows(&mut engine, &inputs, &batches, &job.outputs)?;
    let full = &batches[..inputs.full_batches()];
    warm_up(&mut engine, full, arguments.warmup)?;
    fields.append(&mut measure(&mut engine, full, arguments)?);
    fields.insert("session_ns".into(), json!(engine.session_ns));
    fields.insert("runtime_version".into(), json!(runtime.version));
    fields.insert("run_includes".into(), json!([]));
    if let Some(prefix) = profile {
        let mut profiled = runtime.open(&job.model, options, arguments.provider, Some(prefix))?;
        let times: Vec<u64> = (0..PROFILED_RUNS)
            .map(|_| Ok(profiled.step(&full[0])?.run))
            .collect::<Outcome<_>>()?;
        fields.insert("profile_run_ns".into(), json!(times));
        fields.insert("profile_file".into(), json!(profiled.end_profile()?));
    }
    Ok(fields)
}

/// Runs the first batch, notes when, then every row, and writes the outputs.
pub fn all_rows(
    engine: &mut Engine,
    inputs: &Inputs,
    batches: &[Feed],
    folder: &Path,
) -> Outcome<Fields> {
    engine.check(&batches[0])?;
    engine.step(&batches[0])?;
    let first_result_ns = process::monotonic_ns();
    let mut writer = Writer::new(folder, engine.output_names())?;
    for feed in batches {
        engine.step(feed)?;
        let rows = inputs.rows().map(|_| feed[0].shape[0] as usize);
        writer.add(&engine.outputs, rows)?;
    }
    let header = writer.header();
    writer.finish()?;
    let outputs = json!({ "header": header.to_string_lossy(), "rows": inputs.rows() });
    Ok(Fields::from_iter([
        ("first_result_ns".to_owned(), json!(first_result_ns)),
        ("outputs".to_owned(), outputs),
    ]))
}

pub fn warm_up(engine: &mut Engine, batches: &[Feed], iterations: usize) -> Outcome<()> {
    for feed in batches.iter().cycle().take(iterations) {
        engine.step(feed)?;
    }
    Ok(())
}

/// Times iterations until the interval is narrow or the time is up.
///
/// The interval is looked at after the least number of runs and then each time their number has
/// grown by a quarter, so that sorting costs little.
fn measure(engine: &mut Engine, batches: &[Feed], arguments: &Arguments) -> Outcome<Fields> {
    let mut times: Vec<Times> = Vec::with_capacity(1 << 16);
    let mut next_check = arguments.min_runs;
    let begin = Instant::now();
    let stop_reason = loop {
        times.push(engine.step(&batches[times.len() % batches.len()])?);
        if times.len() < arguments.min_runs {
            continue;
        }
        if times.len() >= next_check {
            next_check = (times.len() as f64 * GROWTH).ceil() as usize;
            if interval_is_narrow(times.iter().map(|times| times.run).collect()) {
                break "interval-reached";
            }
        }
        if begin.elapsed().as_secs_f64() >= arguments.max_seconds {
            break "time-limit";
        }
    };
    // Before the series are there once more.
    let peak_memory = process::peak_memory();
    let series = |part: fn(&Times) -> u64| json!(times.iter().map(part).collect::<Vec<_>>());
    Ok(Fields::from_iter([
        ("bind_ns".to_owned(), series(|times| times.bind)),
        ("run_ns".to_owned(), series(|times| times.run)),
        ("copy_ns".to_owned(), series(|times| times.copy)),
        ("stop_reason".to_owned(), json!(stop_reason)),
        ("peak_memory_bytes".to_owned(), json!(peak_memory)),
    ]))
}

/// Tells whether the 95 % interval of the median is at most 2 % of the median wide.
///
/// Rank-based, no assumption on the distribution: J.-Y. Le Boudec, "Performance Evaluation of
/// Computer and Communication Systems", 2010, theorem 2.1, normal approximation of the ranks.
fn interval_is_narrow(mut values: Vec<u64>) -> bool {
    let n = values.len() as f64;
    let low = (0.5 * n - HALF_Z95 * n.sqrt()).floor();
    let high = (0.5 * n + 1.0 + HALF_Z95 * n.sqrt()).ceil();
    if low < 1.0 || high > n {
        return false;
    }
    values.sort_unstable();
    let middle = values.len() / 2;
    let median = (values[(values.len() - 1) / 2] + values[middle]) as f64 / 2.0;
    let width = values[high as usize - 1] - values[low as usize - 1];
    width as f64 <= INTERVAL_WIDTH * median
}
