//! One instruction to one action.

use super::{
    DecodeError, Decoder, Frame,
    operands::{Resolved, ResolvedAddress, lane},
    refuse,
    storage::Place,
};
use crate::{
    exec::{
        lane::Operands,
        program::{
            Action, Address, AtomicStep, BarrierStep, CopyStep, MbarrierStep, Members, MmaStep,
            MmaTypes, Slots, Transfer, WarpAction, WarpStep,
        },
        registers::Slot,
    },
    ir::{Atomic, Barrier, Instruction, Op, Operand, Ordering, Scalar, Space, Special},
    num,
};

impl<'m> Decoder<'m> {
    pub(super) fn action(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        resolved: Resolved,
    ) -> Result<Action, DecodeError> {
        if let Some(clock) = resolved.clock {
            return clock_action(instruction, clock, &resolved);
        }
        match &instruction.op {
            op @ (Op::Mov { .. }
            | Op::Cvta { .. }
            | Op::Isspacep { .. }
            | Op::Selp { .. }
            | Op::Slct { .. }
            | Op::Prmt { .. }
            | Op::Cvt { .. }
            | Op::CvtPack { .. }
            | Op::IntUnary { .. }
            | Op::IntBinary { .. }
            | Op::Mad { .. }
            | Op::Mad24 { .. }
            | Op::AddCarry { .. }
            | Op::SubCarry { .. }
            | Op::MadCarry { .. }
            | Op::Sad { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Bfind { .. }
            | Op::Bmsk { .. }
            | Op::Szext { .. }
            | Op::Fns
            | Op::Lop3
            | Op::Shf { .. }
            | Op::Dp4a { .. }
            | Op::Dp2a { .. }
            | Op::Setp { .. }
            | Op::Set { .. }
            | Op::Testp { .. }
            | Op::FloatUnary { .. }
            | Op::FloatBinary { .. }
            | Op::FloatTernary { .. }
            | Op::Fma { .. }
            | Op::FmaMixed { .. }) => {
                let operands = Operands {
                    dst: resolved.dst.iter().copied().collect(),
                    src: resolved.src.iter().copied().collect(),
                    declared: resolved.declared,
                    payload: 0,
                };
                let step = lane(op, operands).map_err(|reason| refuse(instruction, reason))?;
                Ok(Action::Lane(step))
            }
            Op::Ld { space, ordering, ty, .. } => {
                self.load(instruction, (*space, *ordering, *ty), resolved)
            }
            Op::St { space, ordering, ty, .. } => {
                self.store(instruction, (*space, *ordering, *ty), resolved)
            }
            Op::Atom { op, result, space, ordering, ty, .. } => {
                let name = if *result { "atom" } else { "red" };
                if !num::atomic::supported(*op, *ty) {
                    return Err(not_executed(instruction, &format!("{name}.{op}.{ty}")));
                }
                let at = first_address(instruction, &resolved)?;
                let space = self.accessible(instruction, *space, &at)?;
                self.communicates |= space != Space::Shared;
                Ok(Action::Atomic(Box::new(AtomicStep {
                    op: *op,
                    space,
                    ordering: *ordering,
                    ty: *ty,
                    address: at.address,
                    operand: resolved.source(0),
                    new: if *op == Atomic::Cas { resolved.source(1) } else { Slots::new() },
                    dst: if *result { resolved.dst } else { Slots::new() },
                })))
            }
            Op::CpAsync { .. } => copy(instruction, &resolved),
            Op::CpAsyncCommit => Ok(Action::CopyCommit),
            Op::CpAsyncWait { all: true } => Ok(Action::CopyWait(None)),
            Op::CpAsyncWait { all: false } => literal(instruction, 0)
                .map(|keep| Action::CopyWait(Some(keep)))
                .ok_or_else(|| refuse(instruction, "the number of groups is not a literal")),
            Op::CpAsyncMbarrierArrive { noinc, .. } => {
                let address = first_address(instruction, &resolved)?.address;
                Ok(Action::CopyArrive { address, noinc: *noinc })
            }
            Op::Ldmatrix { .. } | Op::Stmatrix { .. } | Op::Movmatrix | Op::Mma { .. } => {
                matrix_action(instruction, resolved)
            }
            Op::Shfl { mode } => {
                let [value, lane, clamp] = [0, 1, 2].map(|number| resolved.source_or_sink(number));
                let (dst, found) = (resolved.first_dst(), resolved.second_dst());
                let action = WarpAction::Shuffle { mode: *mode, dst, found, value, lane, clamp };
                warp(instruction, &resolved, 3, action)
            }
            Op::Vote { mode } => {
                let (dst, predicate) = (resolved.first_dst(), resolved.source_or_sink(0));
                warp(instruction, &resolved, 1, WarpAction::Vote { mode: *mode, dst, predicate })
            }
            Op::Match { all, .. } => {
                let (dst, agree) = (resolved.first_dst(), resolved.second_dst());
                let value = resolved.source_or_sink(0);
                let action = WarpAction::Match { all: *all, dst, agree, value };
                warp(instruction, &resolved, 1, action)
            }
            Op::Redux { op, ty, abs, nan } => {
                let (op, ty, abs, nan) = (*op, *ty, *abs, *nan);
                if !matches!(ty, Scalar::U32 | Scalar::S32 | Scalar::B32 | Scalar::F32) {
                    return Err(not_executed(instruction, &format!("redux.{op}.{ty}")));
                }
                let (dst, value) = (resolved.first_dst(), resolved.source_or_sink(0));
                let action = WarpAction::Redux { op, ty, abs, nan, dst, value };
                warp(instruction, &resolved, 1, action)
            }
            Op::Elect => {
                let (dst, elected) = (resolved.first_dst(), resolved.second_dst());
                warp(instruction, &resolved, 0, WarpAction::Elect { dst, elected })
            }
            Op::BarWarp => warp(instruction, &resolved, 0, WarpAction::Sync),
            Op::Activemask => Ok(Action::Activemask { dst: resolved.first_dst() }),
            Op::Bar { kind, aligned } => barrier(instruction, *kind, *aligned, &resolved),
            Op::Fence { proxy: Some(_), .. } => Ok(Action::Nop),
            Op::Fence { ordering, proxy: None, .. } => Ok(Action::Fence { ordering: *ordering }),
            Op::Mbarrier { space: Space::SharedCluster, .. } => {
                Err(not_executed(instruction, "an mbarrier in .shared::cluster"))
            }
            Op::Mbarrier { op, ordering, space } => {
                let none = Address { base: Slot::Sink, offset: 0 };
                Ok(Action::Mbarrier(Box::new(MbarrierStep {
                    op: *op,
                    ordering: *ordering,
                    space: *space,
                    address: resolved.addresses.first().map_or(none, |at| at.address),
                    dst: resolved.first_dst(),
                    operands: resolved.src,
                })))
            }
            Op::Bra { uni } => Ok(Action::Branch { target: 0, uniform: *uni }),
            Op::BrxIdx { .. } => self.indexed(frame, instruction, &resolved),
            Op::Ret { .. } => Ok(Action::Return),
            Op::Exit => Ok(Action::Exit),
            Op::Trap | Op::Brkpt => Ok(Action::Trap),
            Op::Hint { .. } | Op::Nop { .. } | Op::Nanosleep | Op::Createpolicy { .. } => {
                Ok(Action::Nop)
            }
            Op::Call { .. } => Err(refuse(instruction, "a call here is not executed")),
            Op::Mapa { .. } => Err(not_executed(instruction, "mapa")),
            Op::Getctarank { .. } => Err(not_executed(instruction, "getctarank")),
            Op::BarCluster { .. } => Err(not_executed(instruction, "barrier.cluster")),
            Op::Opaque { name } => Err(not_executed(instruction, name)),
        }
    }

    fn indexed(
        &mut self,
        frame: &Frame<'m>,
        instruction: &Instruction,
        resolved: &Resolved,
    ) -> Result<Action, DecodeError> {
        let table = instruction.operands.iter().find_map(|operand| {
            let Operand::Table(id) = operand else { return None };
            frame.body.jump_tables.get(id.index())
        });
        let (Some(table), Some(index)) = (table, resolved.one(0)) else {
            return Err(refuse(instruction, "brx.idx needs an index and a list of targets"));
        };
        // Label numbers for now; they become steps when the function is laid out.
        let targets = table.targets.iter().map(|label| label.0).collect();
        Ok(Action::BranchIndexed { index, targets })
    }

    fn load(
        &mut self,
        instruction: &Instruction,
        (space, ordering, ty): (Space, Ordering, Scalar),
        resolved: Resolved,
    ) -> Result<Action, DecodeError> {
        let at = first_address(instruction, &resolved)?;
        if let (Space::Param, Some(Place::Param(_))) = (space, at.place) {
            let offset = u32::try_from(at.address.offset)
                .map_err(|_| refuse(instruction, "the offset is outside the parameters"))?;
            return Ok(Action::Param { offset, ty, dst: resolved.dst });
        }
        let space = self.accessible(instruction, space, &at)?;
        self.note_sync(space, ordering);
        let (address, data, declared) = (at.address, resolved.dst, resolved.declared);
        Ok(Action::Load(Transfer { space, ordering, ty, address, data, declared }))
    }

    fn store(
        &mut self,
        instruction: &Instruction,
        (space, ordering, ty): (Space, Ordering, Scalar),
        resolved: Resolved,
    ) -> Result<Action, DecodeError> {
        let at = first_address(instruction, &resolved)?;
        let space = self.accessible(instruction, space, &at)?;
        self.note_sync(space, ordering);
        let (address, data) = (at.address, resolved.source(0));
        Ok(Action::Store(Transfer { space, ordering, ty, address, data, declared: 0 }))
    }

    fn accessible(
        &self,
        instruction: &Instruction,
        space: Space,
        at: &ResolvedAddress,
    ) -> Result<Space, DecodeError> {
        match self.space(space, at) {
            Space::SharedCluster => Err(not_executed(instruction, "an access to .shared::cluster")),
            Space::Param => Err(not_executed(instruction, "a computed address in .param")),
            space @ (Space::Generic
            | Space::Global
            | Space::Shared
            | Space::Local
            | Space::Const) => Ok(space),
        }
    }

    /// Ordered accesses outside shared memory let CTAs speak to each other.
    fn note_sync(&mut self, space: Space, ordering: Ordering) {
        let ordered = !matches!(ordering, Ordering::Weak);
        self.communicates |= ordered && matches!(space, Space::Global | Space::Generic);
    }
}

fn first_address(
    instruction: &Instruction,
    resolved: &Resolved,
) -> Result<ResolvedAddress, DecodeError> {
    let first = resolved.addresses.first().copied();
    first.ok_or_else(|| refuse(instruction, "there is no address"))
}

fn barrier(
    instruction: &Instruction,
    kind: Barrier,
    aligned: bool,
    resolved: &Resolved,
) -> Result<Action, DecodeError> {
    let of = |wanted: fn(&Slot) -> bool| resolved.src.iter().copied().filter(wanted);
    let mut numbers = of(|slot| matches!(slot, Slot::Word(_)));
    let Some(id) = numbers.next() else {
        return Err(refuse(instruction, "there is no barrier number"));
    };
    Ok(Action::Barrier(Box::new(BarrierStep {
        kind,
        aligned,
        id,
        threads: numbers.next(),
        predicate: of(|slot| matches!(slot, Slot::Flag(_))).next(),
        dst: resolved.dst.first().copied(),
    })))
}

fn literal(instruction: &Instruction, position: usize) -> Option<u32> {
    if let Some(Operand::Int(value)) = instruction.operands.get(position) {
        u32::try_from(*value).ok()
    } else {
        None
    }
}

/// Reading a clock: the steps its CTA has run.
fn clock_action(
    instruction: &Instruction,
    clock: Special,
    resolved: &Resolved,
) -> Result<Action, DecodeError> {
    if !matches!(instruction.op, Op::Mov { .. }) || resolved.dst.len() != 1 {
        return Err(refuse(instruction, "a clock is read with mov"));
    }
    let high = matches!(clock, Special::ClockHi | Special::GlobalTimerHi);
    Ok(Action::Clock { dst: resolved.first_dst(), high })
}

fn copy(instruction: &Instruction, resolved: &Resolved) -> Result<Action, DecodeError> {
    let (addresses, size) = (resolved.addresses.as_slice(), literal(instruction, 2));
    let ([dst, src], Some(bytes)) = (addresses, size) else {
        return Err(refuse(instruction, "cp.async needs two addresses and a literal size"));
    };
    if !matches!(bytes, 4 | 8 | 16) {
        return Err(refuse(instruction, format!("cp.async of {bytes} bytes")));
    }
    // After the size: a source size, a predicate, a cache policy, each optional.
    let rest = resolved.src.get(1..).unwrap_or(&[]);
    let of = |kind: fn(&Slot) -> bool| rest.iter().copied().find(kind);
    Ok(Action::Copy(Box::new(CopyStep {
        dst: dst.address,
        src: src.address,
        space: Space::Global,
        bytes,
        source_bytes: of(|slot| matches!(slot, Slot::Word(_))),
        ignore: of(|slot| matches!(slot, Slot::Flag(_))),
    })))
}

fn matrix_action(instruction: &Instruction, resolved: Resolved) -> Result<Action, DecodeError> {
    let address = resolved.addresses.first().map(|at| at.address);
    let eight = |shape: &str, ty: &str| shape == "m8n8" && ty == "b16";
    let action = match (&instruction.op, address) {
        (Op::Ldmatrix { trans, shape, ty, .. }, Some(address)) if eight(shape, ty) => {
            WarpAction::LoadMatrix { address, trans: *trans, dst: resolved.dst }
        }
        (Op::Stmatrix { trans, shape, ty, .. }, Some(address)) if eight(shape, ty) => {
            WarpAction::StoreMatrix { address, trans: *trans, src: resolved.source(0) }
        }
        (Op::Ldmatrix { shape, ty, .. }, _) => {
            return Err(not_executed(instruction, &format!("ldmatrix.{shape}.{ty}")));
        }
        (Op::Stmatrix { shape, ty, .. }, _) => {
            return Err(not_executed(instruction, &format!("stmatrix.{shape}.{ty}")));
        }
        (Op::Movmatrix, _) => WarpAction::MoveMatrix {
            dst: resolved.first_dst(),
            src: resolved.one(0).unwrap_or(Slot::Sink),
        },
        (Op::Mma { m, n, k, d, a, b, c, satfinite }, _) => {
            let types = MmaTypes { d: *d, a: *a, b: *b, c: *c };
            let (m, n, k) = (*m, *n, *k);
            if !crate::exec::mma::supported(m, n, k, types) {
                let name = format!("mma.m{m}n{n}k{k}.{d}.{a}.{b}.{c}");
                return Err(not_executed(instruction, &name));
            }
            WarpAction::Mma(Box::new(MmaStep {
                m,
                n,
                k,
                types,
                satfinite: *satfinite,
                a: resolved.source(0),
                b: resolved.source(1),
                c: resolved.source(2),
                d: resolved.dst,
            }))
        }
        _ => return Err(refuse(instruction, "there is no address")),
    };
    Ok(Action::Warp(Box::new(WarpStep { members: Members::Live, action })))
}

/// A warp-wide step; `members` is the number of the source operand that names them.
fn warp(
    instruction: &Instruction,
    resolved: &Resolved,
    members: usize,
    action: WarpAction,
) -> Result<Action, DecodeError> {
    let missing = || refuse(instruction, "there is no member mask");
    let members = Members::Operand(resolved.one(members).ok_or_else(missing)?);
    Ok(Action::Warp(Box::new(WarpStep { members, action })))
}

fn not_executed(instruction: &Instruction, name: &str) -> DecodeError {
    refuse(instruction, format!("`{name}` is not executed"))
}
