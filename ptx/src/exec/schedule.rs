//! In what order CTAs and warps run.
//!
//! Turns are long where order is all that matters. Whoever waits for others by asking memory again
//! and again must not use up a long one, so that asking costs more than a step.
//! # Invariants
//! - **S1** A schedule is a value: the same one gives the same run, on any machine.

use super::{program::Action, random::Random};
use crate::ir::{Mbarrier, Ordering};

/// The order of turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Schedule {
    /// CTA 0 first, warp 0 first, each until it waits.
    #[default]
    Forward,
    /// The last CTA first, the last warp first.
    Reversed,
    /// Any order, with turns of any length, from a seed.
    Random(u64),
}

impl Schedule {
    /// Warps in the order of their turns.
    pub(crate) fn order(self, count: usize, random: &mut Random, order: &mut Vec<usize>) {
        order.clear();
        order.extend(0..count);
        match self {
            Schedule::Forward => {}
            Schedule::Reversed => order.reverse(),
            Schedule::Random(_) => random.shuffle(order),
        }
    }

    /// Steps of one turn of a warp.
    pub(crate) fn quantum(self, random: &mut Random) -> u64 {
        match self {
            Schedule::Forward | Schedule::Reversed => 1 << 14,
            Schedule::Random(_) => 1 << random.below(9),
        }
    }

    /// What a step costs of its turn.
    pub(crate) fn price(self, action: &Action) -> u64 {
        let asks = match action {
            Action::Load(load) => !matches!(load.ordering, Ordering::Weak),
            Action::Atomic(_) => true,
            Action::Mbarrier(step) => matches!(step.op, Mbarrier::Wait { .. }),
            Action::Lane(_)
            | Action::Param { .. }
            | Action::Store(_)
            | Action::Copy(_)
            | Action::CopyCommit
            | Action::CopyWait(_)
            | Action::CopyArrive { .. }
            | Action::Fence { .. }
            | Action::Warp(_)
            | Action::Barrier(_)
            | Action::Activemask { .. }
            | Action::Clock { .. }
            | Action::Branch { .. }
            | Action::BranchIndexed { .. }
            | Action::Call { .. }
            | Action::Return
            | Action::Exit
            | Action::Trap
            | Action::External(_)
            | Action::Nop => false,
        };
        match self {
            Schedule::Forward | Schedule::Reversed if asks => 256,
            Schedule::Forward | Schedule::Reversed | Schedule::Random(_) => 1,
        }
    }

    /// Steps of one turn of a CTA, where several are resident.
    pub(crate) fn cta_quantum(self, random: &mut Random) -> u64 {
        match self {
            Schedule::Forward | Schedule::Reversed => 1 << 18,
            Schedule::Random(_) => 1 << random.below(12),
        }
    }
}

impl std::str::FromStr for Schedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            None if text == "forward" => Ok(Self::Forward),
            None if text == "reversed" => Ok(Self::Reversed),
            Some(("random", seed)) => seed
                .parse()
                .map(Self::Random)
                .map_err(|_| format!("the seed of a random schedule is not a number: {seed}")),
            _ => Err(format!("no such schedule: {text} (forward, reversed or random:SEED)")),
        }
    }
}

impl std::fmt::Display for Schedule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Schedule::Forward => f.write_str("forward"),
            Schedule::Reversed => f.write_str("reversed"),
            Schedule::Random(seed) => write!(f, "random:{seed}"),
        }
    }
}
