//! Rounding to nearest by the host's own IEEE arithmetic.
//!
//! # Idea
//! `f32` and `f64` operations are the host's. `f16` and `bf16` go through `f32`, which rounds twice
//! and yet once: with `p = 24` bits and formats of `q = 11` and `q = 8`, `p >= 2q + 2`, so for
//! add, sub, mul, div and sqrt the second rounding sees what the exact value would have shown
//! (Figueroa, "When is double rounding innocuous?", 1995). At the low end, where `f32` has fewer
//! than 24 bits, sums are exact in both; products of `bf16` whose leading bit is at or above
//! `2^-134`, half the smallest subnormal, have 16 bits, so their last is at or above `2^-149` and
//! they are exact in `f32`; smaller ones round to at most `2^-134`, a tie that goes to zero; and a
//! quotient of 8-bit numbers that is not a midpoint is too far from one for `f32` to hide it.
//! # Invariants
//! - **V1** A fused product is exact in `f64` (24 + 24 bits, exponents within 2^±298), the sum is
//!   rounded to odd, and only the last step rounds to nearest.
//! - **V2** NaN results carry no meaning here; the caller replaces them.
//! # Held by
//! `ptx/tests/num_float.rs`, which draws operands whose exponents straddle the ties.

use super::{BF16, F16, F32, F64, Nearest};
use crate::num::narrow::{
    add_to_odd, bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, f64_to_f32_odd,
};

/// `a·b + c` on `f32`, rounded once.
#[inline(always)]
fn fma_f32(a: f32, b: f32, c: f32) -> f32 {
    if cfg!(target_feature = "fma") {
        a.mul_add(b, c)
    } else {
        add_to_odd(f64::from(a) * f64::from(b), f64::from(c)) as f32
    }
}

/// `a·b + c` on values of at most 24 bits, rounded to odd into `f32`.
#[inline(always)]
fn fma_odd(a: u32, b: u32, c: u32) -> u32 {
    let [a, b, c] = [a, b, c].map(|bits| f64::from(f32::from_bits(bits)));
    f64_to_f32_odd(add_to_odd(a * b, c))
}

macro_rules! host {
    ($format:ty, $float:ty, $bits:ty, $fma:expr) => {
        impl Nearest for $format {
            #[inline(always)]
            fn add_nearest(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) + <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn mul_nearest(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) * <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn fma_nearest(a: $bits, b: $bits, c: $bits) -> $bits {
                let fma: fn($float, $float, $float) -> $float = $fma;
                let [a, b, c] = [a, b, c].map(<$float>::from_bits);
                fma(a, b, c).to_bits()
            }
            #[inline(always)]
            fn div_nearest(a: $bits, b: $bits) -> $bits {
                (<$float>::from_bits(a) / <$float>::from_bits(b)).to_bits()
            }
            #[inline(always)]
            fn sqrt_nearest(a: $bits) -> $bits {
                <$float>::from_bits(a).sqrt().to_bits()
            }
            #[inline(always)]
            fn less(a: $bits, b: $bits) -> bool {
                <$float>::from_bits(a) < <$float>::from_bits(b)
            }
            #[inline(always)]
            fn less_equal(a: $bits, b: $bits) -> bool {
                <$float>::from_bits(a) <= <$float>::from_bits(b)
            }
        }
    };
}

macro_rules! through_f32 {
    ($format:ty, $widen:path, $narrow:path) => {
        impl Nearest for $format {
            #[inline(always)]
            fn add_nearest(a: u16, b: u16) -> u16 {
                $narrow(F32::add_nearest($widen(a), $widen(b)))
            }
            #[inline(always)]
            fn mul_nearest(a: u16, b: u16) -> u16 {
                $narrow(F32::mul_nearest($widen(a), $widen(b)))
            }
            #[inline(always)]
            fn fma_nearest(a: u16, b: u16, c: u16) -> u16 {
                $narrow(fma_odd($widen(a), $widen(b), $widen(c)))
            }
            #[inline(always)]
            fn div_nearest(a: u16, b: u16) -> u16 {
                $narrow(F32::div_nearest($widen(a), $widen(b)))
            }
            #[inline(always)]
            fn sqrt_nearest(a: u16) -> u16 {
                $narrow(F32::sqrt_nearest($widen(a)))
            }
            #[inline(always)]
            fn less(a: u16, b: u16) -> bool {
                F32::less($widen(a), $widen(b))
            }
            #[inline(always)]
            fn less_equal(a: u16, b: u16) -> bool {
                F32::less_equal($widen(a), $widen(b))
            }
        }
    };
}

host!(F32, f32, u32, fma_f32);
host!(F64, f64, u64, f64::mul_add);
through_f32!(F16, f16_to_f32, f32_to_f16);
through_f32!(BF16, bf16_to_f32, f32_to_bf16);
