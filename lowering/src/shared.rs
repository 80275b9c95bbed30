//! The way through shared memory: where each element lies in it, and what that costs.
//!
//! # Idea
//! A relayout across warps stores every element and loads it elsewhere. Where it lies in between is
//! free. With layouts that are permutations of index bits a good place is one too: the lowest bits
//! of the offset decide how wide the accesses of either side are, the bits above them decide which
//! lanes meet in a bank, and each distance between a thread's bit and its bit of the offset is one
//! shift and mask of the address. A few orders are tried and the cheapest is taken.
//! # Invariants
//! - **H1** The offsets are a permutation of the index bits: no two elements share a place.
//! # Held by
//! H1: [`orders`], each of which lists every bit once; a test over random layouts.
//! # Sources
//! CUDA C++ Programming Guide, "Shared Memory": 32 banks of 4 bytes, lanes that read one word share
//! it, and an access of 16 bytes a lane takes four passes at least. CDNA 3 ISA guide, "LDS": the
//! same number of banks, and twice as many lanes.
//! # Not here
//! Whether to go through memory at all (`planner/`).

use crate::cost::CostModel;
use crate::layout::{Basis, LinearLayout};
use crate::placement::{Code, Placement};

/// One access of every lane takes at most so many bytes.
const WIDEST: u32 = 16;
/// The bits of an offset in bytes below which all banks lie.
const BANKS: u32 = 7;

/// What one side of an exchange does, for one operand.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Access {
    /// Instructions of a thread.
    pub instructions: u32,
    /// Passes through the banks, of all these instructions of a warp.
    pub wavefronts: u32,
    /// Shifts and masks of the thread's number that make the address.
    pub shifts: u32,
}

impl Access {
    fn cost(&self, costs: &CostModel) -> u32 {
        self.instructions * costs.access
            + self.wavefronts * costs.wavefront
            + self.shifts * costs.shift
    }
}

/// The index bits in the order of the offset's bits, for an operand of `width` bits an element,
/// and what storing and loading then cost.
pub fn cheapest(
    from: &Placement,
    to: &Placement,
    width: u32,
    costs: &CostModel,
) -> (Vec<Code>, u32) {
    let price = |order: &[Code]| {
        access(from, order, width).cost(costs) + access(to, order, width).cost(costs)
    };
    let mut best: Option<(Vec<Code>, u32)> = None;
    for order in orders(from, to, width) {
        let cost = price(&order);
        if best.as_ref().is_none_or(|(_, least)| cost < *least) {
            best = Some((order, cost));
        }
    }
    best.expect("there is always an order")
}

/// Where the elements of a tensor lie on their way from one layout to another: the index bit of
/// each bit of the offset. None where the way does not lead through shared memory: within warps,
/// or between layouts that are no permutations or lie in clusters.
pub fn offsets(
    from: &LinearLayout,
    to: &LinearLayout,
    width: u32,
    costs: &CostModel,
) -> Option<Vec<Basis>> {
    let plain = |layout: &LinearLayout| layout.is_permutation() && layout.block.is_empty();
    if from.warp == to.warp || !plain(from) || !plain(to) {
        return None;
    }
    let (order, _) = cheapest(&Placement::of(from), &Placement::of(to), width, costs);
    Some(order.into_iter().map(Code::basis).collect())
}

/// How one side stores or loads its elements, which lie in memory in `order`.
pub fn access(place: &Placement, order: &[Code], width: u32) -> Access {
    let bytes = width.max(8) / 8;
    let widest = WIDEST / bytes;
    let held = |code: &Code| place.register().contains(code);
    let vector = (order.iter().take_while(|code| held(code)).count() as u32)
        .min(widest.max(1).trailing_zeros());
    let pieces = bytes.div_ceil(WIDEST);
    let registers = place.register().iter().filter(|&&code| code != Code::NONE).count();
    let instructions = ((1u32 << registers) >> vector) * pieces;
    let at = |code: &Code| order.iter().position(|c| c == code).map(|bit| bit as u32);
    let beyond = |bit: u32| bit + bytes.trailing_zeros() >= BANKS;
    let conflicts = place.lane().iter().filter_map(at).filter(|&bit| beyond(bit)).count();
    let mut distances = 0u64;
    for (thread, code) in (0u32..).zip(place.lane().iter().chain(place.warp())) {
        if let Some(bit) = at(code) {
            distances |= 1 << (32 + bit - thread);
        }
    }
    Access { instructions, wavefronts: instructions << conflicts, shifts: distances.count_ones() }
}

/// Orders worth trying: what a vector holds first, then one side's lanes and warps as they are.
fn orders(from: &Placement, to: &Placement, width: u32) -> Vec<Vec<Code>> {
    let vector = (WIDEST / (width.max(8) / 8)).max(1).trailing_zeros() as usize;
    let both = |code: &&Code| to.register().contains(code);
    let common: Vec<Code> = from.register().iter().filter(both).copied().take(vector).collect();
    let mut found: Vec<Vec<Code>> = Vec::new();
    for first in [&common, from.register(), to.register(), &[]] {
        for wide in (0..=first.len().min(vector)).rev() {
            for side in [to, from] {
                let order =
                    in_order([&first[..wide], &common, side.lane(), side.warp(), side.register()]);
                if !found.contains(&order) {
                    found.push(order);
                }
            }
        }
    }
    let natural = sorted(from);
    if !found.contains(&natural) {
        found.push(natural);
    }
    found
}

/// The bits of all parts, each once.
fn in_order<'a>(parts: impl IntoIterator<Item = &'a [Code]>) -> Vec<Code> {
    let mut order: Vec<Code> = Vec::new();
    for &code in parts.into_iter().flatten() {
        if code != Code::NONE && !order.contains(&code) {
            order.push(code);
        }
    }
    order
}

/// Row-major: the order of the index bits themselves.
fn sorted(place: &Placement) -> Vec<Code> {
    let mut order = in_order([place.register(), place.lane(), place.warp()]);
    order.sort_unstable();
    order
}
