//! Moves, selections and generic addresses: bits change place and nothing else.
//!
//! # Idea
//! A register is a row whatever its type, so these ask for widths only. `mov` between a register
//! and the pieces of one goes through 128-bit values; the two common shapes have their own loops.
//! # Invariants
//! - **V1** The first piece of `{a, b, …}` is the least significant.
//! # Held by
//! `ptx/tests/alu/moves.rs`.

use super::{
    Lowered,
    rows::{Row, Value, lanes, map},
    types::by_type,
};
use crate::{
    exec::{
        lane::{LaneFn, Operands},
        registers::{LANES, Mask, Registers, Slot},
    },
    ir::{Compare, Scalar, Space},
    memory::space::{generic, resolve},
    num::float::{F32, Float},
};

/// [`by_type`] for what `mov`, `selp` and `slct` move: bits, integers and floats that are not packed.
macro_rules! movable {
    ($ty:expr, $T:ident => $body:expr) => {
        by_type!($ty;
            B16 | U16 | S16 | B32 | U32 | S32 | F32 => u32, B64 | U64 | S64 | F64 => u64;
            _TY: $T => $body)
    };
}

/// `mov`.
pub(super) fn mov(ty: Scalar, operands: &Operands) -> Option<Lowered> {
    if movable!(ty, T => size_of::<T>()).is_none() && !matches!(ty, Scalar::Pred | Scalar::B128) {
        return None;
    }
    let run: LaneFn = match (operands.dst.as_slice(), operands.src.as_slice()) {
        ([Slot::Flag(_)], [_]) => lanes!(|a: bool| -> bool { a }),
        ([Slot::Word(_)], [_]) => lanes!(|a: u32| -> u32 { a }),
        ([Slot::Wide(_)], [_]) => lanes!(|a: u64| -> u64 { a }),
        ([Slot::Quad(_)], [_]) => lanes!(|a: u128| -> u128 { a }),
        ([Slot::Word(_)], [_, _]) if ty.bits() == 32 => {
            lanes!(|low: u32, high: u32| -> u32 { low | high << 16 })
        }
        ([Slot::Wide(_)], [_, _]) => {
            lanes!(|low: u32, high: u32| -> u64 { u64::from(low) | u64::from(high) << 32 })
        }
        ([_, _], [Slot::Word(_)]) if ty.bits() == 32 => halves_of_word,
        ([_, _], [Slot::Wide(_)]) => halves_of_wide,
        _ => repack,
    };
    Some(Lowered::with(run, u64::from(ty.bits())))
}

fn halves_of_word(registers: &mut Registers, operands: &Operands, mask: Mask) {
    let whole = u32::load(registers, operands.src[0]);
    u32::store(registers, operands.dst[0], &map(|lane| whole[lane] & 0xffff), mask);
    u32::store(registers, operands.dst[1], &map(|lane| whole[lane] >> 16), mask);
}

fn halves_of_wide(registers: &mut Registers, operands: &Operands, mask: Mask) {
    let whole = u64::load(registers, operands.src[0]);
    u32::store(registers, operands.dst[0], &map(|lane| whole[lane] as u32), mask);
    u32::store(registers, operands.dst[1], &map(|lane| (whole[lane] >> 32) as u32), mask);
}

/// Any pieces to any pieces; the payload is the width of the whole.
fn repack(registers: &mut Registers, operands: &Operands, mask: Mask) {
    let width = |pieces: usize| operands.payload as u32 / pieces.max(1) as u32;
    let (from, to) = (width(operands.src.len()), width(operands.dst.len()));
    let mut whole: Row<u128> = [0; LANES];
    for (piece, &slot) in (0..).zip(&operands.src) {
        let part = load_any(registers, slot);
        for lane in 0..LANES {
            whole[lane] |= part[lane] << (piece * from);
        }
    }
    for (piece, &slot) in (0..).zip(&operands.dst) {
        let part = map(|lane| whole[lane] >> (piece * to) & (u128::MAX >> (128 - to)));
        store_any(registers, slot, &part, mask);
    }
}

fn load_any(registers: &Registers, slot: Slot) -> Row<u128> {
    if let Slot::Quad(_) = slot {
        return u128::load(registers, slot);
    }
    map(|lane| u128::from(registers.lane(slot, lane)))
}

fn store_any(registers: &mut Registers, slot: Slot, row: &Row<u128>, mask: Mask) {
    match slot {
        Slot::Flag(_) => bool::store(registers, slot, &map(|lane| row[lane] & 1 != 0), mask),
        Slot::Word(_) => u32::store(registers, slot, &map(|lane| row[lane] as u32), mask),
        Slot::Wide(_) => u64::store(registers, slot, &map(|lane| row[lane] as u64), mask),
        Slot::Quad(_) => u128::store(registers, slot, row, mask),
        Slot::Sink => {}
    }
}

/// `cvta` on 64-bit addresses; `None` for 32-bit ones, which no window fits into.
pub(super) fn cvta(to: bool, space: Space, ty: Scalar) -> Option<Lowered> {
    let run = match (space, to, ty.bits()) {
        (_, _, 64) if generic(space, 0) == 0 => lanes!(|a: u64| -> u64 { a }),
        (Space::Shared | Space::SharedCluster, false, 64) => {
            lanes!(|a: u64| -> u64 { generic(Space::Shared, a) })
        }
        (Space::Shared | Space::SharedCluster, true, 64) => {
            lanes!(|a: u64| -> u64 { a.wrapping_sub(generic(Space::Shared, 0)) })
        }
        (Space::Local, false, 64) => lanes!(|a: u64| -> u64 { generic(Space::Local, a) }),
        (Space::Local, true, 64) => {
            lanes!(|a: u64| -> u64 { a.wrapping_sub(generic(Space::Local, 0)) })
        }
        _ => return None,
    };
    Some(run.into())
}

/// `isspacep`. Parameters and constants have global addresses, so their question has no answer.
pub(super) fn isspacep(space: Space) -> Option<Lowered> {
    let run = match space {
        Space::Global => {
            lanes!(|a: u64| -> bool { resolve(Space::Generic, a).0 == Space::Global })
        }
        Space::Shared | Space::SharedCluster => {
            lanes!(|a: u64| -> bool { resolve(Space::Generic, a).0 == Space::Shared })
        }
        Space::Local => lanes!(|a: u64| -> bool { resolve(Space::Generic, a).0 == Space::Local }),
        Space::Generic | Space::Param | Space::Const => return None,
    };
    Some(run.into())
}

/// `selp`.
pub(super) fn selp(ty: Scalar) -> Option<LaneFn> {
    movable!(ty, T => lanes!(|a: T, b: T, c: bool| -> T { if c { a } else { b } }))
}

/// `slct`: the first where the third is not negative; a NaN takes the second.
pub(super) fn slct(ty: Scalar, by: Scalar, ftz: bool) -> Option<Lowered> {
    let run = match (by, ftz) {
        (Scalar::S32, false) => movable!(ty, T =>
            lanes!(|a: T, b: T, c: u32| -> T { if c as i32 >= 0 { a } else { b } })),
        (Scalar::F32, _) => movable!(ty, T => lanes!(payload => |a: T, b: T, c: u32| -> T {
            if F32::compare(Compare::Ge, c, 0, payload != 0) { a } else { b }
        })),
        _ => None,
    };
    Some(Lowered::with(run?, u64::from(ftz)))
}
