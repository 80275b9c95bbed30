//! A warp: threads that run together while they agree, and apart when they do not.
//!
//! # Idea
//! A [`Group`] is a set of lanes with one program counter and one call stack. A branch splits it,
//! meeting at the same place merges it again. The group that is furthest back runs first, so that
//! lanes meet where control flow joins; but one that used up its turn comes after all that used up
//! fewer, so that every thread goes on (independent thread scheduling).
//! # Invariants
//! - **W1** The masks of the groups are disjoint and, with `exited`, cover the warp's lanes.
//! - **W2** Two groups that are ready, with one pc and one stack, are one group.

use smallvec::SmallVec;

use super::registers::{Mask, Registers};

/// What a group waits for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    Ready,
    /// For the other members of a warp-wide instruction at `pc`.
    Members,
    /// At barrier `id` of the CTA; `pc` is the barrier's.
    Barrier(u32),
}

/// Lanes that run together.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub pc: u32,
    pub mask: Mask,
    pub state: State,
    /// Where to return to, innermost last.
    pub stack: SmallVec<[u32; 2]>,
    /// Turns used up since it last waited.
    turns: u32,
}

#[derive(Clone, Debug)]
pub(crate) struct Warp {
    pub registers: Registers,
    pub groups: Vec<Group>,
    /// The lanes that exist: fewer than 32 in the last warp of an odd CTA.
    pub lanes: Mask,
    pub exited: Mask,
}

impl Warp {
    pub fn new(registers: Registers, lanes: Mask) -> Self {
        let mut warp = Self { registers, groups: Vec::new(), lanes, exited: 0 };
        warp.restart(lanes);
        warp
    }

    /// Puts all lanes at the program's start; registers are the caller's.
    pub fn restart(&mut self, lanes: Mask) {
        self.lanes = lanes;
        self.exited = 0;
        self.groups.clear();
        let stack = SmallVec::new();
        self.groups.push(Group { pc: 0, mask: lanes, state: State::Ready, stack, turns: 0 });
    }

    /// Lanes that have not exited.
    pub fn live(&self) -> Mask {
        self.lanes & !self.exited
    }

    pub fn finished(&self) -> bool {
        self.groups.is_empty()
    }

    /// Merges groups that met (W2), and chooses the one to run.
    pub fn choose(&mut self) -> Option<usize> {
        if let [only] = self.groups.as_slice() {
            return (only.state == State::Ready).then_some(0);
        }
        self.merge();
        let groups = self.groups.iter().enumerate();
        let ready = groups.filter(|(_, group)| group.state == State::Ready);
        ready.min_by_key(|(_, group)| (group.turns, group.pc, group.mask)).map(|(at, _)| at)
    }

    /// The group of a lane used up a turn.
    pub fn tire(&mut self, lane: u32) {
        if let Some(group) = self.groups.iter_mut().find(|group| group.mask >> lane & 1 != 0) {
            group.turns = group.turns.saturating_add(1);
        }
    }

    /// Puts a group to sleep at a step.
    pub fn wait(&mut self, group: usize, pc: u32, state: State) {
        let group = &mut self.groups[group];
        (group.pc, group.state, group.turns) = (pc, state, 0);
    }

    fn merge(&mut self) {
        let mut at = 0;
        while at < self.groups.len() {
            let mut other = at + 1;
            while other < self.groups.len() {
                let (a, b) = (&self.groups[at], &self.groups[other]);
                let waits =
                    matches!(a.state, State::Barrier(_)) || matches!(b.state, State::Barrier(_));
                if a.pc == b.pc && a.stack == b.stack && !waits {
                    let gone = self.groups.swap_remove(other);
                    let kept = &mut self.groups[at];
                    kept.mask |= gone.mask;
                    kept.turns = kept.turns.max(gone.turns);
                    // Whoever waits for members asks again, now with more of them.
                    kept.state = State::Ready;
                } else {
                    other += 1;
                }
            }
            at += 1;
        }
    }

    /// Where a group that runs straight on from `pc` may meet another.
    pub fn meeting_pc(&self, running: usize, pc: u32) -> u32 {
        let others = self.groups.iter().enumerate().filter(|(at, group)| {
            *at != running && group.pc > pc && !matches!(group.state, State::Barrier(_))
        });
        others.map(|(_, group)| group.pc).min().unwrap_or(u32::MAX)
    }

    /// Lanes of `mask` leave the program; a group without lanes is gone.
    pub fn exit(&mut self, group: usize, mask: Mask) {
        self.exited |= mask;
        self.groups[group].mask &= !mask;
        if self.groups[group].mask == 0 {
            self.groups.swap_remove(group);
        }
        // Members that waited for the exited lanes alone may go on.
        for group in &mut self.groups {
            if group.state == State::Members {
                group.state = State::Ready;
            }
        }
    }

    /// Splits `mask` off a group and sends it to `pc`; the rest stays.
    pub fn split(&mut self, group: usize, mask: Mask, pc: u32) {
        let from = &mut self.groups[group];
        from.mask &= !mask;
        let (stack, turns) = (from.stack.clone(), from.turns);
        self.groups.push(Group { pc, mask, state: State::Ready, stack, turns });
    }
}
