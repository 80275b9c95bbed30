//! Moves, selections, conversions and comparisons.

use super::{
    modifiers::{Modifiers, Peek},
    types::*,
};
use crate::ir::{Compare, IntRound, Logic, Op, Round, Scalar, Scalar::*, Space, TestProperty};

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let space = Space::Shared;
    Some(match opcode {
        "mov" => Op::Mov { ty: B32 },
        "cvta" => Op::Cvta { to: false, space, ty: U64 },
        "isspacep" => Op::Isspacep { space },
        "mapa" => Op::Mapa { space: Space::Generic, ty: U64 },
        "getctarank" => Op::Getctarank { space: Space::Generic, ty: U64 },
        "selp" => Op::Selp { ty: B32 },
        "slct" => Op::Slct { ty: B32, by: S32, ftz: false },
        "prmt" => Op::Prmt { mode: None },
        "cvt" if words.has("pack") => Op::CvtPack { to: U8, from: S32, third: false },
        "cvt" => Op::Cvt {
            to: F32,
            from: F32,
            round: None,
            int_round: None,
            ftz: false,
            sat: false,
            relu: false,
            satfinite: false,
        },
        "setp" => Op::Setp { cmp: Compare::Eq, ty: B32, ftz: false, join: None },
        "set" => Op::Set { cmp: Compare::Eq, to: U32, ty: B32, ftz: false, join: None },
        "testp" => Op::Testp { property: TestProperty::Finite, ty: F32 },
        _ => return None,
    })
}

pub(super) fn mov(m: &mut Modifiers<'_>, ty: &mut Scalar) {
    m.opcode("mov");
    #[rustfmt::skip]
    m.one(ty, &[
        Pred, B16, B32, B64, B128, U16, U32, U64, S16, S32, S64, F32, F64, F16, BF16, F16x2, BF16x2,
    ]);
}

pub(super) fn cvta(m: &mut Modifiers<'_>, to: &mut bool, space: &mut Space, ty: &mut Scalar) {
    m.opcode("cvta");
    m.flag("to", to);
    m.one(space, SPACES);
    m.one(ty, ADDRESSES);
}

pub(super) fn isspacep(m: &mut Modifiers<'_>, space: &mut Space) {
    m.opcode("isspacep");
    m.one(space, SPACES);
}

/// `mapa` and `getctarank`.
pub(super) fn cluster(m: &mut Modifiers<'_>, opcode: &str, space: &mut Space, ty: &mut Scalar) {
    m.opcode(opcode);
    m.or(space, Space::Generic, &[Space::SharedCluster]);
    m.one(ty, ADDRESSES);
}

pub(super) fn selp(m: &mut Modifiers<'_>, ty: &mut Scalar) {
    m.opcode("selp");
    m.one(ty, VALUES);
}

pub(super) fn slct(m: &mut Modifiers<'_>, ty: &mut Scalar, by: &mut Scalar, ftz: &mut bool) {
    m.opcode("slct");
    m.flag("ftz", ftz);
    m.one(ty, VALUES);
    m.one(by, &[S32, F32]);
}

pub(super) fn prmt(m: &mut Modifiers<'_>, mode: &mut Option<String>) {
    const MODES: &[&str] = &["f4e", "b4e", "rc8", "ecl", "ecr", "rc16"];
    m.opcode("prmt");
    m.word("b32");
    let mut named: Vec<String> = mode.take().into_iter().collect();
    m.hints(MODES, &mut named);
    *mode = named.into_iter().next();
}

/// Where a conversion's modifiers go.
pub(super) struct Cvt<'a> {
    pub to: &'a mut Scalar,
    pub from: &'a mut Scalar,
    pub round: &'a mut Option<Round>,
    pub int_round: &'a mut Option<IntRound>,
    pub ftz: &'a mut bool,
    pub sat: &'a mut bool,
    pub relu: &'a mut bool,
    pub satfinite: &'a mut bool,
}

pub(super) fn cvt(m: &mut Modifiers<'_>, cvt: Cvt<'_>) {
    m.opcode("cvt");
    m.maybe(cvt.round, &[Round::Rn, Round::Rna, Round::Rz, Round::Rm, Round::Rp, Round::Rs]);
    m.maybe(cvt.int_round, INT_ROUNDS);
    m.flag("ftz", cvt.ftz);
    m.flag("sat", cvt.sat);
    m.flag("satfinite", cvt.satfinite);
    m.flag("relu", cvt.relu);
    m.one(cvt.to, CONVERTED);
    m.one(cvt.from, CONVERTED);
}

pub(super) fn cvt_pack(
    m: &mut Modifiers<'_>,
    to: &mut Scalar,
    from: &mut Scalar,
    third: &mut bool,
) {
    m.opcode("cvt");
    m.word("pack");
    m.word("sat");
    m.one(to, &[U8, S8, U16, S16, U4, S4]);
    m.one(from, &[S32]);
    m.flag("b32", third);
}

/// The modifiers that `setp` and `set` share.
pub(super) fn compare(
    m: &mut Modifiers<'_>,
    opcode: &str,
    cmp: &mut Compare,
    join: &mut Option<Logic>,
    ftz: &mut bool,
) {
    m.opcode(opcode);
    m.one(cmp, COMPARES);
    m.maybe(join, LOGIC);
    m.flag("ftz", ftz);
}

pub(super) fn compared(m: &mut Modifiers<'_>, ty: &mut Scalar) {
    m.one(ty, COMPARED);
}

pub(super) fn set_result(m: &mut Modifiers<'_>, to: &mut Scalar) {
    m.one(to, &[U16, U32, S32, F32, F16, F16x2, BF16, BF16x2]);
}

pub(super) fn testp(m: &mut Modifiers<'_>, property: &mut TestProperty, ty: &mut Scalar) {
    use TestProperty::*;
    m.opcode("testp");
    m.one(property, &[Finite, Infinite, Number, NotANumber, Normal, Subnormal]);
    m.one(ty, SINGLE_DOUBLE);
}
