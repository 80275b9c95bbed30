//! Integer arithmetic and logic over a row.
//!
//! # Idea
//! [`num::int`](crate::num::int) computes on one pattern, given operation and type; here both are
//! constants. What is in none of the lists below, PTX does not have.
//! # Held by
//! `ptx/tests/alu/integer.rs`; `ptx/tests/alu/table.rs` for the lists.
//! # Not here
//! Bit fields and permutations (`field`), carries (`carry`).

use super::{
    rows::lanes,
    types::{bits, by_type, by_value, integers},
};
use crate::{
    exec::lane::LaneFn,
    ir::{Half, IntBinary, IntUnary, Scalar},
    num::{float::Word, int},
};

/// `abs`, `neg`, `not`, `cnot`, `popc`, `clz`, `brev`.
pub(super) fn unary(op: IntUnary, ty: Scalar) -> Option<LaneFn> {
    let signed = by_value!(op; IntUnary { Abs, Neg }; OP =>
        by_type!(ty; S16 => u16, S32 => u32, S64 => u64; TY: T =>
            lanes!(|a: T| -> T { T::narrow(int::unary(OP, TY, a.wide())) })));
    let logic = || {
        by_value!(op; IntUnary { Not, Cnot }; OP => bits!(ty, TY: T =>
            lanes!(|a: T| -> T { T::narrow(int::unary(OP, TY, a.wide())) })))
    };
    let reversed = || {
        by_value!(op; IntUnary { Brev }; OP => by_type!(ty; B32 => u32, B64 => u64; TY: T =>
            lanes!(|a: T| -> T { T::narrow(int::unary(OP, TY, a.wide())) })))
    };
    let counted = || {
        by_value!(op; IntUnary { Popc, Clz }; OP => by_type!(ty; B32 => u32, B64 => u64; TY: T =>
            lanes!(|a: T| -> u32 { int::unary(OP, TY, a.wide()) as u32 })))
    };
    signed.or_else(logic).or_else(reversed).or_else(counted).or_else(|| match (op, ty) {
        (IntUnary::Not, Scalar::Pred) => Some(lanes!(|a: bool| -> bool { !a })),
        _ => None,
    })
}

/// `add`, `sub`, `mul`, `mul24`, `div`, `rem`, `min`, `max`, `and`, `or`, `xor`, `shl`, `shr`.
pub(super) fn binary(op: IntBinary, ty: Scalar, sat: bool) -> Option<LaneFn> {
    if sat {
        return saturating(op, ty);
    }
    arithmetic(op, ty)
        .or_else(|| product(op, ty))
        .or_else(|| packed(op, ty))
        .or_else(|| logic(op, ty))
        .or_else(|| shift(op, ty))
}

fn arithmetic(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    by_value!(op; IntBinary { Add, Sub, Min, Max, Div, Rem, Mul(Half::Lo), Mul(Half::Hi) }; OP =>
    integers!(ty, TY: T => lanes!(|a: T, b: T| -> T {
        T::narrow(int::binary(OP, TY, false, a.wide(), b.wide()))
    })))
}

/// Products that are wider or narrower than the row of an operand.
fn product(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    let word = by_value!(op; IntBinary { Mul24(Half::Lo), Mul24(Half::Hi) }; OP =>
    by_type!(ty; U32 | S32 => u32; TY: T => lanes!(|a: T, b: T| -> T {
        T::narrow(int::binary(OP, TY, false, a.wide(), b.wide()))
    })));
    word.or_else(|| {
        by_value!(op; IntBinary { Mul(Half::Wide) }; OP =>
        by_type!(ty; U16 | S16 => u16; TY: T => lanes!(|a: T, b: T| -> u32 {
            int::binary(OP, TY, false, a.wide(), b.wide()) as u32
        }))
        .or_else(|| by_type!(ty; U32 | S32 => u32; TY: T => lanes!(|a: T, b: T| -> u64 {
            int::binary(OP, TY, false, a.wide(), b.wide())
        }))))
    })
}

fn packed(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    by_value!(op; IntBinary { Add, Sub, Min, Max }; OP =>
    by_type!(ty; U16x2 | S16x2 | U8x4 | S8x4 => u32; TY: T => lanes!(|a: T, b: T| -> T {
        T::narrow(int::binary(OP, TY, false, a.wide(), b.wide()))
    })))
}

fn logic(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    let words = by_value!(op; IntBinary { And, Or, Xor }; OP => bits!(ty, TY: T =>
        lanes!(|a: T, b: T| -> T { T::narrow(int::binary(OP, TY, false, a.wide(), b.wide())) })));
    words.or_else(|| match (op, ty) {
        (IntBinary::And, Scalar::Pred) => Some(lanes!(|a: bool, b: bool| -> bool { a & b })),
        (IntBinary::Or, Scalar::Pred) => Some(lanes!(|a: bool, b: bool| -> bool { a | b })),
        (IntBinary::Xor, Scalar::Pred) => Some(lanes!(|a: bool, b: bool| -> bool { a ^ b })),
        _ => None,
    })
}

/// The amount is a `u32` whatever the type.
fn shift(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    let bits = by_value!(op; IntBinary { Shl, Shr }; OP => bits!(ty, TY: T =>
        lanes!(|a: T, b: u32| -> T { T::narrow(int::binary(OP, TY, false, a.wide(), b.wide())) })));
    bits.or_else(|| {
        by_value!(op; IntBinary { Shr }; OP => integers!(ty, TY: T =>
            lanes!(|a: T, b: u32| -> T { T::narrow(int::binary(OP, TY, false, a.wide(), b.wide())) })))
    })
}

/// `.sat`, which PTX has for sums and differences of `s32` alone.
fn saturating(op: IntBinary, ty: Scalar) -> Option<LaneFn> {
    by_value!(op; IntBinary { Add, Sub }; OP => by_type!(ty; S32 => u32; TY: T =>
        lanes!(|a: T, b: T| -> T { T::narrow(int::binary(OP, TY, true, a.wide(), b.wide())) })))
}

/// `mad`; `.sat` is for `hi.s32` alone.
pub(super) fn mad(half: Half, ty: Scalar, sat: bool) -> Option<LaneFn> {
    if sat {
        return by_value!(half; Half { Hi }; HALF => by_type!(ty; S32 => u32; TY: T =>
        lanes!(|a: T, b: T, c: T| -> T {
            T::narrow(int::mad(HALF, TY, true, a.wide(), b.wide(), c.wide()))
        })));
    }
    let narrow = by_value!(half; Half { Lo, Hi }; HALF => integers!(ty, TY: T =>
    lanes!(|a: T, b: T, c: T| -> T {
        T::narrow(int::mad(HALF, TY, false, a.wide(), b.wide(), c.wide()))
    })));
    narrow.or_else(|| {
        by_value!(half; Half { Wide }; HALF =>
        by_type!(ty; U16 | S16 => u16; TY: T => lanes!(|a: T, b: T, c: u32| -> u32 {
            int::mad(HALF, TY, false, a.wide(), b.wide(), c.wide()) as u32
        }))
        .or_else(|| by_type!(ty; U32 | S32 => u32; TY: T =>
            lanes!(|a: T, b: T, c: u64| -> u64 {
                int::mad(HALF, TY, false, a.wide(), b.wide(), c)
            }))))
    })
}

/// `mad24`; `.sat` is for `hi.s32` alone.
pub(super) fn mad24(half: Half, ty: Scalar, sat: bool) -> Option<LaneFn> {
    if sat {
        return by_value!(half; Half { Hi }; HALF => by_type!(ty; S32 => u32; TY: T =>
        lanes!(|a: T, b: T, c: T| -> T {
            T::narrow(int::mad24(HALF, TY, true, a.wide(), b.wide(), c.wide()))
        })));
    }
    by_value!(half; Half { Lo, Hi }; HALF => by_type!(ty; U32 | S32 => u32; TY: T =>
    lanes!(|a: T, b: T, c: T| -> T {
        T::narrow(int::mad24(HALF, TY, false, a.wide(), b.wide(), c.wide()))
    })))
}

/// `sad`.
pub(super) fn sad(ty: Scalar) -> Option<LaneFn> {
    integers!(ty, TY: T => lanes!(|a: T, b: T, c: T| -> T {
        T::narrow(int::sad(TY, a.wide(), b.wide(), c.wide()))
    }))
}
