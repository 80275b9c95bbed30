//! No walk is cheaper than the planner's.
//!
//! # Idea
//! On small machines all walks can be tried: every fold, every register bit as the partner of a
//! half exchange, every relayout. [`cheaper`] is Dijkstra's search over them, which has no bounds
//! and asks the planner for prices alone. Two claims are held:
//! - No walk of the planner's own choices is cheaper. Relayouts start with the first step or where
//!   the next axis bit is in a lane or a warp, and end with the axis in registers but for its
//!   highest bits in lanes, the rows where the result wants them or spread over all threads. A half
//!   exchange moves the row bit that is wanted in the lane, else the last, or the last axis bit.
//! - With a relayout at any time to any permutation, and half exchanges with any register bit, few
//!   plans of random sites are beaten, and by less than half: [`SITES`]. These are too many to try
//!   for a tile of common size.
//!
//! The registers of a relayout's target are in ascending order: any other has the same accesses.
//! # Not here
//! Whether a plan is right (`plans.rs`).

#[path = "common/sites.rs"]
mod random;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use bitstable_lowering::cost::CostModel;
use bitstable_lowering::layout::{Basis, LinearLayout};
use bitstable_lowering::plan::{LaneBit, Plan, RegisterBit, Site, State, Step};
use bitstable_lowering::planner;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

/// Which walks are tried.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Walks {
    /// Those of the planner's choices.
    Chosen,
    /// All.
    All,
}

/// A walk that is cheaper than `bound`, if there is one.
fn cheaper(site: &Site, costs: &CostModel, walks: Walks, bound: u32) -> Option<Plan> {
    let start = (State::new(site), false);
    let mut least = BTreeMap::from([(start.clone(), 0)]);
    let mut came: BTreeMap<(State, bool), ((State, bool), Step)> = BTreeMap::new();
    let mut heap = BinaryHeap::from([Reverse((0, start))]);
    while let Some(Reverse((cost, at))) = heap.pop() {
        if cost >= bound {
            break;
        }
        if least[&at] < cost {
            continue;
        }
        let (state, moved) = &at;
        if state.bits_left() == 0 && state.gather(&site.result).is_some() {
            let mut steps = Vec::new();
            let mut here = &at;
            while let Some((before, step)) = came.get(here) {
                steps.insert(0, step.clone());
                here = before;
            }
            return Some(Plan { steps, gather: Vec::new(), cost });
        }
        let mut steps = folds(state);
        if walks == Walks::Chosen {
            steps.retain(|step| chosen(site, state, step));
        }
        if !moved {
            let targets = match walks {
                Walks::All => placements(&state.layout),
                Walks::Chosen => targets(site, state),
            };
            steps.extend(targets.into_iter().map(Step::Relayout));
        }
        let here = Site { source: state.layout.clone(), ..site.clone() };
        for step in steps {
            let total = cost + planner::price(&here, costs, std::slice::from_ref(&step));
            let next = (state.after(&step), matches!(step, Step::Relayout(_)));
            if total < bound && least.get(&next).is_none_or(|&known| total < known) {
                least.insert(next.clone(), total);
                came.insert(next.clone(), (at.clone(), step));
                heap.push(Reverse((total, next)));
            }
        }
    }
    None
}

/// Every way to fold the next axis bit where it is.
fn folds(state: &State) -> Vec<Step> {
    if state.bits_left() == 0 {
        return Vec::new();
    }
    let place = |bases: &[Basis]| bases.iter().position(|&b| b == state.next_bit());
    let mut found = Vec::new();
    if let Some(bit) = place(&state.layout.register) {
        found.push(Step::FoldRegister(RegisterBit(bit as u32)));
    }
    if let Some(bit) = place(&state.layout.lane) {
        let lane = LaneBit(bit as u32);
        found.push(Step::Butterfly(lane));
        let registers = (0..state.layout.register.len() as u32).map(RegisterBit);
        found.extend(registers.map(|register| Step::HalfExchange { lane, register }));
    }
    found
}

/// Every permutation layout of the same tensor on the same machine.
fn placements(layout: &LinearLayout) -> Vec<LinearLayout> {
    let bits = (0..layout.shape.total_bits()).map(|bit| Basis(1 << bit)).collect();
    let mut found = Vec::new();
    let bare =
        LinearLayout { register: Vec::new(), lane: Vec::new(), warp: Vec::new(), ..layout.clone() };
    place(bare, bits, (layout.lane.len(), layout.warp.len()), &mut found);
    found
}

/// All ways to go on from `begun` with `left` to be placed: lanes first, then warps, and what is
/// left over in registers.
fn place(
    begun: LinearLayout,
    left: Vec<Basis>,
    (lanes, warps): (usize, usize),
    found: &mut Vec<LinearLayout>,
) {
    let threads = begun.lane.len() < lanes || begun.warp.len() < warps;
    if !threads && left.is_empty() {
        found.push(begun);
        return;
    }
    let with = |basis: Basis| {
        let mut next = begun.clone();
        if next.lane.len() < lanes {
            next.lane.push(basis);
        } else if next.warp.len() < warps {
            next.warp.push(basis);
        } else {
            next.register.push(basis);
        }
        next
    };
    let choices = if threads { left.len() } else { 1 };
    for taken in 0..choices {
        let mut rest = left.clone();
        let basis = rest.remove(taken);
        place(with(basis), rest, (lanes, warps), found);
    }
    if threads {
        place(with(Basis::ZERO), left, (lanes, warps), found);
    }
}

/// A row bit of the result as a bit of the tensor that is left of the operand.
fn row(site: &Site, state: &State, basis: Basis) -> Basis {
    let below = (1u64 << state.layout.shape.offset(site.axis)) - 1;
    Basis((basis.0 & below) | ((basis.0 & !below) << state.bits_left()))
}

/// Whether the planner considers a fold.
fn chosen(site: &Site, state: &State, step: &Step) -> bool {
    let Step::HalfExchange { lane, register } = step else { return true };
    let bases = &state.layout.register;
    let on_axis = |basis: &&Basis| state.layout.shape.component(**basis, site.axis) != 0;
    let wanted = row(site, state, site.result.lane[lane.0 as usize]);
    let mut rows = bases.iter().filter(|basis| !on_axis(basis));
    let last_row = rows.clone().find(|&&basis| basis == wanted).or_else(|| rows.next_back());
    let last_of_axis = bases.iter().filter(on_axis).max();
    [last_row, last_of_axis].contains(&Some(&bases[register.0 as usize]))
}

/// Where the planner moves everything: the axis in registers but for its `high` highest bits, which
/// go to the lanes that the result leaves free, or to the lowest ones while the rows go to all other
/// places. To the result itself at the end.
fn targets(site: &Site, state: &State) -> Vec<LinearLayout> {
    if state.bits_left() == 0 {
        return vec![state.embed(&site.result).distinct_registers().0];
    }
    let begun = state.bits_left() < site.source.shape.bits(site.axis);
    if begun && state.layout.register.contains(&state.next_bit()) {
        return Vec::new();
    }
    let shape = &state.layout.shape;
    let left = shape.bits(site.axis) as usize;
    let rows = |bases: &[Basis]| -> Vec<Basis> {
        bases.iter().map(|&basis| row(site, state, basis)).collect()
    };
    let some = |bases: Vec<Basis>| bases.into_iter().filter(|&b| b != Basis::ZERO);
    let (register, lane) = (rows(&site.result.register), rows(&site.result.lane));
    let warp = rows(&site.result.warp);
    let axis: Vec<Basis> = (0..left).map(|bit| shape.unit(site.axis, bit as u32)).collect();
    let mut found = Vec::new();
    for high in 0..=left.min(lane.len()) {
        let (low, high) = axis.split_at(left - high);
        let mut free = high.iter().copied();
        let mut gathered = lane.clone();
        for place in gathered.iter_mut().filter(|place| **place == Basis::ZERO) {
            *place = free.next().unwrap_or(Basis::ZERO);
        }
        if free.next().is_none() {
            let register = low.iter().copied().chain(some(register.clone())).collect();
            let warp = warp.clone();
            found.push(LinearLayout { register, lane: gathered, warp, ..state.layout.clone() });
        }
        let mut bits = some([&lane[..], &warp, &register].concat());
        let mut fill = |places: usize| -> Vec<Basis> {
            (0..places).map(|_| bits.next().unwrap_or(Basis::ZERO)).collect()
        };
        let spread = [high, &fill(lane.len() - high.len())].concat();
        let warp = fill(warp.len());
        let register = low.iter().copied().chain(bits).collect();
        found.push(LinearLayout { register, lane: spread, warp, ..state.layout.clone() });
    }
    found
}

fn models() -> [(&'static str, CostModel); 4] {
    [
        ("NVIDIA", CostModel::nvidia()),
        ("gfx942", CostModel::amd_wave64()),
        ("gfx950", CostModel::amd_wave64_swaps()),
        ("waves of 32", CostModel::amd_wave32()),
    ]
}

/// The planner's plan for a target, and a cheaper one if there is one.
fn beaten(site: &Site, costs: &CostModel, walks: Walks) -> (Plan, Option<Plan>) {
    let plan = planner::plan(site, costs).expect("one CTA");
    assert_eq!(plan.cost, planner::price(site, costs, &plan.steps), "{site:?}\n{plan}");
    let found = cheaper(site, costs, walks, plan.cost);
    (plan, found)
}

fn told(target: &str, site: &Site, plan: &Plan, found: &Plan) -> String {
    format!(
        "{target}: {} is beaten by {}\n{site:?}\nfrom {}\nto {}\nplanned:\n{plan}found:\n{found}",
        plan.cost, found.cost, site.source, site.result
    )
}

/// A site of up to 2^5 elements with up to two operands. Other layouts than permutations are moved
/// away from before anything is searched.
fn sites() -> impl Strategy<Value = Site> {
    let widths = prop::collection::vec(prop::sample::select(vec![8, 16, 32, 64]), 1..=2);
    let plain = |site: &Site| site.source.is_permutation() && site.result.is_permutation();
    (random::sites(5, 3, 2), widths, 1..=4u32)
        .prop_map(|(site, widths, combine_cost)| Site { widths, combine_cost, ..site })
        .prop_filter("a layout that is no permutation", plain)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_chosen_walk_is_cheaper(site in sites()) {
        for (target, costs) in models() {
            let (plan, found) = beaten(&site, &costs, Walks::Chosen);
            prop_assert!(found.is_none(), "{}", told(target, &site, &plan, &found.unwrap()));
        }
    }
}

/// What the planner's choices cost at most, and how often. The sites are the same each time.
#[test]
fn other_walks_gain_little() {
    let mut runner = TestRunner::deterministic();
    let (mut better, mut all) = (0, 0);
    for _ in 0..SITES {
        let site = sites().new_tree(&mut runner).expect("a site").current();
        for (target, costs) in models() {
            let (plan, found) = beaten(&site, &costs, Walks::All);
            all += 1;
            if let Some(found) = found {
                better += 1;
                let told = told(target, &site, &plan, &found);
                assert!(plan.cost * 2 < found.cost * 3, "more than half. {told}");
            }
        }
    }
    assert!(better * 20 <= all, "{better} plans of {all} are beaten");
}

const SITES: usize = 40;
