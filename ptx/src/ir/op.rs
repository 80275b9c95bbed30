//! What an instruction does: its opcode and modifiers, typed.
//!
//! # Idea
//! One variant a family, one field a modifier. An [`Op`] with its operands says everything the
//! executor needs; nothing is looked up in text again. Modifiers without effect on the result
//! (cache hints) are kept as text, so that printing gives them back.
//! # Invariants
//! - **O1** Every instruction that Triton emits is an `Op`; families that nothing executes yet are
//!   [`Op::Opaque`], which keeps the opcode's text.

use super::types::{Compare, IntRound, Logic, Ordering, Round, Scalar, Space};

/// The half of a product that is kept.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Half {
    Lo,
    Hi,
    /// Twice as wide as the operands.
    Wide,
}

/// Two-operand integer and bit operations; `ty` may be packed (`u16x2`).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum IntBinary {
    Add,
    Sub,
    Mul(Half),
    /// 24-bit product.
    Mul24(Half),
    Div,
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    Shl,
    Shr,
}

/// One-operand integer and bit operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum IntUnary {
    Abs,
    Neg,
    Not,
    Cnot,
    Popc,
    Clz,
    Brev,
}

/// Two-operand floating-point operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatBinary {
    Add,
    Sub,
    Mul,
    Div(Precision),
    Min,
    Max,
    Copysign,
}

/// One-operand floating-point operations.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FloatUnary {
    Abs,
    Neg,
    Sqrt(Precision),
    Rcp(Precision),
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
}

/// How exact a division, a root or a reciprocal is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Precision {
    /// IEEE, with the instruction's rounding.
    Rounded,
    /// `.approx`.
    Approx,
    /// `.full`: full range, two units in the last place.
    Full,
}

/// Modifiers that floating-point operations share.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct FloatMode {
    /// `None` where the text names no rounding. For add, sub and mul that means round to nearest
    /// *and* that ptxas may contract; so it stays apart from `Some(Rn)`.
    pub round: Option<Round>,
    /// Subnormal inputs and results become zeros of the same sign.
    pub ftz: bool,
    /// Clamped to `[0, 1]`; NaN becomes `+0`.
    pub sat: bool,
    /// Negative results and NaN handling of `.relu`: clamped at `+0`, NaN stays canonical NaN.
    pub relu: bool,
    /// `.NaN` of min and max: a NaN operand gives canonical NaN.
    pub nan: bool,
    /// `.abs` of min and max.
    pub abs: bool,
    /// `.xorsign.abs` of min and max: magnitudes compared, sign the xor of both.
    pub xorsign: bool,
}

/// An atomic update.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Atomic {
    And,
    Or,
    Xor,
    Add,
    Inc,
    Dec,
    Min,
    Max,
    Exch,
    Cas,
}

/// Where a shuffle reads.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Vote {
    All,
    Any,
    Uni,
    Ballot,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Redux {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

/// What a CTA barrier instruction does.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Barrier {
    Sync,
    Arrive,
    /// Popcount of the predicate, to a 32-bit register.
    RedPopc,
    /// And/or of the predicate.
    Red(Logic),
}

/// Operations on an mbarrier object; operands as in the PTX manual.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Mbarrier {
    Init,
    Inval,
    /// `expect_tx`: also adds the transaction count operand before arriving.
    Arrive {
        drop: bool,
        no_complete: bool,
        expect_tx: bool,
    },
    ExpectTx,
    CompleteTx,
    /// `try_wait` may be suspended for a while, `test_wait` not; both answer with a predicate.
    Wait {
        try_wait: bool,
        parity: bool,
    },
    PendingCount,
}

/// The property `testp` asks for.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum TestProperty {
    Finite,
    Infinite,
    Number,
    #[strum(serialize = "notanumber")]
    NotANumber,
    Normal,
    Subnormal,
}

/// Opcode and modifiers.
///
/// Operands follow the PTX manual's order, destination first; they are listed per variant only
/// where that needs saying. `ty` is the instruction's type suffix.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Op {
    // Moves
    /// `mov`; either side may be a vector of registers that is packed or unpacked.
    Mov {
        ty: Scalar,
    },
    /// `to`: from generic to `space`; otherwise from `space` to generic.
    Cvta {
        to: bool,
        space: Space,
        ty: Scalar,
    },
    Isspacep {
        space: Space,
    },
    Mapa {
        space: Space,
        ty: Scalar,
    },
    Getctarank {
        space: Space,
        ty: Scalar,
    },
    Selp {
        ty: Scalar,
    },
    Slct {
        ty: Scalar,
        by: Scalar,
        ftz: bool,
    },
    /// `mode`: `f4e`, `b4e`, `rc8`, `ecl`, `ecr`, `rc16`.
    Prmt {
        mode: Option<String>,
    },
    /// Conversions; a packed `to` with two sources packs (first source is the upper half).
    Cvt {
        to: Scalar,
        from: Scalar,
        round: Option<Round>,
        int_round: Option<IntRound>,
        ftz: bool,
        sat: bool,
        relu: bool,
        satfinite: bool,
    },
    /// `cvt.pack.sat.to.from[.b32]`.
    CvtPack {
        to: Scalar,
        from: Scalar,
        third: bool,
    },

    // Integers and bits
    IntUnary {
        op: IntUnary,
        ty: Scalar,
    },
    /// `sat` only with `add.s32`, `sub.s32`.
    IntBinary {
        op: IntBinary,
        ty: Scalar,
        sat: bool,
    },
    Mad {
        half: Half,
        ty: Scalar,
        sat: bool,
    },
    Mad24 {
        half: Half,
        ty: Scalar,
        sat: bool,
    },
    /// `add`, `sub`, `mad` with carry: `carry_in` reads it (`addc`), `carry_out` writes it (`.cc`).
    AddCarry {
        ty: Scalar,
        carry_in: bool,
        carry_out: bool,
    },
    SubCarry {
        ty: Scalar,
        carry_in: bool,
        carry_out: bool,
    },
    MadCarry {
        half: Half,
        ty: Scalar,
        carry_in: bool,
        carry_out: bool,
    },
    Sad {
        ty: Scalar,
    },
    Bfe {
        ty: Scalar,
    },
    Bfi {
        ty: Scalar,
    },
    Bfind {
        ty: Scalar,
        shiftamt: bool,
    },
    Bmsk {
        clamp: bool,
    },
    Szext {
        ty: Scalar,
        clamp: bool,
    },
    Fns,
    /// The table is the last operand, an immediate.
    Lop3,
    /// Funnel shift.
    Shf {
        left: bool,
        clamp: bool,
    },
    Dp4a {
        a: Scalar,
        b: Scalar,
    },
    Dp2a {
        high: bool,
        a: Scalar,
        b: Scalar,
    },

    // Comparisons
    /// One or two predicate destinations (`p|q`); with `join`, a predicate operand follows.
    Setp {
        cmp: Compare,
        ty: Scalar,
        ftz: bool,
        join: Option<Logic>,
    },
    Set {
        cmp: Compare,
        to: Scalar,
        ty: Scalar,
        ftz: bool,
        join: Option<Logic>,
    },
    Testp {
        property: TestProperty,
        ty: Scalar,
    },

    // Floating point
    FloatUnary {
        op: FloatUnary,
        ty: Scalar,
        mode: FloatMode,
    },
    FloatBinary {
        op: FloatBinary,
        ty: Scalar,
        mode: FloatMode,
    },
    /// Three-operand min and max of sm_100.
    FloatTernary {
        op: FloatBinary,
        ty: Scalar,
        mode: FloatMode,
    },
    /// `fma`, and `mad` on floats.
    Fma {
        ty: Scalar,
        mode: FloatMode,
    },
    /// `fma.rn.oob` and mixed-precision `fma.rn.f32.f16` of sm_100: `from` is the narrow type.
    FmaMixed {
        op: FloatBinary,
        fused: bool,
        from: Scalar,
        mode: FloatMode,
    },

    // Memory
    /// `vector` is 1, 2, 4 or 8; `hints` are modifiers without effect on the value, dots left out.
    Ld {
        space: Space,
        ordering: Ordering,
        ty: Scalar,
        vector: u8,
        nc: bool,
        hints: Vec<String>,
    },
    St {
        space: Space,
        ordering: Ordering,
        ty: Scalar,
        vector: u8,
        hints: Vec<String>,
    },
    /// `result`: `atom`, with a destination; otherwise `red`.
    Atom {
        op: Atomic,
        result: bool,
        space: Space,
        ordering: Ordering,
        ty: Scalar,
        vector: u8,
        noftz: bool,
        hints: Vec<String>,
    },
    /// `[dst], [src], cp-size{, src-size}{, ignore-src predicate}{, policy}`.
    CpAsync {
        cg: bool,
        hints: Vec<String>,
    },
    CpAsyncCommit,
    /// `None`: `cp.async.wait_all`; otherwise the number is the operand.
    CpAsyncWait {
        all: bool,
    },
    CpAsyncMbarrierArrive {
        noinc: bool,
        space: Space,
    },
    /// `number` matrices of 8×8 `b16` (or as `shape`/`ty` say).
    Ldmatrix {
        number: u8,
        trans: bool,
        space: Space,
        shape: String,
        ty: String,
    },
    Stmatrix {
        number: u8,
        trans: bool,
        space: Space,
        shape: String,
        ty: String,
    },
    /// `movmatrix.sync.aligned.m8n8.trans.b16`.
    Movmatrix,
    /// `mma.sync.aligned.mMnNkK.row.col.d.a.b.c`.
    Mma {
        m: u16,
        n: u16,
        k: u16,
        d: Scalar,
        a: Scalar,
        b: Scalar,
        c: Scalar,
        satfinite: bool,
    },
    /// Prefetches, priorities, discards: checked for shape, no effect.
    Hint {
        name: String,
    },
    /// `createpolicy…`: writes an opaque 64-bit policy.
    Createpolicy {
        name: String,
    },

    // Warp
    /// `d[|p], a, b, c, membermask`.
    Shfl {
        mode: Shuffle,
    },
    Vote {
        mode: Vote,
    },
    Match {
        all: bool,
        ty: Scalar,
    },
    Redux {
        op: Redux,
        ty: Scalar,
        abs: bool,
        nan: bool,
    },
    Activemask,
    /// `d|p, membermask`.
    Elect,
    BarWarp,

    // Synchronisation
    /// `id{, threads}{, predicate}`.
    Bar {
        kind: Barrier,
        aligned: bool,
    },
    /// `fence`; `None` scope for `fence.proxy.*`, whose name is in `proxy`.
    Fence {
        ordering: Ordering,
        sc: bool,
        proxy: Option<String>,
    },
    /// `barrier.cluster.arrive/wait`.
    BarCluster {
        wait: bool,
        ordering: Ordering,
        aligned: bool,
    },
    Mbarrier {
        op: Mbarrier,
        ordering: Ordering,
        space: Space,
    },

    // Control
    Bra {
        uni: bool,
    },
    /// `index, label list name`.
    BrxIdx {
        uni: bool,
    },
    /// `(returns), function, (arguments)`.
    Call {
        uni: bool,
    },
    Ret {
        uni: bool,
    },
    Exit,
    Trap,
    Brkpt,
    Nanosleep,
    /// `griddepcontrol.*`, `setmaxnreg.*`, `pmevent`: no effect on one launch's result.
    Nop {
        name: String,
    },

    /// Parsed and printed, not executed: `wgmma.*`, `tcgen05.*`, `cp.async.bulk.*`, …
    Opaque {
        name: String,
    },
}
