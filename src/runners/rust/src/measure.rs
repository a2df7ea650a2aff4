//! Levels `latency`: all rows once, then timed until it is known well; and `cases`, without times.

use std::panic::{self, AssertUnwindSafe};
use std::time::{Duration, Instant};

use crate::plan::{Entry, Plan, role};
use crate::result::{Failure, Line, Outcome, Outputs, Results};
use crate::session::{Engine, Runtime, Times};
use crate::turns::Turns;
use crate::values::{self, Feed};

const INTERVAL_WIDTH: f64 = 0.02;
/// Half of the 97.5 % quantile of the normal distribution.
const HALF_Z95: f64 = 0.98;
const GROWTH: f64 = 1.25;
const PROFILED_RUNS: usize = 10;
const RUN: usize = 1;

/// Returns the last line's facts.
pub fn latency(plan: &Plan, runtime: &Runtime, results: &Results) -> Outcome<Line> {
    let turns = Turns::join()?;
    let batches = values::batches(plan, 0)?;
    let model = plan.one(role::MODEL, 0).path;
    let mut engine = runtime.open(model, None)?;
    let facts = all_rows(plan, &mut engine, &batches)?;
    let full = &batches[..plan.full_batches()];
    warm_up(&mut engine, full, plan.warmup)?;
    let (times, stop_reason) = match turns {
        Some(turns) => take_turns(turns, &mut engine, full)?,
        None => measure(plan, &mut engine, full)?,
    };
    results.process()?;
    results.numbers("times.bin", times.into_iter().flatten())?;
    let facts = facts.text("stop_reason", stop_reason);
    let Some(profile) = plan.of(role::PROFILE, 0).next() else {
        return Ok(facts);
    };
    let mut profiled = runtime.open(model, Some(profile.path))?;
    let times: Vec<u64> =
        (0..PROFILED_RUNS).map(|_| Ok(profiled.step(&full[0])?[RUN])).collect::<Outcome<_>>()?;
    results.numbers("profile_times.bin", times.into_iter())?;
    let file = profiled.session.end_profiling().map_err(Failure::crash)?;
    Ok(facts.text("profile_file", &file))
}

/// Runs the first batch, notes when, then every row, and writes the outputs.
pub fn all_rows(plan: &Plan, engine: &mut Engine, batches: &[Feed]) -> Outcome<Line> {
    engine.step(&batches[0])?;
    let first_result_ns = monotonic_ns();
    let mut outputs = Outputs::default();
    for feed in batches {
        engine.step(feed)?;
        let rows = if plan.batch == 0 { 0 } else { feed[0].shape[0] };
        outputs.add(plan.one(role::OUTPUTS, 0).path, &engine.outputs, rows as usize)?;
    }
    Ok(Line::status("ok")
        .json("session_ns", engine.session_ns)
        .json("first_result_ns", first_result_ns)
        .json("outputs", outputs.told()))
}

pub fn warm_up(engine: &mut Engine, batches: &[Feed], iterations: usize) -> Outcome<()> {
    for feed in batches.iter().cycle().take(iterations) {
        engine.step(feed)?;
    }
    Ok(())
}

/// Times iterations until the interval is narrow, which is looked at each time their number has
/// grown by a quarter, so that sorting costs little; or the time is up.
fn measure(
    plan: &Plan,
    engine: &mut Engine,
    batches: &[Feed],
) -> Outcome<(Vec<Times>, &'static str)> {
    let mut times: Vec<Times> = Vec::with_capacity(1 << 16);
    let mut next_check = plan.min_runs;
    let most = Duration::from_nanos(plan.max_ns);
    let begin = Instant::now();
    loop {
        times.push(engine.step(&batches[times.len() % batches.len()])?);
        if times.len() < plan.min_runs {
            continue;
        }
        if times.len() >= next_check {
            next_check = (times.len() as f64 * GROWTH).ceil() as usize;
            if interval_is_narrow(times.iter().map(|times| times[RUN]).collect()) {
                return Ok((times, "interval-reached"));
            }
        }
        if begin.elapsed() >= most {
            return Ok((times, "time-limit"));
        }
    }
}

/// Times iterations turn by turn; nothing is timed while it waits.
fn take_turns(
    mut turns: Turns,
    engine: &mut Engine,
    batches: &[Feed],
) -> Outcome<(Vec<Times>, &'static str)> {
    let mut times: Vec<Times> = Vec::with_capacity(1 << 16);
    let mut left = turns.next(b'r')?;
    while left > 0 {
        for _ in 0..left {
            times.push(engine.step(&batches[times.len() % batches.len()])?);
        }
        left = turns.next(b'd')?;
    }
    Ok((times, "turns"))
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

/// `CLOCK_MONOTONIC`, which `Instant` reads too but does not show.
fn monotonic_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: writes the time.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Runs each case once, and says what came of it.
pub fn cases(plan: &Plan, runtime: &Runtime, results: &mut Results) -> Outcome<Line> {
    for model in plan.all(role::MODEL) {
        let line = |status| Line::status(status).json("case", model.group);
        results.say(line("started"))?;
        // The crate panics on values that it does not know, such as an optional that is absent.
        let ended = panic::catch_unwind(AssertUnwindSafe(|| case(plan, runtime, model)))
            .unwrap_or_else(|panic| Err(Failure::of_panic("unsupported", &*panic)));
        results.say(match ended {
            Ok(outputs) => line("ok").json("outputs", outputs),
            Err(Failure { cause: "unsupported", message }) => {
                line("unsupported").text("message", &message)
            }
            Err(other) => line("failed").text("message", &other.message),
        })?;
    }
    Ok(Line::status("ok"))
}

fn case(plan: &Plan, runtime: &Runtime, model: &Entry) -> Outcome<String> {
    let whole = &values::batches(plan, model.group)?[0];
    let mut engine = runtime.open(model.path, None)?;
    engine.step(whole)?;
    let mut outputs = Outputs::default();
    outputs.add(plan.one(role::OUTPUTS, model.group).path, &engine.outputs, 0)?;
    Ok(outputs.told())
}
