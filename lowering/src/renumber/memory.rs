//! What a layout asks of memory: requests, sectors and lines.
//!
//! # Idea
//! The lanes of a warp issue one request for each vector of registers. Where the elements lie is
//! known as far as the layout tells it: its fastest dimension is contiguous, and the next ones are
//! taken to follow densely. Then every index bit is a bit of the address, and what a warp fetches
//! is a count of bits: those below a sector come together, each of the others doubles the work.
//! # Invariants
//! - **Y1** A layout that [`Request::keeps`] accepts fetches no more sectors than the one before,
//!   in no more instructions, neither of one warp nor by one request.
//! # Held by
//! Y1: the tests below.
//! # Sources
//! CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory": transfers of 32 bytes, four
//! to a line; CDNA 3 ISA guide: lines of 128 bytes in halves of 64.
//! # Not here
//! What a line costs (the caller's).

use crate::encoding::Encoding;
use crate::layout::{Basis, Dim, LinearLayout};

/// What memory transfers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Memory {
    /// Bytes that are transferred at the least.
    pub sector: u64,
    /// Bytes that one look-up finds.
    pub line: u64,
}

/// One lane's part of a request is at most so many bytes.
const WIDEST: u64 = 16;

/// How a tensor is read or written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Request {
    /// The index bits, from the lowest bit of the address.
    address: Vec<Basis>,
    element_bytes: u64,
}

impl Request {
    /// Through a tensor of `encoding`, whose layout is `layout`.
    pub fn new(encoding: &Encoding, layout: &LinearLayout, element_bytes: u64) -> Request {
        let shape = &layout.shape;
        let bits = |dim: Dim| (0..shape.bits(dim)).map(move |bit| shape.unit(dim, bit));
        let address = order(encoding, layout).into_iter().flat_map(bits).collect();
        Request { address, element_bytes: element_bytes.max(1) }
    }

    /// Where in the address `basis` stands, if it is one index bit.
    fn place(&self, basis: Basis) -> Option<u32> {
        self.address.iter().position(|&bit| bit == basis).map(|place| place as u32)
    }

    /// How many bits of the index number the elements of `bytes` bytes.
    fn bits_within(&self, bytes: u64) -> usize {
        let elements = (bytes / self.element_bytes).max(1);
        (elements.ilog2() as usize).min(self.address.len())
    }

    /// The index bits that number the elements of one sector.
    pub fn together(&self, memory: Memory) -> u64 {
        self.address[..self.bits_within(memory.sector)].iter().fold(0, |bits, b| bits | b.0)
    }

    /// How far the address of `basis` is, for sorting.
    pub fn distance(&self, basis: Basis) -> u32 {
        self.place(basis).unwrap_or(u32::MAX)
    }

    /// How many register bits one instruction covers.
    fn vector(&self, layout: &LinearLayout) -> usize {
        let widest = &self.address[..self.bits_within(WIDEST)];
        layout.register.iter().zip(widest).take_while(|(column, bit)| column == bit).count()
    }

    /// The logarithm of the number of instructions of a thread.
    fn instructions(&self, layout: &LinearLayout) -> usize {
        layout.register.len() - self.vector(layout)
    }

    fn beyond(&self, columns: &[Basis], bytes: u64) -> usize {
        let within = self.bits_within(bytes);
        let far = |b: &&Basis| self.place(**b).is_some_and(|place| place as usize >= within);
        columns.iter().filter(far).count()
    }

    /// Whether `after` asks no more of memory than `before`.
    pub fn keeps(&self, before: &LinearLayout, after: &LinearLayout, memory: Memory) -> bool {
        let by_request = |layout: &LinearLayout| {
            self.instructions(layout) + self.beyond(&layout.lane, memory.sector)
        };
        let by_warp = |layout: &LinearLayout| {
            self.beyond(&layout.lane, memory.sector) + self.beyond(&layout.register, memory.sector)
        };
        self.vector(after) >= self.vector(before)
            && by_request(after) <= by_request(before)
            && by_warp(after) <= by_warp(before)
    }

    /// How many lines the requests of a warp touch, counted once for each request.
    pub fn lines(&self, layout: &LinearLayout, memory: Memory) -> u64 {
        1 << (self.instructions(layout) + self.beyond(&layout.lane, memory.line))
    }
}

/// The dimensions from the one that is contiguous in memory outwards, as far as can be told.
fn order(encoding: &Encoding, layout: &LinearLayout) -> Vec<Dim> {
    let shape = &layout.shape;
    let known = match encoding {
        Encoding::Blocked(blocked) => blocked.order.clone(),
        Encoding::Slice { dim, parent } => return sliced(*dim, parent, layout),
        _ => {
            let first = layout.columns().find_map(|column| {
                (0..shape.rank())
                    .map(Dim)
                    .find(|&d| shape.bits(d) > 0 && column == shape.unit(d, 0))
            });
            first.into_iter().collect()
        }
    };
    completed(known, shape.rank())
}

/// The order of a slice is its parent's, without the dimension that the slice lacks.
fn sliced(dim: Dim, parent: &Encoding, layout: &LinearLayout) -> Vec<Dim> {
    let Encoding::Blocked(blocked) = parent else {
        return completed(Vec::new(), layout.shape.rank());
    };
    let kept = blocked.order.iter().filter(|&&d| d != dim);
    completed(kept.map(|d| Dim(d.0 - usize::from(d.0 > dim.0))).collect(), layout.shape.rank())
}

fn completed(mut order: Vec<Dim>, rank: usize) -> Vec<Dim> {
    for dim in (0..rank).rev().map(Dim) {
        if !order.contains(&dim) {
            order.push(dim);
        }
    }
    order
}

/// Whether the lanes that pass through the banks of shared memory together, and the width of their
/// accesses, are the same in both layouts.
pub fn same_passes(before: &LinearLayout, after: &LinearLayout, element_bytes: u64) -> bool {
    const PASS: u64 = 128;
    let vector = (WIDEST / element_bytes.max(1)).max(1).ilog2() as usize;
    let width = |layout: &LinearLayout| layout.register.iter().take(vector).copied().collect();
    let (wide, then): (Vec<Basis>, Vec<Basis>) = (width(before), width(after));
    let lanes = (PASS / (element_bytes.max(1) << wide.len())).max(1).ilog2() as usize;
    let lanes = lanes.min(before.lane.len());
    wide == then && before.lane[..lanes] == after.lane[..lanes]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{encoding, layout::Shape};

    const MEMORY: Memory = Memory { sector: 32, line: 128 };

    fn tile(size: [u32; 2], threads: [u32; 2], warps: [u32; 2], extents: [u64; 2]) -> Read {
        let text = format!(
            "#ttg.blocked<{{sizePerThread = {size:?}, threadsPerWarp = {threads:?}, \
             warpsPerCTA = {warps:?}, order = [1, 0]}}>"
        );
        let encoding = encoding::parse(&text).expect("a blocked encoding");
        let shape = Shape::from_extents(&extents).expect("powers of two");
        let layout = encoding.to_linear(&shape).expect("of the tensor's rank");
        Read { encoding, layout }
    }

    struct Read {
        encoding: Encoding,
        layout: LinearLayout,
    }

    impl Read {
        fn of(&self, bytes: u64) -> Request {
            Request::new(&self.encoding, &self.layout, bytes)
        }
    }

    #[test]
    fn distant_rows_are_as_good_as_neighbours_when_each_fills_its_sectors() {
        let before = tile([1, 4], [4, 8], [4, 1], [1024, 32]);
        let after = tile([64, 4], [4, 8], [4, 1], [1024, 32]);
        let request = before.of(4);
        assert!(request.keeps(&before.layout, &after.layout, MEMORY));
        // Rows are lines of 128 bytes: four of them either way.
        assert_eq!(request.lines(&after.layout, MEMORY), request.lines(&before.layout, MEMORY));
        assert_eq!(request.lines(&before.layout, MEMORY), 4 << 6);
    }

    #[test]
    fn a_request_must_not_split_sectors() {
        // Rows of four halves, eight bytes: lanes that hold distant rows would waste 24 of 32.
        let before = tile([1, 4], [32, 1], [1, 1], [1024, 4]);
        let after = tile([32, 4], [32, 1], [1, 1], [1024, 4]);
        assert!(!before.of(2).keeps(&before.layout, &after.layout, MEMORY));
        assert!(before.of(8).keeps(&before.layout, &after.layout, MEMORY));
        assert_eq!(before.of(2).together(MEMORY).count_ones(), 4);
    }

    #[test]
    fn a_vector_must_not_shrink() {
        let before = tile([1, 4], [1, 32], [4, 1], [64, 128]);
        let after = tile([4, 1], [1, 32], [4, 1], [64, 128]);
        assert!(!before.of(4).keeps(&before.layout, &after.layout, MEMORY));
        assert!(before.of(4).keeps(&after.layout, &before.layout, MEMORY));
    }

    #[test]
    fn passes_through_the_banks_are_told_apart() {
        let before = tile([1, 4], [1, 32], [4, 1], [64, 128]).layout;
        let rows = tile([16, 4], [1, 32], [4, 1], [64, 128]).layout;
        let turned = tile([1, 4], [4, 8], [4, 1], [64, 128]).layout;
        assert!(same_passes(&before, &rows, 4));
        assert!(same_passes(&before, &turned, 4));
        assert!(!same_passes(&before, &turned, 2));
    }
}
