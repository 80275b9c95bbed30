//! Instructions of a whole warp: shuffles, votes, matches, reductions.
//!
//! # Idea
//! Such an instruction names its members and runs when all of them that have not exited are there.
//! Members that never come are a finding; then those present go on without them.
//! # Source
//! PTX ISA, `shfl.sync`, `vote.sync`, `match.sync`, `redux.sync`, `elect.sync`.

use super::{
    cta::Cta,
    program::{Members, WarpAction, WarpStep},
    registers::{LANES, Mask, Registers, Slot, lanes},
    step::{At, Flow},
    warp::State,
};
use crate::{
    ir::{FloatMode, Redux, Scalar, Shuffle, Vote},
    num::float::{F32, Float},
    report::Finding,
};

impl Cta<'_> {
    /// Runs a warp-wide step when its members are there; `forced`: with whoever is.
    pub fn warp_step(&mut self, at: At, step: &WarpStep, forced: bool) -> Flow {
        if at.active == 0 {
            return Flow::Next;
        }
        let live = self.warps[at.warp].live();
        let members = match step.members {
            Members::Live => live,
            Members::Operand(slot) => {
                let first = at.active.trailing_zeros() as usize;
                let members = self.warps[at.warp].registers.lane(slot, first) as Mask;
                self.check_members(at, slot, members);
                members
            }
        };
        let required = members & live;
        if required & !at.active != 0 {
            if !forced {
                return self.wait(at, State::Members);
            }
            let site = self.site(at.warp, at.active, at.pc);
            let other = self.other_site(at);
            let present = at.active;
            self.find(Finding::MembersDisagree { members, present, at: site, other });
        }
        if self.symbols.is_some() {
            self.trace_warp(at, &step.action);
        }
        self.warp_action(at, &step.action);
        Flow::Next
    }

    /// All lanes here name the same members, and are members.
    fn check_members(&mut self, at: At, slot: Slot, members: Mask) {
        let registers = &self.warps[at.warp].registers;
        let differ = lanes(at.active).find(|&lane| registers.lane(slot, lane) as Mask != members);
        let outside = (at.active & !members != 0).then(|| (at.active & !members).trailing_zeros());
        let Some(lane) = differ.map(|lane| lane as u32).or(outside) else { return };
        let site = self.site(at.warp, at.active, at.pc);
        let other = Some(self.site(at.warp, 1 << lane, at.pc));
        let present = at.active;
        self.find(Finding::MembersDisagree { members, present, at: site, other });
    }

    fn warp_action(&mut self, at: At, action: &WarpAction) {
        match action {
            WarpAction::Shuffle { mode, dst, found, value, lane, clamp } => {
                self.shuffle(at, *mode, [*dst, *found], *value, [*lane, *clamp]);
            }
            WarpAction::Vote { mode, dst, predicate } => self.vote(at, *mode, *dst, *predicate),
            WarpAction::Match { all, dst, agree, value } => {
                self.matching(at, *all, [*dst, *agree], *value);
            }
            WarpAction::Redux { op, ty, abs, nan, dst, value } => {
                let mode = FloatMode { abs: *abs, nan: *nan, ..FloatMode::default() };
                self.redux(at, *op, *ty, mode, [*dst, *value]);
            }
            WarpAction::Elect { dst, elected } => {
                let leader = at.active.trailing_zeros();
                let registers = &mut self.warps[at.warp].registers;
                for lane in lanes(at.active) {
                    registers.set_lane(*dst, lane, u64::from(leader));
                    registers.set_lane(*elected, lane, u64::from(lane as u32 == leader));
                }
            }
            WarpAction::Sync => self.memory.warp_sync(at.warp as u32, at.active),
            WarpAction::LoadMatrix { address, trans, dst } => {
                self.load_matrix(at, *address, *trans, dst);
            }
            WarpAction::StoreMatrix { address, trans, src } => {
                self.store_matrix(at, *address, *trans, src);
            }
            WarpAction::MoveMatrix { dst, src } => self.move_matrix(at, *dst, *src),
            WarpAction::Mma(step) => self.mma(at, step),
        }
    }

    fn shuffle(
        &mut self,
        at: At,
        mode: Shuffle,
        [dst, found]: [Slot; 2],
        value: Slot,
        [lane, clamp]: [Slot; 2],
    ) {
        let registers = &mut self.warps[at.warp].registers;
        let row = registers.words[value.row()];
        let (b, c) = (registers.words[lane.row()], registers.words[clamp.row()]);
        let (mut result, mut in_range, mut absent) = (row, 0, None);
        for own in lanes(at.active) {
            let (source, inside) = source_lane(mode, own as i32, b[own], c[own]);
            in_range |= Mask::from(inside) << own;
            result[own] = row[source];
            if at.active >> source & 1 == 0 {
                absent = absent.or(Some((own, source)));
            }
        }
        if dst != Slot::Sink {
            registers.set_word(dst.row(), &result, at.active);
        }
        if let Slot::Flag(flag) = found {
            registers.set_flag(flag as usize, in_range, at.active);
        }
        if let Some((own, source)) = absent {
            let site = self.site(at.warp, 1 << own, at.pc);
            self.find(Finding::LaneAbsent { lane: source as u32, at: site });
        }
    }

    fn vote(&mut self, at: At, mode: Vote, dst: Slot, predicate: Slot) {
        let registers = &mut self.warps[at.warp].registers;
        let held = registers.flags[predicate.row()] & at.active;
        let truth = match mode {
            Vote::All => held == at.active,
            Vote::Any => held != 0,
            Vote::Uni => held == at.active || held == 0,
            Vote::Ballot => {
                registers.set_word(dst.row(), &[held; LANES], at.active);
                return;
            }
        };
        registers.set_flag(dst.row(), if truth { Mask::MAX } else { 0 }, at.active);
    }

    fn matching(&mut self, at: At, all: bool, [dst, agree]: [Slot; 2], value: Slot) {
        let registers = &mut self.warps[at.warp].registers;
        let values: [u64; LANES] = std::array::from_fn(|lane| registers.lane(value, lane));
        let equal = |lane: usize| {
            lanes(at.active)
                .filter(|&other| values[other] == values[lane])
                .fold(0, |mask: Mask, other| mask | 1 << other)
        };
        for lane in lanes(at.active) {
            let mask = equal(lane);
            let everyone = mask == at.active;
            let mask = if all && !everyone { 0 } else { mask };
            registers.set_lane(dst, lane, u64::from(mask));
            registers.set_lane(agree, lane, u64::from(everyone));
        }
    }

    fn redux(&mut self, at: At, op: Redux, ty: Scalar, mode: FloatMode, [dst, value]: [Slot; 2]) {
        let registers = &mut self.warps[at.warp].registers;
        let row = registers.words[value.row()];
        let values = lanes(at.active).map(|lane| row[lane]);
        let combine = |a: u32, b: u32| match (op, ty) {
            (Redux::Add, _) => a.wrapping_add(b),
            (Redux::And, _) => a & b,
            (Redux::Or, _) => a | b,
            (Redux::Xor, _) => a ^ b,
            (Redux::Min, Scalar::S32) => (a as i32).min(b as i32) as u32,
            (Redux::Max, Scalar::S32) => (a as i32).max(b as i32) as u32,
            (Redux::Min, Scalar::F32) => F32::min(a, b, &mode),
            (Redux::Max, Scalar::F32) => F32::max(a, b, &mode),
            (Redux::Min, _) => a.min(b),
            (Redux::Max, _) => a.max(b),
        };
        // A single member passes through the combine once, so that `.abs` and NaN rules hold.
        let folded = values.reduce(combine).unwrap_or(0);
        let result = if ty == Scalar::F32 { combine(folded, folded) } else { folded };
        registers.set_word(dst.row(), &[result; LANES], at.active);
    }
}

/// The lane a shuffle reads, and whether it is in range; out of range, a lane reads itself.
fn source_lane(mode: Shuffle, lane: i32, b: u32, c: u32) -> (usize, bool) {
    let (b, clamp, segment) = ((b & 31) as i32, (c & 31) as i32, (c >> 8 & 31) as i32);
    let highest = (lane & segment) | (clamp & !segment);
    let lowest = lane & segment;
    let (source, inside) = match mode {
        Shuffle::Up => (lane - b, lane - b >= highest),
        Shuffle::Down => (lane + b, lane + b <= highest),
        Shuffle::Bfly => (lane ^ b, lane ^ b <= highest),
        Shuffle::Idx => {
            let source = lowest | (b & !segment);
            (source, source <= highest)
        }
    };
    if inside { ((source & 31) as usize, true) } else { (lane as usize, false) }
}

/// The lane that each lane of `mask` reads.
pub(crate) fn source_lanes(
    registers: &Registers,
    mode: Shuffle,
    [lane, clamp]: [Slot; 2],
    mask: Mask,
) -> [u8; LANES] {
    let (b, c) = (registers.words[lane.row()], registers.words[clamp.row()]);
    let mut from = [0; LANES];
    for own in lanes(mask) {
        from[own] = source_lane(mode, own as i32, b[own], c[own]).0 as u8;
    }
    from
}
