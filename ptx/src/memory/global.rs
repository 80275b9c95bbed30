//! Global memory: the buffers of a launch, the host's own or ours.
//!
//! # Idea
//! A global address is the host's address. A buffer is a range of them; whatever lies in no buffer
//! is out of bounds. All access goes through relaxed atomics, so that a kernel's race between CTAs
//! on several host threads is a finding and not undefined behaviour here.
//! # Invariants
//! - **G1** Buffers are disjoint: views of one array that overlap are one buffer.
//! - **G2** Shadow pages are made when a launch with races on first touches their buffer, each
//!   behind its own lock; a read-only buffer has none.
//! # Not here
//! Checks of single accesses (`access.rs`); shared memory (`shared.rs`).

use std::sync::{
    Mutex, MutexGuard, OnceLock, PoisonError,
    atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering::Relaxed},
};

use super::{
    WarpAccess,
    access::Row,
    shadow::{PAGE_BITS, Page},
};

/// The buffers that kernels of one program, or of one stream, see. It outlives launches.
#[derive(Default)]
pub struct GlobalMemory {
    /// Sorted by address.
    pub(super) buffers: Vec<Buffer>,
    owned: Vec<Box<[u128]>>,
}

pub(super) struct Buffer {
    pub(super) base: u64,
    pub(super) size: u64,
    start: *mut u8,
    pub(super) writable: bool,
    pub(super) name: String,
    pages: OnceLock<Box<[LockedPage]>>,
}

type LockedPage = Mutex<Option<Box<Page>>>;

// SAFETY: `start` points to bytes that `add_host`'s caller, or `owned`, keeps alive; they are only
// accessed by relaxed atomics.
unsafe impl Send for Buffer {}
// SAFETY: as above.
unsafe impl Sync for Buffer {}

impl GlobalMemory {
    /// Adds a buffer of the host; its global address is its host address. Overlapping buffers
    /// become one, writable if one of them is.
    ///
    /// # Safety
    /// The bytes stay valid, and nobody else accesses them while a launch runs, as long as this
    /// memory lives or until [`clear`](Self::clear). They may be written only if `writable`.
    pub unsafe fn add_host(&mut self, start: *mut u8, bytes: usize, writable: bool, name: &str) {
        if bytes == 0 || start.is_null() {
            return;
        }
        let mut new = Buffer {
            base: start as u64,
            size: bytes as u64,
            start,
            writable,
            name: name.to_owned(),
            pages: OnceLock::new(),
        };
        self.buffers.retain_mut(|old| {
            let apart = old.base >= new.base + new.size || new.base >= old.base + old.size;
            if !apart {
                new.unite(old);
            }
            apart
        });
        let at = self.buffers.partition_point(|buffer| buffer.base < new.base);
        self.buffers.insert(at, new);
    }

    /// Adds a buffer of ours with these bytes; its address, a multiple of `align`.
    pub fn add_owned(&mut self, bytes: &[u8], align: u64, name: &str) -> u64 {
        let align = align.next_power_of_two().max(16);
        let words = (bytes.len() as u64 + align).div_ceil(16) as usize;
        self.owned.push(vec![0; words].into_boxed_slice());
        let Some(store) = self.owned.last_mut() else { return 0 };
        let start = store.as_mut_ptr().cast::<u8>();
        let skip = (start as u64).next_multiple_of(align) - start as u64;
        // SAFETY: the store holds `align` bytes more than `bytes`, and `skip < align`.
        let start = unsafe { start.add(skip as usize) };
        // SAFETY: as above; the two do not overlap, the store being new.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), start, bytes.len()) };
        // SAFETY: the store lives as long as `self` and nobody else has it.
        unsafe { self.add_host(start, bytes.len(), true, name) };
        start as u64
    }

    /// Forgets every buffer.
    pub fn clear(&mut self) {
        self.buffers.clear();
        self.owned.clear();
    }

    /// Everything of earlier launches happens before everything to come.
    pub fn begin_launch(&mut self) {
        for buffer in &mut self.buffers {
            buffer.pages = OnceLock::new();
        }
    }

    /// The bytes from `address` to the end of its buffer; `None` outside every buffer.
    pub fn bytes(&self, address: u64) -> Option<Vec<u8>> {
        let buffer = self.buffers.get(self.find(address, 1).ok()?)?;
        let rest = buffer.base + buffer.size - address;
        Some((0..rest).map(|at| buffer.peek(address + at, 1) as u8).collect())
    }

    pub(super) fn buffer(&self, index: usize) -> &Buffer {
        &self.buffers[index]
    }

    /// The buffer that holds all of an access, or why none does.
    pub(super) fn find(&self, address: u64, bytes: u64) -> Result<usize, Outside<'_>> {
        let after = self.buffers.partition_point(|buffer| buffer.base <= address);
        let before = after.checked_sub(1);
        if let Some(index) = before {
            let buffer = &self.buffers[index];
            if address - buffer.base < buffer.size && buffer.size - (address - buffer.base) >= bytes
            {
                return Ok(index);
            }
        }
        Err(Outside {
            below: before.map(|index| &self.buffers[index]),
            above: self.buffers.get(after),
        })
    }
}

/// An address in no buffer, with its neighbours.
pub(super) struct Outside<'a> {
    below: Option<&'a Buffer>,
    above: Option<&'a Buffer>,
}

impl Outside<'_> {
    /// Why nothing holds the bytes from `first` to `last`; `first` was looked for.
    pub(super) fn reason(&self, first: u64, last: u64) -> String {
        if first < 0x1000 {
            return "a null pointer".to_owned();
        }
        let below =
            self.below.map(|buffer| (last.saturating_sub(buffer.base + buffer.size), buffer));
        let above = self.above.map(|buffer| (buffer.base - first, buffer));
        match (below, above) {
            (Some((past, buffer)), above) if above.is_none_or(|(before, _)| past <= before) => {
                format!("{past} bytes past the end of {} of {} bytes", buffer.name, buffer.size)
            }
            (_, Some((before, buffer))) => {
                format!("{before} bytes before {} of {} bytes", buffer.name, buffer.size)
            }
            (_, None) => "no buffer is there".to_owned(),
        }
    }
}

impl Buffer {
    /// Becomes the union with `other`, which it overlaps.
    fn unite(&mut self, other: &Buffer) {
        let end = (self.base + self.size).max(other.base + other.size);
        if other.base < self.base {
            self.base = other.base;
            self.start = other.start;
        }
        self.size = end - self.base;
        self.writable |= other.writable;
        if !self.name.split('/').any(|part| part == other.name) {
            self.name = format!("{}/{}", other.name, self.name);
        }
    }

    /// A pointer to `address`, which the caller has found in the buffer.
    #[inline(always)]
    fn at(&self, address: u64) -> *mut u8 {
        debug_assert!(address - self.base < self.size);
        // SAFETY: `address` is in the buffer.
        unsafe { self.start.add((address - self.base) as usize) }
    }

    /// Reads `width` bytes at `address`, a multiple of `width` in the buffer.
    #[inline(always)]
    pub(super) fn peek(&self, address: u64, width: u32) -> u64 {
        debug_assert!(address.is_multiple_of(u64::from(width)));
        let at = self.at(address);
        match width {
            // SAFETY: in the buffer, aligned, and only accessed by atomics, here and below.
            1 => u64::from(unsafe { AtomicU8::from_ptr(at) }.load(Relaxed)),
            // SAFETY: as above.
            2 => u64::from(unsafe { AtomicU16::from_ptr(at.cast()) }.load(Relaxed)),
            // SAFETY: as above.
            4 => u64::from(unsafe { AtomicU32::from_ptr(at.cast()) }.load(Relaxed)),
            // SAFETY: as above.
            _ => unsafe { AtomicU64::from_ptr(at.cast()) }.load(Relaxed),
        }
    }

    /// Writes the low `width` bytes of `value` at `address`, as for [`peek`](Self::peek).
    #[inline(always)]
    pub(super) fn poke(&self, address: u64, width: u32, value: u64) {
        debug_assert!(address.is_multiple_of(u64::from(width)) && self.writable);
        let at = self.at(address);
        match width {
            // SAFETY: in the buffer, aligned, and only accessed by atomics, here and below.
            1 => unsafe { AtomicU8::from_ptr(at) }.store(value as u8, Relaxed),
            // SAFETY: as above.
            2 => unsafe { AtomicU16::from_ptr(at.cast()) }.store(value as u16, Relaxed),
            // SAFETY: as above.
            4 => unsafe { AtomicU32::from_ptr(at.cast()) }.store(value as u32, Relaxed),
            // SAFETY: as above.
            _ => unsafe { AtomicU64::from_ptr(at.cast()) }.store(value, Relaxed),
        }
    }

    /// Writes the elements of one lane.
    #[inline(always)]
    pub(super) fn store(&self, access: &WarpAccess, lane: usize, rows: &[Row]) {
        for (element, row) in (0..access.count).zip(rows) {
            let address = access.addresses[lane] + u64::from(element * access.width);
            self.poke(address, access.width, row[lane]);
        }
    }

    /// Locks the shadow page of `address`; [`make`] it before use.
    pub(super) fn page(&self, address: u64) -> MutexGuard<'_, Option<Box<Page>>> {
        let first = self.base >> PAGE_BITS;
        let pages = self.pages.get_or_init(|| {
            let last = (self.base + self.size - 1) >> PAGE_BITS;
            (first..=last).map(|_| Mutex::default()).collect()
        });
        let page = &pages[((address >> PAGE_BITS) - first) as usize];
        page.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The page behind a lock.
#[inline(always)]
pub(super) fn make<'a>(page: &'a mut MutexGuard<'_, Option<Box<Page>>>) -> &'a mut Page {
    page.get_or_insert_default()
}
