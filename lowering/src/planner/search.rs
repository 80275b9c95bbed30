//! The search for the cheapest walk through placements.
//!
//! # Idea
//! A*: the state whose walk so far, together with the least that the rest must cost, is cheapest is
//! looked at next. The price of a way through shared memory takes a thousand times longer to find
//! than a bound of it, so a relayout waits with its bound and is priced when its turn comes; most
//! never are.
//! # Invariants
//! - **S1** Whatever the placement, there is a move, and every walk ends: a fold takes an axis bit,
//!   and a relayout is followed by a fold.
//! - **S2** The first walk that arrives is the cheapest.
//! # Held by
//! S1: [`Search::go_on`]. S2: the bounds (`bound.rs`), and `tests/cheapest.rs`.
//! # Not here
//! What a move costs (`price.rs`).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::rc::Rc;

use rustc_hash::FxHashSet;

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

/// What led to a placement.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Came {
    ByFold,
    /// Another at once is never cheaper than one.
    ByRelayout,
    /// The last relayout, to the result: there is nothing more to do.
    ToEnd,
}

/// A walk to a placement.
#[derive(Clone, Copy)]
struct Walk {
    at: Placement,
    came: Came,
    cost: u32,
    /// Whether `cost` has the price of the last move, or only a bound of it.
    priced: bool,
    /// The walk up to the last move, among [`Search::walks`], and that move.
    last: Option<(usize, Move)>,
}

/// Where relayouts lead, and the least that the rest then costs.
type Targets = Rc<[(Placement, u32)]>;

/// A search for one site.
pub struct Search<'a> {
    prices: Prices<'a>,
    /// Where a relayout puts the rows.
    rows: Placement,
    /// The result, where the last state can be it without a relayout.
    goal: Option<Placement>,
    walks: Vec<Walk>,
    /// What to look at next: the least that a whole walk costs, and among equals the one with the
    /// fewest bits left, and the eldest.
    open: BinaryHeap<Reverse<(u32, u32, usize)>>,
    closed: FxHashSet<(Placement, Came)>,
    /// By the bits left to fold.
    targets: Vec<Option<Targets>>,
}

impl<'a> Search<'a> {
    /// A search whose relayouts put the rows where `rows` has them, and which ends at `goal`.
    pub fn new(prices: Prices<'a>, rows: Placement, goal: Option<Placement>) -> Search<'a> {
        Search {
            prices,
            rows,
            goal,
            walks: Vec::new(),
            open: BinaryHeap::new(),
            closed: FxHashSet::default(),
            targets: Vec::new(),
        }
    }

    /// Appends the cheapest steps from `state` to one whose axis is folded.
    pub fn extend(&mut self, state: &mut State, steps: &mut Vec<Step>) {
        let frame = self.prices.frame;
        let came = if steps.is_empty() { Came::ByFold } else { Came::ByRelayout };
        for next in self.cheapest(frame.placement(state), came) {
            let step = match next {
                Move::FoldRegister(bit) => Step::FoldRegister(RegisterBit(bit as u32)),
                Move::Butterfly(bit) => Step::Butterfly(LaneBit(bit as u32)),
                Move::HalfExchange { lane, register } => Step::HalfExchange {
                    lane: LaneBit(lane as u32),
                    register: RegisterBit(register as u32),
                },
                Move::Relayout(to) => Step::Relayout(frame.layout(to, state)),
            };
            *state = state.after(&step);
            steps.push(step);
        }
    }

    /// The moves of the cheapest walk, but for a last relayout to the result.
    fn cheapest(&mut self, at: Placement, came: Came) -> Vec<Move> {
        self.push(Walk { at, came, cost: 0, priced: true, last: None });
        loop {
            let Reverse((_, _, index)) = self.open.pop().expect("there is always a move");
            let walk = self.walks[index];
            if self.closed.contains(&(walk.at, walk.came)) {
                continue;
            }
            if !walk.priced {
                self.push(self.priced(walk));
                continue;
            }
            self.closed.insert((walk.at, walk.came));
            let done = self.prices.frame.bits_left(walk.at) == 0;
            match self.goal {
                _ if !done => self.go_on(index),
                _ if walk.came == Came::ToEnd => return self.moves_of(walk.last.map(|l| l.0)),
                Some(goal) if self.prices.frame.holds(walk.at, goal) => {
                    return self.moves_of(Some(index));
                }
                goal => self.push(self.relayout(index, goal.unwrap_or(self.rows), Came::ToEnd)),
            }
        }
    }

    /// Adds every walk that is one move longer.
    fn go_on(&mut self, index: usize) {
        let Walk { at, came, cost, .. } = self.walks[index];
        let next = self.prices.frame.next(at);
        for fold in self.folds(at) {
            let (at, cost) = (after(at, fold), cost + self.price(at, fold));
            let last = Some((index, fold));
            self.push(Walk { at, came: Came::ByFold, cost, priced: true, last });
        }
        let begun = self.prices.frame.bits_left(at) < self.prices.frame.bits();
        if came == Came::ByFold && !(begun && at.register().contains(&next)) {
            for &(to, rest) in self.targets(at).iter().filter(|(to, _)| *to != at) {
                let walk = self.relayout(index, to, Came::ByRelayout);
                self.push_before(walk, rest);
            }
        }
    }

    fn relayout(&self, index: usize, to: Placement, came: Came) -> Walk {
        let Walk { at, cost, .. } = self.walks[index];
        let cost = cost + self.prices.at_least(&at, &to);
        Walk { at: to, came, cost, priced: false, last: Some((index, Move::Relayout(to))) }
    }

    /// A walk whose last move was not priced yet.
    fn priced(&self, walk: Walk) -> Walk {
        let (before, last) = walk.last.expect("only moves wait for their price");
        let Walk { at, cost, .. } = self.walks[before];
        Walk { cost: cost + self.price(at, last), priced: true, ..walk }
    }

    fn push(&mut self, walk: Walk) {
        let rest = self.rest(&walk.at);
        self.push_before(walk, rest);
    }

    /// Adds a walk after which the rest costs `rest` at least.
    fn push_before(&mut self, walk: Walk, rest: u32) {
        if !self.closed.contains(&(walk.at, walk.came)) {
            let left = self.prices.frame.bits_left(walk.at);
            self.open.push(Reverse((walk.cost + rest, left, self.walks.len())));
            self.walks.push(walk);
        }
    }

    fn rest(&self, at: &Placement) -> u32 {
        self.prices.rest(at, &self.goal.unwrap_or(self.rows))
    }

    fn moves_of(&self, end: Option<usize>) -> Vec<Move> {
        let mut moves = Vec::new();
        let mut at = end;
        while let Some((before, last)) = at.and_then(|index| self.walks[index].last) {
            moves.push(last);
            at = Some(before);
        }
        moves.reverse();
        moves
    }

    /// Every way worth trying to fold the next axis bit where it is; none if a warp has it.
    fn folds(&self, at: Placement) -> Vec<Move> {
        let next = self.prices.frame.next(at);
        if let Some(bit) = position(at.register(), next) {
            return vec![Move::FoldRegister(bit)];
        }
        let Some(lane) = position(at.lane(), next) else { return Vec::new() };
        let half = |register: usize| Move::HalfExchange { lane, register };
        let partners = self.partners(at, lane).into_iter().flatten().map(half);
        std::iter::once(Move::Butterfly(lane)).chain(partners).collect()
    }

    /// Register bits worth moving into `lane`: the row bit that the result wants there or, if it
    /// wants none that is at hand, the last one; and the axis bit that folds last.
    fn partners(&self, at: Placement, lane: usize) -> [Option<usize>; 2] {
        let on_axis = |&code: &Code| self.prices.frame.on_axis(code);
        let wanted = self.rows.lane()[lane];
        let register = at.register();
        let row = position(register, wanted)
            .filter(|_| wanted != Code::NONE)
            .or_else(|| register.iter().rposition(|code| !on_axis(code)));
        let last = register.iter().copied().filter(on_axis).max();
        [row, last.and_then(|code| position(register, code))]
    }

    fn targets(&mut self, at: Placement) -> Targets {
        let left = self.prices.frame.bits_left(at) as usize;
        if self.targets.len() <= left {
            self.targets.resize(left + 1, None);
        }
        if let Some(known) = &self.targets[left] {
            return known.clone();
        }
        let found: Targets =
            self.relayouts(at).into_iter().map(|to| (to, self.rest(&to))).collect();
        self.targets[left] = Some(found.clone());
        found
    }

    /// The axis in registers and, for its highest bits, in lanes: the rows where the result wants
    /// them, or spread over all threads. Nothing else of `at` matters but how much is folded.
    fn relayouts(&self, at: Placement) -> Vec<Placement> {
        let frame = self.prices.frame;
        let left = frame.bits_left(at) as usize;
        let free = self.rows.lane().iter().filter(|&&code| code == Code::NONE).count();
        let gathered = (0..=free.min(left)).map(|lanes| frame.gathered(at, self.rows, lanes));
        let lanes = self.rows.lane().len();
        let spread = (0..=lanes.min(left)).map(|lanes| frame.spread(at, self.rows, lanes));
        let mut found: Vec<Placement> = Vec::new();
        for to in gathered.chain(spread) {
            if !found.contains(&to) {
                found.push(to);
            }
        }
        found
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

/// The placement after a move.
fn after(at: Placement, next: Move) -> Placement {
    match next {
        Move::FoldRegister(bit) => at.folded().without_register(bit),
        Move::Butterfly(lane) => at.folded().with_lane(lane, Code::NONE),
        Move::HalfExchange { lane, register } => {
            let moved = at.register()[register];
            at.folded().without_register(register).with_lane(lane, moved)
        }
        Move::Relayout(to) => to,
    }
}

fn position(codes: &[Code], wanted: Code) -> Option<usize> {
    codes.iter().position(|&code| code == wanted)
}
