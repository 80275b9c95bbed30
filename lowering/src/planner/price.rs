//! What one step costs at a site.
//!
//! # Idea
//! A fold costs its exchanges, selects and combines; a relayout costs nothing within a thread, some
//! exchanges within a warp, and a way through shared memory otherwise, with one barrier for all
//! operands together.
//! # Not here
//! The numbers (`cost.rs`), and where elements lie in shared memory (`shared.rs`).

use crate::cost::{self, CostModel, Exchange};
use crate::layout::{Basis, LinearLayout};
use crate::placement::{Frame, Placement};
use crate::plan::{LaneBit, Operands, Site, State, Step};
use crate::shared;

/// Prices steps of one site.
#[derive(Clone, Copy)]
pub struct Prices<'a> {
    site: &'a Site,
    /// The target's numbers.
    pub costs: &'a CostModel,
    /// How index bits are numbered.
    pub frame: Frame,
    /// The dearest word of an exchange, and the longest wait.
    dearest: (u32, u32),
}

impl<'a> Prices<'a> {
    /// The prices of a site's steps, by a target's numbers.
    pub fn new(site: &'a Site, costs: &'a CostModel) -> Prices<'a> {
        let lanes = site.source.lane.len() as u32;
        let warps = 1 << site.source.warp.len();
        let ways = (0..lanes).map(|bit| costs.exchange(LaneBit(bit), false));
        let dearest = |(word, wait): (u32, u32), way: Exchange| {
            (word.max(way.word), wait.max(way.wait(warps)))
        };
        Prices { site, costs, frame: Frame::new(site), dearest: ways.fold((0, 0), dearest) }
    }

    /// A step between states.
    pub fn step(&self, before: &State, step: &Step, after: &State) -> u32 {
        let have = before.layout.registers();
        match step {
            Step::FoldRegister(_) => self.fold_register(have),
            Step::Butterfly(lane) => {
                let below = &before.layout.lane[..lane.0 as usize];
                self.butterfly(have, *lane, below.iter().all(|basis| *basis == Basis::ZERO))
            }
            Step::HalfExchange { lane, .. } => self.half_exchange(have, *lane),
            Step::Relayout(_) => {
                let plain = |layout: &LinearLayout| layout.is_permutation();
                if plain(&before.layout) && plain(&after.layout) {
                    let place = |state: &State| self.frame.placement(state);
                    self.relayout(&place(before), &place(after))
                } else {
                    self.conversion(have, after.layout.registers())
                }
            }
        }
    }

    /// One combine for each pair of `have` values.
    pub fn fold_register(&self, have: usize) -> u32 {
        have.div_ceil(2) as u32 * self.combine()
    }

    /// Each of `have` values is exchanged; `folded` says that lower lanes all hold the same.
    pub fn butterfly(&self, have: usize, lane: LaneBit, folded: bool) -> u32 {
        let way = self.costs.exchange(lane, folded);
        self.words(have) * (way.word + self.ordered())
            + self.packing(have)
            + way.wait(self.warps())
            + have as u32 * self.combine()
    }

    /// Half of `have` values are exchanged.
    pub fn half_exchange(&self, have: usize, lane: LaneBit) -> u32 {
        let half = have.div_ceil(2);
        let way = self.costs.exchange(lane, false);
        let (choose, packed) =
            if self.costs.swaps(lane) { (0, half) } else { (2 * self.costs.select, have) };
        self.words(half) * (way.word + choose + self.ordered())
            + self.packing(packed)
            + way.wait(self.warps())
            + half as u32 * self.combine()
    }

    /// Putting `values` narrow values into words and taking as many out again.
    fn packing(&self, values: usize) -> u32 {
        let narrow = |&&width: &&u32| width < 32 && values > 1;
        let operands = self.site.widths.iter().filter(narrow).count();
        (operands * values) as u32 * self.costs.pack
    }

    /// All values move from one place to another.
    pub fn relayout(&self, from: &Placement, to: &Placement) -> u32 {
        if from.warp() == to.warp() {
            if from.lane() == to.lane() { 0 } else { self.within_warps(from, to) }
        } else {
            self.operands(|width| shared::cheapest(from, to, width, self.costs).1)
                + self.costs.barrier
        }
    }

    /// The sum of a price over all operands, found once for each width.
    pub fn operands(&self, price: impl Fn(u32) -> u32) -> u32 {
        let widths = &self.site.widths;
        let many = |width: u32| widths.iter().filter(|&&w| w == width).count() as u32;
        let first = |&(at, width): &(usize, u32)| !widths[..at].contains(&width);
        let distinct = widths.iter().copied().enumerate().filter(first);
        distinct.map(|(_, width)| many(width) * price(width)).sum()
    }

    /// Triton makes this of exchanges with distant lanes and of selects, or of a store and a load:
    /// of two latencies.
    fn within_warps(&self, from: &Placement, to: &Placement) -> u32 {
        let values = from.registers().max(to.registers());
        self.moved_within_warps(values)
    }

    /// Moving `values` values of each operand to other lanes.
    pub fn moved_within_warps(&self, values: usize) -> u32 {
        let (word, wait) = self.dearest;
        self.words(values) * (word + 2 * self.costs.select) + 2 * wait + self.costs.shift
    }

    fn warps(&self) -> u32 {
        1 << self.site.source.warp.len()
    }

    /// From or to a layout that is no permutation, of which only the sizes are looked at.
    fn conversion(&self, have: usize, then: usize) -> u32 {
        let accesses = self.words(have).div_ceil(4) + self.words(then).div_ceil(4);
        let access = self.costs.access + 4 * self.costs.wavefront;
        accesses * access + self.costs.barrier + 4 * self.costs.shift
    }

    fn combine(&self) -> u32 {
        self.costs.combine * self.site.combine_cost
    }

    fn words(&self, values: usize) -> u32 {
        self.site.widths.iter().map(|&width| cost::words(values, width)).sum()
    }

    /// Putting the two operands of a combine in order.
    fn ordered(&self) -> u32 {
        match self.site.operands {
            Operands::Commute => 0,
            Operands::Ordered => 2 * self.costs.select,
        }
    }
}
