//! Float arithmetic that rounds once and that nothing contracts.
//!
//! # Idea
//! Triton compiles with fusion on, so a plain multiplication and a plain addition may become one
//! fused instruction, in LLVM or in ptxas. Each operation of a pinned combine is therefore emitted
//! in a [`Form`] that states its own rounding.
//! # Invariants
//! - **F1** An operation rounds once, to nearest even, in the type it has in the combine function;
//!   subnormals are kept. Through f32 this holds for add, subtract, multiply, divide and square
//!   root of f16 and bf16, because 24 ≥ 2·11 + 2; it does not hold for a fused multiply-add.
//! - **F2** Neither its operands nor its result are contracted with a neighbour, inside the
//!   reduction or outside it. A user's own fma stays one.
//! # Held by
//! F1 and F2: [`form`], whose rows were compiled for every target with products as leaves and read
//! in PTX, SASS and AMDGCN. What looked right and was not:
//! - a plain `fma(x, 1.0, y)` becomes `x + y` in LLVM and is then contracted with a product `x`;
//! - a plain division by a power of two becomes a multiplication and is contracted with what
//!   follows the reduction, hence the fence after `llvm.fdiv`;
//! - `mul.rn.f32 x, 1.0` and a move are no fence in ptxas; `add.rn x, -0.0` is one;
//! - the constrained `fdiv` of f32 gives an empty kernel on AMD, that of f16 aborts.
//! # Not here
//! Which operations a combine function may have (`combine.rs`).

use melior::ir::{
    Attribute, Type, Value, ValueLike,
    attribute::{ArrayAttribute, DenseI32ArrayAttribute, IntegerAttribute, StringAttribute},
    r#type::IntegerType,
};

use crate::{build::Builder, element::Element, target::Target};

/// An operation that rounds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FloatOp {
    /// Addition.
    Add,
    /// Subtraction.
    Sub,
    /// Multiplication.
    Mul,
    /// Division.
    Div,
    /// Square root.
    Sqrt,
    /// `x * y + z`, rounded once.
    Fma,
}

/// How an operation is emitted.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Form {
    /// A call of an LLVM intrinsic.
    Intrinsic(&'static str),
    /// One PTX instruction, as inline assembly without side effects.
    Ptx(&'static str),
    /// One PTX `fma.rn.bf16`, with constants for what the operation lacks.
    Bf16Fma(Fused),
    /// LLVM's constrained intrinsic: round to nearest, exceptions ignored.
    Constrained(&'static str),
    /// A plain LLVM operation that is expanded correctly rounded, and a fence after it.
    Fenced(&'static str),
    /// Widen to f32, do it there, round back.
    ViaF32,
}

/// The operands of a fused multiply-add that does a simpler operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Fused {
    /// `x * 1 + y`.
    Add,
    /// `y * -1 + x`.
    Sub,
    /// `x * y + -0`: the sign of a zero product stays.
    Mul,
}

/// The form of `op` on `element`; nothing where no form rounds once.
fn form(target: &Target, op: FloatOp, element: Element) -> Option<Form> {
    match target {
        Target::Nvidia { capability } => ptx(*capability, op, element),
        Target::Amd { .. } => amd(op, element),
    }
}

fn ptx(capability: u32, op: FloatOp, element: Element) -> Option<Form> {
    use Element::{Bf16, F16, F32, F64};
    use FloatOp::{Add, Div, Fma, Mul, Sqrt, Sub};
    Some(match (op, element) {
        (_, Element::Int(_)) => return None,
        (Add, F32) => Form::Intrinsic("llvm.nvvm.add.rn.f"),
        (Add, F64) => Form::Intrinsic("llvm.nvvm.add.rn.d"),
        (Mul, F32) => Form::Intrinsic("llvm.nvvm.mul.rn.f"),
        (Mul, F64) => Form::Intrinsic("llvm.nvvm.mul.rn.d"),
        (Sub, F32) => Form::Ptx("sub.rn.f32"),
        (Sub, F64) => Form::Ptx("sub.rn.f64"),
        (Div, F32) => Form::Ptx("div.rn.f32"),
        (Div, F64) => Form::Ptx("div.rn.f64"),
        (Sqrt, F32) => Form::Ptx("sqrt.rn.f32"),
        (Sqrt, F64) => Form::Ptx("sqrt.rn.f64"),
        (Fma, F32) => Form::Ptx("fma.rn.f32"),
        (Fma, F64) => Form::Ptx("fma.rn.f64"),
        (Fma, F16) => Form::Ptx("fma.rn.f16"),
        (Fma, Bf16) if capability >= 80 => Form::Ptx("fma.rn.bf16"),
        (Fma, Bf16) => return None,
        (Div | Sqrt, F16 | Bf16) => Form::ViaF32,
        (Add, F16) => Form::Ptx("add.rn.f16"),
        (Sub, F16) => Form::Ptx("sub.rn.f16"),
        (Mul, F16) => Form::Ptx("mul.rn.f16"),
        (Add, Bf16) if capability >= 90 => Form::Ptx("add.rn.bf16"),
        (Sub, Bf16) if capability >= 90 => Form::Ptx("sub.rn.bf16"),
        (Mul, Bf16) if capability >= 90 => Form::Ptx("mul.rn.bf16"),
        (Add, Bf16) if capability >= 80 => Form::Bf16Fma(Fused::Add),
        (Sub, Bf16) if capability >= 80 => Form::Bf16Fma(Fused::Sub),
        (Mul, Bf16) if capability >= 80 => Form::Bf16Fma(Fused::Mul),
        (Add | Sub | Mul, Bf16) => Form::ViaF32,
    })
}

fn amd(op: FloatOp, element: Element) -> Option<Form> {
    use Element::{Bf16, F16, F32, F64};
    use FloatOp::{Add, Div, Fma, Mul, Sqrt, Sub};
    Some(match (op, element) {
        (_, Element::Int(_)) | (Fma, Bf16) => return None,
        (_, Bf16) | (Div | Sqrt, F16) => Form::ViaF32,
        (Add, F16 | F32 | F64) => Form::Constrained("llvm.intr.experimental.constrained.fadd"),
        (Sub, F16 | F32 | F64) => Form::Constrained("llvm.intr.experimental.constrained.fsub"),
        (Mul, F16 | F32 | F64) => Form::Constrained("llvm.intr.experimental.constrained.fmul"),
        (Fma, F16 | F32 | F64) => Form::Constrained("llvm.intr.experimental.constrained.fma"),
        (Div, F32 | F64) => Form::Fenced("llvm.fdiv"),
        (Sqrt, F32 | F64) => Form::Fenced("llvm.intr.sqrt"),
    })
}

/// Whether there is a form of `op` on `element` that rounds once.
pub fn rounds_once(target: &Target, op: FloatOp, element: Element) -> bool {
    form(target, op, element).is_some()
}

/// Emits `op`.
///
/// # Panics
/// Where [`rounds_once`] says no.
pub fn emit<'c>(
    b: Builder<'c>,
    target: &Target,
    op: FloatOp,
    element: Element,
    operands: &[Value<'c, 'c>],
) -> Value<'c, 'c> {
    match form(target, op, element) {
        Some(Form::Intrinsic(name)) => intrinsic(b, name, operands),
        Some(Form::Ptx(instruction)) => {
            ptx_instruction(b, instruction, register(element), operands)
        }
        Some(Form::Bf16Fma(fused)) => bf16_fma(b, fused, operands),
        Some(Form::Constrained(name)) => constrained(b, name, operands),
        Some(Form::Fenced(name)) => {
            let value = b.one(name, operands, operands[0].r#type(), &[]);
            fence(b, target, element, value)
        }
        Some(Form::ViaF32) => {
            let f32 = Type::float32(b.context());
            let wide: Vec<_> =
                operands.iter().map(|&x| b.one("llvm.fpext", &[x], f32, &[])).collect();
            let value = emit(b, target, op, Element::F32, &wide);
            b.one("llvm.fptrunc", &[value], operands[0].r#type(), &[])
        }
        None => panic!("{op:?} on {element:?} does not round once on {target:?}"),
    }
}

/// `value`, in a form that nothing is contracted across: what a copied operation takes where its
/// own expansion may contain a plain addition.
pub fn fence<'c>(
    b: Builder<'c>,
    target: &Target,
    element: Element,
    value: Value<'c, 'c>,
) -> Value<'c, 'c> {
    match (target, element) {
        (_, Element::Int(_)) => value,
        (Target::Amd { .. }, _) => assembly(b, "", "=v,0", &[value], value.r#type()),
        // Through f32, whose result is rounded by integer arithmetic: nothing to contract.
        (Target::Nvidia { capability }, Element::Bf16) if *capability < 80 => value,
        (Target::Nvidia { .. }, _) => {
            let zero = constant(b, "-0.0", element);
            emit(b, target, FloatOp::Add, element, &[value, zero])
        }
    }
}

fn constant<'c>(b: Builder<'c>, number: &str, element: Element) -> Value<'c, 'c> {
    let ty = element.name();
    let value = b.attr(&format!("{number} : {ty}"));
    b.one("llvm.mlir.constant", &[], b.ty(&ty), &[("value", value)])
}

fn intrinsic<'c>(b: Builder<'c>, name: &str, operands: &[Value<'c, 'c>]) -> Value<'c, 'c> {
    let context = b.context();
    let segments = [operands.len() as i32, 0];
    let attrs = [
        ("intrin", StringAttribute::new(context, name).into()),
        ("op_bundle_sizes", DenseI32ArrayAttribute::new(context, &[]).into()),
        ("operandSegmentSizes", DenseI32ArrayAttribute::new(context, &segments).into()),
    ];
    b.one("llvm.call_intrinsic", operands, operands[0].r#type(), &attrs)
}

fn constrained<'c>(b: Builder<'c>, name: &str, operands: &[Value<'c, 'c>]) -> Value<'c, 'c> {
    // Round to nearest, ties to even; ignore exceptions.
    let attrs = [("roundingmode", int64(b, 1)), ("fpExceptionBehavior", int64(b, 0))];
    b.one(name, operands, operands[0].r#type(), &attrs)
}

fn int64<'c>(b: Builder<'c>, value: i64) -> Attribute<'c> {
    IntegerAttribute::new(IntegerType::new(b.context(), 64).into(), value).into()
}

fn bf16_fma<'c>(b: Builder<'c>, fused: Fused, operands: &[Value<'c, 'c>]) -> Value<'c, 'c> {
    let (x, y) = (operands[0], operands[1]);
    let constant = |number| constant(b, number, Element::Bf16);
    let operands = match fused {
        Fused::Add => [x, constant("1.0"), y],
        Fused::Sub => [y, constant("-1.0"), x],
        Fused::Mul => [x, y, constant("-0.0")],
    };
    ptx_instruction(b, "fma.rn.bf16", register(Element::Bf16), &operands)
}

/// One PTX instruction on registers of a kind: a letter of NVPTX's constraints.
pub(in crate::emit) fn ptx_instruction<'c>(
    b: Builder<'c>,
    instruction: &str,
    register: &str,
    operands: &[Value<'c, 'c>],
) -> Value<'c, 'c> {
    let places: Vec<String> = (0..=operands.len()).map(|i| format!("${i}")).collect();
    let text = format!("{instruction} {};", places.join(", "));
    let constraints = format!("={register}{}", format!(",{register}").repeat(operands.len()));
    assembly(b, &text, &constraints, operands, operands[0].r#type())
}

fn register(element: Element) -> &'static str {
    match element {
        Element::F64 => "d",
        Element::F32 => "f",
        Element::F16 | Element::Bf16 => "h",
        Element::Int(_) => unreachable!("no form is on integers"),
    }
}

/// Inline assembly without side effects: LLVM may share it or drop it.
pub(in crate::emit) fn assembly<'c>(
    b: Builder<'c>,
    text: &str,
    constraints: &str,
    operands: &[Value<'c, 'c>],
    result: Type<'c>,
) -> Value<'c, 'c> {
    let context = b.context();
    let attrs = [
        ("asm_string", StringAttribute::new(context, text).into()),
        ("constraints", StringAttribute::new(context, constraints).into()),
        ("asm_dialect", int64(b, 0)),
        ("operand_attrs", ArrayAttribute::new(context, &[]).into()),
    ];
    b.one("llvm.inline_asm", operands, result, &attrs)
}

#[cfg(test)]
mod tests {
    use super::{FloatOp, Form, amd, ptx};
    use crate::element::Element;

    const OPS: [FloatOp; 6] =
        [FloatOp::Add, FloatOp::Sub, FloatOp::Mul, FloatOp::Div, FloatOp::Sqrt, FloatOp::Fma];
    const FLOATS: [Element; 4] = [Element::F16, Element::Bf16, Element::F32, Element::F64];

    /// Only a bf16 fma on machines without the instruction has no form.
    #[test]
    fn every_operation_rounds_once_but_bf16_fma() {
        for op in OPS {
            for element in FLOATS {
                let bf16_fma = op == FloatOp::Fma && element == Element::Bf16;
                assert_eq!(amd(op, element).is_some(), !bf16_fma, "amd {op:?} {element:?}");
                for capability in [75, 80, 89, 90, 100, 120] {
                    let some = ptx(capability, op, element).is_some();
                    assert_eq!(some, !bf16_fma || capability >= 80, "{capability} {op:?}");
                }
            }
        }
    }

    /// Double rounding: f32 is wide enough for bf16 and f16, never for f64 or itself, nor for fma.
    #[test]
    fn the_route_through_f32_is_for_narrow_types() {
        for op in OPS {
            for element in FLOATS {
                for capability in [75, 80, 89, 90, 100, 120] {
                    for found in [ptx(capability, op, element), amd(op, element)] {
                        if found == Some(Form::ViaF32) {
                            assert_eq!(element.bits(), 16, "{op:?} {element:?}");
                            assert_ne!(op, FloatOp::Fma);
                        }
                    }
                }
            }
        }
    }
}
