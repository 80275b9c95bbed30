//! Shared memory of one CTA: bytes and their shadow.

use super::{
    WarpAccess,
    access::Row,
    bytes::Bytes,
    shadow::{PAGE_BITS, PAGE_BYTES, Page},
    space::SHARED_BASE,
};

#[derive(Debug)]
pub(super) struct Shared {
    pub(super) bytes: Bytes,
    pub(super) size: u32,
    /// From [`SHARED_BASE`], which begins a page.
    pages: Vec<Page>,
}

const _: () = assert!((SHARED_BASE as u64).is_multiple_of(PAGE_BYTES));

impl Shared {
    pub(super) fn new(size: u32) -> Self {
        let pages = u64::from(size).div_ceil(PAGE_BYTES) as usize;
        let pages = (0..pages).map(|_| Page::default()).collect();
        Self { bytes: Bytes::new(size), size, pages }
    }

    /// The page of the byte `at` from [`SHARED_BASE`], which lies inside.
    #[inline(always)]
    pub(super) fn page(&mut self, at: u32) -> &mut Page {
        &mut self.pages[(at >> PAGE_BITS) as usize]
    }

    /// Writes the elements of one lane, which lies inside.
    #[inline(always)]
    pub(super) fn store(&mut self, access: &WarpAccess, lane: usize, rows: &[Row]) {
        let at = access.addresses[lane] as u32 - SHARED_BASE;
        for (element, row) in (0..access.count).zip(rows) {
            self.bytes.poke(at + element * access.width, access.width, row[lane]);
        }
    }
}
