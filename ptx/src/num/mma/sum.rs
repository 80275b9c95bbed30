//! Sums of terms: cut at a fixed width, or exact.
//!
//! # Invariants
//! - **S1** A term's significand has at most 30 bits, so 33 terms cut at 25 bits below the greatest
//!   exponent sum in 64 bits.
//! - **S2** The accumulator's 640 bits reach from `2^-272`, the product of two `tf32`
//!   subnormals, to beyond 64 products of the greatest numbers.

use std::ops::Range;

use super::element::{Element, Half, Kind, Part, Single};
use super::vector::Vector;
use crate::ir::Scalar;
use crate::num::exact::Exact;

/// Most terms of a block: 32 products and `c`.
pub(super) const MOST: usize = 33;

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

    /// Adds a product, one factor of which is special.
    #[cold]
    pub(super) fn product(&mut self, a: (Kind, Part), b: (Kind, Part)) {
        let zero = |(kind, part): (Kind, Part)| kind == Kind::Number && part.significand == 0;
        if a.0 == Kind::Nan || b.0 == Kind::Nan || zero(a) || zero(b) {
            self.nan = true;
        } else if a.1.negative != b.1.negative {
            self.negative = true;
        } else {
            self.positive = true;
        }
    }

    #[cold]
    fn term(&mut self, kind: Kind, negative: bool) {
        match (kind, negative) {
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
    significands: [i32; MOST],
    /// Weights of bit 0.
    exponents: [i32; MOST],
    /// Greatest exponent of a term that is not zero, as of a significand in `[1, 4)`.
    greatest: i32,
    pub specials: Specials,
    /// Every term has its sign set: a zero sum is `-0` then.
    pub all_negative: bool,
}

/// Above every exponent; differences fit.
const ABOVE: i32 = 0x0100_0000;

impl Terms {
    /// The products of a block. They are not normalised: a product's exponent is the sum of its
    /// factors'.
    #[inline]
    pub(super) fn products(a: &Vector, b: &Vector, range: Range<usize>) -> Self {
        let count = range.len().min(MOST - 1);
        let mut terms = Self {
            count,
            significands: [0; MOST],
            exponents: [0; MOST],
            greatest: i32::MIN / 2,
            specials: Specials::default(),
            all_negative: true,
        };
        let significands = a.values()[range.clone()].iter().zip(&b.values()[range.clone()]);
        for (place, (x, y)) in terms.significands.iter_mut().zip(significands) {
            *place = x * y;
        }
        let exponents = a.exponents()[range.clone()].iter().zip(&b.exponents()[range.clone()]);
        for (place, (x, y)) in terms.exponents.iter_mut().zip(exponents) {
            *place = x + y;
            terms.greatest = terms.greatest.max(x + y);
        }
        terms.greatest += a.fraction + b.fraction;
        let signs = (a.signs ^ b.signs) >> range.start;
        terms.all_negative = (!signs).trailing_zeros() as usize >= count;
        if a.specials.is_some() || b.specials.is_some() {
            terms.specials = special_products(a, b, range);
        }
        terms
    }

    /// Adds `c` to the terms.
    #[inline]
    pub(super) fn push(&mut self, ty: Scalar, bits: u64) {
        if ty == Scalar::F16 {
            self.push_element::<Half>(bits);
        } else {
            self.push_element::<Single>(bits);
        }
    }

    #[inline(always)]
    fn push_element<C: Element>(&mut self, bits: u64) {
        let part = C::take_apart(bits);
        if part.special {
            self.specials.term(C::kind(bits), part.negative);
        }
        if let (Some(significand), Some(exponent)) =
            (self.significands.get_mut(self.count), self.exponents.get_mut(self.count))
        {
            (*significand, *exponent) = (part.significand, part.exponent);
            self.count += 1;
        }
        if part.significand != 0 {
            self.greatest = self.greatest.max(part.exponent + C::FRACTION);
        }
        self.all_negative &= part.negative;
    }

    #[inline(always)]
    fn each(&self) -> impl Iterator<Item = (i64, i32)> {
        let significands = self.significands.iter().take(self.count);
        significands.map(|&significand| i64::from(significand)).zip(self.exponents.iter().copied())
    }

    /// The sum of the terms, each cut towards zero `kept` bits below the greatest exponent. A zero
    /// sum is positive.
    #[inline]
    pub(super) fn truncated_sum(&self, kept: i32) -> Exact {
        let last = self.greatest - kept;
        let mut sum = 0i64;
        for (significand, exponent) in self.each() {
            // Of the term that stands highest the shift is at most `kept`; a zero may go anywhere.
            let up = exponent - last;
            let magnitude = significand.unsigned_abs() << up.clamp(0, 31);
            let cut = (magnitude >> (-up).clamp(0, 63)) as i64;
            sum += if significand < 0 { -cut } else { cut };
        }
        Exact { negative: sum < 0, exponent: last, significand: sum.unsigned_abs().into() }
    }

    /// The exact sum where it fits 127 bits.
    #[inline]
    pub(super) fn narrow_sum(&self) -> Option<Exact> {
        if self.specials.any() {
            return None;
        }
        let mut least = ABOVE;
        for (significand, exponent) in self.each() {
            let counted = if significand == 0 { ABOVE } else { exponent };
            least = least.min(counted);
        }
        // The greatest term reaches two bits above its exponent, the sum six more.
        let width = self.greatest - least + 8;
        let sum = if width <= 62 {
            self.each()
                .map(|(significand, exponent)| significand << (exponent - least).clamp(0, 62))
                .sum::<i64>()
                .into()
        } else if width <= 126 {
            self.each()
                .map(|(significand, exponent)| {
                    i128::from(significand) << (exponent - least).clamp(0, 126)
                })
                .sum::<i128>()
        } else {
            return None;
        };
        Some(Exact {
            negative: sum < 0 || (sum == 0 && self.all_negative),
            exponent: least,
            significand: sum.unsigned_abs(),
        })
    }
}

#[cold]
fn special_products(a: &Vector, b: &Vector, range: Range<usize>) -> Specials {
    let mut specials = Specials::default();
    let parts = |vector: &Vector, k: usize| match vector.specials {
        Some(take_apart) => take_apart(vector.patterns()[k]),
        None => {
            let part = Part {
                significand: vector.values()[k],
                exponent: 0,
                negative: vector.signs >> k & 1 == 1,
                special: false,
            };
            (Kind::Number, part)
        }
    };
    for k in range {
        let (x, y) = (parts(a, k), parts(b, k));
        if x.1.special || y.1.special {
            specials.product(x, y);
        }
    }
    specials
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
                continue; // a zero: by S2 no other term is so small
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
