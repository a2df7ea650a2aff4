//! The state, bound to the graphs of a step: what one run gives is what the next one takes.

use std::borrow::Cow;
use std::ptr;

use ort::AsPointer;
use ort::memory::Allocator;
use ort::session::{IoBinding, Session};
use ort::value::DynTensor;

use crate::cuda::{self, Driver};
use crate::dtype::Dtype;
use crate::failure::{Failure, Outcome};
use crate::train::batch::Batch;
use crate::train::ends::{self, Source, Target};
use crate::train::manifest::{Graph, Manifest, State};
use crate::train::state::StateFile;
use crate::train::tensors;

/// How the tensors of two graphs can lie, each in one of two places.
const ARRANGEMENTS: usize = 4;

/// One graph of the step.
struct Bound {
    session: Session,
    inputs: Vec<(String, Source)>,
    outputs: Vec<(String, Target)>,
    /// By `Trainer::turns`, made when first needed.
    bindings: [Option<IoBinding>; ARRANGEMENTS],
}

/// A tensor of the state, in two places: a run reads the one and writes the other.
struct Slot {
    dtype: Dtype,
    places: Vec<DynTensor>,
    /// A bit for each graph that changes it.
    changed: usize,
}

/// The graphs of a step, and all that they read and write.
pub struct Trainer {
    graphs: Vec<Bound>,
    state: Vec<Slot>,
    metrics: Vec<DynTensor>,
    hyper: Vec<DynTensor>,
    seed: DynTensor,
    /// A bit for each graph: whether it ran an odd number of times. Where each tensor of the state
    /// lies follows from it.
    turns: usize,
    /// None where the state lies in host memory.
    device: Option<Driver>,
}

fn crash(error: ort::Error) -> Failure {
    Failure::crash(error.to_string())
}

impl Trainer {
    /// Makes room for the state on the device with this id, None for the host, and reads it.
    pub fn new(
        sessions: Vec<(Session, &Graph)>,
        manifest: &Manifest,
        state: &StateFile,
        device: Option<i32>,
    ) -> Outcome<Self> {
        let host = Allocator::default();
        let allocator = match device {
            Some(id) => cuda::allocator(&sessions[0].0, id)?,
            None => Allocator::default(),
        };
        let scalar =
            |dtype: Dtype| DynTensor::new(&host, dtype.element(), [0_usize; 0]).map_err(crash);
        let metrics = manifest.metrics.iter().map(|metric| scalar(metric.dtype));
        let hyper = manifest.hyper.iter().map(|hyper| scalar(hyper.dtype));
        let slots = manifest.state.iter().map(|tensor| {
            let changed = changed(tensor, &sessions);
            let places = if changed == 0 { 1 } else { 2 };
            let place = |_| {
                let shape: Vec<i64> = tensor.shape.iter().map(|axis| *axis as i64).collect();
                DynTensor::new(&allocator, tensor.dtype.element(), shape).map_err(crash)
            };
            Ok(Slot {
                dtype: tensor.dtype,
                places: (0..places).map(place).collect::<Outcome<_>>()?,
                changed,
            })
        });
        let mut trainer = Trainer {
            state: slots.collect::<Outcome<_>>()?,
            metrics: metrics.collect::<Outcome<_>>()?,
            hyper: hyper.collect::<Outcome<_>>()?,
            seed: scalar(Dtype::Int64)?,
            turns: 0,
            device: match device {
                Some(_) => Some(Driver::load().ok_or_else(cuda::no_device)?),
                None => None,
            },
            graphs: Vec::new(),
        };
        for (session, graph) in sessions {
            trainer.graphs.push(Bound::new(session, graph, manifest)?);
        }
        trainer.read(state)?;
        Ok(trainer)
    }

    /// Reads the state into the places that the next run reads.
    fn read(&mut self, state: &StateFile) -> Outcome<()> {
        for (index, slot) in self.state.iter_mut().enumerate() {
            let tensor = &mut slot.places[0];
            let Some(device) = &self.device else {
                state.read(index, tensors::bytes_mut(tensor))?;
                continue;
            };
            let mut bytes = vec![0; tensors::length(tensor)];
            state.read(index, &mut bytes)?;
            device.to_device(&bytes, tensor)?;
        }
        Ok(())
    }

    pub fn set_seed(&mut self, seed: i64) {
        tensors::bytes_mut(&mut self.seed).copy_from_slice(&seed.to_le_bytes());
    }

    /// Sets the hyper-parameters, in the manifest's order.
    pub fn set_hyper(&mut self, values: impl Iterator<Item = f64>) {
        for (tensor, value) in self.hyper.iter_mut().zip(values) {
            tensors::bytes_mut(tensor).copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Binds what the graph's next run reads and writes, where that is not bound already: on a
    /// device binding an input copies it there.
    pub fn bind(&mut self, graph: usize, batch: &Batch) -> Outcome<()> {
        let turns = self.turns;
        let bound = &mut self.graphs[graph];
        let made = &mut bound.bindings[turns];
        let is_new = made.is_none();
        if !is_new && self.device.is_none() {
            return Ok(());
        }
        let binding = match made {
            Some(binding) => binding,
            None => made.insert(bound.session.create_binding().map_err(crash)?),
        };
        for (name, source) in &bound.inputs {
            let tensor = match source {
                Source::Data(place) => batch.tensor(*place),
                Source::Hyper(place) => &self.hyper[*place],
                Source::Seed => &self.seed,
                Source::State(place) => self.state[*place].now(turns),
            };
            binding.bind_input(name, tensor).map_err(Failure::of_run)?;
        }
        for (name, target) in bound.outputs.iter().filter(|_| is_new) {
            let tensor = match target {
                Target::Metric(place) => &mut self.metrics[*place],
                Target::State(place) => self.state[*place].next(turns),
            };
            binding.bind_output(name, tensor).map_err(Failure::of_run)?;
        }
        binding.synchronize_inputs().map_err(Failure::of_run)
    }

    /// Runs a graph that is bound, until the device has finished.
    pub fn run(&mut self, graph: usize) -> Outcome<()> {
        let bound = &mut self.graphs[graph];
        let Some(binding) = &bound.bindings[self.turns] else {
            return Err(Failure::crash("a graph ran before it was bound".to_owned()));
        };
        run_binding(&mut bound.session, binding).map_err(Failure::of_run)?;
        if self.device.is_some() {
            binding.synchronize_outputs().map_err(Failure::of_run)?;
        }
        self.turns ^= 1 << graph;
        Ok(())
    }

    /// The metrics of the last run, in the manifest's order.
    pub fn metrics(&self) -> impl Iterator<Item = Outcome<f64>> {
        self.metrics.iter().map(tensors::scalar)
    }

    /// The bytes of the state, in the manifest's order; None when a number is not finite.
    pub fn snapshot(&self) -> Outcome<Option<Vec<Cow<'_, [u8]>>>> {
        let mut all = Vec::with_capacity(self.state.len());
        for slot in &self.state {
            let tensor = slot.now(self.turns);
            let bytes = match &self.device {
                None => Cow::Borrowed(tensors::bytes(tensor)),
                Some(device) => {
                    let mut bytes = vec![0; tensors::length(tensor)];
                    device.to_host(tensor, &mut bytes)?;
                    Cow::Owned(bytes)
                }
            };
            if !tensors::are_finite(slot.dtype, &bytes) {
                return Ok(None);
            }
            all.push(bytes);
        }
        Ok(Some(all))
    }
}

/// Returns a bit for each graph that changes the tensor.
fn changed(tensor: &State, sessions: &[(Session, &Graph)]) -> usize {
    let gives = |graph: &Graph| {
        tensor
            .next
            .as_ref()
            .is_some_and(|next| graph.outputs.contains(next))
    };
    let graphs = sessions.iter().enumerate();
    graphs
        .map(|(place, (_, graph))| usize::from(gives(graph)) << place)
        .sum()
}

impl Slot {
    fn place(&self, turns: usize) -> usize {
        (turns & self.changed).count_ones() as usize % 2
    }

    fn now(&self, turns: usize) -> &DynTensor {
        &self.places[self.place(turns)]
    }

    /// Where a graph that changes it writes to.
    fn next(&mut self, turns: usize) -> &mut DynTensor {
        let place = 1 - self.place(turns);
        &mut self.places[place]
    }
}

/// Runs what is bound, by ONNX Runtime's own function: the crate's makes a new value of each output,
/// which nobody looks at.
fn run_binding(session: &mut Session, binding: &IoBinding) -> ort::Result<()> {
    // SAFETY: both are alive, and so is all that is bound.
    unsafe {
        let run = ort::api().RunWithBinding;
        ort::Error::result_from_status(run(session.ptr_mut(), ptr::null(), binding.ptr()))
    }
}

impl Bound {
    /// Complains of an input or output that is not in the manifest, or not of the session.
    fn new(session: Session, graph: &Graph, manifest: &Manifest) -> Outcome<Self> {
        let (inputs, outputs) = ends::find(&session, graph, manifest)?;
        Ok(Bound {
            session,
            inputs,
            outputs,
            bindings: Default::default(),
        })
    }
}
