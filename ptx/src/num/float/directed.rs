//! The slow road: roundings other than to nearest, and results that touch the flush threshold.
//!
//! # Idea
//! Finite operands are taken apart, the result is computed exactly or with a sticky bit, and
//! rounded once in the asked direction. NaN, infinity, division by zero and the root of a negative
//! number do not round at all: they are the host's answers.

use super::Float;
use crate::ir::Round;
use crate::num::exact::{Exact, Underflow, Unpacked};
use crate::num::float::Word;

/// Rounding direction and underflow, as one instruction has them.
#[derive(Clone, Copy)]
pub(super) struct Directed {
    pub round: Round,
    pub underflow: Underflow,
}

fn finite<F: Float>(bits: F::Bits) -> Option<Exact> {
    match F::FORMAT.unpack(bits.wide()) {
        Unpacked::Finite(value) => Some(value),
        Unpacked::Nan | Unpacked::Infinity { .. } => None,
    }
}

impl Directed {
    fn finish<F: Float>(self, value: Exact) -> F::Bits {
        F::Bits::narrow(value.round(&F::FORMAT, self.round, self.underflow))
    }

    /// IEEE 754, 6.3: a zero sum is negative if both terms are, or if it rounds downwards.
    fn sum(self, a: Exact, b: Exact) -> Exact {
        let sum = a.plus(b);
        if !sum.is_zero() {
            return sum;
        }
        let cancelled = a.negative != b.negative;
        Exact {
            negative: if cancelled { self.round == Round::Rm } else { a.negative },
            ..Exact::ZERO
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn add<F: Float>(self, a: F::Bits, b: F::Bits) -> F::Bits {
        match (finite::<F>(a), finite::<F>(b)) {
            (Some(x), Some(y)) => self.finish::<F>(self.sum(x, y)),
            (None, _) | (_, None) => F::add_nearest(a, b),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn mul<F: Float>(self, a: F::Bits, b: F::Bits) -> F::Bits {
        match (finite::<F>(a), finite::<F>(b)) {
            (Some(x), Some(y)) => self.finish::<F>(x.times(y)),
            (None, _) | (_, None) => F::mul_nearest(a, b),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn fma<F: Float>(self, a: F::Bits, b: F::Bits, c: F::Bits) -> F::Bits {
        match (finite::<F>(a), finite::<F>(b), finite::<F>(c)) {
            (Some(x), Some(y), Some(z)) => self.finish::<F>(self.sum(x.times(y), z)),
            (None, _, _) | (_, None, _) | (_, _, None) => F::fma_nearest(a, b, c),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn div<F: Float>(self, a: F::Bits, b: F::Bits) -> F::Bits {
        match (finite::<F>(a), finite::<F>(b)) {
            (Some(x), Some(y)) if !y.is_zero() => self.finish::<F>(x.over(y)),
            (Some(_) | None, Some(_) | None) => F::div_nearest(a, b),
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn sqrt<F: Float>(self, a: F::Bits) -> F::Bits {
        match finite::<F>(a) {
            Some(x) if !x.negative => self.finish::<F>(x.root()),
            Some(_) | None => F::sqrt_nearest(a),
        }
    }
}
