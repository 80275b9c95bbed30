//! Combines within one thread: in which order they stand, and which two become one.
//!
//! # Idea
//! Subtree by subtree, depth first: what is loaded first is used up first, and few partial results
//! are alive. Where the target has packed arithmetic, two subtrees are folded side by side. Which
//! two depends on where their leaves are. A load puts neighbouring elements into neighbouring
//! registers, and an element cannot be elsewhere without a move; a partial result can.
//!
//! - If neighbouring registers are leaves of different results, the two results go side by side.
//! - If neighbouring registers are combined with each other, each pair of leaves is combined alone,
//!   and what comes out goes side by side: with the next result's, or else one half of the tree with
//!   the other. Halves of one register would have to be moved for that, so they are left alone.
//! - Values that changed lanes go side by side as they are numbered.
//! # Invariants
//! - **R1** The tree is the plan's; only the order in which its combines are evaluated is chosen
//!   here, and it changes no bit.
//! # Not here
//! How one combine is evaluated (`combine.rs`), or two side by side (`packed.rs`).

use std::rc::Rc;

use bitstable_lowering::plan::Step;

use super::{Emission, exchange, packed::Packing, transposed, with_bit};
use crate::ir::Val;

/// The value of a combine for each operand of the reduction, twice.
type Two<'c> = [Vec<Val<'c>>; 2];

impl<'c> Emission<'_, 'c> {
    /// Emits the folds within registers that `steps` begins with; how many steps.
    pub(super) fn fold_registers(&mut self, steps: &[Step]) -> Option<usize> {
        let run: Vec<_> = steps
            .iter()
            .map_while(|step| match step {
                Step::FoldRegister(bit) => Some(*bit),
                _ => None,
            })
            .collect();
        if run.is_empty() {
            return None;
        }
        let registers = self.values.first().map_or(0, Vec::len);
        let mut trees: Vec<Rc<Subtree>> =
            (0..registers).map(|r| Rc::new(Subtree::Register(r))).collect();
        for &bit in &run {
            trees = (0..trees.len() / 2)
                .map(|r| {
                    let side = |side| Rc::clone(&trees[with_bit(r, bit, side)]);
                    Rc::new(Subtree::Combine(side(0), side(1)))
                })
                .collect();
        }
        let across = run.iter().position(|bit| bit.0 == 0).map(|at| at + 1);
        let order = Order { packing: self.combine.packing(), across };
        let folded = self.folded_trees(&trees, run.len(), order);
        self.values = transposed(&folded, self.elements.len());
        Some(run.len())
    }

    /// The values of all trees, which are `height` high.
    fn folded_trees(
        &self,
        trees: &[Rc<Subtree>],
        height: usize,
        order: Order,
    ) -> Vec<Vec<Val<'c>>> {
        match order.between(height) {
            Some(packing) if trees.len() > 1 => trees
                .chunks_exact(2)
                .flat_map(|two| self.folded_two(packing, [&two[0], &two[1]], height, order))
                .collect(),
            _ => trees.iter().map(|tree| self.folded(tree, height, order)).collect(),
        }
    }

    /// The value of a tree, for each operand. No deeper than a register number has bits.
    fn folded(&self, tree: &Subtree, height: usize, order: Order) -> Vec<Val<'c>> {
        let (left, right) = match tree {
            Subtree::Register(register) => {
                return self.values.iter().map(|v| v[*register]).collect();
            }
            Subtree::Combine(left, right) => (left, right),
        };
        let [left, right] = match order.within(height) {
            None => [left, right].map(|side| self.folded(side, height - 1, order)),
            Some(packing) if height == 1 && packing.takes_registers() => {
                let [left, right] = [left, right].map(|side| self.folded(side, 0, order));
                let both = left.into_iter().zip(right);
                let (left, right) = both.map(|(l, r)| packing.beside(self.b, l, r).into()).unzip();
                [left, right]
            }
            Some(packing) => self.folded_two(packing, [left, right], height - 1, order),
        };
        self.combine(&left, &right)
    }

    /// The values of two trees of equal shape, side by side.
    fn folded_two(
        &self,
        packing: Packing,
        trees: [&Subtree; 2],
        height: usize,
        order: Order,
    ) -> Two<'c> {
        match trees {
            [Subtree::Combine(left, right), Subtree::Combine(other_left, other_right)]
                if order.across != Some(height) =>
            {
                let [left, right] = [[left, other_left], [right, other_right]]
                    .map(|[one, other]| self.folded_two(packing, [one, other], height - 1, order));
                self.combine_two(packing, &left, &right)
            }
            apart => apart.map(|tree| self.folded(tree, height, order)),
        }
    }

    /// Two combines as one.
    fn combine_two(&self, packing: Packing, left: &Two<'c>, right: &Two<'c>) -> Two<'c> {
        let packed = |side: &Two<'c>| -> Vec<Val<'c>> {
            let [low, high] = side;
            low.iter().zip(high).map(|(&l, &h)| packing.pack(self.b, l, h)).collect()
        };
        let results = self.combine.apply_packed(self.b, &packed(left), &packed(right));
        let both = results.into_iter().map(|pair| packing.unpack(self.b, pair));
        let (low, high) = both.map(|[low, high]| (low, high)).unzip();
        [low, high].map(|values| self.marked(values))
    }

    /// Combines register by register; both sides hold the registers of each operand.
    pub(super) fn combined(
        &self,
        left: &[Vec<Val<'c>>],
        right: &[Vec<Val<'c>>],
    ) -> Vec<Vec<Val<'c>>> {
        let column = |side: &[Vec<Val<'c>>], register: usize| -> Vec<Val<'c>> {
            side.iter().map(|operand| operand[register]).collect()
        };
        let registers: Vec<usize> = (0..left[0].len()).collect();
        let combined = |registers: &[usize]| match (self.combine.packing(), registers) {
            (Some(packing), &[low, high]) => {
                let two = |side| [column(side, low), column(side, high)];
                self.combine_two(packing, &two(left), &two(right)).to_vec()
            }
            _ => {
                let one = |&r: &usize| self.combine(&column(left, r), &column(right, r));
                registers.iter().map(one).collect()
            }
        };
        let results: Vec<Vec<Val<'c>>> = registers.chunks(2).flat_map(combined).collect();
        transposed(&results, self.elements.len())
    }

    /// The same, of sides that hold the registers of all operands in one list.
    pub(super) fn combined_pair(&self, (left, right): exchange::Pair<'c>) -> Vec<Vec<Val<'c>>> {
        let registers = left.len() / self.elements.len();
        let split = |side: Vec<Val<'c>>| -> Vec<Vec<Val<'c>>> {
            side.chunks(registers).map(<[Val<'c>]>::to_vec).collect()
        };
        self.combined(&split(left), &split(right))
    }
}

/// Which combines go side by side.
#[derive(Clone, Copy)]
struct Order {
    packing: Option<Packing>,
    /// The height at which neighbouring registers, as they were loaded, are combined with each other.
    across: Option<usize>,
}

impl Order {
    /// How trees of this height go side by side with their neighbours.
    fn between(self, height: usize) -> Option<Packing> {
        let neighbours = self.across.is_none_or(|across| height < across);
        self.packing.filter(|packing| neighbours || packing.takes_registers())
    }

    /// How the two sides of a tree of this height, which is folded alone, go side by side.
    fn within(self, height: usize) -> Option<Packing> {
        self.packing.filter(|p| self.across == Some(height) || p.takes_registers())
    }
}

/// A part of the canonical tree whose leaves are registers of one thread.
enum Subtree {
    Register(usize),
    Combine(Rc<Subtree>, Rc<Subtree>),
}
