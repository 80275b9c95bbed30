//! The approximate functions over a row.
//!
//! # Idea
//! [`num::approx`](crate::num::approx) has the functions. Those on `f32` that kernels live on have a
//! loop with and one without `.ftz`; the others ask the payload.
//! # Held by
//! `ptx/tests/alu/float.rs`; `ptx/tests/alu/table.rs` for what is refused.

use super::{
    Lowered,
    mode::{self, Permit, Roundings},
    rows::lanes,
    types::{by_type, by_value},
};
use crate::{
    exec::lane::LaneFn,
    ir::{FloatMode, FloatUnary, Precision, Scalar},
    num::{approx, float::Word},
};

/// Besides `.ftz`, these take no modifier.
const FTZ_ALONE: &[Permit] = &[(
    &[Scalar::F32, Scalar::F64, Scalar::F16, Scalar::BF16, Scalar::F16x2, Scalar::BF16x2],
    Roundings::None,
    mode::FTZ,
)];

/// `ex2`, `lg2`, `sin`, `cos`, `tanh`, `rsqrt`, and `.approx` of `rcp` and `sqrt`.
pub(super) fn unary(op: FloatUnary, ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    if !mode::permits(FTZ_ALONE, ty, mode) || !approx::supported(op, ty, mode.ftz) {
        return None;
    }
    let run = if ty == Scalar::F32 { single(op, mode.ftz) } else { None };
    run.or_else(|| any(op, ty)).map(|run| Lowered::with(run, mode.ftz.into()))
}

/// The frequent ones on `f32`, each with a constant `.ftz`.
fn single(op: FloatUnary, ftz: bool) -> Option<LaneFn> {
    macro_rules! first {
        ($($op:pat => $function:path),*) => {
            match (op, ftz) {
                $(
                    ($op, false) => Some(lanes!(|a: u32| -> u32 { $function(a, false) })),
                    ($op, true) => Some(lanes!(|a: u32| -> u32 { $function(a, true) })),
                )*
                _ => None,
            }
        };
    }
    first! {
        FloatUnary::Ex2 => approx::ex2,
        FloatUnary::Lg2 => approx::lg2,
        FloatUnary::Rsqrt => approx::rsqrt,
        FloatUnary::Rcp(Precision::Approx) => approx::rcp,
        FloatUnary::Sqrt(Precision::Approx) => approx::sqrt
    }
}

fn any(op: FloatUnary, ty: Scalar) -> Option<LaneFn> {
    by_value!(op; FloatUnary { Ex2, Tanh, Sin, Cos, Rsqrt, Rcp(Precision::Approx) }; OP =>
    by_type!(ty; F16 | BF16 => u16, F32 | F16x2 | BF16x2 => u32, F64 => u64; TY: T =>
        lanes!(payload => |a: T| -> T {
            T::narrow(approx::unary(OP, TY, payload != 0, a.wide()))
        })))
}

/// `div.approx` and `div.full`, which are for `f32` alone.
pub(super) fn div(precision: Precision, ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    if ty != Scalar::F32 || !mode::permits(FTZ_ALONE, ty, mode) {
        return None;
    }
    let run = match precision {
        Precision::Full => {
            lanes!(payload => |a: u32, b: u32| -> u32 { approx::div_full(a, b, payload != 0) })
        }
        Precision::Approx => {
            lanes!(payload => |a: u32, b: u32| -> u32 { approx::div(a, b, payload != 0) })
        }
        Precision::Rounded => return None,
    };
    Some(Lowered::with(run, mode.ftz.into()))
}
