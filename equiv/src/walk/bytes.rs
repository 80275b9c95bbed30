//! Instructions that only put whole bytes elsewhere.
//!
//! # Idea
//! Packed 16-bit values are unpacked with shifts, masks and permutations. Where such an instruction
//! moves whole bytes, by numbers, the parts move with them.
//! # Invariants
//! - **M1** A moved part has the moved bytes' bits, for every input; anything else is no move.

use bitstable_ptx::ir::{Class, IntBinary, Op, Scalar};

use super::Walk;
use crate::{
    each::Each,
    value::{Value, parts},
};

impl Walk<'_> {
    /// The value of a move of `bytes` bytes, if the instruction is one.
    pub(super) fn moved_bytes(&self, op: &Op, sources: &[Value], bytes: u8) -> Option<Value> {
        match (op, sources) {
            (Op::Prmt { mode: None }, [a, b, control]) => permutation(a, b, number(control)?),
            (Op::IntBinary { op: IntBinary::Shl, ty, .. }, [a, by]) => {
                shifted(a, *ty, number(by)?, true)
            }
            (Op::IntBinary { op: IntBinary::Shr, ty, .. }, [a, by])
                if ty.class() != Class::Signed =>
            {
                shifted(a, *ty, number(by)?, false)
            }
            (Op::IntBinary { op: IntBinary::And, ty, .. }, [a, mask]) => {
                masked(a, *ty, number(mask)?)
            }
            (
                Op::IntBinary { op: IntBinary::Or | IntBinary::Xor | IntBinary::Add, ty, .. },
                [a, b],
            ) => united(a, b, *ty),
            (Op::Bfe { ty }, [a, start, length]) if ty.class() != Class::Signed => {
                let total = (ty.bits() / 8) as u8;
                let (start, length) = (whole(number(start)?)?, whole(number(length)?)?);
                let length = length.min(total.checked_sub(start)?);
                (length > 0).then(|| placed(a, total, start, length, 0))?
            }
            (Op::Cvt { to, from, sat: false, .. }, [a]) => resized(a, *to, *from, bytes),
            _ => None,
        }
    }
}

fn number(value: &Value) -> Option<u64> {
    if let Value::Bits(bits) = value { bits.uniform() } else { None }
}

fn whole(bits: u64) -> Option<u8> {
    (bits < 64 && bits.is_multiple_of(8)).then_some((bits / 8) as u8)
}

fn zeros() -> Value {
    Value::Bits(Each::All(0))
}

/// Data in parts or atoms; numbers and forms have better rules.
fn is_data(value: &Value) -> bool {
    matches!(value, Value::Atoms(..) | Value::Parts(..))
}

/// `length` bytes from `start`, put at `to` among zeros.
fn placed(value: &Value, total: u8, start: u8, length: u8, to: u8) -> Option<Value> {
    if !is_data(value) || length == 0 {
        return None;
    }
    let unit = [total, start, length, to].iter().fold(0, |a, b| gcd(a, *b));
    let piece = value.piece(total, start, length);
    if matches!(piece, Value::Undefined) {
        return None;
    }
    let mut each = vec![zeros(); usize::from(total / unit)];
    for (at, part) in piece.split(length, unit).into_iter().enumerate() {
        if matches!(part, Value::Undefined) {
            return None;
        }
        each[usize::from(to / unit) + at] = part;
    }
    Some(parts(each, unit))
}

/// Bytes of either, where the other's are zero.
fn united(a: &Value, b: &Value, ty: Scalar) -> Option<Value> {
    let total = (ty.bits() / 8) as u8;
    let size = |value: &Value| if let Value::Parts(_, size) = value { *size } else { total };
    let unit = size(a).min(size(b));
    if ty.lanes() != 1 || unit == total || !is_data(a) && !is_data(b) {
        return None;
    }
    let zero = |value: &Value| matches!(value, Value::Bits(bits) if bits.all(|bits| bits == 0));
    let (a, b) = (a.split(total, unit), b.split(total, unit));
    let each: Option<Vec<Value>> = a
        .into_iter()
        .zip(b)
        .map(|(a, b)| if zero(&a) { Some(b) } else { zero(&b).then_some(a) })
        .collect();
    let each = each?;
    let unknown = each.iter().any(|value| matches!(value, Value::Undefined));
    (!unknown).then(|| parts(each, unit))
}

fn gcd(a: u8, b: u8) -> u8 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn shifted(value: &Value, ty: Scalar, by: u64, up: bool) -> Option<Value> {
    let total = (ty.bits() / 8) as u8;
    let by = whole(by)?;
    let length = total.checked_sub(by)?;
    if ty.lanes() != 1 || length == 0 || by == 0 {
        return None;
    }
    if up { placed(value, total, 0, length, by) } else { placed(value, total, by, length, 0) }
}

/// A mask of whole bytes that hang together.
fn masked(value: &Value, ty: Scalar, mask: u64) -> Option<Value> {
    let total = (ty.bits() / 8) as u8;
    if mask == 0 {
        return None;
    }
    let start = (mask.trailing_zeros() / 8) as u8;
    let length = ((mask >> (8 * u32::from(start))).trailing_ones() / 8) as u8;
    let exact = if length >= 8 { u64::MAX } else { ((1 << (8 * length)) - 1) << (8 * start) };
    if mask != exact || start + length > total {
        return None;
    }
    placed(value, total, start, length, start)
}

/// Between integers: truncation, and extension by zeros.
fn resized(value: &Value, to: Scalar, from: Scalar, bytes: u8) -> Option<Value> {
    let integer = |ty: Scalar| {
        ty.lanes() == 1 && matches!(ty.class(), Class::Bits | Class::Unsigned | Class::Signed)
    };
    if !integer(to) || !integer(from) || !is_data(value) {
        return None;
    }
    let (wide, narrow) = ((to.bits() / 8) as u8, (from.bits() / 8) as u8);
    let length = wide.min(narrow);
    if wide > narrow && from.class() == Class::Signed {
        return None;
    }
    if bytes > wide && to.class() == Class::Signed {
        return None;
    }
    let own = match value {
        Value::Atoms(_, own) => *own,
        Value::Parts(all, size) => *size * all.len() as u8,
        Value::Undefined | Value::Bits(_) | Value::Linear(_) => return None,
    };
    let piece = value.piece(own, 0, length);
    if matches!(piece, Value::Undefined) || length == 0 {
        return None;
    }
    if length == bytes {
        return Some(piece);
    }
    let mut each = vec![piece];
    each.resize(usize::from(bytes / length), zeros());
    Some(parts(each, length))
}

/// `prmt` by a number: each byte from one of eight, none of them a sign.
fn permutation(a: &Value, b: &Value, control: u64) -> Option<Value> {
    let selectors: [u64; 4] = std::array::from_fn(|at| control >> (4 * at) & 15);
    if selectors.iter().any(|selector| *selector > 7) {
        return None;
    }
    let pairs = selectors[0].is_multiple_of(2)
        && selectors[1] == selectors[0] + 1
        && selectors[2].is_multiple_of(2)
        && selectors[3] == selectors[2] + 1;
    let unit = if pairs { 2 } else { 1 };
    let mut each = Vec::new();
    for selector in selectors.iter().step_by(unit) {
        let (from, start) = if *selector < 4 { (a, *selector) } else { (b, *selector - 4) };
        let piece = from.piece(4, start as u8, unit as u8);
        if matches!(piece, Value::Undefined) {
            return None;
        }
        each.push(piece);
    }
    Some(parts(each, unit as u8))
}
