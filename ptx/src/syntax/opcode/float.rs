//! Floating-point operations.
//!
//! Which modifiers an operation takes depends on its type; reading asks for the type first, so
//! that `add.sat.f64` is an error.

use super::{
    modifiers::{Modifiers, Peek},
    types::*,
};
use crate::ir::{
    Class, FloatBinary, FloatMode, FloatUnary, Op, Precision, Round, Scalar, Scalar::*,
};

/// Claims an opcode only when its type is a floating-point one.
pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let ty = words.ty()?;
    if ty.class() != Class::Float {
        return None;
    }
    let mode = FloatMode::default();
    let precision = Precision::Rounded;
    let binary = |op| Op::FloatBinary { op, ty, mode };
    let unary = |op| Op::FloatUnary { op, ty, mode };
    let mixed = words.types() == 2;
    let mixing = |op, fused| Op::FmaMixed { op, fused, from: F16, mode };
    Some(match opcode {
        "add" if mixed => mixing(FloatBinary::Add, false),
        "sub" if mixed => mixing(FloatBinary::Sub, false),
        "fma" if mixed => mixing(FloatBinary::Add, true),
        "add" => binary(FloatBinary::Add),
        "sub" => binary(FloatBinary::Sub),
        "mul" => binary(FloatBinary::Mul),
        "div" => binary(FloatBinary::Div(precision)),
        "min" => binary(FloatBinary::Min),
        "max" => binary(FloatBinary::Max),
        "copysign" => binary(FloatBinary::Copysign),
        "abs" => unary(FloatUnary::Abs),
        "neg" => unary(FloatUnary::Neg),
        "sqrt" => unary(FloatUnary::Sqrt(precision)),
        "rcp" => unary(FloatUnary::Rcp(precision)),
        "rsqrt" => unary(FloatUnary::Rsqrt),
        "sin" => unary(FloatUnary::Sin),
        "cos" => unary(FloatUnary::Cos),
        "lg2" => unary(FloatUnary::Lg2),
        "ex2" => unary(FloatUnary::Ex2),
        "tanh" => unary(FloatUnary::Tanh),
        "fma" | "mad" => Op::Fma { ty, mode },
        _ => return None,
    })
}

pub(super) fn unary(
    m: &mut Modifiers<'_>,
    op: &mut FloatUnary,
    ty: &mut Scalar,
    mode: &mut FloatMode,
) {
    let (name, types): (_, &[Scalar]) = match op {
        FloatUnary::Abs => ("abs", &[F32, F64, F16, F16x2, BF16, BF16x2]),
        FloatUnary::Neg => ("neg", &[F32, F64, F16, F16x2, BF16, BF16x2]),
        FloatUnary::Sqrt(_) => ("sqrt", SINGLE_DOUBLE),
        FloatUnary::Rcp(_) => ("rcp", SINGLE_DOUBLE),
        FloatUnary::Rsqrt => ("rsqrt", SINGLE_DOUBLE),
        FloatUnary::Sin => ("sin", SINGLE),
        FloatUnary::Cos => ("cos", SINGLE),
        FloatUnary::Lg2 => ("lg2", SINGLE),
        FloatUnary::Ex2 => ("ex2", &[F32, F16, F16x2, BF16, BF16x2]),
        FloatUnary::Tanh => ("tanh", &[F32, F16, F16x2, BF16, BF16x2]),
    };
    m.opcode(name);
    match op {
        FloatUnary::Abs | FloatUnary::Neg => {}
        FloatUnary::Sqrt(precision) | FloatUnary::Rcp(precision) => {
            exactness(m, precision, mode, false);
        }
        FloatUnary::Rsqrt
        | FloatUnary::Sin
        | FloatUnary::Cos
        | FloatUnary::Lg2
        | FloatUnary::Ex2
        | FloatUnary::Tanh => m.word("approx"),
    }
    m.flag("ftz", &mut mode.ftz);
    m.one(ty, types);
}

/// `.approx`, `.full`, or a rounding.
fn exactness(m: &mut Modifiers<'_>, precision: &mut Precision, mode: &mut FloatMode, full: bool) {
    let mut approx = *precision == Precision::Approx;
    m.flag("approx", &mut approx);
    let mut whole = *precision == Precision::Full;
    if full && !approx {
        m.flag("full", &mut whole);
    }
    *precision = match (approx, whole) {
        (true, _) => Precision::Approx,
        (false, true) => Precision::Full,
        (false, false) => Precision::Rounded,
    };
    if *precision == Precision::Rounded {
        rounded(m, &mut mode.round, ROUNDS);
    }
}

/// A rounding that must be named.
fn rounded(m: &mut Modifiers<'_>, round: &mut Option<Round>, allowed: &[Round]) {
    let mut named = round.unwrap_or(Round::Rn);
    m.one(&mut named, allowed);
    *round = Some(named);
}

/// The type that the rest of the description was chosen by.
fn same(m: &mut Modifiers<'_>, ty: &mut Scalar, allowed: &[Scalar]) {
    let known = [*ty];
    m.one(ty, if allowed.contains(&known[0]) { &known } else { allowed });
}

fn rounds(ty: Scalar) -> &'static [Round] {
    if HALVES.contains(&ty) { NEAREST } else { ROUNDS }
}

pub(super) fn binary(
    m: &mut Modifiers<'_>,
    op: &mut FloatBinary,
    ty: &mut Scalar,
    mode: &mut FloatMode,
) {
    m.opcode(name(*op));
    match op {
        FloatBinary::Add | FloatBinary::Sub | FloatBinary::Mul => {
            m.maybe(&mut mode.round, rounds(*ty));
            m.flag("ftz", &mut mode.ftz);
            m.flag("sat", &mut mode.sat);
            same(m, ty, FLOATS);
        }
        FloatBinary::Div(precision) => {
            exactness(m, precision, mode, true);
            m.flag("ftz", &mut mode.ftz);
            m.one(ty, SINGLE_DOUBLE);
        }
        FloatBinary::Min | FloatBinary::Max => extreme(m, ty, mode),
        FloatBinary::Copysign => m.one(ty, SINGLE_DOUBLE),
    }
}

fn name(op: FloatBinary) -> &'static str {
    match op {
        FloatBinary::Add => "add",
        FloatBinary::Sub => "sub",
        FloatBinary::Mul => "mul",
        FloatBinary::Div(_) => "div",
        FloatBinary::Min => "min",
        FloatBinary::Max => "max",
        FloatBinary::Copysign => "copysign",
    }
}

/// Modifiers of `min` and `max`.
fn extreme(m: &mut Modifiers<'_>, ty: &mut Scalar, mode: &mut FloatMode) {
    m.flag("ftz", &mut mode.ftz);
    m.flag("NaN", &mut mode.nan);
    m.flag("xorsign", &mut mode.xorsign);
    m.flag("abs", &mut mode.abs);
    m.one(ty, &[F32, F64, F16, F16x2, BF16, BF16x2]);
}

/// Three-operand `min` and `max`: the text tells them from two-operand ones by their operands.
pub(super) fn ternary(
    m: &mut Modifiers<'_>,
    op: FloatBinary,
    ty: &mut Scalar,
    mode: &mut FloatMode,
) {
    m.opcode(name(op));
    extreme(m, ty, mode);
}

pub(super) fn fma(m: &mut Modifiers<'_>, ty: &mut Scalar, mode: &mut FloatMode) {
    m.opcode("fma");
    rounded(m, &mut mode.round, rounds(*ty));
    m.flag("ftz", &mut mode.ftz);
    m.flag("sat", &mut mode.sat);
    m.flag("relu", &mut mode.relu);
    same(m, ty, FLOATS);
}

/// `add`, `sub` and `fma` of narrow operands with an `f32` accumulator.
pub(super) fn mixed(
    m: &mut Modifiers<'_>,
    op: FloatBinary,
    fused: bool,
    from: &mut Scalar,
    mode: &mut FloatMode,
) {
    m.opcode(if fused { "fma" } else { name(op) });
    if fused {
        rounded(m, &mut mode.round, ROUNDS);
    } else {
        m.maybe(&mut mode.round, ROUNDS);
    }
    m.flag("sat", &mut mode.sat);
    m.word("f32");
    m.one(from, &[F16, BF16]);
}
