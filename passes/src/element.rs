//! The element types that a pinned reduction may have.

use melior::ir::{Attribute, Type, TypeLike, Value, ValueLike};
use mlir_sys::{
    mlirRankedTensorTypeGetEncoding, mlirShapedTypeGetDimSize, mlirShapedTypeGetElementType,
    mlirShapedTypeGetRank, mlirTypeIsARankedTensor,
};

/// An element type; in Triton's structs an element stands under the same name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    /// Double precision.
    F64,
    /// Single precision.
    F32,
    /// Half precision.
    F16,
    /// The upper half of single precision.
    Bf16,
    /// An integer of 1, 8, 16, 32 or 64 bits.
    Int(u32),
}

impl Element {
    /// From the type's text.
    pub fn parse(text: &str) -> Option<Element> {
        Some(match text {
            "f64" => Element::F64,
            "f32" => Element::F32,
            "f16" => Element::F16,
            "bf16" => Element::Bf16,
            "i1" => Element::Int(1),
            "i8" => Element::Int(8),
            "i16" => Element::Int(16),
            "i32" => Element::Int(32),
            "i64" => Element::Int(64),
            _ => return None,
        })
    }

    /// Its width in bits.
    pub fn bits(self) -> u32 {
        match self {
            Element::F64 => 64,
            Element::F32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::Int(bits) => bits,
        }
    }

    /// Its name.
    pub fn name(self) -> String {
        match self {
            Element::F64 => "f64".into(),
            Element::F32 => "f32".into(),
            Element::F16 => "f16".into(),
            Element::Bf16 => "bf16".into(),
            Element::Int(bits) => format!("i{bits}"),
        }
    }
}

/// What a tensor type says.
#[derive(Clone, Debug)]
pub struct Tensor<'c> {
    /// Its extents, outermost first; a dynamic one is negative.
    pub extents: Vec<i64>,
    /// The type of its elements.
    pub element: Type<'c>,
    /// Its layout.
    pub encoding: Option<Attribute<'c>>,
}

impl<'c> Tensor<'c> {
    /// The type of `value`, if it is a tensor's.
    pub fn of(value: Value<'c, '_>) -> Option<Tensor<'c>> {
        let raw = value.r#type().to_raw();
        // SAFETY: `raw` is valid and a ranked tensor where it is read as one; the encoding is null
        // where there is none.
        unsafe {
            mlirTypeIsARankedTensor(raw).then(|| Tensor {
                extents: (0..mlirShapedTypeGetRank(raw))
                    .map(|d| mlirShapedTypeGetDimSize(raw, d as isize))
                    .collect(),
                element: Type::from_raw(mlirShapedTypeGetElementType(raw)),
                encoding: Attribute::from_option_raw(mlirRankedTensorTypeGetEncoding(raw)),
            })
        }
    }
}
