//! Sessions of ONNX Runtime, and one call of them.

use std::borrow::Cow;
use std::path::Path;
use std::time::Instant;

use ort::environment::Environment;
use ort::session::{Session, SessionInputValue};
use ort::sys::OrtApiBase;
use ort::value::ValueType;

use crate::arguments::Provider;
use crate::cuda::Device;
use crate::dtype::Dtype;
use crate::failure::{Failure, Outcome, bad_input};
use crate::inputs::{Feed, Piece};
use crate::options::Options;
use crate::values::{self, Output};

/// The loaded library.
pub struct Runtime {
    environment: Environment,
    pub version: String,
}

impl Runtime {
    /// Loads the shared library and makes ONNX Runtime's environment.
    pub fn load(library: &Path) -> Outcome<Self> {
        let missing = |message| Failure::Failed {
            cause: "missing-dependency",
            message,
        };
        let builder = ort::init_from(library).map_err(|error| missing(error.to_string()))?;
        let version = version(library).map_err(|error| missing(error.to_string()))?;
        let environment = builder
            .with_name("transect")
            .build()
            .map_err(|error| Failure::crash(error.to_string()))?;
        Ok(Runtime {
            environment,
            version,
        })
    }

    /// Makes a session of a model; returns it and how long that took, in nanoseconds.
    pub fn session(
        &self,
        model: &Path,
        options: &Options,
        provider: Provider,
        profile: Option<&Path>,
    ) -> Outcome<(Session, u64)> {
        let builder = Session::builder(&self.environment)
            .map_err(|error| Failure::crash(error.to_string()))?;
        // The options load the provider's library, which is part of making a session.
        let begin = Instant::now();
        let mut builder = options.apply(builder, provider, profile)?;
        let session = builder
            .commit_from_file(model)
            .map_err(|error| Failure::of_model(error, &model.display().to_string()))?;
        Ok((session, nanoseconds(begin, Instant::now())))
    }

    /// Makes a session of a model, and room for its outputs.
    pub fn open(
        &self,
        model: &Path,
        options: &Options,
        provider: Provider,
        profile: Option<&Path>,
    ) -> Outcome<Engine> {
        let (session, session_ns) = self.session(model, options, provider, profile)?;
        let device = match provider {
            Provider::Cpu => None,
            Provider::Cuda => Some(Device::of(&session, options.cuda_device())?),
        };
        let outputs = session
            .outputs()
            .iter()
            .map(|_| Output::default())
            .collect();
        Ok(Engine {
            session,
            device,
            outputs,
            session_ns,
        })
    }
}

/// Asks the library, which the crate has loaded, for its version: the crate does not tell it.
fn version(library: &Path) -> Result<String, libloading::Error> {
    // SAFETY: the crate loaded this file as ONNX Runtime; the function and its struct are part of
    // the C API, and the text is the library's own.
    unsafe {
        let library = libloading::Library::new(library)?;
        let base = library.get::<unsafe extern "C" fn() -> *const OrtApiBase>("OrtGetApiBase")?;
        let text = ((*base()).GetVersionString)();
        Ok(std::ffi::CStr::from_ptr(text)
            .to_string_lossy()
            .into_owned())
    }
}

pub fn nanoseconds(begin: Instant, end: Instant) -> u64 {
    (end - begin).as_nanos() as u64
}

/// The parts of one call, in nanoseconds.
#[derive(Clone, Copy)]
pub struct Times {
    pub bind: u64,
    pub run: u64,
    pub copy: u64,
}

/// One session.
pub struct Engine {
    session: Session,
    device: Option<Device>,
    /// Of the last step, in the model's order.
    pub outputs: Vec<Output>,
    pub session_ns: u64,
}

impl Engine {
    pub fn output_names(&self) -> Vec<String> {
        let outputs = self.session.outputs().iter();
        outputs.map(|output| output.name().to_owned()).collect()
    }

    /// Complains unless these are inputs of the model, in its types, and none is missing.
    pub fn check(&self, feed: &Feed) -> Outcome<()> {
        let inputs = self.session.inputs();
        let missing = inputs
            .iter()
            .any(|input| feed.iter().all(|piece| piece.name != input.name()));
        let unknown = feed.iter().any(|piece| {
            let known = inputs.iter().any(|input| input.name() == piece.name);
            !known && !self.has_default(piece.name)
        });
        if missing || unknown {
            let takes: Vec<_> = inputs.iter().map(|input| input.name()).collect();
            let gives: Vec<_> = feed.iter().map(|piece| piece.name).collect();
            return Err(bad_input!(
                "the model takes {takes:?}, --inputs gives {gives:?}"
            ));
        }
        for input in inputs {
            let piece = feed.iter().find(|piece| piece.name == input.name());
            let dtype = piece.map(|piece| piece.dtype);
            if let ValueType::Tensor { ty, .. } = input.dtype()
                && dtype != Dtype::of(*ty)
            {
                return Err(bad_input!(
                    "input '{}' is {}, the model takes {}",
                    input.name(),
                    dtype.map_or("missing", Dtype::name),
                    values::kind(input.dtype())
                ));
            }
        }
        Ok(())
    }

    fn has_default(&self, name: &str) -> bool {
        let defaults = self.session.overridable_initializers();
        defaults.iter().any(|default| default.name() == name)
    }

    /// Binds the inputs, runs, and copies the outputs to `outputs`.
    pub fn step(&mut self, feed: &[Piece]) -> Outcome<Times> {
        if let Some(device) = &mut self.device {
            return device.step(&mut self.session, feed, &mut self.outputs);
        }
        let t0 = Instant::now();
        let mut inputs: Vec<(Cow<str>, SessionInputValue)> = Vec::with_capacity(feed.len());
        for piece in feed {
            inputs.push((Cow::Borrowed(piece.name), values::bind(piece)?));
        }
        let t1 = Instant::now();
        let found = self.session.run(inputs).map_err(Failure::of_run)?;
        let t2 = Instant::now();
        for (value, output) in found.values().zip(&mut self.outputs) {
            values::copy(&value, output)?;
        }
        let t3 = Instant::now();
        Ok(Times {
            bind: nanoseconds(t0, t1),
            run: nanoseconds(t1, t2),
            copy: nanoseconds(t2, t3),
        })
    }

    /// Ends the profile and returns its file.
    pub fn end_profile(&mut self) -> Outcome<String> {
        self.session
            .end_profiling()
            .map_err(|error| Failure::crash(error.to_string()))
    }
}
