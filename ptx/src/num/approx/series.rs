//! Elementary functions in `f64`, good for a rounding to `f32`.
//!
//! # Idea
//! Each argument is reduced to a short interval and a series is summed there, with plain additions
//! and multiplications in a fixed order: no fused operation and no call into the host's libm, so
//! every host computes the same bits. Relative errors stay below `2^-40`.
//! # Held by
//! `ptx/tests/num_approx.rs`, which sweeps each against the host's functions.

/// `1.5 · 2^52`: added and taken away, it rounds to an integer, which it leaves in the low bits.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Coefficients by rising power, at `x`.
#[inline(always)]
fn polynomial<const N: usize>(x: f64, coefficients: [f64; N]) -> f64 {
    let mut sum = 0.0;
    for coefficient in coefficients.into_iter().rev() {
        sum = sum * x + coefficient;
    }
    sum
}

/// `ln 2`, and its powers over factorials: the series of `2^x`.
const EXP2: [f64; 10] = {
    let ln2 = std::f64::consts::LN_2;
    let mut terms = [ln2; 10];
    let mut k = 1;
    while k < terms.len() {
        terms[k] = terms[k - 1] * ln2 / (k as f64 + 1.0);
        k += 1;
    }
    terms
};

/// `2^n` for an integer in the exponent's range.
#[inline(always)]
fn power_of_two(n: i64) -> f64 {
    f64::from_bits(((n + 1023) as u64) << 52)
}

/// The nearest integer, as `f64` and as `i64`.
#[inline(always)]
fn nearest_integer(x: f64) -> (f64, i64) {
    let shifted = x + ROUNDER;
    let n = (shifted.to_bits() as i64).wrapping_sub(ROUNDER.to_bits() as i64);
    (shifted - ROUNDER, n)
}

/// `2^n` and `2^(x - n) - 1`.
#[inline(always)]
fn exp2_parts(x: f64) -> (f64, f64) {
    let (whole, n) = nearest_integer(x);
    let rest = x - whole;
    (power_of_two(n), rest * polynomial(rest, EXP2))
}

/// `2^x`, for `|x| <= 1000`.
#[inline(always)]
pub(super) fn exp2(x: f64) -> f64 {
    let (scale, fraction) = exp2_parts(x);
    scale + scale * fraction
}

/// `tanh x`, for `|x| <= 300`: `(e - 1)/(e + 1)` with `e = exp 2x`, and no digit lost near 0.
#[inline(always)]
pub(super) fn tanh(x: f64) -> f64 {
    let (scale, fraction) = exp2_parts(x * (2.0 * std::f64::consts::LOG2_E));
    let less_one = (scale - 1.0) + scale * fraction;
    less_one / (less_one + 2.0)
}

/// `log2 x` of a positive, finite, normal number.
#[inline(always)]
pub(super) fn log2(x: f64) -> f64 {
    // The mantissa goes to [sqrt(1/2), sqrt 2), so that near 1 no exponent cancels it.
    const SQRT_HALF: u64 = 0x3fe6_a09e_667f_3bcd;
    let shifted = x.to_bits().wrapping_sub(SQRT_HALF);
    let exponent = shifted as i64 >> 52;
    let mantissa = f64::from_bits((shifted & 0x000f_ffff_ffff_ffff).wrapping_add(SQRT_HALF));
    // ln m = 2 atanh s, with s = (m - 1)/(m + 1), |s| < 0.172.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let series = polynomial(
        s * s,
        [
            1.0,
            1.0 / 3.0,
            1.0 / 5.0,
            1.0 / 7.0,
            1.0 / 9.0,
            1.0 / 11.0,
            1.0 / 13.0,
            1.0 / 15.0,
            1.0 / 17.0,
        ],
    );
    exponent as f64 + s * series * (2.0 * std::f64::consts::LOG2_E)
}

/// The bits of `2/π` behind the binary point.
const TWO_OVER_PI: [u64; 4] =
    [0xa2f9_836e_4e44_1529, 0xfc27_57d1_f534_ddc0, 0xdb62_9599_3c43_9041, 0xfe51_63ab_debb_c561];

/// `x = (quadrant + rest)·π/2`, the rest in radians within `±π/4`. For finite `x` of at most 24
/// significant bits and exponents of `f32`.
///
/// After Payne and Hanek: of the product with `2/π` only 128 bits matter, those above being
/// multiples of 4 quadrants. The lowest 24 are not exact; 24 bits `f32` may cancel; 78 remain.
#[inline]
fn quadrant(x: f32) -> (u32, f64) {
    let bits = x.to_bits() & 0x7fff_ffff;
    let field = (bits >> 23).max(1);
    let significand = u128::from(bits & 0x7f_ffff | u32::from(bits >> 23 != 0) << 23);
    // x = significand · 2^(field - 150). A window of 2/π whose first bit weighs 2^(150 - field + 1)
    // in x's terms makes the product's top two bits the quadrant.
    let skipped = field as i32 - 150 - 2;
    let window = window_of_two_over_pi(skipped);
    let product = significand.wrapping_mul(window);
    let quadrant = (product >> 126) as u32;
    let fraction = product << 2;
    // As a signed fraction of a quadrant, in [-1/2, 1/2).
    let signed = fraction as i128;
    let quadrant = quadrant.wrapping_add(u32::from(signed < 0));
    let rest = signed as f64 * (1.0 / 340_282_366_920_938_463_463_374_607_431_768_211_456.0);
    let rest = rest * std::f64::consts::FRAC_PI_2;
    if x.is_sign_negative() { (quadrant.wrapping_neg(), -rest) } else { (quadrant, rest) }
}

/// 128 bits of `2/π` from bit `skipped` behind the point on; zeros before the point.
#[inline]
fn window_of_two_over_pi(skipped: i32) -> u128 {
    let word = |index: i32| -> u128 {
        usize::try_from(index)
            .ok()
            .and_then(|index| TWO_OVER_PI.get(index))
            .copied()
            .unwrap_or(0)
            .into()
    };
    let (first, shift) = (skipped.div_euclid(64), skipped.rem_euclid(64));
    let high = word(first) << 64 | word(first + 1);
    if shift == 0 { high } else { high << shift | word(first + 2) >> (64 - shift) }
}

#[inline(always)]
fn sin_series(r: f64) -> f64 {
    r * polynomial(
        r * r,
        [
            1.0,
            -1.0 / 6.0,
            1.0 / 120.0,
            -1.0 / 5_040.0,
            1.0 / 362_880.0,
            -1.0 / 39_916_800.0,
            1.0 / 6_227_020_800.0,
        ],
    )
}

#[inline(always)]
fn cos_series(r: f64) -> f64 {
    polynomial(
        r * r,
        [
            1.0,
            -1.0 / 2.0,
            1.0 / 24.0,
            -1.0 / 720.0,
            1.0 / 40_320.0,
            -1.0 / 3_628_800.0,
            1.0 / 479_001_600.0,
            -1.0 / 87_178_291_200.0,
        ],
    )
}

/// `sin(x + shift·π/2)` of a finite number.
#[inline]
pub(super) fn sin_shifted(x: f32, shift: u32) -> f64 {
    // Tiny numbers are their own rest, and would leave the window.
    let (quadrant, rest) = if x.abs() < 0.5 { (0, f64::from(x)) } else { quadrant(x) };
    match quadrant.wrapping_add(shift) & 3 {
        0 => sin_series(rest),
        1 => cos_series(rest),
        2 => -sin_series(rest),
        _ => -cos_series(rest),
    }
}
