//! Between the program's memory and ONNX Runtime's values.

use std::slice;

use ort::session::SessionInputValue;
use ort::value::{
    DynValue, PrimitiveTensorElementType, Tensor, TensorElementType, TensorRef, ValueType,
};

use crate::dtype::{Dtype, with_type};
use crate::failure::{Failure, Outcome};
use crate::inputs::{Piece, View};

#[cfg(not(target_endian = "little"))]
compile_error!("tensors are handed to ONNX Runtime as the little-endian bytes of their files");

/// What a run gave, in memory of the program's own that is used again.
#[derive(Default)]
pub struct Output {
    /// None: no tensor, but what `kind` says.
    pub dtype: Option<Dtype>,
    pub kind: String,
    pub shape: Vec<i64>,
    /// As the contract writes them: numbers, or strings each after its length.
    pub bytes: Vec<u8>,
}

/// Makes an input over the program's memory; strings are ONNX Runtime's own copies.
pub fn bind<'a>(piece: &'a Piece) -> Outcome<SessionInputValue<'a>> {
    let shape = piece.shape.as_slice();
    match piece.data {
        View::Numbers(bytes) => with_type!(piece.dtype,
            T => TensorRef::from_array_view((shape, elements::<T>(bytes))).map(SessionInputValue::from),
            string => unreachable!("strings are no numbers"))
        .map_err(Failure::of_run),
        View::Strings(strings) => Tensor::from_string_array((shape, strings))
            .map(SessionInputValue::from)
            .map_err(|error| {
                Failure::Unsupported(format!("input '{}' of strings: {error}", piece.name))
            }),
    }
}

fn elements<T: PrimitiveTensorElementType>(bytes: &[u8]) -> &[T] {
    // SAFETY: `Numbers` aligns for every element type and rows begin at whole elements; every
    // pattern of bits is a number, and that of a bool was looked at when it was read.
    unsafe { slice::from_raw_parts(bytes.as_ptr().cast(), bytes.len() / size_of::<T>()) }
}

/// Copies an output into `output`, whose room is used again.
pub fn copy(value: &DynValue, output: &mut Output) -> Outcome<()> {
    output.shape.clear();
    output.bytes.clear();
    output.dtype = None;
    let ValueType::Tensor { ty, .. } = value.dtype() else {
        output.kind = kind(value.dtype());
        return Ok(());
    };
    let dtype =
        Dtype::of(*ty).ok_or_else(|| Failure::Unsupported(format!("an output is of type {ty}")))?;
    output.dtype = Some(dtype);
    with_type!(dtype,
    T => {
        let (shape, data) = value.try_extract_tensor::<T>().map_err(Failure::of_run)?;
        output.shape.extend_from_slice(shape);
        output.bytes.extend_from_slice(bytes_of(data));
    },
    string => {
        let (shape, strings) = value.try_extract_strings().map_err(Failure::of_run)?;
        output.shape.extend_from_slice(shape);
        for text in strings {
            output.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
            output.bytes.extend_from_slice(text.as_bytes());
        }
    });
    Ok(())
}

fn bytes_of<T: PrimitiveTensorElementType>(data: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

/// Returns ONNX's words for a type: `tensor(float32)`, `sequence(map(int64,float32))`.
pub fn kind(of: &ValueType) -> String {
    match of {
        ValueType::Tensor { ty, .. } => format!("tensor({})", element(*ty)),
        ValueType::Sequence(inner) => format!("sequence({})", kind(inner)),
        ValueType::Map { key, value } => format!("map({},{})", element(*key), element(*value)),
        ValueType::Optional(inner) => format!("optional({})", kind(inner)),
    }
}

fn element(of: TensorElementType) -> String {
    Dtype::of(of).map_or_else(|| of.to_string(), |dtype| dtype.name().to_owned())
}
