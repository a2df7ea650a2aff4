//! The contract's arguments.

use std::ffi::OsString;
use std::path::PathBuf;

use crate::failure::{Outcome, bad_input};

const NAMES: [&str; 26] = [
    "mode",
    "model",
    "inputs",
    "outputs",
    "provider",
    "options",
    "library",
    "record",
    "warmup",
    "min-runs",
    "max-seconds",
    "profile",
    "sessions",
    "arrivals",
    "cases",
    "skip",
    "step",
    "batch",
    "order",
    "until",
    "state",
    "checkpoint",
    "checkpoint-every",
    "schedule",
    "accumulate",
    "seed",
];

/// One model on its inputs.
pub struct Job {
    pub model: PathBuf,
    pub inputs: PathBuf,
    pub outputs: PathBuf,
}

/// A portable training step, and how it is gone on with.
pub struct Training {
    pub step: PathBuf,
    pub inputs: PathBuf,
    pub order: PathBuf,
    /// None: the step's own.
    pub state: Option<PathBuf>,
    pub checkpoint: PathBuf,
    pub schedule: Option<PathBuf>,
    /// Rows in a (micro-)batch.
    pub batch: usize,
    /// Micro-batches in a step.
    pub accumulate: usize,
    /// The state's `step` at the end.
    pub until: usize,
    /// Steps between checkpoints; 0: only at the end.
    pub every: usize,
    pub seed: i64,
}

/// What is done, with what only that needs.
pub enum Mode {
    Latency {
        job: Job,
        profile: Option<PathBuf>,
    },
    Load {
        job: Job,
        arrivals: PathBuf,
        sessions: usize,
    },
    Cases {
        file: PathBuf,
        skip: usize,
    },
    Train(Training),
}

impl Mode {
    pub fn name(&self) -> &'static str {
        match self {
            Mode::Latency { .. } => "latency",
            Mode::Load { .. } => "load",
            Mode::Cases { .. } => "cases",
            Mode::Train(_) => "train",
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
pub enum Provider {
    Cpu,
    Cuda,
}

impl Provider {
    pub fn name(self) -> &'static str {
        match self {
            Provider::Cpu => "cpu",
            Provider::Cuda => "cuda",
        }
    }
}

pub struct Arguments {
    pub mode: Mode,
    pub provider: Provider,
    pub options: Option<PathBuf>,
    pub library: PathBuf,
    pub record: PathBuf,
    /// Iterations.
    pub warmup: usize,
    /// Iterations.
    pub min_runs: usize,
    pub max_seconds: f64,
}

impl Arguments {
    /// Reads `--name value` pairs; complains of the first one that cannot be used.
    pub fn parse(words: &[OsString]) -> Outcome<Self> {
        let mut given = Pairs::split(words)?;
        let record = given.path("record")?;
        let provider = match given.text("provider")?.as_deref() {
            None | Some("cpu") => Provider::Cpu,
            Some("cuda") => Provider::Cuda,
            Some(other) => return Err(bad_input!("--provider {other}: expected cpu or cuda")),
        };
        let arguments = Arguments {
            mode: given.mode()?,
            provider,
            options: given.take("options").map(PathBuf::from),
            library: given.path("library")?,
            record,
            warmup: given.whole("warmup", 0)?.unwrap_or(20),
            min_runs: given.whole("min-runs", 1)?.unwrap_or(100),
            max_seconds: given.seconds("max-seconds")?.unwrap_or(1.0),
        };
        if !arguments.library.is_file() {
            return Err(bad_input!(
                "--library {}: no such file",
                arguments.library.display()
            ));
        }
        Ok(arguments)
    }
}

/// Finds the record's file, however wrong the other arguments are.
pub fn record_file(words: &[OsString]) -> Option<PathBuf> {
    let place = words.iter().position(|word| word == "--record")?;
    words.get(place + 1).map(PathBuf::from)
}

struct Pairs(Vec<(&'static str, OsString)>);

impl Pairs {
    fn split(words: &[OsString]) -> Outcome<Self> {
        let mut pairs: Vec<(&'static str, OsString)> = Vec::new();
        for pair in words.chunks(2) {
            let word = pair[0].to_string_lossy();
            let known = word.strip_prefix("--");
            let Some(&name) = NAMES.iter().find(|name| Some(**name) == known) else {
                return Err(bad_input!(
                    "argument '{word}': expected one of --{}",
                    NAMES.join(", --")
                ));
            };
            let [_, value] = pair else {
                return Err(bad_input!("argument --{name}: expected a value after it"));
            };
            if pairs.iter().any(|(other, _)| *other == name) {
                return Err(bad_input!(
                    "argument --{name} is given twice, expected once"
                ));
            }
            pairs.push((name, value.clone()));
        }
        Ok(Pairs(pairs))
    }

    fn take(&mut self, name: &str) -> Option<OsString> {
        let place = self.0.iter().position(|(other, _)| *other == name)?;
        Some(self.0.swap_remove(place).1)
    }

    fn text(&mut self, name: &str) -> Outcome<Option<String>> {
        self.take(name)
            .map(|value| value.into_string())
            .transpose()
            .map_err(|value| bad_input!("--{name} {}: expected UTF-8", value.display()))
    }

    fn path(&mut self, name: &str) -> Outcome<PathBuf> {
        self.take(name)
            .map(PathBuf::from)
            .ok_or_else(|| bad_input!("argument --{name} is missing"))
    }

    fn whole(&mut self, name: &str, least: usize) -> Outcome<Option<usize>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        let digits = text.bytes().all(|byte| byte.is_ascii_digit());
        // Within 63 bits, which counters of a state have too.
        match text.parse::<i64>() {
            Ok(number) if digits && number as usize >= least => Ok(Some(number as usize)),
            _ => Err(bad_input!(
                "--{name} {text}: expected a whole number >= {least}"
            )),
        }
    }

    fn needed(&mut self, name: &str, least: usize) -> Outcome<usize> {
        self.whole(name, least)?
            .ok_or_else(|| bad_input!("argument --{name} is missing"))
    }

    fn seconds(&mut self, name: &str) -> Outcome<Option<f64>> {
        let Some(text) = self.text(name)? else {
            return Ok(None);
        };
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() && number >= 0.0 => Ok(Some(number)),
            _ => Err(bad_input!("--{name} {text}: expected seconds >= 0")),
        }
    }

    fn job(&mut self) -> Outcome<Job> {
        let job = Job {
            model: self.path("model")?,
            inputs: self.path("inputs")?,
            outputs: self.path("outputs")?,
        };
        if !job.model.is_file() {
            return Err(bad_input!("{}: no such model file", job.model.display()));
        }
        Ok(job)
    }

    fn training(&mut self) -> Outcome<Training> {
        Ok(Training {
            step: self.path("step")?,
            inputs: self.path("inputs")?,
            order: self.path("order")?,
            state: self.take("state").map(PathBuf::from),
            checkpoint: self.path("checkpoint")?,
            schedule: self.take("schedule").map(PathBuf::from),
            batch: self.needed("batch", 1)?,
            accumulate: self.whole("accumulate", 1)?.unwrap_or(1),
            until: self.needed("until", 0)?,
            every: self.whole("checkpoint-every", 0)?.unwrap_or(0),
            seed: self.whole("seed", 0)?.unwrap_or(0) as i64,
        })
    }

    fn mode(&mut self) -> Outcome<Mode> {
        match self.text("mode")?.as_deref() {
            None | Some("latency") => Ok(Mode::Latency {
                job: self.job()?,
                profile: self.take("profile").map(PathBuf::from),
            }),
            Some("load") => Ok(Mode::Load {
                job: self.job()?,
                arrivals: self.path("arrivals")?,
                sessions: self.whole("sessions", 1)?.unwrap_or(1),
            }),
            Some("cases") => Ok(Mode::Cases {
                file: self.path("cases")?,
                skip: self.whole("skip", 0)?.unwrap_or(0),
            }),
            Some("train") => Ok(Mode::Train(self.training()?)),
            Some(other) => Err(bad_input!(
                "--mode {other}: expected latency, load, cases or train"
            )),
        }
    }
}
