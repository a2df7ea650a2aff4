//! The contract's element types.

use ort::value::TensorElementType;
use serde::Deserialize;

macro_rules! dtypes {
    ($($variant:ident $name:literal $size:literal,)*) => {
        /// An element type; `String` has no size of its own.
        #[derive(Clone, Copy, Debug, Deserialize, PartialEq)]
        #[serde(try_from = "String")]
        pub enum Dtype { $($variant),* }

        impl Dtype {
            pub const ALL: &[Dtype] = &[$(Dtype::$variant),*];

            pub fn name(self) -> &'static str {
                match self { $(Dtype::$variant => $name),* }
            }

            /// Bytes of an element; of a string those of its length.
            pub fn size(self) -> usize {
                match self { $(Dtype::$variant => $size),* }
            }

            /// Returns ONNX Runtime's word for it.
            pub fn element(self) -> TensorElementType {
                match self { $(Dtype::$variant => TensorElementType::$variant),* }
            }

            /// Returns the type of ONNX Runtime's word for it, if the contract has it.
            pub fn of(element: TensorElementType) -> Option<Self> {
                match element {
                    $(TensorElementType::$variant => Some(Dtype::$variant),)*
                    _ => None,
                }
            }
        }
    };
}

dtypes! {
    Float32 "float32" 4,
    Float64 "float64" 8,
    Float16 "float16" 2,
    Bfloat16 "bfloat16" 2,
    Int8 "int8" 1,
    Int16 "int16" 2,
    Int32 "int32" 4,
    Int64 "int64" 8,
    Uint8 "uint8" 1,
    Uint16 "uint16" 2,
    Uint32 "uint32" 4,
    Uint64 "uint64" 8,
    Bool "bool" 1,
    String "string" 4,
}

impl Dtype {
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|dtype| dtype.name() == name)
    }
}

impl TryFrom<String> for Dtype {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        let names: Vec<_> = Self::ALL.iter().map(|dtype| dtype.name()).collect();
        Self::parse(&name).ok_or_else(|| format!("'{name}' is none of {}", names.join(", ")))
    }
}

/// Evaluates an expression with `$T` as the Rust type of a dtype; strings have one of their own.
macro_rules! with_type {
    ($dtype:expr, $T:ident => $numbers:expr, string => $strings:expr) => {
        with_type!(@arms $dtype, $T, $numbers, $strings,
            Float32 f32, Float64 f64, Float16 half::f16, Bfloat16 half::bf16,
            Int8 i8, Int16 i16, Int32 i32, Int64 i64,
            Uint8 u8, Uint16 u16, Uint32 u32, Uint64 u64, Bool bool)
    };
    (@arms $dtype:expr, $T:ident, $numbers:expr, $strings:expr, $($variant:ident $type:ty),*) => {
        match $dtype {
            $($crate::dtype::Dtype::$variant => { type $T = $type; $numbers })*
            $crate::dtype::Dtype::String => $strings,
        }
    };
}
pub(crate) use with_type;
