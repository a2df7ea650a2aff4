//! Session options of the contract, as ONNX Runtime takes them.

use std::fs;
use std::path::{Path, PathBuf};

use ort::ep::{self, ArbitrarilyConfigurableExecutionProvider};
use ort::logging::LogLevel;
use ort::session::builder::{AutoDevicePolicy, GraphOptimizationLevel, SessionBuilder};
use serde_json::{Map, Value};

use crate::arguments::Provider;
use crate::failure::{Failure, Outcome, bad_input};

const EXPECTED: &str = "intra_op_num_threads, inter_op_num_threads, execution_mode, \
     graph_optimization_level, enable_cpu_mem_arena, enable_mem_pattern, provider_options, \
     or a name with a dot";

/// The options that are set.
pub struct Options {
    given: Map<String, Value>,
    file: PathBuf,
}

impl Options {
    /// Reads the file; complains of the first key or value that cannot be used.
    pub fn read(file: Option<&Path>) -> Outcome<Self> {
        let Some(file) = file else {
            return Ok(Options {
                given: Map::new(),
                file: PathBuf::new(),
            });
        };
        let at = file.display();
        let text = fs::read(file).map_err(|error| bad_input!("{at}: cannot be read: {error}"))?;
        let mut given: Map<String, Value> = serde_json::from_slice(&text)
            .map_err(|error| bad_input!("{at}: expected a JSON object: {error}"))?;
        given.retain(|_, value| !value.is_null());
        for (key, value) in &given {
            if let Some(wanted) = wanted(key, value) {
                return Err(bad_input!(
                    "{at}: option '{key}' is {value}, expected {wanted}"
                ));
            }
        }
        Ok(Options {
            given,
            file: file.to_owned(),
        })
    }

    /// What was set, and the names of what was not, for the record: the provider `cpu` has no
    /// options of its own.
    pub fn told(&self, provider: Provider) -> (Value, Vec<&'static str>) {
        const OF_PROVIDER: &str = "provider_options";
        let mut set = self.given.clone();
        let mut not_set = Vec::new();
        if provider == Provider::Cpu
            && let Some(Value::Object(texts)) = set.remove(OF_PROVIDER)
            && !texts.is_empty()
        {
            not_set.push(OF_PROVIDER);
        }
        (Value::Object(set), not_set)
    }

    /// Sets all of them; with `profile` ONNX Runtime's profiler too, and its log says what it has.
    pub fn apply(
        &self,
        mut builder: SessionBuilder,
        provider: Provider,
        profile: Option<&Path>,
    ) -> Outcome<SessionBuilder> {
        for (key, value) in &self.given {
            builder = set(builder, key, value).map_err(|error| {
                bad_input!(
                    "{}: option '{key}' is {value}: {error}",
                    self.file.display()
                )
            })?;
        }
        let crash = |error: ort::Error| Failure::crash(error.to_string());
        builder = match provider {
            Provider::Cpu => on_cpu(builder).map_err(crash)?,
            Provider::Cuda => self
                .on_cuda(builder)
                .map_err(|error| self.without_cuda(error.message()))?,
        };
        logged(builder, profile).map_err(crash)
    }

    /// The number of the CUDA device that the provider's options name.
    pub fn cuda_device(&self) -> i32 {
        self.given
            .get("provider_options")
            .and_then(|texts| texts["device_id"].as_str()?.parse().ok())
            .unwrap_or(0)
    }

    /// Tells a wrong option from a provider that is not there: ONNX Runtime gives both one code, and
    /// says of an option that it is "unknown" or that it "failed to parse" it.
    fn without_cuda(&self, said: &str) -> Failure {
        if said.to_lowercase().contains("provider option") && !said.contains("Failed to load") {
            let at = self.file.display();
            return bad_input!("{at}: option 'provider_options': {said}");
        }
        Failure::Skipped(format!("the CUDA provider did not load: {said}"))
    }

    fn on_cuda(&self, builder: SessionBuilder) -> ort::Result<SessionBuilder> {
        let mut cuda = ep::CUDA::default();
        if let Some(Value::Object(texts)) = self.given.get("provider_options") {
            for (key, text) in texts {
                cuda = cuda.with_arbitrary_config(key, text.as_str().unwrap_or_default());
            }
        }
        Ok(builder.with_execution_providers([cuda.build().error_on_failure()])?)
    }
}

/// Left alone, the crate lets ONNX Runtime choose another provider where it finds one.
fn on_cpu(builder: SessionBuilder) -> ort::Result<SessionBuilder> {
    Ok(builder.with_auto_device(AutoDevicePolicy::PreferCPU)?)
}

fn logged(builder: SessionBuilder, profile: Option<&Path>) -> ort::Result<SessionBuilder> {
    Ok(match profile {
        Some(prefix) => builder
            .with_profiling(prefix)?
            .with_log_level(LogLevel::Info)?,
        None => builder.with_log_level(LogLevel::Error)?,
    })
}

/// Returns what an option should be, when it is not.
fn wanted(key: &str, value: &Value) -> Option<&'static str> {
    let (good, wanted) = match key {
        "intra_op_num_threads" | "inter_op_num_threads" => (
            value.as_u64().is_some_and(|count| count <= i32::MAX as u64),
            "a whole number >= 0",
        ),
        "execution_mode" => (
            ["sequential", "parallel"]
                .map(Some)
                .contains(&value.as_str()),
            "sequential or parallel",
        ),
        "graph_optimization_level" => (level(value).is_some(), "disabled, basic, extended or all"),
        "enable_cpu_mem_arena" | "enable_mem_pattern" => (value.is_boolean(), "true or false"),
        "provider_options" => (
            value
                .as_object()
                .is_some_and(|texts| texts.values().all(is_text)),
            "an object of texts",
        ),
        _ if key.contains('.') => (is_text(value) && !key.contains('\0'), "a text"),
        _ => (false, EXPECTED),
    };
    (!good).then_some(wanted)
}

/// C ends a text at its first zero.
fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.contains('\0'))
}

fn level(value: &Value) -> Option<GraphOptimizationLevel> {
    match value.as_str()? {
        "disabled" => Some(GraphOptimizationLevel::Disable),
        "basic" => Some(GraphOptimizationLevel::Level1),
        "extended" => Some(GraphOptimizationLevel::Level2),
        "all" => Some(GraphOptimizationLevel::All),
        _ => None,
    }
}

/// Sets one option whose value `wanted` found good.
fn set(builder: SessionBuilder, key: &str, value: &Value) -> ort::Result<SessionBuilder> {
    let number = value.as_u64().unwrap_or_default() as usize;
    let flag = value.as_bool().unwrap_or_default();
    let text = value.as_str().unwrap_or_default();
    Ok(match key {
        "intra_op_num_threads" => builder.with_intra_threads(number)?,
        "inter_op_num_threads" => builder.with_inter_threads(number)?,
        "execution_mode" => builder.with_parallel_execution(text == "parallel")?,
        "graph_optimization_level" => {
            builder.with_optimization_level(level(value).unwrap_or(GraphOptimizationLevel::All))?
        }
        // The crate has it as an option of the provider; it is the session's.
        "enable_cpu_mem_arena" => {
            let cpu = ep::CPU::default().with_arena_allocator(flag).build();
            builder.with_execution_providers([cpu.error_on_failure()])?
        }
        "enable_mem_pattern" => builder.with_memory_pattern(flag)?,
        // Of the provider, which takes them itself.
        "provider_options" => builder,
        _ => builder.with_config_entry(key, text)?,
    })
}
