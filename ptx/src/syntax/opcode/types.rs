//! The sets of types and spaces that the descriptions allow.

use crate::ir::{Compare, Half, IntRound, Logic, Round, Scalar, Scalar::*, Space};

pub(super) const INTEGERS: &[Scalar] = &[U16, U32, U64, S16, S32, S64];
pub(super) const INTEGERS_PACKED: &[Scalar] = &[U16, U32, U64, S16, S32, S64, U16x2, S16x2];
pub(super) const WORDS: &[Scalar] = &[U32, S32];
pub(super) const WIDE: &[Scalar] = &[U32, S32, U64, S64];
pub(super) const BITS: &[Scalar] = &[B16, B32, B64];
pub(super) const BITS_PRED: &[Scalar] = &[Pred, B16, B32, B64];
pub(super) const LONG_BITS: &[Scalar] = &[B32, B64];
pub(super) const FLOATS: &[Scalar] = &[F32, F64, F16, F16x2, BF16, BF16x2, F32x2];
pub(super) const HALVES: &[Scalar] = &[F16, F16x2, BF16, BF16x2];
pub(super) const SINGLE: &[Scalar] = &[F32];
pub(super) const SINGLE_DOUBLE: &[Scalar] = &[F32, F64];
pub(super) const ADDRESSES: &[Scalar] = &[U64, U32];
/// Whatever one register holds.
pub(super) const VALUES: &[Scalar] = &[B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64];
/// Whatever a load or store moves.
#[rustfmt::skip]
pub(super) const STORED: &[Scalar] = &[
    B8, B16, B32, B64, B128, U8, U16, U32, U64, S8, S16, S32, S64, F32, F64, F16, BF16, F16x2, BF16x2,
];
pub(super) const UPDATED: &[Scalar] =
    &[B16, B32, B64, B128, U32, U64, S32, S64, F32, F64, F16, F16x2, BF16, BF16x2];
#[rustfmt::skip]
pub(super) const CONVERTED: &[Scalar] = &[
    U8, U16, U32, U64, S8, S16, S32, S64, F16, F32, F64, BF16, TF32, F16x2, BF16x2, E4m3x2, E5m2x2,
    E2m1x2, E2m3x2, E3m2x2, UE8m0x2, E4m3x4, E5m2x4, E2m1x4, E2m3x4, E3m2x4,
];
#[rustfmt::skip]
pub(super) const COMPARED: &[Scalar] = &[
    B16, B32, B64, U16, U32, U64, S16, S32, S64, F32, F64, F16, F16x2, BF16, BF16x2,
];

pub(super) const SPACES: &[Space] =
    &[Space::Global, Space::Shared, Space::SharedCluster, Space::Local, Space::Param, Space::Const];
pub(super) const SHARED: &[Space] = &[Space::Shared, Space::SharedCluster];
pub(super) const GLOBAL_SHARED: &[Space] = &[Space::Global, Space::Shared, Space::SharedCluster];

pub(super) const LOGIC: &[Logic] = &[Logic::And, Logic::Or, Logic::Xor];
pub(super) const HALF: &[Half] = &[Half::Lo, Half::Hi, Half::Wide];
pub(super) const LO_HI: &[Half] = &[Half::Lo, Half::Hi];
pub(super) const NEAREST: &[Round] = &[Round::Rn];
pub(super) const ROUNDS: &[Round] = &[Round::Rn, Round::Rz, Round::Rm, Round::Rp];
pub(super) const INT_ROUNDS: &[IntRound] =
    &[IntRound::Rni, IntRound::Rzi, IntRound::Rmi, IntRound::Rpi];
#[rustfmt::skip]
pub(super) const COMPARES: &[Compare] = &[
    Compare::Eq, Compare::Ne, Compare::Lt, Compare::Le, Compare::Gt, Compare::Ge,
    Compare::Lo, Compare::Ls, Compare::Hi, Compare::Hs, Compare::Equ, Compare::Neu, Compare::Ltu,
    Compare::Leu, Compare::Gtu, Compare::Geu, Compare::Num, Compare::Nan,
];
