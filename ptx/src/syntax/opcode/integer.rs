//! Integer and bit operations.

use super::{
    modifiers::{Modifiers, Peek},
    types::*,
};
use crate::ir::{Half, IntBinary, IntUnary, Op, Scalar, Scalar::*};

pub(super) fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    let (half, ty, sat) = (Half::Lo, U32, false);
    let carry_out = words.has("cc");
    let binary = |op| Op::IntBinary { op, ty, sat };
    let unary = |op| Op::IntUnary { op, ty };
    Some(match opcode {
        "add" | "addc" if carry_out || opcode == "addc" => {
            Op::AddCarry { ty, carry_in: opcode == "addc", carry_out }
        }
        "sub" | "subc" if carry_out || opcode == "subc" => {
            Op::SubCarry { ty, carry_in: opcode == "subc", carry_out }
        }
        "mad" | "madc" if carry_out || opcode == "madc" => {
            Op::MadCarry { half, ty, carry_in: opcode == "madc", carry_out }
        }
        "add" => binary(IntBinary::Add),
        "sub" => binary(IntBinary::Sub),
        "mul" => binary(IntBinary::Mul(half)),
        "mul24" => binary(IntBinary::Mul24(half)),
        "div" => binary(IntBinary::Div),
        "rem" => binary(IntBinary::Rem),
        "min" => binary(IntBinary::Min),
        "max" => binary(IntBinary::Max),
        "and" => binary(IntBinary::And),
        "or" => binary(IntBinary::Or),
        "xor" => binary(IntBinary::Xor),
        "shl" => binary(IntBinary::Shl),
        "shr" => binary(IntBinary::Shr),
        "abs" => unary(IntUnary::Abs),
        "neg" => unary(IntUnary::Neg),
        "not" => unary(IntUnary::Not),
        "cnot" => unary(IntUnary::Cnot),
        "popc" => unary(IntUnary::Popc),
        "clz" => unary(IntUnary::Clz),
        "brev" => unary(IntUnary::Brev),
        "mad" => Op::Mad { half, ty, sat },
        "mad24" => Op::Mad24 { half, ty, sat },
        "sad" => Op::Sad { ty },
        "bfe" => Op::Bfe { ty },
        "bfi" => Op::Bfi { ty: B32 },
        "bfind" => Op::Bfind { ty, shiftamt: false },
        "bmsk" => Op::Bmsk { clamp: false },
        "szext" => Op::Szext { ty, clamp: false },
        "fns" => Op::Fns,
        "lop3" => Op::Lop3,
        "shf" => Op::Shf { left: false, clamp: false },
        "dp4a" => Op::Dp4a { a: ty, b: ty },
        "dp2a" => Op::Dp2a { high: false, a: ty, b: ty },
        _ => return None,
    })
}

pub(super) fn unary(m: &mut Modifiers<'_>, op: IntUnary, ty: &mut Scalar) {
    m.opcode(&op.to_string());
    m.one(
        ty,
        match op {
            IntUnary::Abs | IntUnary::Neg => &[S16, S32, S64],
            IntUnary::Not => BITS_PRED,
            IntUnary::Cnot => BITS,
            IntUnary::Popc | IntUnary::Clz | IntUnary::Brev => LONG_BITS,
        },
    );
}

pub(super) fn binary(m: &mut Modifiers<'_>, op: &mut IntBinary, ty: &mut Scalar, sat: &mut bool) {
    let (name, types): (_, &[Scalar]) = match op {
        IntBinary::Add => ("add", INTEGERS_PACKED),
        IntBinary::Sub => ("sub", INTEGERS_PACKED),
        IntBinary::Mul(_) => ("mul", INTEGERS),
        IntBinary::Mul24(_) => ("mul24", WORDS),
        IntBinary::Div => ("div", INTEGERS),
        IntBinary::Rem => ("rem", INTEGERS),
        IntBinary::Min => ("min", INTEGERS_PACKED),
        IntBinary::Max => ("max", INTEGERS_PACKED),
        IntBinary::And => ("and", BITS_PRED),
        IntBinary::Or => ("or", BITS_PRED),
        IntBinary::Xor => ("xor", BITS_PRED),
        IntBinary::Shl => ("shl", BITS),
        IntBinary::Shr => ("shr", &[B16, B32, B64, U16, U32, U64, S16, S32, S64]),
    };
    m.opcode(name);
    if let IntBinary::Mul(half) = op {
        m.one(half, HALF);
    }
    if let IntBinary::Mul24(half) = op {
        m.one(half, LO_HI);
    }
    if matches!(op, IntBinary::Add | IntBinary::Sub) {
        m.flag("sat", sat);
    }
    m.one(ty, types);
}

/// `mad` and `mad24`.
pub(super) fn mad(
    m: &mut Modifiers<'_>,
    opcode: &str,
    half: &mut Half,
    ty: &mut Scalar,
    sat: &mut bool,
) {
    let short = opcode == "mad24";
    m.opcode(opcode);
    m.one(half, if short { LO_HI } else { HALF });
    m.flag("sat", sat);
    m.one(ty, if short { WORDS } else { INTEGERS });
}

/// `add`, `sub` and `mad` with carry: the opcode ends with `c` when the carry is read.
pub(super) fn carry(
    m: &mut Modifiers<'_>,
    opcode: &str,
    half: Option<&mut Half>,
    ty: &mut Scalar,
    flags: (bool, &mut bool),
) {
    m.opcode(opcode);
    if flags.0 {
        m.opcode("c");
    }
    if let Some(half) = half {
        m.one(half, LO_HI);
    }
    // Without a carry in it is the carry out that tells the instruction from plain arithmetic.
    if flags.0 {
        m.flag("cc", flags.1);
    } else {
        m.word("cc");
        *flags.1 = true;
    }
    m.one(ty, WIDE);
}

pub(super) fn typed(m: &mut Modifiers<'_>, opcode: &str, ty: &mut Scalar, types: &[Scalar]) {
    m.opcode(opcode);
    m.one(ty, types);
}

pub(super) fn bfind(m: &mut Modifiers<'_>, ty: &mut Scalar, shiftamt: &mut bool) {
    m.opcode("bfind");
    m.flag("shiftamt", shiftamt);
    m.one(ty, WIDE);
}

pub(super) fn bmsk(m: &mut Modifiers<'_>, clamp: &mut bool) {
    m.opcode("bmsk");
    m.either(["wrap", "clamp"], clamp);
    m.word("b32");
}

pub(super) fn szext(m: &mut Modifiers<'_>, ty: &mut Scalar, clamp: &mut bool) {
    m.opcode("szext");
    m.either(["wrap", "clamp"], clamp);
    m.one(ty, WORDS);
}

pub(super) fn shf(m: &mut Modifiers<'_>, left: &mut bool, clamp: &mut bool) {
    m.opcode("shf");
    m.either(["r", "l"], left);
    m.either(["wrap", "clamp"], clamp);
    m.word("b32");
}

pub(super) fn dp4a(m: &mut Modifiers<'_>, a: &mut Scalar, b: &mut Scalar) {
    m.opcode("dp4a");
    m.one(a, WORDS);
    m.one(b, WORDS);
}

pub(super) fn dp2a(m: &mut Modifiers<'_>, high: &mut bool, a: &mut Scalar, b: &mut Scalar) {
    m.opcode("dp2a");
    m.either(["lo", "hi"], high);
    m.one(a, WORDS);
    m.one(b, WORDS);
}
