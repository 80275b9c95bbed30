//! `cvt` and `cvt.pack` over a row.
//!
//! # Idea
//! [`Cvt`] says what a conversion means. Those that it calls [`Hot`] have loops of their own; all
//! others go lane by lane, with the [`Cvt`] in the payload.
//! # Invariants
//! - **V1** Registers may be wider than the types: a source gives its low bits, and a result is
//!   extended to the declared width, by its sign where the type is signed.
//! # Held by
//! `ptx/tests/alu/convert.rs`.

use strum::IntoEnumIterator;

use super::{
    Lowered,
    rows::lanes,
    types::{by_type, by_value},
};
use crate::{
    exec::{
        lane::{LaneFn, Operands},
        registers::{Mask, Registers, Slot, lanes},
    },
    ir::{IntRound, Round, Scalar},
    num::{
        convert::{Cvt, Hot, cvt_pack, extended},
        float::Word,
    },
};

/// `cvt`.
pub(super) fn cvt(cvt: Cvt, operands: &Operands) -> Option<Lowered> {
    if !cvt.supported() {
        return None;
    }
    let natural = operands.declared == 0 || u32::from(operands.declared) == cvt.to.bits();
    let slots_fit = operands.dst.iter().all(|&slot| is_natural(slot, cvt.to))
        && operands.src.iter().all(|&slot| is_natural(slot, cvt.from));
    let row = if natural && slots_fit { cvt.hot().and_then(hot) } else { None };
    Some(match row {
        Some(run) => run.into(),
        None => Lowered::with(general, encode(&cvt)),
    })
}

/// Whether a row is of the kind that the type itself has.
fn is_natural(slot: Slot, ty: Scalar) -> bool {
    match slot {
        Slot::Word(_) => ty.bits() <= 32,
        Slot::Wide(_) => ty.bits() == 64,
        Slot::Flag(_) | Slot::Quad(_) | Slot::Sink => false,
    }
}

/// The loops of [`Hot`], by the widths of source and result.
fn hot(hot: Hot) -> Option<LaneFn> {
    if let Hot::Integer { from, to } = hot {
        return integers(to, from);
    }
    let half_to_word = by_value!(hot; Hot { F16ToF32, Bf16ToF32 }; HOT =>
        Some(lanes!(|a: u16| -> u32 { HOT.apply([a.wide(), 0]) as u32 })));
    let words_to_pair = || {
        by_value!(hot; Hot { F32ToF16x2, F32ToBf16x2 }; HOT => Some(
            lanes!(|high: u32, low: u32| -> u32 { HOT.apply([high.wide(), low.wide()]) as u32 })))
    };
    let word_to_half = || {
        by_value!(hot; Hot { F32ToF16, F32ToBf16, F32ToF16Rz }; HOT =>
            Some(lanes!(|a: u32| -> u16 { HOT.apply([a.wide(), 0]) as u16 })))
    };
    let word_to_word = || {
        by_value!(hot; Hot {
            F32ToTf32, S32ToF32, U32ToF32, F32ToS32, F32ToU32, F32ToIntegral(IntRound::Rni),
            F32ToIntegral(IntRound::Rzi), F32ToIntegral(IntRound::Rmi),
            F32ToIntegral(IntRound::Rpi)
        }; HOT => Some(lanes!(|a: u32| -> u32 { HOT.apply([a.wide(), 0]) as u32 })))
    };
    let word_to_wide = || {
        by_value!(hot; Hot { F32ToF64, S32ToF64, F32ToS64 }; HOT =>
            Some(lanes!(|a: u32| -> u64 { HOT.apply([a.wide(), 0]) })))
    };
    let wide_to_word = || {
        by_value!(hot; Hot { F64ToF32, S64ToF32, F64ToS32 }; HOT =>
            Some(lanes!(|a: u64| -> u32 { HOT.apply([a, 0]) as u32 })))
    };
    let wide_to_wide = || {
        by_value!(hot; Hot { S64ToF64, F64ToS64 }; HOT =>
            Some(lanes!(|a: u64| -> u64 { HOT.apply([a, 0]) })))
    };
    half_to_word
        .or_else(words_to_pair)
        .or_else(word_to_half)
        .or_else(word_to_word)
        .or_else(word_to_wide)
        .or_else(wide_to_word)
        .or_else(wide_to_wide)
}

/// Integers of 8 to 64 bits, one to another; the narrow ones are cut and extended in the lane.
fn integers(to: Scalar, from: Scalar) -> Option<LaneFn> {
    macro_rules! any {
        ($ty:expr, $TY:ident: $T:ident => $body:expr) => {
            by_type!($ty; U8 | S8 | U16 | S16 | U32 | S32 => u32, U64 | S64 => u64;
                $TY: $T => $body)
        };
    }
    any!(from, FROM: F => any!(to, TO: T => lanes!(|a: F| -> T {
        T::narrow(Hot::Integer { from: FROM, to: TO }.apply([a.wide(), 0]))
    }))?)
}

/// Any conversion between any rows; the payload is the [`Cvt`].
fn general(registers: &mut Registers, operands: &Operands, mask: Mask) {
    let ([dst, ..], [first, rest @ ..]) = (&operands.dst[..], &operands.src[..]) else { return };
    let Some(cvt) = decode(operands.payload) else { return };
    let declared = u32::from(operands.declared).max(cvt.to.bits()).min(64);
    for lane in lanes(mask) {
        let source = |slot: &Slot| registers.lane(*slot, lane);
        let bits = cvt.apply([source(first), rest.first().map_or(0, source)]);
        let wide = extended(cvt.to, bits) & (u64::MAX >> (64 - declared));
        registers.set_lane(*dst, lane, wide);
    }
}

/// Fields of the payload: flags from bit 0, then roundings and types, a byte each.
const ROUND: u32 = 8;
const INT_ROUND: u32 = 16;
const TO: u32 = 24;
const FROM: u32 = 32;

fn encode(cvt: &Cvt) -> u64 {
    let flags = [cvt.ftz, cvt.sat, cvt.relu, cvt.satfinite];
    let flags = (0..).zip(flags).fold(0, |bits, (at, flag)| bits | u64::from(flag) << at);
    let round = cvt.round.map_or(0, |round| 1 + round as u64);
    let int_round = cvt.int_round.map_or(0, |round| 1 + round as u64);
    let types = (cvt.to as u64) << TO | (cvt.from as u64) << FROM;
    flags | round << ROUND | int_round << INT_ROUND | types
}

fn decode(payload: u64) -> Option<Cvt> {
    let field = |at: u32| usize::from((payload >> at) as u8);
    let flag = |at: u32| payload >> at & 1 != 0;
    Some(Cvt {
        to: Scalar::iter().nth(field(TO))?,
        from: Scalar::iter().nth(field(FROM))?,
        round: field(ROUND).checked_sub(1).and_then(|index| Round::iter().nth(index)),
        int_round: field(INT_ROUND).checked_sub(1).and_then(|index| IntRound::iter().nth(index)),
        ftz: flag(0),
        sat: flag(1),
        relu: flag(2),
        satfinite: flag(3),
    })
}

/// `cvt.pack`: half-words alone, smaller ones above a third operand.
pub(super) fn pack(to: Scalar, from: Scalar, third: bool) -> Option<LaneFn> {
    if from != Scalar::S32 {
        return None;
    }
    if third {
        by_type!(to; U8 | S8 | U4 | S4 => u32; TO: T =>
            lanes!(|a: T, b: T, c: T| -> T { cvt_pack(TO, a, b, c) }))
    } else {
        by_type!(to; U16 | S16 => u32; TO: T => lanes!(|a: T, b: T| -> T { cvt_pack(TO, a, b, 0) }))
    }
}
