//! `add`, `sub` and `mad` with the condition code.
//!
//! # Idea
//! One carry bit a lane, in [`Registers::carry`]; the payload says whether it is read and written.
//! # Invariants
//! - **C1** The carry of a lane outside the mask stays.
//! # Held by
//! `ptx/tests/alu/integer.rs`: chains of two limbs against the arithmetic of twice the width.

use super::{
    Lowered,
    rows::{Row, Value, gather, map},
    types::{by_type, by_value},
};
use crate::{
    exec::{
        lane::{LaneFn, Operands},
        registers::{Mask, Registers},
    },
    ir::{Half, Scalar},
    num::{float::Word, int},
};

/// Which way the condition code flows.
#[derive(Clone, Copy)]
pub(super) struct Flow {
    pub reads: bool,
    pub writes: bool,
}

const READS: u64 = 1;
const WRITES: u64 = 2;

impl Flow {
    fn payload(self) -> u64 {
        (if self.reads { READS } else { 0 }) | (if self.writes { WRITES } else { 0 })
    }
}

/// Computes a limb and its carry in each lane.
#[inline(always)]
fn limbs<T: Value>(
    registers: &mut Registers,
    operands: &Operands,
    mask: Mask,
    limb: impl Fn([T; 3], bool) -> (T, bool),
) {
    let [dst, ..] = operands.dst[..] else { return };
    // Two sources, or three of `mad`; a third that is not there is not looked at.
    let source = |index| operands.src.get(index).map(|&slot| T::load(registers, slot));
    let sources = [0, 1, 2].map(|index| source(index).unwrap_or_default());
    let carry = if operands.payload & READS != 0 { registers.carry } else { 0 };
    let row: Row<(T, bool)> =
        map(|lane| limb(sources.map(|source| source[lane]), carry & (1 << lane) != 0));
    T::store(registers, dst, &map(|lane| row[lane].0), mask);
    if operands.payload & WRITES != 0 {
        let out = gather(&map(|lane| row[lane].1));
        registers.carry = (registers.carry & !mask) | (out & mask);
    }
}

/// A [`LaneFn`] from an expression for one limb of type `$T`.
macro_rules! limbs {
    ($T:ty; |$a:ident, $b:ident, $c:ident, $carry:ident| $limb:expr) => {{
        fn run(registers: &mut Registers, operands: &Operands, mask: Mask) {
            limbs::<$T>(registers, operands, mask, |[$a, $b, $c], $carry| {
                let (limb, carry) = $limb;
                (<$T>::narrow(limb), carry)
            });
        }
        run as LaneFn
    }};
}

/// `add.cc`, `addc`, `addc.cc`.
pub(super) fn add(ty: Scalar, flow: Flow) -> Option<Lowered> {
    let run = by_type!(ty; U32 | S32 => u32, U64 | S64 => u64; TY: T =>
        limbs!(T; |a, b, _c, carry| int::add_carry(TY, a.wide(), b.wide(), carry)))?;
    Some(Lowered::with(run, flow.payload()))
}

/// `sub.cc`, `subc`, `subc.cc`.
pub(super) fn sub(ty: Scalar, flow: Flow) -> Option<Lowered> {
    let run = by_type!(ty; U32 | S32 => u32, U64 | S64 => u64; TY: T =>
        limbs!(T; |a, b, _c, borrow| int::sub_borrow(TY, a.wide(), b.wide(), borrow)))?;
    Some(Lowered::with(run, flow.payload()))
}

/// `mad.lo.cc`, `madc.hi` and their kin.
pub(super) fn mad(half: Half, ty: Scalar, flow: Flow) -> Option<Lowered> {
    let run = by_value!(half; Half { Lo, Hi }; HALF =>
    by_type!(ty; U32 | S32 => u32, U64 | S64 => u64; TY: T =>
        limbs!(T; |a, b, c, carry| {
            int::mad_carry(HALF, TY, a.wide(), b.wide(), c.wide(), carry)
        })))?;
    Some(Lowered::with(run, flow.payload()))
}
