//! `num::float` against `rustc_apfloat`: every operation, rounding and flushing.

use bitstable_ptx::ir::{Compare, FloatMode, Round, TestProperty};
use bitstable_ptx::num::exact::Underflow;
use bitstable_ptx::num::float::{BF16, F16, F32, F64, Float, Word};
use rustc_apfloat::Float as Ap;
use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{FloatConvert, Round as ApRound, Status};

#[path = "num_oracle/mod.rs"]
mod num_oracle;
use num_oracle::Rng;

const ROUNDS: [(Round, ApRound); 5] = [
    (Round::Rn, ApRound::NearestTiesToEven),
    (Round::Rz, ApRound::TowardZero),
    (Round::Rm, ApRound::TowardNegative),
    (Round::Rp, ApRound::TowardPositive),
    (Round::Rna, ApRound::NearestTiesToAway),
];

fn mode(round: Round) -> FloatMode {
    FloatMode { round: Some(round), ..FloatMode::default() }
}

fn with(set: impl FnOnce(&mut FloatMode)) -> FloatMode {
    let mut mode = FloatMode::default();
    set(&mut mode);
    mode
}

/// NaNs compare as one: payloads have their own test.
fn same<F: Float, A: Ap>(got: F::Bits, want: A) -> bool {
    if want.is_nan() { F::is_nan(got) } else { u128::from(got.wide()) == want.to_bits() }
}

fn all_operations<F: Float, A: Ap>(seed: u64, cases: u32) {
    let mut rng = Rng::new(seed);
    let format = F::FORMAT;
    for _ in 0..cases {
        let draw = [(); 3].map(|()| rng.pattern(format.exponent, format.fraction));
        let [a, b, c] = draw.map(F::Bits::narrow);
        let [x, y, z] = draw.map(|bits| A::from_bits(bits.into()));
        for (round, ap) in ROUNDS {
            let mode = mode(round);
            let checks = [
                ("add", F::add(a, b, &mode), x.add_r(y, ap).value),
                ("sub", F::sub(a, b, &mode), x.sub_r(y, ap).value),
                ("mul", F::mul(a, b, &mode), x.mul_r(y, ap).value),
                ("div", F::div(a, b, &mode), x.div_r(y, ap).value),
                ("rcp", F::rcp(a, &mode), A::from_u128(1).value.div_r(x, ap).value),
                ("fma", F::fma(a, b, c, &mode), x.mul_add_r(y, z, ap).value),
            ];
            for (name, got, want) in checks {
                assert!(
                    same::<F, A>(got, want),
                    "{name} {ap:?} {draw:x?}: {:x}, not {want}",
                    got.wide()
                );
            }
        }
    }
}

#[test]
fn f16_operations_round_once() {
    all_operations::<F16, Half>(16, 30_000);
}

#[test]
fn bf16_operations_round_once() {
    all_operations::<BF16, BFloat>(17, 30_000);
}

#[test]
fn f32_operations_round_once() {
    all_operations::<F32, Single>(32, 30_000);
}

#[test]
fn f64_operations_round_once() {
    all_operations::<F64, Double>(64, 20_000);
}

/// The exact sum of a product on a tie and something far smaller: a second rounding would show.
#[test]
fn fma_of_halves_does_not_round_twice() {
    let nearest = mode(Round::Rn);
    // (1 + 2^-4)(1 + 2^-4) = 1 + 2^-3 + 2^-8, half-way between two neighbours.
    let tie = 0x3f88;
    for (c, want) in [(0x0080, 0x3f91), (0x8080, 0x3f90), (0x0000, 0x3f90)] {
        assert_eq!(BF16::fma(tie, tie, c, &nearest), want, "c = {c:x}");
    }
}

fn root<F: Float, A: Ap + FloatConvert<Quad>>(seed: u64, cases: u32) {
    let mut rng = Rng::new(seed);
    for _ in 0..cases {
        let bits = rng.pattern(F::FORMAT.exponent, F::FORMAT.fraction);
        let a = F::Bits::narrow(bits);
        let x = A::from_bits(bits.into());
        for (round, _) in ROUNDS {
            let got = F::sqrt(a, &mode(round));
            if x.is_nan() || (x.is_negative() && x.is_non_zero()) {
                assert!(F::is_nan(got), "sqrt {bits:x}");
                continue;
            }
            if x.is_zero() || x.is_infinite() {
                assert_eq!(got.wide(), bits);
                continue;
            }
            let root = A::from_bits(got.wide().into());
            let (below, above) = (root.next_down().value, root.next_up().value);
            // Squares of 53 bits are exact in 113, and so are they half-way to a neighbour.
            let side = |of: A| square(of).partial_cmp(&wide(x)).expect("numbers");
            let near = |of: A| midpoint_square(root, of).partial_cmp(&wide(x)).expect("numbers");
            let fits = match round {
                Round::Rn | Round::Rna => near(below).is_le() && near(above).is_ge(),
                Round::Rz | Round::Rm => side(root).is_le() && side(above).is_gt(),
                Round::Rp => side(root).is_ge() && side(below).is_lt(),
                Round::Rs => false,
            };
            assert!(fits, "sqrt {round:?} {bits:x}: {:x}", got.wide());
        }
    }
}

fn wide<A: Ap + FloatConvert<Quad>>(a: A) -> Quad {
    a.convert(&mut false).value
}

fn square<A: Ap + FloatConvert<Quad>>(a: A) -> Quad {
    let product = wide(a) * wide(a);
    assert_eq!(product.status, Status::OK);
    product.value
}

fn midpoint_square<A: Ap + FloatConvert<Quad>>(a: A, b: A) -> Quad {
    let middle = ((wide(a) + wide(b)).value / Quad::from_u128(2).value).value;
    let product = middle * middle;
    assert_eq!(product.status, Status::OK);
    product.value
}

#[test]
fn roots_round_once() {
    root::<F16, Half>(161, 20_000);
    root::<BF16, BFloat>(171, 20_000);
    root::<F32, Single>(321, 20_000);
    root::<F64, Double>(641, 20_000);
}

/// F5: rounded to 24 bits as if the exponent had no end, then flushed.
fn flushed(exact: Quad, ap: ApRound) -> u32 {
    let lifted: Single = exact.scalbn(128).convert_r(ap, &mut false).value;
    let threshold = Single::from_bits(((2 + 127) as u128) << 23);
    if lifted.cmp_abs_normal(threshold).is_lt() {
        return (exact.is_negative() as u32) << 31;
    }
    lifted.scalbn_r(-128, ap).to_bits() as u32
}

#[test]
fn ftz_flushes_after_rounding() {
    let mut rng = Rng::new(5);
    let mut at_threshold = 0;
    for case in 0..60_000 {
        // Products whose exponents end near -126; some of them exactly at the threshold.
        let (a, b) = if case % 4 == 0 {
            let low = rng.below(1 << 12) as u32;
            (0x0080_0000 + low, 0x3f80_0000 - 2 * low - rng.below(3) as u32)
        } else {
            let field = 40 + rng.below(8) as u32;
            let fractions = [(); 2].map(|()| (rng.next() as u32) >> 9);
            (field << 23 | fractions[0], (127 - field + rng.below(3) as u32) << 23 | fractions[1])
        };
        let (x, y) = (wide(Single::from_bits(a.into())), wide(Single::from_bits(b.into())));
        let product = (x * y).value;
        for (round, ap) in ROUNDS {
            let mode = FloatMode { ftz: true, ..mode(round) };
            let want = flushed(product, ap);
            at_threshold += u32::from(want == 0x0080_0000);
            assert_eq!(F32::mul(a, b, &mode), want, "mul {a:x} {b:x} {round:?}");
            assert_eq!(F32::fma(a, b, 0, &mode), want, "fma {a:x} {b:x} {round:?}");
        }
    }
    assert!(at_threshold > 100, "the threshold was met {at_threshold} times");
}

/// What ptxas 12.9 folds (see F5).
#[test]
fn ftz_agrees_with_ptxas() {
    let ftz = with(|mode| mode.ftz = true);
    assert_eq!(F32::mul(0x0080_0000, 0x3f7f_ffff, &ftz), 0);
    assert_eq!(F32::mul(0x0080_0400, 0x3f7f_f800, &ftz), 0x0080_0000);
    assert_eq!(F32::mul(0x0080_0000, 0x3f7f_ffff, &FloatMode::default()), 0x0080_0000);
}

#[test]
fn ftz_flushes_operands_with_their_sign() {
    let ftz = with(|mode| mode.ftz = true);
    assert_eq!(F32::add(0x8000_0001, 0x8000_0001, &ftz), 0x8000_0000);
    assert_eq!(F32::add(0x0000_0001, 0x8000_0001, &ftz), 0);
    assert_eq!(F32::mul(0x007f_ffff, 0x7f80_0000, &ftz) & 0x7fff_ffff, 0x7fff_ffff);
    assert_eq!(F32::neg(0x0000_0001, &ftz), 0x8000_0000);
    assert_eq!(F32::abs(0x8000_0001, &ftz), 0);
    assert_eq!(F16::add(0x0001, 0x0400, &ftz), 0x0400);
    assert_eq!(F32::min(0x0000_0001, 0x0000_0002, &ftz), 0);
    assert!(F32::compare(Compare::Eq, 1, 0x8000_0002, true));
    assert!(!F32::compare(Compare::Eq, 1, 0x8000_0002, false));
    // The result alone is subnormal.
    assert_eq!(F32::add(0x0080_0001, 0x8080_0000, &ftz), 0);
    assert_eq!(F32::add(0x8080_0001, 0x0080_0000, &ftz), 0x8000_0000);
}

#[test]
fn nan_results_are_canonical() {
    let plain = FloatMode::default();
    for nan in [0x7f80_0001, 0xffc0_0123, 0x7fff_ffff] {
        assert_eq!(F32::add(nan, 0, &plain), 0x7fff_ffff);
        assert_eq!(F32::fma(0, nan, 0, &plain), 0x7fff_ffff);
        assert_eq!(F32::neg(nan, &plain), 0x7fff_ffff);
        assert_eq!(F32::abs(nan, &plain), 0x7fff_ffff);
        assert_eq!(F32::sqrt(nan, &plain), 0x7fff_ffff);
    }
    assert_eq!(F32::add(0x7f80_0000, 0xff80_0000, &mode(Round::Rz)), 0x7fff_ffff);
    assert_eq!(F16::mul(0x7c00, 0, &plain), 0x7fff);
    assert_eq!(BF16::div(0, 0, &plain), 0x7fff);
    let (first, second) = (0x7ff0_0000_0000_0123, 0xfffa_0000_0000_0456);
    assert_eq!(F64::add(first, second, &plain), 0x7ff8_0000_0000_0123);
    assert_eq!(F64::sub(0, second, &plain), second);
    assert_eq!(F64::fma(0, 0, second, &mode(Round::Rp)), second);
    assert_eq!(F64::mul(0x7ff0 << 48, 0, &plain), 0xfff8 << 48);
    assert_eq!(F64::neg(second, &plain), second ^ 1 << 63);
}

#[test]
fn sat_and_relu_clamp() {
    let sat = with(|mode| mode.sat = true);
    let relu = with(|mode| mode.relu = true);
    let one = 0x3f80_0000;
    for (a, clamped, rectified) in [
        (0x8000_0000, 0, 0),
        (0xbf80_0000, 0, 0),
        (0x4000_0000, one, 0x4000_0000),
        (0x3f00_0000, 0x3f00_0000, 0x3f00_0000),
        (0x7f80_0000, one, 0x7f80_0000),
        (0xff80_0000, 0, 0),
        (0x7fc0_0000, 0, 0x7fff_ffff),
        (0xffc0_0000, 0, 0x7fff_ffff),
    ] {
        assert_eq!(F32::add(a, 0x8000_0000, &sat), clamped, "{a:x}");
        assert_eq!(F32::add(a, 0x8000_0000, &relu), rectified, "{a:x}");
    }
}

#[test]
fn min_and_max_order_zeros_and_nans() {
    let plain = FloatMode::default();
    let nan = with(|mode| mode.nan = true);
    let xor = with(|mode| (mode.xorsign, mode.abs) = (true, true));
    let (zero, minus, one, quiet) = (0, 0x8000_0000, 0x3f80_0000, 0x7fc0_0001);
    assert_eq!(F32::min(zero, minus, &plain), minus);
    assert_eq!(F32::min(minus, zero, &plain), minus);
    assert_eq!(F32::max(zero, minus, &plain), zero);
    assert_eq!(F32::max(minus, zero, &plain), zero);
    assert_eq!(F32::min(quiet, one, &plain), one);
    assert_eq!(F32::max(one, quiet, &plain), one);
    assert_eq!(F32::max(quiet, quiet, &plain), 0x7fff_ffff);
    assert_eq!(F32::max(one, quiet, &nan), 0x7fff_ffff);
    assert_eq!(F32::min(quiet, one, &nan), 0x7fff_ffff);
    assert_eq!(F32::min(0xc000_0000, one, &xor), 0xbf80_0000);
    assert_eq!(F32::max(0xc000_0000, 0xbf80_0000, &xor), 0x4000_0000);
    assert_eq!(F32::max(0xffc0_0000, 0xbf80_0000, &xor), one);
    assert_eq!(F32::min3(one, quiet, minus, &plain), minus);
    assert_eq!(F32::max3(one, 0x4000_0000, minus, &plain), 0x4000_0000);
    assert_eq!(F32::max3(one, quiet, minus, &nan), 0x7fff_ffff);
    assert_eq!(F16::max(0x8000, 0x0000, &plain), 0);
}

fn ordering<F: Float, A: Ap>(seed: u64) {
    let mut rng = Rng::new(seed);
    for _ in 0..20_000 {
        let draw = [(); 2].map(|()| rng.pattern(F::FORMAT.exponent, F::FORMAT.fraction));
        let [a, b] = draw.map(F::Bits::narrow);
        let [x, y] = draw.map(|bits| A::from_bits(bits.into()));
        let order = x.partial_cmp(&y);
        let is = |wanted: fn(std::cmp::Ordering) -> bool| order.is_some_and(wanted);
        let none = order.is_none();
        for (cmp, want) in [
            (Compare::Eq, is(|o| o.is_eq())),
            (Compare::Ne, is(|o| o.is_ne())),
            (Compare::Lt, is(|o| o.is_lt())),
            (Compare::Le, is(|o| o.is_le())),
            (Compare::Gt, is(|o| o.is_gt())),
            (Compare::Ge, is(|o| o.is_ge())),
            (Compare::Equ, none || is(|o| o.is_eq())),
            (Compare::Neu, none || is(|o| o.is_ne())),
            (Compare::Ltu, none || is(|o| o.is_lt())),
            (Compare::Leu, none || is(|o| o.is_le())),
            (Compare::Gtu, none || is(|o| o.is_gt())),
            (Compare::Geu, none || is(|o| o.is_ge())),
            (Compare::Num, !none),
            (Compare::Nan, none),
        ] {
            assert_eq!(F::compare(cmp, a, b, false), want, "{cmp} {draw:x?}");
        }
        let plain = FloatMode::default();
        let zeros = x.is_zero() && y.is_zero();
        if order.is_some() && !zeros {
            assert_eq!(u128::from(F::min(a, b, &plain).wide()), x.min(y).to_bits(), "{draw:x?}");
            assert_eq!(u128::from(F::max(a, b, &plain).wide()), x.max(y).to_bits(), "{draw:x?}");
        }
        for (property, want) in [
            (TestProperty::Finite, x.is_finite()),
            (TestProperty::Infinite, x.is_infinite()),
            (TestProperty::Number, !x.is_nan()),
            (TestProperty::NotANumber, x.is_nan()),
            (TestProperty::Normal, x.is_normal()),
            (TestProperty::Subnormal, x.is_denormal()),
        ] {
            assert_eq!(F::testp(property, a), want, "{property} {draw:x?}");
        }
        let sign = F::copysign(a, b);
        assert_eq!(u128::from(sign.wide()), y.copy_sign(x).to_bits());
    }
}

#[test]
fn comparisons_order_as_ieee() {
    ordering::<F16, Half>(162);
    ordering::<BF16, BFloat>(172);
    ordering::<F32, Single>(322);
    ordering::<F64, Double>(642);
}

/// All 65,536 patterns through the soft road: unpacked and rounded back, they are themselves.
#[test]
fn unpacking_loses_nothing() {
    use bitstable_ptx::num::exact::{Format, Unpacked};
    for format in [Format::F16, Format::BF16, Format::E4M3, Format::E5M2, Format::E3M2] {
        for bits in 0..format.sign_bit() * 2 {
            if let Unpacked::Finite(value) = format.unpack(bits) {
                assert_eq!(value.round(&format, Round::Rz, Underflow::Gradual), bits);
            } else {
                assert!(bits & (format.sign_bit() - 1) > format.max_finite());
            }
        }
    }
}
