//! Asynchronous copies from global to shared memory, by groups.
//!
//! # Idea
//! A copy reads its source when it is issued and lands at the wait that covers its group; between
//! the two its destination is in flight, and any access of it, by any thread, is a race. When it
//! lands it becomes a write by the thread that waited, at that moment.
//! # Invariants
//! - **Y3** A copy's groups are those of its lanes: a lane's copies land in the order of its groups.
//! # Not here
//! A write of the *source* between issue and wait, by a thread that the issue is ordered before.

use super::{
    CtaMemory, WarpAccess,
    access::{Row, page_offset},
    global::GlobalMemory,
    shadow::{Act, Info, Strength, Touch},
    space::SHARED_BASE,
};
use crate::{
    exec::registers::{LANES, Mask, lanes},
    ir::{Ordering, Space},
    report::AccessKind,
};

/// A `cp.async` of a warp.
#[derive(Clone, Copy, Debug)]
pub struct WarpCopy<'a> {
    pub pc: u32,
    pub warp: u32,
    pub mask: Mask,
    /// Shared addresses.
    pub to: &'a Row,
    pub from: &'a Row,
    /// Of `from`: global, or generic.
    pub space: Space,
    /// 4, 8 or 16.
    pub bytes: u32,
    /// Bytes a lane reads; the rest of its `bytes` are zeros.
    pub source_bytes: &'a [u32; LANES],
}

/// A copy in flight.
#[derive(Clone, Debug)]
struct Flight {
    pc: u32,
    bytes: u32,
    /// Lanes that have not landed.
    mask: Mask,
    /// By lane: how many groups the lane had committed at the issue.
    groups: [u32; LANES],
    /// From [`SHARED_BASE`].
    to: [u32; LANES],
    /// Low and high halves.
    data: [[u64; LANES]; 2],
}

#[derive(Clone, Debug)]
struct Queue {
    flights: Vec<Flight>,
    committed: [u32; LANES],
}

/// The copies in flight of a CTA, by warp.
#[derive(Debug)]
pub(super) struct Copies {
    warps: Vec<Queue>,
}

impl Copies {
    pub(super) fn new(threads: u32) -> Self {
        let queue = Queue { flights: Vec::new(), committed: [0; LANES] };
        Self { warps: vec![queue; threads.div_ceil(LANES as u32) as usize] }
    }
}

impl CtaMemory {
    /// `cp.async`: reads the sources, and puts the destinations in flight.
    pub fn cp_async(&mut self, global: &GlobalMemory, copy: &WarpCopy) {
        let width = copy.bytes.min(8);
        let target = WarpAccess {
            pc: copy.pc,
            warp: copy.warp,
            mask: copy.mask,
            space: Space::Shared,
            ordering: Ordering::Weak,
            addresses: copy.to,
            width,
            count: copy.bytes / width,
        };
        let mask = self.shared_lanes(&target, AccessKind::Write);
        let data = self.sources(global, copy, &WarpAccess { mask, ..target });
        let mut to = [0; LANES];
        lanes(mask).for_each(|lane| to[lane] = copy.to[lane] as u32 - SHARED_BASE);
        if self.watch.options.races {
            self.take_off(&WarpAccess { mask, ..target });
        }
        let queue = &mut self.copies.warps[copy.warp as usize];
        let groups = queue.committed;
        queue.flights.push(Flight { pc: copy.pc, bytes: copy.bytes, mask, groups, to, data });
    }

    /// What the lanes of `target` copy, zero-filled past their source bytes.
    fn sources(&mut self, global: &GlobalMemory, copy: &WarpCopy, target: &WarpAccess) -> [Row; 2] {
        let mut data = [[0; LANES]; 2];
        let whole = lanes(target.mask).filter(|&lane| copy.source_bytes[lane] >= copy.bytes);
        let whole = whole.fold(0, |mask, lane| mask | 1 << lane);
        let source = WarpAccess { mask: whole, space: copy.space, addresses: copy.from, ..*target };
        if whole != 0 {
            self.load(global, &source, &mut data[..source.count as usize]);
        }
        // Partial sources, rare: byte by byte, so that nothing past them is read.
        for lane in lanes(target.mask & !whole) {
            for byte in 0..copy.source_bytes[lane] {
                let addresses = [copy.from[lane].wrapping_add(u64::from(byte)); LANES];
                let mut row = [[0; LANES]];
                let one = WarpAccess {
                    mask: 1 << lane,
                    addresses: &addresses,
                    width: 1,
                    count: 1,
                    ..source
                };
                self.load(global, &one, &mut row);
                data[byte as usize / 8][lane] |= row[0][lane] << (byte % 8 * 8);
            }
        }
        data
    }

    fn take_off(&mut self, target: &WarpAccess) {
        let info = Info::new(target.pc, Act::Flight, Strength::Weak, target.width);
        let bytes = target.bytes() as u32;
        let sight = self.watch.clocks.sight(target.warp);
        for lane in lanes(target.mask) {
            let address = target.addresses[lane];
            let touch = Touch { lane, offset: page_offset(address), bytes, info };
            let page = self.shared.page(address as u32 - SHARED_BASE);
            page.write(&sight, &touch, &mut self.watch.conflicts);
        }
        self.watch.settle(target, AccessKind::Write);
    }

    /// `cp.async.commit_group`.
    pub fn cp_async_commit(&mut self, warp: u32, mask: Mask) {
        let committed = &mut self.copies.warps[warp as usize].committed;
        lanes(mask).for_each(|lane| committed[lane] += 1);
    }

    /// `cp.async.wait_group`: all but the last `keep` groups of the lanes land; `None`, which is
    /// `cp.async.wait_all`: everything, committed or not.
    pub fn cp_async_wait(&mut self, warp: u32, mask: Mask, keep: Option<u32>) {
        let queue = &mut self.copies.warps[warp as usize];
        if queue.flights.is_empty() {
            return;
        }
        let committed = queue.committed;
        let mut flights = std::mem::take(&mut queue.flights);
        flights.retain_mut(|flight| {
            let landing = lanes(flight.mask & mask).filter(|&lane| match keep {
                None => true,
                Some(keep) => flight.groups[lane] < committed[lane].saturating_sub(keep),
            });
            let landing = landing.fold(0, |landing, lane| landing | 1 << lane);
            self.land(warp, flight, landing);
            flight.mask &= !landing;
            flight.mask != 0
        });
        self.copies.warps[warp as usize].flights = flights;
    }

    fn land(&mut self, warp: u32, flight: &Flight, landing: Mask) {
        let info = Info::new(flight.pc, Act::Write, Strength::Weak, flight.bytes.min(8));
        let sight = self.watch.clocks.sight(warp);
        for lane in lanes(landing) {
            let at = flight.to[lane];
            let width = flight.bytes.min(8);
            for half in 0..flight.bytes / width {
                let value = flight.data[half as usize][lane];
                self.shared.bytes.poke(at + half * width, width, value);
            }
            if self.watch.options.races {
                let offset = page_offset(u64::from(at));
                let touch = Touch { lane, offset, bytes: flight.bytes, info };
                self.shared.page(at).land(&touch, sight.key(lane).lane(lane));
            }
        }
    }
}
