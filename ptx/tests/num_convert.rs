//! `num::convert` against `rustc_apfloat` and exact integers.

use bitstable_ptx::ir::{IntRound, Round, Scalar};
use bitstable_ptx::num::convert::{Cvt, cvt_pack, extended};
use bitstable_ptx::num::exact::Format;
use rustc_apfloat::ieee::{BFloat, Double, Float8E4M3FN, Float8E5M2, Half, Single};
use rustc_apfloat::{Float as Ap, FloatConvert, Round as ApRound};

#[path = "num_oracle/mod.rs"]
mod num_oracle;
use num_oracle::Rng;

const ROUNDS: [(Round, ApRound); 4] = [
    (Round::Rn, ApRound::NearestTiesToEven),
    (Round::Rz, ApRound::TowardZero),
    (Round::Rm, ApRound::TowardNegative),
    (Round::Rp, ApRound::TowardPositive),
];
const INT_ROUNDS: [(IntRound, ApRound); 4] = [
    (IntRound::Rni, ApRound::NearestTiesToEven),
    (IntRound::Rzi, ApRound::TowardZero),
    (IntRound::Rmi, ApRound::TowardNegative),
    (IntRound::Rpi, ApRound::TowardPositive),
];
const INTEGERS: [(Scalar, bool); 8] = [
    (Scalar::U8, false),
    (Scalar::U16, false),
    (Scalar::U32, false),
    (Scalar::U64, false),
    (Scalar::S8, true),
    (Scalar::S16, true),
    (Scalar::S32, true),
    (Scalar::S64, true),
];

fn rounding(to: Scalar, from: Scalar, round: Round) -> Cvt {
    Cvt { round: Some(round), ..Cvt::plain(to, from) }
}

/// Both roads; they must agree.
fn run(cvt: Cvt, a: u64, b: u64) -> u64 {
    assert!(cvt.supported(), "{cvt:?}");
    let slow = cvt.apply_slowly([a, b]);
    assert_eq!(cvt.apply([a, b]), slow, "{cvt:?} {a:x} {b:x}");
    slow
}

/// A scalar and its oracle.
trait Pair {
    type Ap: Ap;
    const SCALAR: Scalar;
    const FORMAT: Format;
    const NAN: u64;
}
macro_rules! pair {
    ($name:ident, $ap:ty, $scalar:expr, $format:expr, $nan:expr) => {
        struct $name;
        impl Pair for $name {
            type Ap = $ap;
            const SCALAR: Scalar = $scalar;
            const FORMAT: Format = $format;
            const NAN: u64 = $nan;
        }
    };
}
pair!(H, Half, Scalar::F16, Format::F16, 0x7fff);
pair!(B, BFloat, Scalar::BF16, Format::BF16, 0x7fff);
pair!(S, Single, Scalar::F32, Format::F32, 0x7fff_ffff);
pair!(D, Double, Scalar::F64, Format::F64, 0xfff8 << 48);

/// Every pattern of 16 bits; drawn ones of more.
fn patterns(format: Format, seed: u64) -> Box<dyn Iterator<Item = u64>> {
    if format.sign_bit() == 0x8000 {
        return Box::new(0..=0xffff);
    }
    let mut rng = Rng::new(seed);
    Box::new((0..40_000).map(move |_| rng.pattern(format.exponent, format.fraction)))
}

fn float_to_float<T: Pair, F: Pair>(seed: u64)
where
    F::Ap: FloatConvert<T::Ap>,
{
    for bits in patterns(F::FORMAT, seed) {
        let x = F::Ap::from_bits(bits.into());
        for (round, ap) in ROUNDS {
            let got = run(rounding(T::SCALAR, F::SCALAR, round), bits, 0);
            let want = x.convert_r(ap, &mut false).value;
            if x.is_nan() {
                assert!(T::Ap::from_bits(got.into()).is_nan());
                if F::FORMAT.fraction >= T::FORMAT.fraction && T::SCALAR != Scalar::F64 {
                    assert_eq!(got, T::NAN, "{bits:x}");
                }
            } else {
                assert_eq!(u128::from(got), want.to_bits(), "{round} {bits:x}");
            }
        }
    }
}

#[test]
fn floats_narrow_with_one_rounding() {
    float_to_float::<H, S>(1);
    float_to_float::<B, S>(2);
    float_to_float::<H, D>(3);
    float_to_float::<B, D>(4);
    float_to_float::<S, D>(5);
    float_to_float::<B, H>(6);
    float_to_float::<H, B>(7);
}

#[test]
fn floats_widen_exactly() {
    float_to_float::<S, H>(11);
    float_to_float::<D, H>(12);
    float_to_float::<S, B>(13);
    float_to_float::<D, B>(14);
    float_to_float::<D, S>(15);
}

#[test]
fn nans_of_widenings() {
    let to_single = |from, bits| run(Cvt::plain(Scalar::F32, from), bits, 0);
    assert_eq!(to_single(Scalar::F16, 0xfc01), 0x7fff_ffff);
    assert_eq!(to_single(Scalar::BF16, 0xff81), 0xff81_0000);
    assert_eq!(to_single(Scalar::F64, 0xfff8 << 48 | 1), 0x7fff_ffff);
    // As ptxas 12.9 folds it.
    let wide = run(Cvt::plain(Scalar::F64, Scalar::F32), 0xffc0_0123, 0);
    assert_eq!(wide, 0xfff8_0024_6000_0000);
}

fn float_to_integer<F: Pair>(seed: u64) {
    for bits in patterns(F::FORMAT, seed) {
        let x = F::Ap::from_bits(bits.into());
        for (to, signed) in INTEGERS {
            let width = to.bits() as usize;
            for (int_round, ap) in INT_ROUNDS {
                let cvt = Cvt { int_round: Some(int_round), ..Cvt::plain(to, F::SCALAR) };
                // apfloat clamps and takes NaN to 0, as PTX does.
                let want = if signed {
                    x.to_i128_r(width, ap, &mut false).value as u64 & (u64::MAX >> (64 - width))
                } else {
                    x.to_u128_r(width, ap, &mut false).value as u64
                };
                assert_eq!(run(cvt, bits, 0), want, "{to} {int_round} {bits:x}");
            }
        }
    }
}

#[test]
fn floats_become_integers_by_clamping() {
    float_to_integer::<H>(21);
    float_to_integer::<B>(22);
    float_to_integer::<S>(23);
    float_to_integer::<D>(24);
}

fn round_to_integral<F: Pair>(seed: u64) {
    for bits in patterns(F::FORMAT, seed) {
        let x = F::Ap::from_bits(bits.into());
        for (int_round, ap) in INT_ROUNDS {
            let cvt = Cvt { int_round: Some(int_round), ..Cvt::plain(F::SCALAR, F::SCALAR) };
            let got = run(cvt, bits, 0);
            let want = x.round_to_integral(ap).value;
            if x.is_nan() {
                assert!(F::Ap::from_bits(got.into()).is_nan());
            } else {
                assert_eq!(u128::from(got), want.to_bits(), "{int_round} {bits:x}");
            }
        }
    }
}

#[test]
fn floats_round_to_integers_in_place() {
    round_to_integral::<H>(31);
    round_to_integral::<B>(32);
    round_to_integral::<S>(33);
    round_to_integral::<D>(34);
}

fn integer_to_float<T: Pair>(seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..20_000 {
        // Few and many leading bits, and ties.
        let bits = rng.next() >> rng.below(64) << rng.below(20);
        for (from, signed) in INTEGERS {
            let low = bits & (u64::MAX >> (64 - from.bits()));
            let value = extended(from, bits);
            for (round, ap) in ROUNDS {
                let want = if signed {
                    T::Ap::from_i128_r((value as i64).into(), ap)
                } else {
                    T::Ap::from_u128_r(value.into(), ap)
                };
                let got = run(rounding(T::SCALAR, from, round), low, 0);
                assert_eq!(u128::from(got), want.value.to_bits(), "{from} {round} {low:x}");
            }
        }
    }
}

#[test]
fn integers_round_once() {
    integer_to_float::<H>(41);
    integer_to_float::<B>(42);
    integer_to_float::<S>(43);
    integer_to_float::<D>(44);
}

#[test]
fn integers_extend_cut_and_clamp() {
    let mut rng = Rng::new(51);
    for _ in 0..5_000 {
        let bits = rng.next() >> rng.below(64);
        for (from, from_signed) in INTEGERS {
            let width = from.bits();
            let low = i128::from(bits) & ((1 << width) - 1);
            let negative = from_signed && low >> (width - 1) == 1;
            let value = if negative { low - (1 << width) } else { low };
            for (to, to_signed) in INTEGERS {
                let modulus = 1i128 << to.bits();
                let cut = value.rem_euclid(modulus) as u64;
                assert_eq!(run(Cvt::plain(to, from), bits, 0), cut, "{to} {from} {bits:x}");
                let (least, greatest) =
                    if to_signed { (-modulus / 2, modulus / 2 - 1) } else { (0, modulus - 1) };
                let clamped = value.clamp(least, greatest).rem_euclid(modulus) as u64;
                let sat = Cvt { sat: true, ..Cvt::plain(to, from) };
                assert_eq!(run(sat, bits, 0), clamped, "sat {to} {from} {bits:x}");
            }
        }
    }
}

/// Value of a small pattern, by its definition.
fn small_value(exponent: u32, fraction: u32, bits: u64) -> f64 {
    let field = (bits >> fraction) & ((1 << exponent) - 1);
    let low = (bits & ((1 << fraction) - 1)) as f64 / f64::from(1 << fraction);
    let bias = (1 << (exponent - 1)) - 1;
    let magnitude = if field == 0 {
        low * 2f64.powi(1 - bias)
    } else {
        (1.0 + low) * 2f64.powi(field as i32 - bias)
    };
    if bits >> (exponent + fraction) & 1 == 1 { -magnitude } else { magnitude }
}

/// Nearest of all numbers up to `max`, ties to the even pattern, clamped.
fn nearest_small(exponent: u32, fraction: u32, max: u64, value: f64) -> u64 {
    let sign = u64::from(value.is_sign_negative()) << (exponent + fraction);
    let distance = |bits: u64| (small_value(exponent, fraction, bits) - value.abs()).abs();
    let best = (0..=max).min_by(|&a, &b| {
        let by_distance = distance(a).total_cmp(&distance(b));
        by_distance.then((a & 1).cmp(&(b & 1)))
    });
    best.unwrap_or(0) | sign
}

/// Pair type, exponent bits, fraction bits, largest magnitude, NaN, bits a lane.
const SMALL: [(Scalar, u32, u32, u64, u64, u32); 5] = [
    (Scalar::E4m3x2, 4, 3, 0x7e, 0x7f, 8),
    (Scalar::E5m2x2, 5, 2, 0x7b, 0x7f, 8),
    (Scalar::E2m1x2, 2, 1, 0x7, 0x7, 4),
    (Scalar::E2m3x2, 2, 3, 0x1f, 0x1f, 8),
    (Scalar::E3m2x2, 3, 2, 0x1f, 0x1f, 8),
];

fn to_small(to: Scalar, from: Scalar) -> Cvt {
    Cvt { satfinite: true, ..rounding(to, from, Round::Rn) }
}

#[test]
fn small_formats_take_the_nearest_number() {
    let mut rng = Rng::new(61);
    for (to, exponent, fraction, max, nan, width) in SMALL {
        for _ in 0..2_000 {
            let draw = |rng: &mut Rng| {
                // Exponents around the format's, and ties between its numbers.
                let field = 127 - 20 + rng.below(40);
                let bits =
                    rng.next() >> 41 & [0x7f_ffff, 0x7f_0000, 0x60_0000][rng.below(3) as usize];
                (rng.below(2) << 31 | field << 23 | bits) as u32
            };
            let [a, b] = [draw(&mut rng), draw(&mut rng)];
            let want = [a, b]
                .map(|bits| nearest_small(exponent, fraction, max, f32::from_bits(bits).into()));
            let got = run(to_small(to, Scalar::F32), a.into(), b.into());
            assert_eq!(got, want[0] << width | want[1], "{to} {a:x} {b:x}");
        }
        let got = run(to_small(to, Scalar::F32), 0xffc0_0000, 0xff80_0000);
        let sign = 1 << (exponent + fraction);
        assert_eq!(got, nan << width | sign | max, "{to}: NaN, -infinity");
        let relu = Cvt { relu: true, ..to_small(to, Scalar::F32) };
        assert_eq!(run(relu, 0xffc0_0000, 0xbf80_0000), nan << width, "{to} relu");
    }
}

/// Every half, in both lanes of a pair, like the same number as an f32.
#[test]
fn small_formats_from_halves() {
    let widen = |from: Scalar, bits| run(Cvt::plain(Scalar::F32, from), bits, 0);
    for (to, ..) in SMALL {
        for (pair, half) in [(Scalar::F16x2, Scalar::F16), (Scalar::BF16x2, Scalar::BF16)] {
            for bits in (0..=0xffff).step_by(7) {
                let other = 0xffff - bits;
                let got = run(to_small(to, pair), bits << 16 | other, 0);
                let want = run(to_small(to, Scalar::F32), widen(half, bits), widen(half, other));
                assert_eq!(got, want, "{to} {pair} {bits:x}");
            }
        }
    }
}

#[test]
fn small_formats_widen_exactly() {
    for (from, exponent, fraction, max, _, width) in SMALL {
        let top = 1u64 << (exponent + fraction + 1);
        for bits in 0..top {
            let magnitude = bits & (top / 2 - 1);
            for to in [Scalar::F16x2, Scalar::BF16x2] {
                let got = run(rounding(to, from, Round::Rn), bits << width | 1, 0);
                let half = run(Cvt::plain(Scalar::F32, to.element()), got >> 16, 0);
                let value = f32::from_bits(half as u32);
                let want = small_value(exponent, fraction, bits) as f32;
                if magnitude <= max {
                    assert_eq!(value.to_bits(), want.to_bits(), "{from} {bits:x}");
                } else if from == Scalar::E5m2x2 && magnitude == 0x7c {
                    assert_eq!(value.abs().to_bits(), 0x7f80_0000);
                } else {
                    assert_eq!(got >> 16, 0x7fff, "{from} {bits:x}");
                }
                let relu = Cvt { relu: true, ..rounding(to, from, Round::Rn) };
                if bits >= top / 2 && magnitude <= max {
                    assert_eq!(run(relu, bits << width, 0), 0);
                }
            }
        }
    }
}

/// apfloat has both 8-bit formats; unclamped values must agree with it.
#[test]
fn fp8_agrees_with_apfloat() {
    let mut rng = Rng::new(62);
    for _ in 0..40_000 {
        let bits = rng.pattern(8, 23);
        let x = Single::from_bits(bits.into());
        let near = ApRound::NearestTiesToEven;
        let e4: Float8E4M3FN = x.convert_r(near, &mut false).value;
        let e5: Float8E5M2 = x.convert_r(near, &mut false).value;
        if e4.is_finite() {
            let got = run(to_small(Scalar::E4m3x2, Scalar::F32), 0, bits);
            assert_eq!(u128::from(got), e4.to_bits(), "{bits:x}");
        }
        if e5.is_finite() {
            let got = run(to_small(Scalar::E5m2x2, Scalar::F32), 0, bits);
            assert_eq!(u128::from(got), e5.to_bits(), "{bits:x}");
        }
    }
}

#[test]
fn pairs_of_halves_pack_the_first_source_above() {
    let mut rng = Rng::new(71);
    for _ in 0..10_000 {
        let [a, b] = [rng.pattern(8, 23), rng.pattern(8, 23)];
        for (pair, half) in [(Scalar::F16x2, Scalar::F16), (Scalar::BF16x2, Scalar::BF16)] {
            for round in [Round::Rn, Round::Rz] {
                let one = |bits| run(rounding(half, Scalar::F32, round), bits, 0);
                let got = run(rounding(pair, Scalar::F32, round), a, b);
                assert_eq!(got, one(a) << 16 | one(b), "{pair} {round} {a:x} {b:x}");
            }
        }
    }
}

#[test]
fn satfinite_and_relu_of_halves() {
    let finite = Cvt { satfinite: true, ..rounding(Scalar::F16, Scalar::F32, Round::Rn) };
    let relu = Cvt { relu: true, ..rounding(Scalar::BF16, Scalar::F32, Round::Rz) };
    for (bits, want) in [
        (0x7f80_0000, 0x7bff),
        (0xff80_0000, 0xfbff),
        (0x477f_f000, 0x7bff),
        (0x7fc0_0000, 0x7fff),
        (0x3f80_0000, 0x3c00),
    ] {
        assert_eq!(run(finite, bits, 0), want, "{bits:x}");
    }
    for (bits, want) in
        [(0xff80_0000, 0), (0x8000_0000, 0), (0xffc0_0000, 0x7fff), (0x3fff_ffff, 0x3fff)]
    {
        assert_eq!(run(relu, bits, 0), want, "{bits:x}");
    }
}

#[test]
fn tf32_keeps_ten_bits() {
    let mut rng = Rng::new(81);
    for _ in 0..40_000 {
        let bits = rng.pattern(8, 23);
        let magnitude = bits & 0x7fff_ffff;
        for round in [Round::Rna, Round::Rn, Round::Rz] {
            let got = run(rounding(Scalar::TF32, Scalar::F32, round), bits, 0);
            let low = bits & !0x1fff;
            let rest = bits & 0x1fff;
            let up = match round {
                Round::Rna => rest >= 0x1000,
                Round::Rn => rest > 0x1000 || (rest == 0x1000 && low & 0x2000 != 0),
                Round::Rz | Round::Rm | Round::Rp | Round::Rs => false,
            };
            let want = match magnitude {
                0x7f80_0001.. => 0x7fff_ffff,
                0x7f80_0000 => bits,
                _ => low + if up { 0x2000 } else { 0 },
            };
            assert_eq!(got, want, "{round} {bits:x}");
        }
    }
    let finite = Cvt { satfinite: true, ..rounding(Scalar::TF32, Scalar::F32, Round::Rna) };
    assert_eq!(run(finite, 0x7f7f_ffff, 0), 0x7f7f_e000);
    assert_eq!(run(finite, 0xff80_0000, 0), 0xff7f_e000);
}

#[test]
fn scales_are_powers_of_two() {
    let to = |round, satfinite| Cvt { satfinite, ..rounding(Scalar::UE8m0x2, Scalar::F32, round) };
    for (value, down, up) in [
        (1.0f32, 127, 127),
        (1.5, 127, 128),
        (-1.5, 127, 128),
        (0.0, 0, 0),
        (f32::from_bits(1), 0, 0),
        (f32::from_bits(0x0040_0000), 0, 0),
        (f32::from_bits(0x0040_0001), 0, 1),
        (f32::MAX, 254, 254),
        (f32::INFINITY, 254, 254),
        (f32::NAN, 255, 255),
    ] {
        let bits = value.to_bits().into();
        assert_eq!(run(to(Round::Rz, true), 0, bits), down, "{value}");
        assert_eq!(run(to(Round::Rp, true), 0, bits), up, "{value}");
    }
    assert_eq!(run(to(Round::Rp, false), 0, f32::MAX.to_bits().into()), 255);
    let pair = rounding(Scalar::UE8m0x2, Scalar::BF16x2, Round::Rp);
    assert_eq!(run(pair, 0x3fc0_3f80, 0), 128 << 8 | 127);
    let back = rounding(Scalar::BF16x2, Scalar::UE8m0x2, Round::Rn);
    for scale in 0..=255u64 {
        let got = run(back, scale, 0) & 0xffff;
        let want = match scale {
            0 => 0x0040,
            255 => 0x7fff,
            _ => scale << 7,
        };
        assert_eq!(got, want, "{scale}");
    }
}

#[test]
fn ftz_concerns_f32_alone() {
    let ftz = |to, from| Cvt { ftz: true, ..Cvt::plain(to, from) };
    assert_eq!(run(ftz(Scalar::F32, Scalar::F32), 0x8000_0001, 0), 0x8000_0000);
    assert_eq!(run(ftz(Scalar::F64, Scalar::F32), 0x007f_ffff, 0), 0);
    assert_eq!(run(ftz(Scalar::F16, Scalar::F32), 0x3300_0001, 0), 1);
    assert_eq!(run(ftz(Scalar::F32, Scalar::F16), 1, 0), 0x3380_0000);
    assert_eq!(run(ftz(Scalar::F32, Scalar::F64), 0x3800 << 48, 0), 0);
    let up = Cvt { int_round: Some(IntRound::Rpi), ..ftz(Scalar::S32, Scalar::F32) };
    assert_eq!(run(up, 1, 0), 0);
    assert_eq!(run(Cvt { ftz: false, ..up }, 1, 0), 1);
    assert!(!ftz(Scalar::F16, Scalar::F64).supported());
}

#[test]
fn sat_clamps_floats_to_one() {
    let sat = |from| Cvt { sat: true, ..rounding(Scalar::F32, from, Round::Rn) };
    assert_eq!(run(sat(Scalar::F32), 0x8000_0000, 0), 0);
    assert_eq!(run(sat(Scalar::F32), 0x7fc0_0000, 0), 0);
    assert_eq!(run(sat(Scalar::S32), 7, 0), 0x3f80_0000);
    assert_eq!(run(sat(Scalar::F32), 0x7f80_0000, 0), 0x3f80_0000);
}

#[test]
fn cvt_pack_clamps_and_shifts() {
    assert_eq!(cvt_pack(Scalar::S16, 0x0001_0000, 0xffff_fff0, 0), 0x7fff_fff0);
    assert_eq!(cvt_pack(Scalar::U16, 0xffff_ffff, 5, 0), 5);
    assert_eq!(cvt_pack(Scalar::U8, 300, 0xffff_ffff, 0x1234), 0x1234_ff00);
    assert_eq!(cvt_pack(Scalar::S8, 0xffff_ff00, 127, 0xab), 0x00ab_807f);
    assert_eq!(cvt_pack(Scalar::S4, 100, 0xffff_ff00, 0x11), 0x1178);
}

#[test]
fn unknown_pairs_are_refused() {
    let refused = [
        Cvt::plain(Scalar::B32, Scalar::F32),
        Cvt::plain(Scalar::E4m3x4, Scalar::F32),
        rounding(Scalar::F16x2, Scalar::F32, Round::Rs),
        rounding(Scalar::E4m3x2, Scalar::F32, Round::Rn),
        rounding(Scalar::S32, Scalar::F32, Round::Rn),
        rounding(Scalar::UE8m0x2, Scalar::F32, Round::Rn),
        Cvt { int_round: Some(IntRound::Rni), ..Cvt::plain(Scalar::F32, Scalar::F64) },
        Cvt { relu: true, ..Cvt::plain(Scalar::S32, Scalar::S64) },
    ];
    for cvt in refused {
        assert!(!cvt.supported(), "{cvt:?}");
    }
}
