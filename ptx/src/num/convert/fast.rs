//! The hot pairs, one inline function each.
//!
//! # Idea
//! Where a conversion is an instruction of the host, or a few selects, it stands here alone, so
//! that a loop over lanes has no branch on modifiers. Rust's `as` from float to integer truncates,
//! clamps and takes NaN to 0: it is `cvt.rzi`.
//! # Held by
//! `ptx/tests/num_convert.rs`, which compares each with [`Cvt::apply_slowly`].

use super::Cvt;
use crate::ir::{IntRound, Round, Scalar};
use crate::num::narrow::{F32_NAN, HALF_NAN};
pub use crate::num::narrow::{bf16_to_f32, f16_to_f32, f32_to_bf16, f32_to_f16};

/// `cvt.rn.f32.s32`.
#[inline(always)]
pub fn s32_to_f32(bits: u32) -> u32 {
    (bits as i32 as f32).to_bits()
}

/// `cvt.rn.f32.u32`.
#[inline(always)]
pub fn u32_to_f32(bits: u32) -> u32 {
    (bits as f32).to_bits()
}

/// `cvt.rn.f32.s64`.
#[inline(always)]
pub fn s64_to_f32(bits: u64) -> u32 {
    (bits as i64 as f32).to_bits()
}

/// `cvt.rn.f64.s32`: exact.
#[inline(always)]
pub fn s32_to_f64(bits: u32) -> u64 {
    f64::from(bits as i32).to_bits()
}

/// `cvt.rn.f64.s64`.
#[inline(always)]
pub fn s64_to_f64(bits: u64) -> u64 {
    (bits as i64 as f64).to_bits()
}

/// `cvt.rzi.s32.f32`.
#[inline(always)]
pub fn f32_to_s32(bits: u32) -> u32 {
    f32::from_bits(bits) as i32 as u32
}

/// `cvt.rzi.u32.f32`.
#[inline(always)]
pub fn f32_to_u32(bits: u32) -> u32 {
    f32::from_bits(bits) as u32
}

/// `cvt.rzi.s64.f32`.
#[inline(always)]
pub fn f32_to_s64(bits: u32) -> u64 {
    f32::from_bits(bits) as i64 as u64
}

/// `cvt.rzi.s32.f64`.
#[inline(always)]
pub fn f64_to_s32(bits: u64) -> u32 {
    f64::from_bits(bits) as i32 as u32
}

/// `cvt.rzi.s64.f64`.
#[inline(always)]
pub fn f64_to_s64(bits: u64) -> u64 {
    f64::from_bits(bits) as i64 as u64
}

/// `cvt.rni.f32.f32` and its three brothers.
#[inline(always)]
pub fn f32_to_integral(bits: u32, round: IntRound) -> u32 {
    let value = f32::from_bits(bits);
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        return F32_NAN;
    }
    match round {
        IntRound::Rni => value.round_ties_even(),
        IntRound::Rzi => value.trunc(),
        IntRound::Rmi => value.floor(),
        IntRound::Rpi => value.ceil(),
    }
    .to_bits()
}

/// `cvt.f64.f32`: exact; NaN keeps its payload.
#[inline(always)]
pub fn f32_to_f64(bits: u32) -> u64 {
    let wide = u64::from(bits);
    let nan = (wide >> 31) << 63 | 0x7ff8 << 48 | (wide & 0x7f_ffff) << 29;
    if bits & 0x7fff_ffff > 0x7f80_0000 { nan } else { f64::from(f32::from_bits(bits)).to_bits() }
}

/// `cvt.rn.f32.f64`.
#[inline(always)]
pub fn f64_to_f32(bits: u64) -> u32 {
    let value = f64::from_bits(bits);
    if value.is_nan() { F32_NAN } else { (value as f32).to_bits() }
}

/// `cvt.rn.f16x2.f32`: `a` above `b`.
#[inline(always)]
pub fn f32_to_f16x2(a: u32, b: u32) -> u32 {
    u32::from(f32_to_f16(a)) << 16 | u32::from(f32_to_f16(b))
}

/// `cvt.rn.bf16x2.f32`: `a` above `b`.
#[inline(always)]
pub fn f32_to_bf16x2(a: u32, b: u32) -> u32 {
    u32::from(f32_to_bf16(a)) << 16 | u32::from(f32_to_bf16(b))
}

/// `cvt.rz.f16.f32`.
#[inline(always)]
pub fn f32_to_f16_rz(bits: u32) -> u16 {
    let magnitude = bits & 0x7fff_ffff;
    let sign = ((bits >> 16) & 0x8000) as u16;
    // Below 2^-14 the value is a count of 2^-24, which the host truncates.
    let scaled = f32::from_bits(magnitude) * f32::from_bits((127 + 24) << 23);
    let subnormal = scaled as u32;
    let normal = magnitude.wrapping_sub((127 - 15) << 23) >> 13;
    let finite = if magnitude < 0x3880_0000 { subnormal } else { normal };
    match magnitude {
        0x7f80_0001.. => HALF_NAN,
        0x7f80_0000 => 0x7c00 | sign,
        _ => finite.min(0x7bff) as u16 | sign,
    }
}

/// `cvt.rna.tf32.f32`.
#[inline(always)]
pub fn f32_to_tf32_rna(bits: u32) -> u32 {
    let rounded = bits.wrapping_add(0x1000) & !0x1fff;
    if bits & 0x7fff_ffff > 0x7f80_0000 {
        F32_NAN
    } else if bits & 0x7fff_ffff == 0x7f80_0000 {
        bits
    } else {
        rounded
    }
}

/// A conversion that is one of this module's functions and nothing else.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hot {
    F16ToF32,
    Bf16ToF32,
    F32ToF16,
    F32ToBf16,
    F32ToF16Rz,
    F32ToTf32,
    F32ToF16x2,
    F32ToBf16x2,
    F32ToF64,
    F64ToF32,
    S32ToF32,
    U32ToF32,
    S64ToF32,
    S32ToF64,
    S64ToF64,
    F32ToS32,
    F32ToU32,
    F32ToS64,
    F64ToS32,
    F64ToS64,
    F32ToIntegral(IntRound),
    /// Integer to integer: extended by the source's sign, cut to the target.
    Integer {
        from: Scalar,
        to: Scalar,
    },
}

impl Hot {
    pub(super) fn of(cvt: &Cvt) -> Option<Self> {
        use Scalar::{BF16, BF16x2, F16, F16x2, F32, F64, S32, S64, TF32, U32};
        if cvt.ftz || cvt.sat || cvt.relu || cvt.satfinite {
            return None;
        }
        let nearest = matches!(cvt.round, None | Some(Round::Rn));
        let truncates = matches!(cvt.int_round, None | Some(IntRound::Rzi));
        match (cvt.to, cvt.from) {
            (F32, F32) => Some(Self::F32ToIntegral(cvt.int_round?)),
            (F32, F16) => Some(Self::F16ToF32),
            (F32, BF16) => Some(Self::Bf16ToF32),
            (F64, F32) => Some(Self::F32ToF64),
            (F16, F32) if nearest => Some(Self::F32ToF16),
            (F16, F32) if cvt.round == Some(Round::Rz) => Some(Self::F32ToF16Rz),
            (BF16, F32) if nearest => Some(Self::F32ToBf16),
            (F16x2, F32) if nearest => Some(Self::F32ToF16x2),
            (BF16x2, F32) if nearest => Some(Self::F32ToBf16x2),
            (TF32, F32) if cvt.round == Some(Round::Rna) => Some(Self::F32ToTf32),
            (F32, F64) if nearest => Some(Self::F64ToF32),
            (F32, S32) if nearest => Some(Self::S32ToF32),
            (F32, U32) if nearest => Some(Self::U32ToF32),
            (F32, S64) if nearest => Some(Self::S64ToF32),
            (F64, S32) if nearest => Some(Self::S32ToF64),
            (F64, S64) if nearest => Some(Self::S64ToF64),
            (S32, F32) if truncates => Some(Self::F32ToS32),
            (U32, F32) if truncates => Some(Self::F32ToU32),
            (S64, F32) if truncates => Some(Self::F32ToS64),
            (S32, F64) if truncates => Some(Self::F64ToS32),
            (S64, F64) if truncates => Some(Self::F64ToS64),
            (to, from) if integer(to) && integer(from) => Some(Self::Integer { from, to }),
            (_, _) => None,
        }
    }

    /// [`Cvt::apply`] for this conversion.
    #[inline(always)]
    pub fn apply(self, [bits, second]: [u64; 2]) -> u64 {
        let (half, word) = (bits as u16, bits as u32);
        match self {
            Self::F16ToF32 => f16_to_f32(half).into(),
            Self::Bf16ToF32 => bf16_to_f32(half).into(),
            Self::F32ToF16 => f32_to_f16(word).into(),
            Self::F32ToBf16 => f32_to_bf16(word).into(),
            Self::F32ToF16Rz => f32_to_f16_rz(word).into(),
            Self::F32ToTf32 => f32_to_tf32_rna(word).into(),
            Self::F32ToF16x2 => f32_to_f16x2(word, second as u32).into(),
            Self::F32ToBf16x2 => f32_to_bf16x2(word, second as u32).into(),
            Self::F32ToF64 => f32_to_f64(word),
            Self::F64ToF32 => f64_to_f32(bits).into(),
            Self::S32ToF32 => s32_to_f32(word).into(),
            Self::U32ToF32 => u32_to_f32(word).into(),
            Self::S64ToF32 => s64_to_f32(bits).into(),
            Self::S32ToF64 => s32_to_f64(word),
            Self::S64ToF64 => s64_to_f64(bits),
            Self::F32ToS32 => f32_to_s32(word).into(),
            Self::F32ToU32 => f32_to_u32(word).into(),
            Self::F32ToS64 => f32_to_s64(word),
            Self::F64ToS32 => f64_to_s32(bits).into(),
            Self::F64ToS64 => f64_to_s64(bits),
            Self::F32ToIntegral(round) => f32_to_integral(word, round).into(),
            Self::Integer { from, to } => {
                let unused = 64 - to.bits().min(64);
                (super::extended(from, bits) << unused) >> unused
            }
        }
    }
}

fn integer(ty: Scalar) -> bool {
    use Scalar::{S8, S16, S32, S64, U8, U16, U32, U64};
    matches!(ty, U8 | U16 | U32 | U64 | S8 | S16 | S32 | S64)
}
