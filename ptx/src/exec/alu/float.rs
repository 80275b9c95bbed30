//! Floating-point arithmetic over a row, plain and packed.
//!
//! # Idea
//! [`num::float`](crate::num::float) computes on one pattern with a [`FloatMode`]. Here a pattern
//! may hold two ([`Pack`]), and the mode is a constant for the common ones, so that the loop has no
//! branch; for all others it is the payload.
//! # Held by
//! `ptx/tests/alu/float.rs`, lane by lane against the host and against `num::float`.
//! # Not here
//! Which modifiers a type takes (`mode`); the approximations' values (`num::approx`).

use std::marker::PhantomData;

use super::{
    Lowered, approx,
    host::{Kernel, compile, compile_as, plain},
    mode,
    rows::{Value, lanes},
    types::by_type,
};
use crate::{
    exec::{
        lane::{LaneFn, Operands},
        registers::{LANES, Mask, Registers},
    },
    ir::{FloatBinary, FloatMode, FloatUnary, Precision, Scalar},
    num::{
        float::{BF16, F16, F32, F64, Float},
        narrow::{bf16_to_f32, f16_to_f32},
    },
};

/// One or two numbers of a format in a lane's pattern.
trait Pack {
    type Bits: Value;
    /// Computes each number from the operands' numbers at its place.
    fn each<O: Operation<N>, const N: usize>(
        operands: [Self::Bits; N],
        mode: &FloatMode,
    ) -> Self::Bits;
}

/// The pattern is the number.
struct Single<F>(PhantomData<F>);

impl<F: Float> Pack for Single<F>
where
    F::Bits: Value,
{
    type Bits = F::Bits;
    #[inline(always)]
    fn each<O: Operation<N>, const N: usize>(operands: [F::Bits; N], mode: &FloatMode) -> F::Bits {
        O::number::<F>(operands, mode)
    }
}

/// Two numbers; the first is the low half.
struct Pair<F>(PhantomData<F>);

macro_rules! pair {
    ($($format:ident: $half:ty, $whole:ty;)*) => {$(
        impl Pack for Pair<$format> {
            type Bits = $whole;
            #[inline(always)]
            fn each<O: Operation<N>, const N: usize>(
                operands: [$whole; N],
                mode: &FloatMode,
            ) -> $whole {
                let low = operands.map(|whole| whole as $half);
                let high = operands.map(|whole| (whole >> <$half>::BITS) as $half);
                let low = O::number::<$format>(low, mode);
                let high = O::number::<$format>(high, mode);
                <$whole>::from(low) | <$whole>::from(high) << <$half>::BITS
            }
        }
    )*};
}
pair! { F16: u16, u32; BF16: u16, u32; F32: u32, u64; }

/// The modifiers of a function: a constant, or the payload.
trait Modifiers {
    fn mode(payload: u64) -> FloatMode;
}

struct Fixed<const PAYLOAD: u64>;
impl<const PAYLOAD: u64> Modifiers for Fixed<PAYLOAD> {
    #[inline(always)]
    fn mode(_: u64) -> FloatMode {
        const { mode::decode(PAYLOAD) }
    }
}

struct Given;
impl Modifiers for Given {
    #[inline(always)]
    fn mode(payload: u64) -> FloatMode {
        mode::decode(payload)
    }
}

struct Copysign;
impl Operation<2> for Copysign {
    #[inline(always)]
    fn number<F: Float>([a, b]: [F::Bits; 2], _: &FloatMode) -> F::Bits {
        F::copysign(a, b)
    }
}

/// An operation on `N` numbers of any format.
trait Operation<const N: usize> {
    fn number<F: Float>(operands: [F::Bits; N], mode: &FloatMode) -> F::Bits;
}

/// `fma.rn.f32` on a processor that has the instruction.
struct HardwareFma;
impl Kernel for HardwareFma {
    #[inline(always)]
    fn run(registers: &mut Registers, operands: &Operands, mask: Mask) {
        let ([dst, ..], [a, b, c, ..]) = (&operands.dst[..], &operands.src[..]) else { return };
        let (a, b) = (u32::load(registers, *a), u32::load(registers, *b));
        let mut row = u32::load(registers, *c);
        for (lane, c) in row.iter_mut().enumerate() {
            let (x, y) = (f32::from_bits(a[lane]), f32::from_bits(b[lane]));
            let fused = x.mul_add(y, f32::from_bits(*c));
            *c = if fused.is_nan() { F32::CANONICAL_NAN } else { fused.to_bits() };
        }
        u32::store(registers, *dst, &row, mask);
    }
}

macro_rules! operations {
    ($($name:ident($($operand:ident),*) = $function:ident;)*) => {$(
        struct $name;
        impl Operation<{ [$(stringify!($operand)),*].len() }> for $name {
            #[inline(always)]
            fn number<F: Float>(
                [$($operand),*]: [F::Bits; { [$(stringify!($operand)),*].len() }],
                mode: &FloatMode,
            ) -> F::Bits {
                F::$function($($operand,)* mode)
            }
        }
    )*};
}
operations! {
    Abs(a) = abs;
    Neg(a) = neg;
    Sqrt(a) = sqrt;
    Rcp(a) = rcp;
    Add(a, b) = add;
    Sub(a, b) = sub;
    Mul(a, b) = mul;
    Div(a, b) = div;
    Min(a, b) = min;
    Max(a, b) = max;
    Min3(a, b, c) = min3;
    Max3(a, b, c) = max3;
    Fma(a, b, c) = fma;
}

/// An operation with its format and modifiers.
struct Arithmetic<P, O, M, const N: usize>(PhantomData<(P, O, M)>);

impl<P: Pack, O: Operation<N>, M: Modifiers, const N: usize> Kernel for Arithmetic<P, O, M, N> {
    #[inline(always)]
    fn run(registers: &mut Registers, operands: &Operands, mask: Mask) {
        let ([dst, ..], Some(slots)) = (&operands.dst[..], operands.src.first_chunk::<N>()) else {
            return;
        };
        let mode = M::mode(operands.payload);
        let mut sources = [[P::Bits::default(); LANES]; N];
        for (source, &slot) in sources.iter_mut().zip(slots) {
            *source = P::Bits::load(registers, slot);
        }
        let mut row = [P::Bits::default(); LANES];
        for (lane, result) in row.iter_mut().enumerate() {
            let mut values = [P::Bits::default(); N];
            for (value, source) in values.iter_mut().zip(&sources) {
                *value = source[lane];
            }
            *result = P::each::<O, N>(values, &mode);
        }
        P::Bits::store(registers, *dst, &row, mask);
    }
}

/// The function of an operation: without modifiers, or for any.
fn of_mode<P: Pack, O: Operation<N>, const N: usize>(payload: u64) -> LaneFn {
    match payload {
        0 => compile::<Arithmetic<P, O, Fixed<0>, N>>(),
        _ => plain::<Arithmetic<P, O, Given, N>>(),
    }
}

/// An operation that every format has.
fn of_type<O: Operation<N>, const N: usize>(ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let payload = mode::encode(mode);
    let run = match (ty, payload) {
        (Scalar::F32, mode::FTZ) => {
            compile::<Arithmetic<Single<F32>, O, Fixed<{ mode::FTZ }>, N>>()
        }
        _ => by_type!(ty;
            F16 => Single<F16>, BF16 => Single<BF16>, F32 => Single<F32>, F64 => Single<F64>,
            F16x2 => Pair<F16>, BF16x2 => Pair<BF16>, F32x2 => Pair<F32>;
            _TY: P => of_mode::<P, O, N>(payload))?,
    };
    Some(Lowered::with(run, payload))
}

/// An operation that the formats of a whole register have.
fn of_whole<O: Operation<N>, const N: usize>(ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let payload = mode::encode(mode);
    let run = by_type!(ty; F32 => Single<F32>, F64 => Single<F64>;
        _TY: P => of_mode::<P, O, N>(payload))?;
    Some(Lowered::with(run, payload))
}

/// `min` and `max`, of which `.NaN` is as common as none.
fn of_extremum<O: Operation<2>>(ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let payload = mode::encode(mode);
    if payload != mode::NAN {
        return of_type::<O, 2>(ty, mode);
    }
    let run = by_type!(ty;
        F16 => Single<F16>, BF16 => Single<BF16>, F32 => Single<F32>,
        F16x2 => Pair<F16>, BF16x2 => Pair<BF16>;
        _TY: P => compile::<Arithmetic<P, O, Fixed<{ mode::NAN }>, 2>>())?;
    Some(Lowered::with(run, payload))
}

/// `abs`, `neg`, `sqrt`, `rcp`, and the approximations.
pub(super) fn unary(op: FloatUnary, ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let (table, lowered) = match op {
        FloatUnary::Abs => (mode::SIGN, of_type::<Abs, 1>(ty, mode)),
        FloatUnary::Neg => (mode::SIGN, of_type::<Neg, 1>(ty, mode)),
        FloatUnary::Sqrt(Precision::Rounded) => (mode::QUOTIENT, of_whole::<Sqrt, 1>(ty, mode)),
        FloatUnary::Rcp(Precision::Rounded) => (mode::QUOTIENT, of_whole::<Rcp, 1>(ty, mode)),
        FloatUnary::Sqrt(Precision::Approx | Precision::Full)
        | FloatUnary::Rcp(Precision::Approx | Precision::Full)
        | FloatUnary::Rsqrt
        | FloatUnary::Sin
        | FloatUnary::Cos
        | FloatUnary::Lg2
        | FloatUnary::Ex2
        | FloatUnary::Tanh => return approx::unary(op, ty, mode),
    };
    lowered.filter(|_| mode::permits(table, ty, mode))
}

/// `add`, `sub`, `mul`, `div`, `min`, `max`, `copysign`.
pub(super) fn binary(op: FloatBinary, ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let (table, lowered) = match op {
        FloatBinary::Add => (mode::SUM, of_type::<Add, 2>(ty, mode)),
        FloatBinary::Sub => (mode::SUM, of_type::<Sub, 2>(ty, mode)),
        FloatBinary::Mul => (mode::SUM, of_type::<Mul, 2>(ty, mode)),
        FloatBinary::Div(Precision::Rounded) => (mode::QUOTIENT, of_whole::<Div, 2>(ty, mode)),
        FloatBinary::Min => (mode::EXTREMUM, of_extremum::<Min>(ty, mode)),
        FloatBinary::Max => (mode::EXTREMUM, of_extremum::<Max>(ty, mode)),
        FloatBinary::Copysign => (mode::COPYSIGN, of_whole::<Copysign, 2>(ty, mode)),
        FloatBinary::Div(precision) => return approx::div(precision, ty, mode),
    };
    lowered.filter(|_| mode::permits(table, ty, mode))
}

/// Three-operand `min` and `max`.
pub(super) fn ternary(op: FloatBinary, ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    let lowered = match op {
        FloatBinary::Min => of_whole::<Min3, 3>(ty, mode),
        FloatBinary::Max => of_whole::<Max3, 3>(ty, mode),
        FloatBinary::Add
        | FloatBinary::Sub
        | FloatBinary::Mul
        | FloatBinary::Div(_)
        | FloatBinary::Copysign => None,
    };
    lowered.filter(|_| mode::permits(mode::EXTREMUM3, ty, mode))
}

/// `fma`, and `mad` on floats.
pub(super) fn fma(ty: Scalar, mode: &FloatMode) -> Option<Lowered> {
    if ty == Scalar::F32 && mode::encode(mode) == 0 && mode::permits(mode::FMA, ty, mode) {
        return Some(compile_as::<Arithmetic<Single<F32>, Fma, Fixed<0>, 3>, HardwareFma>().into());
    }
    of_type::<Fma, 3>(ty, mode).filter(|_| mode::permits(mode::FMA, ty, mode))
}

/// Arithmetic of `f32` with narrow operands, which are widened exactly.
pub(super) fn mixed(
    op: FloatBinary,
    fused: bool,
    from: Scalar,
    mode: &FloatMode,
) -> Option<Lowered> {
    macro_rules! of_widening {
        ($widen:path) => {
            match (op, fused) {
                (_, true) => lanes!(payload => |a: u16, b: u16, c: u32| -> u32 {
                    F32::fma($widen(a), $widen(b), c, &mode::decode(payload))
                }),
                (FloatBinary::Add, false) => lanes!(payload => |a: u16, c: u32| -> u32 {
                    F32::add($widen(a), c, &mode::decode(payload))
                }),
                (FloatBinary::Sub, false) => lanes!(payload => |a: u16, c: u32| -> u32 {
                    F32::sub($widen(a), c, &mode::decode(payload))
                }),
                _ => return None,
            }
        };
    }
    let run = match (from, mode::permits(mode::MIXED, from, mode)) {
        (Scalar::F16, true) => of_widening!(f16_to_f32),
        (Scalar::BF16, true) => of_widening!(bf16_to_f32),
        _ => return None,
    };
    Some(Lowered::with(run, mode::encode(mode)))
}
