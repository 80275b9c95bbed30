//! The arithmetic of one element of a matrix product: `d = c + Σ aᵢ·bᵢ`.
//!
//! # Idea
//! PTX leaves the order and the width of the summation open, and every generation of tensor cores
//! answers differently. A [`MmaModel`] names the answer wanted; a [`Core`] is data: how many
//! products are summed at once, how many bits their alignment keeps, how the sum is rounded.
//! `docs/decisions/mma-model.md` gives the sources and says what is modelled and what assumed.
//! # Invariants
//! - **M1** `Exact`: the exact sum of products and `c`, rounded once to nearest.
//! - **M2** `Sequential`: a chain of fused multiply-adds in the order of `k`, each rounded to
//!   nearest in the type of `d`.
//! - **M3** `Hardware`: blocks in the order of `k`; in a block every term is cut towards zero at a
//!   fixed distance below the greatest exponent, the cut terms are summed exactly, and the sum is
//!   rounded once.
//! - **M4** Integers are exact under every model; they wrap, or clamp with `.satfinite`. `f64` is
//!   the chain of M2 under every model, as the hardware does it.
//! - **M5** A NaN result is the canonical NaN; infinities of both signs, or infinity times zero,
//!   give it. `tf32` operands are cut to their 19 bits.
//! # Held by
//! `ptx/tests/num_mma.rs`, against integer sums written from the definitions.
//! # Not here
//! Which lane holds which element; `wgmma`, `tcgen05`, block scales, sparsity.

mod element;
mod sum;
mod vector;

use std::str::FromStr;

pub use self::vector::Vector;

use self::sum::{Accumulator, MOST, Outcome, Specials, Terms};
use super::exact::{Exact, Format, Underflow};
use super::float::{F16, F32, F64, Float};
use crate::ir::{FloatMode, Round, Scalar};

/// Whose arithmetic a matrix product has.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum MmaModel {
    /// One rounding of the exact sum.
    #[default]
    Exact,
    /// Fused multiply-adds in the order of `k`.
    Sequential,
    /// As a generation of tensor cores was found to do it.
    Hardware(Core),
}

/// A generation of tensor cores.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Core {
    /// `sm_75`.
    Turing,
    /// `sm_80`, `sm_86`, `sm_87`.
    Ampere,
    /// `sm_89`.
    Ada,
    /// `sm_90`.
    Hopper,
    /// `sm_100` to `sm_110`.
    Blackwell,
    /// `sm_120` and `sm_121`.
    RtxBlackwell,
}

impl Core {
    /// The generation of an `sm_` number; `None` where nothing is known.
    pub fn of_sm(sm: u32) -> Option<Self> {
        match sm {
            75 => Some(Self::Turing),
            80 | 86 | 87 => Some(Self::Ampere),
            89 => Some(Self::Ada),
            90 => Some(Self::Hopper),
            100 | 101 | 103 | 110 => Some(Self::Blackwell),
            120 | 121 => Some(Self::RtxBlackwell),
            _ => None,
        }
    }

    /// How products of `a` are summed into `d`.
    fn fused(self, a: Scalar, d: Scalar) -> Fused {
        let bytes = match self {
            Self::Turing | Self::Ampere | Self::Ada => 16,
            Self::Hopper | Self::Blackwell | Self::RtxBlackwell => 32,
        };
        let eight_bits = a.bits() == 8;
        let kept = match self {
            Self::Ada if eight_bits => 13,
            Self::Turing | Self::Ampere | Self::Ada => 24,
            Self::Hopper | Self::Blackwell | Self::RtxBlackwell => 25,
        };
        let result = match (d, self) {
            (Scalar::F16, _) => Rounding::NearestF16,
            (_, Self::Ada) if eight_bits => Rounding::TruncatedE8M13,
            (_, _) => Rounding::TruncatedF32,
        };
        Fused { block: (8 * bytes / a.bits().max(1)) as usize, kept, result }
    }

    /// ptxas has no 8-bit instruction for these, and converts to `f16`.
    fn unpacks_bytes(self) -> bool {
        match self {
            Self::Hopper | Self::Blackwell => true,
            Self::Turing | Self::Ampere | Self::Ada | Self::RtxBlackwell => false,
        }
    }
}

/// A text that names no model.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0:?} is no matrix model: say exact, sequential, or sm_ and a number from 75 on")]
pub struct UnknownModel(String);

impl FromStr for MmaModel {
    type Err = UnknownModel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "exact" => Ok(Self::Exact),
            "sequential" => Ok(Self::Sequential),
            _ => text
                .strip_prefix("sm_")
                .map(|rest| rest.trim_end_matches(['a', 'f']))
                .and_then(|number| number.parse().ok())
                .and_then(Core::of_sm)
                .map(Self::Hardware)
                .ok_or_else(|| UnknownModel(text.to_owned())),
        }
    }
}

/// The parameters of one fused block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Fused {
    /// Products summed at once.
    block: usize,
    /// Bits kept below the greatest exponent.
    kept: i32,
    result: Rounding,
}

/// The final rounding of a block.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rounding {
    TruncatedF32,
    /// 8 exponent and 13 fraction bits, in an `f32`.
    TruncatedE8M13,
    NearestF16,
    NearestF32,
}

impl Rounding {
    /// The pattern of a sum. Overflow is infinity even where rounding truncates.
    #[inline]
    fn apply(self, sum: &Exact) -> u64 {
        let (format, direction, place) = match self {
            Self::TruncatedF32 => (Format::F32, Round::Rz, 0),
            Self::TruncatedE8M13 => (Format::E8M13, Round::Rz, 10),
            Self::NearestF16 => (Format::F16, Round::Rn, 0),
            Self::NearestF32 => (Format::F32, Round::Rn, 0),
        };
        let rounded = sum.round_magnitude(&format, direction, Underflow::Gradual);
        let magnitude = if rounded.overflowed { format.exponent_mask() } else { rounded.magnitude };
        let sign = if sum.negative { format.sign_bit() } else { 0 };
        (magnitude | sign) << place
    }

    fn nan(self) -> u64 {
        match self {
            Self::NearestF16 => Format::F16.canonical_nan(),
            Self::TruncatedF32 | Self::TruncatedE8M13 | Self::NearestF32 => {
                Format::F32.canonical_nan()
            }
        }
    }

    fn infinity(self, negative: bool) -> u64 {
        let format = match self {
            Self::NearestF16 => Format::F16,
            Self::TruncatedF32 | Self::TruncatedE8M13 | Self::NearestF32 => Format::F32,
        };
        format.exponent_mask() | if negative { format.sign_bit() } else { 0 }
    }
}

/// The arithmetic of one output element, decided once an instruction.
///
/// A row of `A` and a column of `B` are loaded once ([`Dot::load_a`], [`Dot::load_b`]) and then
/// meet in [`Dot::multiply`] as often as the shape says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dot {
    plan: Plan,
    a: Scalar,
    b: Scalar,
    c: Scalar,
    d: Scalar,
    satfinite: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Plan {
    Integer,
    Double,
    Exact(Rounding),
    Sequential,
    Fused(Fused),
    /// Bytes become halves; those at `k % 4` of 0 and 1 are summed first, from zero, then those of
    /// 2 and 3; `c` is added last, to nearest.
    Unpacked(Fused),
}

impl Dot {
    pub fn new(
        model: MmaModel,
        d: Scalar,
        a: Scalar,
        b: Scalar,
        c: Scalar,
        satfinite: bool,
    ) -> Self {
        let nearest = if d == Scalar::F16 { Rounding::NearestF16 } else { Rounding::NearestF32 };
        let plan = match model {
            _ if matches!(a, Scalar::S8 | Scalar::U8 | Scalar::S4 | Scalar::U4) => Plan::Integer,
            _ if a == Scalar::F64 => Plan::Double,
            MmaModel::Exact => Plan::Exact(nearest),
            MmaModel::Sequential => Plan::Sequential,
            MmaModel::Hardware(core) if a.bits() == 8 && core.unpacks_bytes() => {
                Plan::Unpacked(core.fused(Scalar::F16, d))
            }
            MmaModel::Hardware(core) => Plan::Fused(core.fused(a, d)),
        };
        Self { plan, a, b, c, d, satfinite }
    }

    /// A row of `A`: at most 64 elements in the low bits of their words.
    pub fn load_a(&self, elements: &[u64]) -> Vector {
        self.load(self.a, elements)
    }

    /// A column of `B`, as [`Dot::load_a`].
    pub fn load_b(&self, elements: &[u64]) -> Vector {
        self.load(self.b, elements)
    }

    fn load(&self, ty: Scalar, elements: &[u64]) -> Vector {
        match self.plan {
            Plan::Integer => Vector::integers(ty, elements),
            Plan::Double => Vector::words(elements),
            Plan::Exact(_) | Plan::Fused(_) => Vector::floats(ty, elements),
            Plan::Sequential if self.d == Scalar::F16 => Vector::halves(ty, elements),
            Plan::Sequential => Vector::singles(ty, elements),
            Plan::Unpacked(_) => Vector::unpacked(ty, elements),
        }
    }

    /// `c + Σ a·b` for elements in the low bits; as many products as the shorter of `a` and `b`
    /// has, at most 64.
    pub fn run(&self, a: &[u64], b: &[u64], c: u64) -> u64 {
        self.multiply(&self.load_a(a), &self.load_b(b), c)
    }

    /// [`Dot::run`] of loaded vectors.
    pub fn multiply(&self, a: &Vector, b: &Vector, c: u64) -> u64 {
        match self.plan {
            Plan::Integer => self.integer(a, b, c),
            Plan::Double => double(a, b, c),
            Plan::Exact(rounding) => self.exact(a, b, c, rounding),
            Plan::Sequential => self.sequential(a, b, c),
            Plan::Fused(fused) => self.fused(a, b, (self.c, c), fused),
            Plan::Unpacked(fused) => self.unpacked(a, b, c, fused),
        }
    }

    fn integer(&self, a: &Vector, b: &Vector, c: u64) -> u64 {
        let mut sum = i64::from(c as i32);
        for (&x, &y) in a.values().iter().zip(b.values()) {
            // Products of 8 bits.
            sum += i64::from(x * y);
        }
        if self.satfinite {
            sum = sum.clamp(i32::MIN.into(), i32::MAX.into());
        }
        u64::from(sum as u32)
    }

    fn exact(&self, a: &Vector, b: &Vector, c: u64, rounding: Rounding) -> u64 {
        let products = a.len().min(b.len());
        let mut whole = Accumulator::new();
        let mut specials = Specials::default();
        let mut all_negative = true;
        let mut from = 0;
        loop {
            let to = products.min(from + MOST - 1);
            let mut terms = Terms::products(a, b, from..to);
            if to == products {
                terms.push(self.c, c);
            }
            if let (0, true, Some(sum)) = (from, to == products, terms.narrow_sum()) {
                return rounding.apply(&sum);
            }
            specials = specials.joined(terms.specials);
            all_negative &= terms.all_negative;
            whole.add(&terms);
            if to == products {
                break;
            }
            from = to;
        }
        match specials.result() {
            Outcome::Number => rounding.apply(&whole.value(all_negative)),
            Outcome::Infinity { negative } => rounding.infinity(negative),
            Outcome::Nan => rounding.nan(),
        }
    }

    fn fused(&self, a: &Vector, b: &Vector, c: (Scalar, u64), fused: Fused) -> u64 {
        let products = a.len().min(b.len());
        let block = fused.block.clamp(1, MOST - 1);
        let mut sum = c;
        for from in (0..products).step_by(block) {
            let mut terms = Terms::products(a, b, from..products.min(from + block));
            terms.push(sum.0, sum.1);
            let bits = match terms.specials.result() {
                Outcome::Number => fused.result.apply(&terms.truncated_sum(fused.kept)),
                Outcome::Infinity { negative } => fused.result.infinity(negative),
                Outcome::Nan => fused.result.nan(),
            };
            sum = (self.d, bits);
        }
        sum.1
    }

    fn unpacked(&self, a: &Vector, b: &Vector, c: u64, fused: Fused) -> u64 {
        let halves = Fused { block: fused.block.min(a.len().div_ceil(2)), ..fused };
        let sum = self.fused(a, b, (self.d, 0), halves);
        let nearest = FloatMode::default();
        if self.d == Scalar::F16 {
            F16::add(c as u16, sum as u16, &nearest).into()
        } else {
            F32::add(c as u32, sum as u32, &nearest).into()
        }
    }

    fn sequential(&self, a: &Vector, b: &Vector, c: u64) -> u64 {
        let nearest = FloatMode::default();
        let pairs = a.values().iter().zip(b.values());
        if self.d == Scalar::F16 {
            let mut sum = c as u16;
            for (&x, &y) in pairs {
                sum = F16::fma(x as u16, y as u16, sum, &nearest);
            }
            return sum.into();
        }
        let mut sum = c as u32;
        for (&x, &y) in pairs {
            sum = F32::fma(x as u32, y as u32, sum, &nearest);
        }
        sum.into()
    }
}

fn double(a: &Vector, b: &Vector, c: u64) -> u64 {
    let nearest = FloatMode::default();
    let mut sum = c;
    for (&x, &y) in a.patterns().iter().zip(b.patterns()) {
        sum = F64::fma(x, y, sum, &nearest);
    }
    sum
}
