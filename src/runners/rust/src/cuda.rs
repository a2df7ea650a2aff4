//! Sessions on a CUDA device, with inputs and outputs bound to it.

use std::ffi::CString;
use std::time::Instant;

use libloading::{Library, Symbol};
use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session, SessionInputValue};
use ort::value::{DynTensorValueType, DynValue};

use crate::engine::{Times, nanoseconds};
use crate::failure::{Failure, Outcome};
use crate::inputs::Piece;
use crate::values::{self, Output};

/// Counts the CUDA devices that the driver shows; 0 without a driver.
pub fn devices() -> i32 {
    // SAFETY: the two functions of the driver's C API, in its own signatures.
    unsafe {
        let Ok(driver) = Library::new("libcuda.so.1") else {
            return 0;
        };
        let init: Result<Symbol<unsafe extern "C" fn(u32) -> i32>, _> = driver.get("cuInit");
        let count: Result<Symbol<unsafe extern "C" fn(*mut i32) -> i32>, _> =
            driver.get("cuDeviceGetCount");
        let (Ok(init), Ok(count)) = (init, count) else {
            return 0;
        };
        let mut found = 0;
        if init(0) != 0 || count(&mut found) != 0 {
            return 0;
        }
        found
    }
}

/// A session's binding to its device.
pub struct Device {
    binding: IoBinding,
    memory: MemoryInfo<'static>,
    names: Vec<String>,
}

impl Device {
    /// Makes sure that the session has the provider: only then it has the device's memory.
    pub fn of(session: &Session, id: i32) -> Outcome<Self> {
        let crash = |error: ort::Error| Failure::crash(error.to_string());
        let absent = |error| Failure::Skipped(format!("the session has no CUDA provider: {error}"));
        Allocator::new(session, memory(id).map_err(crash)?).map_err(absent)?;
        Ok(Device {
            binding: session.create_binding().map_err(crash)?,
            memory: memory(id).map_err(crash)?,
            names: session
                .outputs()
                .iter()
                .map(|output| output.name().to_owned())
                .collect(),
        })
    }

    /// Binds an input that outlives the run.
    ///
    /// By ONNX Runtime's own function: the crate's copies what is over borrowed memory, for which
    /// it waits for a lock that it holds itself (2.0.0-rc.15).
    fn bind(&mut self, name: &str, value: &SessionInputValue) -> ort::Result<()> {
        let name = CString::new(name)?;
        // SAFETY: binding and value are alive, and `step` keeps the value until it is unbound.
        unsafe {
            let bind = ort::api().BindInput;
            ort::Error::result_from_status(bind(self.binding.ptr_mut(), name.as_ptr(), value.ptr()))
        }
    }

    /// Copies to the device, runs until it has finished, copies back.
    pub fn step(
        &mut self,
        session: &mut Session,
        feed: &[Piece],
        outputs: &mut [Output],
    ) -> Outcome<Times> {
        let t0 = Instant::now();
        let mut inputs = Vec::with_capacity(feed.len());
        for piece in feed {
            let value = values::bind(piece)?;
            self.bind(piece.name, &value).map_err(Failure::of_run)?;
            inputs.push(value);
        }
        for name in &self.names {
            self.binding
                .bind_output_to_device(name, &self.memory)
                .map_err(Failure::of_run)?;
        }
        self.binding.synchronize_inputs().map_err(Failure::of_run)?;
        let t1 = Instant::now();
        let mut found = session
            .run_binding(&self.binding)
            .map_err(Failure::of_run)?;
        self.binding
            .synchronize_outputs()
            .map_err(Failure::of_run)?;
        let t2 = Instant::now();
        for (name, output) in self.names.iter().zip(outputs) {
            let value = found
                .remove(name)
                .ok_or_else(|| Failure::crash(format!("the run gave no output '{name}'")))?;
            values::copy(&on_host(value)?, output)?;
        }
        let t3 = Instant::now();
        drop(found);
        self.binding.clear();
        drop(inputs);
        Ok(Times {
            bind: nanoseconds(t0, t1),
            run: nanoseconds(t1, t2),
            copy: nanoseconds(t2, t3),
        })
    }
}

fn memory(id: i32) -> ort::Result<MemoryInfo<'static>> {
    MemoryInfo::new(
        AllocationDevice::CUDA,
        id,
        AllocatorType::Device,
        MemoryType::Default,
    )
}

/// What is no tensor is on the host anyway.
fn on_host(value: DynValue) -> Outcome<DynValue> {
    if !value.is_tensor() {
        return Ok(value);
    }
    let beyond = |error: ort::Error| {
        Failure::Unsupported(format!("the ort crate cannot copy it to the host: {error}"))
    };
    let tensor = value.downcast::<DynTensorValueType>().map_err(beyond)?;
    if tensor.memory_info().is_cpu_accessible() {
        return Ok(tensor.into_dyn());
    }
    let copied = tensor.to(AllocationDevice::CPU, 0).map_err(beyond)?;
    Ok(copied.into_dyn())
}
