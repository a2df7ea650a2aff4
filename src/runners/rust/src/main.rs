//! ONNX Runtime from Rust, under the runner contract (docs/runner-contract.md).

mod cuda;
mod load;
mod measure;
mod plan;
mod result;
mod session;
mod train;
mod turns;
mod values;

use std::env;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use plan::{CASES, LOAD, Plan, TRAIN, role};
use result::{Failure, Line, Outcome, Results};
use session::Runtime;

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
    let mut results = match Results::open(plan.one(role::OUT, 0).path) {
        Ok(results) => results,
        Err(failure) => return refuse(&failure.message, 1),
    };
    let ended = panic::catch_unwind(AssertUnwindSafe(|| run(&plan, &mut results)))
        .unwrap_or_else(|panic| Err(Failure::of_panic("crash", &*panic)));
    let (line, code) = match ended {
        Ok(facts) => (facts, ExitCode::SUCCESS),
        Err(failure) => failure.ending(),
    };
    match results.say(line) {
        Ok(()) => code,
        Err(failure) => refuse(&failure.message, 1),
    }
}

/// Says on one line why there is no result.
pub fn refuse(message: &str, code: u8) -> ExitCode {
    let words: Vec<&str> = message.split_whitespace().collect();
    eprintln!("rust: {}", words.join(" "));
    ExitCode::from(code)
}

fn run(plan: &Plan, results: &mut Results) -> Outcome<Line> {
    // The environment's build.sh says it.
    let compiler = option_env!("RUSTC_VERSION").unwrap_or("unknown");
    let runtime = Runtime::load(plan)?;
    let facts = match plan.level {
        LOAD => load::run(plan, &runtime, results),
        CASES => measure::cases(plan, &runtime, results),
        TRAIN => train::run(plan, &runtime, results),
        _ => measure::latency(plan, &runtime, results),
    }?;
    // The provider `cpu` has no options of its own.
    let is_left = runtime.cuda.is_none() && plan.of(role::PROVIDER_OPTION, 0).next().is_some();
    Ok(facts
        .text("provider_used", plan.one(role::PROVIDER, 0).word())
        .text("runtime_version", &runtime.version)
        .text("language_version", &format!("Rust {compiler}"))
        .text("build_info", ort::info())
        .json("options_not_set", if is_left { "[\"provider_options\"]" } else { "[]" })
        .json("run_includes", "[]"))
}
