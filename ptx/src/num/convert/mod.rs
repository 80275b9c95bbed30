//! `cvt` and `cvt.pack`: every conversion between integers and floating-point formats.
//!
//! # Idea
//! A [`Cvt`] holds the instruction's types and modifiers. A lane of the source is taken apart into
//! an exact value, rounded once into the target's format, then clamped. Packed forms do so per
//! lane. The pairs that kernels convert by the million have their own functions in [`fast`], and
//! [`Cvt::hot`] says when one of them is the whole instruction.
//! # Invariants
//! - **C1** One rounding. Integer roundings (`.rni`, …) of a float to its own type round to an
//!   integer and keep the sign of zero.
//! - **C2** A float becomes an integer by clamping to the integer's range; NaN becomes 0, as the
//!   manual says.
//! - **C3** NaN becomes the canonical NaN of the target: `0x7fff`, `0x7fffffff`, `0x7f` in `e4m3`
//!   and `e5m2`, `0xff` in `ue8m0`; in `e2m1`, `e2m3`, `e3m2`, which have none, the largest number.
//!   Two widenings keep the payload: `bf16` to `f32`, a shift in hardware, and anything to `f64`
//!   (so ptxas folds it).
//! - **C4** `.satfinite` clamps infinities and overflow to the largest finite number of their sign.
//! - **C5** `.ftz` concerns `f32` alone, as source and as target.
//! # Held by
//! `ptx/tests/num_convert.rs` against `rustc_apfloat` and exact integers.
//! # Not here
//! `.rs` (stochastic rounding) and the four-element forms that need it: [`Cvt::supported`] refuses.

pub mod fast;
mod lane;

use crate::ir::{Class, IntRound, Round, Scalar};

pub use self::fast::Hot;

/// Types and modifiers of a `cvt`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Cvt {
    pub to: Scalar,
    pub from: Scalar,
    pub round: Option<Round>,
    pub int_round: Option<IntRound>,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
    pub satfinite: bool,
}

/// What a scalar is to a conversion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Integer,
    /// `f16`, `bf16`, `f32`, `f64`.
    Float,
    Tf32,
    /// `f16x2`, `bf16x2`.
    HalfPair,
    /// Pairs of 8, 6 and 4 bits with a sign.
    SmallPair,
    /// `ue8m0x2`.
    ScalePair,
    Other,
}

fn kind(ty: Scalar) -> Kind {
    use Scalar::*;
    match ty {
        U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64 => Kind::Integer,
        F16 | BF16 | F32 | F64 => Kind::Float,
        TF32 => Kind::Tf32,
        F16x2 | BF16x2 => Kind::HalfPair,
        E4m3x2 | E5m2x2 | E2m1x2 | E2m3x2 | E3m2x2 => Kind::SmallPair,
        UE8m0x2 => Kind::ScalePair,
        Pred | B1 | B4 | B8 | B16 | B32 | B64 | B128 | U4 | S4 | U16x2 | S16x2 | U8x4 | S8x4
        | F32x2 | E4m3 | E5m2 | E2m1 | E2m3 | E3m2 | UE8m0 | E4m3x4 | E5m2x4 | E2m1x4 | E2m3x4
        | E3m2x4 => Kind::Other,
    }
}

impl Cvt {
    /// The conversion without modifiers.
    pub fn plain(to: Scalar, from: Scalar) -> Self {
        Self {
            to,
            from,
            round: None,
            int_round: None,
            ftz: false,
            sat: false,
            relu: false,
            satfinite: false,
        }
    }

    /// Whether [`Cvt::apply`] is the instruction's meaning. Modifiers that the manual gives no
    /// meaning for these types are refused too.
    pub fn supported(&self) -> bool {
        use Round::{Rm, Rn, Rna, Rp, Rz};
        let rounds = |allowed: &[Round]| self.round.is_none_or(|round| allowed.contains(&round));
        let no_int_round = self.int_round.is_none();
        let no_clamp = !self.relu && !self.satfinite;
        let single = self.to == Scalar::F32 || self.from == Scalar::F32;
        if self.ftz && !single {
            return false;
        }
        match (kind(self.to), kind(self.from)) {
            (Kind::Integer, Kind::Integer) => self.round.is_none() && no_int_round && no_clamp,
            (Kind::Integer, Kind::Float) => self.round.is_none() && no_clamp,
            (Kind::Float, Kind::Integer) => rounds(&[Rn, Rz, Rm, Rp]) && no_int_round && no_clamp,
            (Kind::Float, Kind::Float) => {
                rounds(&[Rn, Rz, Rm, Rp]) && (no_int_round || self.to == self.from)
            }
            (Kind::Tf32, Kind::Float) => {
                self.from == Scalar::F32 && rounds(&[Rn, Rz, Rna]) && no_int_round && !self.sat
            }
            (Kind::HalfPair, Kind::Float) => {
                self.from == Scalar::F32 && rounds(&[Rn, Rz]) && no_int_round && !self.sat
            }
            (Kind::SmallPair, Kind::Float | Kind::HalfPair) => {
                let source = self.from == Scalar::F32 || kind(self.from) == Kind::HalfPair;
                source && rounds(&[Rn]) && self.satfinite && no_int_round && !self.sat
            }
            (Kind::HalfPair, Kind::SmallPair) => rounds(&[Rn]) && no_int_round && !self.sat,
            (Kind::ScalePair, Kind::Float | Kind::HalfPair) => {
                let source = self.from == Scalar::F32 || self.from == Scalar::BF16x2;
                source && rounds(&[Rz, Rp]) && no_int_round && !self.relu && !self.sat
            }
            (Kind::HalfPair, Kind::ScalePair) => {
                self.to == Scalar::BF16x2 && rounds(&[Rn]) && no_int_round && no_clamp && !self.sat
            }
            (
                Kind::Integer
                | Kind::Float
                | Kind::Tf32
                | Kind::HalfPair
                | Kind::SmallPair
                | Kind::ScalePair
                | Kind::Other,
                _,
            ) => false,
        }
    }

    /// Sources that the instruction reads: two where scalars are packed.
    pub fn sources(&self) -> usize {
        if self.to.lanes() > self.from.lanes() { 2 } else { 1 }
    }

    /// The function that is this whole conversion, if [`fast`] has one.
    pub fn hot(&self) -> Option<Hot> {
        Hot::of(self)
    }

    /// Converts. Sources are read in their low bits; of two, the first becomes the upper half. The
    /// result stands in the low `to.bits()` bits, zeros above: whoever writes it to a wider
    /// register extends it by its sign ([`extended`]).
    ///
    /// An unsupported conversion gives 0.
    #[inline]
    pub fn apply(&self, sources: [u64; 2]) -> u64 {
        if let Some(hot) = self.hot() {
            return hot.apply(sources);
        }
        self.apply_slowly(sources)
    }

    /// [`Cvt::apply`] by the general road alone.
    pub fn apply_slowly(&self, [first, second]: [u64; 2]) -> u64 {
        let lanes = self.to.lanes();
        if lanes == 1 {
            return lane::convert(self, self.to, self.from, first);
        }
        let (to, from) = (self.to.element(), self.from.element());
        let width = self.to.bits() / lanes;
        let (upper, lower) = if self.sources() == 2 {
            (first, second)
        } else {
            let source_width = self.from.bits() / self.from.lanes();
            (first >> source_width, first)
        };
        (lane::convert(self, to, from, upper) << width) | lane::convert(self, to, from, lower)
    }
}

/// The low `ty.bits()` bits, extended by their sign where `ty` is signed.
#[inline(always)]
pub fn extended(ty: Scalar, bits: u64) -> u64 {
    let unused = 64 - ty.bits().min(64);
    if ty.class() == Class::Signed {
        (((bits << unused) as i64) >> unused) as u64
    } else {
        (bits << unused) >> unused
    }
}

/// `cvt.pack.sat.to.s32{.b32}`: `a` and `b` clamped to `to` and packed, `a` above `b`, and above
/// both what `c` holds.
pub fn cvt_pack(to: Scalar, a: u32, b: u32, c: u32) -> u32 {
    let width = to.bits();
    let mask = u64::MAX >> (64 - width);
    let clamp = |bits: u32| {
        let value = lane::integer_value(Scalar::S32, u64::from(bits));
        lane::clamp_integer(to, value) & mask
    };
    let pair = (clamp(a) << width) | clamp(b);
    let rest = u64::from(c).checked_shl(2 * width).unwrap_or(0);
    (pair | rest) as u32
}
