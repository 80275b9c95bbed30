//! Steps between two relayouts: a group of registers at a time.
//!
//! # Idea
//! A step speaks of all registers of a thread. Taken literally, every partial result of one step is
//! alive before the next step begins. But what a run of steps makes of one half of the registers
//! does not depend on the other half until a step combines the two: so one half goes first, through
//! all steps before that one, and then the other. What was loaded first is used up first, and the
//! exchanges of one half are under way while the other folds.
//! # Invariants
//! - **U1** Every combine and exchange of the steps is emitted once, with the operands that the
//!   steps name; only their order is chosen here.
//! # Held by
//! U1: tests that execute the code, the certificates of `mark.rs`.
//! # Not here
//! The order within a thread's own folds (`fold.rs`).

use std::mem::take;

use bitstable_lowering::plan::{RegisterBit, Step};

use super::{Emission, with_bit};
use crate::ir::Val;

/// So many values go through a step together: enough to fill words with narrow ones, and to hide
/// the latency of an exchange behind the next.
const GROUP: usize = 32;

impl<'c> Emission<'_, 'c> {
    /// Emits steps of which none is a relayout.
    pub(super) fn run(&mut self, steps: &[Step]) {
        let registers = self.values.first().map_or(0, Vec::len);
        let exchanges = |step: &Step| !matches!(step, Step::FoldRegister(_));
        if registers <= GROUP || !steps.iter().any(exchanges) {
            return self.in_turn(steps);
        }
        let mut left: Vec<RegisterBit> = (0..registers.ilog2()).map(RegisterBit).collect();
        let mut last = None;
        for (at, step) in steps.iter().enumerate() {
            if let Some(bit) = removes(step) {
                last = Some((at, left.remove(bit.0 as usize)));
            }
        }
        if let Some(&bit) = left.last() {
            let [low, high] = self.apart(bit, steps);
            let at = RegisterBit(left.len() as u32 - 1);
            self.values = low.into_iter().zip(high).map(|(l, h)| together(&l, &h, at)).collect();
        } else if let Some((at, bit)) = last {
            let halves = self.apart(bit, &steps[..at]);
            self.across(&steps[at], halves);
            self.in_turn(&steps[at + 1..]);
        }
    }

    /// What `steps` make of the registers whose bit is clear, and of those whose bit is set. No
    /// step combines the two.
    fn apart(&mut self, bit: RegisterBit, steps: &[Step]) -> [Vec<Vec<Val<'c>>>; 2] {
        let (low, high) = self.halves(bit);
        let steps = without(steps, bit);
        [low, high].map(|half| {
            self.values = half;
            self.run(&steps);
            take(&mut self.values)
        })
    }
}

/// The register bit that a step takes away.
fn removes(step: &Step) -> Option<RegisterBit> {
    match step {
        Step::FoldRegister(register) | Step::HalfExchange { register, .. } => Some(*register),
        Step::Butterfly(_) | Step::Relayout(_) => None,
    }
}

/// The same steps where there is no register bit `bit`, which none of them takes away.
fn without(steps: &[Step], bit: RegisterBit) -> Vec<Step> {
    let mut at = bit.0;
    let mut renumbered = |register: RegisterBit| {
        if register.0 > at {
            return RegisterBit(register.0 - 1);
        }
        assert_ne!(register.0, at, "a step that combines the halves is not one of these");
        at -= 1;
        register
    };
    let step = |step: &Step| match step {
        Step::FoldRegister(register) => Step::FoldRegister(renumbered(*register)),
        Step::HalfExchange { lane, register } => {
            Step::HalfExchange { lane: *lane, register: renumbered(*register) }
        }
        other => other.clone(),
    };
    steps.iter().map(step).collect()
}

/// The registers of both halves, told apart by register bit `bit`.
fn together<T: Copy>(low: &[T], high: &[T], bit: RegisterBit) -> Vec<T> {
    let mut all = [low, high].concat();
    for (side, half) in [low, high].into_iter().enumerate() {
        for (rest, &value) in half.iter().enumerate() {
            all[with_bit(rest, bit, side)] = value;
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use bitstable_lowering::plan::{LaneBit, RegisterBit, Step};

    use super::{together, without};

    #[test]
    fn halves_come_back_as_they_were() {
        assert_eq!(
            together(&[0, 1, 4, 5], &[2, 3, 6, 7], RegisterBit(1)),
            [0, 1, 2, 3, 4, 5, 6, 7]
        );
    }

    #[test]
    fn steps_are_renumbered_as_they_take_bits_away() {
        let fold = |bit| Step::FoldRegister(RegisterBit(bit));
        let half = |bit| Step::HalfExchange { lane: LaneBit(3), register: RegisterBit(bit) };
        // Of the bits 0 to 4 without bit 2: 0 goes, then 3, then what was 4.
        let steps = [fold(0), half(2), Step::Butterfly(LaneBit(0)), fold(2)];
        let wanted = [fold(0), half(1), Step::Butterfly(LaneBit(0)), fold(1)];
        assert_eq!(without(&steps, RegisterBit(2)), wanted);
    }
}
