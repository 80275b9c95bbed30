//! The planner: the cheapest steps that fold one axis.
//!
//! # Idea
//! The axis bits fold in one order, so a plan is a walk through [`State`]s in which the only
//! questions are how to fold a bit that sits in a lane (a butterfly, or a half exchange with one
//! of the register bits) and where to move everything when the bit sits in a warp. States are
//! few and recur: the search visits each once and keeps its best continuation.
//! # Invariants
//! - **R1** The planner finds a plan for every site that [`plan`] does not refuse.
//! - **R2** Equal sites get equal plans: nothing here depends on hash order or time.
//! # Held by
//! R1, R2: the property tests in `tests/plans.rs`. That a plan is *right*: `check.rs`, never this
//! module.
//! # Not here
//! The prices (`cost.rs`). Layout changes before the first fold that only pay off in speed.

use std::collections::HashMap;

use crate::cost::{self, CostModel};
use crate::layout::{Basis, Dim, LinearLayout};
use crate::plan::{LaneBit, Operands, Plan, RegisterBit, Site, State, Step};

/// A site for which there is no plan yet.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPlan {
    /// The axis is split over the CTAs of a cluster.
    #[error("the reduced axis is split over the CTAs of a cluster")]
    AxisAcrossBlocks,
    /// The result is wanted by other CTAs than those that hold the rows.
    #[error("the result is wanted by other CTAs than those that hold the operand")]
    ResultAcrossBlocks,
}

/// The cheapest plan for `site` under `costs`.
///
/// # Errors
/// When the axis, or the way to the result, crosses CTAs.
pub fn plan(site: &Site, costs: &CostModel) -> Result<Plan, NoPlan> {
    let axis = |&b: &Basis| site.source.shape.component(b, site.axis) != 0;
    if site.source.block.iter().any(axis) {
        return Err(NoPlan::AxisAcrossBlocks);
    }
    let start = State::new(site);
    let folded = |b: Basis| {
        let below = (1u64 << site.source.shape.offset(site.axis)) - 1;
        Basis((b.0 & below) | ((b.0 >> site.source.shape.bits(site.axis)) & !below))
    };
    let blocks: Vec<Basis> = site.source.block.iter().map(|&b| folded(b)).collect();
    if blocks != site.result.block {
        return Err(NoPlan::ResultAcrossBlocks);
    }
    let mut search = Search { site, costs, best: HashMap::new() };
    let cost = search.cost_from(&start);
    Ok(search.plan_from(start, cost))
}

/// What a state costs to finish, and the step that does it.
#[derive(Clone)]
struct Choice {
    cost: u32,
    step: Option<Step>,
}

struct Search<'a> {
    site: &'a Site,
    costs: &'a CostModel,
    best: HashMap<State, Choice>,
}

impl Search<'_> {
    fn cost_from(&mut self, state: &State) -> u32 {
        if let Some(choice) = self.best.get(state) {
            return choice.cost;
        }
        let mut best: Option<Choice> = None;
        if state.bits_left() == 0 && state.gather(&self.site.result).is_some() {
            best = Some(Choice { cost: 0, step: None });
        } else {
            for step in self.candidates(state) {
                let after = state.after(&step);
                let cost = self.price(state, &step, &after) + self.cost_from(&after);
                if best.as_ref().is_none_or(|b| cost < b.cost) {
                    best = Some(Choice { cost, step: Some(step) });
                }
            }
        }
        let best = best.expect("every state has a candidate: at least a relayout");
        let cost = best.cost;
        self.best.insert(state.clone(), best);
        cost
    }

    fn plan_from(&self, mut state: State, cost: u32) -> Plan {
        let mut steps = Vec::new();
        while let Some(step) = &self.best[&state].step {
            state = state.after(step);
            steps.push(step.clone());
        }
        let gather = state.gather(&self.site.result).expect("the last state holds the result");
        Plan { steps, gather, cost }
    }

    /// The steps worth trying. Every relayout leaves a state that needs no further relayout
    /// before it is folded, or one that is closer to it, so the search ends.
    fn candidates(&self, state: &State) -> Vec<Step> {
        if state.bits_left() == 0 {
            return vec![Step::Relayout(state.embed(&self.site.result))];
        }
        let next = state.next_bit();
        let layout = &state.layout;
        if !is_permutation(layout) {
            return vec![Step::Relayout(spread(layout, Some(state.axis)))];
        }
        if let Some(bit) = position(&layout.register, next) {
            return vec![Step::FoldRegister(RegisterBit(bit))];
        }
        if let Some(bit) = position(&layout.lane, next) {
            let lane = LaneBit(bit);
            let mut steps = vec![Step::Butterfly(lane)];
            let partners = self.partners(state, lane);
            steps.extend(partners.map(|register| Step::HalfExchange { lane, register }));
            return steps;
        }
        self.relayouts(state).map(Step::Relayout).collect()
    }

    /// Register bits worth moving into `lane`: the last axis bit, and the row bit that the result
    /// wants there or, if it wants none that is at hand, the last one.
    fn partners(&self, state: &State, lane: LaneBit) -> impl Iterator<Item = RegisterBit> {
        let register = &state.layout.register;
        let shape = &state.layout.shape;
        let on_axis = |&b: &Basis| shape.component(b, state.axis) != 0;
        let wanted = self.site.result.lane[lane.0 as usize];
        let row = register
            .iter()
            .position(|b| !on_axis(b) && self.row(state, *b) == wanted)
            .or_else(|| register.iter().rposition(|b| !on_axis(b)));
        let axis = register.iter().rposition(on_axis);
        [row, axis].into_iter().flatten().map(|bit| RegisterBit(bit as u32))
    }

    /// A column across the axis, as the result numbers it.
    fn row(&self, state: &State, basis: Basis) -> Basis {
        let shape = &state.layout.shape;
        let below = (1u64 << shape.offset(state.axis)) - 1;
        let above = shape.offset(state.axis) + shape.bits(state.axis);
        let upper = if above >= 64 { 0 } else { basis.0 >> above };
        Basis((basis.0 & below) | (upper << shape.offset(state.axis)))
    }

    /// Layouts to move to when the next bit sits in a warp: rows where the result wants them, the
    /// axis in registers and, for the highest `lanes` bits, in lanes that the result leaves free.
    fn relayouts(&self, state: &State) -> impl Iterator<Item = LinearLayout> {
        let wanted = &self.site.result;
        let reachable = if is_permutation(wanted) { wanted.clone() } else { spread(wanted, None) };
        let result = reachable.distinct_registers().0;
        let free: Vec<usize> = positions(&result.lane, Basis::ZERO);
        let bits = state.bits_left();
        let most = bits.min(free.len() as u32);
        let shape = state.layout.shape.clone();
        let axis = state.axis;
        let widen = move |b: Basis| {
            let below = (1u64 << shape.offset(axis)) - 1;
            Basis((b.0 & below) | ((b.0 & !below) << shape.bits(axis)))
        };
        let shape = state.layout.shape.clone();
        (0..=most).map(move |lanes| {
            let columns = |bases: &[Basis]| bases.iter().map(|&b| widen(b)).collect::<Vec<_>>();
            let mut lane = columns(&result.lane);
            let held = bits - lanes;
            for (&place, bit) in free.iter().zip(held..bits) {
                lane[place] = shape.unit(axis, bit);
            }
            let mut register: Vec<Basis> = (0..held).map(|bit| shape.unit(axis, bit)).collect();
            register.extend(columns(&result.register));
            LinearLayout {
                shape: shape.clone(),
                register,
                lane,
                warp: columns(&result.warp),
                block: columns(&result.block),
            }
        })
    }

    fn price(&self, before: &State, step: &Step, after: &State) -> u32 {
        let have = before.layout.registers();
        let half = have.div_ceil(2);
        let combine = self.costs.combine * self.site.combine_cost;
        let words = |values| self.site.widths.iter().map(|&w| cost::words(values, w)).sum::<u32>();
        let ordered = match self.site.operands {
            Operands::Commute => 0,
            Operands::Ordered => 2 * self.costs.select,
        };
        match step {
            Step::FoldRegister(_) => half as u32 * combine,
            Step::Butterfly(lane) => {
                words(have) * (self.costs.exchange(*lane) + ordered) + have as u32 * combine
            }
            Step::HalfExchange { lane, .. } => {
                let choose = 2 * self.costs.select + ordered;
                words(half) * (self.costs.exchange(*lane) + choose) + half as u32 * combine
            }
            Step::Relayout(_) => {
                let accesses = |values| -> u32 {
                    self.site.widths.iter().map(|&w| cost::words(values, w).div_ceil(4)).sum()
                };
                let moved = accesses(have) + accesses(after.layout.registers());
                let operands = self.site.widths.len() as u32;
                moved * self.costs.shared_access
                    + operands * (self.costs.relayout + 2 * self.costs.barrier)
            }
        }
    }
}

/// Whether every place bit carries one index bit or none, and no index bit twice.
fn is_permutation(layout: &LinearLayout) -> bool {
    let mut seen = 0u64;
    layout.columns().filter(|&b| b != Basis::ZERO).all(|b| {
        let fresh = b.is_unit() && seen & b.0 == 0;
        seen |= b.0;
        fresh
    })
}

/// A permutation layout of the same tensor: the bits of `first`, then the others, into as many
/// registers as the tensor needs, then lanes, then warps; blocks stay.
fn spread(layout: &LinearLayout, first: Option<Dim>) -> LinearLayout {
    let shape = &layout.shape;
    let taken = layout.block.iter().fold(0, |bits, b| bits | b.0);
    let dims = (0..shape.rank()).map(Dim).filter(|&d| Some(d) != first);
    let mut bits: Vec<Basis> = first
        .into_iter()
        .chain(dims)
        .flat_map(|d| (0..shape.bits(d)).map(move |bit| shape.unit(d, bit)))
        .filter(|b| b.0 & taken == 0)
        .collect();
    let threads = layout.lane.len() + layout.warp.len();
    let mut rest = bits.split_off(bits.len().saturating_sub(threads)).into_iter();
    let mut fill = |places: usize| -> Vec<Basis> {
        (0..places).map(|_| rest.next().unwrap_or(Basis::ZERO)).collect()
    };
    let lane = fill(layout.lane.len());
    let warp = fill(layout.warp.len());
    LinearLayout { shape: shape.clone(), register: bits, lane, warp, block: layout.block.clone() }
}

fn position(columns: &[Basis], wanted: Basis) -> Option<u32> {
    columns.iter().position(|&b| b == wanted).map(|p| p as u32)
}

fn positions(columns: &[Basis], wanted: Basis) -> Vec<usize> {
    (0..columns.len()).filter(|&p| columns[p] == wanted).collect()
}
