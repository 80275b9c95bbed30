//! Floating-point modifiers: as a payload, and which of them a type takes.
//!
//! # Idea
//! The PTX manual says in prose which modifiers go with which types. Here it is one table a family
//! of instructions; what is in no row is refused, computable or not.
//! # Invariants
//! - **D1** `decode(encode(m))` means what `m` means, for every mode that a table permits. No
//!   rounding named is rounding to nearest.
//! # Held by
//! `ptx/tests/alu/table.rs`, which walks all modes of all types.

use crate::ir::{FloatMode, Round, Scalar};

pub(super) const FTZ: u64 = 1;
pub(super) const SAT: u64 = 2;
pub(super) const RELU: u64 = 4;
pub(super) const NAN: u64 = 8;
pub(super) const ABS: u64 = 16;
pub(super) const XORSIGN: u64 = 32;
/// The rounding stands above the flags.
const ROUND: u32 = 8;

pub(super) const fn decode(payload: u64) -> FloatMode {
    FloatMode {
        round: match payload >> ROUND {
            1 => Some(Round::Rz),
            2 => Some(Round::Rm),
            3 => Some(Round::Rp),
            _ => Some(Round::Rn),
        },
        ftz: payload & FTZ != 0,
        sat: payload & SAT != 0,
        relu: payload & RELU != 0,
        nan: payload & NAN != 0,
        abs: payload & ABS != 0,
        xorsign: payload & XORSIGN != 0,
    }
}

pub(super) fn encode(mode: &FloatMode) -> u64 {
    let round = match mode.round {
        // No table permits the last two.
        None | Some(Round::Rn | Round::Rna | Round::Rs) => 0,
        Some(Round::Rz) => 1,
        Some(Round::Rm) => 2,
        Some(Round::Rp) => 3,
    };
    round << ROUND | flags(mode)
}

fn flags(mode: &FloatMode) -> u64 {
    let given = [
        (mode.ftz, FTZ),
        (mode.sat, SAT),
        (mode.relu, RELU),
        (mode.nan, NAN),
        (mode.abs, ABS),
        (mode.xorsign, XORSIGN),
    ];
    given.iter().filter(|(is_set, _)| *is_set).fold(0, |flags, (_, flag)| flags | flag)
}

/// Roundings that an instruction may name.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Roundings {
    None,
    Nearest,
    Ieee,
}
use Roundings::{Ieee, Nearest};

/// These types take these roundings and any of these flags.
pub(super) type Permit = (&'static [Scalar], Roundings, u64);

use Scalar::*;

/// `add`, `sub`, `mul`.
pub(super) const SUM: &[Permit] = &[
    (&[F32], Ieee, FTZ | SAT),
    (&[F32x2], Ieee, FTZ),
    (&[F64], Ieee, 0),
    (&[F16, F16x2], Nearest, FTZ | SAT),
    (&[BF16, BF16x2], Nearest, 0),
];
pub(super) const FMA: &[Permit] = &[
    (&[F32], Ieee, FTZ | SAT),
    (&[F32x2], Ieee, FTZ),
    (&[F64], Ieee, 0),
    (&[F16, F16x2], Nearest, FTZ | SAT),
    (&[F16, F16x2], Nearest, FTZ | RELU),
    (&[BF16, BF16x2], Nearest, RELU),
];
/// Narrow operands with an `f32` result; the types are the narrow ones.
pub(super) const MIXED: &[Permit] = &[(&[F16, BF16], Ieee, SAT)];
/// Rounded `div`, `rcp`, `sqrt`.
pub(super) const QUOTIENT: &[Permit] = &[(&[F32], Ieee, FTZ), (&[F64], Ieee, 0)];
/// `abs`, `neg`.
pub(super) const SIGN: &[Permit] =
    &[(&[F32, F16, F16x2], Roundings::None, FTZ), (&[F64, BF16, BF16x2], Roundings::None, 0)];
pub(super) const COPYSIGN: &[Permit] = &[(&[F32, F64], Roundings::None, 0)];
/// `min`, `max`.
pub(super) const EXTREMUM: &[Permit] = &[
    (&[F32, F16, F16x2], Roundings::None, FTZ | NAN | XORSIGN | ABS),
    (&[BF16, BF16x2], Roundings::None, NAN | XORSIGN | ABS),
    (&[F64], Roundings::None, 0),
];
/// `min`, `max` of three.
pub(super) const EXTREMUM3: &[Permit] = &[(&[F32], Roundings::None, FTZ | NAN | ABS)];

/// Whether a table has a row for a type with these modifiers.
pub(super) fn permits(table: &[Permit], ty: Scalar, mode: &FloatMode) -> bool {
    table.iter().any(|(types, roundings, modifiers)| {
        let rounds = match mode.round {
            None => true,
            Some(Round::Rn) => *roundings != Roundings::None,
            Some(Round::Rz | Round::Rm | Round::Rp) => *roundings == Ieee,
            Some(Round::Rna | Round::Rs) => false,
        };
        types.contains(&ty) && rounds && flags(mode) & !modifiers == 0
    })
}
