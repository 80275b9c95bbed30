//! IEEE arithmetic with PTX's modifiers, on bit patterns.
//!
//! # Idea
//! [`Float`] gives the four formats one set of operations; [`FloatMode`] is applied in PTX's order:
//! flush the operands, compute and round once, flush the result, then `.sat` or `.relu`. With a
//! constant mode everything folds away but the host's own instruction and a select for NaN.
//! # Invariants
//! - **F1** One rounding an operation. No rounding named means to nearest, ties to even.
//! - **F2** A NaN result is the canonical NaN (`0x7fff`, `0x7fffffff`). In `f64`, where the PTX
//!   manual says that payloads are supported, it is the first NaN operand, quieted, and
//!   `0xfff8000000000000` (CUDA's `CUDART_NAN`) where no operand is NaN.
//! - **F3** `.sat` and `.relu` turn `-0` into `+0`; `.sat` turns NaN into `+0`, `.relu` keeps it.
//! - **F4** `min` and `max`: `-0 < +0`; one NaN operand gives the other operand, two or `.NaN` the
//!   canonical NaN, which `.xorsign.abs` leaves alone.
//! - **F5** `.ftz` flushes a result that is below the smallest normal number after rounding with an
//!   unbounded exponent ([`Underflow::Flush`]).
//! # Held by
//! `ptx/tests/num_float.rs` against `rustc_apfloat`. What ptxas 12.9 folds agrees in
//! F3, F4 and F5, but that it hands on the payload of two NaNs in `min`, where the manual says
//! canonical.
//! # Not here
//! Approximations (`approx`), conversions (`convert`), packed types: callers split lanes.

mod directed;
mod native;

use std::ops::{BitAnd, BitOr, BitXor, Not};

use self::directed::Directed;
use super::exact::{Format, Underflow};
use crate::ir::{Compare, FloatMode, Round, TestProperty};

/// An unsigned integer that holds a pattern.
pub trait Word:
    Copy
    + Ord
    + BitAnd<Output = Self>
    + BitOr<Output = Self>
    + BitXor<Output = Self>
    + Not<Output = Self>
{
    const ZERO: Self;
    fn wide(self) -> u64;
    /// The low bits.
    fn narrow(bits: u64) -> Self;
}

macro_rules! word {
    ($($bits:ty),*) => {$(
        impl Word for $bits {
            const ZERO: Self = 0;
            #[inline(always)]
            fn wide(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn narrow(bits: u64) -> Self {
                bits as Self
            }
        }
    )*};
}
word!(u16, u32, u64);

/// The pattern type of a format and the host's arithmetic on it.
pub trait Pattern {
    type Bits: Word;
}

/// Operations rounded to nearest; NaN results are some NaN.
pub trait Nearest: Pattern {
    fn add_nearest(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn mul_nearest(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn fma_nearest(a: Self::Bits, b: Self::Bits, c: Self::Bits) -> Self::Bits;
    fn div_nearest(a: Self::Bits, b: Self::Bits) -> Self::Bits;
    fn sqrt_nearest(a: Self::Bits) -> Self::Bits;
    /// False where an operand is NaN.
    fn less(a: Self::Bits, b: Self::Bits) -> bool;
    /// False where an operand is NaN.
    fn less_equal(a: Self::Bits, b: Self::Bits) -> bool;
}

/// Half precision.
pub struct F16;
/// Brain float: the upper half of an `f32`.
pub struct BF16;
/// Single precision.
pub struct F32;
/// Double precision.
pub struct F64;

macro_rules! float {
    ($name:ident, $bits:ty, $format:expr, $nan:expr, $one:expr, $payload:expr) => {
        impl Pattern for $name {
            type Bits = $bits;
        }
        impl Float for $name {
            const FORMAT: Format = $format;
            const SIGN: $bits = $format.sign_bit() as $bits;
            const INFINITY: $bits = $format.exponent_mask() as $bits;
            const MIN_NORMAL: $bits = 1 << $format.fraction;
            const QUIET: $bits = 1 << ($format.fraction - 1);
            const ONE: $bits = $one;
            const CANONICAL_NAN: $bits = $nan;
            const PAYLOAD: bool = $payload;
        }
    };
}
float!(F16, u16, Format::F16, 0x7fff, 0x3c00, false);
float!(BF16, u16, Format::BF16, 0x7fff, 0x3f80, false);
float!(F32, u32, Format::F32, 0x7fff_ffff, 0x3f80_0000, false);
float!(F64, u64, Format::F64, 0xfff8_0000_0000_0000, 0x3ff0_0000_0000_0000, true);

/// A format with PTX's arithmetic. Operands and results are patterns.
pub trait Float: Nearest + Sized {
    const FORMAT: Format;
    const SIGN: Self::Bits;
    const INFINITY: Self::Bits;
    const MIN_NORMAL: Self::Bits;
    /// The bit that a quiet NaN has set.
    const QUIET: Self::Bits;
    const ONE: Self::Bits;
    const CANONICAL_NAN: Self::Bits;
    /// Whether NaN operands hand their payload on.
    const PAYLOAD: bool;

    #[inline(always)]
    fn magnitude(a: Self::Bits) -> Self::Bits {
        a & !Self::SIGN
    }

    #[inline(always)]
    fn is_nan(a: Self::Bits) -> bool {
        Self::magnitude(a) > Self::INFINITY
    }

    #[inline(always)]
    fn is_negative(a: Self::Bits) -> bool {
        a & Self::SIGN != Self::Bits::ZERO
    }

    /// A subnormal becomes a zero of its sign.
    #[inline(always)]
    fn flush(a: Self::Bits) -> Self::Bits {
        if Self::magnitude(a) < Self::MIN_NORMAL { a & Self::SIGN } else { a }
    }

    #[inline(always)]
    fn operand(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        if mode.ftz { Self::flush(a) } else { a }
    }

    /// The NaN that an operation on `operands` gives (F2).
    #[inline(always)]
    fn nan_from(operands: [Self::Bits; 3]) -> Self::Bits {
        if Self::PAYLOAD {
            for operand in operands {
                if Self::is_nan(operand) {
                    return operand | Self::QUIET;
                }
            }
        }
        Self::CANONICAL_NAN
    }

    /// `.sat` and `.relu` (F3).
    #[inline(always)]
    fn limit(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        if mode.sat {
            if Self::is_nan(a) || Self::is_negative(a) {
                Self::Bits::ZERO
            } else {
                a.min(Self::ONE)
            }
        } else if mode.relu && !Self::is_nan(a) && Self::is_negative(a) {
            Self::Bits::ZERO
        } else {
            a
        }
    }

    #[inline(always)]
    fn add(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let (x, y) = (Self::operand(a, mode), Self::operand(b, mode));
        rounded::<Self>(
            mode,
            [a, b, Self::ONE],
            || Self::add_nearest(x, y),
            |slow| slow.add::<Self>(x, y),
        )
    }

    #[inline(always)]
    fn sub(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let (x, y) = (Self::operand(a, mode), Self::operand(b, mode) ^ Self::SIGN);
        rounded::<Self>(
            mode,
            [a, b, Self::ONE],
            || Self::add_nearest(x, y),
            |slow| slow.add::<Self>(x, y),
        )
    }

    #[inline(always)]
    fn mul(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let (x, y) = (Self::operand(a, mode), Self::operand(b, mode));
        rounded::<Self>(
            mode,
            [a, b, Self::ONE],
            || Self::mul_nearest(x, y),
            |slow| slow.mul::<Self>(x, y),
        )
    }

    /// `a·b + c`, rounded once.
    #[inline(always)]
    fn fma(a: Self::Bits, b: Self::Bits, c: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let [x, y, z] = [a, b, c].map(|bits| Self::operand(bits, mode));
        rounded::<Self>(
            mode,
            [a, b, c],
            || Self::fma_nearest(x, y, z),
            |slow| slow.fma::<Self>(x, y, z),
        )
    }

    #[inline(always)]
    fn div(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let (x, y) = (Self::operand(a, mode), Self::operand(b, mode));
        rounded::<Self>(
            mode,
            [a, b, Self::ONE],
            || Self::div_nearest(x, y),
            |slow| slow.div::<Self>(x, y),
        )
    }

    /// `1/a`, rounded once.
    #[inline(always)]
    fn rcp(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        Self::div(Self::ONE, a, mode)
    }

    #[inline(always)]
    fn sqrt(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        let x = Self::operand(a, mode);
        rounded::<Self>(
            mode,
            [a, Self::ONE, Self::ONE],
            || Self::sqrt_nearest(x),
            |slow| slow.sqrt::<Self>(x),
        )
    }

    #[inline(always)]
    fn min(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        extremum::<Self>(a, b, mode, |x, y| {
            if order_key::<Self>(y) < order_key::<Self>(x) { y } else { x }
        })
    }

    #[inline(always)]
    fn max(a: Self::Bits, b: Self::Bits, mode: &FloatMode) -> Self::Bits {
        extremum::<Self>(a, b, mode, |x, y| {
            if order_key::<Self>(x) < order_key::<Self>(y) { y } else { x }
        })
    }

    #[inline(always)]
    fn min3(a: Self::Bits, b: Self::Bits, c: Self::Bits, mode: &FloatMode) -> Self::Bits {
        Self::min(Self::min(a, b, mode), c, mode)
    }

    #[inline(always)]
    fn max3(a: Self::Bits, b: Self::Bits, c: Self::Bits, mode: &FloatMode) -> Self::Bits {
        Self::max(Self::max(a, b, mode), c, mode)
    }

    /// `-a`. The PTX manual leaves the NaN open; hardware subtracts from `-0`, which gives F2, and
    /// in `f64`, where payloads stay, the sign is flipped.
    #[inline(always)]
    fn neg(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        if Self::is_nan(a) && !Self::PAYLOAD {
            Self::CANONICAL_NAN
        } else {
            Self::limit(Self::operand(a, mode) ^ Self::SIGN, mode)
        }
    }

    /// `|a|`; NaN as in [`Float::neg`].
    #[inline(always)]
    fn abs(a: Self::Bits, mode: &FloatMode) -> Self::Bits {
        if Self::is_nan(a) && !Self::PAYLOAD {
            Self::CANONICAL_NAN
        } else {
            Self::limit(Self::magnitude(Self::operand(a, mode)), mode)
        }
    }

    /// The magnitude of `b` with the sign of `a`: PTX's order of operands, not C's.
    #[inline(always)]
    fn copysign(a: Self::Bits, b: Self::Bits) -> Self::Bits {
        (a & Self::SIGN) | Self::magnitude(b)
    }

    /// `setp`. The unsigned names (`lo`, …) are those of integers; on floats they compare as their
    /// ordered twins.
    #[inline(always)]
    fn compare(cmp: Compare, a: Self::Bits, b: Self::Bits, ftz: bool) -> bool {
        let (x, y) = if ftz { (Self::flush(a), Self::flush(b)) } else { (a, b) };
        let unordered = || Self::is_nan(x) || Self::is_nan(y);
        let equal = || Self::less_equal(x, y) && Self::less_equal(y, x);
        match cmp {
            Compare::Eq => equal(),
            Compare::Ne => Self::less(x, y) || Self::less(y, x),
            Compare::Lt | Compare::Lo => Self::less(x, y),
            Compare::Le | Compare::Ls => Self::less_equal(x, y),
            Compare::Gt | Compare::Hi => Self::less(y, x),
            Compare::Ge | Compare::Hs => Self::less_equal(y, x),
            Compare::Equ => !(Self::less(x, y) || Self::less(y, x)),
            Compare::Neu => !equal(),
            Compare::Ltu => !Self::less_equal(y, x),
            Compare::Leu => !Self::less(y, x),
            Compare::Gtu => !Self::less_equal(x, y),
            Compare::Geu => !Self::less(x, y),
            Compare::Num => !unordered(),
            Compare::Nan => unordered(),
        }
    }

    #[inline(always)]
    fn testp(property: TestProperty, a: Self::Bits) -> bool {
        let magnitude = Self::magnitude(a);
        match property {
            TestProperty::Finite => magnitude < Self::INFINITY,
            TestProperty::Infinite => magnitude == Self::INFINITY,
            TestProperty::Number => !Self::is_nan(a),
            TestProperty::NotANumber => Self::is_nan(a),
            TestProperty::Normal => magnitude >= Self::MIN_NORMAL && magnitude < Self::INFINITY,
            TestProperty::Subnormal => {
                magnitude != Self::Bits::ZERO && magnitude < Self::MIN_NORMAL
            }
        }
    }
}

/// One rounded operation: the host where it answers as PTX asks, the slow road elsewhere.
#[inline(always)]
fn rounded<F: Float>(
    mode: &FloatMode,
    operands: [F::Bits; 3],
    nearest: impl FnOnce() -> F::Bits,
    directed: impl FnOnce(Directed) -> F::Bits,
) -> F::Bits {
    let round = mode.round.unwrap_or(Round::Rn);
    let underflow = if mode.ftz { Underflow::Flush } else { Underflow::Gradual };
    let slow = Directed { round, underflow };
    let result = if round == Round::Rn {
        let result = nearest();
        // The host rounds subnormals coarser than F5 asks; it shows at the threshold alone.
        if mode.ftz && F::magnitude(result) == F::MIN_NORMAL {
            directed(slow)
        } else {
            F::operand(result, mode)
        }
    } else {
        directed(slow)
    };
    let result = if F::is_nan(result) { F::nan_from(operands) } else { result };
    F::limit(result, mode)
}

/// A key in the order of the numbers, `-0` below `+0`.
#[inline(always)]
fn order_key<F: Float>(a: F::Bits) -> F::Bits {
    if F::is_negative(a) { !a } else { a | F::SIGN }
}

/// The frame of `min` and `max` (F4).
#[inline(always)]
fn extremum<F: Float>(
    a: F::Bits,
    b: F::Bits,
    mode: &FloatMode,
    choose: impl FnOnce(F::Bits, F::Bits) -> F::Bits,
) -> F::Bits {
    let (a, b) = (F::operand(a, mode), F::operand(b, mode));
    let sign = if mode.xorsign { (a ^ b) & F::SIGN } else { F::Bits::ZERO };
    let (x, y) = if mode.abs || mode.xorsign { (F::magnitude(a), F::magnitude(b)) } else { (a, b) };
    let (a_nan, b_nan) = (F::is_nan(a), F::is_nan(b));
    let result = if (a_nan || b_nan) && (mode.nan || (a_nan && b_nan)) {
        F::CANONICAL_NAN
    } else if a_nan {
        y | sign
    } else if b_nan {
        x | sign
    } else {
        choose(x, y) | sign
    };
    F::limit(result, mode)
}
