//! Integer arithmetic: add to remainder, by type.
//!
//! # Idea
//! Values are the low bits of a `u64`; each function reads as many as its type has, sign-extended
//! where the type is signed, and returns as many, zeros above. Types and operations are meant to be
//! constants at the call, so that the matches fold away.
//! # Invariants
//! - **I1** Results wrap, except with `.sat` on `s32`.
//! - **I2** Shift amounts are unsigned and clamp at the width, as PTX says: no masking.
//! - **I3** Division by zero gives all ones for the quotient *and* the remainder. PTX leaves it
//!   open; ptxas 12.9 folds both so, at 32 and 64 bits. The least number divided by -1 wraps.
//! # Held by
//! `ptx/tests/num_int.rs`, in 128 bits and from the manual's pseudo-code, bit by bit.
//! # Not here
//! Bit fields, permutes, dot products: [`bits`].

pub mod bits;

use super::convert::extended;
use crate::ir::{Class, Compare, Half, IntBinary, IntUnary, Scalar};

/// The low `width` bits.
#[inline(always)]
fn low(width: u32, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - width.clamp(1, 64)))
}

#[inline(always)]
fn is_signed(ty: Scalar) -> bool {
    ty.class() == Class::Signed
}

/// The value of an integer, exact.
#[inline(always)]
fn value(ty: Scalar, bits: u64) -> i128 {
    let extended = extended(ty, bits);
    if is_signed(ty) { i128::from(extended as i64) } else { i128::from(extended) }
}

/// Clamped to `s32`.
#[inline(always)]
fn saturated(value: i128) -> u64 {
    let clamped = value.clamp(i32::MIN.into(), i32::MAX.into());
    low(32, clamped as u64)
}

/// `mul`; `wide` returns twice the width.
#[inline(always)]
pub fn mul(half: Half, ty: Scalar, a: u64, b: u64) -> u64 {
    let width = ty.bits();
    match half {
        Half::Lo => low(width, a.wrapping_mul(b)),
        Half::Hi if width <= 32 => {
            let product = extended(ty, a).wrapping_mul(extended(ty, b));
            low(width, product >> width)
        }
        Half::Hi if is_signed(ty) => ((i128::from(a as i64) * i128::from(b as i64)) >> 64) as u64,
        Half::Hi => ((u128::from(a) * u128::from(b)) >> 64) as u64,
        Half::Wide => low(2 * width, extended(ty, a).wrapping_mul(extended(ty, b))),
    }
}

/// `mad`; `sat` only with `hi` on `s32`. `c` and the result of `wide` have twice the width.
#[inline(always)]
pub fn mad(half: Half, ty: Scalar, sat: bool, a: u64, b: u64, c: u64) -> u64 {
    let product = mul(half, ty, a, b);
    if sat {
        return saturated(value(ty, product) + value(ty, c));
    }
    let width = match half {
        Half::Wide => 2 * ty.bits(),
        Half::Lo | Half::Hi => ty.bits(),
    };
    low(width, product.wrapping_add(c))
}

/// `mul24`: `lo` gives bits 0 to 31 of the 48-bit product, `hi` bits 16 to 47.
#[inline(always)]
pub fn mul24(half: Half, ty: Scalar, a: u64, b: u64) -> u64 {
    let narrow = |bits: u64| {
        if is_signed(ty) { ((bits << 40) as i64 >> 40) as u64 } else { low(24, bits) }
    };
    let product = narrow(a).wrapping_mul(narrow(b));
    match half {
        Half::Hi => low(32, product >> 16),
        Half::Lo | Half::Wide => low(32, product),
    }
}

/// `mad24`; `sat` only with `hi` on `s32`.
#[inline(always)]
pub fn mad24(half: Half, ty: Scalar, sat: bool, a: u64, b: u64, c: u64) -> u64 {
    let product = mul24(half, ty, a, b);
    if sat {
        saturated(value(ty, product) + value(ty, c))
    } else {
        low(32, product.wrapping_add(c))
    }
}

/// The quotient, truncated towards zero (I3).
#[inline(always)]
pub fn div(ty: Scalar, a: u64, b: u64) -> u64 {
    let (x, y) = (extended(ty, a), extended(ty, b));
    let quotient = if y == 0 {
        u64::MAX
    } else if is_signed(ty) {
        (x as i64).wrapping_div(y as i64) as u64
    } else {
        x / y
    };
    low(ty.bits(), quotient)
}

/// The remainder, with the dividend's sign (I3).
#[inline(always)]
pub fn rem(ty: Scalar, a: u64, b: u64) -> u64 {
    let (x, y) = (extended(ty, a), extended(ty, b));
    let remainder = if y == 0 {
        u64::MAX
    } else if is_signed(ty) {
        (x as i64).wrapping_rem(y as i64) as u64
    } else {
        x % y
    };
    low(ty.bits(), remainder)
}

#[inline(always)]
pub fn min(ty: Scalar, a: u64, b: u64) -> u64 {
    low(ty.bits(), if compare(Compare::Lt, ty, b, a) { b } else { a })
}

#[inline(always)]
pub fn max(ty: Scalar, a: u64, b: u64) -> u64 {
    low(ty.bits(), if compare(Compare::Lt, ty, a, b) { b } else { a })
}

/// `shl`; `amount` has 32 bits.
#[inline(always)]
pub fn shl(ty: Scalar, a: u64, amount: u64) -> u64 {
    let amount = low(32, amount);
    if amount >= u64::from(ty.bits()) { 0 } else { low(ty.bits(), a << amount) }
}

/// `shr`, arithmetic where `ty` is signed; `amount` has 32 bits.
#[inline(always)]
pub fn shr(ty: Scalar, a: u64, amount: u64) -> u64 {
    let amount = low(32, amount);
    let x = extended(ty, a);
    let shifted = if is_signed(ty) {
        (x as i64 >> amount.min(63)) as u64
    } else if amount >= u64::from(ty.bits()) {
        0
    } else {
        x >> amount
    };
    low(ty.bits(), shifted)
}

/// A comparison of `setp`. The names `lo`, `ls`, `hi`, `hs` are unsigned whatever the type. Those
/// that speak of NaN compare as without it.
#[inline(always)]
pub fn compare(cmp: Compare, ty: Scalar, a: u64, b: u64) -> bool {
    // Flipping the sign bit maps the signed order to the unsigned one.
    let flip = u64::from(is_signed(ty)) << 63;
    let (x, y) = (extended(ty, a), extended(ty, b));
    let (s, t) = (x ^ flip, y ^ flip);
    match cmp {
        Compare::Eq | Compare::Equ => x == y,
        Compare::Ne | Compare::Neu => x != y,
        Compare::Lt | Compare::Ltu => s < t,
        Compare::Le | Compare::Leu => s <= t,
        Compare::Gt | Compare::Gtu => s > t,
        Compare::Ge | Compare::Geu => s >= t,
        Compare::Lo => low(ty.bits(), x) < low(ty.bits(), y),
        Compare::Ls => low(ty.bits(), x) <= low(ty.bits(), y),
        Compare::Hi => low(ty.bits(), x) > low(ty.bits(), y),
        Compare::Hs => low(ty.bits(), x) >= low(ty.bits(), y),
        Compare::Num => true,
        Compare::Nan => false,
    }
}

/// A two-operand instruction; packed types go element by element. `sat` is `add.sat.s32` and
/// `sub.sat.s32`.
#[inline(always)]
pub fn binary(op: IntBinary, ty: Scalar, sat: bool, a: u64, b: u64) -> u64 {
    let element = ty.element();
    if element == ty {
        return scalar(op, ty, sat, a, b);
    }
    let width = element.bits();
    let mut packed = 0;
    for lane in 0..ty.lanes() {
        let at = lane * width;
        packed |= scalar(op, element, sat, a >> at, b >> at) << at;
    }
    packed
}

#[inline(always)]
fn scalar(op: IntBinary, ty: Scalar, sat: bool, a: u64, b: u64) -> u64 {
    let width = ty.bits();
    match op {
        IntBinary::Add if sat => saturated(value(ty, a) + value(ty, b)),
        IntBinary::Sub if sat => saturated(value(ty, a) - value(ty, b)),
        IntBinary::Add => low(width, a.wrapping_add(b)),
        IntBinary::Sub => low(width, a.wrapping_sub(b)),
        IntBinary::Mul(half) => mul(half, ty, a, b),
        IntBinary::Mul24(half) => mul24(half, ty, a, b),
        IntBinary::Div => div(ty, a, b),
        IntBinary::Rem => rem(ty, a, b),
        IntBinary::Min => min(ty, a, b),
        IntBinary::Max => max(ty, a, b),
        IntBinary::And => low(width, a & b),
        IntBinary::Or => low(width, a | b),
        IntBinary::Xor => low(width, a ^ b),
        IntBinary::Shl => shl(ty, a, b),
        IntBinary::Shr => shr(ty, a, b),
    }
}

/// A one-operand instruction. `popc` and `clz` count in `ty`'s bits and return 32.
#[inline(always)]
pub fn unary(op: IntUnary, ty: Scalar, a: u64) -> u64 {
    let width = ty.bits();
    let x = extended(ty, a);
    match op {
        IntUnary::Abs => low(width, (x as i64).unsigned_abs()),
        IntUnary::Neg => low(width, x.wrapping_neg()),
        IntUnary::Not => low(width, !x),
        IntUnary::Cnot => u64::from(low(width, x) == 0),
        IntUnary::Popc => low(width, x).count_ones().into(),
        IntUnary::Clz => (low(width, x).leading_zeros() - (64 - width)).into(),
        IntUnary::Brev => x.reverse_bits() >> (64 - width),
    }
}

/// `c + |a - b|`.
#[inline(always)]
pub fn sad(ty: Scalar, a: u64, b: u64, c: u64) -> u64 {
    let distance =
        if compare(Compare::Lt, ty, a, b) { b.wrapping_sub(a) } else { a.wrapping_sub(b) };
    low(ty.bits(), c.wrapping_add(distance))
}

/// `a + b + carry` of 32 or 64 bits, and the carry out.
#[inline(always)]
pub fn add_carry(ty: Scalar, a: u64, b: u64, carry: bool) -> (u64, bool) {
    let width = ty.bits();
    let sum = u128::from(low(width, a)) + u128::from(low(width, b)) + u128::from(carry);
    (low(width, sum as u64), sum >> width != 0)
}

/// `a - (b + borrow)` of 32 or 64 bits, and the borrow out: in PTX the flag is a borrow.
#[inline(always)]
pub fn sub_borrow(ty: Scalar, a: u64, b: u64, borrow: bool) -> (u64, bool) {
    let width = ty.bits();
    let (a, b) = (u128::from(low(width, a)), u128::from(low(width, b)));
    let subtrahend = b + u128::from(borrow);
    (low(width, a.wrapping_sub(subtrahend) as u64), a < subtrahend)
}

/// `mad.cc` and `madc`: the half product plus `c` plus `carry`, and the carry out.
#[inline(always)]
pub fn mad_carry(half: Half, ty: Scalar, a: u64, b: u64, c: u64, carry: bool) -> (u64, bool) {
    add_carry(ty, mul(half, ty, a, b), c, carry)
}
