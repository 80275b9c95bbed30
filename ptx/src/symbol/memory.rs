//! What every byte of memory holds.
//!
//! # Idea
//! Pages of pieces, made when a piece is first written to them, or when a page of an input is
//! first touched: inputs cost nothing until a kernel reads them.
//! # Invariants
//! - **P1** A page that is absent holds numbers, but where it overlaps an input: there it holds the
//!   input's leaves.
//! - **P2** There are never more bytes in pages than the limit.

use rustc_hash::FxHashMap;

use super::{
    Limit,
    graph::{Graph, Leaf},
    piece::{Piece, WIDEST},
    shadow::{Area, Place},
};
use crate::ir::Scalar;

const PAGE: usize = 128;

/// Number of the page, and the byte in it.
fn split(place: Place) -> (u64, usize) {
    (place.address / PAGE as u64, (place.address % PAGE as u64) as usize)
}

/// An input buffer.
#[derive(Clone, Copy, Debug)]
struct Input {
    place: Place,
    bytes: u64,
    ty: Scalar,
    buffer: u32,
}

/// Of one area, by number.
type Pages = FxHashMap<u64, Box<[Piece; PAGE]>>;

#[derive(Debug)]
pub(crate) struct Memory {
    areas: FxHashMap<Area, Pages>,
    /// In all areas.
    pages: usize,
    inputs: Vec<Input>,
    limit: usize,
}

impl Memory {
    pub fn new(limit: usize) -> Self {
        Self { areas: FxHashMap::default(), pages: 0, inputs: Vec::new(), limit }
    }

    pub fn mark(&mut self, place: Place, bytes: u64, ty: Scalar, buffer: u32) {
        self.inputs.push(Input { place, bytes, ty, buffer });
    }

    /// Up to eight bytes from `place` on.
    pub fn read(
        &mut self,
        graph: &mut Graph,
        place: Place,
        bytes: usize,
    ) -> Result<[Piece; WIDEST], Limit> {
        let mut out = [Piece::NUMBER; WIDEST];
        let mut done = 0;
        while done < bytes {
            let (page, at) = split(place.after(done as u64));
            let count = (bytes - done).min(PAGE - at);
            let absent = !self.areas.get(&place.area).is_some_and(|all| all.contains_key(&page));
            if !absent || self.overlaps(place.area, page) {
                let page = self.page(graph, place.area, page)?;
                out[done..done + count].copy_from_slice(&page[at..at + count]);
            }
            done += count;
        }
        Ok(out)
    }

    /// Up to eight bytes from `place` on.
    pub fn write(
        &mut self,
        graph: &mut Graph,
        place: Place,
        pieces: &[Piece],
    ) -> Result<(), Limit> {
        let mut done = 0;
        while done < pieces.len() {
            let (page, at) = split(place.after(done as u64));
            let count = (pieces.len() - done).min(PAGE - at);
            let run = &pieces[done..done + count];
            let absent = !self.areas.get(&place.area).is_some_and(|all| all.contains_key(&page));
            let numbers = run.iter().all(|piece| piece.is_number());
            if !(absent && numbers) || self.overlaps(place.area, page) {
                self.page(graph, place.area, page)?[at..at + count].copy_from_slice(run);
            }
            done += count;
        }
        Ok(())
    }

    /// Forgets a CTA's shared memory or a thread's local memory.
    pub fn forget(&mut self, area: Area) {
        if let Some(pages) = self.areas.remove(&area) {
            self.pages -= pages.len();
        }
    }

    fn overlaps(&self, area: Area, page: u64) -> bool {
        let (start, end) = (page * PAGE as u64, page.saturating_add(1).saturating_mul(PAGE as u64));
        self.inputs.iter().any(|input| {
            let first = input.place.address;
            input.place.area == area && first < end && start < first.saturating_add(input.bytes)
        })
    }

    fn page(
        &mut self,
        graph: &mut Graph,
        area: Area,
        page: u64,
    ) -> Result<&mut [Piece; PAGE], Limit> {
        let absent = !self.areas.get(&area).is_some_and(|all| all.contains_key(&page));
        if absent {
            if (self.pages + 1) * PAGE > self.limit {
                return Err(Limit::Bytes(self.limit));
            }
            let fresh = self.fresh(graph, area, page)?;
            self.areas.entry(area).or_default().insert(page, Box::new(fresh));
            self.pages += 1;
        }
        let pages = self.areas.entry(area).or_default();
        Ok(pages.entry(page).or_insert_with(|| Box::new([Piece::NUMBER; PAGE])))
    }

    fn fresh(&self, graph: &mut Graph, area: Area, page: u64) -> Result<[Piece; PAGE], Limit> {
        let mut out = [Piece::NUMBER; PAGE];
        let start = page * PAGE as u64;
        for input in self.inputs.iter().filter(|input| input.place.area == area) {
            let unit = u64::from(input.ty.bytes()).max(1);
            for (at, piece) in out.iter_mut().enumerate() {
                let Some(offset) = (start + at as u64).checked_sub(input.place.address) else {
                    continue;
                };
                if offset >= input.bytes {
                    break;
                }
                let part = offset % unit;
                let leaf = Leaf { buffer: input.buffer, offset: offset - part, ty: input.ty };
                *piece = Piece::of(graph.leaf(leaf)?, part as usize);
            }
        }
        Ok(out)
    }
}
