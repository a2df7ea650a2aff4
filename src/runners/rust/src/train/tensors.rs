//! The memory of ONNX Runtime's tensors.

use std::slice;

use half::{bf16, f16};
use ort::value::DynTensor;

use crate::dtype::Dtype;
use crate::failure::{Failure, Outcome};

/// The memory of a tensor of numbers on the host.
pub fn bytes(tensor: &DynTensor) -> &[u8] {
    match length(tensor) {
        0 => &[],
        // SAFETY: the tensor has so many bytes on the host, which it owns.
        length => unsafe { slice::from_raw_parts(tensor.data_ptr().cast(), length) },
    }
}

/// As `bytes`, to be written to.
pub fn bytes_mut(tensor: &mut DynTensor) -> &mut [u8] {
    match length(tensor) {
        0 => &mut [],
        // SAFETY: as above, and nobody else looks at it: runs are over when they return.
        length => unsafe { slice::from_raw_parts_mut(tensor.data_ptr_mut().cast(), length) },
    }
}

/// How many bytes a tensor of numbers has, wherever it lies.
pub fn length(tensor: &DynTensor) -> usize {
    let size = Dtype::of(*tensor.data_type()).map_or(0, Dtype::size);
    tensor.shape().num_elements() * size
}

/// The value of a scalar of floats.
pub fn scalar(tensor: &DynTensor) -> Outcome<f64> {
    let crash = |error: ort::Error| Failure::crash(error.to_string());
    match Dtype::of(*tensor.data_type()) {
        Some(Dtype::Float32) => tensor
            .try_extract_scalar()
            .map(|value: f32| value.into())
            .map_err(crash),
        _ => tensor.try_extract_scalar::<f64>().map_err(crash),
    }
}

/// Tells whether no number is infinite or none at all; integers never are.
pub fn are_finite(dtype: Dtype, bytes: &[u8]) -> bool {
    fn all<const N: usize>(bytes: &[u8], finite: fn([u8; N]) -> bool) -> bool {
        bytes
            .as_chunks::<N>()
            .0
            .iter()
            .all(|number| finite(*number))
    }
    match dtype {
        Dtype::Float32 => all(bytes, |number| f32::from_le_bytes(number).is_finite()),
        Dtype::Float64 => all(bytes, |number| f64::from_le_bytes(number).is_finite()),
        Dtype::Float16 => all(bytes, |number| f16::from_le_bytes(number).is_finite()),
        Dtype::Bfloat16 => all(bytes, |number| bf16::from_le_bytes(number).is_finite()),
        _ => true,
    }
}
