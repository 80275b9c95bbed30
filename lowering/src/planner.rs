//! The planner: the cheapest steps that fold one axis.
//!
//! # Idea
//! The axis bits fold in one order, so a plan is a walk through states in which the only questions
//! are how to fold a bit that sits in a lane (a butterfly, or a half exchange with one of the
//! register bits) and where to move everything when the bit sits in a warp, or when moving is
//! cheaper than exchanging. States are few and recur: the search visits each once and keeps its
//! best continuation.
//! # Invariants
//! - **R1** The planner finds a plan for every site that [`plan`] does not refuse.
//! - **R2** Equal sites get equal plans: nothing here depends on hash order or time.
//! - **R3** The cost of a plan is the sum of its steps' prices, [`price`].
//! # Held by
//! R1, R2, R3: the property tests in `tests/plans.rs`; `tests/cheapest.rs` holds plans of small
//! sites against all others. That a plan is *right*: `check.rs`, never this module.
//! # Not here
//! The numbers (`cost.rs`); how the search writes a state down (`placement.rs`). Layout changes
//! before the first fold (`renumber.rs`).

mod bound;
mod price;
mod search;

use crate::cost::CostModel;
use crate::layout::{Basis, Dim, LinearLayout};
use crate::placement::{Frame, Placement};
use crate::plan::{Plan, Site, State, Step};
use price::Prices;
use search::Search;

/// A site for which there is no plan.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NoPlan {
    /// The axis is split over the CTAs of a cluster.
    #[error("the reduced axis is split over the CTAs of a cluster")]
    AxisAcrossBlocks,
    /// The result is wanted by other CTAs than those that hold the rows.
    #[error("the result is wanted by other CTAs than those that hold the operand")]
    ResultAcrossBlocks,
    /// Larger than any tensor that Triton compiles, or than any machine.
    #[error("a tensor of 2^{elements} elements over 2^{warps} warps is more than is planned for")]
    TooLarge {
        /// The logarithm of the number of elements.
        elements: u32,
        /// The logarithm of the number of warps.
        warps: usize,
    },
}

/// The cheapest plan for `site` under `costs`.
///
/// # Errors
/// When the axis, or the way to the result, crosses CTAs; when the tensor is larger than any that
/// Triton compiles.
pub fn plan(site: &Site, costs: &CostModel) -> Result<Plan, NoPlan> {
    refuse(site)?;
    let mut state = State::new(site);
    let mut steps = Vec::new();
    if !state.layout.is_permutation() {
        let step = Step::Relayout(spread(&state.layout, Some(site.axis)));
        state = state.after(&step);
        steps.push(step);
    }
    let frame = Frame::new(site);
    let prices = Prices::new(site, costs);
    let mut search = Search::new(prices, rows(site, &frame), result(site, &frame));
    search.extend(&mut state, &mut steps);
    let gather = state.gather(&site.result).unwrap_or_else(|| {
        let last = Step::Relayout(state.embed(&site.result));
        let end = state.after(&last);
        steps.push(last);
        end.gather(&site.result).expect("a layout holds what it names")
    });
    let cost = price(site, costs, &steps);
    Ok(Plan { steps, gather, cost })
}

/// What `steps` cost at `site`.
pub fn price(site: &Site, costs: &CostModel, steps: &[Step]) -> u32 {
    let prices = Prices::new(site, costs);
    let mut state = State::new(site);
    let mut total = 0;
    for step in steps {
        let after = state.after(step);
        total += prices.step(&state, step, &after);
        state = after;
    }
    total
}

fn refuse(site: &Site) -> Result<(), NoPlan> {
    let shape = &site.source.shape;
    if site.source.block.iter().any(|&b| shape.component(b, site.axis) != 0) {
        return Err(NoPlan::AxisAcrossBlocks);
    }
    let below = (1u64 << shape.offset(site.axis)) - 1;
    let folded = |b: &Basis| Basis((b.0 & below) | ((b.0 >> shape.bits(site.axis)) & !below));
    if site.source.block.iter().map(folded).ne(site.result.block.iter().copied()) {
        return Err(NoPlan::ResultAcrossBlocks);
    }
    let (elements, warps) = (shape.total_bits(), site.source.warp.len());
    let fits = Placement::fits(elements, site.source.lane.len(), warps);
    if fits { Ok(()) } else { Err(NoPlan::TooLarge { elements, warps }) }
}

/// Where the rows are to go in a relayout: where the result wants them, if a relayout can put them
/// there and go on folding.
fn rows(site: &Site, frame: &Frame) -> Placement {
    let wanted = &site.result;
    let reachable = if wanted.is_permutation() { wanted.clone() } else { spread(wanted, None) };
    frame.rows(&reachable.distinct_registers().0)
}

/// The result, where the last state can be it.
fn result(site: &Site, frame: &Frame) -> Option<Placement> {
    let wanted = &site.result;
    wanted.is_permutation().then(|| frame.rows(&wanted.distinct_registers().0))
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
