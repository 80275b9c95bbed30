//! A plan in words, for people: where the elements are, what each step does and what it costs.
//!
//! # Idea
//! A bit of an index is named by its dimension, and said to be in a bit of the register, lane or
//! warp number; neighbouring bits in neighbouring places are told together. Each step is told by
//! what it executes in a thread, and by its price.
//! # Not here
//! Names of files and types (`passes/`); the layout attributes themselves, which a [`Step`] prints.

use crate::cost::{self, CostModel};
use crate::layout::{Basis, Dim, LinearLayout};
use crate::placement::Placement;
use crate::plan::{Plan, Site, State, Step};
use crate::planner;
use crate::shared;

/// The lines that tell `plan`: the operand's layout, each step, and the total.
pub fn explain(site: &Site, costs: &CostModel, plan: &Plan) -> Vec<String> {
    let teller = Teller { site, costs };
    let mut state = State::new(site);
    let mut lines = vec![format!("from {}", teller.layout(&state.layout))];
    let mut before = 0;
    for (index, step) in plan.steps.iter().enumerate() {
        let after = state.after(step);
        let total = planner::price(site, costs, &plan.steps[..=index]);
        let told = teller.step(&state, step, &after);
        lines.push(format!("{}. {told}; cost {}", index + 1, total - before));
        if let Step::Relayout(_) = step {
            lines.push(format!("   to {}", teller.layout(&after.layout)));
        }
        (state, before) = (after, total);
    }
    lines.push(format!("cost {} in all", plan.cost));
    lines
}

struct Teller<'a> {
    site: &'a Site,
    costs: &'a CostModel,
}

impl Teller<'_> {
    fn step(&self, before: &State, step: &Step, after: &State) -> String {
        let have = before.layout.registers();
        let halved = have.div_ceil(2);
        match step {
            Step::FoldRegister(bit) => {
                format!("fold register bit {}: {}", bit.0, count(halved, "combine"))
            }
            Step::Butterfly(lane) => {
                let (words, combines) = (self.words(have), count(have, "combine"));
                format!("butterfly across lane bit {}: {words} exchanged, {combines}", lane.0)
            }
            Step::HalfExchange { lane, register } => {
                let moved = before.layout.register[register.0 as usize];
                let select =
                    if self.costs.swaps(*lane) { "swapped" } else { "selected and exchanged" };
                format!(
                    "half exchange of lane bit {} with register bit {} ({}): {} {select}, {}",
                    lane.0,
                    register.0,
                    self.index_bit(&before.layout, moved),
                    self.words(halved),
                    count(halved, "combine"),
                )
            }
            Step::Relayout(_) => self.relayout(&before.layout, &after.layout),
        }
    }

    fn relayout(&self, from: &LinearLayout, to: &LinearLayout) -> String {
        let plain = |layout: &LinearLayout| layout.is_permutation() && layout.block.is_empty();
        if !plain(from) || !plain(to) {
            return "relayout as Triton converts layouts".into();
        }
        match (from.warp == to.warp, from.lane == to.lane) {
            (true, true) => "relayout within threads: registers get other names".into(),
            (true, false) => {
                let words = self.words(from.registers().max(to.registers()));
                format!("relayout within warps: {words} exchanged between distant lanes")
            }
            (false, _) => {
                let accesses = |&width: &u32| self.accesses(from, to, width);
                let accesses: Vec<String> = self.site.widths.iter().map(accesses).collect();
                format!("relayout through shared memory: {}, one barrier", accesses.join(", "))
            }
        }
    }

    /// What a thread stores and loads of one operand.
    fn accesses(&self, from: &LinearLayout, to: &LinearLayout, width: u32) -> String {
        let sides = [from, to].map(Placement::of);
        let (order, _) = shared::cheapest(&sides[0], &sides[1], width, self.costs);
        let [store, load] = sides.map(|side| {
            let instructions = shared::access(&side, &order, width).instructions;
            format!("{instructions} x {} bit", side.registers() as u32 * width / instructions)
        });
        format!("store {store}, load {load}")
    }

    fn words(&self, values: usize) -> String {
        let words: u32 = self.site.widths.iter().map(|&width| cost::words(values, width)).sum();
        count(words as usize, "word")
    }

    /// Where the bits of each dimension are, the reduced one first.
    fn layout(&self, layout: &LinearLayout) -> String {
        if !layout.is_permutation() {
            return layout.to_string();
        }
        let axis = self.site.axis;
        let dims = (0..layout.shape.rank()).map(Dim).filter(|&dim| dim != axis);
        let told: Vec<String> = std::iter::once(axis)
            .chain(dims)
            .filter(|&dim| layout.shape.bits(dim) > 0)
            .map(|dim| format!("{}: {}", self.dimension(dim), places(layout, dim)))
            .collect();
        if told.is_empty() { "one element".into() } else { told.join("; ") }
    }

    fn dimension(&self, dim: Dim) -> String {
        if dim == self.site.axis { "axis".into() } else { format!("dimension {}", dim.0) }
    }

    fn index_bit(&self, layout: &LinearLayout, basis: Basis) -> String {
        let shape = &layout.shape;
        let of = |dim: &Dim| shape.component(basis, *dim) != 0;
        match (0..shape.rank()).map(Dim).find(of) {
            Some(dim) => {
                let bit = shape.component(basis, dim).trailing_zeros();
                format!("{} bit {bit}", self.dimension(dim))
            }
            None => "copies".into(),
        }
    }
}

/// `bits 0-1 in register bits 0-1, bit 2 in lane bit 4`, or in no place at all: in a CTA's number.
fn places(layout: &LinearLayout, dim: Dim) -> String {
    let kinds = [
        ("register", &layout.register),
        ("lane", &layout.lane),
        ("warp", &layout.warp),
        ("CTA", &layout.block),
    ];
    let place = |bit: u32| {
        let unit = layout.shape.unit(dim, bit);
        kinds.iter().find_map(|(kind, bases)| {
            bases.iter().position(|&basis| basis == unit).map(|at| (*kind, at as u32))
        })
    };
    let mut runs: Vec<(u32, &str, u32, u32)> = Vec::new();
    for bit in 0..layout.shape.bits(dim) {
        let Some((kind, at)) = place(bit) else { continue };
        match runs.last_mut() {
            Some((first, same, begin, length))
                if *same == kind && *first + *length == bit && *begin + *length == at =>
            {
                *length += 1;
            }
            _ => runs.push((bit, kind, at, 1)),
        }
    }
    let run = |&(bit, kind, at, length): &(u32, &str, u32, u32)| {
        format!("{} in {kind} {}", bits(bit, length), bits(at, length))
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

fn bits(first: u32, length: u32) -> String {
    if length == 1 {
        format!("bit {first}")
    } else {
        format!("bits {first}-{}", first + length - 1)
    }
}

fn count(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
