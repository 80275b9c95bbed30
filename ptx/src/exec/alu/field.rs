//! Bit fields, permutations, three-input logic, funnel shifts and small dot products.
//!
//! # Idea
//! [`num::int::bits`](crate::num::int::bits) in each lane, with types and modes as constants.
//! # Held by
//! `ptx/tests/alu/integer.rs`.

use super::{
    Lowered,
    rows::lanes,
    types::{by_type, by_value},
};
use crate::{
    exec::lane::LaneFn,
    ir::Scalar,
    num::{
        float::Word,
        int::bits::{self, Permute},
    },
};

/// `bfe`.
pub(super) fn bfe(ty: Scalar) -> Option<LaneFn> {
    by_type!(ty; U32 | S32 => u32, U64 | S64 => u64; TY: T =>
    lanes!(|a: T, start: u32, length: u32| -> T {
        T::narrow(bits::bfe(TY, a.wide(), start.wide(), length.wide()))
    }))
}

/// `bfi`.
pub(super) fn bfi(ty: Scalar) -> Option<LaneFn> {
    by_type!(ty; B32 => u32, B64 => u64; TY: T =>
    lanes!(|a: T, b: T, start: u32, length: u32| -> T {
        T::narrow(bits::bfi(TY, a.wide(), b.wide(), start.wide(), length.wide()))
    }))
}

/// `bfind`.
pub(super) fn bfind(ty: Scalar, shiftamt: bool) -> Option<Lowered> {
    let run = by_type!(ty; U32 | S32 => u32, U64 | S64 => u64; TY: T =>
        lanes!(payload => |a: T| -> u32 { bits::bfind(TY, payload != 0, a.wide()) }))?;
    Some(Lowered::with(run, u64::from(shiftamt)))
}

/// `bmsk`.
pub(super) fn bmsk(clamp: bool) -> Lowered {
    let run = lanes!(payload => |start: u32, width: u32| -> u32 {
        bits::bmsk(payload != 0, start, width)
    });
    Lowered::with(run, u64::from(clamp))
}

/// `szext`.
pub(super) fn szext(ty: Scalar, clamp: bool) -> Option<Lowered> {
    let run = by_type!(ty; U32 | S32 => u32; TY: T =>
        lanes!(payload => |a: T, count: u32| -> T { bits::szext(TY, payload != 0, a, count) }))?;
    Some(Lowered::with(run, u64::from(clamp)))
}

/// `fns`.
pub(super) fn fns() -> LaneFn {
    lanes!(|mask: u32, base: u32, offset: u32| -> u32 { bits::fns(mask, base, offset) })
}

/// `lop3`; the table is the fourth source.
pub(super) fn lop3() -> LaneFn {
    lanes!(|a: u32, b: u32, c: u32, table: u32| -> u32 { bits::lop3(a, b, c, table as u8) })
}

/// `shf`.
pub(super) fn shf(left: bool, clamp: bool) -> LaneFn {
    match (left, clamp) {
        (false, false) => {
            lanes!(|a: u32, b: u32, c: u32| -> u32 { bits::shf(false, false, a, b, c) })
        }
        (false, true) => {
            lanes!(|a: u32, b: u32, c: u32| -> u32 { bits::shf(false, true, a, b, c) })
        }
        (true, false) => {
            lanes!(|a: u32, b: u32, c: u32| -> u32 { bits::shf(true, false, a, b, c) })
        }
        (true, true) => lanes!(|a: u32, b: u32, c: u32| -> u32 { bits::shf(true, true, a, b, c) }),
    }
}

/// `prmt`; `mode` as in the text.
pub(super) fn prmt(mode: Option<&str>) -> Option<LaneFn> {
    let mode = match mode {
        None => Permute::Index,
        Some(name) => name.parse().ok()?,
    };
    by_value!(mode; Permute { Index, F4e, B4e, Rc8, Ecl, Ecr, Rc16 }; MODE =>
        Some(lanes!(|a: u32, b: u32, control: u32| -> u32 { bits::prmt(MODE, a, b, control) })))
}

/// `dp4a`.
pub(super) fn dp4a(a: Scalar, b: Scalar) -> Option<LaneFn> {
    by_type!(a; U32 | S32 => u32; A: T => by_type!(b; U32 | S32 => u32; B: U =>
        lanes!(|a: T, b: U, c: u32| -> u32 { bits::dp4a(A, B, a, b, c) }))?)
}

/// `dp2a`.
pub(super) fn dp2a(high: bool, a: Scalar, b: Scalar) -> Option<Lowered> {
    let run = by_type!(a; U32 | S32 => u32; A: T => by_type!(b; U32 | S32 => u32; B: U =>
        lanes!(payload => |a: T, b: U, c: u32| -> u32 {
            bits::dp2a(payload != 0, A, B, a, b, c)
        }))?)?;
    Some(Lowered::with(run, u64::from(high)))
}
