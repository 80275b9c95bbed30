//! A warp's atomic updates, lane by lane in the order of lanes.
//!
//! # Idea
//! Atomics are strong: those with scopes that include each other do not race, but where their order
//! moves the final value (a float sum rounds differently), the order of arrival is a finding. An
//! integer update that only hands out tickets is none.
//! # Not here
//! What is computed (`num/atomic.rs`).

use super::{
    CtaMemory, WarpAccess,
    access::{Cursor, Row, page_start, strong_touch, zero},
    global::GlobalMemory,
    shadow::{Act, Arrival, Page, Record, Touch},
    space::SHARED_BASE,
    watch::{Place, Watch},
};
use crate::{
    exec::registers::{Mask, lanes},
    ir::{Atomic, Class, Ordering, Scalar, Scope, Space},
    num::atomic::apply,
    report::{AccessKind, Finding},
};

/// What an atomic instruction does.
#[derive(Clone, Copy, Debug)]
pub struct Update<'a> {
    pub op: Atomic,
    pub ty: Scalar,
    /// `b`: for `cas`, what the old value is compared with.
    pub operands: &'a [Row],
    /// `c` of `cas`; empty otherwise.
    pub news: &'a [Row],
    /// The old value goes somewhere: `atom`, and not to `_`.
    pub result_used: bool,
}

impl Update<'_> {
    fn element(&self, space: Space, element: u32, lane: usize, old: u64) -> u64 {
        let column = |rows: &[Row]| rows.get(element as usize).map_or(0, |row| row[lane]);
        apply(self.op, self.ty, space, old, column(self.operands), column(self.news))
    }

    fn arrival(&self, new: u64) -> Arrival {
        match self.op {
            Atomic::Add if self.ty.class() == Class::Float => Arrival::Moves,
            Atomic::Exch => Arrival::Stores(new),
            Atomic::Cas => Arrival::MayMove,
            Atomic::And
            | Atomic::Or
            | Atomic::Xor
            | Atomic::Add
            | Atomic::Inc
            | Atomic::Dec
            | Atomic::Min
            | Atomic::Max => Arrival::Free,
        }
    }
}

impl CtaMemory {
    /// Updates memory, and gives the old values in `results`; a lane that faults reads 0.
    pub fn atomic(
        &mut self,
        global: &GlobalMemory,
        access: &WarpAccess,
        update: &Update,
        results: &mut [Row],
    ) {
        let ordering = match access.ordering {
            Ordering::Weak => Ordering::Relaxed(Scope::Gpu), // `atom` without a qualifier.
            Ordering::Volatile
            | Ordering::Relaxed(_)
            | Ordering::Acquire(_)
            | Ordering::Release(_)
            | Ordering::AcqRel(_)
            | Ordering::Mmio => access.ordering,
        };
        let access = WarpAccess { ordering, ..*access };
        self.each_space(&access, |memory, space, part| match space {
            Space::Shared => memory.atomic_shared(part, update, results),
            Space::Local => memory.atomic_local(part, results),
            Space::Generic | Space::Global | Space::SharedCluster | Space::Param | Space::Const => {
                memory.atomic_global(global, part, update, results);
            }
        });
        self.watch.end_release(access.warp, access.mask, access.ordering);
    }

    fn atomic_global(
        &mut self,
        global: &GlobalMemory,
        access: &WarpAccess,
        update: &Update,
        results: &mut [Row],
    ) {
        let faulting =
            self.each_buffer(global, access, AccessKind::Atomic, |memory, buffer, mask| {
                let mut cursor = Cursor::new(buffer);
                for (lane, element, address) in elements(access, mask) {
                    let old = buffer.peek(address, access.width);
                    let new = update.element(Space::Global, element, lane, old);
                    if memory.watch.options.races {
                        let page = cursor.page(address);
                        memory.watch.update(page, access, lane, address, update.arrival(new));
                    }
                    buffer.poke(address, access.width, new);
                    keep(results, element, lane, old);
                }
                drop(cursor);
                memory.watch.settle(access, AccessKind::Atomic);
            });
        zero(results, faulting);
    }

    fn atomic_shared(&mut self, access: &WarpAccess, update: &Update, results: &mut [Row]) {
        let inside = self.shared_lanes(access, AccessKind::Atomic);
        zero(results, access.mask & !inside);
        for (lane, element, address) in elements(access, inside) {
            let at = address as u32 - SHARED_BASE;
            if !self.shared.bytes.written(at, access.width) {
                let place = Place::of(access, Space::Shared, lane);
                self.watch.uninitialised(place, address, access.width);
            }
            let old = self.shared.bytes.peek(at, access.width);
            let new = update.element(Space::Shared, element, lane, old);
            if self.watch.options.races {
                let page = self.shared.page(at);
                self.watch.update(page, access, lane, address, update.arrival(new));
            }
            self.shared.bytes.poke(at, access.width, new);
            keep(results, element, lane, old);
        }
        self.watch.settle(access, AccessKind::Atomic);
    }

    /// Local memory has no atomics.
    fn atomic_local(&mut self, access: &WarpAccess, results: &mut [Row]) {
        zero(results, access.mask);
        for lane in lanes(access.mask) {
            let place = Place::of(access, Space::Local, lane);
            let (address, bytes) = (access.addresses[lane], access.bytes() as u32);
            let reason = "no atomic works on local memory".to_owned();
            self.watch.outside(place, AccessKind::Atomic, address, bytes, reason);
        }
    }
}

/// Every element of the lanes of `mask`: lane, element, address.
fn elements(access: &WarpAccess, mask: Mask) -> impl Iterator<Item = (usize, u32, u64)> {
    let WarpAccess { addresses, width, count, .. } = *access;
    lanes(mask).flat_map(move |lane| {
        (0..count).map(move |element| (lane, element, addresses[lane] + u64::from(element * width)))
    })
}

fn keep(results: &mut [Row], element: u32, lane: usize, old: u64) {
    if let Some(row) = results.get_mut(element as usize) {
        row[lane] = old;
    }
}

impl Watch {
    fn update(
        &mut self,
        page: &mut Page,
        access: &WarpAccess,
        lane: usize,
        address: u64,
        arrival: Arrival,
    ) {
        let touch: Touch = strong_touch(access, lane, Act::Atomic, address);
        // Asked before this update acquires: that it was ordered behind the one it reads from is
        // the arrival order itself.
        let sight = self.clocks.sight(access.warp);
        let earlier = page.crowd(&touch).arrive(&sight, &touch, arrival);
        self.strong(page, access.warp, &touch, access.ordering);
        if let Some(earlier) = earlier {
            self.arrival(
                access,
                lane,
                page_start(address) + u64::from(touch.offset),
                earlier,
                arrival,
            );
        }
    }

    #[cold]
    fn arrival(
        &mut self,
        access: &WarpAccess,
        lane: usize,
        address: u64,
        earlier: Record,
        arrival: Arrival,
    ) {
        let (space, earlier) = (access.space, Self::earlier(earlier));
        let later = self.site(Place::of(access, space, lane));
        let finding = Finding::ArrivalOrder { space, address, earlier, later };
        if arrival == Arrival::MayMove {
            self.reports.note(finding);
        } else {
            self.reports.add(finding);
        }
    }
}
