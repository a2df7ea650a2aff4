//! ONNX Runtime from Rust, under the runner contract (docs/runner-contract.md).

mod cuda;
mod load;
mod measure;
mod plan;
mod result;
mod session;
mod train;
mod values;

use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use plan::{CASES, LOAD, Plan, TRAIN, role};
use result::{Failure, Line, Outcome, Results};
use session::Runtime;

const NAME: &str = "rust";
/// The environment's build.sh says it.
const COMPILER: Option<&str> = option_env!("RUSTC_VERSION");

fn main() -> ExitCode {
    // What panics say is part of our one line.
    panic::set_hook(Box::new(|_| ()));
    let Some(path) = env::args_os().nth(1).map(PathBuf::from) else {
        return refuse("usage: transect-runner-rust PLAN", 2);
    };
    let plan = match Plan::read(&path) {
        Ok(plan) => plan,
        Err(why) => return refuse(&format!("{}: {why}", path.display()), 2),
    };
    let mut results = match Results::open(plan.one(role::OUT, 0).path()) {
        Ok(results) => results,
        Err(failure) => return refuse(&failure.message, 1),
    };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| run(&plan, &mut results)))
        .unwrap_or_else(|panic| Err(Failure::of_panic("crash", &*panic)));
    let code = match &ended {
        Ok(_) => ExitCode::SUCCESS,
        Err(Failure { cause: "skipped", message }) => refuse(&format!("skipped: {message}"), 3),
        Err(failure) => refuse(&failure.message, failure.exit_code()),
    };
    match results.say(ended.unwrap_or_else(|failure| failure.line())) {
        Ok(()) => code,
        Err(failure) => refuse(&failure.message, 1),
    }
}

/// Says on one line why there is no result.
fn refuse(message: &str, code: u8) -> ExitCode {
    let words: Vec<&str> = message.split_whitespace().collect();
    eprintln!("{NAME}: {}", words.join(" "));
    ExitCode::from(code)
}

/// Does what the plan says; returns the last line.
fn run(plan: &Plan, results: &mut Results) -> Outcome<Line> {
    let runtime = Runtime::load(plan)?;
    let facts = match plan.level {
        LOAD => load::run(plan, &runtime, results),
        CASES => measure::cases(plan, &runtime, results),
        TRAIN => train::run(plan, &runtime, results),
        _ => measure::latency(plan, &runtime, results),
    }?;
    Ok(facts
        .text("provider_used", plan.one(role::PROVIDER, 0).word())
        .text("runtime_version", &runtime.version)
        .text("language_version", &format!("Rust {}", COMPILER.unwrap_or("unknown")))
        .text("build_info", ort::info())
        .json("options_not_set", runtime.options_not_set())
        .json("run_includes", "[]"))
}
