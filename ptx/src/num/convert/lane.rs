//! One element: exact value in, one rounding, clamps.

use super::Cvt;
use crate::ir::{Class, IntRound, Round, Scalar};
use crate::num::exact::{Exact, Format, Specials, Underflow, Unpacked};

impl IntRound {
    fn direction(self) -> Round {
        match self {
            IntRound::Rni => Round::Rn,
            IntRound::Rzi => Round::Rz,
            IntRound::Rmi => Round::Rm,
            IntRound::Rpi => Round::Rp,
        }
    }
}

/// The format of a floating-point element; `ue8m0` has no sign and stands apart.
fn format(ty: Scalar) -> Option<Format> {
    use Scalar::*;
    match ty {
        F16 => Some(Format::F16),
        BF16 => Some(Format::BF16),
        F32 => Some(Format::F32),
        F64 => Some(Format::F64),
        TF32 => Some(Format::TF32),
        E4m3 => Some(Format::E4M3),
        E5m2 => Some(Format::E5M2),
        E2m1 => Some(Format::E2M1),
        E2m3 => Some(Format::E2M3),
        E3m2 => Some(Format::E3M2),
        Pred | B1 | B4 | B8 | B16 | B32 | B64 | B128 | U4 | U8 | U16 | U32 | U64 | S4 | S8
        | S16 | S32 | S64 | U16x2 | S16x2 | U8x4 | S8x4 | F16x2 | BF16x2 | F32x2 | UE8m0
        | E4m3x2 | E5m2x2 | E2m1x2 | E2m3x2 | E3m2x2 | UE8m0x2 | E4m3x4 | E5m2x4 | E2m1x4
        | E2m3x4 | E3m2x4 => None,
    }
}

/// An integer of type `ty` from its bits.
pub(super) fn integer_value(ty: Scalar, bits: u64) -> i128 {
    let extended = super::extended(ty, bits);
    if ty.class() == Class::Signed { i128::from(extended as i64) } else { i128::from(extended) }
}

/// Smallest and largest integer of `ty`.
fn range(ty: Scalar) -> (i128, i128) {
    let bits = ty.bits();
    if ty.class() == Class::Signed {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

/// The nearest integer of `ty`, in two's complement of 64 bits.
pub(super) fn clamp_integer(ty: Scalar, value: i128) -> u64 {
    let (least, greatest) = range(ty);
    value.clamp(least, greatest) as u64
}

fn truncated(ty: Scalar, bits: u64) -> u64 {
    bits & (u64::MAX >> (64 - ty.bits().min(64)))
}

/// What a source element is.
enum Source {
    Integer(i128),
    /// The pattern beside what it says, for payloads.
    Float(Unpacked, u64),
    Unknown,
}

fn source(cvt: &Cvt, from: Scalar, bits: u64) -> Source {
    if from == Scalar::UE8m0 {
        let scale = bits & 0xff;
        let value = if scale == 0xff {
            Unpacked::Nan
        } else {
            Unpacked::Finite(Exact {
                negative: false,
                exponent: scale as i32 - 127,
                significand: 1,
            })
        };
        return Source::Float(value, bits);
    }
    if let Some(format) = format(from) {
        let value = match format.unpack(bits) {
            Unpacked::Finite(value)
                if cvt.ftz && from == Scalar::F32 && value.significand < 1 << 23 =>
            {
                Unpacked::Finite(Exact { negative: value.negative, ..Exact::ZERO })
            }
            value @ (Unpacked::Nan | Unpacked::Infinity { .. } | Unpacked::Finite(_)) => value,
        };
        return Source::Float(value, bits);
    }
    match from.class() {
        Class::Unsigned | Class::Signed => Source::Integer(integer_value(from, bits)),
        Class::Predicate | Class::Bits | Class::Float => Source::Unknown,
    }
}

/// Converts one element; 0 for types that `Cvt::supported` refuses.
pub(super) fn convert(cvt: &Cvt, to: Scalar, from: Scalar, bits: u64) -> u64 {
    let source = source(cvt, from, bits);
    if to == Scalar::UE8m0 {
        return match source {
            Source::Float(value, _) => to_scale(cvt, value),
            Source::Integer(_) | Source::Unknown => 0,
        };
    }
    match (format(to), source) {
        (Some(format), Source::Float(value, bits)) => {
            let value = match cvt.int_round {
                Some(int_round) => to_integral(value, int_round),
                None => value,
            };
            to_float(cvt, to, &format, value, payload(to, from, bits))
        }
        (Some(format), Source::Integer(value)) => {
            let value = Exact::from_integer(value < 0, value.unsigned_abs() as u64);
            to_float(cvt, to, &format, Unpacked::Finite(value), None)
        }
        (None, Source::Float(value, _)) => truncated(to, to_integer(cvt, to, value)),
        (None, Source::Integer(value)) if cvt.sat => truncated(to, clamp_integer(to, value)),
        (None, Source::Integer(value)) => truncated(to, value as u64),
        (Some(_) | None, Source::Unknown) => 0,
    }
}

/// The NaN that a widening hands on (C3).
fn payload(to: Scalar, from: Scalar, bits: u64) -> Option<u64> {
    let single = |bits: u64| {
        let fraction = (bits & 0x7f_ffff) << 29;
        (bits >> 31 & 1) << 63 | 0x7ff8 << 48 | fraction
    };
    match (to, from) {
        (Scalar::F32, Scalar::BF16) => Some((bits & 0xffff) << 16),
        (Scalar::F64, Scalar::BF16) => Some(single((bits & 0xffff) << 16)),
        (Scalar::F64, Scalar::F32) => Some(single(bits)),
        (Scalar::F64, Scalar::F64) => Some(bits | 1 << 51),
        (Scalar::F64, Scalar::F16) => Some(single(0x7fff_ffff)),
        (_, _) => None,
    }
}

fn to_integral(value: Unpacked, int_round: IntRound) -> Unpacked {
    match value {
        Unpacked::Finite(value) if value.exponent < 0 => {
            let magnitude = value.round_integer(int_round.direction()).unwrap_or(0);
            Unpacked::Finite(Exact::from_integer(value.negative, magnitude))
        }
        Unpacked::Finite(_) | Unpacked::Nan | Unpacked::Infinity { .. } => value,
    }
}

fn to_integer(cvt: &Cvt, to: Scalar, value: Unpacked) -> u64 {
    let (least, greatest) = range(to);
    let direction = cvt.int_round.unwrap_or(IntRound::Rzi).direction();
    let value = match value {
        Unpacked::Nan => 0,
        Unpacked::Infinity { negative: true } => least,
        Unpacked::Infinity { negative: false } => greatest,
        Unpacked::Finite(value) => match value.round_integer(direction) {
            Some(magnitude) if value.negative => -i128::from(magnitude),
            Some(magnitude) => i128::from(magnitude),
            None if value.negative => least,
            None => greatest,
        },
    };
    clamp_integer(to, value)
}

fn to_float(cvt: &Cvt, to: Scalar, format: &Format, value: Unpacked, payload: Option<u64>) -> u64 {
    // A tf32 stands in the upper 19 bits of its register.
    let place = if to == Scalar::TF32 { 13 } else { 0 };
    let clamped = cvt.satfinite || format.specials == Specials::Finite;
    let (negative, magnitude) = match value {
        Unpacked::Nan if cvt.sat => return 0,
        Unpacked::Nan if to == Scalar::TF32 => return 0x7fff_ffff,
        Unpacked::Nan => return payload.unwrap_or(nan(to, format)),
        Unpacked::Infinity { negative } if clamped => (negative, format.max_finite()),
        Unpacked::Infinity { negative } => (negative, format.exponent_mask()),
        Unpacked::Finite(value) => {
            let underflow =
                if cvt.ftz && to == Scalar::F32 { Underflow::Flush } else { Underflow::Gradual };
            let direction = cvt.round.unwrap_or(Round::Rn);
            let bits = value.round(format, direction, underflow) & (format.sign_bit() - 1);
            let limit = if clamped { format.max_finite() } else { bits };
            (value.negative, bits.min(limit))
        }
    };
    let one = (format.bias() as u64) << format.fraction;
    match negative {
        true if cvt.sat || cvt.relu => 0,
        true => (magnitude | format.sign_bit()) << place,
        false if cvt.sat => magnitude.min(one) << place,
        false => magnitude << place,
    }
}

fn nan(to: Scalar, format: &Format) -> u64 {
    if to == Scalar::F64 {
        0xfff8 << 48
    } else {
        // All ones below the sign: where a format has no NaN, its largest number.
        format.canonical_nan()
    }
}

/// A power of two as its biased exponent. The sign is not represented: `|x|` is converted, and what
/// lies below `2^-127` becomes `2^-127`.
fn to_scale(cvt: &Cvt, value: Unpacked) -> u64 {
    let (greatest, nan) = (0xfe, 0xff);
    let scale = match value {
        Unpacked::Nan => return nan,
        Unpacked::Infinity { .. } => return if cvt.satfinite { greatest } else { nan },
        Unpacked::Finite(value) if value.is_zero() => 0,
        Unpacked::Finite(value) => {
            let leading = 127 - value.significand.leading_zeros() as i32 + value.exponent;
            let inexact = !value.significand.is_power_of_two();
            let up = cvt.round == Some(Round::Rp) && inexact;
            (leading + 127).max(-1) + i32::from(up)
        }
    };
    match u64::try_from(scale) {
        Ok(scale) if scale > greatest && cvt.satfinite => greatest,
        Ok(scale) => scale.min(nan),
        Err(_) => 0,
    }
}
