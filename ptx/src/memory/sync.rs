//! Synchronisation: what releases, what acquires, who meets.
//!
//! # Idea
//! After the PTX memory model: a release pattern (a releasing write, or a fence and then a strong
//! write) synchronises with an acquire pattern (an acquiring read, or a strong read and then a
//! fence) that reads its value, or a value that atomics made of it, if their scopes include each
//! other; a pattern's scope is the narrower of its fence's and its access's.
//! # Invariants
//! - **Y1** A lane that acquires does so before its own access is checked: what precedes the
//!   release in program order happens before the acquiring read itself.
//! - **Y2** A lane that releases gets a new clock when the instruction is done.
//! # Not here
//! Two `fence.sc` synchronise in their order of execution by the model's letter. We do not let
//! them: which came first is an accident, and a program that relies on it without reading a flag
//! races in another execution. A strong write after an older release of the same location by the
//! same thread, with another thread's write between, carries no release.

use std::sync::Arc;

use super::{
    CtaMemory,
    clock::{Knowledge, Meeting, Snapshot, join},
    shadow::{Crowd, Page, Strength, Touch},
    watch::Watch,
};
use crate::{
    exec::registers::{LANES, Mask, lanes},
    ir::{Ordering, Scope},
    report::AccessKind,
};

/// What the fences of a warp's lanes hold; empty until the first fence or strong access.
#[derive(Clone, Debug, Default)]
pub(super) struct Fences(Option<Box<[Fence; LANES]>>);

/// Of one lane, for each scope: the last fence, for strong writes to come, and what strong reads
/// saw, for a fence to come.
#[derive(Clone, Debug, Default)]
struct Fence {
    device: Option<Snapshot>,
    cta: Option<Snapshot>,
    seen_device: Option<Arc<Knowledge>>,
    seen_cta: Option<Arc<Knowledge>>,
}

impl Fences {
    fn lane(&mut self, lane: usize) -> &mut Fence {
        &mut self.0.get_or_insert_default()[lane]
    }
}

fn see(seen: &mut Option<Arc<Knowledge>>, news: &Arc<Knowledge>) {
    match seen {
        Some(seen) => join(seen, news),
        None => *seen = Some(Arc::clone(news)),
    }
}

pub(super) fn acquires(ordering: Ordering) -> bool {
    matches!(ordering, Ordering::Acquire(_) | Ordering::AcqRel(_))
}

pub(super) fn releases(ordering: Ordering) -> bool {
    matches!(ordering, Ordering::Release(_) | Ordering::AcqRel(_))
}

impl Watch {
    /// A strong access: acquires, is checked (its conflicts are left to settle), and releases.
    pub(super) fn strong(&mut self, page: &mut Page, warp: u32, touch: &Touch, ordering: Ordering) {
        let reads = touch.info.kind() != AccessKind::Write;
        if reads {
            self.observe(page, warp, touch, ordering);
        }
        page.strong(&self.clocks.sight(warp), touch, &mut self.conflicts);
        if touch.info.writes() {
            if !reads {
                page.each_crowd(touch, Crowd::end_release);
            }
            self.publish(page, warp, touch, ordering);
        }
    }

    fn observe(&mut self, page: &mut Page, warp: u32, touch: &Touch, ordering: Ordering) {
        let Some(release) = page.released(touch) else { return };
        let (device, cta) = release.offers(self.clocks.cta(), touch.info.class() & 7);
        let device = device.filter(|_| touch.info.strength() == Strength::Gpu);
        if acquires(ordering) {
            for known in device.into_iter().chain(cta) {
                self.clocks.acquire(warp, touch.lane, known);
            }
            return;
        }
        let fence = self.fences[warp as usize].lane(touch.lane);
        if let Some(device) = device {
            see(&mut fence.seen_device, device);
        }
        if let Some(cta) = cta {
            see(&mut fence.seen_cta, cta);
        }
    }

    fn publish(&mut self, page: &mut Page, warp: u32, touch: &Touch, ordering: Ordering) {
        let (cta, size) = (self.clocks.cta(), touch.info.class() & 7);
        let strength = touch.info.strength();
        let mut add = |strength, snapshot: &Snapshot| {
            let knowledge = snapshot.knowledge();
            page.each_crowd(touch, |crowd| crowd.release().add(cta, strength, size, &knowledge));
        };
        if releases(ordering) {
            add(strength, &self.clocks.snapshot(warp, touch.lane));
            return; // Everything before a fence is before this.
        }
        let Some(fences) = &self.fences[warp as usize].0 else { return };
        let fence = &fences[touch.lane];
        if let Some(snapshot) = &fence.cta {
            add(Strength::Cta, snapshot);
        }
        if strength == Strength::Gpu
            && let Some(snapshot) = &fence.device
        {
            add(Strength::Gpu, snapshot);
        }
    }

    /// Ends the epoch of lanes that have just executed a releasing access.
    pub(super) fn end_release(&mut self, warp: u32, mask: Mask, ordering: Ordering) {
        if releases(ordering) && self.options.races {
            self.clocks.advance(warp, mask);
        }
    }
}

impl CtaMemory {
    /// `fence.acq_rel` or `fence.sc`, by scope; `membar` likewise. `acquire` and `release` fences
    /// of one direction are given by `ordering`.
    pub fn fence(&mut self, warp: u32, mask: Mask, ordering: Ordering) {
        let strength = Strength::of(ordering);
        if !self.watch.options.races || strength == Strength::Weak {
            return;
        }
        for lane in lanes(mask) {
            if !matches!(ordering, Ordering::Release(_)) {
                self.fence_acquire(warp, lane, strength);
            }
            if !matches!(ordering, Ordering::Acquire(_)) {
                let snapshot = self.watch.clocks.snapshot(warp, lane);
                let fence = self.watch.fences[warp as usize].lane(lane);
                if strength == Strength::Gpu {
                    fence.device = Some(snapshot.clone());
                }
                fence.cta = Some(snapshot);
            }
        }
        self.watch.clocks.advance(warp, mask);
    }

    fn fence_acquire(&mut self, warp: u32, lane: usize, strength: Strength) {
        let fence = self.watch.fences[warp as usize].lane(lane);
        let device = if strength == Strength::Gpu { fence.seen_device.take() } else { None };
        let cta = fence.seen_cta.take();
        for known in device.into_iter().chain(cta) {
            self.watch.clocks.acquire(warp, lane, &known);
        }
    }

    /// `fence` of the scope, both directions.
    pub fn fence_scope(&mut self, warp: u32, mask: Mask, scope: Scope) {
        self.fence(warp, mask, Ordering::AcqRel(scope));
    }

    /// `bar.warp.sync`: every lane of `mask` has arrived.
    pub fn warp_sync(&mut self, warp: u32, mask: Mask) {
        if self.watch.options.races && mask.count_ones() > 1 {
            self.watch.clocks.meet(warp, mask);
        }
    }

    /// Lanes arrive at barrier `id`, to wait or not. Lanes that go on are `passing`.
    pub fn barrier_arrive(&mut self, id: u32, warp: u32, mask: Mask, passing: bool) {
        if !self.watch.options.races {
            return;
        }
        let meeting = self.meetings.entry(id).or_default();
        self.watch.clocks.arrive(meeting, warp, mask);
        if passing {
            self.watch.clocks.advance(warp, mask);
        }
    }

    /// Barrier `id` completes: the `waiting` lanes, which arrived and have done nothing since, go
    /// on. The barrier is then free for its next use.
    pub fn barrier_complete(&mut self, id: u32, waiting: &[(u32, Mask)]) {
        let meeting: Option<Meeting> = self.meetings.remove(&id);
        if let Some(meeting) = meeting {
            self.watch.clocks.leave(meeting, waiting);
        }
    }
}
