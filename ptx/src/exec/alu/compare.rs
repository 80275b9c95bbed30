//! `setp`, `set` and `testp`: comparisons, and what becomes of their truth.
//!
//! # Idea
//! Comparing gives a mask of lanes; joining it with a predicate and writing it, as a predicate or as
//! a pattern, is the same code for every type and relation ([`Outcome`]).
//! # Invariants
//! - **C1** `p = join(t, c)` and `q = join(!t, c)`: the comparison is negated, not the joined value.
//! # Held by
//! `ptx/tests/alu/compare.rs`.
//! # Not here
//! Negated predicate operands: decoding gives them rows of their own.

use std::marker::PhantomData;

use super::{
    Lowered,
    host::{Kernel, compile, plain},
    rows::{Value, gather, lanes, map},
    types::{bits, by_type, by_value, integers},
};
use crate::{
    exec::{
        lane::{LaneFn, Operands},
        registers::{Mask, Registers, Slot},
    },
    ir::{Compare, Logic, Scalar, TestProperty},
    num::{
        float::{BF16, F16, F32, F64, Float, Word},
        int,
    },
};

/// The payload of a comparison.
#[derive(Clone, Copy)]
struct Join(u64);

impl Join {
    const FTZ: u64 = 4;

    /// `truth`: what `set` writes where the comparison holds.
    fn new(join: Option<Logic>, ftz: bool, truth: u32) -> Self {
        let join = match join {
            None => 0,
            Some(Logic::And) => 1,
            Some(Logic::Or) => 2,
            Some(Logic::Xor) => 3,
        };
        let ftz = if ftz { Self::FTZ } else { 0 };
        Self(join | ftz | u64::from(truth) << 32)
    }

    fn truth(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The comparison joined with the predicate that follows it.
    #[inline(always)]
    fn apply(self, holds: Mask, registers: &Registers, operands: &Operands) -> Mask {
        let predicate = || operands.src.get(2).map_or(0, |slot| registers.flags[slot.row()]);
        match self.0 & 3 {
            1 => holds & predicate(),
            2 => holds | predicate(),
            3 => holds ^ predicate(),
            _ => holds,
        }
    }
}

/// What a comparison's truth is written as.
trait Outcome {
    fn compile<K: Kernel>() -> LaneFn;
    fn write(registers: &mut Registers, operands: &Operands, mask: Mask, holds: Mask);
}

/// `setp`: a predicate and, for `p|q`, the one of the opposite comparison.
struct Predicates;
impl Outcome for Predicates {
    fn compile<K: Kernel>() -> LaneFn {
        compile::<K>()
    }
    #[inline(always)]
    fn write(registers: &mut Registers, operands: &Operands, mask: Mask, holds: Mask) {
        let join = Join(operands.payload);
        let yes = join.apply(holds, registers, operands);
        let no = join.apply(!holds, registers, operands);
        for (&slot, flags) in operands.dst.iter().zip([yes, no]) {
            if slot != Slot::Sink {
                registers.set_flag(slot.row(), flags, mask);
            }
        }
    }
}

/// `set`: the payload's pattern, or zero.
struct Pattern;
impl Outcome for Pattern {
    fn compile<K: Kernel>() -> LaneFn {
        plain::<K>()
    }
    fn write(registers: &mut Registers, operands: &Operands, mask: Mask, holds: Mask) {
        let join = Join(operands.payload);
        let holds = join.apply(holds, registers, operands);
        let row = map(|lane| if holds & (1 << lane) != 0 { join.truth() } else { 0 });
        u32::store(registers, operands.dst[0], &row, mask);
    }
}

/// A comparison of two rows of `$T`, for the outcome `$O`.
macro_rules! relation {
    ($O:ty; $payload:ident => |$a:ident: $T:ty, $b:ident| $holds:expr) => {{
        struct Relation<O>(PhantomData<O>);
        impl<O: Outcome> Kernel for Relation<O> {
            #[inline(always)]
            fn run(registers: &mut Registers, operands: &Operands, mask: Mask) {
                let [a, b, ..] = operands.src[..] else { return };
                let (a, b) = (<$T>::load(registers, a), <$T>::load(registers, b));
                let $payload = operands.payload;
                let holds = gather(&map(|lane| {
                    let ($a, $b) = (a[lane], b[lane]);
                    $holds
                }));
                O::write(registers, operands, mask, holds);
            }
        }
        <$O>::compile::<Relation<$O>>()
    }};
}

/// The body for each comparison, with `$C` bound to it; floats have all of them.
macro_rules! each_compare {
    ($cmp:expr, $C:ident => $body:expr) => {
        by_value!($cmp; Compare {
            Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan
        }; $C => Some($body))
    };
}

/// A comparison of floats; `.ftz` comes with the payload but for the common `f32`.
macro_rules! float_relation {
    ($O:ty, $F:ident: $T:ty, $cmp:expr) => {
        each_compare!($cmp, CMP => relation!($O; payload =>
            |a: $T, b| $F::compare(CMP, a, b, payload & Join::FTZ != 0)))
    };
}

fn relation<O: Outcome>(cmp: Compare, ty: Scalar, ftz: bool) -> Option<LaneFn> {
    match (ty, ftz) {
        (Scalar::F32, false) => each_compare!(cmp, CMP => relation!(O; _payload =>
            |a: u32, b| F32::compare(CMP, a, b, false))),
        (Scalar::F32, true) => float_relation!(O, F32: u32, cmp),
        (Scalar::F16, _) => float_relation!(O, F16: u16, cmp),
        (Scalar::BF16, false) => float_relation!(O, BF16: u16, cmp),
        (Scalar::F64, false) => float_relation!(O, F64: u64, cmp),
        (_, true) => None,
        (_, false) => integer_relation::<O>(cmp, ty),
    }
}

/// Bits compare for equality alone; the unsigned names are for unsigned types alone.
fn integer_relation<O: Outcome>(cmp: Compare, ty: Scalar) -> Option<LaneFn> {
    let equal = by_value!(cmp; Compare { Eq, Ne }; CMP =>
    bits!(ty, TY: T => relation!(O; _payload => |a: T, b| {
        int::compare(CMP, TY, a.wide(), b.wide())
    })));
    let ordered = || {
        by_value!(cmp; Compare { Eq, Ne, Lt, Le, Gt, Ge }; CMP =>
        integers!(ty, TY: T => relation!(O; _payload => |a: T, b| {
            int::compare(CMP, TY, a.wide(), b.wide())
        })))
    };
    let unsigned = || {
        by_value!(cmp; Compare { Lo, Ls, Hi, Hs }; CMP =>
        by_type!(ty; U16 => u16, U32 => u32, U64 => u64; TY: T =>
            relation!(O; _payload => |a: T, b| {
                int::compare(CMP, TY, a.wide(), b.wide())
            })))
    };
    equal.or_else(ordered).or_else(unsigned)
}

/// Compares both halves of packed floats: masks for the low and the high one.
macro_rules! packed_relation {
    ($F:ident, $cmp:expr, |$registers:ident, $operands:ident, $mask:ident, $low:ident, $high:ident|
        $write:block) => {
        each_compare!($cmp, CMP => {
            fn run($registers: &mut Registers, $operands: &Operands, $mask: Mask) {
                let [a, b] = [0, 1].map(|source| u32::load($registers, $operands.src[source]));
                let ftz = $operands.payload & Join::FTZ != 0;
                let holds = |lane: usize, shift: u32| {
                    $F::compare(CMP, (a[lane] >> shift) as u16, (b[lane] >> shift) as u16, ftz)
                };
                let $low = gather(&map(|lane| holds(lane, 0)));
                let $high = gather(&map(|lane| holds(lane, 16)));
                $write
            }
            run as LaneFn
        })
    };
}

/// `setp.f16x2 p|q`: `p` for the low half, `q` for the high one.
macro_rules! packed_predicates {
    ($F:ident, $cmp:expr) => {
        packed_relation!($F, $cmp, |registers, operands, mask, low, high| {
            let join = Join(operands.payload);
            let flags = [low, high].map(|holds| join.apply(holds, registers, operands));
            for (&slot, flags) in operands.dst.iter().zip(flags) {
                if slot != Slot::Sink {
                    registers.set_flag(slot.row(), flags, mask);
                }
            }
        })
    };
}

/// `set.f16x2.f16x2`: the pattern in each half.
macro_rules! packed_patterns {
    ($F:ident, $cmp:expr) => {
        packed_relation!($F, $cmp, |registers, operands, mask, low, high| {
            let join = Join(operands.payload);
            let [low, high] = [low, high].map(|holds| join.apply(holds, registers, operands));
            let half = |flags: Mask, lane: usize| (flags >> lane & 1) * (join.truth() & 0xffff);
            let row = map(|lane| half(low, lane) | half(high, lane) << 16);
            u32::store(registers, operands.dst[0], &row, mask);
        })
    };
}

/// `setp`.
pub(super) fn setp(
    cmp: Compare,
    ty: Scalar,
    ftz: bool,
    join: Option<Logic>,
    operands: &Operands,
) -> Option<Lowered> {
    let run = match (ty, operands.dst.len(), ftz) {
        // Each half has a predicate of its own, and PTX wants both.
        (Scalar::F16x2, 2, _) => packed_predicates!(F16, cmp)?,
        (Scalar::BF16x2, 2, false) => packed_predicates!(BF16, cmp)?,
        _ => relation::<Predicates>(cmp, ty, ftz)?,
    };
    Some(Lowered::with(run, Join::new(join, ftz, 0).0))
}

/// `set`: all ones in an integer, one in a float.
pub(super) fn set(
    cmp: Compare,
    to: Scalar,
    ty: Scalar,
    ftz: bool,
    join: Option<Logic>,
) -> Option<Lowered> {
    let truth = match (to, ty) {
        (Scalar::U32 | Scalar::S32, _) => u32::MAX,
        (Scalar::U16 | Scalar::S16, Scalar::F16 | Scalar::BF16) => 0xffff,
        (Scalar::F32, _) => 0x3f80_0000,
        (Scalar::F16, Scalar::F16) | (Scalar::F16x2, Scalar::F16x2) => 0x3c00,
        (Scalar::BF16, Scalar::BF16) | (Scalar::BF16x2, Scalar::BF16x2) => 0x3f80,
        _ => return None,
    };
    let run = match (ty, to) {
        (Scalar::F16x2, to) if to != Scalar::F32 => packed_patterns!(F16, cmp)?,
        (Scalar::BF16x2, to) if to != Scalar::F32 && !ftz => packed_patterns!(BF16, cmp)?,
        _ => relation::<Pattern>(cmp, ty, ftz)?,
    };
    Some(Lowered::with(run, Join::new(join, ftz, truth).0))
}

/// `testp`.
pub(super) fn testp(property: TestProperty, ty: Scalar) -> Option<LaneFn> {
    by_value!(property; TestProperty {
        Finite, Infinite, Number, NotANumber, Normal, Subnormal
    }; PROPERTY => if ty == Scalar::F32 {
        Some(lanes!(|a: u32| -> bool { F32::testp(PROPERTY, a) }))
    } else {
        by_type!(ty; F64 => u64; _TY: T => lanes!(|a: T| -> bool { F64::testp(PROPERTY, a) }))
    })
}
