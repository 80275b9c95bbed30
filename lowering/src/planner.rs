//! The planner: the cheapest steps that fold one axis.
//!
//! # Idea
//! The axis bits fold in one order, so a plan is a walk through states in which the only questions
//! are how to fold a bit that sits in a lane (a butterfly, or a half exchange with one of the
//! register bits) and where to move everything when the bit sits in a warp. States are few and
//! recur: the search visits each once and keeps its best continuation.
//! # Invariants
//! - **R1** The planner finds a plan for every site that [`plan`] does not refuse.
//! - **R2** Equal sites get equal plans: nothing here depends on hash order or time.
//! # Held by
//! R1, R2: the property tests in `tests/plans.rs`. That a plan is *right*: `check.rs`, never this
//! module.
//! # Not here
//! The prices (`cost.rs`); how the search writes a state down (`placement.rs`). Layout changes
//! before the first fold (`renumber.rs`).

use rustc_hash::FxHashMap;

use crate::cost::{self, CostModel};
use crate::layout::{Basis, Dim, LinearLayout};
use crate::placement::{Code, Frame, Placement};
use crate::plan::{LaneBit, Operands, Plan, RegisterBit, Site, State, Step};

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
    if !is_permutation(&state.layout) {
        let step = Step::Relayout(spread(&state.layout, Some(site.axis)));
        state = state.after(&step);
        steps.push(step);
    }
    let frame = Frame::new(site);
    let rows = rows(site, &frame);
    let goal = is_permutation(&site.result).then_some(rows);
    let mut search = Search { site, costs, frame, rows, goal, best: FxHashMap::default() };
    let start = frame.placement(&state);
    let first = if steps.is_empty() { 0 } else { search.relayout(search.start_registers(), start) };
    let cost = first + search.cost_from(start);
    search.walk(start, &mut state, &mut steps);
    if let Some(gather) = state.gather(&site.result) {
        return Ok(Plan { steps, gather, cost });
    }
    let last = Step::Relayout(state.embed(&site.result));
    let end = state.after(&last);
    steps.push(last);
    let gather = end.gather(&site.result).expect("a layout holds what it names");
    Ok(Plan { steps, gather, cost })
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
    let reachable = if is_permutation(wanted) { wanted.clone() } else { spread(wanted, None) };
    frame.rows(&reachable.distinct_registers().0)
}

/// One step of the search. Bits are numbered as in a [`Step`].
#[derive(Clone, Copy)]
enum Move {
    FoldRegister(usize),
    Butterfly(usize),
    HalfExchange {
        lane: usize,
        register: usize,
    },
    /// Rows where the result wants them, the axis in registers and, for this many of its highest
    /// bits, in lanes that the result leaves free.
    Relayout {
        lanes: usize,
    },
}

/// What a placement costs to finish, and the move that does it.
#[derive(Clone, Copy)]
struct Choice {
    cost: u32,
    next: Option<Move>,
}

struct Search<'a> {
    site: &'a Site,
    costs: &'a CostModel,
    frame: Frame,
    rows: Placement,
    /// The result, where the last state can be it without a relayout.
    goal: Option<Placement>,
    best: FxHashMap<Placement, Choice>,
}

impl Search<'_> {
    fn cost_from(&mut self, at: Placement) -> u32 {
        if let Some(choice) = self.best.get(&at) {
            return choice.cost;
        }
        let choice = if self.frame.bits_left(at) == 0 {
            Choice { cost: self.cost_of_end(at), next: None }
        } else {
            let mut best: Option<Choice> = None;
            for next in self.moves(at) {
                let after = self.after(at, next);
                let cost = self.price(at, next, after) + self.cost_from(after);
                if best.is_none_or(|b| cost < b.cost) {
                    best = Some(Choice { cost, next: Some(next) });
                }
            }
            best.expect("every placement has a move: at least a relayout")
        };
        self.best.insert(at, choice);
        choice.cost
    }

    /// Nothing if the result is in place, else one more relayout.
    fn cost_of_end(&self, at: Placement) -> u32 {
        if self.goal.is_some_and(|goal| self.frame.holds(at, goal)) {
            0
        } else {
            self.relayout_registers(at.registers(), self.site.result.registers())
        }
    }

    /// Follows the best moves, writing them down as steps.
    fn walk(&self, mut at: Placement, state: &mut State, steps: &mut Vec<Step>) {
        while let Some(next) = self.best[&at].next {
            at = self.after(at, next);
            let step = match next {
                Move::FoldRegister(bit) => Step::FoldRegister(RegisterBit(bit as u32)),
                Move::Butterfly(bit) => Step::Butterfly(LaneBit(bit as u32)),
                Move::HalfExchange { lane, register } => Step::HalfExchange {
                    lane: LaneBit(lane as u32),
                    register: RegisterBit(register as u32),
                },
                Move::Relayout { .. } => Step::Relayout(self.frame.layout(at, state)),
            };
            *state = state.after(&step);
            steps.push(step);
        }
    }

    fn moves(&self, at: Placement) -> impl Iterator<Item = Move> + use<> {
        let next = self.frame.next(at);
        let mut found: [Option<Move>; 8] = [None; 8];
        if let Some(bit) = position(at.register(), next) {
            found[0] = Some(Move::FoldRegister(bit));
        } else if let Some(lane) = position(at.lane(), next) {
            found[0] = Some(Move::Butterfly(lane));
            let half = |register: usize| Move::HalfExchange { lane, register };
            for (place, partner) in found[1..].iter_mut().zip(self.partners(at, lane)) {
                *place = partner.map(half);
            }
        } else {
            let free = self.rows.lane().iter().filter(|&&code| code == Code::NONE).count();
            let most = free.min(self.frame.bits_left(at) as usize);
            for (lanes, place) in found.iter_mut().enumerate().take(most + 1) {
                *place = Some(Move::Relayout { lanes });
            }
        }
        found.into_iter().flatten()
    }

    /// Register bits worth moving into `lane`: the row bit that the result wants there or, if it
    /// wants none that is at hand, the last one; and the last axis bit.
    fn partners(&self, at: Placement, lane: usize) -> [Option<usize>; 2] {
        let on_axis = |&code: &Code| self.frame.on_axis(code);
        let wanted = self.rows.lane()[lane];
        let register = at.register();
        let row = position(register, wanted)
            .filter(|_| wanted != Code::NONE)
            .or_else(|| register.iter().rposition(|code| !on_axis(code)));
        [row, register.iter().rposition(on_axis)]
    }

    fn after(&self, at: Placement, next: Move) -> Placement {
        match next {
            Move::FoldRegister(bit) => at.folded().without_register(bit),
            Move::Butterfly(lane) => at.folded().with_lane(lane, Code::NONE),
            Move::HalfExchange { lane, register } => {
                let moved = at.register()[register];
                at.folded().without_register(register).with_lane(lane, moved)
            }
            Move::Relayout { lanes } => self.frame.gathered(at, self.rows, lanes),
        }
    }

    fn price(&self, before: Placement, next: Move, after: Placement) -> u32 {
        let have = before.registers();
        let half = have.div_ceil(2);
        let combine = self.costs.combine * self.site.combine_cost;
        let words = |values| self.site.widths.iter().map(|&w| cost::words(values, w)).sum::<u32>();
        let ordered = match self.site.operands {
            Operands::Commute => 0,
            Operands::Ordered => 2 * self.costs.select,
        };
        match next {
            Move::FoldRegister(_) => half as u32 * combine,
            Move::Butterfly(lane) => {
                let exchange = self.costs.exchange(LaneBit(lane as u32));
                words(have) * (exchange + ordered) + have as u32 * combine
            }
            Move::HalfExchange { lane, .. } => {
                let exchange = self.costs.exchange(LaneBit(lane as u32));
                let choose = 2 * self.costs.select + ordered;
                words(half) * (exchange + choose) + half as u32 * combine
            }
            Move::Relayout { .. } => self.relayout(have, after),
        }
    }

    fn relayout(&self, have: usize, after: Placement) -> u32 {
        self.relayout_registers(have, after.registers())
    }

    fn relayout_registers(&self, have: usize, then: usize) -> u32 {
        let accesses = |values| -> u32 {
            self.site.widths.iter().map(|&w| cost::words(values, w).div_ceil(4)).sum()
        };
        let operands = self.site.widths.len() as u32;
        (accesses(have) + accesses(then)) * self.costs.shared_access
            + operands * (self.costs.relayout + 2 * self.costs.barrier)
    }

    fn start_registers(&self) -> usize {
        self.site.source.distinct_registers().0.registers()
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

fn position(codes: &[Code], wanted: Code) -> Option<usize> {
    codes.iter().position(|&code| code == wanted)
}
