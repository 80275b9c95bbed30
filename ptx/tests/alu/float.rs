//! Floats against the host's arithmetic, and every mode against `num`.

use bitstable_ptx::{
    exec::alu::lower,
    ir::{FloatBinary, FloatMode, FloatUnary, Op, Precision, Round, Scalar},
    num::{
        approx,
        float::{BF16, F16, F32, F64, Float, Word},
        narrow::{bf16_to_f32, f16_to_f32},
    },
};

use crate::{
    machine::{check, operands, slots, types},
    table::modes,
};

const RN: FloatMode = FloatMode {
    round: Some(Round::Rn),
    ftz: false,
    sat: false,
    relu: false,
    nan: false,
    abs: false,
    xorsign: false,
};
const NONE: FloatMode = FloatMode { round: None, ..RN };

/// An `f32` result as PTX gives it.
fn canonical(value: f32) -> u64 {
    if value.is_nan() { 0x7fff_ffff } else { value.to_bits().into() }
}

fn single(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn binary(op: FloatBinary, ty: Scalar, mode: FloatMode) -> Op {
    Op::FloatBinary { op, ty, mode }
}

#[test]
fn f32_is_the_hosts() {
    for mode in [NONE, RN] {
        let check_host = |op, function: fn(f32, f32) -> f32| {
            check(&binary(op, Scalar::F32, mode), |source| {
                canonical(function(single(source[0]), single(source[1])))
            });
        };
        check_host(FloatBinary::Add, |a, b| a + b);
        check_host(FloatBinary::Sub, |a, b| a - b);
        check_host(FloatBinary::Mul, |a, b| a * b);
        check_host(FloatBinary::Div(Precision::Rounded), |a, b| a / b);
    }
    let op = Op::FloatUnary { op: FloatUnary::Sqrt(Precision::Rounded), ty: Scalar::F32, mode: RN };
    check(&op, |source| canonical(single(source[0]).sqrt()));
}

/// One rounding, not two: held by operands whose product alone would round away.
#[test]
fn fma_rounds_once() {
    check(&Op::Fma { ty: Scalar::F32, mode: RN }, |source| {
        canonical(single(source[0]).mul_add(single(source[1]), single(source[2])))
    });
    check(&Op::Fma { ty: Scalar::F64, mode: RN }, |source| {
        let [a, b, c] = [0, 1, 2].map(|index| f64::from_bits(source[index]));
        let fused = a.mul_add(b, c);
        let nan = F64::nan_from([source[0], source[1], source[2]]);
        if fused.is_nan() { nan } else { fused.to_bits() }
    });
}

/// Halves added in `f64`, where the sum is exact, and rounded once.
#[test]
fn halves_round_once() {
    let f16 = |bits: u64| f64::from(f32::from_bits(f16_to_f32(bits as u16)));
    let nearest = |value: f64| {
        let bits = half::f16::from_f64(value).to_bits();
        if value.is_nan() { 0x7fff } else { bits.into() }
    };
    check(&binary(FloatBinary::Add, Scalar::F16, NONE), |source| {
        nearest(f16(source[0]) + f16(source[1]))
    });
    check(&binary(FloatBinary::Mul, Scalar::F16x2, NONE), |source| {
        let product = |shift: u32| nearest(f16(source[0] >> shift) * f16(source[1] >> shift));
        product(0) | product(16) << 16
    });
}

/// Computes one number of format `F`.
fn number<F: Float>(op: &Op, mode: &FloatMode, source: [u64; 3]) -> u64 {
    let [a, b, c] = source.map(F::Bits::narrow);
    let bits = match *op {
        Op::FloatBinary { op, .. } => match op {
            FloatBinary::Add => F::add(a, b, mode),
            FloatBinary::Sub => F::sub(a, b, mode),
            FloatBinary::Mul => F::mul(a, b, mode),
            FloatBinary::Div(_) => F::div(a, b, mode),
            FloatBinary::Min => F::min(a, b, mode),
            FloatBinary::Max => F::max(a, b, mode),
            FloatBinary::Copysign => F::copysign(a, b),
        },
        Op::FloatTernary { op: FloatBinary::Min, .. } => F::min3(a, b, c, mode),
        Op::FloatTernary { .. } => F::max3(a, b, c, mode),
        Op::Fma { .. } => F::fma(a, b, c, mode),
        Op::FloatUnary { op: FloatUnary::Abs, .. } => F::abs(a, mode),
        Op::FloatUnary { op: FloatUnary::Neg, .. } => F::neg(a, mode),
        Op::FloatUnary { op: FloatUnary::Sqrt(_), .. } => F::sqrt(a, mode),
        _ => F::rcp(a, mode),
    };
    bits.wide()
}

/// Every mode that is accepted computes what it says, in each number of a packed pattern.
#[test]
fn every_mode_is_passed_on() {
    let rounded = Precision::Rounded;
    for ty in [
        Scalar::F16,
        Scalar::BF16,
        Scalar::F32,
        Scalar::F64,
        Scalar::F16x2,
        Scalar::BF16x2,
        Scalar::F32x2,
    ] {
        for mode in modes() {
            let unary = [
                FloatUnary::Abs,
                FloatUnary::Neg,
                FloatUnary::Sqrt(rounded),
                FloatUnary::Rcp(rounded),
            ];
            let two = [
                FloatBinary::Add,
                FloatBinary::Sub,
                FloatBinary::Mul,
                FloatBinary::Div(rounded),
                FloatBinary::Min,
                FloatBinary::Max,
                FloatBinary::Copysign,
            ];
            let three = [FloatBinary::Min, FloatBinary::Max];
            let ops = unary
                .map(|op| Op::FloatUnary { op, ty, mode })
                .into_iter()
                .chain(two.map(|op| Op::FloatBinary { op, ty, mode }))
                .chain(three.map(|op| Op::FloatTernary { op, ty, mode }))
                .chain([Op::Fma { ty, mode }]);
            for op in ops {
                check_numbers(&op, ty, &mode);
            }
        }
    }
}

fn check_numbers(op: &Op, ty: Scalar, mode: &FloatMode) {
    let (dst, src) = types(op);
    if lower(op, operands(&slots(&dst, 0), &slots(&src, 8))).is_err() {
        return; // Which those are, `table.rs` holds.
    }
    let element = ty.element();
    let width = element.bits();
    check(op, |source| {
        (0..ty.lanes()).fold(0, |all, piece| {
            let part = |index: usize| source.get(index).map_or(0, |bits| bits >> (piece * width));
            let part = [part(0), part(1), part(2)];
            let bits = match element {
                Scalar::F16 => number::<F16>(op, mode, part),
                Scalar::BF16 => number::<BF16>(op, mode, part),
                Scalar::F32 => number::<F32>(op, mode, part),
                _ => number::<F64>(op, mode, part),
            };
            all | bits << (piece * width)
        })
    });
}

#[test]
fn narrow_operands_are_widened_exactly() {
    type Widening = fn(u16) -> u32;
    let widenings: [(Scalar, Widening); 2] =
        [(Scalar::F16, f16_to_f32), (Scalar::BF16, bf16_to_f32)];
    for (from, widen) in widenings {
        let mixed = |op, fused| Op::FmaMixed { op, fused, from, mode: RN };
        let wide = |bits: u64| f32::from_bits(widen(bits as u16));
        check(&mixed(FloatBinary::Add, false), |s| canonical(wide(s[0]) + single(s[1])));
        check(&mixed(FloatBinary::Sub, false), |s| canonical(wide(s[0]) - single(s[1])));
        check(&mixed(FloatBinary::Mul, true), |s| {
            canonical(wide(s[0]).mul_add(wide(s[1]), single(s[2])))
        });
    }
}

#[test]
fn approximations_are_wired() {
    let approximations = [
        FloatUnary::Ex2,
        FloatUnary::Lg2,
        FloatUnary::Sin,
        FloatUnary::Cos,
        FloatUnary::Tanh,
        FloatUnary::Rsqrt,
        FloatUnary::Rcp(Precision::Approx),
        FloatUnary::Sqrt(Precision::Approx),
    ];
    for ftz in [false, true] {
        let mode = FloatMode { ftz, ..NONE };
        for op in approximations {
            for ty in [Scalar::F32, Scalar::F64, Scalar::F16, Scalar::BF16x2] {
                if approx::supported(op, ty, ftz) {
                    check(&Op::FloatUnary { op, ty, mode }, |s| approx::unary(op, ty, ftz, s[0]));
                }
            }
        }
        check(&binary(FloatBinary::Div(Precision::Full), Scalar::F32, mode), |s| {
            approx::div_full(s[0] as u32, s[1] as u32, ftz).into()
        });
        check(&binary(FloatBinary::Div(Precision::Approx), Scalar::F32, mode), |s| {
            approx::div(s[0] as u32, s[1] as u32, ftz).into()
        });
    }
}
