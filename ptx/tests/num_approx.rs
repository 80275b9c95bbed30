//! `num::approx`: the manual's bounds on sweeps, and its tables of special operands.

use bitstable_ptx::ir::{FloatUnary, Precision, Scalar};
use bitstable_ptx::num::approx;
use bitstable_ptx::num::narrow::{bf16_to_f32, f16_to_f32};

const INF: u32 = 0x7f80_0000;
const MINUS_INF: u32 = 0xff80_0000;
const NAN: u32 = 0x7fff_ffff;
const MINUS: u32 = 0x8000_0000;
const ONE: u32 = 0x3f80_0000;

/// Greatest error over every `step`-th positive and negative pattern in `range`.
fn greatest(
    name: &str,
    range: std::ops::Range<u32>,
    step: usize,
    got: impl Fn(u32) -> u32,
    want: impl Fn(f64) -> f64,
    error: impl Fn(f64, f64) -> f64,
) -> f64 {
    let mut greatest = (0.0, 0);
    for magnitude in range.step_by(step) {
        for bits in [magnitude, magnitude | MINUS] {
            let want = want(f32::from_bits(bits).into());
            if !want.is_finite() || want.abs() > f64::from(f32::MAX) {
                continue;
            }
            let here = error(f32::from_bits(got(bits)).into(), want);
            if here > greatest.0 {
                greatest = (here, bits);
            }
        }
    }
    println!("{name}: 2^{:.3} at {:x}", greatest.0.log2(), greatest.1);
    greatest.0
}

/// Relative to the value, or to the smallest normal number below it.
fn relative(got: f64, want: f64) -> f64 {
    (got - want).abs() / want.abs().max(f64::from(f32::MIN_POSITIVE))
}

fn absolute(got: f64, want: f64) -> f64 {
    (got - want).abs()
}

/// All finite positive patterns, a few hundred thousand of them.
const ALL: std::ops::Range<u32> = 1..INF;
const STEP: usize = 9_973;

#[test]
fn exp2_is_within_its_bound() {
    let ex2 = |bits| approx::ex2(bits, false);
    let error = greatest("ex2", 0x3000_0000..0x4316_0000, 499, ex2, f64::exp2, relative);
    assert!(error < 2f64.powf(-23.9) && error > 0.0);
}

#[test]
fn log2_is_within_its_bound() {
    let lg2 = |bits| approx::lg2(bits, false);
    let error = greatest("lg2", ALL, STEP, lg2, f64::log2, relative);
    assert!(error < 2f64.powf(-23.9) && error > 0.0);
    let near_one = 0x3f7f_0000..0x3f81_0000;
    let error = greatest("lg2 near 1", near_one, 7, lg2, f64::log2, relative);
    assert!(error < 2f64.powf(-23.9));
}

#[test]
fn roots_and_reciprocals_are_within_their_bounds() {
    let rsqrt = greatest(
        "rsqrt",
        ALL,
        STEP,
        |bits| approx::rsqrt(bits, false),
        |x| 1.0 / x.sqrt(),
        relative,
    );
    let rcp = greatest("rcp", ALL, STEP, |bits| approx::rcp(bits, false), |x| 1.0 / x, relative);
    let sqrt = greatest("sqrt", ALL, STEP, |bits| approx::sqrt(bits, false), f64::sqrt, relative);
    for error in [rsqrt, rcp, sqrt] {
        assert!(error < 2f64.powf(-23.9) && error > 0.0);
    }
}

#[test]
fn sines_are_within_their_bounds() {
    // Up to 2π the manual's absolute bound; everywhere the rounding of the exact value.
    for (name, got, want) in [
        ("sin", approx::sin as fn(u32, bool) -> u32, f64::sin as fn(f64) -> f64),
        ("cos", approx::cos, f64::cos),
    ] {
        let near = 0x3000_0000..0x40c9_0fdb;
        let error = greatest(name, near, 997, |bits| got(bits, false), want, absolute);
        assert!(error < 2f64.powf(-24.9) && error > 0.0);
        let error = greatest(name, ALL, STEP, |bits| got(bits, false), want, relative);
        assert!(error < 2f64.powf(-23.9));
    }
    // The hardest argument of binary32 (Muller, Elementary Functions): x = 16367173 · 2^72 is
    // nearest to a multiple of π/2.
    let hardest = (16_367_173.0f32 * 72f32.exp2()).to_bits();
    let want = f64::from(f32::from_bits(hardest));
    let cos = f32::from_bits(approx::cos(hardest, false));
    let sin = f32::from_bits(approx::sin(hardest, false));
    assert!(relative(cos.into(), want.cos()) < 2f64.powf(-23.9));
    assert!(relative(sin.into(), want.sin()) < 2f64.powf(-23.9));
}

#[test]
fn tanh_is_within_its_bound() {
    let error = greatest("tanh", ALL, STEP, approx::tanh_f32, f64::tanh, relative);
    assert!(error < 2f64.powf(-23.9) && error > 0.0);
}

#[test]
fn halves_are_nearest_numbers() {
    /// Name, function, widening, reference, binary logarithm of the bound.
    type Row = (&'static str, fn(u16) -> u16, fn(u16) -> u32, fn(f64) -> f64, f64);
    let functions: [Row; 4] = [
        ("ex2.f16", approx::ex2_f16, f16_to_f32, f64::exp2, -9.9),
        ("ex2.bf16", approx::ex2_bf16, bf16_to_f32, f64::exp2, -7.0),
        ("tanh.f16", approx::tanh_f16, f16_to_f32, f64::tanh, -10.98),
        ("tanh.bf16", approx::tanh_bf16, bf16_to_f32, f64::tanh, -8.0),
    ];
    for (name, function, widen, want, bound) in functions {
        let mut greatest = 0f64;
        for bits in 0..=u16::MAX {
            let want = want(f32::from_bits(widen(bits)).into());
            let got = f64::from(f32::from_bits(widen(function(bits))));
            // Normal numbers of both formats; 65504 is the largest f16.
            if want.abs() > 6.2e-5 && want.abs() < 65_504.0 {
                greatest = greatest.max((got - want).abs() / want.abs());
            }
        }
        println!("{name}: 2^{:.3}", greatest.log2());
        assert!(greatest < 2f64.powf(bound) && greatest > 0.0, "{name}");
    }
}

#[test]
fn special_operands_of_ex2() {
    for ftz in [false, true] {
        for (operand, want) in [
            (MINUS_INF, 0),
            (0x8000_0001, ONE),
            (MINUS, ONE),
            (0, ONE),
            (1, ONE),
            (INF, INF),
            (0x4300_0000, INF),
            (0x7fc0_0000, NAN),
            (ONE, 0x4000_0000),
            (0xc110_0000, 0x3b00_0000),
        ] {
            assert_eq!(approx::ex2(operand, ftz), want, "{operand:x}");
        }
    }
    // 2^-127 and 2^-149.
    assert_eq!(approx::ex2(0xc2fe_0000, false), 0x0040_0000);
    assert_eq!(approx::ex2(0xc2fe_0000, true), 0);
    assert_eq!(approx::ex2(0xc315_0000, false), 1);
    assert_eq!(approx::ex2_f16(0xfc00), 0);
    assert_eq!(approx::ex2_f16(0x0001), 0x3c00);
    assert_eq!(approx::ex2_f16(0xce00), 1);
    assert_eq!(approx::ex2_f16(0x7c01), 0x7fff);
    assert_eq!(approx::ex2_f16(0x7bff), 0x7c00);
    assert_eq!(approx::ex2_bf16(0xc2fe), 0);
    assert_eq!(approx::ex2_bf16(0x7fc1), 0x7fff);
}

#[test]
fn special_operands_of_lg2() {
    for (operand, plain, flushed) in [
        (MINUS_INF, NAN, NAN),
        (0xbf80_0000, NAN, NAN),
        (0x8000_0001, NAN, MINUS_INF),
        (MINUS, MINUS_INF, MINUS_INF),
        (0, MINUS_INF, MINUS_INF),
        (1, 0xc315_0000, MINUS_INF),
        (ONE, 0, 0),
        (0x4100_0000, 0x4040_0000, 0x4040_0000),
        (INF, INF, INF),
        (0xffc0_0001, NAN, NAN),
    ] {
        assert_eq!(approx::lg2(operand, false), plain, "{operand:x}");
        assert_eq!(approx::lg2(operand, true), flushed, "{operand:x}");
    }
}

#[test]
fn special_operands_of_roots_and_reciprocals() {
    for (operand, rcp, sqrt, rsqrt) in [
        (MINUS_INF, MINUS, NAN, NAN),
        (0x8000_0001, MINUS_INF, MINUS, MINUS_INF),
        (MINUS, MINUS_INF, MINUS, MINUS_INF),
        (0, INF, 0, INF),
        (1, INF, 0, INF),
        (INF, 0, INF, 0),
        (0x7f80_0001, NAN, NAN, NAN),
        (0xc080_0000, 0xbe80_0000, NAN, NAN),
        (0x4080_0000, 0x3e80_0000, 0x4000_0000, 0x3f00_0000),
    ] {
        assert_eq!(approx::rcp(operand, true), rcp, "rcp {operand:x}");
        assert_eq!(approx::sqrt(operand, true), sqrt, "sqrt {operand:x}");
        assert_eq!(approx::rsqrt(operand, true), rsqrt, "rsqrt {operand:x}");
    }
    assert_eq!(approx::rsqrt(0x8000_0001, false), NAN);
    assert_eq!(approx::rcp(0x7f00_0000, true), 0);
    assert_eq!(approx::rcp(0x7f00_0000, false), 0x0040_0000);
}

#[test]
fn special_operands_of_sines_and_tanh() {
    for operand in [INF, MINUS_INF, 0x7fc0_0000] {
        assert_eq!(approx::sin(operand, false), NAN);
        assert_eq!(approx::cos(operand, false), NAN);
    }
    for zero in [0, MINUS] {
        assert_eq!(approx::sin(zero, false), zero);
        assert_eq!(approx::cos(zero, false), ONE);
        assert_eq!(approx::tanh_f32(zero), zero);
    }
    assert_eq!(approx::sin(0x8000_0001, true), MINUS);
    assert_eq!(approx::sin(0x8000_0001, false), 0x8000_0001);
    assert_eq!(approx::tanh_f32(0x8000_0001), 0x8000_0001);
    assert_eq!(approx::tanh_f32(INF), ONE);
    assert_eq!(approx::tanh_f32(MINUS_INF), ONE | MINUS);
    assert_eq!(approx::tanh_f32(0x7fc0_0000), NAN);
    assert_eq!(approx::tanh_f16(0xfc00), 0xbc00);
    assert_eq!(approx::tanh_f16(0x8001), 0x8001);
    assert_eq!(approx::tanh_bf16(0x7f80), 0x3f80);
}

#[test]
fn divisions() {
    let third = (1.0f32 / 3.0).to_bits();
    assert_eq!(approx::div(ONE, 0x4040_0000, false), third);
    assert_eq!(approx::div_full(ONE, 0x4040_0000, false), third);
    let huge = 0x7f00_0000; // 2^127
    assert_eq!(approx::div(huge, huge, false), 0);
    assert_eq!(approx::div(ONE, huge | MINUS, false), MINUS);
    assert_eq!(approx::div(INF, huge, false), NAN);
    assert_eq!(approx::div(INF, 0x7e80_0000, false), INF);
    assert_eq!(approx::div(ONE, INF, false), 0);
    assert_eq!(approx::div(0x7fc0_0000, huge, false), NAN);
    assert_eq!(approx::div(ONE, 0xffc0_0000, false), NAN);
    assert_eq!(approx::div_full(huge, huge, false), ONE);
    assert_eq!(approx::div_full(0, 0, false), NAN);
}

#[test]
fn doubles_by_upper_word() {
    let pi = std::f64::consts::PI.to_bits();
    for (got, want) in [
        (approx::rcp_f64(pi), 1.0 / std::f64::consts::PI),
        (approx::rsqrt_ftz_f64(pi), 1.0 / std::f64::consts::PI.sqrt()),
    ] {
        assert_eq!(got as u32, 0);
        assert!((f64::from_bits(got) / want - 1.0).abs() < 2f64.powi(-19));
    }
    assert_eq!(approx::rcp_f64(0x7ff8 << 48), 0x7fff_ffff << 32);
    assert_eq!(approx::rcp_f64(1), 0x7ff0 << 48);
    assert_eq!(approx::rcp_f64(1 << 63), 0xfff0 << 48);
    assert_eq!(approx::rcp_f64(0xfff0 << 48), 1 << 63);
    assert_eq!(approx::rsqrt_ftz_f64(0xbff0 << 48), 0x7fff_ffff << 32);
    let exact = approx::rsqrt_f64(4f64.to_bits());
    assert_eq!(exact, 0.5f64.to_bits());
    assert_eq!(approx::rsqrt_f64(1), 2f64.powi(537).to_bits());
    assert_eq!(approx::rsqrt_f64(1 << 63), 0xfff0 << 48);
}

#[test]
fn dispatch_names_what_it_knows() {
    let pair = approx::unary(FloatUnary::Ex2, Scalar::F16x2, false, 0x3c00_c000);
    assert_eq!(pair, 0x4000_3400);
    assert!(approx::supported(FloatUnary::Ex2, Scalar::BF16x2, true));
    assert!(!approx::supported(FloatUnary::Ex2, Scalar::F64, false));
    assert!(!approx::supported(FloatUnary::Sin, Scalar::F16, false));
    assert!(!approx::supported(FloatUnary::Rcp(Precision::Rounded), Scalar::F32, false));
    let rcp = FloatUnary::Rcp(Precision::Approx);
    assert_eq!(approx::unary(rcp, Scalar::F32, true, 0x4000_0000), 0x3f00_0000);
}
