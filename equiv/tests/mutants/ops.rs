//! An operation, changed in one modifier.

use bitstable_ptx::ir::{
    Atomic, Compare, FloatBinary, FloatMode, FloatUnary, Half, IntBinary, IntRound, Logic, Op,
    Precision, Redux, Round, Scalar, Shuffle, Space,
};

use super::random::Random;

fn mode(op: &mut Op) -> Option<&mut FloatMode> {
    match op {
        Op::FloatUnary { mode, .. }
        | Op::FloatBinary { mode, .. }
        | Op::FloatTernary { mode, .. }
        | Op::Fma { mode, .. }
        | Op::FmaMixed { mode, .. } => Some(mode),
        _ => None,
    }
}

/// `.rn` is left out.
pub fn rounding_dropped(op: &Op, _: &mut Random) -> Option<Op> {
    let mut op = op.clone();
    let mode = mode(&mut op)?;
    (mode.round.take() == Some(Round::Rn)).then_some(op)
}

pub fn rounding(op: &Op, random: &mut Random) -> Option<Op> {
    const ROUNDS: [Round; 4] = [Round::Rn, Round::Rz, Round::Rm, Round::Rp];
    const INTEGER: [IntRound; 4] = [IntRound::Rni, IntRound::Rzi, IntRound::Rmi, IntRound::Rpi];
    let mut op = op.clone();
    let other = |now: Round, random: &mut Random| {
        let all: Vec<Round> = ROUNDS.into_iter().filter(|round| *round != now).collect();
        random.pick(&all).copied()
    };
    match &mut op {
        Op::Cvt { round: Some(round), .. } => *round = other(*round, random)?,
        Op::Cvt { int_round: Some(round), .. } => {
            let all: Vec<IntRound> = INTEGER.into_iter().filter(|other| other != round).collect();
            *round = *random.pick(&all)?;
        }
        _ => {
            let mode = mode(&mut op)?;
            mode.round = Some(other(mode.round?, random)?);
        }
    }
    Some(op)
}

pub fn flushing(op: &Op, _: &mut Random) -> Option<Op> {
    let mut op = op.clone();
    match &mut op {
        Op::Cvt { ftz, .. } | Op::Setp { ftz, .. } | Op::Set { ftz, .. } | Op::Slct { ftz, .. } => {
            *ftz = !*ftz;
        }
        _ => {
            let mode = mode(&mut op)?;
            mode.ftz = !mode.ftz;
        }
    }
    Some(op)
}

/// Clamps and rules for NaN.
pub fn clamping(op: &Op, random: &mut Random) -> Option<Op> {
    let mut op = op.clone();
    match &mut op {
        Op::Cvt { sat, .. } | Op::IntBinary { sat, .. } => *sat = !*sat,
        Op::Mma { satfinite, .. } => *satfinite = !*satfinite,
        _ => {
            let mode = mode(&mut op)?;
            match random.below(5) {
                0 => mode.sat = !mode.sat,
                1 => mode.relu = !mode.relu,
                2 => mode.abs = !mode.abs,
                3 => (mode.xorsign, mode.abs) = (true, true),
                _ => mode.nan = !mode.nan,
            }
        }
    }
    Some(op)
}

/// Another operation of the same shape.
pub fn operation(op: &Op, random: &mut Random) -> Option<Op> {
    let mut op = op.clone();
    match &mut op {
        Op::FloatBinary { op, .. } | Op::FloatTernary { op, .. } => {
            *op = match (*op, random.below(3)) {
                (FloatBinary::Add, 0) => FloatBinary::Mul,
                (FloatBinary::Add, _) => FloatBinary::Sub,
                (FloatBinary::Sub | FloatBinary::Mul, _) => FloatBinary::Add,
                (FloatBinary::Min, _) => FloatBinary::Max,
                (FloatBinary::Max, _) => FloatBinary::Min,
                (FloatBinary::Div(_) | FloatBinary::Copysign, _) => return None,
            }
        }
        Op::FloatUnary { op, .. } => {
            *op = match *op {
                FloatUnary::Abs => FloatUnary::Neg,
                FloatUnary::Neg => FloatUnary::Abs,
                FloatUnary::Ex2 => FloatUnary::Lg2,
                FloatUnary::Lg2 => FloatUnary::Ex2,
                FloatUnary::Sin => FloatUnary::Cos,
                FloatUnary::Cos => FloatUnary::Sin,
                FloatUnary::Rsqrt => FloatUnary::Sqrt(Precision::Approx),
                FloatUnary::Sqrt(precision) => FloatUnary::Rcp(precision),
                FloatUnary::Rcp(precision) => FloatUnary::Sqrt(precision),
                FloatUnary::Tanh => return None,
            }
        }
        Op::IntBinary { op, .. } => {
            use IntBinary::*;
            let all = [Add, Sub, Mul(Half::Lo), Min, Max, And, Or, Xor, Shl, Shr];
            let all: Vec<IntBinary> = all.into_iter().filter(|other| other != op).collect();
            *op = *random.pick(&all)?;
        }
        Op::Redux { op, .. } => {
            let all = [Redux::Add, Redux::Min, Redux::Max, Redux::And, Redux::Or, Redux::Xor];
            *op = *random.pick(&all)?;
        }
        Op::Atom { op, .. } => {
            let all = [Atomic::Add, Atomic::Min, Atomic::Max, Atomic::And, Atomic::Or];
            *op = *random.pick(&all)?;
        }
        Op::Shfl { mode } => {
            let all = [Shuffle::Up, Shuffle::Down, Shuffle::Bfly, Shuffle::Idx];
            let all: Vec<Shuffle> = all.into_iter().filter(|other| other != mode).collect();
            *mode = *random.pick(&all)?;
        }
        _ => return None,
    }
    Some(op)
}

pub fn comparison(op: &Op, random: &mut Random) -> Option<Op> {
    use Compare::*;
    let mut op = op.clone();
    let (Op::Setp { cmp, join, .. } | Op::Set { cmp, join, .. }) = &mut op else { return None };
    if join.is_some() && random.chance(2) {
        let all = [Logic::And, Logic::Or, Logic::Xor];
        *join = random.pick(&all).copied();
        return Some(op);
    }
    let all = [Eq, Ne, Lt, Le, Gt, Ge, Lo, Ls, Hi, Hs, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan];
    let all: Vec<Compare> = all.into_iter().filter(|other| other != cmp).collect();
    *cmp = *random.pick(&all)?;
    Some(op)
}

/// Signed for unsigned, `bf16` for `f16`.
pub fn kind(op: &Op, random: &mut Random) -> Option<Op> {
    use Scalar::*;
    let turned = |ty: Scalar| {
        Some(match ty {
            U16 => S16,
            S16 => U16,
            U32 => S32,
            S32 => U32,
            U64 => S64,
            S64 => U64,
            U8 => S8,
            S8 => U8,
            F16 => BF16,
            BF16 => F16,
            F16x2 => BF16x2,
            BF16x2 => F16x2,
            E4m3 => E5m2,
            E5m2 => E4m3,
            E4m3x2 => E5m2x2,
            E5m2x2 => E4m3x2,
            TF32 => F32,
            _ => return None,
        })
    };
    let mut op = op.clone();
    match &mut op {
        Op::Cvt { to, from, .. } => {
            let ty = if random.chance(2) { to } else { from };
            *ty = turned(*ty)?;
        }
        Op::Mma { a, b, .. } => (*a, *b) = (turned(*a)?, turned(*b)?),
        Op::IntBinary { ty, .. }
        | Op::IntUnary { ty, .. }
        | Op::Mad { ty, .. }
        | Op::Bfe { ty }
        | Op::Setp { ty, .. }
        | Op::Redux { ty, .. }
        | Op::Atom { ty, .. }
        | Op::FloatUnary { ty, .. }
        | Op::FloatBinary { ty, .. }
        | Op::Fma { ty, .. }
        | Op::Ld { ty, .. } => *ty = turned(*ty)?,
        _ => return None,
    }
    Some(op)
}

/// Which half of a product, how exact a division, whether a matrix is turned.
pub fn variant(op: &Op, random: &mut Random) -> Option<Op> {
    let mut op = op.clone();
    let other = |precision: &mut Precision, random: &mut Random| {
        let all = [Precision::Rounded, Precision::Approx, Precision::Full];
        let all: Vec<Precision> = all.into_iter().filter(|other| other != precision).collect();
        *precision = all[random.below(2)];
    };
    match &mut op {
        Op::IntBinary { op: IntBinary::Mul(half), .. } | Op::Mad { half, .. } => {
            *half = if *half == Half::Lo { Half::Hi } else { Half::Lo };
        }
        Op::FloatBinary { op: FloatBinary::Div(precision), mode, .. }
        | Op::FloatUnary {
            op: FloatUnary::Sqrt(precision) | FloatUnary::Rcp(precision),
            mode,
            ..
        } => {
            other(precision, random);
            mode.round = (*precision == Precision::Rounded).then_some(Round::Rn);
        }
        Op::Ldmatrix { trans, .. } | Op::Stmatrix { trans, .. } => *trans = !*trans,
        Op::Shf { left, .. } => *left = !*left,
        Op::Ld { space, .. } | Op::St { space, .. } if *space == Space::Global => {
            *space = Space::Generic;
        }
        Op::CpAsyncWait { all } => *all = false,
        _ => return None,
    }
    Some(op)
}
