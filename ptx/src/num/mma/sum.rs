//! Sums of terms: cut at a fixed width, or exact.
//!
//! # Invariants
//! - **S1** A term's significand has at most 30 bits, so 33 terms cut at 25 bits below the greatest
//!   exponent sum in 64 bits.
//! - **S2** The accumulator's 640 bits reach from `2^-272`, the product of two `tf32`
//!   subnormals, to beyond 64 products of the greatest numbers.

use super::MOST;
use super::element::{Kind, Part};
use crate::num::exact::Exact;

/// Infinities and NaNs among the terms.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Specials {
    positive: bool,
    negative: bool,
    nan: bool,
}

/// What the special terms make of a sum.
pub(super) enum Outcome {
    Number,
    Infinity { negative: bool },
    Nan,
}

impl Specials {
    pub(super) fn any(self) -> bool {
        self.positive || self.negative || self.nan
    }

    pub(super) fn joined(self, other: Self) -> Self {
        Self {
            positive: self.positive || other.positive,
            negative: self.negative || other.negative,
            nan: self.nan || other.nan,
        }
    }

    #[inline]
    pub(super) fn result(self) -> Outcome {
        match (self.nan, self.positive, self.negative) {
            (false, false, false) => Outcome::Number,
            (false, true, false) => Outcome::Infinity { negative: false },
            (false, false, true) => Outcome::Infinity { negative: true },
            (true, _, _) | (false, true, true) => Outcome::Nan,
        }
    }

    #[cold]
    fn product(&mut self, a: Part, b: Part) {
        let zero = |part: Part| part.kind == Kind::Number && part.significand == 0;
        if a.kind == Kind::Nan || b.kind == Kind::Nan || zero(a) || zero(b) {
            self.nan = true;
        } else if a.negative != b.negative {
            self.negative = true;
        } else {
            self.positive = true;
        }
    }

    #[cold]
    fn term(&mut self, part: Part) {
        match (part.kind, part.negative) {
            (Kind::Number, _) => {}
            (Kind::Nan, _) => self.nan = true,
            (Kind::Infinity, true) => self.negative = true,
            (Kind::Infinity, false) => self.positive = true,
        }
    }
}

/// The terms of one block.
pub(super) struct Terms {
    count: usize,
    significands: [i64; MOST],
    /// Weights of bit 0.
    exponents: [i32; MOST],
    /// Greatest exponent of a term that is not zero, as of a significand in `[1, 4)`.
    greatest: i32,
    pub specials: Specials,
    /// Every term has its sign set: a zero sum is `-0` then.
    pub all_negative: bool,
}

impl Terms {
    #[inline]
    pub(super) fn new() -> Self {
        Self {
            count: 0,
            significands: [0; MOST],
            exponents: [0; MOST],
            greatest: i32::MIN / 2,
            specials: Specials::default(),
            all_negative: true,
        }
    }

    #[inline(always)]
    fn record(&mut self, significand: i64, exponent: i32, fraction: i32, negative: bool) {
        if let (Some(s), Some(e)) =
            (self.significands.get_mut(self.count), self.exponents.get_mut(self.count))
        {
            (*s, *e) = (significand, exponent);
            self.count += 1;
        }
        if significand != 0 {
            self.greatest = self.greatest.max(exponent + fraction);
        }
        self.all_negative &= negative;
    }

    /// The product is not normalised: its exponent is the sum of the factors'.
    #[inline(always)]
    pub(super) fn push_product(&mut self, a: Part, b: Part, fraction: i32) {
        if a.kind != Kind::Number || b.kind != Kind::Number {
            self.specials.product(a, b);
        }
        self.record(
            a.significand * b.significand,
            a.exponent + b.exponent,
            fraction,
            a.negative != b.negative,
        );
    }

    #[inline(always)]
    pub(super) fn push(&mut self, part: Part, fraction: i32) {
        if part.kind != Kind::Number {
            self.specials.term(part);
        }
        self.record(part.significand, part.exponent, fraction, part.negative);
    }

    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (i64, i32)> {
        let significands = self.significands.iter().take(self.count);
        significands.copied().zip(self.exponents.iter().copied())
    }

    /// The sum of the terms, each cut towards zero `kept` bits below the greatest exponent. A zero
    /// sum is positive.
    #[inline]
    pub(super) fn truncated_sum(&self, kept: i32) -> Exact {
        let last = self.greatest - kept;
        let mut sum = 0i64;
        for (significand, exponent) in self.each() {
            let up = exponent - last;
            let magnitude = significand.unsigned_abs();
            let cut = if up >= 0 {
                magnitude.wrapping_shl(up as u32)
            } else {
                magnitude.checked_shr(up.unsigned_abs()).unwrap_or(0)
            };
            let cut = if magnitude == 0 { 0 } else { cut as i64 };
            sum += if significand < 0 { -cut } else { cut };
        }
        Exact { negative: sum < 0, exponent: last, significand: sum.unsigned_abs().into() }
    }

    /// The exact sum where it fits 127 bits.
    #[inline]
    pub(super) fn narrow_sum(&self) -> Option<Exact> {
        // Far from every exponent, yet the difference to an empty `greatest` fits.
        let mut least = i32::MAX / 4;
        for (significand, exponent) in self.each() {
            if significand != 0 {
                least = least.min(exponent);
            }
        }
        // S1: the greatest term reaches two bits above its exponent, the sum six more.
        if self.greatest - least > 116 {
            return None;
        }
        let mut sum = 0i128;
        for (significand, exponent) in self.each() {
            if significand != 0 {
                sum += i128::from(significand) << (exponent - least);
            }
        }
        Some(Exact {
            negative: sum < 0 || (sum == 0 && self.all_negative),
            exponent: if sum == 0 { 0 } else { least },
            significand: sum.unsigned_abs(),
        })
    }
}

const LIMBS: usize = 10;
/// Weight of the accumulator's lowest bit (S2).
const LOWEST: i32 = -272;

/// A fixed-point number wide enough for any sum of terms, in two's complement.
pub(super) struct Accumulator([u64; LIMBS]);

impl Accumulator {
    pub(super) fn new() -> Self {
        Self([0; LIMBS])
    }

    pub(super) fn add(&mut self, terms: &Terms) {
        for (significand, exponent) in terms.each() {
            let Ok(place) = u32::try_from(exponent - LOWEST) else {
                continue; // S2: no term is so small
            };
            let shifted = i128::from(significand) << (place % 64);
            let sign = (shifted >> 127) as u64;
            let words = [shifted as u64, (shifted >> 64) as u64];
            let mut carry = false;
            for (index, limb) in self.0.iter_mut().skip((place / 64) as usize).enumerate() {
                let word = words.get(index).copied().unwrap_or(sign);
                let (sum, first) = limb.overflowing_add(word);
                let (sum, second) = sum.overflowing_add(carry.into());
                *limb = sum;
                carry = first || second;
            }
        }
    }

    /// The value, what lies below its upper 126 bits in a sticky bit.
    pub(super) fn value(&self, all_negative: bool) -> Exact {
        let negative = self.0[LIMBS - 1] >> 63 == 1;
        let mut limbs = self.0;
        if negative {
            let mut carry = true;
            for limb in &mut limbs {
                (*limb, carry) = (!*limb).overflowing_add(carry.into());
            }
        }
        let Some(top) = limbs.iter().rposition(|&limb| limb != 0) else {
            return Exact { negative: all_negative, ..Exact::ZERO };
        };
        let at = |index: Option<usize>| u128::from(index.map_or(0, |index| limbs[index]));
        // 64 to 127 bits from the two upper limbs, shifted one down to make room (X1).
        let upper = at(Some(top)) << 64 | at(top.checked_sub(1));
        let below = limbs.iter().take(top.saturating_sub(1)).any(|&limb| limb != 0);
        let lost = below || upper & 1 == 1;
        Exact {
            negative,
            exponent: LOWEST + 64 * (top as i32 - 1) + 1,
            significand: upper >> 1 | u128::from(lost),
        }
    }
}
