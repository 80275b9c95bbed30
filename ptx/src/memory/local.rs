//! Local memory: bytes of one thread that no other sees, so nothing can race.

use super::{
    CtaMemory, WarpAccess,
    access::{Row, gather, within, zero},
    bytes::Bytes,
    watch::Place,
};
use crate::{
    exec::registers::{LANES, Mask, lanes},
    ir::Space,
    report::AccessKind,
};

/// Local memory of a CTA's threads, made when a thread first uses it.
#[derive(Debug)]
pub(super) struct Local {
    size: u32,
    pub(super) threads: Vec<Option<Bytes>>,
}

impl Local {
    pub(super) fn new(threads: u32, size: u32) -> Self {
        let threads = threads.next_multiple_of(LANES as u32);
        Self { size, threads: vec![None; threads as usize] }
    }

    pub(super) fn thread(&mut self, warp: u32, lane: usize) -> &mut Bytes {
        let size = self.size;
        self.threads[warp as usize * LANES + lane].get_or_insert_with(|| Bytes::new(size))
    }
}

impl CtaMemory {
    fn local_lanes(&mut self, access: &WarpAccess, kind: AccessKind) -> Mask {
        let size = u64::from(self.local.size);
        let inside = within(access.addresses, 0, size, access.bytes()) & access.mask;
        for lane in lanes(access.mask & !inside) {
            let place = Place::of(access, Space::Local, lane);
            self.watch.window_fault(place, access, kind, 0, size);
        }
        inside
    }

    pub(super) fn load_local(&mut self, access: &WarpAccess, rows: &mut [Row]) {
        let inside = self.local_lanes(access, AccessKind::Read);
        zero(rows, access.mask & !inside);
        let bytes = access.bytes() as u32;
        for lane in lanes(inside) {
            let local = self.local.thread(access.warp, lane);
            if !local.written(access.addresses[lane] as u32, bytes) {
                let place = Place::of(access, Space::Local, lane);
                self.watch.uninitialised(place, access.addresses[lane], bytes);
            }
            gather(access, 1 << lane, rows, |address, width| local.peek(address as u32, width));
        }
    }

    pub(super) fn store_local(&mut self, access: &WarpAccess, rows: &[Row]) {
        for lane in lanes(self.local_lanes(access, AccessKind::Write)) {
            let local = self.local.thread(access.warp, lane);
            for (element, row) in (0..access.count).zip(rows) {
                let at = access.addresses[lane] as u32 + element * access.width;
                local.poke(at, access.width, row[lane]);
            }
        }
    }
}
