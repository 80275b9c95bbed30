//! Whether an instruction's rows are those that its signature asks for.
//!
//! # Idea
//! Lane functions index their operands without asking. So their number and kinds are compared with
//! the [`Signature`](crate::ir::Signature) once, when a step is made.
//! # Held by
//! `ptx/tests/alu/table.rs`, which leaves operands out and swaps their kinds.

use crate::{
    exec::{lane::Operands, registers::Slot},
    ir::{Data, Op, Role, Scalar, Shape, Width, signature},
};

pub(super) fn fits(op: &Op, operands: &Operands) -> bool {
    let (mut dst, mut src) = (&operands.dst[..], &operands.src[..]);
    for place in signature(op).places {
        let taken = match place.role {
            Role::Write(data) => take(&mut dst, data, true),
            Role::WritePair(data) => take(&mut dst, data, true) && second_flag(&mut dst),
            Role::Read(data) => take(&mut src, data, false),
            Role::Predicate => take(&mut src, one(Scalar::Pred), false),
            Role::Immediate(ty) => take(&mut src, one(ty), false),
            Role::Address
            | Role::Label
            | Role::Table
            | Role::Returns
            | Role::Callee
            | Role::Arguments => false,
        };
        if !taken {
            return false;
        }
    }
    dst.is_empty() && src.is_empty()
}

fn one(ty: Scalar) -> Data {
    Data { ty, shape: Shape::One, width: Width::Exact }
}

/// Takes the slots of one position off the front.
fn take(slots: &mut &[Slot], data: Data, written: bool) -> bool {
    let count = match data.shape {
        Shape::One => 1,
        Shape::Vector(length) => usize::from(length),
        Shape::Pieces => slots.len(),
    };
    let (Some((mine, rest)), Some(ty)) = (slots.split_at_checked(count), data.piece(count)) else {
        return false;
    };
    *slots = rest;
    mine.iter().all(|&slot| match slot {
        Slot::Flag(_) => ty.bits() == 1,
        Slot::Word(_) => (2..=32).contains(&ty.bits()),
        Slot::Wide(_) if data.width == Width::AtLeast => ty.bits() <= 64,
        Slot::Wide(_) => ty.bits() == 64,
        Slot::Quad(_) => ty.bits() == 128,
        Slot::Sink => written,
    })
}

/// The `p` of `d|p`, if it is there.
fn second_flag(dst: &mut &[Slot]) -> bool {
    let [second, rest @ ..] = *dst else { return true };
    *dst = rest;
    matches!(second, Slot::Flag(_) | Slot::Sink)
}
