//! The approximate functions: `ex2`, `lg2`, `rcp`, `rsqrt`, `sqrt`, `sin`, `cos`, `tanh`, `div`.
//!
//! # Idea
//! The PTX manual bounds the error of `.approx` and lists the results for special operands; which
//! number within the bound comes out is the hardware's own. Here it is the function computed in
//! `f64` and rounded once: nearer than the bound asks, and **not the hardware's last bit**.
//! # Invariants
//! - **P1** Deterministic: nothing depends on the host.
//! - **P2** Within the manual's bounds: `ex2`, `lg2` 2^-22, `rcp` 2^-23, `rsqrt` 2^-22.9, `sqrt`
//!   2^-23, `tanh` 2^-11 (relative), `sin` and `cos` 2^-20.5 (absolute, within ±2π), `div` 2 ulp;
//!   `f16`: `ex2` 2^-9.9, `tanh` 2^-10.98; `bf16`: `ex2` 2^-7, `tanh` 2^-8. All `f32` results are
//!   within 0.501 ulp.
//! - **P3** Special operands as in the manual's tables. `.ftz` flushes operands and results to
//!   zeros of their sign, so `lg2.approx.ftz` of a negative subnormal is `-inf`.
//! - **P4** `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64` read the upper 32 bits of the operand
//!   and write those of the result, zeros below; NaN gives `0x7fffffff00000000`.
//! # Held by
//! `ptx/tests/num_approx.rs`: sweeps that print the greatest error, and the tables.

mod series;

use super::float::{BF16, F16, F32, F64, Float};
use super::narrow::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16, f64_to_f32_odd};
use crate::ir::{FloatMode, FloatUnary, Precision, Scalar};

const NAN: f64 = f64::NAN;

fn mode(ftz: bool) -> FloatMode {
    FloatMode { ftz, ..FloatMode::default() }
}

/// Runs a function of an `f32` that answers in `f64`: operand flushed, result rounded and flushed.
#[inline(always)]
fn single(bits: u32, ftz: bool, function: impl FnOnce(f32) -> f64) -> u32 {
    let operand = if ftz { F32::flush(bits) } else { bits };
    let result = (function(f32::from_bits(operand)) as f32).to_bits();
    if F32::is_nan(bits) || F32::is_nan(result) {
        F32::CANONICAL_NAN
    } else if ftz {
        F32::flush(result)
    } else {
        result
    }
}

#[inline(always)]
fn exp2(x: f32) -> f64 {
    // Beyond ±200 all formats overflow or vanish; NaN is the caller's.
    series::exp2(f64::from(x).clamp(-200.0, 200.0))
}

#[inline(always)]
fn tanh(x: f32) -> f64 {
    series::tanh(f64::from(x).clamp(-50.0, 50.0))
}

/// `ex2.approx.f32`.
#[inline(always)]
pub fn ex2(bits: u32, ftz: bool) -> u32 {
    single(bits, ftz, exp2)
}

/// `lg2.approx.f32`.
#[inline(always)]
pub fn lg2(bits: u32, ftz: bool) -> u32 {
    single(bits, ftz, |x| {
        let wide = f64::from(x);
        if wide > 0.0 && x < f32::INFINITY {
            series::log2(wide)
        } else if wide > 0.0 {
            f64::INFINITY
        } else if wide < 0.0 {
            NAN
        } else {
            f64::NEG_INFINITY
        }
    })
}

/// `rcp.approx.f32`: the rounded reciprocal.
#[inline(always)]
pub fn rcp(bits: u32, ftz: bool) -> u32 {
    F32::rcp(bits, &mode(ftz))
}

/// `sqrt.approx.f32`: the rounded root.
#[inline(always)]
pub fn sqrt(bits: u32, ftz: bool) -> u32 {
    F32::sqrt(bits, &mode(ftz))
}

/// `rsqrt.approx.f32`.
#[inline(always)]
pub fn rsqrt(bits: u32, ftz: bool) -> u32 {
    single(bits, ftz, |x| 1.0 / f64::from(x).sqrt())
}

/// `sin.approx.f32`.
#[inline]
pub fn sin(bits: u32, ftz: bool) -> u32 {
    single(bits, ftz, |x| trigonometric(x, 0))
}

/// `cos.approx.f32`.
#[inline]
pub fn cos(bits: u32, ftz: bool) -> u32 {
    single(bits, ftz, |x| trigonometric(x, 1))
}

#[inline]
fn trigonometric(x: f32, shift: u32) -> f64 {
    if x.is_finite() { series::sin_shifted(x, shift) } else { NAN }
}

/// `tanh.approx.f32`: subnormals stay.
#[inline(always)]
pub fn tanh_f32(bits: u32) -> u32 {
    let result = single(bits, false, tanh);
    // The series gives +0 for -0, and loses bits of subnormals to no one.
    if F32::magnitude(bits) < F32::MIN_NORMAL { bits } else { result }
}

/// `div.approx.f32`: the rounded quotient, but for divisors above `2^126`, whose reciprocal the
/// hardware flushes: zero then, or NaN if the dividend is infinite.
#[inline(always)]
pub fn div(a: u32, b: u32, ftz: bool) -> u32 {
    let (above, infinity) = (0x7e80_0000, 0x7f80_0000);
    let magnitude = F32::magnitude(b);
    if magnitude > above && magnitude < infinity && !F32::is_nan(a) {
        if F32::magnitude(a) == infinity { F32::CANONICAL_NAN } else { (a ^ b) & F32::SIGN }
    } else {
        F32::div(a, b, &mode(ftz))
    }
}

/// `div.full.f32`: the rounded quotient.
#[inline(always)]
pub fn div_full(a: u32, b: u32, ftz: bool) -> u32 {
    F32::div(a, b, &mode(ftz))
}

/// A function of one half, through `f32` and once rounded.
#[inline(always)]
fn half(bits: u16, widen: fn(u16) -> u32, narrow: fn(u32) -> u16, function: fn(f32) -> f64) -> u16 {
    let x = f32::from_bits(widen(bits));
    if x.is_nan() { F16::CANONICAL_NAN } else { narrow(f64_to_f32_odd(function(x))) }
}

/// `ex2.approx.f16`: subnormals are supported.
#[inline(always)]
pub fn ex2_f16(bits: u16) -> u16 {
    half(bits, f16_to_f32, f32_to_f16, exp2)
}

/// `ex2.approx.ftz.bf16`.
#[inline(always)]
pub fn ex2_bf16(bits: u16) -> u16 {
    BF16::flush(half(BF16::flush(bits), bf16_to_f32, f32_to_bf16, exp2))
}

/// `tanh.approx.f16`: subnormals stay.
#[inline(always)]
pub fn tanh_f16(bits: u16) -> u16 {
    if F16::magnitude(bits) < F16::MIN_NORMAL {
        bits
    } else {
        half(bits, f16_to_f32, f32_to_f16, tanh)
    }
}

/// `tanh.approx.bf16`: subnormals stay.
#[inline(always)]
pub fn tanh_bf16(bits: u16) -> u16 {
    if BF16::magnitude(bits) < BF16::MIN_NORMAL {
        bits
    } else {
        half(bits, bf16_to_f32, f32_to_bf16, tanh)
    }
}

/// The gross functions on the upper words (P4).
#[inline]
fn upper_word(bits: u64, function: impl FnOnce(f64) -> f64) -> u64 {
    let upper = |bits: u64| bits & !0xffff_ffff;
    let operand = F64::flush(upper(bits));
    let result = F64::flush(function(f64::from_bits(operand)).to_bits());
    if F64::is_nan(bits) || F64::is_nan(result) { 0x7fff_ffff << 32 } else { upper(result) }
}

/// `rcp.approx.ftz.f64`.
#[inline]
pub fn rcp_f64(bits: u64) -> u64 {
    upper_word(bits, |x| 1.0 / x)
}

/// `rsqrt.approx.ftz.f64`.
#[inline]
pub fn rsqrt_ftz_f64(bits: u64) -> u64 {
    upper_word(bits, |x| 1.0 / x.sqrt())
}

/// `rsqrt.approx.f64`: subnormals are supported.
#[inline]
pub fn rsqrt_f64(bits: u64) -> u64 {
    let result = (1.0 / f64::from_bits(bits).sqrt()).to_bits();
    if F64::is_nan(result) { F64::nan_from([bits, F64::ONE, F64::ONE]) } else { result }
}

/// Whether [`unary`] is the meaning of an approximate function on `ty`.
pub fn supported(op: FloatUnary, ty: Scalar, ftz: bool) -> bool {
    use Scalar::{BF16, BF16x2, F16, F16x2, F32, F64};
    match op {
        FloatUnary::Ex2 => {
            ty == F32 || (!ftz && matches!(ty, F16 | F16x2)) || (ftz && matches!(ty, BF16 | BF16x2))
        }
        FloatUnary::Tanh => matches!(ty, F32 | F16 | F16x2 | BF16 | BF16x2) && !ftz,
        FloatUnary::Rsqrt => ty == F32 || ty == F64,
        FloatUnary::Rcp(Precision::Approx) => ty == F32 || (ty == F64 && ftz),
        FloatUnary::Sqrt(Precision::Approx)
        | FloatUnary::Sin
        | FloatUnary::Cos
        | FloatUnary::Lg2 => ty == F32,
        FloatUnary::Abs
        | FloatUnary::Neg
        | FloatUnary::Sqrt(Precision::Rounded | Precision::Full)
        | FloatUnary::Rcp(Precision::Rounded | Precision::Full) => false,
    }
}

/// An approximate function of one operand; 0 where [`supported`] says no.
#[inline]
pub fn unary(op: FloatUnary, ty: Scalar, ftz: bool, bits: u64) -> u64 {
    if ty.lanes() == 2 {
        let element = ty.element();
        return unary(op, element, ftz, bits >> 16) << 16 | unary(op, element, ftz, bits & 0xffff);
    }
    let (half, word) = (bits as u16, bits as u32);
    match (op, ty) {
        (FloatUnary::Ex2, Scalar::F32) => ex2(word, ftz).into(),
        (FloatUnary::Ex2, Scalar::F16) => ex2_f16(half).into(),
        (FloatUnary::Ex2, Scalar::BF16) => ex2_bf16(half).into(),
        (FloatUnary::Tanh, Scalar::F32) => tanh_f32(word).into(),
        (FloatUnary::Tanh, Scalar::F16) => tanh_f16(half).into(),
        (FloatUnary::Tanh, Scalar::BF16) => tanh_bf16(half).into(),
        (FloatUnary::Lg2, Scalar::F32) => lg2(word, ftz).into(),
        (FloatUnary::Sin, Scalar::F32) => sin(word, ftz).into(),
        (FloatUnary::Cos, Scalar::F32) => cos(word, ftz).into(),
        (FloatUnary::Rsqrt, Scalar::F32) => rsqrt(word, ftz).into(),
        (FloatUnary::Rsqrt, Scalar::F64) if ftz => rsqrt_ftz_f64(bits),
        (FloatUnary::Rsqrt, Scalar::F64) => rsqrt_f64(bits),
        (FloatUnary::Rcp(Precision::Approx), Scalar::F32) => rcp(word, ftz).into(),
        (FloatUnary::Rcp(Precision::Approx), Scalar::F64) => rcp_f64(bits),
        (FloatUnary::Sqrt(Precision::Approx), Scalar::F32) => sqrt(word, ftz).into(),
        (_, _) => 0,
    }
}
