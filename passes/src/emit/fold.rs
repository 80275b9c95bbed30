//! Combines within one thread: the order in which the registers of a tensor are folded.
//!
//! # Idea
//! Subtree by subtree, depth first: what is loaded first is used up first, and few partial results
//! are alive.
//! # Invariants
//! - **R1** The tree is the plan's; only the order in which its combines are evaluated is chosen
//!   here, and it changes no bit.
//! # Not here
//! How one combine is evaluated (`combine.rs`).

use std::rc::Rc;

use bitstable_lowering::plan::Step;

use super::{Emission, exchange, transposed, with_bit};
use crate::ir::Val;

impl<'c> Emission<'_, 'c> {
    /// Emits the folds within registers that `steps` begins with: subtree by subtree, so that what
    /// is loaded first is used up first and few partial results are alive. How many steps.
    pub(super) fn fold_registers(&mut self, steps: &[Step]) -> Option<usize> {
        let run = steps.iter().map_while(|step| match step {
            Step::FoldRegister(bit) => Some(*bit),
            _ => None,
        });
        let registers = self.values.first().map_or(0, Vec::len);
        let mut trees: Vec<Rc<Subtree>> =
            (0..registers).map(|r| Rc::new(Subtree::Register(r))).collect();
        let mut done = 0;
        for bit in run {
            trees = (0..trees.len() / 2)
                .map(|r| {
                    let side = |side| Rc::clone(&trees[with_bit(r, bit, side)]);
                    Rc::new(Subtree::Combine(side(0), side(1)))
                })
                .collect();
            done += 1;
        }
        if done == 0 {
            return None;
        }
        let folded: Vec<Vec<Val<'c>>> = trees.iter().map(|tree| self.folded(tree)).collect();
        self.values = transposed(&folded, self.elements.len());
        steps[..done].iter().for_each(|step| self.advance(step));
        Some(done)
    }

    /// The value of a subtree, for each operand. No deeper than a register number has bits.
    fn folded(&self, tree: &Subtree) -> Vec<Val<'c>> {
        match tree {
            Subtree::Register(register) => self.values.iter().map(|v| v[*register]).collect(),
            Subtree::Combine(left, right) => {
                let left = self.folded(left);
                let right = self.folded(right);
                self.combine(&left, &right)
            }
        }
    }

    /// Combines register by register; both sides hold the registers of each operand.
    fn combined(&self, left: &[Vec<Val<'c>>], right: &[Vec<Val<'c>>]) -> Vec<Vec<Val<'c>>> {
        let column = |side: &[Vec<Val<'c>>], register: usize| -> Vec<Val<'c>> {
            side.iter().map(|operand| operand[register]).collect()
        };
        let results: Vec<Vec<Val<'c>>> =
            (0..left[0].len()).map(|r| self.combine(&column(left, r), &column(right, r))).collect();
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

/// A part of the canonical tree whose leaves are registers of one thread.
enum Subtree {
    Register(usize),
    Combine(Rc<Subtree>, Rc<Subtree>),
}
