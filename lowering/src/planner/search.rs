//! The search for the cheapest walk through placements.
//!
//! # Invariants
//! - **S1** Whatever the placement, there is a move, and every move ends nearer to the end: a fold
//!   takes an axis bit, and a relayout puts the next one where only folds take it.
//! # Held by
//! S1: [`Search::moves`].
//! # Not here
//! What a move costs (`price.rs`).

use rustc_hash::FxHashMap;

use super::price::Prices;
use crate::placement::{Code, Placement};
use crate::plan::{LaneBit, RegisterBit, State, Step};

/// One step of the search. Bits are numbered as in a [`Step`].
#[derive(Clone, Copy)]
enum Move {
    FoldRegister(usize),
    Butterfly(usize),
    HalfExchange { lane: usize, register: usize },
    Relayout(Placement),
}

/// What a placement costs to finish, and the move that does it.
#[derive(Clone, Copy)]
struct Choice {
    cost: u32,
    next: Option<Move>,
}

/// Whether a relayout led to a placement: another at once is never cheaper than one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Came {
    ByFold,
    ByRelayout,
}

/// A search for one site.
pub struct Search<'a> {
    prices: Prices<'a>,
    /// Where a relayout puts the rows.
    rows: Placement,
    /// The result, where the last state can be it without a relayout.
    goal: Option<Placement>,
    best: FxHashMap<(Placement, Came), Choice>,
}

impl<'a> Search<'a> {
    /// A search whose relayouts put the rows where `rows` has them, and which ends at `goal`.
    pub fn new(prices: Prices<'a>, rows: Placement, goal: Option<Placement>) -> Search<'a> {
        Search { prices, rows, goal, best: FxHashMap::default() }
    }

    /// Appends the cheapest steps from `state` to one whose axis is folded.
    pub fn extend(&mut self, state: &mut State, steps: &mut Vec<Step>) {
        let frame = self.prices.frame;
        let mut at = frame.placement(state);
        let mut came = if steps.is_empty() { Came::ByFold } else { Came::ByRelayout };
        self.cost_from(at, came);
        while let Some(next) = self.best[&(at, came)].next {
            (at, came) = self.after(at, next);
            let step = match next {
                Move::FoldRegister(bit) => Step::FoldRegister(RegisterBit(bit as u32)),
                Move::Butterfly(bit) => Step::Butterfly(LaneBit(bit as u32)),
                Move::HalfExchange { lane, register } => Step::HalfExchange {
                    lane: LaneBit(lane as u32),
                    register: RegisterBit(register as u32),
                },
                Move::Relayout(_) => Step::Relayout(frame.layout(at, state)),
            };
            *state = state.after(&step);
            steps.push(step);
        }
    }

    fn cost_from(&mut self, at: Placement, came: Came) -> u32 {
        if let Some(choice) = self.best.get(&(at, came)) {
            return choice.cost;
        }
        let choice = if self.prices.frame.bits_left(at) == 0 {
            Choice { cost: self.cost_of_end(at), next: None }
        } else {
            let mut ways: Vec<(u32, u32, usize, Move)> = Vec::new();
            for (number, next) in self.moves(at, came).into_iter().enumerate() {
                let (after, how) = self.after(at, next);
                let rest = self.cost_from(after, how);
                ways.push((self.at_least(at, next) + rest, rest, number, next));
            }
            ways.sort_by_key(|&(least, ..)| least);
            // Of equals the first; so how soon a price is known decides nothing.
            let mut best: Option<(u32, usize, Move)> = None;
            for (least, rest, number, next) in ways {
                if best.is_some_and(|(cost, ..)| cost < least) {
                    break;
                }
                let cost = self.price(at, next) + rest;
                if best.is_none_or(|(least, first, _)| (cost, number) < (least, first)) {
                    best = Some((cost, number, next));
                }
            }
            let (cost, _, next) = best.expect("every placement has a move: at least a relayout");
            Choice { cost, next: Some(next) }
        };
        self.best.insert((at, came), choice);
        choice.cost
    }

    /// Nothing if the result is in place, else one more relayout.
    fn cost_of_end(&self, at: Placement) -> u32 {
        match self.goal {
            Some(goal) if self.prices.frame.holds(at, goal) => 0,
            Some(goal) => self.prices.relayout(&at, &goal),
            None => self.prices.relayout(&at, &self.rows),
        }
    }

    fn moves(&self, at: Placement, came: Came) -> Vec<Move> {
        let frame = self.prices.frame;
        let next = frame.next(at);
        if let Some(bit) = position(at.register(), next) {
            return vec![Move::FoldRegister(bit)];
        }
        let mut found = Vec::with_capacity(16);
        if let Some(lane) = position(at.lane(), next) {
            found.push(Move::Butterfly(lane));
            let half = |register: usize| Move::HalfExchange { lane, register };
            found.extend(self.partners(at, lane).into_iter().flatten().map(half));
        } else if came == Came::ByRelayout {
            unreachable!("a relayout leaves no axis bit in a warp");
        }
        if came == Came::ByFold {
            found.extend(self.relayouts(at).into_iter().map(Move::Relayout));
        }
        found
    }

    /// Register bits worth moving into `lane`: the row bit that the result wants there or, if it
    /// wants none that is at hand, the last one; and the last axis bit.
    fn partners(&self, at: Placement, lane: usize) -> [Option<usize>; 2] {
        let on_axis = |&code: &Code| self.prices.frame.on_axis(code);
        let wanted = self.rows.lane()[lane];
        let register = at.register();
        let row = position(register, wanted)
            .filter(|_| wanted != Code::NONE)
            .or_else(|| register.iter().rposition(|code| !on_axis(code)));
        [row, register.iter().rposition(on_axis)]
    }

    /// The axis in registers and, for its highest bits, in lanes: the rows where the result wants
    /// them, or spread over all threads.
    fn relayouts(&self, at: Placement) -> Vec<Placement> {
        let frame = self.prices.frame;
        let left = frame.bits_left(at) as usize;
        let free = self.rows.lane().iter().filter(|&&code| code == Code::NONE).count();
        let gathered = (0..=free.min(left)).map(|lanes| frame.gathered(at, self.rows, lanes));
        let lanes = self.rows.lane().len();
        let spread = (0..=lanes.min(left)).map(|lanes| frame.spread(at, self.rows, lanes));
        gathered.chain(spread).filter(|&to| to != at).collect()
    }

    fn after(&self, at: Placement, next: Move) -> (Placement, Came) {
        match next {
            Move::FoldRegister(bit) => (at.folded().without_register(bit), Came::ByFold),
            Move::Butterfly(lane) => (at.folded().with_lane(lane, Code::NONE), Came::ByFold),
            Move::HalfExchange { lane, register } => {
                let moved = at.register()[register];
                (at.folded().without_register(register).with_lane(lane, moved), Came::ByFold)
            }
            Move::Relayout(to) => (to, Came::ByRelayout),
        }
    }

    /// No more than [`Search::price`], and found sooner.
    fn at_least(&self, at: Placement, next: Move) -> u32 {
        match next {
            Move::Relayout(to) => self.prices.relayout_at_least(&at, &to),
            _ => self.price(at, next),
        }
    }

    fn price(&self, at: Placement, next: Move) -> u32 {
        let have = at.registers();
        match next {
            Move::FoldRegister(_) => self.prices.fold_register(have),
            Move::Butterfly(lane) => {
                let folded = at.lane()[..lane].iter().all(|&code| code == Code::NONE);
                self.prices.butterfly(have, LaneBit(lane as u32), folded)
            }
            Move::HalfExchange { lane, .. } => {
                self.prices.half_exchange(have, LaneBit(lane as u32))
            }
            Move::Relayout(to) => self.prices.relayout(&at, &to),
        }
    }
}

fn position(codes: &[Code], wanted: Code) -> Option<usize> {
    codes.iter().position(|&code| code == wanted)
}
