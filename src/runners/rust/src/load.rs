//! Mode `load`: requests arrive when they arrive (an open loop).

use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, OnceLock};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::arguments::{Arguments, Job};
use crate::engine::{Engine, Runtime, nanoseconds};
use crate::failure::{Failure, Outcome, bad_input};
use crate::inputs::{Feed, Inputs};
use crate::latency::{Fields, all_rows, warm_up};
use crate::options::Options;
use crate::process;

/// A sleep may end late by this much; the rest of the time is waited through.
const SLEEP_MARGIN: Duration = Duration::from_micros(200);

/// In nanoseconds, 36 years: sums of times stay within 64 bits.
const LAST_ARRIVAL: u64 = 1 << 60;

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

/// Serves the arrivals with some sessions at once; returns the record's fields.
pub fn run(
    arguments: &Arguments,
    job: &Job,
    (arrivals, sessions): (&Path, usize),
    options: &Options,
) -> Outcome<Fields> {
    let arrivals = read(arrivals)?;
    let inputs = Inputs::read(&job.inputs)?;
    let batches = inputs.batches();
    let full = &batches[..inputs.full_batches()];
    let runtime = Runtime::load(&arguments.library)?;
    let mut engines: Vec<Engine> = (0..sessions)
        .map(|_| runtime.open(&job.model, options, arguments.provider, None))
        .collect::<Outcome<_>>()?;
    let mut fields = all_rows(&mut engines[0], &inputs, &batches, &job.outputs)?;
    for engine in &mut engines {
        warm_up(engine, full, arguments.warmup)?;
    }
    let limit = Duration::from_nanos(arrivals[arrivals.len() - 1].saturating_mul(2))
        .saturating_add(
            Duration::try_from_secs_f64(arguments.max_seconds).unwrap_or(Duration::MAX),
        );
    let parts = serve_all(&arrivals, limit, &mut engines, full)?;
    let peak_memory = process::peak_memory();
    let served = in_order(parts);
    let all = served.len() == arrivals.len();
    let series = |part: fn(&Served) -> u64| json!(served.iter().map(part).collect::<Vec<_>>());
    fields.extend([
        ("session_ns".to_owned(), json!(engines[0].session_ns)),
        ("runtime_version".to_owned(), json!(runtime.version)),
        ("run_includes".to_owned(), json!([])),
        ("sessions".to_owned(), json!(sessions)),
        ("arrivals".to_owned(), json!(arrivals.len())),
        ("start_ns".to_owned(), series(|served| served.start)),
        ("end_ns".to_owned(), series(|served| served.end)),
        (
            "stop_reason".to_owned(),
            json!(if all { "all-served" } else { "time-limit" }),
        ),
        ("peak_memory_bytes".to_owned(), json!(peak_memory)),
    ]);
    Ok(fields)
}

fn read(path: &Path) -> Outcome<Vec<u64>> {
    let at = path.display();
    let bytes = fs::read(path).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
    let (numbers, rest) = bytes.as_chunks::<8>();
    if !rest.is_empty() || numbers.is_empty() {
        return Err(bad_input!(
            "{at}: expected int64 arrival times, got {} bytes",
            bytes.len()
        ));
    }
    let arrivals: Option<Vec<u64>> = numbers
        .iter()
        .map(|number| u64::try_from(i64::from_le_bytes(*number)).ok())
        .collect();
    let good = |arrivals: &Vec<u64>| {
        arrivals.is_sorted() && arrivals.iter().all(|arrival| *arrival <= LAST_ARRIVAL)
    };
    match arrivals {
        Some(arrivals) if good(&arrivals) => Ok(arrivals),
        _ => Err(bad_input!(
            "{at}: expected arrival times from 0 to 2^60 ns that do not fall"
        )),
    }
}

/// Returns the served requests of each worker.
fn serve_all(
    arrivals: &[u64],
    limit: Duration,
    engines: &mut [Engine],
    batches: &[Feed],
) -> Outcome<Vec<Vec<Served>>> {
    let queue = Queue {
        arrivals,
        next: AtomicUsize::new(0),
        limit,
        zero: OnceLock::new(),
    };
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
            .map(|part| {
                part.unwrap_or_else(|_| Err(Failure::crash("a worker panicked".to_owned())))
            })
            .collect()
    })
}

/// Returns the served requests in the order of their arrival; they are the first ones of all.
fn in_order(parts: Vec<Vec<Served>>) -> Vec<Served> {
    let mut served: Vec<Served> = parts.into_iter().flatten().collect();
    served.sort_unstable_by_key(|one| one.request);
    served
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
