//! Lane instructions: an opcode with its types to a function over 32 lanes.
//!
//! # Idea
//! [`lower`] is asked once an instruction, when a kernel is decoded. It picks a function that was
//! compiled for exactly this operation, type and, where they are common, modifiers; what the
//! function still has to be told is the payload. Running is one indirect call for a warp.
//! # Invariants
//! - **U1** An operation that PTX does not have for a type, and one that is not executed, are both
//!   refused by name; nothing is computed under another meaning.
//! - **U2** A [`LaneStep`] never indexes past its operands: their number and kinds were checked
//!   against the [`Signature`](crate::ir::Signature).
//! # Held by
//! `ptx/tests/alu/table.rs`: every opcode with every type.
//! # Not here
//! What an operation computes on one value (`num`); memory, warps and control (`exec::step`).

mod approx;
mod carry;
mod compare;
mod convert;
mod field;
mod float;
mod host;
mod integer;
mod mode;
mod moves;
mod rows;
mod shape;
mod types;

use super::lane::{LaneFn, LaneStep, Operands};
use crate::{ir::Op, num::convert::Cvt, syntax::print_op};

/// An instruction that is not executed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Unsupported {
    /// Not in PTX with these types and modifiers, or not executed by this crate.
    #[error("`{0}` is not executed")]
    Opcode(String),
    /// Operands that are no rows of the kinds that the signature asks for.
    #[error("`{0}` has operands that do not fit it")]
    Operands(String),
}

/// A function and what it has to be told.
#[derive(Clone, Copy)]
struct Lowered {
    run: LaneFn,
    payload: u64,
}

impl Lowered {
    fn with(run: LaneFn, payload: u64) -> Self {
        Self { run, payload }
    }
}

impl From<LaneFn> for Lowered {
    fn from(run: LaneFn) -> Self {
        Self { run, payload: 0 }
    }
}

/// Finds the function that runs `op` on each lane.
pub fn lower(op: &Op, operands: Operands) -> Result<LaneStep, Unsupported> {
    if !shape::fits(op, &operands) {
        return Err(Unsupported::Operands(print_op(op)));
    }
    let Some(lowered) = find(op, &operands) else {
        return Err(Unsupported::Opcode(print_op(op)));
    };
    Ok(LaneStep { run: lowered.run, operands: Operands { payload: lowered.payload, ..operands } })
}

fn find(op: &Op, operands: &Operands) -> Option<Lowered> {
    match *op {
        Op::Mov { ty } => moves::mov(ty, operands),
        Op::Cvta { to, space, ty } => moves::cvta(to, space, ty),
        Op::Isspacep { space } => moves::isspacep(space),
        Op::Selp { ty } => moves::selp(ty).map(Lowered::from),
        Op::Slct { ty, by, ftz } => moves::slct(ty, by, ftz),
        Op::Prmt { ref mode } => field::prmt(mode.as_deref()).map(Lowered::from),
        Op::Cvt { to, from, round, int_round, ftz, sat, relu, satfinite } => {
            let cvt = Cvt { to, from, round, int_round, ftz, sat, relu, satfinite };
            convert::cvt(cvt, operands)
        }
        Op::CvtPack { to, from, third } => convert::pack(to, from, third).map(Lowered::from),
        Op::IntUnary { op, ty } => integer::unary(op, ty).map(Lowered::from),
        Op::IntBinary { op, ty, sat } => integer::binary(op, ty, sat).map(Lowered::from),
        Op::Mad { half, ty, sat } => integer::mad(half, ty, sat).map(Lowered::from),
        Op::Mad24 { half, ty, sat } => integer::mad24(half, ty, sat).map(Lowered::from),
        Op::Sad { ty } => integer::sad(ty).map(Lowered::from),
        Op::Bfe { ty } => field::bfe(ty).map(Lowered::from),
        Op::Bfi { ty } => field::bfi(ty).map(Lowered::from),
        Op::Bfind { ty, shiftamt } => field::bfind(ty, shiftamt),
        Op::Bmsk { clamp } => Some(field::bmsk(clamp)),
        Op::Szext { ty, clamp } => field::szext(ty, clamp),
        Op::Fns => Some(field::fns().into()),
        Op::Lop3 => Some(field::lop3().into()),
        Op::Shf { left, clamp } => Some(field::shf(left, clamp).into()),
        Op::Dp4a { a, b } => field::dp4a(a, b).map(Lowered::from),
        Op::Dp2a { high, a, b } => field::dp2a(high, a, b),
        Op::AddCarry { ty, carry_in: reads, carry_out: writes } => {
            carry::add(ty, carry::Flow { reads, writes })
        }
        Op::SubCarry { ty, carry_in: reads, carry_out: writes } => {
            carry::sub(ty, carry::Flow { reads, writes })
        }
        Op::MadCarry { half, ty, carry_in: reads, carry_out: writes } => {
            carry::mad(half, ty, carry::Flow { reads, writes })
        }
        Op::Setp { cmp, ty, ftz, join } => compare::setp(cmp, ty, ftz, join, operands),
        Op::Set { cmp, to, ty, ftz, join } => compare::set(cmp, to, ty, ftz, join),
        Op::Testp { property, ty } => compare::testp(property, ty).map(Lowered::from),
        Op::FloatUnary { op, ty, ref mode } => float::unary(op, ty, mode),
        Op::FloatBinary { op, ty, ref mode } => float::binary(op, ty, mode),
        Op::FloatTernary { op, ty, ref mode } => float::ternary(op, ty, mode),
        Op::Fma { ty, ref mode } => float::fma(ty, mode),
        Op::FmaMixed { op, fused, from, ref mode } => float::mixed(op, fused, from, mode),
        Op::Mapa { .. }
        | Op::Getctarank { .. }
        | Op::Ld { .. }
        | Op::St { .. }
        | Op::Atom { .. }
        | Op::CpAsync { .. }
        | Op::CpAsyncCommit
        | Op::CpAsyncWait { .. }
        | Op::CpAsyncMbarrierArrive { .. }
        | Op::Ldmatrix { .. }
        | Op::Stmatrix { .. }
        | Op::Movmatrix
        | Op::Mma { .. }
        | Op::Hint { .. }
        | Op::Createpolicy { .. }
        | Op::Shfl { .. }
        | Op::Vote { .. }
        | Op::Match { .. }
        | Op::Redux { .. }
        | Op::Activemask
        | Op::Elect
        | Op::BarWarp
        | Op::Bar { .. }
        | Op::Fence { .. }
        | Op::BarCluster { .. }
        | Op::Mbarrier { .. }
        | Op::Bra { .. }
        | Op::BrxIdx { .. }
        | Op::Call { .. }
        | Op::Ret { .. }
        | Op::Exit
        | Op::Trap
        | Op::Brkpt
        | Op::Nanosleep
        | Op::Nop { .. }
        | Op::Opaque { .. } => None,
    }
}
