//! Shared memory: what was stored at an address is what is loaded there.
//!
//! # Idea
//! Addresses are numbers, so a store, a barrier and a load are a relocation. Threads run in step
//! here and in no order on hardware; so every byte knows who wrote and read it since the last
//! barrier, and an access that is not ordered behind another's ends the walk.
//! # Invariants
//! - **S1** A load is ordered behind the store it reads: the same thread's, or a barrier's.
//! - **S2** A store is ordered behind what others read or wrote there, or writes the same value.
//! # Held by
//! S1 and S2: [`Shared::read`], [`Shared::write`]; `tests/walk/races.rs`.

mod copies;

use bitstable_ptx::ir::{Barrier, Instruction};
use smallvec::SmallVec;

use super::{Stop, Truth, Walk, global::Pointer};
use crate::{
    each::Each,
    term::{Atom, Mark, View},
    value::{Value, parts},
};
pub(super) use copies::Copies;

mod fork;

const PAGE: usize = 256;
/// More than any GPU has.
const MOST_SHARED: u64 = 1 << 20;
/// Barriers of a CTA are numbered up to here.
const MOST_BARRIERS: u64 = 16;
/// Stores that are remembered.
const MOST_ENTRIES: usize = 1 << 22;

/// Who accessed a byte: a thread by its number, a warp's threads together, or more.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Party {
    Nobody,
    Thread(u32),
    Warp(u32),
    Several,
}

impl Party {
    /// This party and a thread.
    fn and(self, thread: u32) -> Self {
        match self {
            Party::Nobody => Party::Thread(thread),
            Party::Thread(other) if other == thread => self,
            Party::Thread(other) if other / 32 == thread / 32 => Party::Warp(thread / 32),
            Party::Warp(warp) if warp == thread / 32 => self,
            Party::Thread(_) | Party::Warp(_) | Party::Several => Party::Several,
        }
    }
}

/// A stored part: numbers stay numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Cell {
    Bits(u64),
    Atom(Atom),
    /// On its way from global memory: whoever reads it races with the copy.
    Copied,
}

/// A store of one part by one thread.
#[derive(Clone, Copy, Debug)]
struct Entry {
    cell: Cell,
    bytes: u8,
    writer: Party,
    written: Moment,
    reader: Party,
    read: Moment,
}

/// The barriers that are over: the CTA's, and the warp's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Moment {
    cta: u32,
    warp: u32,
}

/// Which entry a byte belongs to, and which of its bytes it is.
#[derive(Clone, Copy, Default)]
struct Byte {
    /// From 1; 0: nothing was stored.
    entry: u32,
    at: u8,
}

/// What was read: numbers of bytes, and what they hold; `None` where nothing was stored.
pub(super) type Runs = SmallVec<[(u8, Option<Cell>); 1]>;

#[derive(Clone)]
pub(super) struct Shared {
    pages: Vec<Option<Box<[Byte; PAGE]>>>,
    entries: Vec<Entry>,
    /// Entries before this one were counted: what is stored over them is a new entry.
    counted: usize,
    cta: u32,
    warps: Vec<u32>,
}

impl Shared {
    pub fn new(threads: usize) -> Self {
        let entries = Vec::new();
        let warps = vec![0; threads.div_ceil(32)];
        Self { pages: Vec::new(), entries, counted: 0, cta: 0, warps }
    }

    /// Stores so far.
    pub fn entries(&mut self) -> usize {
        self.counted = self.entries.len();
        self.counted
    }

    /// What was stored since is not known: another iteration may have stored it.
    pub fn forget(&mut self, since: usize) {
        for entry in &mut self.entries[since..] {
            entry.cell = Cell::Atom(Atom::UNDEFINED);
        }
    }

    pub fn epoch(&self) -> u32 {
        self.cta
    }

    fn now(&self, thread: u32) -> Moment {
        Moment { cta: self.cta, warp: self.warps[thread as usize / 32] }
    }

    fn byte(&self, address: u64) -> Byte {
        let page = self.pages.get(address as usize / PAGE).and_then(Option::as_ref);
        page.map_or(Byte::default(), |page| page[address as usize % PAGE])
    }

    fn set(&mut self, address: u64, byte: Byte) {
        let page = address as usize / PAGE;
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let page = self.pages[page].get_or_insert_with(|| Box::new([Byte::default(); PAGE]));
        page[address as usize % PAGE] = byte;
    }

    /// Whether what `party` did then is ordered before what `thread` does now.
    fn ordered(&self, party: Party, then: Moment, thread: u32) -> bool {
        let warp = match party {
            Party::Nobody => return true,
            Party::Thread(other) if other == thread => return true,
            Party::Thread(other) => Some(other / 32),
            Party::Warp(warp) => Some(warp),
            Party::Several => None,
        };
        then.cta < self.cta
            || warp == Some(thread / 32) && then.warp < self.warps[thread as usize / 32]
    }

    /// The parts of `bytes` bytes at an address.
    pub fn read(&mut self, address: u64, bytes: u8, thread: u32) -> Result<Runs, &'static str> {
        let now = self.now(thread);
        let (mut out, mut at) = (Runs::new(), 0);
        while at < bytes {
            let byte = self.byte(address + u64::from(at));
            let Some(index) = (byte.entry as usize).checked_sub(1) else {
                out.push((1, None));
                at += 1;
                continue;
            };
            let entry = self.entries[index];
            if !self.ordered(entry.writer, entry.written, thread) {
                return Err("a load from shared memory races with a store");
            }
            if entry.cell == Cell::Copied {
                return Err("a load from shared memory that a copy may still write");
            }
            let mut run = 1;
            while at + run < bytes && byte.at + run < entry.bytes {
                let next = self.byte(address + u64::from(at + run));
                if next.entry != byte.entry || next.at != byte.at + run {
                    break;
                }
                run += 1;
            }
            let known = &mut self.entries[index];
            // Who read before a barrier that is over no longer matters.
            let earlier = known.read.cta < now.cta;
            known.reader = if earlier { Party::Thread(thread) } else { known.reader.and(thread) };
            known.read = now;
            out.push((run, Some(part(entry.cell, entry.bytes, byte.at, run))));
            at += run;
        }
        Ok(out)
    }

    /// What was copied to a place is there, for the thread that waited for it.
    fn arrive(
        &mut self,
        address: u64,
        cell: Cell,
        bytes: u8,
        thread: u32,
    ) -> Result<(), &'static str> {
        let now = self.now(thread);
        // Nobody stored there since: only the copy's own entry says that it is on its way.
        let Some(index) = (self.byte(address).entry as usize).checked_sub(1) else {
            return Err("a copy to nowhere");
        };
        let entry = &mut self.entries[index];
        if entry.cell != Cell::Copied || entry.bytes != bytes {
            return Err("a copy whose place is not known any more");
        }
        (entry.cell, entry.written) = (cell, now);
        Ok(())
    }

    /// The entry whose bytes are all at this place, and nothing else there: it can be used again.
    fn replaced(&self, address: u64, bytes: u8) -> Option<usize> {
        let first = self.byte(address).entry;
        let index = (first as usize).checked_sub(1)?;
        let whole = index >= self.counted
            && self.entries[index].bytes == bytes
            && (0..bytes).all(|at| {
                let byte = self.byte(address + u64::from(at));
                byte.entry == first && byte.at == at
            });
        whole.then_some(index)
    }

    pub fn write(
        &mut self,
        address: u64,
        cell: Cell,
        bytes: u8,
        thread: u32,
    ) -> Result<(), &'static str> {
        let now = self.now(thread);
        let mut same = true;
        for at in 0..bytes {
            let byte = self.byte(address + u64::from(at));
            let Some(index) = (byte.entry as usize).checked_sub(1) else {
                same = false;
                continue;
            };
            let entry = self.entries[index];
            if entry.cell == Cell::Copied {
                return Err("a store to shared memory that a copy may still write");
            }
            let equal = entry.cell == cell && entry.bytes == bytes && byte.at == at;
            same &= equal;
            if equal {
                continue;
            }
            if !self.ordered(entry.writer, entry.written, thread) {
                return Err("two stores to shared memory race");
            }
            if !self.ordered(entry.reader, entry.read, thread) {
                return Err("a store to shared memory races with a load");
            }
        }
        if same {
            let index = self.byte(address).entry as usize - 1;
            let entry = &mut self.entries[index];
            let earlier = entry.written.cta < now.cta;
            entry.writer = if earlier { Party::Thread(thread) } else { entry.writer.and(thread) };
            entry.written = now;
            return Ok(());
        }
        let fresh = Entry {
            cell,
            bytes,
            writer: Party::Thread(thread),
            written: now,
            reader: Party::Nobody,
            read: Moment::default(),
        };
        if let Some(index) = self.replaced(address, bytes) {
            self.entries[index] = fresh;
            return Ok(());
        }
        if self.entries.len() == MOST_ENTRIES {
            return Err("more stores to shared memory than are followed");
        }
        self.entries.push(fresh);
        let entry = self.entries.len() as u32;
        for at in 0..bytes {
            self.set(address + u64::from(at), Byte { entry, at });
        }
        Ok(())
    }
}

/// `run` bytes from byte `at` of a stored part.
fn part(cell: Cell, bytes: u8, at: u8, run: u8) -> Cell {
    if at == 0 && run == bytes {
        return cell;
    }
    match cell {
        Cell::Copied => cell,
        Cell::Bits(bits) => {
            let mask = if run >= 8 { u64::MAX } else { (1 << (8 * u32::from(run))) - 1 };
            Cell::Bits(bits >> (8 * u32::from(at)) & mask)
        }
        Cell::Atom(atom) if atom.is_undefined() || atom.mark.has(Mark::FLIPPED) => {
            Cell::Atom(Atom::UNDEFINED)
        }
        Cell::Atom(atom) => Cell::Atom(match atom.view {
            View::Whole => atom.slice(bytes, at),
            View::Load | View::Slice => Atom { offset: atom.offset + i32::from(at), ..atom },
        }),
    }
}

impl<'m> Walk<'m> {
    /// Numbers of an address in shared memory.
    pub(super) fn shared_address(&self, address: &Pointer) -> Result<Each<u64>, Stop> {
        let Value::Bits(numbers) = &address.value else {
            return self.stop("an address in shared memory that is no number");
        };
        if !numbers.all(|address| address < MOST_SHARED) {
            return self.stop("an address beyond shared memory");
        }
        Ok(numbers.clone())
    }

    pub(super) fn shared_load(
        &mut self,
        address: &Pointer,
        bytes: u8,
        count: usize,
        under: Option<&Value>,
    ) -> Result<Vec<Value>, Stop> {
        let here = self.known(under, "a load from shared memory")?;
        let addresses = if here.all(|here| !here) {
            return Ok(vec![Value::Undefined; count]);
        } else {
            self.shared_address(address)?
        };
        let mut values = Vec::with_capacity(count);
        for number in 0..count as u64 {
            let start = number * u64::from(bytes);
            let mut rows = Vec::with_capacity(self.threads);
            for thread in 0..self.threads {
                if !here.at(thread) {
                    rows.push(None);
                    continue;
                }
                match self.shared.read(addresses.at(thread) + start, bytes, thread as u32) {
                    Ok(cells) => rows.push(Some(cells)),
                    Err(race) => return self.stop(race),
                }
            }
            values.push(self.gathered(&rows, bytes));
        }
        Ok(values)
    }

    /// One value of what each thread read.
    pub(super) fn gathered(&mut self, rows: &[Option<Runs>], bytes: u8) -> Value {
        let runs = |cells: &Runs| cells.iter().map(|(run, _)| *run).min();
        let unit = rows.iter().flatten().filter_map(runs).min().unwrap_or(bytes);
        let unit = if bytes.is_multiple_of(unit) { unit } else { 1 };
        let mut each = Vec::with_capacity(usize::from(bytes / unit));
        for start in (0..bytes).step_by(usize::from(unit)) {
            let cells: Vec<Option<Cell>> = rows
                .iter()
                .map(|row| row.as_ref().and_then(|row| piece(row, start, unit)))
                .collect();
            let numbers: Option<Vec<u64>> = cells
                .iter()
                .zip(rows)
                .map(|(cell, row)| match (cell, row) {
                    (Some(Cell::Bits(bits)), _) => Some(*bits),
                    (Some(Cell::Atom(_) | Cell::Copied) | None, _) => None,
                })
                .collect();
            each.push(match numbers {
                Some(numbers) => Value::Bits(Each::gathered(numbers.into())),
                None => {
                    let algebra = &mut self.world.algebra;
                    let atoms = cells.iter().map(|cell| match cell {
                        Some(Cell::Bits(bits)) => algebra.constant(*bits, unit),
                        Some(Cell::Atom(atom)) => *atom,
                        Some(Cell::Copied) | None => Atom::UNDEFINED,
                    });
                    Value::Atoms(Each::gathered(atoms.collect()), unit)
                }
            });
        }
        parts(each, unit)
    }

    pub(super) fn shared_store(
        &mut self,
        address: &Pointer,
        values: &[Value],
        bytes: u8,
        under: Option<&Value>,
    ) -> Result<(), Stop> {
        let truths = self.truths(under);
        if truths.all(|truth| truth == Truth::No) {
            return Ok(());
        }
        let here = self.known(under, "a store to shared memory")?;
        let addresses = self.shared_address(address)?;
        for (number, value) in values.iter().enumerate() {
            let start = number as u64 * u64::from(bytes);
            self.shared_element(&addresses, (start, bytes), value, &here)?;
        }
        Ok(())
    }

    pub(super) fn shared_element(
        &mut self,
        addresses: &Each<u64>,
        (start, bytes): (u64, u8),
        value: &Value,
        here: &Each<bool>,
    ) -> Result<(), Stop> {
        if let Value::Parts(each, size) = value {
            for (at, part) in each.iter().enumerate() {
                let start = start + at as u64 * u64::from(*size);
                self.shared_element(addresses, (start, *size), part, here)?;
            }
            return Ok(());
        }
        let threads = self.threads;
        let cell: Box<dyn Fn(usize) -> Cell> = match value {
            Value::Bits(bits) => {
                let bits = bits.clone();
                Box::new(move |thread| Cell::Bits(bits.at(thread)))
            }
            Value::Undefined | Value::Linear(_) | Value::Atoms(..) | Value::Parts(..) => {
                let atoms = value.atoms(&mut self.world.algebra, bytes, threads);
                Box::new(move |thread| Cell::Atom(atoms.at(thread)))
            }
        };
        for thread in 0..threads {
            if !here.at(thread) {
                continue;
            }
            let address = addresses.at(thread) + start;
            if let Err(race) = self.shared.write(address, cell(thread), bytes, thread as u32) {
                return self.stop(race);
            }
        }
        Ok(())
    }

    pub(super) fn barrier(
        &mut self,
        instruction: &'m Instruction,
        kind: Barrier,
    ) -> Result<(), Stop> {
        if kind != Barrier::Sync {
            return self.stop("a barrier that not all threads wait at");
        }
        let Value::Bits(Each::All(0..MOST_BARRIERS)) = self.source(instruction, 0)? else {
            return self.stop("a barrier whose number is not known, or is none");
        };
        let threads = match self.source(instruction, 1) {
            Ok(value) => {
                let Value::Bits(Each::All(threads)) = value else {
                    return self.stop("a barrier of a number of threads that is not known");
                };
                threads
            }
            Err(_) => self.threads as u64,
        };
        let under = self.under(instruction);
        let all = self.truths(under.as_ref()).all(|truth| truth == Truth::Yes);
        if threads != self.threads as u64 || !all {
            return self.stop("a barrier that not all threads wait at");
        }
        self.shared.cta += 1;
        Ok(())
    }

    pub(super) fn warp_barrier(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let members = self.source(instruction, 0)?;
        let under = self.under(instruction);
        let here = self.known(under.as_ref(), "a barrier")?;
        for warp in 0..self.shared.warps.len() {
            let lanes = warp * 32..((warp + 1) * 32).min(self.threads);
            let full = lanes.clone().all(|thread| here.at(thread));
            let members = match &members {
                Value::Bits(bits) => bits.at(lanes.start) as u32 == u32::MAX,
                Value::Undefined | Value::Linear(_) | Value::Atoms(..) | Value::Parts(..) => false,
            };
            if full && members {
                self.shared.warps[warp] += 1;
            }
        }
        Ok(())
    }
}

/// `bytes` bytes from `start` of what was read.
fn piece(cells: &[(u8, Option<Cell>)], start: u8, bytes: u8) -> Option<Cell> {
    let mut at = 0;
    for (run, cell) in cells {
        if at <= start && start + bytes <= at + run {
            return cell.map(|cell| part(cell, *run, start - at, bytes));
        }
        at += run;
    }
    None
}
