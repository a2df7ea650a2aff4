//! Between the program's memory and ONNX Runtime's values, whose types Rust knows by name.

use std::slice;

use ort::session::SessionInputValue;
use ort::sys::ONNXTensorElementDataType;
use ort::value::{
    DynTensor, DynValue, IntoTensorElementType, PrimitiveTensorElementType, Tensor,
    TensorElementType, TensorRef, ValueType,
};

use crate::plan::{Entry, Plan, role};
use crate::result::{Failure, Outcome};

const STRING: u32 = 8;

/// Evaluates an expression with `$T` as the Rust type of ONNX's number of a type of numbers.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $numbers:expr, _ => $others:expr) => {
        with_type!(@arms $dtype, $T, $numbers, $others,
            1 f32, 2 u8, 3 i8, 4 u16, 5 i16, 6 i32, 7 i64, 9 bool,
            10 half::f16, 11 f64, 12 u32, 13 u64, 16 half::bf16)
    };
    (@arms $dtype:expr, $T:ident, $numbers:expr, $others:expr, $($number:literal $type:ty),*) => {
        match $dtype {
            $($number => { type $T = $type; $numbers })*
            _ => $others,
        }
    };
}

/// An input, or rows of one, in the program's own memory.
pub struct Piece {
    pub name: &'static str,
    dtype: u32,
    pub shape: Vec<i64>,
    /// Row-major, aligned for their type; or strings.
    numbers: &'static [u8],
    strings: &'static [&'static str],
}

pub type Feed = Vec<Piece>;

/// The inputs of a group: all batches in order, the last one perhaps partial, or the tensors whole.
pub fn batches(plan: &Plan, group: u32) -> Outcome<Vec<Feed>> {
    let whole: Feed = plan.of(role::INPUT, group).map(Piece::read).collect::<Outcome<_>>()?;
    if plan.batch == 0 {
        return Ok(vec![whole]);
    }
    let cut = |begin: usize| {
        let end = (begin + plan.batch).min(plan.rows);
        whole.iter().map(|piece| piece.rows(begin, end)).collect()
    };
    Ok((0..plan.rows).step_by(plan.batch).map(cut).collect())
}

impl Piece {
    fn read(entry: &Entry) -> Outcome<Self> {
        let (name, dtype, data) = (entry.name, entry.dtype, entry.data()?);
        let (numbers, strings): (&[u8], &[&str]) = match dtype {
            STRING => (&[], strings(name, data)?),
            _ => (data, &[]),
        };
        Ok(Piece { name, dtype, shape: entry.shape.clone(), numbers, strings })
    }

    fn rows(&self, begin: usize, end: usize) -> Self {
        let shape = [&[(end - begin) as i64], &self.shape[1..]].concat();
        let all = self.shape[0] as usize;
        let numbers = cut(self.numbers, begin, end, all);
        Piece { shape, numbers, strings: cut(self.strings, begin, end, all), ..*self }
    }
}

fn cut<T>(rows: &'static [T], begin: usize, end: usize, all: usize) -> &'static [T] {
    let width = rows.len() / all;
    &rows[begin * width..end * width]
}

/// Parts strings of which each stands after its length in bytes.
fn strings(name: &str, mut bytes: &'static [u8]) -> Outcome<&'static [&'static str]> {
    let mut found = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (text, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        let wrong = |error| Failure::new("unsupported", format!("input '{name}': {error}"));
        found.push(str::from_utf8(text).map_err(wrong)?);
        bytes = rest;
    }
    Ok(found.leak())
}

/// Makes an input; strings are ONNX Runtime's own copies.
pub fn bind(piece: &Piece) -> Outcome<SessionInputValue<'_>> {
    let shape = piece.shape.as_slice();
    let wrong = |error| format!("input '{}' of strings: {error}", piece.name);
    Ok(with_type!(piece.dtype,
        T => TensorRef::from_array_view((shape, elements::<T>(piece.numbers)))
            .map_err(Failure::of_run)?
            .into(),
        _ => Tensor::from_string_array((shape, piece.strings))
            .map_err(|error| Failure::new("unsupported", wrong(error)))?
            .into()))
}

fn elements<T: PrimitiveTensorElementType>(bytes: &[u8]) -> &[T] {
    // SAFETY: every pattern of bits is a number; those of a bool were looked at in Python. Data are
    // aligned, and rows begin at whole elements: nothing is left over at either end.
    unsafe { bytes.align_to().1 }
}

/// What a run gave, in memory of the program's own that is used again.
#[derive(Default)]
pub struct Output {
    pub name: String,
    /// ONNX's number; 0: no tensor.
    pub dtype: u32,
    pub shape: Vec<i64>,
    /// As the contract writes them: numbers, or strings each after its length.
    pub bytes: Vec<u8>,
}

impl Output {
    /// Copies a value, into room that is used again.
    pub fn copy(&mut self, value: &DynValue) -> Outcome<()> {
        self.shape.clear();
        self.bytes.clear();
        self.dtype = 0;
        let ValueType::Tensor { ty, .. } = value.dtype() else {
            return Ok(());
        };
        self.dtype = number(*ty);
        with_type!(self.dtype,
        T => {
            let (shape, data) = value.try_extract_tensor::<T>().map_err(Failure::of_run)?;
            self.shape.extend_from_slice(shape);
            self.bytes.extend_from_slice(bytes_of(data));
        },
        _ => {
            if self.dtype != STRING {
                return Err(Failure::new("unsupported", format!("an output is of type {ty}")));
            }
            let (shape, strings) = value.try_extract_strings().map_err(Failure::of_run)?;
            self.shape.extend_from_slice(shape);
            for text in strings {
                self.bytes.extend_from_slice(&(text.len() as u32).to_le_bytes());
                self.bytes.extend_from_slice(text.as_bytes());
            }
        });
        Ok(())
    }
}

fn bytes_of<T: PrimitiveTensorElementType>(data: &[T]) -> &[u8] {
    // SAFETY: elements are plain numbers without padding.
    unsafe { slice::from_raw_parts(data.as_ptr().cast(), size_of_val(data)) }
}

pub fn number(of: TensorElementType) -> u32 {
    ONNXTensorElementDataType::from(of) as u32
}

pub fn element(number: u32) -> TensorElementType {
    with_type!(number, T => T::into_tensor_element_type(), _ => TensorElementType::Undefined)
}

/// How many bytes a tensor of numbers has, wherever it lies.
pub fn length(tensor: &DynTensor) -> usize {
    tensor.data_type().byte_size(tensor.shape().num_elements()).unwrap_or(0)
}

/// Of NaN and infinity all bits of the exponent are set; they are in a number's last two bytes.
pub fn is_finite(dtype: usize, bytes: &[u8]) -> bool {
    let (size, exponent) = match dtype {
        1 => (4, 0x7f80),
        10 => (2, 0x7c00),
        11 => (8, 0x7ff0),
        _ => return true,
    };
    let last = |number: &[u8]| u16::from_le_bytes([number[size - 2], number[size - 1]]);
    bytes.chunks_exact(size).all(|number| last(number) & exponent != exponent)
}
