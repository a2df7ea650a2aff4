//! The docking kernel in Rust: threads of the standard library, and the contract of docs/docking.md.

mod deck;
mod kernel;

use std::process::ExitCode;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::time::Instant;
use std::{env, fs, io, thread};

use deck::Deck;

type Item = fn(&Deck, usize, &mut [f32]);

struct Options {
    deck: String,
    energies: String,
    dynamic: bool,
    threads: usize,
    per_item: usize,
    iterations: usize,
    warm_ups: usize,
    chunk: usize,
    cpus: Vec<usize>,
}

fn whole(name: &str, text: &str, least: usize) -> Result<usize, String> {
    match text.parse() {
        Ok(value) if value >= least => Ok(value),
        _ => Err(format!("{name}: expected a whole number from {least} on, found '{text}'")),
    }
}

fn options() -> Result<Options, String> {
    let mut given = Options {
        deck: String::new(),
        energies: String::new(),
        dynamic: false,
        threads: 1,
        per_item: 64,
        iterations: 8,
        warm_ups: 2,
        chunk: 0,
        cpus: vec![],
    };
    let words: Vec<String> = env::args().skip(1).collect();
    for pair in words.chunks(2) {
        let [name, value] = pair else { return Err(format!("{}: expected a value", pair[0])) };
        match name.as_str() {
            "--deck" => given.deck.clone_from(value),
            "--energies" => given.energies.clone_from(value),
            "--schedule" => match value.as_str() {
                "static" => given.dynamic = false,
                "dynamic" => given.dynamic = true,
                _ => return Err(format!("--schedule: expected static or dynamic, found '{value}'")),
            },
            "--threads" => given.threads = whole(name, value, 1)?,
            "--ppwi" => given.per_item = whole(name, value, 1)?,
            "--iterations" => given.iterations = whole(name, value, 0)?,
            "--warm-ups" => given.warm_ups = whole(name, value, 0)?,
            "--chunk" => given.chunk = whole(name, value, 0)?,
            "--cpus" => given.cpus = value.split(',').map(|cpu| whole(name, cpu, 0)).collect::<Result<_, _>>()?,
            _ => return Err(format!("{name}: no such option")),
        }
    }
    if given.deck.is_empty() || given.energies.is_empty() {
        return Err("expected --deck FILE and --energies FILE".into());
    }
    Ok(given)
}

fn item_of(per_item: usize) -> Result<Item, String> {
    Ok(match per_item {
        1 => kernel::item::<1>,
        4 => kernel::item::<4>,
        8 => kernel::item::<8>,
        16 => kernel::item::<16>,
        32 => kernel::item::<32>,
        64 => kernel::item::<64>,
        128 => kernel::item::<128>,
        256 => kernel::item::<256>,
        _ => return Err(format!("--ppwi: expected 1, 4, 8, 16, 32, 64, 128 or 256, found {per_item}")),
    })
}

#[cfg(target_os = "linux")]
fn pin(cpu: usize) -> bool {
    extern "C" {
        fn sched_setaffinity(task: i32, bytes: usize, mask: *const u64) -> i32;
    }
    let mut mask = [0u64; 64];
    if cpu >= 64 * mask.len() {
        return false;
    }
    mask[cpu / 64] = 1 << (cpu % 64);
    // SAFETY: the mask lives through the call, and its length is told.
    unsafe { sched_setaffinity(0, std::mem::size_of_val(&mask), mask.as_ptr()) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn pin(_cpu: usize) -> bool {
    false
}

/// Deal work-items out to threads that live as long as this run, as a parallel region does.
fn run(deck: &Deck, options: &Options, item: Item, energies: &mut [f32]) -> Result<(), String> {
    let items = deck.count.div_ceil(options.per_item);
    // Static: one piece for each thread, unless a chunk is given, as OpenMP does.
    let even = if options.dynamic { 1 } else { items.div_ceil(options.threads) };
    let chunk = if options.chunk > 0 { options.chunk } else { even };
    let pieces: Vec<Mutex<Option<&mut [f32]>>> =
        energies.chunks_mut(chunk * options.per_item).map(|piece| Mutex::new(Some(piece))).collect();
    let next = AtomicUsize::new(0);
    let pinned = AtomicUsize::new(0);
    let work = |thread: usize| {
        if options.cpus.get(thread).is_some_and(|cpu| pin(*cpu)) {
            pinned.fetch_add(1, Ordering::Relaxed);
        }
        let mut mine = thread;
        loop {
            let number = if options.dynamic { next.fetch_add(1, Ordering::Relaxed) } else { mine };
            let Some(piece) = pieces.get(number) else { return };
            let piece = piece.lock().expect("no thread dies").take().expect("a piece is taken once");
            for (i, energies) in piece.chunks_mut(options.per_item).enumerate() {
                item(deck, (number * chunk + i) * options.per_item, energies);
            }
            mine += options.threads;
        }
    };
    thread::scope(|scope| {
        for thread in 1..options.threads {
            let work = &work;
            scope.spawn(move || work(thread));
        }
        work(0);
    });
    if pinned.into_inner() < options.cpus.len() {
        return Err(format!("--cpus: a thread cannot be pinned to one of {:?}", options.cpus));
    }
    Ok(())
}

/// How many runs come next. By turns, where no number was given: whoever gives them says it, 0 at the end.
fn next_runs(iterations: usize, done: usize) -> usize {
    if iterations > 0 {
        return if done == 0 { iterations } else { 0 };
    }
    println!("turn");
    let mut line = String::new();
    io::stdin().read_line(&mut line).ok().and_then(|_| line.trim().parse().ok()).unwrap_or(0)
}

fn measure() -> Result<(), String> {
    let options = options()?;
    let item = item_of(options.per_item)?;
    if !options.cpus.is_empty() && options.cpus.len() != options.threads {
        return Err(format!("--cpus: expected {} of them, one for each thread", options.threads));
    }
    let deck = deck::read(&options.deck)?;
    println!("fact kernel Rust, threads of its standard library");
    println!("fact compiled_by rustc, edition 2021");
    let cpus: Vec<String> = options.cpus.iter().map(usize::to_string).collect();
    println!("fact cpus_of_threads {}", if cpus.is_empty() { "not pinned".into() } else { cpus.join(" ") });
    let mut energies = vec![0f32; deck.count];
    let mut timed_run = || {
        // What a run leaves out must not be what the run before it left.
        energies.fill(f32::NAN);
        let start = Instant::now();
        run(&deck, &options, item, &mut energies).map(|()| start.elapsed().as_secs_f64())
    };
    for i in 0..options.warm_ups {
        println!("warm-up {i} {:.9}", timed_run()?);
    }
    let mut done = 0;
    loop {
        let left = next_runs(options.iterations, done);
        for number in done..done + left {
            println!("time {number} {:.9}", timed_run()?);
        }
        if left == 0 {
            break;
        }
        done += left;
    }
    let bytes: Vec<u8> = energies.iter().flat_map(|energy| energy.to_le_bytes()).collect();
    fs::write(&options.energies, bytes).map_err(|error| format!("{} cannot be written: {error}", options.energies))
}

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(text) => {
            eprintln!("error: {text}");
            ExitCode::from(2)
        }
    }
}
