//! A CTA: its warps, its barriers, and the order in which they take turns.
//!
//! # Idea
//! One thread of the host runs a CTA; warps take turns as the schedule says. A warp runs until it
//! waits or its turn is over. When nothing can run, what is waited for is a finding, and the
//! waiting is broken by force, so that one fault does not hide the rest.
//! # Invariants
//! - **C1** The order of turns is a function of the schedule alone: a run can be repeated.
//! - **C2** Every CTA ends: by exit, by the step limit, or because breaking its waits ran out.

use super::{
    barrier::Barriers,
    launch::Context,
    program::Program,
    random::Random,
    registers::{LANES, Mask, Slot},
    warp::{State, Warp},
};
use crate::{
    ir::Special,
    memory::CtaMemory,
    report::{Finding, Site, Thread},
    symbol::{Limit, Symbols},
};

/// Waits that are broken by force before a CTA is given up.
const PATIENCE: u32 = 64;

/// How a turn of a CTA ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Turn {
    Finished,
    /// The turn's steps are used up.
    Yielded,
}

/// What a CTA counted.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Counts {
    pub warp_steps: u64,
    pub thread_steps: u64,
}

/// One CTA of a launch, resident.
pub(crate) struct Cta<'a> {
    pub program: &'a Program,
    pub context: &'a Context<'a>,
    pub memory: CtaMemory,
    pub warps: Vec<Warp>,
    pub barriers: Barriers,
    pub printed: Vec<String>,
    pub symbols: Option<Symbols>,
    /// Symbols ran out.
    pub limit: Option<Limit>,
    pub counts: Counts,
    /// What turns paid beside the steps that were run.
    pub surcharge: u64,
    /// Linear index in the grid.
    pub index: u32,
    random: Random,
    order: Vec<usize>,
    forced: u32,
    stopped: bool,
}

impl<'a> Cta<'a> {
    pub fn new(
        program: &'a Program,
        context: &'a Context<'a>,
        index: u32,
        symbols: Option<Symbols>,
    ) -> Self {
        let threads = context.threads();
        let count = threads.div_ceil(LANES as u32);
        let shared = program.static_shared + context.request.dynamic_shared;
        let memory =
            CtaMemory::new(index, threads, shared, program.local_bytes, context.memory_options);
        let mut cta = Self {
            program,
            context,
            memory,
            warps: Vec::with_capacity(count as usize),
            barriers: Barriers::default(),
            printed: Vec::new(),
            symbols,
            limit: None,
            counts: Counts::default(),
            surcharge: 0,
            index,
            random: context.random(index),
            order: Vec::new(),
            forced: 0,
            stopped: false,
        };
        for warp in 0..count {
            let lanes = threads - warp * LANES as u32;
            let mask = if lanes >= 32 { Mask::MAX } else { (1 << lanes) - 1 };
            let mut registers = context.template.clone();
            for (special, slot) in &program.specials {
                for lane in 0..LANES {
                    let value = cta.special(*special, warp, lane as u32);
                    registers.set_lane(*slot, lane, value);
                }
            }
            cta.warps.push(Warp::new(registers, mask));
        }
        cta
    }

    /// The value of a special register; clocks count the CTA's own steps and are read elsewhere.
    fn special(&self, special: Special, warp: u32, lane: u32) -> u64 {
        let [nx, ny, _] = self.context.request.block;
        let [gx, gy, gz] = self.context.request.grid;
        let thread = warp * LANES as u32 + lane;
        let threads = [thread % nx, thread / nx % ny, thread / (nx * ny)];
        let ctas = self.context.coordinates(self.index);
        let of = |values: [u32; 3], axis: u8| values.get(usize::from(axis)).copied().unwrap_or(0);
        let bit = 1u32 << lane;
        let value = match special {
            Special::Tid(axis) => of(threads, axis),
            Special::Ntid(axis) => of(self.context.request.block, axis),
            Special::Ctaid(axis) | Special::ClusterId(axis) => of(ctas, axis),
            Special::Nctaid(axis) | Special::NClusterId(axis) => of([gx, gy, gz], axis),
            Special::LaneId => lane,
            Special::WarpId => warp,
            Special::NWarpId => self.context.threads().div_ceil(LANES as u32),
            Special::SmId => self.index % self.context.multiprocessors(),
            Special::NSmId => self.context.multiprocessors(),
            Special::LaneMaskEq => bit,
            Special::LaneMaskLt => bit - 1,
            Special::LaneMaskLe => bit | (bit - 1),
            Special::LaneMaskGt => !(bit | (bit - 1)),
            Special::LaneMaskGe => !(bit - 1),
            Special::ClusterCtaId(_) | Special::ClusterCtaRank | Special::GridId => 0,
            Special::ClusterNCtaId(_) | Special::ClusterNCtaRank => 1,
            Special::IsExplicitCluster => 0,
            Special::TotalSmemSize => {
                self.program.static_shared + self.context.request.dynamic_shared
            }
            Special::DynamicSmemSize => self.context.request.dynamic_shared,
            Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::GlobalTimer
            | Special::GlobalTimerLo
            | Special::GlobalTimerHi => 0,
        };
        u64::from(value)
    }

    /// Runs warps in turn until about `budget` is spent or the CTA is finished.
    pub fn turn(&mut self, budget: u64) -> Turn {
        let end = self.spent().saturating_add(budget);
        while !self.stopped {
            if self.warps.iter().all(Warp::finished) {
                return Turn::Finished;
            }
            let before = self.counts.warp_steps;
            let mut order = std::mem::take(&mut self.order);
            self.context.schedule.order(self.warps.len(), &mut self.random, &mut order);
            for &warp in &order {
                let quantum = self.context.schedule.quantum(&mut self.random);
                self.run_warp(warp, quantum);
                if self.over() {
                    break;
                }
            }
            self.order = order;
            if self.counts.warp_steps == before && !self.stopped {
                self.unblock();
            }
            if self.spent() >= end && !self.stopped {
                return Turn::Yielded;
            }
        }
        Turn::Finished
    }

    fn spent(&self) -> u64 {
        self.counts.warp_steps + self.surcharge
    }

    /// Stops the CTA at the step limit, or when the host asks.
    fn over(&mut self) -> bool {
        if self.stopped || self.context.cancelled() {
            self.stopped = true;
            return true;
        }
        let limit = self.context.request.options.step_limit;
        if self.counts.warp_steps < limit {
            return false;
        }
        let at = self.warps.iter().enumerate().find_map(|(index, warp)| {
            let group = warp.groups.first()?;
            Some(self.site(index, group.mask, group.pc))
        });
        if let Some(at) = at {
            self.find(Finding::StepLimit { limit, at });
        }
        self.stopped = true;
        true
    }

    /// Ends the CTA at once.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Nothing can run: says what is waited for, and breaks one wait by force.
    fn unblock(&mut self) {
        self.forced += 1;
        if self.forced > PATIENCE {
            self.stopped = true;
        } else if !self.force_members() && !self.force_barrier() {
            // All groups wait for nothing that exists: cannot happen, and must not hang.
            self.stopped = true;
        }
    }

    fn force_members(&mut self) -> bool {
        for index in 0..self.warps.len() {
            let waiting = self.warps[index].groups.iter().position(|g| g.state == State::Members);
            if let Some(group) = waiting {
                self.force_group(index, group);
                return true;
            }
        }
        false
    }

    /// One end of a finding: the first thread of `mask`.
    pub fn site(&self, warp: usize, mask: Mask, pc: u32) -> Site {
        let lane = if mask == 0 { 0 } else { mask.trailing_zeros() };
        let thread = warp as u32 * LANES as u32 + lane;
        Site { pc, thread: Thread { cta: self.index, thread } }
    }

    /// Adds a finding of the machine's own.
    pub fn find(&mut self, finding: Finding) {
        self.memory.reports().add(finding);
    }

    /// A time that only goes forward: the CTA's own steps.
    pub fn clock(&self) -> u64 {
        self.counts.warp_steps
    }

    /// The thread's first lane value of a slot, for operands that must be uniform.
    pub fn uniform(&self, warp: usize, slot: Slot, mask: Mask) -> Option<u32> {
        let registers = &self.warps[warp].registers;
        let mut values =
            super::registers::lanes(mask).map(|lane| registers.lane(slot, lane) as u32);
        let first = values.next()?;
        values.all(|value| value == first).then_some(first)
    }
}
