//! Barriers of a CTA, matched by generation.
//!
//! # Idea
//! A barrier counts threads; when the expected number has arrived, the generation is complete: all
//! who wait go on, and the memory joins what each knew. A barrier marked aligned wants all live
//! lanes of a warp together, and waits for them like any warp-wide instruction.
//! # Source
//! PTX ISA, `bar`, `barrier`; Lustig et al., ASPLOS 2019, for the order that a barrier makes.

use smallvec::SmallVec;

use super::{
    cta::Cta,
    program::BarrierStep,
    registers::{LANES, Mask, Slot, lanes},
    step::{At, Flow},
    warp::State,
};
use crate::{
    ir::{Barrier, Logic},
    report::{Finding, Site},
};

/// Barriers a CTA has.
const BARRIERS: usize = 16;

/// Threads that arrived at a barrier's current generation.
#[derive(Clone, Debug)]
struct Arrival {
    warp: usize,
    mask: Mask,
    pc: u32,
    /// `bar.arrive` does not wait.
    waits: bool,
    predicate: Mask,
    result: Option<(Barrier, Slot)>,
}

#[derive(Clone, Debug, Default)]
struct Generation {
    expected: u32,
    arrivals: SmallVec<[Arrival; 4]>,
}

/// The barriers of one CTA.
#[derive(Clone, Debug)]
pub(crate) struct Barriers(Box<[Generation; BARRIERS]>);

impl Default for Barriers {
    fn default() -> Self {
        Self(Box::new(std::array::from_fn(|_| Generation::default())))
    }
}

impl Generation {
    fn arrived(&self) -> u32 {
        self.arrivals.iter().map(|arrival| arrival.mask.count_ones()).sum()
    }
}

impl Cta<'_> {
    /// `bar.sync` and its kin. `forced`: go on although lanes of the warp are missing.
    pub fn barrier_step(&mut self, at: At, step: &BarrierStep, forced: bool) -> Flow {
        if at.active == 0 {
            return Flow::Next;
        }
        let live = self.warps[at.warp].live();
        if step.aligned && live & !at.active != 0 {
            if !forced {
                return self.wait(at, State::Members);
            }
            let here = self.site(at.warp, at.active, at.pc);
            let other = self.other_site(at);
            self.find(Finding::BarrierDiverged { at: here, other });
        }
        if at.active != at.mask {
            return self.part(at);
        }
        let site = self.site(at.warp, at.active, at.pc);
        let id = self.uniform(at.warp, step.id, at.active);
        let all = self.context.threads();
        let threads = match step.threads {
            None => Some(all),
            Some(slot) => self.uniform(at.warp, slot, at.active),
        };
        let (Some(id), Some(expected)) = (id, threads) else {
            return self.bad_barrier(at, "barrier number or thread count differ between lanes");
        };
        if id as usize >= BARRIERS {
            return self.bad_barrier(at, &format!("barrier {id} of {BARRIERS}"));
        }
        if expected == 0 || expected % LANES as u32 != 0 && expected != all {
            return self.bad_barrier(at, &format!("a barrier for {expected} threads"));
        }
        let generation = &mut self.barriers.0[id as usize];
        if generation.arrivals.is_empty() {
            generation.expected = expected;
        } else if generation.expected != expected {
            let message = format!(
                "barrier {id} is for {} threads, and for {expected} here",
                generation.expected
            );
            self.find(Finding::BadOperand { at: site, message });
        }
        self.arrive(at, step, id)
    }

    fn arrive(&mut self, at: At, step: &BarrierStep, id: u32) -> Flow {
        let waits = step.kind != Barrier::Arrive;
        let predicate =
            step.predicate.map_or(0, |slot| self.warps[at.warp].registers.flags[slot.row()]);
        let result = step.dst.map(|slot| (step.kind, slot));
        let generation = &mut self.barriers.0[id as usize];
        generation.arrivals.push(Arrival {
            warp: at.warp,
            mask: at.active,
            pc: at.pc,
            waits,
            predicate,
            result,
        });
        let complete = generation.arrived() >= generation.expected;
        self.memory.barrier_arrive(id, at.warp as u32, at.active, !waits);
        if waits {
            self.warps[at.warp].wait(at.group, at.pc, State::Barrier(id));
        }
        if complete {
            self.complete(id);
        }
        if waits { Flow::Left } else { Flow::Next }
    }

    /// Ends a generation: memory is joined, reductions are answered, groups go on.
    fn complete(&mut self, id: u32) {
        let generation = std::mem::take(&mut self.barriers.0[id as usize]);
        let waiting: SmallVec<[(u32, Mask); 8]> = generation
            .arrivals
            .iter()
            .filter(|arrival| arrival.waits)
            .map(|arrival| (arrival.warp as u32, arrival.mask))
            .collect();
        self.memory.barrier_complete(id, &waiting);
        let held = generation.arrivals.iter().map(|a| (a.predicate & a.mask).count_ones());
        let (held, arrived) = (held.sum::<u32>(), generation.arrived());
        for arrival in &generation.arrivals {
            let warp = &mut self.warps[arrival.warp];
            let registers = &mut warp.registers;
            match arrival.result {
                Some((Barrier::RedPopc, slot)) => {
                    registers.set_word(slot.row(), &[held; LANES], arrival.mask);
                }
                Some((Barrier::Red(logic), slot)) => {
                    let truth = match logic {
                        Logic::And => held == arrived,
                        Logic::Or => held > 0,
                        Logic::Xor => held % 2 == 1,
                    };
                    let value = if truth { Mask::MAX } else { 0 };
                    registers.set_flag(slot.row(), value, arrival.mask);
                }
                Some((Barrier::Sync | Barrier::Arrive, _)) | None => {}
            }
            for group in &mut warp.groups {
                if group.state == State::Barrier(id) {
                    group.state = State::Ready;
                    group.pc += 1;
                }
            }
        }
    }

    /// Reports the first barrier that waits for ever and completes it; false when there is none.
    pub fn force_barrier(&mut self) -> bool {
        for id in 0..BARRIERS as u32 {
            let generation = &self.barriers.0[id as usize];
            let Some(first) = generation.arrivals.iter().find(|arrival| arrival.waits) else {
                continue;
            };
            let at = self.site(first.warp, first.mask, first.pc);
            let (arrived, expected) = (generation.arrived(), generation.expected);
            let missing = self.missing(id);
            self.find(Finding::BarrierStuck { id, arrived, expected, at, missing });
            self.complete(id);
            return true;
        }
        false
    }

    /// A thread that is somewhere else, or has exited (`pc` of the program's end).
    fn missing(&self, id: u32) -> Option<Site> {
        self.warps.iter().enumerate().find_map(|(index, warp)| {
            let elsewhere = warp.groups.iter().find(|group| group.state != State::Barrier(id));
            let gone = (warp.exited != 0).then_some((warp.exited, self.program.len() as u32));
            let (mask, pc) = elsewhere.map(|group| (group.mask, group.pc)).or(gone)?;
            Some(self.site(index, mask, pc))
        })
    }

    /// Puts a group to sleep at its step.
    pub fn wait(&mut self, at: At, state: State) -> Flow {
        self.warps[at.warp].wait(at.group, at.pc, state);
        Flow::Left
    }

    /// Another group of the same warp, for a message.
    pub fn other_site(&self, at: At) -> Option<Site> {
        let warp = &self.warps[at.warp];
        let other = warp.groups.iter().enumerate().find(|(number, _)| *number != at.group);
        let gone = (warp.exited != 0).then_some((warp.exited, self.program.len() as u32));
        let (mask, pc) = other.map(|(_, group)| (group.mask, group.pc)).or(gone)?;
        Some(self.site(at.warp, mask, pc))
    }

    fn bad_barrier(&mut self, at: At, message: &str) -> Flow {
        let site = self.site(at.warp, lanes(at.active).next().map_or(0, |lane| 1 << lane), at.pc);
        self.find(Finding::BadOperand { at: site, message: message.to_owned() });
        Flow::Next
    }
}
