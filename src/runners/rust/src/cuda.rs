//! Sessions on a CUDA device, with inputs and outputs bound to it.

use std::ffi::{CString, c_void};
use std::time::Instant;

use libloading::{Library, Symbol};
use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session, SessionInputValue};
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use crate::dtype::Dtype;
use crate::engine::{Times, nanoseconds};
use crate::failure::{Failure, Outcome};
use crate::inputs::Piece;
use crate::values::{self, Output};

type CopyToHost = unsafe extern "C" fn(to: *mut c_void, from: u64, bytes: usize) -> i32;
type CopyToDevice = unsafe extern "C" fn(to: u64, from: *const c_void, bytes: usize) -> i32;
type Synchronize = unsafe extern "C" fn() -> i32;

/// NVIDIA's driver, without CUDA's toolkit.
pub struct Driver {
    to_host: CopyToHost,
    /// Holds the function above, and those that only a training needs.
    library: Library,
}

impl Driver {
    /// Loads the driver; None without one that shows a device.
    pub fn load() -> Option<Self> {
        // SAFETY: functions of the driver's C API, in its own signatures.
        unsafe {
            let library = Library::new("libcuda.so.1").ok()?;
            let init: Symbol<unsafe extern "C" fn(u32) -> i32> = library.get("cuInit").ok()?;
            let count: Symbol<unsafe extern "C" fn(*mut i32) -> i32> =
                library.get("cuDeviceGetCount").ok()?;
            let to_host = *library.get::<CopyToHost>("cuMemcpyDtoH_v2").ok()?;
            let mut found = 0;
            let there = init(0) == 0 && count(&mut found) == 0 && found > 0;
            there.then_some(Driver { to_host, library })
        }
    }

    /// Copies an output from the device. The thread must have run a session there: that makes the
    /// device current.
    fn copy(&self, tensor: &DynTensor, output: &mut Output) -> Outcome<()> {
        let ty = *tensor.data_type();
        let dtype = Dtype::of(ty)
            .ok_or_else(|| Failure::Unsupported(format!("an output is of type {ty}")))?;
        let bytes = tensor.shape().num_elements() * dtype.size();
        output.dtype = Some(dtype);
        output.shape.clear();
        output.shape.extend_from_slice(tensor.shape());
        output.bytes.resize(bytes, 0);
        self.to_host(tensor, &mut output.bytes)
    }

    /// Copies a tensor of as many bytes from the device, which must be current, as above.
    pub fn to_host(&self, tensor: &DynTensor, bytes: &mut [u8]) -> Outcome<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let from = tensor.data_ptr() as u64;
        // SAFETY: the tensor has so many bytes on the device.
        let code = unsafe { (self.to_host)(bytes.as_mut_ptr().cast(), from, bytes.len()) };
        check("cuMemcpyDtoH", code, bytes.len())
    }

    /// Copies as many bytes into a tensor of a device that is current, and waits until they are
    /// there: sessions do not wait for it.
    pub fn to_device(&self, bytes: &[u8], tensor: &mut DynTensor) -> Outcome<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let absent = |error: libloading::Error| Failure::crash(error.to_string());
        let to = tensor.data_ptr_mut() as u64;
        // SAFETY: functions of the driver's C API, in its own signatures; the tensor has so many
        // bytes on the device, which is current.
        let (copied, waited) = unsafe {
            let copy = self
                .library
                .get::<CopyToDevice>("cuMemcpyHtoD_v2")
                .map_err(absent)?;
            let wait = self
                .library
                .get::<Synchronize>("cuCtxSynchronize")
                .map_err(absent)?;
            (copy(to, bytes.as_ptr().cast(), bytes.len()), wait())
        };
        check("cuMemcpyHtoD", copied, bytes.len())?;
        check("cuCtxSynchronize", waited, bytes.len())
    }
}

fn check(function: &str, code: i32, bytes: usize) -> Outcome<()> {
    match code {
        0 => Ok(()),
        error => Err(Failure::crash(format!(
            "CUDA: {function} returned {error} for {bytes} bytes"
        ))),
    }
}

/// Makes sure that the session has the provider: only then it has the device's memory.
pub fn allocator(session: &Session, id: i32) -> Outcome<Allocator> {
    let memory = memory(id).map_err(|error| Failure::crash(error.to_string()))?;
    Allocator::new(session, memory)
        .map_err(|error| Failure::Skipped(format!("the session has no CUDA provider: {error}")))
}

/// What is said where there is none.
pub fn no_device() -> Failure {
    Failure::Skipped("no CUDA device".to_owned())
}

/// A session's binding to its device.
pub struct Device {
    driver: Driver,
    binding: IoBinding,
    memory: MemoryInfo<'static>,
    names: Vec<String>,
}

impl Device {
    pub fn of(session: &Session, id: i32) -> Outcome<Self> {
        let crash = |error: ort::Error| Failure::crash(error.to_string());
        allocator(session, id)?;
        let driver = Driver::load().ok_or_else(no_device)?;
        Ok(Device {
            driver,
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
            copy(&self.driver, value, output)?;
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

/// Copies an output, from the device when it is a tensor there: what is no tensor never is.
fn copy(driver: &Driver, value: DynValue, output: &mut Output) -> Outcome<()> {
    if !value.is_tensor() {
        return values::copy(&value, output);
    }
    let tensor = value
        .downcast::<DynTensorValueType>()
        .map_err(|error| Failure::crash(error.to_string()))?;
    if tensor.memory_info().is_cpu_accessible() {
        return values::copy(&tensor.into_dyn(), output);
    }
    driver.copy(&tensor, output)
}
