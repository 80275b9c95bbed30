//! A warp's loads and stores.
//!
//! # Idea
//! The lanes of an access are taken in groups that lie in one space and one buffer. For each group:
//! check bounds and alignment of all lanes at once, tell the shadow, move the data.
//! # Invariants
//! - **A1** A lane that faults reads 0 and writes nothing; the others go on.
//! - **A2** A store's lane is checked against the shadow before its bytes are written, so that a
//!   racing write's bytes are still there to compare, under one lock with them.

use std::sync::MutexGuard;

use super::{
    CtaMemory, WarpAccess,
    global::{Buffer, GlobalMemory, make},
    shadow::{Act, Conflict, Info, PAGE_BITS, PAGE_BYTES, Page, Strength, Touch},
    space::{LOCAL_WINDOW, SHARED_BASE, SHARED_WINDOW, resolve},
    watch::{Place, Watch, weak},
};
use crate::{
    exec::registers::{LANES, Mask, lanes},
    ir::Space,
    report::{AccessKind, Finding},
};

/// One element a row, one lane a column.
pub(super) type Row = [u64; LANES];

/// Lanes whose access of `bytes` bytes is aligned and within `size` bytes from `low`.
#[inline(always)]
pub(super) fn within(addresses: &Row, low: u64, size: u64, bytes: u64) -> Mask {
    let Some(last) = size.checked_sub(bytes) else { return 0 };
    let mut inside = 0;
    for (lane, address) in addresses.iter().enumerate() {
        let ok = address & (bytes - 1) == 0 && address.wrapping_sub(low) <= last;
        inside |= Mask::from(ok) << lane;
    }
    inside
}

/// Lanes of a generic access in shared and in local memory; the rest are global.
fn windows(access: &WarpAccess) -> (Mask, Mask) {
    let (mut shared, mut local) = (0, 0);
    for lane in lanes(access.mask) {
        match resolve(Space::Generic, access.addresses[lane]).0 {
            Space::Shared => shared |= 1 << lane,
            Space::Local => local |= 1 << lane,
            Space::Generic | Space::Global | Space::SharedCluster | Space::Param | Space::Const => {
            }
        }
    }
    (shared, local)
}

fn minus(addresses: &Row, window: u64) -> Row {
    std::array::from_fn(|lane| addresses[lane].wrapping_sub(window))
}

impl CtaMemory {
    /// Loads `access.count` elements a lane, zero-extended, into as many rows; a lane that faults
    /// reads 0, and columns of lanes outside the mask keep what they had.
    pub fn load(&mut self, global: &GlobalMemory, access: &WarpAccess, rows: &mut [Row]) {
        self.each_space(access, |memory, space, part| match space {
            Space::Shared => memory.load_shared(part, rows),
            Space::Local => memory.load_local(part, rows),
            Space::Generic | Space::Global | Space::SharedCluster | Space::Param | Space::Const => {
                memory.load_global(global, part, rows);
            }
        });
    }

    /// Stores `access.count` elements a lane.
    pub fn store(&mut self, global: &GlobalMemory, access: &WarpAccess, rows: &[Row]) {
        self.each_space(access, |memory, space, part| match space {
            Space::Shared => memory.store_shared(part, rows),
            Space::Local => memory.store_local(part, rows),
            Space::Generic | Space::Global | Space::SharedCluster | Space::Param | Space::Const => {
                memory.store_global(global, part, rows);
            }
        });
        self.watch.end_release(access.warp, access.mask, access.ordering);
    }

    /// Splits an access by space; the parts' addresses are those in their spaces.
    #[inline(always)]
    pub(super) fn each_space(
        &mut self,
        access: &WarpAccess,
        mut run: impl FnMut(&mut Self, Space, &WarpAccess),
    ) {
        match access.space {
            Space::Generic => {
                let (shared, local) = windows(access);
                for (space, mask, window) in
                    [(Space::Shared, shared, SHARED_WINDOW), (Space::Local, local, LOCAL_WINDOW)]
                {
                    if mask != 0 {
                        let addresses = minus(access.addresses, window);
                        run(
                            self,
                            space,
                            &WarpAccess { mask, space, addresses: &addresses, ..*access },
                        );
                    }
                }
                let mask = access.mask & !shared & !local;
                if mask != 0 {
                    run(self, Space::Global, &WarpAccess { mask, space: Space::Global, ..*access });
                }
            }
            Space::Shared | Space::SharedCluster => {
                run(self, Space::Shared, &WarpAccess { space: Space::Shared, ..*access });
            }
            Space::Global | Space::Local | Space::Param | Space::Const => {
                run(self, access.space, access);
            }
        }
    }

    /// Runs `run` for each buffer that lanes lie in, with those lanes; reports the other lanes.
    #[inline(always)]
    pub(super) fn each_buffer(
        &mut self,
        global: &GlobalMemory,
        access: &WarpAccess,
        kind: AccessKind,
        mut run: impl FnMut(&mut Self, &Buffer, Mask),
    ) -> Mask {
        let bytes = access.bytes();
        let (mut rest, mut faulting) = (access.mask, 0);
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            let address = access.addresses[lane];
            let found = global.find(address, bytes).ok().filter(|_| address & (bytes - 1) == 0);
            if let Some(index) = found {
                let buffer = global.buffer(index);
                let here = within(access.addresses, buffer.base, buffer.size, bytes) & rest;
                rest &= !here;
                if kind == AccessKind::Read || buffer.writable {
                    run(self, buffer, here);
                } else {
                    self.watch.read_only(access, here);
                    faulting |= here;
                }
            } else {
                self.watch.global_fault(global, access, kind, lane);
                rest &= rest - 1;
                faulting |= 1 << lane;
            }
        }
        faulting
    }

    fn load_global(&mut self, global: &GlobalMemory, access: &WarpAccess, rows: &mut [Row]) {
        let faulting =
            self.each_buffer(global, access, AccessKind::Read, |memory, buffer, mask| {
                if memory.watch.options.races && buffer.writable {
                    memory.watch.global_read(buffer, access, mask);
                }
                gather(access, mask, rows, |address, width| buffer.peek(address, width));
            });
        zero(rows, faulting);
    }

    fn store_global(&mut self, global: &GlobalMemory, access: &WarpAccess, rows: &[Row]) {
        self.each_buffer(global, access, AccessKind::Write, |memory, buffer, mask| {
            if memory.watch.options.races {
                memory.watch.global_write(buffer, access, mask, rows);
            } else {
                scatter(access, mask, rows, |address, width, value| {
                    buffer.poke(address, width, value);
                });
            }
        });
    }

    fn load_shared(&mut self, access: &WarpAccess, rows: &mut [Row]) {
        let inside = self.shared_lanes(access, AccessKind::Read);
        zero(rows, access.mask & !inside);
        let bytes = access.bytes() as u32;
        for lane in lanes(inside) {
            let at = access.addresses[lane] as u32 - SHARED_BASE;
            if !self.shared.bytes.written(at, bytes) {
                let place = Place::of(access, Space::Shared, lane);
                self.watch.uninitialised(place, access.addresses[lane], bytes);
            }
        }
        if self.watch.options.races {
            self.shared_read(access, inside);
        }
        let shared = &self.shared.bytes;
        gather(access, inside, rows, |address, width| {
            shared.peek(address as u32 - SHARED_BASE, width)
        });
    }

    fn shared_read(&mut self, access: &WarpAccess, mask: Mask) {
        if access.strong() {
            lanes(mask).for_each(|lane| self.shared_strong(access, lane, Act::Read));
        } else {
            let touches = weak(access, Act::Read);
            let Watch { clocks, conflicts, .. } = &mut self.watch;
            let sight = clocks.sight(access.warp);
            let mut rest = mask;
            while rest != 0 {
                let here = touches.one_page(rest);
                let at = access.addresses[here.trailing_zeros() as usize] as u32 - SHARED_BASE;
                self.shared.page(at).read(&sight, &touches, here, false, conflicts);
                rest &= !here;
            }
        }
        self.watch.settle(access, AccessKind::Read);
    }

    /// The strong access of one lane to shared memory, element by element.
    pub(super) fn shared_strong(&mut self, access: &WarpAccess, lane: usize, act: Act) {
        for element in 0..access.count {
            let address = access.addresses[lane] + u64::from(element * access.width);
            let at = address as u32 - SHARED_BASE;
            let page = self.shared.page(at);
            let touch = strong_touch(access, lane, act, address);
            self.watch.strong(page, access.warp, &touch, access.ordering);
        }
    }

    fn store_shared(&mut self, access: &WarpAccess, rows: &[Row]) {
        let inside = self.shared_lanes(access, AccessKind::Write);
        if !self.watch.options.races {
            let shared = &mut self.shared.bytes;
            scatter(access, inside, rows, |address, width, value| {
                shared.poke(address as u32 - SHARED_BASE, width, value);
            });
            return;
        }
        if access.strong() {
            for lane in lanes(inside) {
                self.shared_strong(access, lane, Act::Write);
                self.shared.store(access, lane, rows);
            }
        } else {
            let touches = weak(access, Act::Write);
            let Watch { clocks, conflicts, .. } = &mut self.watch;
            let sight = clocks.sight(access.warp);
            for lane in lanes(inside) {
                let at = access.addresses[lane] as u32 - SHARED_BASE;
                let before = conflicts.len();
                self.shared.page(at).write(&sight, &touches.lane(lane), conflicts);
                if conflicts.len() > before {
                    let shared = &self.shared.bytes;
                    compare(access, rows, &mut conflicts[before..], |address| {
                        shared.peek(address as u32 - SHARED_BASE, 1)
                    });
                }
                self.shared.store(access, lane, rows);
            }
        }
        self.watch.settle(access, AccessKind::Write);
    }

    /// Lanes of `access` that lie in shared memory; the others of its mask are reported.
    pub(super) fn shared_lanes(&mut self, access: &WarpAccess, kind: AccessKind) -> Mask {
        let (low, size) = (u64::from(SHARED_BASE), u64::from(self.shared.size));
        let inside = within(access.addresses, low, size, access.bytes()) & access.mask;
        for lane in lanes(access.mask & !inside) {
            let place = Place::of(access, Space::Shared, lane);
            self.watch.window_fault(place, access, kind, low, size);
        }
        inside
    }
}

/// The address of the page of an address.
pub(super) fn page_start(address: u64) -> u64 {
    address & !(PAGE_BYTES - 1)
}

pub(super) fn page_offset(address: u64) -> u32 {
    (address & (PAGE_BYTES - 1)) as u32
}

/// The touch of one element at `address`, strong.
pub(super) fn strong_touch(access: &WarpAccess, lane: usize, act: Act, address: u64) -> Touch {
    let strength = Strength::of(access.ordering);
    Touch {
        lane,
        offset: page_offset(address),
        bytes: access.width,
        info: Info::new(access.pc, act, strength, access.width),
    }
}

/// Notes at the conflicts of a store with earlier writes whether it leaves the bytes as they are.
#[cold]
fn compare(
    access: &WarpAccess,
    rows: &[Row],
    conflicts: &mut [Conflict],
    peek: impl Fn(u64) -> u64,
) {
    for conflict in conflicts {
        let (lane, width) = (conflict.lane, u64::from(access.width));
        let start = access.addresses[lane];
        let cell = page_start(start) + u64::from(conflict.offset);
        conflict.same = (cell..cell + u64::from(conflict.bytes)).all(|address| {
            let byte = address.wrapping_sub(start);
            let row = rows.get((byte / width) as usize);
            row.is_some_and(|row| row[lane] >> (byte % width * 8) & 0xff == peek(address))
        });
    }
}

/// Reads every element of the lanes of `mask`.
#[inline(always)]
pub(super) fn gather(
    access: &WarpAccess,
    mask: Mask,
    rows: &mut [Row],
    peek: impl Fn(u64, u32) -> u64,
) {
    for (element, row) in (0..access.count).zip(rows) {
        let skip = u64::from(element * access.width);
        // One loop a width, so that the width is a constant in it.
        let mut run = |width| {
            lanes(mask).for_each(|lane| row[lane] = peek(access.addresses[lane] + skip, width))
        };
        match access.width {
            1 => run(1),
            2 => run(2),
            4 => run(4),
            _ => run(8),
        }
    }
}

/// Writes every element of the lanes of `mask`, lane by lane.
#[inline(always)]
pub(super) fn scatter(
    access: &WarpAccess,
    mask: Mask,
    rows: &[Row],
    mut poke: impl FnMut(u64, u32, u64),
) {
    for lane in lanes(mask) {
        for (element, row) in (0..access.count).zip(rows) {
            let skip = u64::from(element * access.width);
            poke(access.addresses[lane] + skip, access.width, row[lane]);
        }
    }
}

pub(super) fn zero(rows: &mut [Row], mask: Mask) {
    for row in rows {
        lanes(mask).for_each(|lane| row[lane] = 0);
    }
}

type Locked<'a> = MutexGuard<'a, Option<Box<Page>>>;

/// The locked page of the lane before, kept while lanes stay in it.
pub(super) struct Cursor<'a> {
    buffer: &'a Buffer,
    held: Option<(u64, Locked<'a>)>,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(buffer: &'a Buffer) -> Self {
        Self { buffer, held: None }
    }

    #[inline(always)]
    pub(super) fn page(&mut self, address: u64) -> &mut Page {
        let number = address >> PAGE_BITS;
        if self.held.as_ref().is_none_or(|(held, _)| *held != number) {
            // One lock at a time: another worker may hold pages in another order.
            self.held = None;
        }
        let buffer = self.buffer;
        make(&mut self.held.get_or_insert_with(|| (number, buffer.page(address))).1)
    }
}

impl Watch {
    fn global_read(&mut self, buffer: &Buffer, access: &WarpAccess, mask: Mask) {
        let mut cursor = Cursor::new(buffer);
        if access.strong() {
            for lane in lanes(mask) {
                self.global_strong(&mut cursor, access, lane, Act::Read);
            }
            drop(cursor);
            return self.settle(access, AccessKind::Read);
        }
        let touches = weak(access, Act::Read);
        let unsynchronised = !self.options.synchronised;
        let sight = self.clocks.sight(access.warp);
        let mut rest = mask;
        while rest != 0 {
            let here = touches.one_page(rest);
            let page = cursor.page(access.addresses[here.trailing_zeros() as usize]);
            page.read(&sight, &touches, here, unsynchronised, &mut self.conflicts);
            rest &= !here;
        }
        drop(cursor);
        self.settle(access, AccessKind::Read);
    }

    fn global_write(&mut self, buffer: &Buffer, access: &WarpAccess, mask: Mask, rows: &[Row]) {
        let mut cursor = Cursor::new(buffer);
        if access.strong() {
            for lane in lanes(mask) {
                self.global_strong(&mut cursor, access, lane, Act::Write);
                buffer.store(access, lane, rows);
            }
        } else {
            let touches = weak(access, Act::Write);
            let sight = self.clocks.sight(access.warp);
            for lane in lanes(mask) {
                let address = access.addresses[lane];
                let before = self.conflicts.len();
                cursor.page(address).write(&sight, &touches.lane(lane), &mut self.conflicts);
                if self.conflicts.len() > before {
                    let found = &mut self.conflicts[before..];
                    compare(access, rows, found, |address| buffer.peek(address, 1));
                }
                buffer.store(access, lane, rows);
            }
        }
        drop(cursor);
        self.settle(access, AccessKind::Write);
    }

    fn global_strong(&mut self, cursor: &mut Cursor, access: &WarpAccess, lane: usize, act: Act) {
        for element in 0..access.count {
            let address = access.addresses[lane] + u64::from(element * access.width);
            let touch = strong_touch(access, lane, act, address);
            self.strong(cursor.page(address), access.warp, &touch, access.ordering);
        }
    }

    #[cold]
    fn read_only(&mut self, access: &WarpAccess, mask: Mask) {
        for lane in lanes(mask) {
            let at = self.site(Place::of(access, Space::Global, lane));
            self.reports.add(Finding::ReadOnly { address: access.addresses[lane], at });
        }
    }

    #[cold]
    fn global_fault(
        &mut self,
        global: &GlobalMemory,
        access: &WarpAccess,
        kind: AccessKind,
        lane: usize,
    ) {
        let place = Place::of(access, access.space, lane);
        let (address, bytes) = (access.addresses[lane], access.bytes());
        match global.find(address, bytes) {
            Ok(_) => self.misaligned(place, kind, address, bytes as u32),
            Err(outside) => {
                let reason = outside.reason(address, address.saturating_add(bytes - 1));
                self.outside(place, kind, address, bytes as u32, reason);
            }
        }
    }

    /// Reports a lane outside a window of `size` bytes from `low`, or misaligned in it.
    #[cold]
    pub(super) fn window_fault(
        &mut self,
        place: Place,
        access: &WarpAccess,
        kind: AccessKind,
        low: u64,
        size: u64,
    ) {
        let (address, bytes) = (access.addresses[place.lane], access.bytes());
        if address >= low && address - low < size && size - (address - low) >= bytes {
            self.misaligned(place, kind, address, bytes as u32);
        } else {
            let reason = if address < low && place.space == Space::Shared {
                format!("before the {size} bytes of shared memory at {low:#x}")
            } else {
                format!("outside the {size} bytes of {} memory", place.space)
            };
            self.outside(place, kind, address, bytes as u32, reason);
        }
    }
}
