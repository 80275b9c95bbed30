//! Elements taken apart, without branches on the common path.

use crate::ir::Scalar;
use crate::num::exact::{Format, Specials};

/// A finite element is `significand · 2^exponent`, the sign in the significand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Part {
    pub significand: i32,
    /// Weight of bit 0. Of a subnormal it is that of the smallest normal number.
    pub exponent: i32,
    pub negative: bool,
    /// Infinity or NaN; significand and exponent mean nothing then.
    pub special: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    Number,
    Infinity,
    Nan,
}

/// An element type.
pub(super) trait Element {
    const FORMAT: Format;
    /// Bits of the register below the pattern.
    const DROPPED: u32 = 0;
    const FRACTION: i32 = Self::FORMAT.fraction as i32;

    #[inline(always)]
    fn take_apart(bits: u64) -> Part {
        let format = Self::FORMAT;
        let (sign_bit, top) = (format.sign_bit() as u32, format.max_finite() as u32);
        let bits = bits as u32 >> Self::DROPPED;
        let magnitude = bits & (sign_bit - 1);
        let negative = bits & sign_bit != 0;
        let field = (magnitude >> format.fraction) as i32;
        let fraction = (magnitude & ((1 << format.fraction) - 1)) as i32;
        let significand = fraction | i32::from(field != 0) << format.fraction;
        Part {
            significand: if negative { -significand } else { significand },
            exponent: field.max(1) - format.bias() - Self::FRACTION,
            negative,
            special: magnitude > top,
        }
    }

    /// What an element is that [`Part::special`] names.
    #[inline]
    fn kind(bits: u64) -> Kind {
        let format = Self::FORMAT;
        let magnitude = (bits >> Self::DROPPED) & (format.sign_bit() - 1);
        if magnitude <= format.max_finite() {
            Kind::Number
        } else if magnitude == format.exponent_mask() && format.specials == Specials::Ieee {
            Kind::Infinity
        } else {
            Kind::Nan
        }
    }
}

pub(super) struct Half;
pub(super) struct BFloat16;
pub(super) struct Tf32;
pub(super) struct Single;
pub(super) struct E4M3;
pub(super) struct E5M2;

impl Element for Half {
    const FORMAT: Format = Format::F16;
}
impl Element for BFloat16 {
    const FORMAT: Format = Format::BF16;
}
impl Element for Tf32 {
    const FORMAT: Format = Format::TF32;
    const DROPPED: u32 = 13;
}
impl Element for Single {
    const FORMAT: Format = Format::F32;
}
impl Element for E4M3 {
    const FORMAT: Format = Format::E4M3;
}
impl Element for E5M2 {
    const FORMAT: Format = Format::E5M2;
}

/// An 8-bit element as the `f16` of the same value; anything else as it is.
#[inline(always)]
pub(super) fn byte_to_half(ty: Scalar, bits: u64) -> u64 {
    /// Multiples of `2^-9`, the subnormals of `e4m3`.
    const SUBNORMAL: [u64; 8] = [0, 0x1800, 0x1c00, 0x1e00, 0x2000, 0x2100, 0x2200, 0x2300];
    if ty == Scalar::E5m2 {
        return match bits & 0x7f {
            0x7d.. => 0x7fff,
            _ => (bits & 0xff) << 8,
        };
    }
    if ty != Scalar::E4m3 {
        return bits;
    }
    let sign = (bits & 0x80) << 8;
    match bits & 0x7f {
        0x7f => 0x7fff,
        magnitude @ 0..8 => SUBNORMAL[magnitude as usize] | sign,
        magnitude => ((magnitude << 7) + 0x2000) | sign,
    }
}
