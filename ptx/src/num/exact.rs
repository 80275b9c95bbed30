//! Exact values and the one rounding of the crate.
//!
//! # Idea
//! A finite value is `(-1)^negative · significand · 2^exponent` with a wide integer significand.
//! Arithmetic on such values is exact, or *sticky*: what falls off the low end leaves its trace in
//! bit 0, which decides every later rounding as the lost bits would have. [`Exact::round`] then
//! rounds once into a [`Format`], in any direction.
//! # Invariants
//! - **X1** A significand is below `2^127`: there is room for one carry.
//! - **X2** A sticky bit stands at least two places below the last bit that any format keeps. The
//!   operations see to it for operands of 64 bits and formats of 53.
//! # Held by
//! X1, X2: each operation normalises its result or its operands first. `ptx/tests/num_float.rs`
//! compares every operation and rounding with `rustc_apfloat`.
//! # Not here
//! NaN, infinity, signs of zero sums, flushing (`float/`); saturation (`convert/`).

use crate::ir::Round;

/// Which patterns of the top exponent are not numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Specials {
    /// Infinity and NaN, as IEEE 754 has them.
    Ieee,
    /// Only the all-ones pattern is NaN; there is no infinity (`e4m3`).
    NanOnly,
    /// Every pattern is a finite number (`e2m1`, `e2m3`, `e3m2`).
    Finite,
}

/// A binary floating-point format of at most 64 bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Format {
    /// Bits of the fraction, without the leading one.
    pub fraction: u32,
    /// Bits of the exponent field.
    pub exponent: u32,
    pub specials: Specials,
}

impl Format {
    const fn new(exponent: u32, fraction: u32, specials: Specials) -> Self {
        Self { fraction, exponent, specials }
    }

    pub const F16: Self = Self::new(5, 10, Specials::Ieee);
    pub const BF16: Self = Self::new(8, 7, Specials::Ieee);
    /// 19 bits; in a register it stands in the upper bits of an `f32`.
    pub const TF32: Self = Self::new(8, 10, Specials::Ieee);
    pub const F32: Self = Self::new(8, 23, Specials::Ieee);
    pub const F64: Self = Self::new(11, 52, Specials::Ieee);
    /// What Ada's tensor cores keep of a sum of 8-bit products.
    pub const E8M13: Self = Self::new(8, 13, Specials::Ieee);
    pub const E4M3: Self = Self::new(4, 3, Specials::NanOnly);
    pub const E5M2: Self = Self::new(5, 2, Specials::Ieee);
    pub const E2M1: Self = Self::new(2, 1, Specials::Finite);
    pub const E2M3: Self = Self::new(2, 3, Specials::Finite);
    pub const E3M2: Self = Self::new(3, 2, Specials::Finite);

    pub const fn bias(&self) -> i32 {
        (1 << (self.exponent - 1)) - 1
    }

    /// Exponent of the smallest normal number.
    pub const fn min_exponent(&self) -> i32 {
        1 - self.bias()
    }

    pub const fn sign_bit(&self) -> u64 {
        1 << (self.exponent + self.fraction)
    }

    /// The exponent field, all ones: infinity where the format has one.
    pub const fn exponent_mask(&self) -> u64 {
        ((1 << self.exponent) - 1) << self.fraction
    }

    /// Largest finite magnitude.
    pub const fn max_finite(&self) -> u64 {
        match self.specials {
            Specials::Ieee => self.exponent_mask() - 1,
            Specials::NanOnly => self.sign_bit() - 2,
            Specials::Finite => self.sign_bit() - 1,
        }
    }

    /// Magnitude of NVIDIA's canonical NaN, where the format has NaNs.
    pub const fn canonical_nan(&self) -> u64 {
        self.sign_bit() - 1
    }

    /// What a magnitude above the largest finite one becomes when nothing clamps it.
    const fn overflow(&self) -> u64 {
        match self.specials {
            Specials::Ieee => self.exponent_mask(),
            Specials::NanOnly => self.canonical_nan(),
            Specials::Finite => self.max_finite(),
        }
    }

    /// Takes a pattern apart. Bits above the sign are ignored.
    #[inline]
    pub fn unpack(&self, bits: u64) -> Unpacked {
        let negative = bits & self.sign_bit() != 0;
        let magnitude = bits & (self.sign_bit() - 1);
        if magnitude > self.max_finite() {
            return match self.specials {
                Specials::Ieee if magnitude == self.exponent_mask() => {
                    Unpacked::Infinity { negative }
                }
                Specials::Ieee | Specials::NanOnly | Specials::Finite => Unpacked::Nan,
            };
        }
        let field = (magnitude >> self.fraction) as i32;
        let fraction = magnitude & ((1 << self.fraction) - 1);
        let hidden = u64::from(field != 0) << self.fraction;
        Unpacked::Finite(Exact {
            negative,
            exponent: field.max(1) - self.bias() - self.fraction as i32,
            significand: u128::from(fraction | hidden),
        })
    }
}

/// A pattern taken apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unpacked {
    Nan,
    Infinity { negative: bool },
    Finite(Exact),
}

/// What happens below the smallest normal number.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Underflow {
    /// Subnormal numbers, as IEEE 754 has them.
    Gradual,
    /// `.ftz`: a result that is still below the smallest normal number after rounding with an
    /// unbounded exponent becomes zero. (So does ptxas when it folds constants: `2^-126·(1-2^-24)`
    /// gives zero, `2^-126·(1-2^-26)` gives `2^-126`.)
    Flush,
}

/// A magnitude after rounding; it may lie above the format's largest finite one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rounded {
    /// The pattern; meaningless where it overflowed.
    pub magnitude: u64,
    pub overflowed: bool,
}

/// A finite value, exact but for a sticky bit 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Exact {
    pub negative: bool,
    /// Weight of bit 0 of the significand.
    pub exponent: i32,
    pub significand: u128,
}

/// Shifts right; a lost one leaves its trace in bit 0.
#[inline]
fn shift_right_sticky(value: u128, by: u32) -> u128 {
    if by == 0 {
        value
    } else if by > 127 {
        u128::from(value != 0)
    } else {
        (value >> by) | u128::from(value & ((1 << by) - 1) != 0)
    }
}

impl Exact {
    pub const ZERO: Self = Self { negative: false, exponent: 0, significand: 0 };

    #[inline]
    pub fn from_integer(negative: bool, magnitude: u64) -> Self {
        Self { negative, exponent: 0, significand: u128::from(magnitude) }
    }

    #[inline]
    pub fn is_zero(&self) -> bool {
        self.significand == 0
    }

    #[inline]
    pub fn negated(self) -> Self {
        Self { negative: !self.negative, ..self }
    }

    /// The same value with its leading one at bit 125. Not for zero.
    #[inline]
    fn normalised(self) -> Self {
        let up = self.significand.leading_zeros() as i32 - 2;
        if up >= 0 {
            Self { exponent: self.exponent - up, significand: self.significand << up, ..self }
        } else {
            Self {
                exponent: self.exponent - up,
                significand: shift_right_sticky(self.significand, up.unsigned_abs()),
                ..self
            }
        }
    }

    /// The sum. A zero sum of nonzero terms is positive; the caller knows the direction's sign.
    #[inline]
    pub fn plus(self, other: Self) -> Self {
        if self.is_zero() {
            return other;
        }
        if other.is_zero() {
            return self;
        }
        let (a, b) = (self.normalised(), other.normalised());
        let (big, small) = if (a.exponent, a.significand) >= (b.exponent, b.significand) {
            (a, b)
        } else {
            (b, a)
        };
        // Operands have at most 107 bits, so a shift by one loses nothing: only then can the
        // difference lose more than one leading bit.
        let addend = shift_right_sticky(small.significand, (big.exponent - small.exponent) as u32);
        let significand = if big.negative == small.negative {
            big.significand + addend
        } else {
            big.significand - addend
        };
        Self { negative: big.negative && significand != 0, exponent: big.exponent, significand }
    }

    /// The product of two values of at most 63 significant bits: exact.
    #[inline]
    pub fn times(self, other: Self) -> Self {
        Self {
            negative: self.negative != other.negative,
            exponent: self.exponent + other.exponent,
            significand: self.significand * other.significand,
        }
    }

    /// The quotient of two values of at most 63 significant bits; `other` is not zero.
    #[inline]
    pub fn over(self, other: Self) -> Self {
        let negative = self.negative != other.negative;
        if self.is_zero() || other.is_zero() {
            return Self { negative, ..Self::ZERO };
        }
        let dividend = self.normalised();
        let quotient = dividend.significand / other.significand;
        let remainder = dividend.significand % other.significand;
        Self {
            negative,
            exponent: dividend.exponent - other.exponent - 1,
            significand: (quotient << 1) | u128::from(remainder != 0),
        }
    }

    /// The root of a non-negative value.
    #[inline]
    pub fn root(self) -> Self {
        if self.is_zero() {
            return self;
        }
        let radicand = self.normalised();
        // An even exponent halves; bit 126 is still free.
        let odd = radicand.exponent.rem_euclid(2);
        let significand = radicand.significand << odd;
        let root = significand.isqrt();
        Self {
            negative: false,
            exponent: (radicand.exponent - odd) / 2 - 1,
            significand: (root << 1) | u128::from(root * root != significand),
        }
    }

    /// Rounds the magnitude into `format`, the exponent unbounded above.
    #[inline]
    pub fn round_magnitude(
        &self,
        format: &Format,
        direction: Round,
        underflow: Underflow,
    ) -> Rounded {
        if self.is_zero() {
            return Rounded { magnitude: 0, overflowed: false };
        }
        let leading = 127 - self.significand.leading_zeros() as i32 + self.exponent;
        let tiny = leading < format.min_exponent();
        let scale = match underflow {
            Underflow::Gradual if tiny => format.min_exponent(),
            Underflow::Gradual | Underflow::Flush => leading,
        };
        let kept = self.shifted_to(scale - format.fraction as i32, direction);
        let field = i128::from(scale + format.bias()) - 1;
        // The leading one, or a carry past it, adds itself to the exponent field.
        let pattern = (field << format.fraction) + kept as i128;
        let flushed = tiny && underflow == Underflow::Flush && pattern < 1 << format.fraction;
        Rounded {
            magnitude: if flushed { 0 } else { pattern as u64 },
            overflowed: pattern > i128::from(format.max_finite()),
        }
    }

    /// The magnitude as an integer multiple of `2^scale`, rounded. It must fit.
    #[inline]
    fn shifted_to(&self, scale: i32, direction: Round) -> u128 {
        let by = scale - self.exponent;
        if by <= 0 {
            return self.significand << by.unsigned_abs().min(127);
        }
        let (kept, lost, half) = if by > 127 {
            (0, u128::from(!self.is_zero()), 2) // X1: below one half
        } else {
            let mask = (1 << by) - 1;
            (self.significand >> by, self.significand & mask, 1 << (by - 1))
        };
        let away = match direction {
            Round::Rn => lost > half || (lost == half && kept & 1 == 1),
            Round::Rna => lost >= half,
            Round::Rz | Round::Rs => false,
            Round::Rm => self.negative && lost != 0,
            Round::Rp => !self.negative && lost != 0,
        };
        kept + u128::from(away)
    }

    /// Rounds to an integer in `direction`, as a magnitude; `None` if it has more than 64 bits.
    #[inline]
    pub fn round_integer(&self, direction: Round) -> Option<u64> {
        if self.is_zero() {
            return Some(0);
        }
        let leading = 127 - self.significand.leading_zeros() as i32 + self.exponent;
        if leading > 64 {
            return None;
        }
        u64::try_from(self.shifted_to(0, direction)).ok()
    }

    /// The value in `format`, sign included. `Rs` truncates: its random bits are taken as zero.
    #[inline]
    pub fn round(&self, format: &Format, direction: Round, underflow: Underflow) -> u64 {
        let rounded = self.round_magnitude(format, direction, underflow);
        let magnitude = if rounded.overflowed {
            let outward = match direction {
                Round::Rn | Round::Rna => true,
                Round::Rz | Round::Rs => false,
                Round::Rm => self.negative,
                Round::Rp => !self.negative,
            };
            if outward { format.overflow() } else { format.max_finite() }
        } else {
            rounded.magnitude
        };
        magnitude | if self.negative { format.sign_bit() } else { 0 }
    }
}
