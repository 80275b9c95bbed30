//! Cells, and the pages they lie in.
//!
//! # Invariants
//! - **P1** Cells are made at the first access; a page nobody touched has none.
//! - **P2** A cell with `side == MANY` was read by two CTAs that nothing orders, `read` and (in the
//!   place of the write) `write`, and never written: every write of it is a race, and no read.

use super::{
    super::clock::{Epoch, Sight},
    Act, Conflict, Crowd, Info, Record, Release, Touch, Touches,
};
use crate::exec::registers::{Mask, lanes};

pub(in crate::memory) const PAGE_BITS: u32 = 10;
pub(in crate::memory) const PAGE_BYTES: u64 = 1 << PAGE_BITS;
/// Logarithm of the largest granule.
const LARGEST: u32 = 4;

/// No crowd.
const ALONE: u32 = 0;
/// See P2.
const MANY: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Cell {
    write: Epoch,
    /// Epoch of lane 0 at the clock of the lanes that read.
    read: Epoch,
    write_info: Info,
    read_info: Info,
    read_mask: Mask,
    /// [`ALONE`], [`MANY`], or one more than the number of a crowd, which then has every record.
    side: u32,
}

impl Cell {
    const EMPTY: Self = Self {
        write: Epoch::NONE,
        read: Epoch::NONE,
        write_info: Info::NONE,
        read_info: Info::NONE,
        read_mask: 0,
        side: ALONE,
    };

    fn written(epoch: Epoch, info: Info) -> Self {
        Self { write: epoch, write_info: info, ..Self::EMPTY }
    }

    #[inline(always)]
    fn flying(&self) -> bool {
        self.write_info.act() == Act::Flight
    }

    fn last_write(&self) -> Record {
        Record { epoch: self.write, info: self.write_info }
    }
}

/// The shadow of [`PAGE_BYTES`] bytes.
#[derive(Debug, Default)]
pub(in crate::memory) struct Page {
    /// Logarithm of the granule.
    granule: u32,
    cells: Vec<Cell>,
    crowds: Vec<Crowd>,
    free: Vec<u32>,
}

impl Page {
    /// Cells of the access, made or split as it needs.
    #[inline(always)]
    fn cells(&mut self, touch: &Touch) -> std::ops::Range<usize> {
        self.prepare(touch.bytes);
        let first = (touch.offset >> self.granule) as usize;
        first..first + (touch.bytes >> self.granule) as usize
    }

    /// Makes or splits the cells so that accesses of `bytes` bytes cover whole ones.
    #[inline(always)]
    fn prepare(&mut self, bytes: u32) {
        let needed = bytes.trailing_zeros().min(LARGEST);
        if needed < self.granule || self.cells.is_empty() {
            self.refine(needed);
        }
    }

    #[cold]
    fn refine(&mut self, granule: u32) {
        if self.cells.is_empty() {
            self.granule = granule;
            self.cells = vec![Cell::EMPTY; (PAGE_BYTES >> granule) as usize];
            return;
        }
        let parts = 1 << (self.granule - granule);
        let old = std::mem::take(&mut self.cells);
        self.cells.reserve_exact(old.len() * parts);
        for cell in old {
            for part in 0..parts {
                let mut copy = cell;
                if part > 0 && cell.side != ALONE && cell.side != MANY {
                    let crowd = self.crowds[cell.side as usize - 1].clone();
                    copy.side = self.seat(crowd);
                }
                self.cells.push(copy);
            }
        }
        self.granule = granule;
    }

    fn seat(&mut self, crowd: Crowd) -> u32 {
        match self.free.pop() {
            Some(side) => {
                self.crowds[side as usize - 1] = crowd;
                side
            }
            None => {
                self.crowds.push(crowd);
                self.crowds.len() as u32
            }
        }
    }

    fn dismiss(&mut self, side: u32) {
        if side != ALONE && side != MANY {
            self.crowds[side as usize - 1] = Crowd::default();
            self.free.push(side);
        }
    }

    fn conflict(&self, cell: usize, lane: usize, earlier: Record) -> Conflict {
        let (offset, bytes) = ((cell as u32) << self.granule, 1 << self.granule);
        Conflict { earlier, lane, same: false, offset, bytes }
    }

    /// A weak read by the lanes of `mask`, all in this page. `unsynchronised`: no CTA of the launch
    /// ever learns of another.
    #[inline]
    pub(in crate::memory) fn read(
        &mut self,
        sight: &Sight,
        touches: &Touches,
        mask: Mask,
        unsynchronised: bool,
        conflicts: &mut Vec<Conflict>,
    ) {
        self.prepare(touches.bytes);
        let (granule, many) = (self.granule, (touches.bytes >> self.granule) as usize);
        for lane in lanes(mask) {
            let first = (touches.addresses[lane] & (PAGE_BYTES - 1)) as usize >> granule;
            let key = sight.key(lane);
            for at in first..first + many {
                let Some(cell) = self.cells.get_mut(at) else { break };
                let unread = cell.read_mask == 0 || sight.settled(cell.read);
                let clean = cell.write.is_none() || sight.settled(cell.write);
                if cell.side == ALONE && clean && !cell.flying() && (cell.read == key || unread) {
                    if cell.read == key {
                        cell.read_mask |= 1 << lane;
                    } else {
                        cell.read = key;
                        cell.read_mask = 1 << lane;
                        cell.read_info = touches.info;
                    }
                } else if cell.side != MANY {
                    self.read_cell(at, sight, &touches.lane(lane), unsynchronised, conflicts);
                }
            }
        }
    }

    /// A read of one cell, in every case but [`MANY`].
    #[inline(never)]
    fn read_cell(
        &mut self,
        at: usize,
        sight: &Sight,
        touch: &Touch,
        unsynchronised: bool,
        conflicts: &mut Vec<Conflict>,
    ) {
        let cell = &mut self.cells[at];
        if cell.side != ALONE {
            return self.read_crowd(at, sight, touch, unsynchronised, conflicts);
        }
        let key = sight.key(touch.lane);
        let write = cell.last_write();
        let racing = !write.epoch.is_none() && unordered(sight, write, touch.lane);
        if racing {
            conflicts.push(self.conflict(at, touch.lane, write));
        }
        let cell = &mut self.cells[at];
        if cell.read == key {
            cell.read_mask |= 1 << touch.lane;
            return;
        }
        cell.read_mask &= !own_bit(sight, cell.read, touch.lane);
        if cell.read_mask == 0 || sight.unordered(cell.read, cell.read_mask, touch.lane).is_none() {
            cell.read = key;
            cell.read_info = touch.info;
            cell.read_mask = 1 << touch.lane;
        } else {
            self.read_crowd(at, sight, touch, unsynchronised, conflicts);
        }
    }

    fn read_crowd(
        &mut self,
        at: usize,
        sight: &Sight,
        touch: &Touch,
        unsynchronised: bool,
        conflicts: &mut Vec<Conflict>,
    ) {
        if unsynchronised && self.turn_many(at, sight, touch) {
            return;
        }
        let side = self.promote(at);
        let found = self.crowds[side as usize - 1].read(sight, touch);
        conflicts.extend(found.map(|earlier| self.conflict(at, touch.lane, earlier)));
    }

    /// Reaches the state of P2 if the readers so far are of another CTA.
    fn turn_many(&mut self, at: usize, sight: &Sight, touch: &Touch) -> bool {
        let cell = self.cells[at];
        let (first, info, mask) = match cell.side {
            ALONE => (cell.read, cell.read_info, cell.read_mask),
            side => match self.crowds[side as usize - 1].only_reads() {
                Some(reads) => (reads.key, reads.info, reads.mask),
                None => return false,
            },
        };
        let written = cell.side == ALONE && !cell.write.is_none();
        if first.cta() == sight.cta || written {
            return false;
        }
        self.dismiss(cell.side);
        self.cells[at] = Cell {
            write: sight.key(touch.lane).lane(touch.lane),
            write_info: touch.info,
            read: first,
            read_info: info,
            read_mask: mask,
            side: MANY,
        };
        true
    }

    /// Moves a cell's records to a crowd; its number, from 1.
    fn promote(&mut self, at: usize) -> u32 {
        let cell = self.cells[at];
        match cell.side {
            ALONE => {
                let mut crowd = Crowd::default();
                if !cell.write.is_none() {
                    crowd.write = Some(cell.last_write());
                }
                if cell.read_mask != 0 {
                    crowd.add_reads(cell.read, cell.read_mask, cell.read_info);
                }
                let side = self.seat(crowd);
                self.cells[at] = Cell { side, ..Cell::EMPTY };
                side
            }
            MANY => {
                let mut crowd = Crowd::default();
                crowd.add_reads(cell.read, cell.read_mask, cell.read_info);
                let second = cell.write.thread() % 32;
                crowd.add_reads(cell.write.back(second), 1 << second, cell.write_info);
                let side = self.seat(crowd);
                self.cells[at] = Cell { side, ..Cell::EMPTY };
                side
            }
            side => side,
        }
    }

    /// A weak write of one lane, or the beginning of a flight.
    #[inline]
    pub(in crate::memory) fn write(
        &mut self,
        sight: &Sight,
        touch: &Touch,
        conflicts: &mut Vec<Conflict>,
    ) {
        let epoch = sight.key(touch.lane).lane(touch.lane);
        for at in self.cells(touch) {
            let cell = &self.cells[at];
            let unread = cell.read_mask == 0 || sight.settled(cell.read);
            let clean = cell.write.is_none() || cell.write == epoch || sight.settled(cell.write);
            if !(cell.side == ALONE && clean && !cell.flying() && unread) {
                self.check_write(at, sight, touch, conflicts);
            }
            self.cells[at] = Cell::written(epoch, touch.info);
        }
    }

    #[inline(never)]
    fn check_write(
        &mut self,
        at: usize,
        sight: &Sight,
        touch: &Touch,
        conflicts: &mut Vec<Conflict>,
    ) {
        let cell = self.cells[at];
        if cell.side != ALONE {
            return self.write_crowd(at, sight, touch, conflicts);
        }
        let write = cell.last_write();
        if !write.epoch.is_none() && unordered(sight, write, touch.lane) {
            conflicts.push(self.conflict(at, touch.lane, write));
        }
        if cell.read_mask != 0
            && let Some(lane) = sight.unordered(cell.read, cell.read_mask, touch.lane)
        {
            let earlier = Record { epoch: cell.read.lane(lane), info: cell.read_info };
            conflicts.push(self.conflict(at, touch.lane, earlier));
        }
    }

    /// Checks a weak write against a cell's crowd, and sends the crowd home.
    fn write_crowd(
        &mut self,
        at: usize,
        sight: &Sight,
        touch: &Touch,
        conflicts: &mut Vec<Conflict>,
    ) {
        let side = self.promote(at);
        let found = self.crowds[side as usize - 1].check_write(sight, touch);
        conflicts.extend(found.map(|earlier| self.conflict(at, touch.lane, earlier)));
        self.dismiss(side);
    }

    /// A strong access of any kind.
    pub(in crate::memory) fn strong(
        &mut self,
        sight: &Sight,
        touch: &Touch,
        conflicts: &mut Vec<Conflict>,
    ) {
        for at in self.cells(touch) {
            if self.cells[at].side == MANY && !touch.info.writes() {
                continue;
            }
            let side = self.promote(at);
            let found = self.crowds[side as usize - 1].strong(sight, touch);
            conflicts.extend(found.map(|earlier| self.conflict(at, touch.lane, earlier)));
        }
    }

    /// The crowd of an access's first cell, made if there is none.
    pub(in crate::memory) fn crowd(&mut self, touch: &Touch) -> &mut Crowd {
        let first = self.cells(touch).start;
        let side = self.promote(first);
        &mut self.crowds[side as usize - 1]
    }

    /// The crowds of all cells of a strong access.
    pub(in crate::memory) fn each_crowd(&mut self, touch: &Touch, mut run: impl FnMut(&mut Crowd)) {
        for at in self.cells(touch) {
            let side = self.promote(at);
            run(&mut self.crowds[side as usize - 1]);
        }
    }

    /// What the value of a strong access releases: nothing where a part of it was overwritten.
    pub(in crate::memory) fn released(&mut self, touch: &Touch) -> Option<&Release> {
        let cells = self.cells(touch);
        let mut released = cells.map(|at| match self.cells[at].side {
            ALONE | MANY => None,
            side => self.crowds[side as usize - 1].released(),
        });
        let first = released.next()??;
        released.all(|other| other.is_some()).then_some(first)
    }

    /// A flight ends: from now the bytes are written, by `epoch`.
    pub(in crate::memory) fn land(&mut self, touch: &Touch, epoch: Epoch) {
        for at in self.cells(touch) {
            self.dismiss(self.cells[at].side);
            self.cells[at] = Cell::written(epoch, touch.info);
        }
    }
}

/// The bit of `lane` if `key` is of its own warp: its earlier read speaks no more.
#[inline(always)]
pub(super) fn own_bit(sight: &Sight, key: Epoch, lane: usize) -> Mask {
    if key.cta() == sight.cta && key.thread() / 32 == sight.warp { 1 << lane } else { 0 }
}

#[inline(always)]
pub(super) fn unordered(sight: &Sight, write: Record, lane: usize) -> bool {
    !sight.ordered(write.epoch, lane) || write.info.act() == Act::Flight
}
