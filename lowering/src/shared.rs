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
    let mut best: Option<(Vec<Code>, u32)> = None;
    let (least, least_load) = (at_least(from, to, width, costs), one_side(to, width, costs));
    for order in orders(from, to, width) {
        let places = Places::of(&order);
        let side = |place: &Placement| side(place, &order, &places, width).cost(costs);
        let beaten = |cost: u32| best.as_ref().is_some_and(|(_, least)| cost >= *least);
        let store = side(from);
        if beaten(store + least_load) {
            continue;
        }
        let cost = store + side(to);
        if !beaten(cost) {
            best = Some((order, cost));
        }
        if cost == least {
            break;
        }
    }
    best.expect("there is always an order")
}

/// No more than storing and loading costs in any order, and found at once.
///
/// A bit that both sides have in threads, in places apart by `d`, has two distances from the offset
/// that are apart by `d`: so many different `d` take as many pairs of shifts.
pub fn at_least(from: &Placement, to: &Placement, width: u32, costs: &CostModel) -> u32 {
    let mut apart = 0u64;
    for (there, code) in (0u32..).zip(to.lane().iter().chain(to.warp())) {
        let here = from.lane().iter().chain(from.warp()).position(|c| c == code);
        if let Some(here) = here.filter(|_| *code != Code::NONE) {
            apart |= 1 << (32 + there - here as u32);
        }
    }
    let pairs = apart.count_ones();
    let more = (1..).find(|&total| (total / 2) * (total - total / 2) >= pairs).unwrap_or(0);
    let shifts = more.saturating_sub(2);
    one_side(from, width, costs) + one_side(to, width, costs) + shifts * costs.shift
}

/// No more than the price of one side in any order: its lanes lie right above its vector.
fn one_side(place: &Placement, width: u32, costs: &CostModel) -> u32 {
    let some = |codes: &[Code]| codes.iter().filter(|&&code| code != Code::NONE).count() as u32;
    let (registers, lanes) = (some(place.register()), some(place.lane()));
    let shifts = u32::from(lanes + some(place.warp()) > 0);
    least_of((registers, lanes, shifts), width, costs)
}

/// No more than the price of one side of any layout of `2^elements` elements over `2^lanes` lanes
/// and `2^warps` warps in which a thread holds `have` of them or more.
pub fn least(
    elements: usize,
    have: usize,
    (lanes, warps): (usize, usize),
    width: u32,
    costs: &CostModel,
) -> u32 {
    let registers = elements.saturating_sub(lanes + warps).max(have.trailing_zeros() as usize);
    let used = elements.saturating_sub(registers + warps);
    least_of((registers as u32, used as u32, 0), width, costs)
}

fn least_of((registers, lanes, shifts): (u32, u32, u32), width: u32, costs: &CostModel) -> u32 {
    let bytes = width.max(8) / 8;
    let widest = (WIDEST / bytes).max(1).trailing_zeros().min(registers);
    let price = |vector: u32| {
        let instructions = ((1 << registers) >> vector) * bytes.div_ceil(WIDEST);
        let conflicts = (vector + bytes.trailing_zeros() + lanes).saturating_sub(BANKS);
        Access { instructions, wavefronts: instructions << conflicts, shifts }.cost(costs)
    };
    (0..=widest).map(price).min().expect("a vector of one element at least")
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
    side(place, order, &Places::of(order), width)
}

/// The bit of the offset at which each index bit stands.
struct Places([u8; 65]);

impl Places {
    fn of(order: &[Code]) -> Places {
        let mut places = [u8::MAX; 65];
        (0..).zip(order).for_each(|(bit, code)| places[code.number()] = bit);
        Places(places)
    }

    fn bit(&self, code: Code) -> Option<u32> {
        let bit = self.0[code.number()];
        (bit != u8::MAX).then_some(bit.into())
    }
}

fn side(place: &Placement, order: &[Code], places: &Places, width: u32) -> Access {
    let bytes = width.max(8) / 8;
    let held = place.register().iter().fold(0, |bits, code| bits | code.basis().0);
    let run = order.iter().take_while(|code| held & code.basis().0 != 0).count();
    let instructions = instructions(place, width, (run as u32).min(vector_bits(width)));
    let beyond = BANKS.saturating_sub(bytes.trailing_zeros());
    let lanes = place.lane().len() as u32;
    let (mut conflicts, mut distances) = (0, 0u64);
    for (thread, code) in (0u32..).zip(place.lane().iter().chain(place.warp())) {
        let Some(bit) = places.bit(*code) else { continue };
        conflicts += u32::from(thread < lanes && bit >= beyond);
        distances |= 1 << (32 + bit - thread);
    }
    Access { instructions, wavefronts: instructions << conflicts, shifts: distances.count_ones() }
}

/// How many bits of the offset one access of a lane covers at the most.
fn vector_bits(width: u32) -> u32 {
    (WIDEST / (width.max(8) / 8)).max(1).trailing_zeros()
}

/// How many accesses a thread makes that cover `vector` bits of the offset each.
fn instructions(place: &Placement, width: u32, vector: u32) -> u32 {
    let registers = place.register().iter().filter(|&&code| code != Code::NONE).count();
    let pieces = (width.max(8) / 8).div_ceil(WIDEST);
    ((1u32 << registers) >> vector) * pieces
}

/// Orders worth trying: what a vector holds first, then one side's lanes and warps as they are.
fn orders(from: &Placement, to: &Placement, width: u32) -> Vec<Vec<Code>> {
    let vector = vector_bits(width) as usize;
    let both = |code: &&Code| to.register().contains(code);
    let common: Vec<Code> = from.register().iter().filter(both).copied().take(vector).collect();
    let mut found: Vec<Vec<Code>> = Vec::with_capacity(24);
    for first in [&common, from.register(), to.register(), &[]] {
        for wide in (usize::from(!first.is_empty())..=first.len().min(vector)).rev() {
            for side in [to, from] {
                let parts = [&first[..wide], &common, side.lane(), side.warp(), side.register()];
                found.push(in_order(parts));
            }
        }
    }
    found.push(sorted(from));
    found
}

/// The bits of all parts, each once.
fn in_order<'a>(parts: impl IntoIterator<Item = &'a [Code]>) -> Vec<Code> {
    let mut order: Vec<Code> = Vec::with_capacity(32);
    let mut taken = Code::NONE.basis().0;
    for &code in parts.into_iter().flatten() {
        let bit = code.basis().0;
        if bit & !taken != 0 {
            taken |= bit;
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::layout::{Dim, Shape};

    const ELEMENTS: u32 = 10;

    /// A permutation layout of a vector: bits, and copies, shuffled over 3 lanes and 2 warps, and
    /// the rest in registers.
    fn place() -> impl Strategy<Value = Placement> {
        let shape = Shape::from_extents(&[1 << ELEMENTS]).expect("a power of two");
        let bits: Vec<Basis> = (0..ELEMENTS).map(|bit| shape.unit(Dim(0), bit)).collect();
        let pool = [bits, vec![Basis::ZERO; 3]].concat();
        Just(pool).prop_shuffle().prop_map(move |mut pool| {
            let warp = pool.split_off(pool.len() - 2);
            let lane = pool.split_off(pool.len() - 3);
            let register = pool.into_iter().filter(|&basis| basis != Basis::ZERO).collect();
            let block = Vec::new();
            Placement::of(&LinearLayout { shape: shape.clone(), register, lane, warp, block })
        })
    }

    proptest! {
        /// H1, and that the price is that of the order that is returned.
        #[test]
        fn no_two_elements_share_a_place(
            from in place(),
            to in place(),
            width in prop::sample::select(vec![8, 16, 32, 64, 128]),
        ) {
            for costs in [CostModel::nvidia(), CostModel::amd_wave64()] {
                for order in orders(&from, &to, width) {
                    let mut numbers: Vec<usize> = order.iter().map(|code| code.number()).collect();
                    numbers.sort_unstable();
                    let all: Vec<usize> = (1..=ELEMENTS as usize).collect();
                    prop_assert_eq!(numbers, all);
                    let sides = [&from, &to].map(|side| access(side, &order, width).cost(&costs));
                    let cost = sides[0] + sides[1];
                    prop_assert!(cheapest(&from, &to, width, &costs).1 <= cost);
                    prop_assert!(at_least(&from, &to, width, &costs) <= cost);
                    for (side, price) in [&from, &to].into_iter().zip(sides) {
                        let held = side.registers();
                        prop_assert!(least(ELEMENTS as usize, held, (3, 2), width, &costs) <= price);
                    }
                }
                let (order, cost) = cheapest(&from, &to, width, &costs);
                let sides = [&from, &to].map(|side| access(side, &order, width).cost(&costs));
                prop_assert_eq!(cost, sides[0] + sides[1]);
                prop_assert!(orders(&from, &to, width).contains(&order));
            }
        }
    }
}
