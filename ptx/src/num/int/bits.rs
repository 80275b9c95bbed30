//! Bit fields, permutes, masks and small dot products.
//!
//! # Idea
//! One function an instruction, on 32 bits unless a type is named. Start and length operands are
//! read as the manual says: their low 8 bits for fields, all 32 with `.clamp`, the low 5 with
//! `.wrap`.

use super::{is_signed, low};
use crate::ir::Scalar;
use crate::num::convert::extended;

/// `bfe`: a field of `a`, extended by its own sign where `ty` is signed.
#[inline(always)]
pub fn bfe(ty: Scalar, a: u64, start: u64, length: u64) -> u64 {
    let width = ty.bits();
    let (start, length) = ((start & 0xff) as u32, (length & 0xff) as u32);
    if length == 0 {
        return 0;
    }
    // Beyond the top the sign of the whole goes on, which is the field's sign there.
    let x = extended(ty, a);
    let field = if is_signed(ty) {
        (x as i64 >> start.min(63)) as u64
    } else {
        x.checked_shr(start).unwrap_or(0)
    };
    let unused = 64 - length.min(64);
    let field = if is_signed(ty) {
        ((field << unused) as i64 >> unused) as u64
    } else {
        (field << unused) >> unused
    };
    low(width, field)
}

/// `bfi`: the low bits of `a` over a field of `b`.
#[inline(always)]
pub fn bfi(ty: Scalar, a: u64, b: u64, start: u64, length: u64) -> u64 {
    let width = ty.bits();
    let (start, length) = ((start & 0xff) as u32, (length & 0xff) as u32);
    let ones = if length == 0 { 0 } else { low(length, u64::MAX) };
    let mask = ones.checked_shl(start).unwrap_or(0);
    let field = a.checked_shl(start).unwrap_or(0);
    low(width, (b & !mask) | (field & mask))
}

/// `bfind`: position of the highest bit that differs from the sign, all ones if there is none.
#[inline(always)]
pub fn bfind(ty: Scalar, shiftamt: bool, a: u64) -> u32 {
    let width = ty.bits();
    let x = extended(ty, a);
    let x = if is_signed(ty) && (x as i64) < 0 { !x } else { x };
    match x.checked_ilog2() {
        None => u32::MAX,
        Some(position) if shiftamt => width - 1 - position,
        Some(position) => position,
    }
}

/// `bmsk`: `width` ones from bit `start` on.
#[inline(always)]
pub fn bmsk(clamp: bool, start: u32, width: u32) -> u32 {
    if clamp && start >= 32 {
        return 0;
    }
    let from = u32::MAX << (start & 31);
    let end = (start & 31) + (width & 31);
    // A width of 32 or more clamps to the top; wrapped to 0 it is nothing.
    let beyond = if end >= 32 || (clamp && width >= 32) { 0 } else { u32::MAX << end };
    from & !beyond
}

/// `szext`: the low `count` bits of `a`, extended by their sign where `ty` is signed.
#[inline(always)]
pub fn szext(ty: Scalar, clamp: bool, a: u32, count: u32) -> u32 {
    if clamp && count >= 32 {
        return a;
    }
    match count & 31 {
        0 => 0,
        count if is_signed(ty) => ((a << (32 - count)) as i32 >> (32 - count)) as u32,
        count => a & !(u32::MAX << count),
    }
}

/// `fns`: position of the `offset`-th set bit from `base` on, downwards where negative; all ones if
/// there is none.
#[inline]
pub fn fns(mask: u32, base: u32, offset: u32) -> u32 {
    let offset = offset as i32;
    let set = |position: i64| (0..32).contains(&position) && mask >> position & 1 == 1;
    let mut position = i64::from(base);
    if offset == 0 {
        return if set(position) { base } else { u32::MAX };
    }
    let step = i64::from(offset.signum());
    let mut left = offset.unsigned_abs();
    while (0..32).contains(&position) {
        left -= u32::from(set(position));
        if left == 0 {
            return position as u32;
        }
        position += step;
    }
    u32::MAX
}

/// `lop3`: bit `4a + 2b + c` of the table, for each bit.
#[inline(always)]
pub fn lop3(a: u32, b: u32, c: u32, table: u8) -> u32 {
    let mut result = 0;
    for row in 0..8 {
        let pick = |bits: u32, wanted: bool| if wanted { bits } else { !bits };
        let minterm = pick(a, row & 4 != 0) & pick(b, row & 2 != 0) & pick(c, row & 1 != 0);
        if table >> row & 1 == 1 {
            result |= minterm;
        }
    }
    result
}

/// `shf`: 32 bits of `b:a` shifted.
#[inline(always)]
pub fn shf(left: bool, clamp: bool, a: u32, b: u32, amount: u32) -> u32 {
    let amount = if clamp { amount.min(32) } else { amount & 31 };
    let both = u64::from(b) << 32 | u64::from(a);
    if left { ((both << amount) >> 32) as u32 } else { (both >> amount) as u32 }
}

/// How `prmt` reads its control.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Permute {
    /// Four selectors of four bits.
    #[strum(disabled)]
    Index,
    /// Forward, four bytes from the selected one on.
    F4e,
    /// Backward.
    B4e,
    /// The selected byte four times.
    Rc8,
    /// Edge clamp, left: bytes below the selected one repeat it.
    Ecl,
    /// Edge clamp, right: bytes above the selected one repeat it.
    Ecr,
    /// The selected half-word twice.
    Rc16,
}

/// `prmt`: four bytes of `b:a`.
#[inline(always)]
pub fn prmt(mode: Permute, a: u32, b: u32, control: u32) -> u32 {
    let selected = control & 3;
    let mut result = 0;
    for place in 0..4 {
        let byte = match mode {
            Permute::Index => control >> (4 * place) & 0xf,
            Permute::F4e => selected + place,
            Permute::B4e => selected.wrapping_sub(place) & 7,
            Permute::Rc8 => selected,
            Permute::Ecl => selected.max(place),
            Permute::Ecr => selected.min(place),
            Permute::Rc16 => (selected & 1) * 2 + (place & 1),
        };
        let both = u64::from(b) << 32 | u64::from(a);
        let value = (both >> (8 * (byte & 7))) as u8;
        let value = if byte & 8 != 0 { ((value as i8) >> 7) as u8 } else { value };
        result |= u32::from(value) << (8 * place);
    }
    result
}

/// Element `index` of `width` bits, extended as `ty` (`u32` or `s32`) says.
#[inline(always)]
fn element(ty: Scalar, width: u32, word: u32, index: u32) -> i64 {
    let unused = 64 - width;
    let bits = u64::from(word) >> (width * index) << unused;
    if is_signed(ty) { bits as i64 >> unused } else { (bits >> unused) as i64 }
}

/// `dp4a`: four products of bytes added to `c`, wrapping.
#[inline(always)]
pub fn dp4a(a_type: Scalar, b_type: Scalar, a: u32, b: u32, c: u32) -> u32 {
    let mut sum = i64::from(c);
    for index in 0..4 {
        sum += element(a_type, 8, a, index) * element(b_type, 8, b, index);
    }
    sum as u32
}

/// `dp2a`: two products of half-words of `a` with the low or high bytes of `b`, added to `c`.
#[inline(always)]
pub fn dp2a(high: bool, a_type: Scalar, b_type: Scalar, a: u32, b: u32, c: u32) -> u32 {
    let first = if high { 2 } else { 0 };
    let mut sum = i64::from(c);
    for index in 0..2 {
        sum += element(a_type, 16, a, index) * element(b_type, 8, b, first + index);
    }
    sum as u32
}
