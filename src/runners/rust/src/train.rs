//! Level `train`: goes on with a portable training step.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;
use std::{ptr, slice};

use ort::AsPointer;
use ort::memory::Allocator;
use ort::session::{IoBinding, Session};
use ort::value::{DynTensor, TensorElementType};

use crate::cuda::{self, Driver};
use crate::plan::{Entry, Plan, role};
use crate::result::{Failure, Line, Outcome, Results};
use crate::session::{Runtime, nanoseconds};
use crate::values;

/// The step's own graph stands before that of the micro-batches.
const STEP: usize = 0;
const ACCUMULATE: usize = 1;
/// How the tensors of two graphs can lie, each in one of two places.
const ARRANGEMENTS: usize = 4;

/// The parts of a step, in nanoseconds, over its micro-batches: gather, bind, run, read.
type Times = [u64; 4];

/// Trains until the last step, or a loss that is not finite; returns the last line's facts.
pub fn run(plan: &Plan, runtime: &Runtime, results: &mut Results) -> Outcome<Line> {
    let graphs = plan.all(role::GRAPH).map(|graph| runtime.session(graph.path, None));
    let (sessions, took): (Vec<_>, Vec<u64>) =
        graphs.collect::<Outcome<Vec<_>>>()?.into_iter().unzip();
    let mut trainer = Trainer::new(plan, sessions, runtime.cuda)?;
    let mut metrics = Vec::new();
    let mut times: Vec<Times> = Vec::new();
    for step in 0..=plan.steps {
        let done = plan.first_step + step;
        let is_due = plan.checkpoint_every > 0 && done.is_multiple_of(plan.checkpoint_every);
        // The next one would take the place of the last good one.
        if (step == plan.steps || is_due && step > 0) && !trainer.keep(done, results)? {
            break;
        }
        if step == plan.steps {
            break;
        }
        let (means, parts) = trainer.step(step)?;
        times.push(parts);
        let loss = means[0];
        metrics.extend(means.into_iter().map(f64::to_bits));
        if !loss.is_finite() {
            break;
        }
    }
    results.process()?;
    results.numbers("times.bin", times.into_iter().flatten())?;
    results.numbers("metrics.bin", metrics.into_iter())?;
    Ok(Line::status("ok").json("session_ns", took.iter().sum::<u64>()))
}

struct Graph {
    session: Session,
    /// Names, each with the number of the entry that it takes, or whose next value it gives.
    takes: Vec<(&'static str, usize)>,
    gives: Vec<(&'static str, usize)>,
    /// By `Trainer::turns`, made when first needed.
    bindings: [Option<IoBinding>; ARRANGEMENTS],
}

/// The tensor of an entry, and the rows that it can be filled with. A tensor of the state that
/// changes has two places: a run reads the one and writes the other.
struct Slot<'a> {
    entry: &'a Entry,
    rows: &'static [u8],
    width: usize,
    places: Vec<DynTensor>,
    /// A bit for each graph that gives its next value.
    changed: usize,
}

/// The graphs of a step, and all that they read and write.
struct Trainer<'a> {
    plan: &'a Plan,
    graphs: Vec<Graph>,
    /// One for each of the plan's entries, and the numbers of those of a role.
    slots: Vec<Slot<'a>>,
    data: Vec<usize>,
    hyper: Vec<usize>,
    metrics: Vec<usize>,
    order: Vec<usize>,
    /// A bit for each graph: whether it ran an odd number of times. Where each tensor of the state
    /// lies follows from it.
    turns: usize,
    /// None where the state lies in host memory.
    device: Option<Driver>,
    file: usize,
}

impl<'a> Trainer<'a> {
    /// Makes room for the state on the device with this id, None for the host, and reads it.
    fn new(plan: &'a Plan, sessions: Vec<Session>, device: Option<i32>) -> Outcome<Self> {
        let host = Allocator::default();
        let there = device.map(|id| cuda::allocator(&sessions[STEP], id)).transpose()?;
        let entries = || plan.entries.iter().enumerate();
        let slot = |(number, entry): (usize, &'a Entry)| {
            let is_next = |one: &&Entry| entry.role == role::STATE && one.link == number;
            let next = plan.all(role::GIVES).filter(is_next);
            let changed: usize = next.map(|one| 1 << one.group).sum();
            let (allocator, shape, rows): (_, _, &[u8]) = match entry.role {
                role::STATE => (there.as_ref().unwrap_or(&host), entry.shape.clone(), &[]),
                role::DATA => {
                    (&host, [&[plan.batch as i64], &entry.shape[1..]].concat(), entry.data()?)
                }
                role::HYPER => (&host, Vec::new(), entry.data()?),
                role::SEED | role::METRIC => (&host, Vec::new(), &[]),
                _ => return Ok(Slot { entry, rows: &[], width: 1, places: Vec::new(), changed }),
            };
            let count = entry.shape.first().map_or(1, |rows| *rows as usize);
            let width = (rows.len() / count.max(1)).max(1);
            let place = |_| DynTensor::new(allocator, values::element(entry.dtype), shape.clone());
            let places: ort::Result<_> = (0..if changed == 0 { 1 } else { 2 }).map(place).collect();
            Ok(Slot { entry, rows, width, places: places.map_err(Failure::crash)?, changed })
        };
        let of =
            |role| entries().filter(|(_, entry)| entry.role == role).map(|(at, _)| at).collect();
        let graph = |(group, session)| {
            let ends = |role| plan.of(role, group).map(|end| (end.name, end.link)).collect();
            let (takes, gives) = (ends(role::TAKES), ends(role::GIVES));
            Graph { session, takes, gives, bindings: Default::default() }
        };
        let order = plan.one(role::ORDER, 0).data()?.as_chunks().0.iter();
        let mut trainer = Trainer {
            plan,
            slots: entries().map(slot).collect::<Outcome<_>>()?,
            data: of(role::DATA),
            hyper: of(role::HYPER),
            metrics: of(role::METRIC),
            order: order.map(|row| i64::from_le_bytes(*row) as usize).collect(),
            graphs: (0..).zip(sessions).map(graph).collect(),
            turns: 0,
            device: device.map(|_| Driver::load()).transpose()?,
            file: 0,
        };
        for Slot { entry, places, .. } in &mut trainer.slots {
            match (entry.role, &trainer.device) {
                (role::SEED, _) => bytes(&mut places[0]).copy_from_slice(&plan.seed.to_le_bytes()),
                (role::STATE, None) => entry.read(bytes(&mut places[0]))?,
                (role::STATE, Some(device)) => {
                    let mut bytes = vec![0; values::length(&places[0])];
                    entry.read(&mut bytes)?;
                    device.to_device(&bytes, &mut places[0])?;
                }
                _ => (),
            }
        }
        Ok(trainer)
    }

    /// Returns the means of the metrics over the micro-batches of a step.
    fn step(&mut self, step: usize) -> Outcome<(Vec<f64>, Times)> {
        let micro_batches = self.plan.accumulate;
        let mut means = vec![0.0; self.metrics.len()];
        let mut times = Times::default();
        for place in 0..micro_batches {
            let graph = if place + 1 == micro_batches { STEP } else { ACCUMULATE };
            let t0 = Instant::now();
            let rows = &self.order[(step * micro_batches + place) * self.plan.batch..];
            for number in &self.data {
                self.slots[*number].gather(rows);
            }
            let t1 = Instant::now();
            for number in &self.hyper {
                self.slots[*number].gather(&[step]);
            }
            self.bind(graph)?;
            let t2 = Instant::now();
            self.run(graph)?;
            let t3 = Instant::now();
            for (mean, metric) in means.iter_mut().zip(&self.metrics) {
                *mean += scalar(&self.slots[*metric].places[0])?;
            }
            let t4 = Instant::now();
            times[0] += nanoseconds(t0, t1);
            times[1] += nanoseconds(t1, t2);
            times[2] += nanoseconds(t2, t3);
            times[3] += nanoseconds(t3, t4);
        }
        for mean in &mut means {
            *mean /= micro_batches as f64;
        }
        Ok((means, times))
    }

    /// Binds what the graph's next run reads and writes, where that is not bound already: on a
    /// device binding an input copies it there.
    fn bind(&mut self, graph: usize) -> Outcome<()> {
        let turns = self.turns;
        let graph = &mut self.graphs[graph];
        let made = &mut graph.bindings[turns];
        let is_new = made.is_none();
        if !is_new && self.device.is_none() {
            return Ok(());
        }
        let binding = match made {
            Some(binding) => binding,
            None => made.insert(graph.session.create_binding().map_err(Failure::crash)?),
        };
        for (name, entry) in &graph.takes {
            let tensor = self.slots[*entry].now(turns);
            binding.bind_input(*name, tensor).map_err(Failure::of_run)?;
        }
        for (name, entry) in graph.gives.iter().filter(|_| is_new) {
            let tensor = self.slots[*entry].next(turns);
            binding.bind_output(*name, tensor).map_err(Failure::of_run)?;
        }
        binding.synchronize_inputs().map_err(Failure::of_run)
    }

    /// Runs a graph that is bound, until the device has finished. By ONNX Runtime's own function:
    /// the crate's makes a new value of each output, which nobody looks at.
    fn run(&mut self, graph: usize) -> Outcome<()> {
        let Graph { session, bindings, .. } = &mut self.graphs[graph];
        let binding = bindings[self.turns].as_ref().expect("it is bound");
        // SAFETY: both are alive, and so is all that is bound.
        let ran = unsafe {
            let run = ort::api().RunWithBinding;
            ort::Error::result_from_status(run(session.ptr_mut(), ptr::null(), binding.ptr()))
        };
        ran.map_err(Failure::of_run)?;
        if self.device.is_some() {
            binding.synchronize_outputs().map_err(Failure::of_run)?;
        }
        self.turns ^= 1 << graph;
        Ok(())
    }

    /// Writes the state to one of two files by turns; tells whether all its numbers are finite.
    fn keep(&mut self, done: usize, results: &mut Results) -> Outcome<bool> {
        let (begin, mut finite) = (Instant::now(), true);
        let path = results.folder.join(format!("state-{}.bin", self.file));
        let unwritable = |error| Failure::unwritable(&path, error);
        let file = File::create(&path).map_err(unwritable)?;
        file.set_len(self.plan.state_bytes).map_err(unwritable)?;
        for slot in self.slots.iter_mut().filter(|slot| slot.entry.role == role::STATE) {
            let (entry, tensor, mut copied) = (slot.entry, slot.now(self.turns), Vec::new());
            let bytes = match &self.device {
                None => bytes(tensor),
                Some(device) => device.to_host(tensor, &mut copied)?,
            };
            file.write_all_at(bytes, entry.offset).map_err(unwritable)?;
            finite &= values::is_finite(entry.dtype as usize, bytes);
        }
        file.sync_all().map_err(unwritable)?;
        let line = Line::default().json("checkpoint", done).json("slot", self.file);
        self.file = 1 - self.file;
        results.say(line.json("ns", nanoseconds(begin, Instant::now()))).map(|()| finite)
    }
}

impl Slot<'_> {
    fn place(&self, turns: usize) -> usize {
        (turns & self.changed).count_ones() as usize % 2
    }

    fn now(&mut self, turns: usize) -> &mut DynTensor {
        let place = self.place(turns);
        &mut self.places[place]
    }

    /// Where a graph writes it; the one place of a metric is always the same.
    fn next(&mut self, turns: usize) -> &mut DynTensor {
        let place = self.places.len() - 1 - self.place(turns);
        &mut self.places[place]
    }

    /// Copies rows into memory that stays where it is.
    fn gather(&mut self, numbers: &[usize]) {
        let (rows, width) = (self.rows, self.width);
        let into = bytes(&mut self.places[0]);
        for (to, row) in into.chunks_exact_mut(width).zip(numbers) {
            to.copy_from_slice(&rows[row * width..][..width]);
        }
    }
}

fn bytes(tensor: &mut DynTensor) -> &mut [u8] {
    match values::length(tensor) {
        0 => &mut [],
        // SAFETY: the tensor has so many bytes on the host, which it owns, and nobody else looks at
        // it: runs are over when they return.
        length => unsafe { slice::from_raw_parts_mut(tensor.data_ptr_mut().cast(), length) },
    }
}

fn scalar(tensor: &DynTensor) -> Outcome<f64> {
    let value = match tensor.data_type() {
        TensorElementType::Float32 => tensor.try_extract_scalar::<f32>().map(f64::from),
        _ => tensor.try_extract_scalar::<f64>(),
    };
    value.map_err(Failure::crash)
}
