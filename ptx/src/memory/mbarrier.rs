//! mbarrier objects: barriers in shared memory, with phases and transaction counts.
//!
//! # Idea
//! An object counts arrivals and transactions down; when both are done its phase completes and the
//! next begins. Arrivals release, and a wait that answers true acquires what was released in the
//! phases completed so far.
//! # Invariants
//! - **Y4** Initialising and invalidating are weak writes of the object's 8 bytes, everything else
//!   is a strong access at CTA scope: an arrival that nothing orders after `init` is a race.
//! - **Y5** The state that `arrive` gives is the phase it arrived in and the arrivals pending then.

use super::{
    CtaMemory, WarpAccess,
    access::Row,
    clock::Meeting,
    shadow::Act,
    space::{SHARED_BASE, resolve},
    watch::{Place, weak},
};
use crate::{
    exec::registers::{LANES, Mask, lanes},
    ir::{Ordering, Scope, Space},
    report::{AccessKind, Finding},
};

/// An object's state.
#[derive(Debug, Default)]
pub(super) struct Object {
    /// Arrivals a phase waits for.
    expected: u32,
    pending: i64,
    transactions: i64,
    phase: u32,
    /// What the arrivals of all phases so far, of the current one included, released.
    arriving: Meeting,
    /// The same, up to the last completed phase.
    completed: Meeting,
}

impl Object {
    /// Whether the phase is over; then the next begins.
    fn settle(&mut self) {
        if self.pending <= 0 && self.transactions == 0 {
            self.phase = self.phase.wrapping_add(1);
            self.pending = i64::from(self.expected);
            self.completed = self.arriving.clone();
        }
    }

    fn state(&self) -> u64 {
        u64::from(self.phase) << 32 | (self.pending as u64 & 0xffff_ffff)
    }
}

/// How threads arrive.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ArriveKind {
    /// The arrivals are not expected in later phases.
    pub drop: bool,
}

/// What a wait asks about.
#[derive(Clone, Copy, Debug)]
pub enum Phase<'a> {
    /// The phase of a state that `arrive` gave.
    State(&'a Row),
    /// The current phase or the one before, by parity.
    Parity(&'a Row),
}

impl CtaMemory {
    /// `mbarrier.init`: objects that expect `counts` arrivals a phase.
    pub fn mbarrier_init(&mut self, at: &WarpAccess, counts: &Row) {
        self.each_object(at, None, |memory, part, lane, object| {
            memory.object_write(part, lane);
            let expected = counts[lane] as u32;
            memory.mbarriers.insert(
                object,
                Object { expected, pending: i64::from(expected), ..Object::default() },
            );
        });
    }

    /// `mbarrier.inval`.
    pub fn mbarrier_inval(&mut self, at: &WarpAccess) {
        self.each_object(at, Some("mbarrier.inval"), |memory, part, lane, object| {
            memory.object_write(part, lane);
            memory.mbarriers.remove(&object);
        });
    }

    /// `mbarrier.arrive`: `counts` arrivals, after `transactions` more are expected if given. The
    /// state before goes to `states`.
    pub fn mbarrier_arrive(
        &mut self,
        at: &WarpAccess,
        counts: &Row,
        transactions: Option<&Row>,
        kind: ArriveKind,
        states: &mut Row,
    ) {
        let releasing = !matches!(at.ordering, Ordering::Relaxed(_));
        self.each_object(at, Some("mbarrier.arrive"), |memory, part, lane, object| {
            memory.object_access(part, lane);
            let Some(found) = memory.mbarriers.get_mut(&object) else { return };
            states[lane] = found.state();
            if releasing && memory.watch.options.races {
                memory.watch.clocks.arrive(&mut found.arriving, part.warp, 1 << lane);
            }
            found.transactions += transactions.map_or(0, |amounts| i64::from(amounts[lane] as u32));
            let count = counts[lane] as u32;
            found.pending -= i64::from(count);
            if kind.drop {
                found.expected = found.expected.saturating_sub(count);
            }
            found.settle();
        });
        if releasing && self.watch.options.races {
            self.watch.clocks.advance(at.warp, at.mask);
        }
    }

    /// `mbarrier.expect_tx`, or with `complete` `mbarrier.complete_tx`.
    pub fn mbarrier_transactions(&mut self, at: &WarpAccess, amounts: &Row, complete: bool) {
        self.each_object(at, Some("mbarrier.expect_tx"), |memory, part, lane, object| {
            memory.object_access(part, lane);
            let Some(found) = memory.mbarriers.get_mut(&object) else { return };
            let amount = i64::from(amounts[lane] as u32);
            if complete {
                found.transactions -= amount;
                found.settle();
            } else {
                found.transactions += amount;
            }
        });
    }

    /// `mbarrier.test_wait`, and `try_wait`, which never suspends here: the lanes whose phase is
    /// complete.
    pub fn mbarrier_wait(&mut self, at: &WarpAccess, phase: Phase) -> Mask {
        let acquiring = !matches!(at.ordering, Ordering::Relaxed(_));
        let mut done = 0;
        self.each_object(at, Some("mbarrier.test_wait"), |memory, part, lane, object| {
            memory.object_access(part, lane);
            let Some(found) = memory.mbarriers.get(&object) else { return };
            let complete = match phase {
                Phase::State(states) => found.phase != (states[lane] >> 32) as u32,
                Phase::Parity(parities) => u64::from(found.phase & 1) != parities[lane] & 1,
            };
            if complete {
                done |= 1 << lane;
                if acquiring && let Some(known) = found.completed.knowledge() {
                    memory.watch.clocks.acquire(part.warp, lane, &known);
                }
            }
        });
        done
    }

    /// `mbarrier.pending_count` of a state.
    pub fn mbarrier_pending_count(state: u64) -> u64 {
        state & 0xffff_ffff
    }

    /// `cp.async.mbarrier.arrive`: the lanes arrive when their copies so far are done. They are
    /// done at once here; without `noinc` the arrival is one that was not expected before.
    pub fn cp_async_mbarrier_arrive(&mut self, at: &WarpAccess, noinc: bool) {
        self.cp_async_wait(at.warp, at.mask, None);
        if !noinc {
            self.each_object(at, Some("cp.async.mbarrier.arrive"), |memory, _, _, object| {
                if let Some(found) = memory.mbarriers.get_mut(&object) {
                    found.pending += 1;
                }
            });
        }
        let mut states = [0; LANES];
        self.mbarrier_arrive(at, &[1; LANES], None, ArriveKind::default(), &mut states);
    }

    /// Runs `run` for each lane whose object lies in shared memory, with the number of its first
    /// byte; `instruction` needs it to be there.
    fn each_object(
        &mut self,
        at: &WarpAccess,
        instruction: Option<&str>,
        mut run: impl FnMut(&mut Self, &WarpAccess, usize, u32),
    ) {
        let addresses: Row = std::array::from_fn(|lane| resolve(at.space, at.addresses[lane]).1);
        let access = WarpAccess {
            space: Space::Shared,
            addresses: &addresses,
            ordering: Ordering::Relaxed(Scope::Cta),
            width: 8,
            count: 1,
            ..*at
        };
        for lane in lanes(self.shared_lanes(&access, AccessKind::Atomic)) {
            let object = addresses[lane] as u32 - SHARED_BASE;
            let known = self.mbarriers.contains_key(&object);
            if let Some(instruction) = instruction.filter(|_| !known) {
                let at = self.watch.site(Place::of(&access, Space::Shared, lane));
                let message =
                    format!("{instruction}: no mbarrier is initialised at {:#x}", addresses[lane]);
                self.watch.reports.add(Finding::BadOperand { at, message });
            } else {
                run(self, &access, lane, object);
            }
        }
    }

    fn object_write(&mut self, access: &WarpAccess, lane: usize) {
        let at = access.addresses[lane] as u32 - SHARED_BASE;
        self.shared.bytes.poke(at, 8, 0);
        if self.watch.options.races {
            let touch = weak(access, Act::Write).lane(lane);
            let sight = self.watch.clocks.sight(access.warp);
            self.shared.page(at).write(&sight, &touch, &mut self.watch.conflicts);
            self.watch.settle(access, AccessKind::Write);
        }
    }

    fn object_access(&mut self, access: &WarpAccess, lane: usize) {
        if self.watch.options.races {
            self.shared_strong(access, lane, Act::Atomic);
            self.watch.settle(access, AccessKind::Atomic);
        }
    }
}
