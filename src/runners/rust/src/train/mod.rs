//! Mode `train`: goes on with a portable training step.

mod batch;
mod bound;
mod checkpoint;
mod ends;
mod manifest;
mod plan;
mod state;
mod tensors;

use std::io;
use std::path::Path;
use std::time::Instant;

use serde_json::{Map, Value, json};

use crate::arguments::{Arguments, Provider, Training};
use crate::engine::{Runtime, nanoseconds};
use crate::failure::{Failure, Outcome, bad_input};
use crate::latency::Fields;
use crate::options::Options;
use crate::process;
use batch::{Batch, Rows};
use bound::Trainer;
use checkpoint::Checkpoint;
use manifest::Manifest;
use plan::{Order, Schedule};
use state::StateFile;

/// The step's own graph stands before that of the micro-batches.
const STEP: usize = 0;
const ACCUMULATE: usize = 1;

/// What a training needs, read and found to fit together.
struct Job<'a> {
    training: &'a Training,
    manifest: Manifest,
    schedule: Schedule,
    order: Order,
    rows: Rows,
    state: StateFile,
}

impl<'a> Job<'a> {
    fn read(training: &'a Training) -> Outcome<Self> {
        let manifest = Manifest::read(&training.step)?;
        manifest.graphs(training.accumulate)?;
        let file = training.schedule.as_deref();
        let schedule = Schedule::read(file, &manifest.hyper, training.until)?;
        let order = Order::read(training)?;
        let rows = Rows::read(training, &manifest)?;
        order.check(rows.count, &training.order)?;
        let begin = if is_there(&training.checkpoint) {
            &training.checkpoint
        } else {
            training.state.as_ref().unwrap_or(&manifest.state_file)
        };
        let state = StateFile::open(begin, &manifest)?;
        if state.step > training.until {
            return Err(bad_input!(
                "{}: has done {} steps, --until {} is less",
                begin.display(),
                state.step,
                training.until
            ));
        }
        Ok(Job {
            training,
            manifest,
            schedule,
            order,
            rows,
            state,
        })
    }
}

/// Tells whether there is something of this name, also when it cannot be looked at.
fn is_there(path: &Path) -> bool {
    !path
        .metadata()
        .is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
}

/// The parts of a step, in nanoseconds, over its micro-batches.
#[derive(Clone, Copy, Default)]
struct Times {
    gather: u64,
    bind: u64,
    run: u64,
    read: u64,
}

/// What came of the steps.
#[derive(Default)]
struct Series {
    /// Of each metric, the loss first, a value for each step.
    metrics: Vec<Vec<f64>>,
    times: Vec<Times>,
    checkpoints: Vec<Value>,
}

/// Trains until the last step; fills the record, also when it diverged.
pub fn run(
    arguments: &Arguments,
    training: &Training,
    options: &Options,
    record: &mut Fields,
) -> Outcome<Fields> {
    let job = Job::read(training)?;
    let runtime = Runtime::load(&arguments.library)?;
    let mut session_ns = 0;
    let mut sessions = Vec::new();
    for graph in job.manifest.graphs(training.accumulate)? {
        let (session, took) = runtime.session(&graph.file, options, arguments.provider, None)?;
        session_ns += took;
        sessions.push((session, graph));
    }
    let device = match arguments.provider {
        Provider::Cpu => None,
        Provider::Cuda => Some(options.cuda_device()),
    };
    let mut trainer = Trainer::new(sessions, &job.manifest, &job.state, device)?;
    trainer.set_seed(training.seed);
    let mut series = Series {
        metrics: vec![Vec::new(); job.manifest.metrics.len()],
        ..Series::default()
    };
    let ended = job.steps(&mut trainer, &mut series);
    // Before the series are there once more.
    let peak_memory = process::peak_memory();
    record.extend([
        ("session_ns".to_owned(), json!(session_ns)),
        ("runtime_version".to_owned(), json!(runtime.version)),
        ("run_includes".to_owned(), json!([])),
        ("peak_memory_bytes".to_owned(), json!(peak_memory)),
    ]);
    record.extend(series.told(&job));
    ended.map(|()| Fields::new())
}

const WHY: &str = "the rate is too high, or the target has a class that the model does not";

impl Job<'_> {
    /// Does the steps that are left, and keeps the state.
    fn steps(&self, trainer: &mut Trainer, series: &mut Series) -> Outcome<()> {
        let training = self.training;
        let checkpoint = Checkpoint::new(&training.checkpoint, &self.manifest);
        checkpoint.remove_left();
        // Where no step is left there is nothing that a batch was held to.
        let is_done = self.state.step == training.until;
        let size = if is_done { 0 } else { training.batch };
        let mut batch = Batch::new(&self.rows, &self.manifest, size)?;
        for step in self.state.step..training.until {
            let (means, times) = self.step(step, trainer, &mut batch)?;
            if !means[0].is_finite() {
                return Err(diverged(step, &format!("the loss is {}: {WHY}", means[0])));
            }
            for (values, mean) in series.metrics.iter_mut().zip(means) {
                values.push(mean);
            }
            series.times.push(times);
            let done = step + 1;
            if training.every > 0 && done % training.every == 0 && done < training.until {
                series.keep(trainer, &checkpoint, done)?;
            }
        }
        series.keep(trainer, &checkpoint, training.until)
    }

    /// Does one step; returns the means of the metrics over its micro-batches.
    fn step(
        &self,
        step: usize,
        trainer: &mut Trainer,
        batch: &mut Batch,
    ) -> Outcome<(Vec<f64>, Times)> {
        let micro_batches = self.training.accumulate;
        let mut means = vec![0.0; self.manifest.metrics.len()];
        let mut times = Times::default();
        for place in 0..micro_batches {
            let is_last = place + 1 == micro_batches;
            let graph = if is_last { STEP } else { ACCUMULATE };
            let t0 = Instant::now();
            batch.gather(self.order.batch(step * micro_batches + place));
            let t1 = Instant::now();
            trainer.set_hyper(self.schedule.at(step));
            trainer.bind(graph, batch)?;
            let t2 = Instant::now();
            trainer.run(graph)?;
            let t3 = Instant::now();
            for (mean, value) in means.iter_mut().zip(trainer.metrics()) {
                *mean += value?;
            }
            let t4 = Instant::now();
            times.gather += nanoseconds(t0, t1);
            times.bind += nanoseconds(t1, t2);
            times.run += nanoseconds(t2, t3);
            times.read += nanoseconds(t3, t4);
        }
        for mean in &mut means {
            *mean /= micro_batches as f64;
        }
        Ok((means, times))
    }
}

fn diverged(step: usize, why: &str) -> Failure {
    Failure::Failed {
        cause: "diverged",
        message: format!("step {step}: {why}"),
    }
}

impl Series {
    /// Writes the state after so many steps.
    fn keep(&mut self, trainer: &Trainer, checkpoint: &Checkpoint, done: usize) -> Outcome<()> {
        let begin = Instant::now();
        let Some(state) = trainer.snapshot()? else {
            // The last step is not one of those that went well.
            self.times.pop();
            for values in &mut self.metrics {
                values.pop();
            }
            let step = done.saturating_sub(1);
            return Err(diverged(step, "the state has numbers that are not finite"));
        };
        checkpoint.write(&state)?;
        let took = nanoseconds(begin, Instant::now());
        self.checkpoints.push(json!({ "step": done, "ns": took }));
        Ok(())
    }

    /// Fields of the record.
    fn told(self, job: &Job) -> Fields {
        let part = |part: fn(&Times) -> u64| json!(self.times.iter().map(part).collect::<Vec<_>>());
        let mut metrics = Map::new();
        for (metric, values) in job.manifest.metrics.iter().zip(&self.metrics).skip(1) {
            metrics.insert(metric.name.clone(), json!(values));
        }
        Fields::from_iter([
            ("first_step".to_owned(), json!(job.state.step)),
            ("losses".to_owned(), json!(self.metrics[0])),
            ("metrics".to_owned(), Value::Object(metrics)),
            ("gather_ns".to_owned(), part(|times| times.gather)),
            ("bind_ns".to_owned(), part(|times| times.bind)),
            ("run_ns".to_owned(), part(|times| times.run)),
            ("read_ns".to_owned(), part(|times| times.read)),
            ("checkpoints".to_owned(), Value::Array(self.checkpoints)),
            (
                "state".to_owned(),
                json!(job.training.checkpoint.to_string_lossy()),
            ),
            ("step_graph".to_owned(), json!(job.manifest.step_graph)),
        ])
    }
}
