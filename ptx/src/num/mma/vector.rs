//! A row or column, loaded: taken apart once, multiplied often.

use super::element::{BFloat16, E4M3, E5M2, Element, Half, Kind, Part, Tf32, byte_to_half};
use crate::ir::Scalar;
use crate::num::convert::extended;
use crate::num::narrow::f16_to_f32;

/// Most elements of a vector.
const MOST_K: usize = 64;

/// A loaded row of `A` or column of `B`. What it holds depends on the [`Dot`](super::Dot) that
/// loaded it, and no other may multiply it.
#[derive(Clone, Debug)]
pub struct Vector {
    len: usize,
    /// Signed significands; integers; patterns of `f16` or `f32`.
    values: [i32; MOST_K],
    /// Weights of the significands' bit 0; of zeros, far below all others.
    exponents: [i32; MOST_K],
    /// The elements as they came.
    patterns: [u64; MOST_K],
    /// Bits of the fraction, whose sum a product has.
    pub(super) fraction: i32,
    /// Bit `k` is the sign of element `k`, zeros included.
    pub(super) signs: u64,
    /// Infinities and NaNs, if there are any.
    pub(super) specials: Option<fn(u64) -> (Kind, Part)>,
}

/// The exponent of a zero: sums of two stay below every other and differences fit.
const NOWHERE: i32 = -0x0100_0000;

impl Vector {
    fn empty(len: usize) -> Self {
        Self {
            len: len.min(MOST_K),
            values: [0; MOST_K],
            exponents: [0; MOST_K],
            patterns: [0; MOST_K],
            fraction: 0,
            signs: 0,
            specials: None,
        }
    }

    fn map(elements: &[u64], value: impl Fn(u64) -> i32) -> Self {
        let mut vector = Self::empty(elements.len());
        for (place, &bits) in vector.values.iter_mut().zip(elements) {
            *place = value(bits);
        }
        vector
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn values(&self) -> &[i32] {
        &self.values[..self.len]
    }

    pub(super) fn exponents(&self) -> &[i32] {
        &self.exponents[..self.len]
    }

    pub(super) fn patterns(&self) -> &[u64] {
        &self.patterns[..self.len]
    }

    pub(super) fn integers(ty: Scalar, elements: &[u64]) -> Self {
        Self::map(elements, |bits| extended(ty, bits) as i32)
    }

    pub(super) fn words(elements: &[u64]) -> Self {
        let mut vector = Self::empty(elements.len());
        for (place, &bits) in vector.patterns.iter_mut().zip(elements) {
            *place = bits;
        }
        vector
    }

    /// Patterns of `f16`.
    pub(super) fn halves(ty: Scalar, elements: &[u64]) -> Self {
        Self::map(elements, |bits| byte_to_half(ty, bits) as i32)
    }

    /// Patterns of `f32`.
    pub(super) fn singles(ty: Scalar, elements: &[u64]) -> Self {
        Self::map(elements, |bits| {
            let single = if ty == Scalar::BF16 {
                (bits as u32) << 16
            } else if ty == Scalar::TF32 {
                bits as u32 & !0x1fff
            } else {
                f16_to_f32(byte_to_half(ty, bits) as u16)
            };
            single as i32
        })
    }

    /// Significands and exponents.
    pub(super) fn floats(ty: Scalar, elements: &[u64]) -> Self {
        if ty == Scalar::BF16 {
            Self::parts::<BFloat16>(elements)
        } else if ty == Scalar::TF32 {
            Self::parts::<Tf32>(elements)
        } else if ty == Scalar::E4m3 {
            Self::parts::<E4M3>(elements)
        } else if ty == Scalar::E5m2 {
            Self::parts::<E5M2>(elements)
        } else {
            Self::parts::<Half>(elements)
        }
    }

    fn parts<E: Element>(elements: &[u64]) -> Self {
        let mut vector = Self::words(elements);
        vector.fraction = E::FRACTION;
        let mut special = false;
        for (k, &bits) in elements.iter().take(MOST_K).enumerate() {
            let part = E::take_apart(bits);
            vector.values[k] = part.significand;
            vector.exponents[k] = if part.significand == 0 { NOWHERE } else { part.exponent };
            vector.signs |= u64::from(part.negative) << k;
            special |= part.special;
        }
        if special {
            vector.specials = Some(|bits| (E::kind(bits), E::take_apart(bits)));
        }
        vector
    }

    /// Bytes as halves, those at `k % 4` of 0 and 1 before the others.
    pub(super) fn unpacked(ty: Scalar, elements: &[u64]) -> Self {
        let mut halves = [0; MOST_K];
        let elements = &elements[..elements.len().min(MOST_K)];
        let order = |second: bool| {
            let numbered = elements.iter().enumerate();
            numbered.filter(move |(k, _)| (k % 4 >= 2) == second)
        };
        for (place, (_, &bits)) in halves.iter_mut().zip(order(false).chain(order(true))) {
            *place = byte_to_half(ty, bits);
        }
        Self::parts::<Half>(&halves[..elements.len()])
    }
}
