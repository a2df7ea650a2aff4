//! What a portable training step says of itself (docs/portable-training-step.md).

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::dtype::Dtype;
use crate::failure::{Outcome, bad_input};
use crate::inputs;

const FORMAT: &str = "transect-portable-step";
const VERSION: u64 = 1;

#[derive(Deserialize)]
pub struct Manifest {
    format: String,
    version: u64,
    /// SHA-256 of `step.onnx`, by which a state file says to which step it belongs.
    pub step_graph: String,
    pub state_file: PathBuf,
    pub data: Vec<Data>,
    pub hyper: Vec<Hyper>,
    pub seed: Option<Scalar>,
    pub state: Vec<State>,
    pub metrics: Vec<Scalar>,
    graphs: Graphs,
}

#[derive(Deserialize)]
pub struct Data {
    pub name: String,
    pub dtype: Dtype,
    /// The first axis is the batch's.
    pub shape: Vec<Axis>,
}

#[derive(Deserialize)]
#[serde(untagged)]
pub enum Axis {
    Size(u64),
    /// Any size; the name is for people.
    Name(String),
}

#[derive(Deserialize)]
pub struct Hyper {
    pub name: String,
    pub dtype: Dtype,
    pub default: f64,
}

#[derive(Deserialize)]
pub struct Scalar {
    pub name: String,
    pub dtype: Dtype,
}

#[derive(Deserialize)]
pub struct State {
    pub name: String,
    pub role: String,
    pub dtype: Dtype,
    pub shape: Vec<u64>,
    /// The output that holds its next value; None where a step leaves it alone.
    pub next: Option<String>,
}

#[derive(Deserialize)]
struct Graphs {
    step: Graph,
    accumulate: Option<Graph>,
}

#[derive(Deserialize)]
pub struct Graph {
    pub file: PathBuf,
    pub inputs: Vec<String>,
    pub outputs: Vec<String>,
}

impl State {
    /// Its size; `check` found that it fits into memory.
    pub fn bytes(&self) -> usize {
        let elements = inputs::elements(&self.shape, self.dtype);
        elements.map_or(0, |(count, _)| count * self.dtype.size())
    }
}

impl Manifest {
    /// Reads `folder/manifest.json`; complains of the first thing in it that cannot be used.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let file = folder.join("manifest.json");
        let at = file.display();
        let text = fs::read(&file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
        let mut manifest: Manifest = serde_json::from_slice(&text)
            .map_err(|error| bad_input!("{at}: expected the manifest of a step: {error}"))?;
        if manifest.format != FORMAT || manifest.version != VERSION {
            return Err(bad_input!(
                "{at}: is '{}' of version {}, expected '{FORMAT}' of version {VERSION}",
                manifest.format,
                manifest.version
            ));
        }
        manifest.check().map_err(|why| bad_input!("{at}: {why}"))?;
        manifest.state_file = folder.join(&manifest.state_file);
        manifest.graphs.step.file = folder.join(&manifest.graphs.step.file);
        if let Some(accumulate) = &mut manifest.graphs.accumulate {
            accumulate.file = folder.join(&accumulate.file);
        }
        manifest.check_sum()?;
        Ok(manifest)
    }

    /// Refuses a step.onnx of another export, or altered since: state files name it by its sum.
    fn check_sum(&self) -> Outcome<()> {
        let file = &self.graphs.step.file;
        let at = file.display();
        let content =
            fs::read(file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
        let found: String = Sha256::digest(&content)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        if found != self.step_graph {
            return Err(bad_input!(
                "{at} has the sha256 {found}, expected {}",
                self.step_graph
            ));
        }
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        let mut names = HashSet::new();
        for tensor in &self.state {
            if !names.insert(&tensor.name) {
                return Err(format!("state '{}' is there twice", tensor.name));
            }
            if tensor.dtype == Dtype::String
                || inputs::elements(&tensor.shape, tensor.dtype).is_none()
            {
                return Err(format!(
                    "state '{}' is {} of shape {:?}, expected numbers that fit into memory",
                    tensor.name,
                    tensor.dtype.name(),
                    tensor.shape
                ));
            }
        }
        self.check_outputs()?;
        let counter = &self.state[self.counter()?];
        if counter.dtype != Dtype::Int64 || !counter.shape.is_empty() {
            return Err(format!("counter '{}' is no int64 scalar", counter.name));
        }
        let floats = |dtype| matches!(dtype, Dtype::Float32 | Dtype::Float64);
        if let Some(metric) = self.metrics.iter().find(|metric| !floats(metric.dtype)) {
            return Err(format!("metric '{}' is no float32 or float64", metric.name));
        }
        if let Some(hyper) = self
            .hyper
            .iter()
            .find(|hyper| hyper.dtype != Dtype::Float64)
        {
            return Err(format!("hyper-parameter '{}' is no float64", hyper.name));
        }
        match &self.seed {
            Some(seed) if seed.dtype != Dtype::Int64 => Err("the seed is no int64".to_owned()),
            _ if self.metrics.is_empty() => Err("expected the loss as first metric".to_owned()),
            _ => Ok(()),
        }
    }

    /// Complains unless each output is one thing, and the step gives every next value.
    fn check_outputs(&self) -> Result<(), String> {
        let mut names: HashSet<_> = self.metrics.iter().map(|metric| &metric.name).collect();
        for next in self.state.iter().filter_map(|tensor| tensor.next.as_ref()) {
            if !names.insert(next) {
                return Err(format!("output '{next}' stands for two things"));
            }
            if !self.graphs.step.outputs.contains(next) {
                return Err(format!("graph 'step' does not give '{next}'"));
            }
        }
        Ok(())
    }

    /// The place in `state` of the number of updates done.
    pub fn counter(&self) -> Result<usize, String> {
        let mut counters = self.state.iter().map(|tensor| tensor.role == "counter");
        counters
            .position(|found| found)
            .ok_or_else(|| "expected a state tensor with the role counter".to_owned())
    }

    /// The graphs of a step of so many micro-batches: the one of the last of them first.
    pub fn graphs(&self, micro_batches: usize) -> Outcome<Vec<&Graph>> {
        let graphs = match (&self.graphs, micro_batches) {
            (Graphs { step, .. }, 1) => vec![step],
            (
                Graphs {
                    step,
                    accumulate: Some(accumulate),
                },
                _,
            ) => vec![step, accumulate],
            _ => {
                return Err(bad_input!(
                    "--accumulate {micro_batches}: the step has no graph 'accumulate', expected 1"
                ));
            }
        };
        for graph in &graphs {
            let at = graph.file.display();
            if !graph.file.is_file() {
                return Err(bad_input!("{at}: no such model file"));
            }
            let gives = |metric: &&Scalar| graph.outputs.contains(&metric.name);
            if let Some(metric) = self.metrics.iter().find(|metric| !gives(metric)) {
                return Err(bad_input!(
                    "{at}: does not give metric '{}', expected all of them",
                    metric.name
                ));
            }
        }
        Ok(graphs)
    }
}
