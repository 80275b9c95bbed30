//! `f16` and `bf16` to and from `f32`, and rounding to odd.
//!
//! # Idea
//! Widening is exact. Narrowing rounds to nearest, ties to even, with integer arithmetic and
//! selects only, so that a loop over lanes vectorises. *Rounding to odd* keeps an inexact result's
//! last bit one: a later rounding to nearest with at least two bits less is then the rounding of
//! the exact value (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
//! # Invariants
//! - **N1** Every NaN narrows to the canonical NaN, and `f16` NaNs widen to it. `bf16` NaNs widen
//!   with their payload: that widening is a shift in hardware too.
//! # Held by
//! `ptx/tests/num_convert.rs`: all 65,536 patterns of both formats, both ways.

/// Canonical NaN of `f32`.
pub const F32_NAN: u32 = 0x7fff_ffff;
/// Canonical NaN of `f16` and `bf16`.
pub const HALF_NAN: u16 = 0x7fff;

/// `cvt.f32.bf16`.
#[inline(always)]
pub fn bf16_to_f32(bits: u16) -> u32 {
    u32::from(bits) << 16
}

/// `cvt.f32.f16`.
#[inline(always)]
pub fn f16_to_f32(bits: u16) -> u32 {
    let magnitude = u32::from(bits & 0x7fff);
    let sign = u32::from(bits & 0x8000) << 16;
    // The fields moved into place are the value times 2^(15 - 127), subnormals included.
    let scaled = (f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
    let special = if magnitude == 0x7c00 { 0x7f80_0000 } else { F32_NAN };
    if magnitude < 0x7c00 {
        scaled | sign
    } else if magnitude == 0x7c00 {
        special | sign
    } else {
        special
    }
}

/// `cvt.rn.bf16.f32`.
#[inline(always)]
pub fn f32_to_bf16(bits: u32) -> u16 {
    let rounded = bits.wrapping_add(0x7fff + ((bits >> 16) & 1)) >> 16;
    if bits & 0x7fff_ffff > 0x7f80_0000 { HALF_NAN } else { rounded as u16 }
}

/// `cvt.rn.f16.f32`.
#[inline(always)]
pub fn f32_to_f16(bits: u32) -> u16 {
    let magnitude = bits & 0x7fff_ffff;
    let sign = ((bits >> 16) & 0x8000) as u16;
    // Below 2^-14: adding 1/2 leaves multiples of 2^-24 in the low bits, rounded by the addition.
    let half = f32::from_bits(0x3f00_0000);
    let subnormal = (f32::from_bits(magnitude) + half).to_bits().wrapping_sub(0x3f00_0000);
    let rebiased = magnitude.wrapping_sub((127 - 15) << 23);
    let normal = rebiased.wrapping_add(0xfff + ((magnitude >> 13) & 1)) >> 13;
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    // 65520, half-way between the largest number and 2^16, is the first to overflow.
    let number = if magnitude >= 0x477f_f000 { 0x7c00 } else { finite as u16 };
    if magnitude > 0x7f80_0000 { HALF_NAN } else { number | sign }
}

/// The sum, rounded to odd. `sum` must be the rounded sum and `error` what it lacks.
#[inline(always)]
fn to_odd(sum: f64, error: f64) -> f64 {
    let bits = sum.to_bits();
    let same_side = (bits ^ error.to_bits()) >> 63 == 0;
    let moved = if same_side { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    // A NaN error (of an infinite sum) is on neither side.
    let inexact = error.abs() > 0.0;
    if inexact && bits & 1 == 0 { f64::from_bits(moved) } else { sum }
}

/// `a + b` rounded to odd, where neither sum nor error leaves the normal range of `f64`.
#[inline(always)]
pub fn add_to_odd(a: f64, b: f64) -> f64 {
    // Knuth's two-sum: the error of a rounded sum is itself a number.
    let sum = a + b;
    let b_seen = sum - a;
    let a_seen = sum - b_seen;
    to_odd(sum, (a - a_seen) + (b - b_seen))
}

/// An `f64` rounded to odd into `f32`. NaN stays some NaN.
#[inline(always)]
pub fn f64_to_f32_odd(value: f64) -> u32 {
    let nearest = value as f32;
    let bits = nearest.to_bits();
    let error = value - f64::from(nearest);
    let same_side = (error.to_bits() >> 63) as u32 == bits >> 31;
    let moved = if same_side { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error.abs() > 0.0;
    if inexact && bits & 1 == 0 { moved } else { bits }
}
