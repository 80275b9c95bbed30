//! From opcode and modifiers to [`Op`], and back.
//!
//! # Idea
//! A *skeleton* is chosen by the opcode, and by the few modifiers that make another instruction of
//! it (`add.f32`, `add.s32`, `add.cc.u32`). The family's *description* then names its modifiers;
//! reading takes them from the text, printing writes them (see [`modifiers`]).
//! # Not here
//! Operands (`operand.rs`, `check.rs`).

mod control;
mod float;
mod integer;
mod memory;
mod modifiers;
mod moves;
mod sync;
#[cfg(test)]
mod tests;
mod types;
mod warp;

use memory::{Access, Matrix, Update};
use modifiers::{Modifiers, Peek, Trouble};

use super::ErrorKind;
use crate::ir::Op;

/// Reads an opcode with its modifiers, given without dots.
pub(super) fn read(opcode: &str, words: &[&str]) -> Result<Op, ErrorKind> {
    let peek = Peek(words);
    let mut op =
        skeleton(opcode, peek).ok_or_else(|| ErrorKind::UnknownOpcode(spelled(opcode, words)))?;
    let mut modifiers = Modifiers::read(words);
    describe(&mut op, &mut modifiers, opcode);
    match modifiers.trouble() {
        None => Ok(op),
        Some(Trouble::Unknown(modifier)) => {
            Err(ErrorKind::UnknownModifier { opcode: opcode.to_owned(), modifier })
        }
        Some(Trouble::Missing(what)) => {
            Err(ErrorKind::MissingModifier { opcode: spelled(opcode, words), what })
        }
    }
}

/// The text of opcode and modifiers.
pub(super) fn print(op: &Op) -> String {
    let mut modifiers = Modifiers::write();
    describe(&mut op.clone(), &mut modifiers, "");
    modifiers.text()
}

fn spelled(opcode: &str, words: &[&str]) -> String {
    const LONGEST: usize = 8;
    let mut text = opcode.to_owned();
    for word in words.iter().take(LONGEST) {
        text.push('.');
        text.push_str(word);
    }
    text
}

fn skeleton(opcode: &str, words: Peek<'_, '_>) -> Option<Op> {
    if opcode == "mma" && memory::mma_is_opaque(words) {
        return Some(Op::Opaque { name: [&[opcode], words.0].concat().join(".") });
    }
    float::skeleton(opcode, words)
        .or_else(|| integer::skeleton(opcode, words))
        .or_else(|| moves::skeleton(opcode, words))
        .or_else(|| memory::skeleton(opcode, words))
        .or_else(|| warp::skeleton(opcode, words))
        .or_else(|| sync::skeleton(opcode, words))
        .or_else(|| control::skeleton(opcode, words))
}

/// The table of descriptions: an arm a family. `read` is the opcode that the text has, for the
/// few instructions with two; empty when printing.
fn describe(op: &mut Op, m: &mut Modifiers<'_>, read: &str) {
    match op {
        Op::Mov { ty } => moves::mov(m, ty),
        Op::Cvta { to, space, ty } => moves::cvta(m, to, space, ty),
        Op::Isspacep { space } => moves::isspacep(m, space),
        Op::Mapa { space, ty } => moves::cluster(m, "mapa", space, ty),
        Op::Getctarank { space, ty } => moves::cluster(m, "getctarank", space, ty),
        Op::Selp { ty } => moves::selp(m, ty),
        Op::Slct { ty, by, ftz } => moves::slct(m, ty, by, ftz),
        Op::Prmt { mode } => moves::prmt(m, mode),
        Op::Cvt { to, from, round, int_round, ftz, sat, relu, satfinite } => {
            moves::cvt(m, moves::Cvt { to, from, round, int_round, ftz, sat, relu, satfinite });
        }
        Op::CvtPack { to, from, third } => moves::cvt_pack(m, to, from, third),
        Op::IntUnary { op, ty } => integer::unary(m, *op, ty),
        Op::IntBinary { op, ty, sat } => integer::binary(m, op, ty, sat),
        Op::Mad { half, ty, sat } => integer::mad(m, "mad", half, ty, sat),
        Op::Mad24 { half, ty, sat } => integer::mad(m, "mad24", half, ty, sat),
        Op::AddCarry { ty, carry_in, carry_out } => {
            integer::carry(m, "add", None, ty, (*carry_in, carry_out));
        }
        Op::SubCarry { ty, carry_in, carry_out } => {
            integer::carry(m, "sub", None, ty, (*carry_in, carry_out));
        }
        Op::MadCarry { half, ty, carry_in, carry_out } => {
            integer::carry(m, "mad", Some(half), ty, (*carry_in, carry_out));
        }
        Op::Sad { ty } => integer::typed(m, "sad", ty, types::INTEGERS),
        Op::Bfe { ty } => integer::typed(m, "bfe", ty, types::WIDE),
        Op::Bfi { ty } => integer::typed(m, "bfi", ty, types::LONG_BITS),
        Op::Bfind { ty, shiftamt } => integer::bfind(m, ty, shiftamt),
        Op::Bmsk { clamp } => integer::bmsk(m, clamp),
        Op::Szext { ty, clamp } => integer::szext(m, ty, clamp),
        Op::Fns => warp::fixed(m, "fns", &["b32"]),
        Op::Lop3 => warp::fixed(m, "lop3", &["b32"]),
        Op::Shf { left, clamp } => integer::shf(m, left, clamp),
        Op::Dp4a { a, b } => integer::dp4a(m, a, b),
        Op::Dp2a { high, a, b } => integer::dp2a(m, high, a, b),
        Op::Setp { cmp, ty, ftz, join } => {
            moves::compare(m, "setp", cmp, join, ftz);
            moves::compared(m, ty);
        }
        Op::Set { cmp, to, ty, ftz, join } => {
            moves::compare(m, "set", cmp, join, ftz);
            moves::set_result(m, to);
            moves::compared(m, ty);
        }
        Op::Testp { property, ty } => moves::testp(m, property, ty),
        Op::FloatUnary { op, ty, mode } => float::unary(m, op, ty, mode),
        Op::FloatBinary { op, ty, mode } => float::binary(m, op, ty, mode),
        Op::FloatTernary { op, ty, mode } => float::ternary(m, *op, ty, mode),
        Op::Fma { ty, mode } => float::fma(m, ty, mode),
        Op::FmaMixed { op, fused, from, mode } => float::mixed(m, *op, *fused, from, mode),
        Op::Ld { space, ordering, ty, vector, nc, hints } => {
            memory::access(m, Some(nc), Access { space, ordering, ty, vector, hints });
        }
        Op::St { space, ordering, ty, vector, hints } => {
            memory::access(m, None, Access { space, ordering, ty, vector, hints });
        }
        Op::Atom { op, result, space, ordering, ty, vector, noftz, hints } => {
            let access = Access { space, ordering, ty, vector, hints };
            memory::update(m, *result, Update { op, noftz, access });
        }
        Op::CpAsync { cg, hints } => memory::cp_async(m, cg, hints),
        Op::CpAsyncCommit => memory::cp_async_group(m, "commit_group"),
        Op::CpAsyncWait { all: true } => memory::cp_async_group(m, "wait_all"),
        Op::CpAsyncWait { all: false } => memory::cp_async_group(m, "wait_group"),
        Op::CpAsyncMbarrierArrive { noinc, space } => memory::cp_async_arrive(m, noinc, space),
        Op::Ldmatrix { number, trans, space, shape, ty } => {
            memory::matrix(m, "ldmatrix", Matrix { number, trans, space, shape, ty });
        }
        Op::Stmatrix { number, trans, space, shape, ty } => {
            memory::matrix(m, "stmatrix", Matrix { number, trans, space, shape, ty });
        }
        Op::Movmatrix => memory::movmatrix(m),
        Op::Mma { m: rows, n, k, d, a, b, c, satfinite } => {
            memory::mma(m, [rows, n, k], [d, a, b, c], satfinite);
        }
        Op::Shfl { mode } => warp::shfl(m, mode),
        Op::Vote { mode } => warp::vote(m, mode),
        Op::Match { all, ty } => warp::matching(m, all, ty),
        Op::Redux { op, ty, abs, nan } => warp::redux(m, op, ty, abs, nan),
        Op::Activemask => warp::fixed(m, "activemask", &["b32"]),
        Op::Elect => warp::fixed(m, "elect", &["sync"]),
        Op::BarWarp => warp::fixed(m, "bar", &["warp", "sync"]),
        Op::Bar { kind, aligned } => sync::bar(m, kind, *aligned, read),
        Op::Fence { proxy: Some(name), .. } => sync::proxy(m, name),
        Op::Fence { ordering, sc, proxy: None } => sync::fence(m, ordering, sc, read),
        Op::BarCluster { wait, ordering, aligned } => sync::cluster(m, *wait, ordering, aligned),
        Op::Mbarrier { op, ordering, space } => sync::mbarrier(m, *op, ordering, space),
        Op::Bra { uni } => control::jump(m, "bra", uni),
        Op::BrxIdx { uni } => control::jump(m, "brx", uni),
        Op::Call { uni } => control::jump(m, "call", uni),
        Op::Ret { uni } => control::jump(m, "ret", uni),
        Op::Exit => warp::fixed(m, "exit", &[]),
        Op::Trap => warp::fixed(m, "trap", &[]),
        Op::Brkpt => warp::fixed(m, "brkpt", &[]),
        Op::Nanosleep => warp::fixed(m, "nanosleep", &["u32"]),
        Op::Hint { name } | Op::Createpolicy { name } | Op::Nop { name } | Op::Opaque { name } => {
            control::named(m, name);
        }
    }
}
