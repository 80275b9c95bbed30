//! Running a group of lanes from step to step.
//!
//! # Idea
//! Lane instructions run in a tight loop; everything that has to do with others (memory, other
//! lanes, other warps, control) is performed one step at a time and says how control goes on.
//! # Invariants
//! - **X1** A step acts on the lanes of its group whose guard holds, and on no others.

use super::{
    cta::Cta,
    program::{Action, Address, ExternalCall, Slots, StepGuard},
    registers::{LANES, Mask, Registers, Slot, lanes},
    warp::State,
};
use crate::{
    ir::{Class, Scalar},
    report::Finding,
};

/// Where control goes after a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Flow {
    Next,
    Jump(u32),
    /// The group waits, split or is gone; its own `pc` is right.
    Left,
}

/// A step as it is being performed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct At {
    pub warp: usize,
    pub group: usize,
    pub pc: u32,
    /// All lanes of the group.
    pub mask: Mask,
    /// Those whose guard holds.
    pub active: Mask,
}

impl Cta<'_> {
    /// Runs a warp for at most `quantum` steps, or until all its groups wait.
    pub fn run_warp(&mut self, warp: usize, quantum: u64) {
        let mut left = quantum;
        while left > 0 {
            let Some(group) = self.warps[warp].choose() else { return };
            let lane = self.warps[warp].groups[group].mask.trailing_zeros();
            left = self.run_group(warp, group, left);
            if left == 0 {
                self.warps[warp].tire(lane);
            }
        }
    }

    /// Runs a group until it waits, meets another, or `left` steps are done; what is left of them.
    fn run_group(&mut self, warp: usize, group: usize, mut left: u64) -> u64 {
        let program = self.program;
        let (mut pc, mask) = {
            let group = &self.warps[warp].groups[group];
            (group.pc, group.mask)
        };
        let alone = self.warps[warp].groups.len() == 1;
        let meeting = self.warps[warp].meeting_pc(group, pc);
        loop {
            if self.symbols.is_none() {
                self.run_lanes(warp, mask, &mut pc, meeting, &mut left);
            }
            if left == 0 || pc == meeting {
                self.warps[warp].groups[group].pc = pc;
                return left;
            }
            let step = &program.steps[pc as usize];
            let active = mask & holds(step.guard, &self.warps[warp].registers);
            left -= self.charge(&step.action).min(left);
            self.counts.warp_steps += 1;
            self.counts.thread_steps += u64::from(active.count_ones());
            let at = At { warp, group, pc, mask, active };
            match self.perform(at, &step.action) {
                Flow::Next => pc += 1,
                Flow::Jump(target) => {
                    pc = target;
                    if !alone {
                        self.warps[warp].groups[group].pc = pc;
                        return left;
                    }
                }
                Flow::Left => return left,
            }
        }
    }

    /// What a step costs of its turn.
    fn charge(&mut self, action: &Action) -> u64 {
        let price = self.context.schedule.price(action);
        self.surcharge += price - 1;
        price
    }

    /// The tight loop over lane instructions.
    fn run_lanes(&mut self, warp: usize, mask: Mask, pc: &mut u32, meeting: u32, left: &mut u64) {
        let steps = self.program.steps.as_slice();
        let registers = &mut self.warps[warp].registers;
        let (mut at, mut rest, mut threads) = (*pc, *left, 0);
        while rest > 0 && at != meeting {
            let step = &steps[at as usize];
            let Action::Lane(lane) = &step.action else { break };
            let active = mask & holds(step.guard, registers);
            if active != 0 {
                (lane.run)(registers, &lane.operands, active);
                threads += u64::from(active.count_ones());
            }
            at += 1;
            rest -= 1;
        }
        self.counts.warp_steps += *left - rest;
        self.counts.thread_steps += threads;
        (*pc, *left) = (at, rest);
    }

    fn perform(&mut self, at: At, action: &Action) -> Flow {
        if self.symbols.is_some() {
            self.trace(at, action);
        }
        match action {
            Action::Branch { target, uniform } => return self.branch(at, *target, *uniform),
            Action::BranchIndexed { index, targets } => {
                return self.branch_indexed(at, *index, targets);
            }
            Action::Call { target } => return self.call(at, *target),
            Action::Return => return self.leave(at, false),
            Action::Exit => return self.leave(at, true),
            Action::Warp(step) => return self.warp_step(at, step, false),
            Action::Barrier(step) => return self.barrier_step(at, step, false),
            _ if at.active == 0 => return Flow::Next,
            Action::Lane(lane) => {
                (lane.run)(&mut self.warps[at.warp].registers, &lane.operands, at.active);
            }
            Action::Param { offset, ty, dst } => self.load_param(at, *offset, *ty, dst),
            Action::Load(transfer) => self.load(at, transfer),
            Action::Store(transfer) => self.store(at, transfer),
            Action::Atomic(step) => self.atomic(at, step),
            Action::Copy(step) => self.copy(at, step),
            Action::CopyCommit => self.memory.cp_async_commit(at.warp as u32, at.active),
            Action::CopyWait(keep) => self.copy_wait(at, *keep),
            Action::CopyArrive { address, noinc } => self.copy_arrive(at, address, *noinc),
            Action::Fence { ordering } => {
                self.memory.fence(at.warp as u32, at.active, *ordering);
            }
            Action::Mbarrier(step) => self.mbarrier(at, step),
            Action::Activemask { dst } => {
                let row = [at.active; LANES];
                self.warps[at.warp].registers.set_word(dst.row(), &row, at.active);
            }
            Action::Clock { dst, high } => {
                let now = self.clock() >> if *high { 32 } else { 0 };
                let registers = &mut self.warps[at.warp].registers;
                for lane in lanes(at.active) {
                    registers.set_lane(*dst, lane, now);
                }
            }
            Action::Trap => {
                let site = self.site(at.warp, at.active, at.pc);
                self.find(Finding::Trap { at: site, message: None });
                self.stop();
                return self.leave(at, true);
            }
            Action::External(call) => return self.external(at, call),
            Action::Nop => {}
        }
        Flow::Next
    }

    fn branch(&mut self, at: At, target: u32, uniform: bool) -> Flow {
        if at.active == at.mask {
            return Flow::Jump(target);
        }
        if at.active == 0 {
            return Flow::Next;
        }
        if uniform {
            let message = "a branch marked uniform diverges".to_owned();
            let site = self.site(at.warp, at.active, at.pc);
            self.find(Finding::BadOperand { at: site, message });
        }
        let warp = &mut self.warps[at.warp];
        warp.split(at.group, at.active, target);
        warp.groups[at.group].pc = at.pc + 1;
        Flow::Left
    }

    fn branch_indexed(&mut self, at: At, index: Slot, targets: &[u32]) -> Flow {
        if at.active == 0 {
            return Flow::Next;
        }
        let lane = at.active.trailing_zeros() as usize;
        let registers = &self.warps[at.warp].registers;
        let chosen = registers.lane(index, lane);
        let same: Mask = lanes(at.active)
            .filter(|&lane| registers.lane(index, lane) == chosen)
            .fold(0, |mask, lane| mask | 1 << lane);
        let target = usize::try_from(chosen).ok().and_then(|chosen| targets.get(chosen)).copied();
        let Some(target) = target else {
            let message = format!("branch index {chosen} of {} targets", targets.len());
            let site = self.site(at.warp, same, at.pc);
            self.find(Finding::BadOperand { at: site, message });
            self.stop();
            return self.leave(At { active: same, ..at }, true);
        };
        if same == at.mask {
            return Flow::Jump(target);
        }
        // The others come back to this instruction; those whose guard is false go on.
        let warp = &mut self.warps[at.warp];
        warp.split(at.group, same, target);
        let guarded_off = at.mask & !at.active;
        if guarded_off != 0 && guarded_off != warp.groups[at.group].mask {
            warp.split(at.group, guarded_off, at.pc + 1);
        }
        warp.groups[at.group].pc = if at.active == same { at.pc + 1 } else { at.pc };
        Flow::Left
    }

    fn call(&mut self, at: At, target: u32) -> Flow {
        if at.active == 0 {
            return Flow::Next;
        }
        if at.active != at.mask {
            return self.part(at);
        }
        self.warps[at.warp].groups[at.group].stack.push(at.pc + 1);
        Flow::Jump(target)
    }

    /// `ret` and `exit`.
    fn leave(&mut self, at: At, exit: bool) -> Flow {
        if at.active == 0 {
            return Flow::Next;
        }
        if !exit && !self.warps[at.warp].groups[at.group].stack.is_empty() {
            if at.active != at.mask {
                return self.part(at);
            }
            let back = self.warps[at.warp].groups[at.group].stack.pop();
            return back.map_or(Flow::Next, Flow::Jump);
        }
        self.memory.finish(at.warp as u32, at.active);
        let warp = &mut self.warps[at.warp];
        warp.groups[at.group].pc = at.pc + 1;
        warp.exit(at.group, at.active);
        Flow::Left
    }

    /// Lanes whose guard is false go on alone, so that the others run the step as a whole group.
    pub fn part(&mut self, at: At) -> Flow {
        let warp = &mut self.warps[at.warp];
        warp.split(at.group, at.mask & !at.active, at.pc + 1);
        warp.groups[at.group].pc = at.pc;
        Flow::Left
    }

    fn load_param(&mut self, at: At, offset: u32, ty: Scalar, dst: &Slots) {
        let bytes = ty.bytes() as usize;
        let block = self.context.request.params.as_slice();
        let registers = &mut self.warps[at.warp].registers;
        for (number, slot) in dst.iter().enumerate() {
            let start = offset as usize + number * bytes;
            let mut raw = [0; 8];
            if let Some(found) = block.get(start..start + bytes.min(8)) {
                raw[..found.len()].copy_from_slice(found);
            }
            let value = extend(u64::from_le_bytes(raw), ty, 64);
            for lane in lanes(at.active) {
                registers.set_lane(*slot, lane, value);
            }
        }
    }

    /// The addresses of `[base + offset]`, lane by lane.
    pub fn addresses(&self, warp: usize, address: Address) -> [u64; LANES] {
        let registers = &self.warps[warp].registers;
        match address.base {
            Slot::Word(row) => {
                let offset = address.offset as u32;
                registers.words[row as usize].map(|base| u64::from(base.wrapping_add(offset)))
            }
            Slot::Wide(row) => {
                let offset = address.offset as u64;
                registers.wides[row as usize].map(|base| base.wrapping_add(offset))
            }
            Slot::Flag(_) | Slot::Quad(_) | Slot::Sink => [address.offset as u64; LANES],
        }
    }

    fn external(&mut self, at: At, call: &ExternalCall) -> Flow {
        match *call {
            ExternalCall::Print { format, arguments, result } => {
                for lane in lanes(at.active) {
                    let line = self.format(at.warp, lane, format, arguments);
                    self.printed.push(line);
                    if let Some(result) = result {
                        self.memory.local_write(at.warp as u32, lane, result, &0u32.to_le_bytes());
                    }
                }
                Flow::Next
            }
            ExternalCall::AssertFail { message, file, line, function } => {
                let lane = at.active.trailing_zeros() as usize;
                let message = self.assertion(at.warp, lane, [message, file, line, function]);
                let site = self.site(at.warp, at.active, at.pc);
                self.find(Finding::Trap { at: site, message: Some(message) });
                self.stop();
                self.leave(at, true)
            }
        }
    }

    /// Lets a group that waits for members go on without them.
    pub fn force_group(&mut self, warp: usize, group: usize) {
        let program = self.program;
        let (pc, mask) = {
            let group = &mut self.warps[warp].groups[group];
            group.state = State::Ready;
            (group.pc, group.mask)
        };
        let step = &program.steps[pc as usize];
        let active = mask & holds(step.guard, &self.warps[warp].registers);
        let at = At { warp, group, pc, mask, active };
        let flow = if let Action::Warp(step) = &step.action {
            self.warp_step(at, step, true)
        } else if let Action::Barrier(step) = &step.action {
            self.barrier_step(at, step, true)
        } else {
            Flow::Next
        };
        match flow {
            Flow::Next => self.warps[warp].groups[group].pc = pc + 1,
            Flow::Jump(target) => self.warps[warp].groups[group].pc = target,
            Flow::Left => {}
        }
    }
}

/// The lanes whose guard holds.
#[inline(always)]
fn holds(guard: Option<StepGuard>, registers: &Registers) -> Mask {
    guard.map_or(Mask::MAX, |guard| {
        let flag = registers.flags[guard.flag as usize];
        if guard.negated { !flag } else { flag }
    })
}

/// A value of `ty` in a register of `bits`: signed types fill it with the sign.
pub(crate) fn extend(value: u64, ty: Scalar, bits: u32) -> u64 {
    let own = ty.bits().min(64);
    if ty.class() != Class::Signed || own >= bits {
        return value;
    }
    let wide = ((value << (64 - own)) as i64 >> (64 - own)) as u64;
    if bits < 64 { wide & ((1 << bits) - 1) } else { wide }
}
