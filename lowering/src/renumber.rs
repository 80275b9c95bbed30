//! Renumbering: other names for the elements that the places of a layout hold.
//!
//! # Idea
//! The canonical tree wants the low axis bits in registers, the middle ones in lanes and the high
//! ones in warps. Triton puts the repetitions of a tile, which are registers, on the *high* axis
//! bits. As every layout of a pinned reduction's operand gives the same bits, the places of the
//! axis may as well be numbered in the order in which it folds: a thread holds other rows, or
//! another run of its row. A warp or a lane that is spent on the axis may moreover trade its bit
//! for one of the other dimensions that is held in registers: then less of the axis is split.
//! # Invariants
//! - **N1** The bits that a caller declares fixed, those within a sector of memory, stay.
//! - **N2** A candidate has the places of the original, and holds as many elements a thread.
//! # Held by
//! N1, N2: the tests below, over random layouts too.
//! # Not here
//! Whether a candidate is worth it (the planner's cost), and which operations would have to take
//! it along (`passes/src/reduce_layout/`).

pub mod memory;

use crate::encoding::{Blocked, Encoding};
use crate::layout::{Basis, Dim, LinearLayout, Shape};
use memory::Request;

/// Other layouts for a tensor whose `axis` is reduced, the simplest first. None is `layout`.
///
/// The bits of `fixed` stay where they are. `request` says how the tensor lies in memory.
pub fn candidates(
    layout: &LinearLayout,
    axis: Dim,
    fixed: u64,
    request: &Request,
) -> Vec<LinearLayout> {
    if !layout.is_permutation() || !layout.block.is_empty() {
        return Vec::new();
    }
    let mut found: Vec<LinearLayout> = Vec::new();
    for trade in TRADES {
        let renumbering = Renumbering { axis, fixed, request, layout: layout.clone() };
        let candidate = renumbering.traded(trade).in_order();
        if !found.contains(&candidate) && !same_places(&candidate, layout) {
            found.push(candidate);
        }
    }
    found
}

/// Whether two layouts differ in the order of the registers alone.
pub fn same_places(a: &LinearLayout, b: &LinearLayout) -> bool {
    let held = |layout: &LinearLayout| {
        let mut register = layout.register.clone();
        register.sort();
        register
    };
    a.lane == b.lane && a.warp == b.warp && a.block == b.block && held(a) == held(b)
}

/// How many places give up their axis bit for another dimension's.
#[derive(Clone, Copy)]
struct Trade {
    lanes: usize,
    warps: usize,
}

const ALL: usize = usize::MAX;
const TRADES: [Trade; 8] = [
    Trade { lanes: 0, warps: 0 },
    Trade { lanes: 0, warps: ALL },
    Trade { lanes: 1, warps: 0 },
    Trade { lanes: 2, warps: 0 },
    Trade { lanes: ALL, warps: 0 },
    Trade { lanes: 1, warps: ALL },
    Trade { lanes: 2, warps: ALL },
    Trade { lanes: ALL, warps: ALL },
];

struct Renumbering<'a> {
    axis: Dim,
    fixed: u64,
    request: &'a Request,
    layout: LinearLayout,
}

impl Renumbering<'_> {
    fn on_axis(&self, basis: Basis) -> bool {
        self.layout.shape.component(basis, self.axis) != 0
    }

    fn is_free(&self, basis: Basis) -> bool {
        basis != Basis::ZERO && basis.0 & self.fixed == 0
    }

    /// Bits of other dimensions move from registers to lanes, nearest in memory first, and to
    /// warps, farthest first; axis bits move back.
    fn traded(mut self, trade: Trade) -> Self {
        let axis = |own: &Self, basis: Basis| own.is_free(basis) && own.on_axis(basis);
        let mut others: Vec<usize> = (0..self.layout.register.len())
            .filter(|&r| {
                let basis = self.layout.register[r];
                self.is_free(basis) && !self.on_axis(basis)
            })
            .collect();
        others.sort_by_key(|&r| self.request.distance(self.layout.register[r]));
        for _ in 0..trade.warps.min(self.layout.warp.len()) {
            let warp =
                (0..self.layout.warp.len()).rev().find(|&w| axis(&self, self.layout.warp[w]));
            let Some((warp, register)) = warp.zip(others.last().copied()) else { break };
            others.pop();
            let layout = &mut self.layout;
            std::mem::swap(&mut layout.warp[warp], &mut layout.register[register]);
        }
        let mut others = others.into_iter();
        for _ in 0..trade.lanes.min(self.layout.lane.len()) {
            let lane =
                (0..self.layout.lane.len()).rev().find(|&l| axis(&self, self.layout.lane[l]));
            let Some((lane, register)) = lane.zip(others.next()) else { break };
            let layout = &mut self.layout;
            std::mem::swap(&mut layout.lane[lane], &mut layout.register[register]);
        }
        self
    }

    /// The places of the axis, numbered as it folds: registers, then lanes, then warps.
    fn in_order(self) -> LinearLayout {
        let axis = |basis: &Basis| self.is_free(*basis) && self.on_axis(*basis);
        let mut bits: Vec<Basis> = self.layout.columns().filter(axis).collect();
        bits.sort();
        let mut next = bits.into_iter();
        let mut renamed = |columns: &[Basis]| -> Vec<Basis> {
            let mut name = |basis: &Basis| if axis(basis) { next.next() } else { None };
            columns.iter().map(|basis| name(basis).unwrap_or(*basis)).collect()
        };
        let register = renamed(&self.layout.register);
        let lane = renamed(&self.layout.lane);
        let warp = renamed(&self.layout.warp);
        let mut layout = LinearLayout { register, lane, warp, ..self.layout.clone() };
        layout.register.sort_by_key(|&basis| self.request.distance(basis));
        layout
    }
}

/// `layout` as Triton reads it: by the name that `before` has, with other sizes, where there is
/// one; the order of the registers is then that encoding's.
pub fn written(layout: &LinearLayout, before: &Encoding) -> String {
    let Encoding::Blocked(blocked) = before else { return layout.to_string() };
    let renamed = resized(layout, blocked);
    match Encoding::Blocked(renamed.clone()).to_linear(&layout.shape) {
        Ok(same) if same_places(&same, layout) && leads_alike(&same, layout) => renamed.to_string(),
        _ => layout.to_string(),
    }
}

/// Whether the first registers, which one instruction loads, are the same.
fn leads_alike(a: &LinearLayout, b: &LinearLayout) -> bool {
    let shape = &a.shape;
    let run = |layout: &LinearLayout| {
        let first = layout.register.first().copied().unwrap_or(Basis::ZERO).0;
        let follows = (0..).zip(&layout.register).take_while(|(bit, b)| b.0 == first << bit);
        (first, follows.count())
    };
    shape == &b.shape && run(a) == run(b)
}

fn resized(layout: &LinearLayout, before: &Blocked) -> Blocked {
    let shape = &layout.shape;
    let sizes = |count: &dyn Fn(Dim) -> u32| {
        let extents: Vec<u64> = (0..shape.rank()).map(|d| 1 << count(Dim(d))).collect();
        Shape::from_extents(&extents).expect("no more than the tensor has")
    };
    let along = |columns: &[Basis], dim: Dim| {
        columns.iter().filter(|&&basis| shape.component(basis, dim) != 0).count() as u32
    };
    let lowest = |dim: Dim| {
        let held = |bit: &u32| layout.register.contains(&shape.unit(dim, *bit));
        (0..shape.bits(dim)).take_while(held).count() as u32
    };
    let mut blocked = before.clone();
    blocked.size_per_thread = sizes(&lowest);
    blocked.threads_per_warp = sizes(&|dim| along(&layout.lane, dim));
    blocked.warps_per_cta = sizes(&|dim| along(&layout.warp, dim));
    blocked
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encoding;
    use memory::Memory;

    const MEMORY: Memory = Memory { sector: 32, line: 128 };

    fn tile(size: [u32; 2], threads: [u32; 2], warps: [u32; 2]) -> Encoding {
        let text = format!(
            "#ttg.blocked<{{sizePerThread = {size:?}, threadsPerWarp = {threads:?}, \
             warpsPerCTA = {warps:?}, order = [1, 0]}}>"
        );
        encoding::parse(&text).expect("a blocked encoding")
    }

    fn found(tile: &Encoding, extents: [u64; 2], axis: Dim, bytes: u64) -> Vec<LinearLayout> {
        let shape = Shape::from_extents(&extents).expect("powers of two");
        let layout = tile.to_linear(&shape).expect("of the tensor's rank");
        let request = Request::new(tile, &layout, bytes);
        candidates(&layout, axis, request.together(MEMORY), &request)
    }

    #[test]
    fn a_column_sum_gives_a_thread_neighbouring_rows() {
        let tile = tile([1, 4], [4, 8], [4, 1]);
        let found = found(&tile, [1024, 32], Dim(0), 4);
        let wanted = "#ttg.blocked<{sizePerThread = [64, 4], threadsPerWarp = [4, 8], \
                      warpsPerCTA = [4, 1], order = [1, 0]}>";
        assert_eq!(written(&found[0], &tile), wanted);
        assert_eq!(found.len(), 1, "all that a thread holds of a row is one vector");
    }

    #[test]
    fn warps_trade_rows_for_columns_that_registers_hold() {
        let tile = tile([1, 4], [1, 32], [4, 1]);
        let found = found(&tile, [64, 512], Dim(0), 4);
        let wanted = "#ttg.blocked<{sizePerThread = [64, 4], threadsPerWarp = [1, 32], \
                      warpsPerCTA = [1, 4], order = [1, 0]}>";
        assert!(found.iter().any(|layout| written(layout, &tile) == wanted), "{found:?}");
    }

    #[test]
    fn a_row_sum_keeps_vectors_and_sectors() {
        let tile = tile([1, 4], [1, 32], [1, 4]);
        let found = found(&tile, [1, 8192], Dim(1), 4);
        let shape = Shape::from_extents(&[1, 8192]).expect("powers of two");
        let along = |bits: &[u32]| bits.iter().map(|&b| shape.unit(Dim(1), b)).collect::<Vec<_>>();
        // Four floats a thread and two threads a sector as before; then 16 sectors a thread.
        assert_eq!(found[0].register, along(&[0, 1, 3, 4, 5, 6]));
        assert_eq!(found[0].lane, along(&[2, 7, 8, 9, 10]));
        assert_eq!(found[0].warp, along(&[11, 12]));
        assert_eq!(encoding::linear_layout(&written(&found[0], &tile), &shape).unwrap(), found[0]);
    }

    #[test]
    fn what_folds_in_order_is_left_alone() {
        let tile = tile([1, 4], [1, 32], [4, 1]);
        assert!(found(&tile, [4, 128], Dim(1), 4).is_empty());
        assert!(found(&tile, [4, 128], Dim(0), 4).is_empty());
    }

    #[test]
    fn lanes_that_share_a_sector_stay() {
        // Rows of four halves: four rows to a sector, so the lowest two row bits stay in lanes.
        let tile = tile([1, 4], [32, 1], [1, 1]);
        let found = found(&tile, [1024, 4], Dim(0), 2);
        let shape = Shape::from_extents(&[1024, 4]).expect("powers of two");
        let row = |bits: &[u32]| bits.iter().map(|&b| shape.unit(Dim(0), b)).collect::<Vec<_>>();
        assert_eq!(found[0].lane, row(&[0, 1, 7, 8, 9]));
        assert_eq!(found[0].register[2..], row(&[2, 3, 4, 5, 6]));
    }

    #[test]
    fn candidates_keep_places_and_sectors() {
        let mut random = 0x9e37_79b9_u64;
        let mut pick = |n: u64| {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            random % n
        };
        for _ in 0..2000 {
            let lanes = pick(6) as u32;
            let warps = pick(4) as u32;
            let across = pick(u64::from(warps) + 1) as u32;
            let encoding = tile(
                [1 << pick(2), 1 << pick(4)],
                [1 << (5 - lanes), 1 << lanes],
                [1 << across, 1 << (warps - across)],
            );
            let extents = [1 << pick(9), 1 << pick(9)];
            let bytes = 1 << pick(4);
            let shape = Shape::from_extents(&extents).expect("powers of two");
            let before = encoding.to_linear(&shape).expect("of the tensor's rank");
            let request = Request::new(&encoding, &before, bytes);
            for axis in [Dim(0), Dim(1)] {
                for after in found(&encoding, extents, axis, bytes) {
                    let held = |l: &LinearLayout| l.columns().fold(0, |bits, b| bits | b.0);
                    assert!(after.is_permutation() && held(&after) == held(&before));
                    assert_eq!(after.register.len(), before.register.len());
                    assert!(request.keeps(&before, &after, MEMORY), "{before}\n{after}");
                    let text = written(&after, &encoding);
                    let read = encoding::linear_layout(&text, &shape).expect("our own text");
                    assert!(same_places(&read, &after), "{text} is not {after}");
                    assert!(request.keeps(&before, &read, MEMORY), "{before}\n{text}");
                }
            }
        }
    }
}
