//! The watch of one CTA: its clocks, and what it found.

use super::{
    MemoryOptions, WarpAccess,
    access::page_start,
    clock::Clocks,
    shadow::{Act, Conflict, Info, Record, Strength, Touches},
    sync::Fences,
};
use crate::{
    exec::registers::LANES,
    ir::Space,
    report::{AccessKind, Finding, Reports, Site, Thread},
};

/// Everything of a CTA's memory but bytes and shadows.
#[derive(Debug)]
pub(super) struct Watch {
    pub(super) cta: u32,
    pub(super) options: MemoryOptions,
    pub(super) clocks: Clocks,
    /// By warp.
    pub(super) fences: Vec<Fences>,
    pub(super) reports: Reports,
    /// Of the access at hand; kept for its allocation.
    pub(super) conflicts: Vec<Conflict>,
}

/// One lane's place in a warp instruction.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) pc: u32,
    pub(super) warp: u32,
    pub(super) lane: usize,
    pub(super) space: Space,
}

impl Place {
    pub(super) fn of(access: &WarpAccess, space: Space, lane: usize) -> Self {
        Self { pc: access.pc, warp: access.warp, lane, space }
    }
}

impl Watch {
    pub(super) fn new(cta: u32, threads: u32, options: MemoryOptions) -> Self {
        let clocks = Clocks::new(cta, threads);
        Self {
            cta,
            options,
            clocks,
            fences: vec![Fences::default(); threads.div_ceil(LANES as u32) as usize],
            reports: Reports::new(options.strict),
            conflicts: Vec::new(),
        }
    }

    pub(super) fn site(&self, place: Place) -> Site {
        let thread = place.warp * LANES as u32 + place.lane as u32;
        Site { pc: place.pc, thread: Thread { cta: self.cta, thread } }
    }

    pub(super) fn earlier(record: Record) -> Site {
        let thread = Thread { cta: record.epoch.cta(), thread: record.epoch.thread() };
        Site { pc: record.info.pc(), thread }
    }

    /// Reports the conflicts of an access, one finding a lane.
    #[inline(always)]
    pub(super) fn settle(&mut self, access: &WarpAccess, kind: AccessKind) {
        if !self.conflicts.is_empty() {
            self.settle_conflicts(access, kind);
        }
    }

    #[cold]
    fn settle_conflicts(&mut self, access: &WarpAccess, kind: AccessKind) {
        let mut conflicts = std::mem::take(&mut self.conflicts);
        for lane in conflicts.chunk_by(|a, b| a.lane == b.lane) {
            let rewrites =
                |conflict: &&Conflict| conflict.same && conflict.earlier.info.act() == Act::Write;
            let race = lane.iter().find(|conflict| !rewrites(conflict));
            if let Some(conflict) = race.or(lane.first()) {
                self.report(access, kind, conflict, race.is_none());
            }
        }
        conflicts.clear();
        self.conflicts = conflicts;
    }

    fn report(&mut self, access: &WarpAccess, kind: AccessKind, conflict: &Conflict, same: bool) {
        let space = access.space;
        let later = self.site(Place::of(access, space, conflict.lane));
        let address = page_start(access.addresses[conflict.lane]) + u64::from(conflict.offset);
        let bytes = conflict.bytes;
        let earlier = Self::earlier(conflict.earlier);
        self.reports.add(if same {
            Finding::SameBytes { space, address, bytes, earlier, later }
        } else {
            let earlier = (earlier, conflict.earlier.info.kind());
            Finding::Race { space, address, bytes, earlier, later: (later, kind) }
        });
    }

    /// Reports an access that reaches outside its space.
    #[cold]
    pub(super) fn outside(
        &mut self,
        place: Place,
        kind: AccessKind,
        address: u64,
        bytes: u32,
        reason: String,
    ) {
        let at = self.site(place);
        let space = place.space;
        self.reports.add(Finding::OutOfBounds { space, address, bytes, kind, at, reason });
    }

    #[cold]
    pub(super) fn misaligned(
        &mut self,
        place: Place,
        kind: AccessKind,
        address: u64,
        alignment: u32,
    ) {
        let at = self.site(place);
        self.reports.add(Finding::Misaligned { space: place.space, address, alignment, kind, at });
    }

    #[cold]
    pub(super) fn uninitialised(&mut self, place: Place, address: u64, bytes: u32) {
        let at = self.site(place);
        self.reports.add(Finding::Uninitialised { space: place.space, address, bytes, at });
    }
}

/// A weak access as the shadow sees it.
pub(super) fn weak<'a>(access: &WarpAccess<'a>, act: Act) -> Touches<'a> {
    let info = Info::new(access.pc, act, Strength::Weak, access.width);
    Touches { addresses: access.addresses, bytes: access.bytes() as u32, info }
}
