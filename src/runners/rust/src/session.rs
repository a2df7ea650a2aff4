//! Sessions of ONNX Runtime with the plan's options, and one call of them.

use std::borrow::Cow;
use std::ffi::CStr;
use std::path::Path;
use std::time::Instant;

use libloading::Library;
use ort::environment::Environment;
use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider};
use ort::logging::LogLevel;
use ort::session::builder::{AutoDevicePolicy, GraphOptimizationLevel, SessionBuilder};
use ort::session::{Session, SessionInputValue};
use ort::sys::OrtApiBase;

use crate::cuda::Device;
use crate::plan::{Plan, role};
use crate::result::{Failure, Outcome};
use crate::values::{self, Output, Piece};

/// The loaded library, and what its sessions are made with.
pub struct Runtime<'a> {
    environment: Environment,
    pub version: String,
    plan: &'a Plan,
    /// The number of the device; None: on the CPU.
    pub cuda: Option<i32>,
}

impl<'a> Runtime<'a> {
    pub fn load(plan: &'a Plan) -> Outcome<Self> {
        let mut options = plan.of(role::PROVIDER_OPTION, 0);
        let device = options.find(|option| option.name == "device_id");
        let cuda = match plan.one(role::PROVIDER, 0).word() {
            "cpu" => None,
            "cuda" => Some(device.map_or(0, |id| id.word().parse().unwrap_or(0))),
            other => return Err(Failure::new("skipped", format!("no provider '{other}'"))),
        };
        let library = plan.one(role::LIBRARY, 0).path;
        let missing = |error: String| Failure::new("missing-dependency", error);
        let builder = ort::init_from(library).map_err(|error| missing(error.to_string()))?;
        let version = version(library).map_err(|error| missing(error.to_string()))?;
        let environment = builder.with_name("transect").build().map_err(Failure::crash)?;
        Ok(Runtime { environment, version, plan, cuda })
    }

    /// Makes a session of a model; returns it and how long that took, in nanoseconds.
    pub fn session(&self, model: &Path, profile: Option<&Path>) -> Outcome<(Session, u64)> {
        let builder = Session::builder(&self.environment).map_err(Failure::crash)?;
        // The options load the provider's library, which is part of making a session.
        let begin = Instant::now();
        let mut builder = self.options(builder).map_err(Failure::of_run)?;
        // The log of a profiled session says what options it has.
        let level = if profile.is_some() { LogLevel::Info } else { LogLevel::Error };
        builder = builder.with_log_level(level).map_err(Failure::crash)?;
        if let Some(prefix) = profile {
            builder = builder.with_profiling(prefix).map_err(Failure::crash)?;
        }
        if self.cuda.is_some() {
            builder = self.on_cuda(builder).map_err(without_cuda)?;
        }
        let session = builder.commit_from_file(model);
        let session = session.map_err(|error| Failure::of_model(error, model))?;
        Ok((session, nanoseconds(begin, Instant::now())))
    }

    pub fn open(&self, model: &Path, profile: Option<&Path>) -> Outcome<Engine> {
        let (session, session_ns) = self.session(model, profile)?;
        let device = self.cuda.map(|id| Device::of(&session, id)).transpose()?;
        let room = |name: &str| Output { name: name.to_owned(), ..Output::default() };
        let outputs = session.outputs().iter().map(|output| room(output.name())).collect();
        Ok(Engine { session, device, outputs, session_ns })
    }

    fn options(&self, mut builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        for option in self.plan.of(role::OPTION, 0) {
            builder = set(builder, option.name, option.word())?;
        }
        if self.cuda.is_none() {
            // Left alone, the crate lets ONNX Runtime choose another provider where it finds one.
            builder = builder.with_auto_device(AutoDevicePolicy::PreferCPU)?;
        }
        Ok(builder)
    }

    fn on_cuda(&self, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        let mut cuda = ep::CUDA::default();
        for option in self.plan.of(role::PROVIDER_OPTION, 0) {
            cuda = cuda.with_arbitrary_config(option.name, option.word());
        }
        Ok(builder.with_execution_providers([cuda.build().error_on_failure()])?)
    }
}

/// Tells a wrong option from a provider that is not there: ONNX Runtime gives both one code, and
/// says of an option that it is "unknown" or that it "failed to parse" it.
fn without_cuda(error: ort::Error) -> Failure {
    let said = error.message();
    if said.to_lowercase().contains("provider option") && !said.contains("Failed to load") {
        return Failure::new("bad-input", format!("option 'provider_options': {said}"));
    }
    Failure::new("skipped", format!("the CUDA provider did not load: {said}"))
}

fn set(builder: SessionBuilder, name: &str, word: &str) -> ort::Result<SessionBuilder> {
    let number = || word.parse().unwrap_or_default();
    Ok(match name {
        "intra_op_num_threads" => builder.with_intra_threads(number())?,
        "inter_op_num_threads" => builder.with_inter_threads(number())?,
        "execution_mode" => builder.with_parallel_execution(word == "parallel")?,
        "graph_optimization_level" => builder.with_optimization_level(match word {
            "disabled" => GraphOptimizationLevel::Disable,
            "basic" => GraphOptimizationLevel::Level1,
            "extended" => GraphOptimizationLevel::Level2,
            _ => GraphOptimizationLevel::All,
        })?,
        // The crate has it as an option of the provider; it is the session's.
        "enable_cpu_mem_arena" => {
            let cpu = ep::CPU::default().with_arena_allocator(word == "1").build();
            builder.with_execution_providers([cpu.error_on_failure()])?
        }
        "enable_mem_pattern" => builder.with_memory_pattern(word == "1")?,
        _ => builder.with_config_entry(name, word)?,
    })
}

/// Asks the library, which the crate has loaded, for its version: the crate does not tell it.
fn version(library: &Path) -> Result<String, libloading::Error> {
    // SAFETY: the crate loaded this file as ONNX Runtime; the function and its struct are part of
    // the C API, and the text is the library's own.
    unsafe {
        let library = Library::new(library)?;
        let base = library.get::<unsafe extern "C" fn() -> *const OrtApiBase>("OrtGetApiBase")?;
        let text = ((*base()).GetVersionString)();
        Ok(CStr::from_ptr(text).to_string_lossy().into_owned())
    }
}

pub fn nanoseconds(begin: Instant, end: Instant) -> u64 {
    (end - begin).as_nanos() as u64
}

/// The parts of one call, in nanoseconds: bind, run, copy.
pub type Times = [u64; 3];

pub struct Engine {
    pub session: Session,
    device: Option<Device>,
    /// Of the last step, in the model's order.
    pub outputs: Vec<Output>,
    pub session_ns: u64,
}

impl Engine {
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
            output.copy(&value)?;
        }
        let t3 = Instant::now();
        Ok([nanoseconds(t0, t1), nanoseconds(t1, t2), nanoseconds(t2, t3)])
    }
}
