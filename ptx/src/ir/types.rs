//! The small vocabularies of PTX: scalar types, state spaces, scopes, roundings.

/// A type suffix of an instruction or a declaration, packed forms included.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, strum::EnumString, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
#[rustfmt::skip]
pub enum Scalar {
    Pred,
    B1, B4, B8, B16, B32, B64, B128,
    U4, U8, U16, U32, U64,
    S4, S8, S16, S32, S64,
    F16, F32, F64, BF16, TF32,
    U16x2, S16x2, U8x4, S8x4,
    F16x2, BF16x2, F32x2,
    E4m3, E5m2, E2m1, E2m3, E3m2, UE8m0,
    E4m3x2, E5m2x2, E2m1x2, E2m3x2, E3m2x2, UE8m0x2,
    E4m3x4, E5m2x4, E2m1x4, E2m3x4, E3m2x4,
}

/// What an element is, apart from its width.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Class {
    /// One bit of truth.
    Predicate,
    /// Untyped bits.
    Bits,
    Unsigned,
    Signed,
    Float,
}

impl Scalar {
    /// Width in bits of one whole value, packed elements together.
    pub fn bits(self) -> u32 {
        use Scalar::*;
        match self {
            Pred | B1 => 1,
            B4 | U4 | S4 => 4,
            B8 | U8 | S8 | E4m3 | E5m2 | E2m3 | E3m2 | UE8m0 | E2m1 | E2m1x2 => 8,
            B16 | U16 | S16 | F16 | BF16 => 16,
            E4m3x2 | E5m2x2 | E2m3x2 | E3m2x2 | UE8m0x2 | E2m1x4 => 16,
            B32 | U32 | S32 | F32 | TF32 | U16x2 | S16x2 | U8x4 | S8x4 | F16x2 | BF16x2 => 32,
            E4m3x4 | E5m2x4 | E2m3x4 | E3m2x4 => 32,
            B64 | U64 | S64 | F64 | F32x2 => 64,
            B128 => 128,
        }
    }

    /// The element of a packed type; the type itself otherwise.
    pub fn element(self) -> Self {
        use Scalar::*;
        match self {
            U16x2 => U16,
            S16x2 => S16,
            U8x4 => U8,
            S8x4 => S8,
            F16x2 => F16,
            BF16x2 => BF16,
            F32x2 => F32,
            E4m3x2 | E4m3x4 => E4m3,
            E5m2x2 | E5m2x4 => E5m2,
            E2m1x2 | E2m1x4 => E2m1,
            E2m3x2 | E2m3x4 => E2m3,
            E3m2x2 | E3m2x4 => E3m2,
            UE8m0x2 => UE8m0,
            Pred | B1 | B4 | B8 | B16 | B32 | B64 | B128 | U4 | U8 | U16 | U32 | U64 | S4 | S8
            | S16 | S32 | S64 | F16 | F32 | F64 | BF16 | TF32 | E4m3 | E5m2 | E2m1 | E2m3
            | E3m2 | UE8m0 => self,
        }
    }

    /// Elements in one value: 2 for `f16x2`.
    pub fn lanes(self) -> u32 {
        use Scalar::*;
        match self {
            U16x2 | S16x2 | F16x2 | BF16x2 | F32x2 | E4m3x2 | E5m2x2 | E2m1x2 | E2m3x2 | E3m2x2
            | UE8m0x2 => 2,
            U8x4 | S8x4 | E4m3x4 | E5m2x4 | E2m1x4 | E2m3x4 | E3m2x4 => 4,
            Pred | B1 | B4 | B8 | B16 | B32 | B64 | B128 | U4 | U8 | U16 | U32 | U64 | S4 | S8
            | S16 | S32 | S64 | F16 | F32 | F64 | BF16 | TF32 | E4m3 | E5m2 | E2m1 | E2m3
            | E3m2 | UE8m0 => 1,
        }
    }

    pub fn class(self) -> Class {
        use Scalar::*;
        match self.element() {
            Pred => Class::Predicate,
            B1 | B4 | B8 | B16 | B32 | B64 | B128 => Class::Bits,
            U4 | U8 | U16 | U32 | U64 => Class::Unsigned,
            S4 | S8 | S16 | S32 | S64 => Class::Signed,
            F16 | F32 | F64 | BF16 | TF32 | E4m3 | E5m2 | E2m1 | E2m3 | E3m2 | UE8m0 | U16x2
            | S16x2 | U8x4 | S8x4 | F16x2 | BF16x2 | F32x2 | E4m3x2 | E5m2x2 | E2m1x2 | E2m3x2
            | E3m2x2 | UE8m0x2 | E4m3x4 | E5m2x4 | E2m1x4 | E2m3x4 | E3m2x4 => Class::Float,
        }
    }

    /// Bytes in memory.
    pub fn bytes(self) -> u32 {
        self.bits().div_ceil(8)
    }
}

/// A state space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Space {
    /// No space in the text: any of global, shared, local, const, by address.
    #[strum(disabled)]
    Generic,
    Global,
    #[strum(serialize = "shared::cta", to_string = "shared")]
    Shared,
    #[strum(serialize = "shared::cluster")]
    SharedCluster,
    Local,
    #[strum(serialize = "param::entry", serialize = "param::func", to_string = "param")]
    Param,
    Const,
}

/// Who a synchronising operation speaks to.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, strum::EnumString, strum::Display,
)]
#[strum(serialize_all = "lowercase")]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    Sys,
}

/// Ordering of a memory operation, from the PTX memory consistency model.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Ordering {
    /// `.weak`, or nothing.
    Weak,
    /// `.volatile`: as relaxed at system scope.
    Volatile,
    Relaxed(Scope),
    Acquire(Scope),
    Release(Scope),
    AcqRel(Scope),
    /// `.mmio.relaxed.sys`.
    Mmio,
}

/// Direction of a rounding to a floating-point format.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display, strum::EnumIter,
)]
#[strum(serialize_all = "lowercase")]
pub enum Round {
    /// To nearest, ties to even.
    Rn,
    /// To nearest, ties away from zero.
    Rna,
    /// Towards zero.
    Rz,
    /// Towards minus infinity.
    Rm,
    /// Towards plus infinity.
    Rp,
    /// Stochastic, by the bits of an operand.
    Rs,
}

/// Direction of a rounding to an integer.
#[derive(
    Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display, strum::EnumIter,
)]
#[strum(serialize_all = "lowercase")]
pub enum IntRound {
    Rni,
    Rzi,
    Rmi,
    Rpi,
}

/// A comparison of `setp` and `set`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display, strum::EnumIter)]
#[strum(serialize_all = "lowercase")]
#[rustfmt::skip]
pub enum Compare {
    Eq, Ne, Lt, Le, Gt, Ge,
    /// Unsigned by name: below, or the same, above, or the same.
    Lo, Ls, Hi, Hs,
    /// True when an operand is NaN.
    Equ, Neu, Ltu, Leu, Gtu, Geu,
    /// Both are numbers; one is NaN.
    Num, Nan,
}

/// How `setp` joins its comparison with a predicate; also `bar.red` and `redux` on bits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Logic {
    And,
    Or,
    Xor,
}

/// A predefined register; the axis is 0, 1, 2 for x, y, z.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[rustfmt::skip]
pub enum Special {
    Tid(u8), Ntid(u8), Ctaid(u8), Nctaid(u8),
    LaneId, WarpId, NWarpId, SmId, NSmId, GridId,
    LaneMaskEq, LaneMaskLt, LaneMaskLe, LaneMaskGt, LaneMaskGe,
    Clock, ClockHi, Clock64, GlobalTimer, GlobalTimerLo, GlobalTimerHi,
    ClusterId(u8), NClusterId(u8), ClusterCtaId(u8), ClusterNCtaId(u8),
    ClusterCtaRank, ClusterNCtaRank, IsExplicitCluster,
    TotalSmemSize, DynamicSmemSize,
}
