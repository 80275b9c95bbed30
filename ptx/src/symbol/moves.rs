//! Integer instructions that only put bytes elsewhere.
//!
//! # Idea
//! Triton packs and unpacks 16-bit values with shifts, masks and byte permutations. Where such an
//! instruction moves whole bytes, by numbers, the pieces move with them; where a mask touches only
//! a float's sign, it is `neg` or `abs`. Anything else is no move, and becomes a node (`lane.rs`).
//! # Invariants
//! - **V1** A byte whose piece moved has the moved byte's bits, for every input.
//! # Held by
//! V1: `tests/symbol_moves.rs`, which runs every move on random bits.

use smallvec::{SmallVec, smallvec};

use super::{
    Limit,
    graph::Graph,
    piece::{Piece, Value, WIDEST},
};
use crate::{
    ir::{Class, FloatMode, FloatUnary, IntBinary, IntUnary, Op, Scalar},
    report::Site,
};

/// What each destination holds after a move.
pub(crate) type Moved = SmallVec<[[Piece; WIDEST]; 2]>;

/// The move that `op` makes on these sources, if it is one; `dst` destinations.
pub(crate) fn moved(
    graph: &mut Graph,
    op: &Op,
    src: &[Value],
    dst: usize,
    site: Site,
) -> Result<Option<Moved>, Limit> {
    if let Some((table, ty)) = bitwise_table(op, src) {
        let bytes = ty.bytes() as usize;
        let pieces = bitwise(graph, table, src, bytes, site)?;
        return Ok(pieces.map(|pieces| smallvec![pieces]));
    }
    if let Op::Mov { ty } = op {
        return Ok(concatenation(*ty, src, dst));
    }
    Ok(placed(op, src).map(|pieces| smallvec![pieces]))
}

/// `mov`: the sources in a row are the destinations in a row.
fn concatenation(ty: Scalar, src: &[Value], dst: usize) -> Option<Moved> {
    let total = ty.bytes() as usize;
    let (unit, out) = (total.checked_div(src.len())?, total.checked_div(dst)?);
    if unit == 0 || out == 0 || unit > WIDEST || out > WIDEST {
        return None;
    }
    let row: SmallVec<[Piece; 16]> =
        src.iter().flat_map(|value| value.pieces[..unit].iter().copied()).collect();
    let mut all = Moved::new();
    for run in row.chunks(out).take(dst) {
        let mut pieces = [Piece::NUMBER; WIDEST];
        pieces[..run.len()].copy_from_slice(run);
        all.push(pieces);
    }
    Some(all)
}

/// Shifts, permutations, fields and conversions by whole bytes.
fn placed(op: &Op, src: &[Value]) -> Option<[Piece; WIDEST]> {
    if let (Op::Prmt { mode: None }, [a, b, control]) = (op, src) {
        return permutation(a, b, control);
    }
    if let (Op::IntBinary { op, ty, .. }, [a, by]) = (op, src) {
        let bytes = (ty.lanes() == 1).then_some(ty.bytes() as usize)?;
        let by = number(by, 4)?;
        return match op {
            IntBinary::Shl => shifted_up(a, bytes, whole_bytes(by, bytes)?),
            IntBinary::Shr => {
                shifted_down(a, bytes, whole_bytes(by, bytes)?, ty.class() == Class::Signed)
            }
            // `x + 0` and `x * 1` are left by address folding.
            IntBinary::Add
            | IntBinary::Sub
            | IntBinary::Mul(_)
            | IntBinary::Mul24(_)
            | IntBinary::Div
            | IntBinary::Rem
            | IntBinary::Min
            | IntBinary::Max
            | IntBinary::And
            | IntBinary::Or
            | IntBinary::Xor => None,
        };
    }
    if let (Op::Bfe { ty }, [a, start, length]) = (op, src) {
        let bytes = ty.bytes() as usize;
        let start = whole_bytes(number(start, 1)? & 255, bytes)?;
        let length = whole_bytes(number(length, 1)? & 255, bytes)?;
        let signed = ty.class() == Class::Signed;
        let field = a.slice(start, length.min(bytes.saturating_sub(start)));
        let negative_unknown = signed && length > 0 && !a.is_number(bytes);
        return (!negative_unknown || start == 0 && length >= bytes).then_some(field.pieces);
    }
    if let (Op::Bfi { ty }, [field, base, start, length]) = (op, src) {
        let bytes = ty.bytes() as usize;
        let start = whole_bytes(number(start, 1)? & 255, bytes)?;
        let length = whole_bytes(number(length, 1)? & 255, bytes)?;
        let mut out = base.slice(0, bytes).pieces;
        let end = bytes.min(start + length);
        out[start..end].copy_from_slice(&field.pieces[..end - start]);
        return Some(out);
    }
    if let (Op::Shf { left, clamp }, [low, high, by]) = (op, src) {
        let by = number(by, 4)?;
        let by = whole_bytes(if *clamp { by.min(32) } else { by & 31 }, 4)?;
        let start = if *left { 4 - by } else { by };
        let mut row = [Piece::NUMBER; 12];
        row[..4].copy_from_slice(&low.pieces[..4]);
        row[4..8].copy_from_slice(&high.pieces[..4]);
        let mut out = [Piece::NUMBER; WIDEST];
        out[..4].copy_from_slice(&row[start..start + 4]);
        return Some(out);
    }
    if let (Op::Cvt { to, from, sat: false, .. }, [a]) = (op, src) {
        return resized(a, *to, *from);
    }
    None
}

/// Between integers: truncation, and extension by zeros.
fn resized(a: &Value, to: Scalar, from: Scalar) -> Option<[Piece; WIDEST]> {
    let integer = |ty: Scalar| matches!(ty.class(), Class::Bits | Class::Unsigned | Class::Signed);
    if !integer(to) || !integer(from) || from.lanes() != 1 || to.lanes() != 1 {
        return None;
    }
    let (to, from, signed) = (to.bytes(), from.bytes(), from.class() == Class::Signed);
    let extends = to > from && signed && !a.slice(from as usize - 1, 1).is_number(1);
    (!extends).then(|| a.slice(0, to.min(from) as usize).pieces)
}

fn number(value: &Value, bytes: usize) -> Option<u64> {
    value.is_number(bytes).then(|| value.slice(0, bytes).bits)
}

/// A count of bits as a count of bytes, at most `most` of them.
fn whole_bytes(bits: u64, most: usize) -> Option<usize> {
    bits.is_multiple_of(8).then(|| (bits / 8).min(most as u64) as usize)
}

fn shifted_up(a: &Value, bytes: usize, by: usize) -> Option<[Piece; WIDEST]> {
    let mut out = [Piece::NUMBER; WIDEST];
    out[by..bytes].copy_from_slice(&a.pieces[..bytes - by]);
    Some(out)
}

fn shifted_down(a: &Value, bytes: usize, by: usize, signed: bool) -> Option<[Piece; WIDEST]> {
    let fills_with_sign = signed && by > 0 && !a.pieces[bytes - 1].is_number();
    (!fills_with_sign).then(|| a.slice(by, bytes - by).pieces)
}

/// Each nibble of the control picks a byte of `{b, a}`, or with its top bit that byte's sign.
fn permutation(a: &Value, b: &Value, control: &Value) -> Option<[Piece; WIDEST]> {
    let control = number(control, 4)?;
    let mut out = [Piece::NUMBER; WIDEST];
    for (at, piece) in out.iter_mut().enumerate().take(4) {
        let pick = (control >> (4 * at) & 15) as usize;
        let source = if pick & 4 == 0 { a } else { b }.pieces[pick & 3];
        if pick & 8 != 0 && !source.is_number() {
            return None;
        }
        *piece = source;
    }
    Some(out)
}

/// A bit of the result for each choice of source bits: bit `a << 2 | b << 1 | c`.
fn bitwise_table(op: &Op, src: &[Value]) -> Option<(u8, Scalar)> {
    if let (Op::IntBinary { op, ty, .. }, [_, _]) = (op, src) {
        let table = match op {
            IntBinary::And => 0xC0,
            IntBinary::Or => 0xFC,
            IntBinary::Xor => 0x3C,
            IntBinary::Add
            | IntBinary::Sub
            | IntBinary::Mul(_)
            | IntBinary::Mul24(_)
            | IntBinary::Div
            | IntBinary::Rem
            | IntBinary::Min
            | IntBinary::Max
            | IntBinary::Shl
            | IntBinary::Shr => return None,
        };
        return (*ty != Scalar::Pred).then_some((table, *ty));
    }
    if let (Op::IntUnary { op: IntUnary::Not, ty }, [_]) = (op, src) {
        return (*ty != Scalar::Pred).then_some((0x0F, *ty));
    }
    if let (Op::Lop3, [_, _, _, table]) = (op, src) {
        return Some((number(table, 1)? as u8, Scalar::B32));
    }
    None
}

/// What a bitwise operation with numbers does to one byte of one source.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effect {
    Number,
    Keep(Piece),
    /// Seven bits kept; the sign bit cleared, set or inverted.
    Sign(Piece, Sign),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sign {
    Clear,
    Set,
    Flip,
}

fn bitwise(
    graph: &mut Graph,
    table: u8,
    src: &[Value],
    bytes: usize,
    site: Site,
) -> Result<Option<[Piece; WIDEST]>, Limit> {
    let mut effects = [Effect::Number; WIDEST];
    for (at, effect) in effects.iter_mut().enumerate().take(bytes) {
        let Some(found) = effect_on(table, src, at) else {
            return Ok(None);
        };
        *effect = found;
    }
    let mut out = [Piece::NUMBER; WIDEST];
    for at in 0..bytes {
        match effects[at] {
            Effect::Number => {}
            Effect::Keep(piece) => out[at] = piece,
            Effect::Sign(piece, sign) => {
                let width = piece.part() + 1;
                let Some(start) = (at + 1).checked_sub(width) else {
                    return Ok(None);
                };
                if !signed_whole(graph, &effects[start..=at], piece) {
                    return Ok(None);
                }
                let pieces = with_sign(graph, piece, sign, site)?;
                out[start..=at].copy_from_slice(&pieces[..width]);
            }
        }
    }
    Ok(Some(out))
}

/// The bytes are one whole float, its sign byte last.
fn signed_whole(graph: &Graph, effects: &[Effect], top: Piece) -> bool {
    let Some(node) = top.node() else {
        return false;
    };
    let ty = graph.ty(node);
    let whole = ty.bytes() as usize == effects.len() && ty.lanes() == 1;
    let kept = (0..effects.len() - 1).all(|k| effects[k] == Effect::Keep(Piece::of(node, k)));
    whole && kept && ty.class() == Class::Float && ty.bits() >= 16
}

fn with_sign(
    graph: &mut Graph,
    top: Piece,
    sign: Sign,
    site: Site,
) -> Result<[Piece; WIDEST], Limit> {
    let Some(mut node) = top.node() else {
        return Ok([Piece::NUMBER; WIDEST]);
    };
    let ty = graph.ty(node);
    let steps: &[FloatUnary] = match sign {
        Sign::Clear => &[FloatUnary::Abs],
        Sign::Set => &[FloatUnary::Abs, FloatUnary::Neg],
        Sign::Flip => &[FloatUnary::Neg],
    };
    for op in steps {
        let op = Op::FloatUnary { op: *op, ty, mode: FloatMode::default() };
        node = graph.operation(&op, ty, &[node], site)?;
    }
    Ok(Value::whole(node, ty.bytes() as usize))
}

fn effect_on(table: u8, src: &[Value], at: usize) -> Option<Effect> {
    let sources = &src[..src.len().min(3)];
    let mut symbolic = sources.iter().enumerate().filter(|(_, v)| !v.pieces[at].is_number());
    let Some((which, value)) = symbolic.next() else {
        return Some(Effect::Number);
    };
    if symbolic.next().is_some() {
        return None;
    }
    // Of the eight bits: which come out 1 when this source's bit is 0, and when it is 1.
    let (mut from0, mut from1) = (0u8, 0u8);
    for bit in 0..8 {
        let index = |this: u8| {
            sources.iter().enumerate().fold(0, |index, (k, value)| {
                let on = if k == which { this } else { value.byte(at) >> bit & 1 };
                index | on << (2 - k)
            })
        };
        from0 |= (table >> index(0) & 1) << bit;
        from1 |= (table >> index(1) & 1) << bit;
    }
    let piece = value.pieces[at];
    if from0 == from1 {
        return Some(Effect::Number);
    }
    let kept = !from0 & from1;
    match (kept, from0 & 0x80, from1 & 0x80) {
        (0xFF, ..) => Some(Effect::Keep(piece)),
        (0x7F, 0, 0) => Some(Effect::Sign(piece, Sign::Clear)),
        (0x7F, 0x80, 0x80) => Some(Effect::Sign(piece, Sign::Set)),
        (0x7F, 0x80, 0) => Some(Effect::Sign(piece, Sign::Flip)),
        _ => None,
    }
}
