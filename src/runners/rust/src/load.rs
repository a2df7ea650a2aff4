//! Level `load`: requests arrive when they arrive (an open loop).

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use crate::measure::{all_rows, warm_up};
use crate::plan::{Plan, role};
use crate::result::{Failure, Line, Outcome, Results};
use crate::session::{Engine, Runtime, nanoseconds};
use crate::values::{self, Feed};

/// A sleep may end late by this much; the rest of the time is waited through.
const SLEEP_MARGIN: Duration = Duration::from_micros(200);

/// Requests that were served, their start and end, in nanoseconds from the start of all.
type Served = Vec<(usize, u64, u64)>;

pub fn run(plan: &Plan, runtime: &Runtime, results: &Results) -> Outcome<Line> {
    let arrivals = plan.one(role::ARRIVALS, 0).data()?.as_chunks().0.iter();
    let arrivals: Vec<u64> = arrivals.map(|number| u64::from_le_bytes(*number)).collect();
    let batches = values::batches(plan, 0)?;
    let full = &batches[..plan.full_batches()];
    let open = |_| runtime.open(plan.one(role::MODEL, 0).path, None);
    let mut engines: Vec<Engine> = (0..plan.sessions).map(open).collect::<Outcome<_>>()?;
    let facts = all_rows(plan, &mut engines[0], &batches)?;
    for engine in &mut engines {
        warm_up(engine, full, plan.warmup)?;
    }
    let mut served = serve(plan, &arrivals, &mut engines, full)?;
    results.process()?;
    served.sort_unstable_by_key(|(request, _, _)| *request);
    let all = served.len() == arrivals.len();
    let times = served.into_iter().flat_map(|(_, start, end)| [start, end]);
    results.numbers("times.bin", times)?;
    Ok(facts.text("stop_reason", if all { "all-served" } else { "time-limit" }))
}

/// Hands out requests in the order of their arrival; returns those that were served.
fn serve(plan: &Plan, arrivals: &[u64], engines: &mut [Engine], feeds: &[Feed]) -> Outcome<Served> {
    let limit = Duration::from_nanos(plan.last_begin_ns);
    let next = AtomicUsize::new(0);
    let ready = Barrier::new(engines.len() + 1);
    let begin = OnceLock::new();
    let work = |engine: &mut Engine| {
        ready.wait();
        let zero: Instant = *begin.wait();
        let mut served = Vec::with_capacity(arrivals.len());
        // What is taken is served, so that those served are the first ones, without a gap.
        while zero.elapsed() <= limit {
            let request = next.fetch_add(1, Ordering::Relaxed);
            let Some(arrival) = arrivals.get(request) else {
                break;
            };
            let start = wait_until(zero + Duration::from_nanos(*arrival));
            if let Err(failure) = engine.step(&feeds[request % feeds.len()]) {
                next.store(arrivals.len(), Ordering::Relaxed);
                return Err(failure);
            }
            let end = Instant::now();
            served.push((request, nanoseconds(zero, start), nanoseconds(zero, end)));
        }
        Ok(served)
    };
    thread::scope(|scope| {
        let workers: Vec<_> =
            engines.iter_mut().map(|engine| scope.spawn(|| work(engine))).collect();
        ready.wait();
        begin.get_or_init(Instant::now);
        let mut all = Vec::new();
        for worker in workers {
            all.extend(worker.join().map_err(|_| Failure::crash("a worker panicked"))??);
        }
        Ok(all)
    })
}

fn wait_until(due: Instant) -> Instant {
    loop {
        let now = Instant::now();
        let left = due.saturating_duration_since(now);
        if left.is_zero() {
            return now;
        }
        match left.checked_sub(SLEEP_MARGIN) {
            Some(sleep) if !sleep.is_zero() => thread::sleep(sleep),
            _ => thread::yield_now(),
        }
    }
}
