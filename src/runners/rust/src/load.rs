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

/// A request that was served, in nanoseconds from the start.
struct Served {
    request: usize,
    start: u64,
    end: u64,
}

/// Hands out requests in the order of their arrival.
struct Queue<'a> {
    /// Nanoseconds from the start.
    arrivals: &'a [u64],
    next: AtomicUsize,
    /// What is not taken then stays unserved.
    limit: Duration,
    zero: OnceLock<Instant>,
}

/// Serves the arrivals with some sessions at once; returns the last line's facts.
pub fn run(plan: &Plan, runtime: &Runtime, results: &Results) -> Outcome<Line> {
    let arrivals = plan.one(role::ARRIVALS, 0).data()?.as_chunks().0.iter();
    let arrivals: Vec<u64> = arrivals.map(|number| u64::from_le_bytes(*number)).collect();
    let batches = values::batches(plan, 0)?;
    let full = &batches[..plan.full_batches()];
    let mut engines: Vec<Engine> = (0..plan.sessions)
        .map(|_| runtime.open(plan.one(role::MODEL, 0).path(), None))
        .collect::<Outcome<_>>()?;
    let facts = all_rows(plan, &mut engines[0], &batches)?;
    for engine in &mut engines {
        warm_up(engine, full, plan.warmup)?;
    }
    let limit = Duration::from_nanos(plan.last_begin_ns);
    let parts = serve_all(&arrivals, limit, &mut engines, full)?;
    results.process()?;
    let mut served: Vec<Served> = parts.into_iter().flatten().collect();
    served.sort_unstable_by_key(|one| one.request);
    let times = served.iter().flat_map(|one| [one.start, one.end]);
    results.numbers("times.bin", times)?;
    let all = served.len() == arrivals.len();
    Ok(facts.text("stop_reason", if all { "all-served" } else { "time-limit" }))
}

/// Returns the served requests of each worker.
fn serve_all(
    arrivals: &[u64],
    limit: Duration,
    engines: &mut [Engine],
    batches: &[Feed],
) -> Outcome<Vec<Vec<Served>>> {
    let queue = Queue { arrivals, next: AtomicUsize::new(0), limit, zero: OnceLock::new() };
    let ready = Barrier::new(engines.len() + 1);
    thread::scope(|scope| {
        let (queue, ready) = (&queue, &ready);
        let workers: Vec<_> = engines
            .iter_mut()
            .map(|engine| {
                scope.spawn(move || {
                    ready.wait();
                    queue.serve(engine, batches)
                })
            })
            .collect();
        ready.wait();
        queue.zero.get_or_init(Instant::now);
        let ended = workers.into_iter().map(|worker| worker.join());
        ended
            .map(|part| part.unwrap_or_else(|_| Err(Failure::crash("a worker panicked"))))
            .collect()
    })
}

impl Queue<'_> {
    /// Takes requests until there is none, or the time is up.
    fn serve(&self, engine: &mut Engine, batches: &[Feed]) -> Outcome<Vec<Served>> {
        let zero = *self.zero.wait();
        let mut served = Vec::with_capacity(self.arrivals.len());
        // What is taken is served, so that those served are the first ones, without a gap.
        while zero.elapsed() <= self.limit {
            let request = self.next.fetch_add(1, Ordering::Relaxed);
            let Some(arrival) = self.arrivals.get(request) else {
                break;
            };
            let begin = wait_until(zero + Duration::from_nanos(*arrival));
            if let Err(failure) = engine.step(&batches[request % batches.len()]) {
                self.next.store(self.arrivals.len(), Ordering::Relaxed);
                return Err(failure);
            }
            served.push(Served {
                request,
                start: nanoseconds(zero, begin),
                end: nanoseconds(zero, Instant::now()),
            });
        }
        Ok(served)
    }
}

/// Sleeps, and yields for the last part; returns the time of its end.
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
