//! `num::mma` against integer sums written from the definitions.

use bitstable_ptx::ir::Scalar;
use bitstable_ptx::num::convert::Cvt;
use bitstable_ptx::num::mma::{Core, Dot, MmaModel};
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float as Ap, FloatConvert, Round as ApRound, Status};

#[path = "num_oracle/mod.rs"]
mod num_oracle;
use num_oracle::Rng;

const F32_NAN: u64 = 0x7fff_ffff;

fn dot(model: MmaModel, d: Scalar, a: Scalar, c: Scalar) -> Dot {
    Dot::new(model, d, a, a, c, false)
}

fn f16_to_f32(model: MmaModel) -> Dot {
    dot(model, Scalar::F32, Scalar::F16, Scalar::F32)
}

/// An `f16` as a multiple of `2^-24`.
fn f16_integer(bits: u64) -> i128 {
    let wide: Quad = Half::from_bits(bits.into()).convert(&mut false).value;
    wide.scalbn(24).to_i128(128).value
}

/// Multiples of `2^-60` from here on.
const UNIT: i32 = -60;

fn product(a: u64, b: u64) -> i128 {
    (f16_integer(a) * f16_integer(b)) << (-48 - UNIT)
}

fn accumulator(bits: u64) -> i128 {
    let wide: Quad = Single::from_bits(bits.into()).convert(&mut false).value;
    let scaled = wide.scalbn(-UNIT);
    let integer = scaled.to_i128(128);
    assert_eq!(integer.status, Status::OK, "{bits:x} is no multiple of the unit");
    integer.value
}

fn rounded<A: Ap>(sum: i128, round: ApRound) -> u64
where
    Quad: FloatConvert<A>,
{
    let wide = Quad::from_i128(sum);
    // Drawn sums have fewer than 113 bits.
    assert_eq!(wide.status, Status::OK);
    let narrow: A = wide.value.scalbn(UNIT).convert_r(round, &mut false).value;
    narrow.to_bits() as u64
}

/// An `f16` of moderate size, so that sums of products stay in range.
fn draw_f16(rng: &mut Rng) -> u64 {
    match rng.below(8) {
        0 => rng.below(2) << 15,
        1 => rng.next() & 0x83ff,
        _ => rng.below(2) << 15 | (8 + rng.below(14)) << 10 | rng.next() & 0x3ff,
    }
}

/// An `f32` that is a multiple of `2^-60`.
fn draw_f32(rng: &mut Rng) -> u64 {
    match rng.below(6) {
        0 => 0,
        _ => rng.below(2) << 31 | (90 + rng.below(50)) << 23 | rng.next() & 0x7f_ffff,
    }
}

fn vectors(rng: &mut Rng, k: usize) -> (Vec<u64>, Vec<u64>) {
    let draw = |rng: &mut Rng| (0..k).map(|_| draw_f16(rng)).collect();
    (draw(rng), draw(rng))
}

#[test]
fn exact_rounds_the_exact_sum() {
    let mut rng = Rng::new(1);
    for _ in 0..4_000 {
        let (mut a, mut b) = vectors(&mut rng, 16);
        let c = draw_f32(&mut rng);
        if rng.below(3) == 0 {
            // Cancel all but one product.
            (a[8], b[8]) = (a[0] ^ 0x8000, b[0]);
            for k in 1..8 {
                (a[k + 8], b[k + 8]) = (a[k], b[k] ^ 0x8000);
            }
        }
        let sum: i128 = a.iter().zip(&b).map(|(&x, &y)| product(x, y)).sum::<i128>();
        let sum = sum + accumulator(c);
        let got = f16_to_f32(MmaModel::Exact).run(&a, &b, c);
        let near = ApRound::NearestTiesToEven;
        if sum != 0 {
            assert_eq!(got, rounded::<Single>(sum, near), "{a:x?} {b:x?} {c:x}");
        } else {
            assert_eq!(got & 0x7fff_ffff, 0);
        }
        let halves = dot(MmaModel::Exact, Scalar::F16, Scalar::F16, Scalar::F16);
        let small = draw_f16(&mut rng);
        let start = f16_integer(small) << (-24 - UNIT);
        let sum: i128 = a.iter().zip(&b).map(|(&x, &y)| product(x, y)).sum::<i128>();
        if sum + start != 0 {
            let want = rounded::<Half>(sum + start, near);
            assert_eq!(halves.run(&a, &b, small), want, "{a:x?} {b:x?} {small:x}");
        }
    }
}

/// Sums wider than 128 bits: what cancels leaves no trace, what remains is rounded once.
#[test]
fn exact_sums_may_be_wide() {
    let mut rng = Rng::new(2);
    let sum = dot(MmaModel::Exact, Scalar::F32, Scalar::BF16, Scalar::F32);
    for _ in 0..4_000 {
        let draw = |rng: &mut Rng| rng.below(2) << 15 | (1 + rng.below(253)) << 7 | rng.below(128);
        let (mut a, mut b) = (vec![0; 16], vec![0; 16]);
        for k in 0..7 {
            (a[k], b[k]) = (draw(&mut rng), draw(&mut rng));
            (a[k + 8], b[k + 8]) = (a[k] ^ 0x8000, b[k]);
        }
        // The one product that stays is small against the others.
        (a[7], b[7]) = (rng.below(2) << 15 | rng.below(0x3000), rng.below(0x4000));
        let c = rng.below(0x3000_0000);
        let wide = |bits: u64| -> Quad {
            Single::from_bits(u128::from(bits) << 16).convert(&mut false).value
        };
        let product = (wide(a[7]) * wide(b[7])).value;
        let start: Quad = Single::from_bits(c.into()).convert(&mut false).value;
        let total = product + start;
        if total.status != Status::OK {
            continue; // not exact in the oracle
        }
        let want: Single = total.value.convert(&mut false).value;
        assert_eq!(u128::from(sum.run(&a, &b, c)), want.to_bits(), "{a:x?} {b:x?} {c:x}");
    }
}

/// Two powers of two at every distance, through 64-bit, 128-bit and wider sums.
#[test]
fn exact_sums_of_every_width() {
    let sum = dot(MmaModel::Exact, Scalar::F32, Scalar::BF16, Scalar::F32);
    let power = |exponent: i32| u64::from(f32::to_bits(2f32.powi(exponent)) >> 16);
    for distance in 0..=220 {
        // 2^(distance - 100) + 2^-100, and the same with the greater one negative.
        let big = distance - 100;
        let a = [power(big / 2), power(-50)];
        let b = [power(big - big / 2), power(-50)];
        let (high, low) = (2f64.powi(big), 2f64.powi(-100));
        let want = f64::to_bits(f64::from((high + low) as f32));
        let value = |bits: u64| f64::from(f32::from_bits(bits as u32)).to_bits();
        assert_eq!(value(sum.run(&a, &b, 0)), want, "{distance}");
        let want = f64::to_bits(f64::from((low - high) as f32));
        assert_eq!(value(sum.run(&[a[0] | 0x8000, a[1]], &b, 0)), want, "{distance}");
    }
}

/// Exponent of a factor: that of its leading one, or of the smallest normal number.
fn exponent(bits: u64) -> i32 {
    ((bits >> 10 & 0x1f) as i32).max(1) - 15
}

/// The definition (M3): cut each term `kept` bits below the greatest exponent, sum, round.
fn block(a: &[u64], b: &[u64], c: i128, c_exponent: i32, kept: i32) -> i128 {
    let mut terms: Vec<(i128, i32)> =
        a.iter().zip(b).map(|(&x, &y)| (product(x, y), exponent(x) + exponent(y))).collect();
    terms.push((c, c_exponent));
    let greatest = terms.iter().filter(|term| term.0 != 0).map(|term| term.1).max();
    let cut = 1i128 << (greatest.unwrap_or(0) - kept - UNIT).max(0);
    terms.iter().map(|term| term.0 / cut * cut).sum()
}

fn leading(value: i128) -> i32 {
    127 - value.unsigned_abs().leading_zeros() as i32 + UNIT
}

#[test]
fn hardware_cuts_and_rounds_by_block() {
    let mut rng = Rng::new(3);
    for (core, length, kept) in [
        (Core::Turing, 8, 24),
        (Core::Ampere, 8, 24),
        (Core::Ada, 8, 24),
        (Core::Hopper, 16, 25),
        (Core::Blackwell, 16, 25),
        (Core::RtxBlackwell, 16, 25),
    ] {
        let model = MmaModel::Hardware(core);
        let mut differs = 0;
        for _ in 0..2_000 {
            let (a, b) = vectors(&mut rng, 16);
            let c = draw_f32(&mut rng);
            let mut single = c;
            let mut half = draw_f16(&mut rng);
            let start = half;
            for (x, y) in a.chunks(length).zip(b.chunks(length)) {
                let value = accumulator(single);
                let sum = block(x, y, value, if value == 0 { 0 } else { leading(value) }, kept);
                single = rounded::<Single>(sum, ApRound::TowardZero);
                let value = f16_integer(half) << (-24 - UNIT);
                let sum = block(x, y, value, exponent(half), kept);
                half = if sum == 0 { 0 } else { rounded::<Half>(sum, ApRound::NearestTiesToEven) };
            }
            let got = f16_to_f32(model).run(&a, &b, c);
            assert_eq!(got, single, "{core:?} {a:x?} {b:x?} {c:x}");
            let halves = dot(model, Scalar::F16, Scalar::F16, Scalar::F16);
            assert_eq!(halves.run(&a, &b, start), half, "{core:?} {a:x?} {b:x?} {start:x}");
            differs += u32::from(got != f16_to_f32(MmaModel::Exact).run(&a, &b, c));
        }
        assert!(differs > 100, "{core:?} differs from the exact sum {differs} times");
    }
}

/// Eight products of `2^-25` beside 1: below the 24 bits that Ampere keeps, within Hopper's 25.
#[test]
fn generations_differ_in_what_they_keep() {
    let tiny = 0x0c00; // 2^-12
    let (a, b) = (vec![tiny; 8], vec![0x0800; 8]); // 2^-13
    let one = 0x3f80_0000;
    let run = |model| f16_to_f32(model).run(&a, &b, one);
    assert_eq!(run(MmaModel::Hardware(Core::Turing)), one);
    assert_eq!(run(MmaModel::Hardware(Core::Ampere)), one);
    assert_eq!(run(MmaModel::Hardware(Core::Hopper)), one + 2);
    assert_eq!(run(MmaModel::Exact), one + 2);
    // One at a time they vanish in ties to even.
    assert_eq!(run(MmaModel::Sequential), one);
}

/// Ampere rounds after eight products, and loses the 1 beside 2^24; Hopper after sixteen.
#[test]
fn generations_differ_in_their_blocks() {
    let (mut a, mut b) = (vec![0; 16], vec![0; 16]);
    (a[0], b[0]) = (0x6c00, 0x6c00); // 2^12 · 2^12
    (a[1], b[1]) = (0x3c00, 0x3c00);
    (a[8], b[8]) = (0xec00, 0x6c00);
    let run = |model| f16_to_f32(model).run(&a, &b, 0);
    assert_eq!(run(MmaModel::Hardware(Core::Turing)), 0);
    assert_eq!(run(MmaModel::Hardware(Core::Ampere)), 0);
    assert_eq!(run(MmaModel::Hardware(Core::Hopper)), 0x3f80_0000);
    assert_eq!(run(MmaModel::Exact), 0x3f80_0000);
}

/// Ada sums bytes in 13 bits; Hopper's `mma.sync` converts them to halves and adds `c` last.
#[test]
fn bytes_on_ada_and_hopper() {
    let e4m3 = |core| dot(MmaModel::Hardware(core), Scalar::F32, Scalar::E4m3, Scalar::F32);
    let one = 0x38;
    let (mut a, mut b) = (vec![0; 32], vec![0; 32]);
    (a[0], b[0]) = (one, one);
    // 2^-6 · 2^-8: one bit below what Ada keeps beside 1.
    (a[1], b[1]) = (0x08, 0x02);
    let start = 2f32.powi(-13).to_bits().into();
    let ada = e4m3(Core::Ada).run(&a, &b, start);
    let hopper = e4m3(Core::Hopper).run(&a, &b, start);
    let value = |bits: u64| f64::from(f32::from_bits(bits as u32));
    let is = |got: u64, want: f64| assert_eq!(value(got).to_bits(), want.to_bits());
    is(ada, 1.0 + 2f64.powi(-13));
    is(hopper, 1.0 + 2f64.powi(-14) + 2f64.powi(-13));
    // Products at k % 4 of 2 and 3 come second: 2^-16 is lost beside 2^16 but not before it.
    let (mut a, mut b) = (vec![0; 32], vec![0; 32]);
    (a[0], b[0]) = (0x78, 0x78); // 256 · 256
    (a[1], b[1]) = (0x01, 0x02); // 2^-17
    (a[4], b[4]) = (0xf8, 0x78);
    let hopper = e4m3(Core::Hopper).run(&a, &b, 0);
    is(hopper, 0.0);
    let (x, y) = ([a[1]], [b[1]]);
    (a[1], b[1]) = (0, 0);
    (a[2], b[2]) = (x[0], y[0]);
    is(e4m3(Core::Hopper).run(&a, &b, 0), 2f64.powi(-17));
    is(e4m3(Core::RtxBlackwell).run(&a, &b, 0), 0.0);
}

/// `e4m3` subnormals become normal halves; every byte must keep its value on the way.
#[test]
fn bytes_keep_their_values() {
    for ty in [Scalar::E4m3, Scalar::E5m2] {
        let pair = if ty == Scalar::E4m3 { Scalar::E4m3x2 } else { Scalar::E5m2x2 };
        for byte in 0..=255u64 {
            let half = Cvt::plain(Scalar::F16x2, pair).apply([byte, 0]) & 0xffff;
            let want = Cvt::plain(Scalar::F32, Scalar::F16).apply([half, 0]);
            let one = if ty == Scalar::E4m3 { 0x38 } else { 0x3c };
            for model in [
                MmaModel::Exact,
                MmaModel::Sequential,
                MmaModel::Hardware(Core::Hopper),
                MmaModel::Hardware(Core::Ada),
            ] {
                let got = dot(model, Scalar::F32, ty, Scalar::F32).run(&[byte], &[one], 0);
                // A product of -0 beside +0 is +0.
                let want = if want == 0x8000_0000 { 0 } else { want };
                assert_eq!(got, want, "{model:?} {ty} {byte:x}");
            }
        }
    }
}

#[test]
fn infinities_and_nans() {
    let one = 0x3c00;
    let (inf, minus) = (0x7c00, 0xfc00);
    for model in [
        MmaModel::Exact,
        MmaModel::Sequential,
        MmaModel::Hardware(Core::Ampere),
        MmaModel::Hardware(Core::Hopper),
    ] {
        let sum = f16_to_f32(model);
        let c = 0x3f80_0000;
        assert_eq!(sum.run(&[inf, one], &[one, one], c), 0x7f80_0000, "{model:?}");
        assert_eq!(sum.run(&[inf, one], &[0xbc00, one], c), 0xff80_0000, "{model:?}");
        assert_eq!(sum.run(&[inf, minus], &[one, one], c), F32_NAN, "{model:?}");
        assert_eq!(sum.run(&[inf, one], &[0, one], c), F32_NAN, "{model:?}");
        assert_eq!(sum.run(&[0x7c01, one], &[one, one], c), F32_NAN, "{model:?}");
        assert_eq!(sum.run(&[inf], &[one], 0xff80_0000), F32_NAN, "{model:?}");
        assert_eq!(sum.run(&[one], &[one], 0xff80_0000), 0xff80_0000, "{model:?}");
        assert_eq!(sum.run(&[one], &[one], 0x7f80_0001), F32_NAN, "{model:?}");
        let half = dot(model, Scalar::F16, Scalar::F16, Scalar::F16);
        assert_eq!(half.run(&[0x7bff; 2], &[one; 2], 0), 0x7c00, "{model:?}");
        assert_eq!(half.run(&[inf], &[0], 0), 0x7fff, "{model:?}");
        // Overflow is infinity, though f32 sums truncate.
        let wide = dot(model, Scalar::F32, Scalar::BF16, Scalar::F32);
        assert_eq!(wide.run(&[0x7f7f; 2], &[0x3f80; 2], 0), 0x7f80_0000, "{model:?}");
    }
}

#[test]
fn tf32_ignores_thirteen_bits() {
    for model in [MmaModel::Exact, MmaModel::Sequential, MmaModel::Hardware(Core::Ampere)] {
        let sum = dot(model, Scalar::F32, Scalar::TF32, Scalar::F32);
        let got = sum.run(&[0x3f80_3fff], &[0x4000_1fff], 0);
        assert_eq!(got, 0x4000_2000, "{model:?}");
    }
}

#[test]
fn sequential_is_a_chain() {
    let mut rng = Rng::new(4);
    for _ in 0..1_000 {
        let (a, b) = vectors(&mut rng, 16);
        let c = draw_f32(&mut rng);
        let wide = |bits: u64| -> Single { Half::from_bits(bits.into()).convert(&mut false).value };
        let mut want = Single::from_bits(c.into());
        for (&x, &y) in a.iter().zip(&b) {
            want = wide(x).mul_add(wide(y), want).value;
        }
        let got = f16_to_f32(MmaModel::Sequential).run(&a, &b, c);
        assert_eq!(u128::from(got), want.to_bits());
        let mut want = Half::from_bits(a[0].into());
        for (&x, &y) in a.iter().zip(&b) {
            want = Half::from_bits(x.into()).mul_add(Half::from_bits(y.into()), want).value;
        }
        let halves = dot(MmaModel::Sequential, Scalar::F16, Scalar::F16, Scalar::F16);
        assert_eq!(u128::from(halves.run(&a, &b, a[0])), want.to_bits());
    }
}

#[test]
fn doubles_are_a_chain_under_every_model() {
    let mut rng = Rng::new(5);
    for model in [MmaModel::Exact, MmaModel::Sequential, MmaModel::Hardware(Core::Hopper)] {
        for _ in 0..200 {
            let draw = |rng: &mut Rng| {
                rng.below(2) << 63 | (1000 + rng.below(46)) << 52 | rng.next() >> 12
            };
            let a: Vec<u64> = (0..4).map(|_| draw(&mut rng)).collect();
            let b: Vec<u64> = (0..4).map(|_| draw(&mut rng)).collect();
            let c = draw(&mut rng);
            let mut want = Double::from_bits(c.into());
            for (&x, &y) in a.iter().zip(&b) {
                let (x, y) = (Double::from_bits(x.into()), Double::from_bits(y.into()));
                want = x.mul_add(y, want).value;
            }
            let got = dot(model, Scalar::F64, Scalar::F64, Scalar::F64).run(&a, &b, c);
            assert_eq!(u128::from(got), want.to_bits());
        }
    }
}

#[test]
fn integers_wrap_or_clamp() {
    let model = MmaModel::Hardware(Core::Ampere);
    let sum = |a, b, sat| Dot::new(model, Scalar::S32, a, b, Scalar::S32, sat);
    let mixed = sum(Scalar::S8, Scalar::U8, false);
    assert_eq!(mixed.run(&[0xff, 0x02], &[0xff, 0x03], 10), (10 - 255 + 6i32) as u32 as u64);
    let top = i32::MAX as u64;
    assert_eq!(sum(Scalar::U8, Scalar::U8, false).run(&[1], &[1], top), 0x8000_0000);
    assert_eq!(sum(Scalar::U8, Scalar::U8, true).run(&[1], &[1], top), top);
    assert_eq!(sum(Scalar::S8, Scalar::S8, true).run(&[0xff], &[1], 0x8000_0000), 0x8000_0000);
    let nibbles = sum(Scalar::S4, Scalar::U4, false);
    assert_eq!(nibbles.run(&[0xf; 64], &[0xf; 64], 0), (-64 * 15i32) as u32 as u64);
}

#[test]
fn models_have_names() {
    for (text, model) in [
        ("exact", MmaModel::Exact),
        ("sequential", MmaModel::Sequential),
        ("sm_75", MmaModel::Hardware(Core::Turing)),
        ("sm_86", MmaModel::Hardware(Core::Ampere)),
        ("sm_90a", MmaModel::Hardware(Core::Hopper)),
        ("sm_100", MmaModel::Hardware(Core::Blackwell)),
        ("sm_120a", MmaModel::Hardware(Core::RtxBlackwell)),
    ] {
        assert_eq!(text.parse(), Ok(model));
    }
    for text in ["", "sm_", "sm_70", "exactly", "sm_9O"] {
        assert!(text.parse::<MmaModel>().is_err(), "{text}");
    }
    assert_eq!(MmaModel::default(), MmaModel::Exact);
}
