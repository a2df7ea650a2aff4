//! Sessions on a CUDA device, with inputs and outputs bound to it.

use std::ffi::{CString, c_void};
use std::time::Instant;

use libloading::Library;
use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session, SessionInputValue};
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use crate::result::{Failure, Outcome};
use crate::session::{Times, nanoseconds};
use crate::values::{self, Output, Piece};

/// NVIDIA's driver, without CUDA's toolkit. The thread must have run a session on the device, or
/// made an allocator there: that makes the device current.
pub struct Driver {
    to_host: unsafe extern "C" fn(to: *mut c_void, from: u64, bytes: usize) -> i32,
    to_device: unsafe extern "C" fn(to: u64, from: *const c_void, bytes: usize) -> i32,
    synchronize: unsafe extern "C" fn() -> i32,
    /// Holds the functions above.
    _library: Library,
}

impl Driver {
    pub fn load() -> Outcome<Self> {
        // SAFETY: functions of the driver's C API, in its own signatures.
        let loaded = || unsafe {
            let library = Library::new("libcuda.so.1")?;
            Ok(Driver {
                to_host: *library.get("cuMemcpyDtoH_v2")?,
                to_device: *library.get("cuMemcpyHtoD_v2")?,
                synchronize: *library.get("cuCtxSynchronize")?,
                _library: library,
            })
        };
        loaded().map_err(|error: libloading::Error| Failure::crash(error))
    }

    /// Copies a tensor from the device into room that is made.
    pub fn to_host<'a>(&self, from: &DynTensor, room: &'a mut Vec<u8>) -> Outcome<&'a mut [u8]> {
        room.resize(values::length(from), 0);
        if !room.is_empty() {
            let from = from.data_ptr() as u64;
            // SAFETY: the tensor has so many bytes on the device.
            let code = unsafe { (self.to_host)(room.as_mut_ptr().cast(), from, room.len()) };
            check("cuMemcpyDtoH", code, room.len())?;
        }
        Ok(room)
    }

    /// Copies as many bytes as a tensor has into it, and waits until they are there: sessions do
    /// not wait for it.
    pub fn to_device(&self, bytes: &[u8], tensor: &mut DynTensor) -> Outcome<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let to = tensor.data_ptr_mut() as u64;
        // SAFETY: the tensor has so many bytes on the device.
        unsafe {
            let copied = (self.to_device)(to, bytes.as_ptr().cast(), bytes.len());
            check("cuMemcpyHtoD", copied, bytes.len())?;
            check("cuCtxSynchronize", (self.synchronize)(), bytes.len())
        }
    }
}

fn check(function: &str, code: i32, bytes: usize) -> Outcome<()> {
    match code {
        0 => Ok(()),
        code => Err(Failure::crash(format!("CUDA: {function} returned {code} for {bytes} bytes"))),
    }
}

/// Makes sure that the session has the provider: only then it has the device's memory.
pub fn allocator(session: &Session, id: i32) -> Outcome<Allocator> {
    let memory = memory(id).map_err(Failure::crash)?;
    let wrong = |error| format!("the session has no CUDA provider: {error}");
    Allocator::new(session, memory).map_err(|error| Failure::new("skipped", wrong(error)))
}

fn memory(id: i32) -> ort::Result<MemoryInfo<'static>> {
    MemoryInfo::new(AllocationDevice::CUDA, id, AllocatorType::Device, MemoryType::Default)
}

pub struct Device {
    driver: Driver,
    binding: IoBinding,
    memory: MemoryInfo<'static>,
}

impl Device {
    pub fn of(session: &Session, id: i32) -> Outcome<Self> {
        allocator(session, id)?;
        Ok(Device {
            driver: Driver::load()?,
            binding: session.create_binding().map_err(Failure::crash)?,
            memory: memory(id).map_err(Failure::crash)?,
        })
    }

    /// Binds an input by ONNX Runtime's own function: the crate's copies what is over borrowed
    /// memory, for which it waits for a lock that it holds itself (2.0.0-rc.15).
    fn bind(&mut self, name: &str, value: &SessionInputValue) -> ort::Result<()> {
        let name = CString::new(name)?;
        // SAFETY: binding and value are alive, and `step` keeps the value until it is unbound.
        unsafe {
            let bind = ort::api().BindInput;
            ort::Error::result_from_status(bind(self.binding.ptr_mut(), name.as_ptr(), value.ptr()))
        }
    }

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
        for output in outputs.iter() {
            let bound = self.binding.bind_output_to_device(&output.name, &self.memory);
            bound.map_err(Failure::of_run)?;
        }
        self.binding.synchronize_inputs().map_err(Failure::of_run)?;
        let t1 = Instant::now();
        let mut found = session.run_binding(&self.binding).map_err(Failure::of_run)?;
        self.binding.synchronize_outputs().map_err(Failure::of_run)?;
        let t2 = Instant::now();
        for output in outputs {
            let value = found.remove(&output.name).expect("a run gives each output");
            copy(&self.driver, value, output)?;
        }
        let t3 = Instant::now();
        drop(found);
        self.binding.clear();
        drop(inputs);
        Ok([nanoseconds(t0, t1), nanoseconds(t1, t2), nanoseconds(t2, t3)])
    }
}

/// Copies an output, from the device when it is a tensor there: what is no tensor never is.
fn copy(driver: &Driver, value: DynValue, output: &mut Output) -> Outcome<()> {
    if !value.is_tensor() {
        return output.copy(&value);
    }
    let tensor = value.downcast::<DynTensorValueType>().map_err(Failure::crash)?;
    if tensor.memory_info().is_cpu_accessible() {
        return output.copy(&tensor.into_dyn());
    }
    output.dtype = values::number(*tensor.data_type());
    output.shape.clear();
    output.shape.extend_from_slice(tensor.shape());
    driver.to_host(&tensor, &mut output.bytes).map(|_| ())
}
