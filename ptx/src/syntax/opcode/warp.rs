//! Operations of a warp: shuffles, votes, matches, reductions.

use super::{
    modifiers::{Modifiers, Peek},
    types::*,
};
use crate::ir::{Op, Redux, Scalar, Scalar::*, Shuffle, Vote};

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    Some(match opcode {
        "shfl" => Op::Shfl { mode: Shuffle::Idx },
        "vote" => Op::Vote { mode: Vote::All },
        "match" => Op::Match { all: false, ty: B32 },
        "redux" => Op::Redux { op: Redux::Add, ty: S32, abs: false, nan: false },
        "activemask" => Op::Activemask,
        "elect" => Op::Elect,
        "bar" if words.starts(&["warp"]) => Op::BarWarp,
        _ => return None,
    })
}

pub(super) fn shfl(m: &mut Modifiers<'_>, mode: &mut Shuffle) {
    m.opcode("shfl");
    m.word("sync");
    m.one(mode, &[Shuffle::Up, Shuffle::Down, Shuffle::Bfly, Shuffle::Idx]);
    m.word("b32");
}

pub(super) fn vote(m: &mut Modifiers<'_>, mode: &mut Vote) {
    m.opcode("vote");
    m.word("sync");
    m.one(mode, &[Vote::All, Vote::Any, Vote::Uni, Vote::Ballot]);
    m.word(if *mode == Vote::Ballot { "b32" } else { "pred" });
}

pub(super) fn matching(m: &mut Modifiers<'_>, all: &mut bool, ty: &mut Scalar) {
    m.opcode("match");
    m.either(["any", "all"], all);
    m.word("sync");
    m.one(ty, LONG_BITS);
}

pub(super) fn redux(
    m: &mut Modifiers<'_>,
    op: &mut Redux,
    ty: &mut Scalar,
    abs: &mut bool,
    nan: &mut bool,
) {
    m.opcode("redux");
    m.word("sync");
    m.one(op, &[Redux::Add, Redux::Min, Redux::Max, Redux::And, Redux::Or, Redux::Xor]);
    m.flag("abs", abs);
    m.flag("NaN", nan);
    m.one(
        ty,
        match op {
            Redux::Add => WORDS,
            Redux::Min | Redux::Max => &[U32, S32, F32],
            Redux::And | Redux::Or | Redux::Xor => &[B32],
        },
    );
}

pub(super) fn fixed(m: &mut Modifiers<'_>, opcode: &str, words: &[&str]) {
    m.opcode(opcode);
    for word in words {
        m.word(word);
    }
}
