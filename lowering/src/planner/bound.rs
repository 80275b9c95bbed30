//! Bounds of what is not priced yet: of one relayout, and of the rest of a walk.
//!
//! # Invariants
//! - **B1** No bound is above what it stands for.
//! - **B2** No step lowers [`Prices::rest`] by more than its price.
//! # Held by
//! B1, B2: `tests/cheapest.rs`, as the search would miss the cheapest walk otherwise.
//! # Not here
//! Bounds of one way through shared memory (`shared.rs`).

use super::price::Prices;
use crate::placement::{Code, Placement};
use crate::plan::LaneBit;
use crate::shared;

impl Prices<'_> {
    /// No more than [`Prices::relayout`], and found at once.
    pub fn at_least(&self, from: &Placement, to: &Placement) -> u32 {
        if from.warp() == to.warp() {
            return self.relayout(from, to);
        }
        self.operands(|width| shared::at_least(from, to, width, self.costs)) + self.costs.barrier
    }

    /// No more than any walk from `at` to where the axis is folded and warps hold what `end` has.
    ///
    /// Three walks are bounded side by side: one without a relayout, in which a fold at most halves
    /// what a thread holds; one after a relayout within warps; and one after a relayout across
    /// them. The last two hold their part of the elements at least.
    pub fn rest(&self, at: &Placement, end: &Placement) -> u32 {
        let [registers, lanes, warps] = [at.register(), at.lane(), at.warp()];
        let some = |codes: &[Code]| codes.iter().filter(|&&code| code != Code::NONE).count();
        let mut left = some(registers) + some(lanes) + some(warps);
        let threads = lanes.len() + warps.len();
        let mut have = at.registers();
        let mut here = Some((0, u32::MAX / 2));
        let mut crossed = u32::MAX / 2;
        for next in self.frame.axis_left(*at) {
            if let Some((stayed, moved)) = &mut here {
                *moved = (*moved).min(*stayed + self.moved_within_warps(have));
                crossed = crossed.min(self.crossing(*stayed, *moved, have, left, at));
            }
            let share = self.fold_register(1 << left.saturating_sub(threads));
            here = here.filter(|_| !warps.contains(&next)).map(|(stayed, moved)| {
                let lane = lanes.iter().position(|&code| code == next);
                let fold = match lane {
                    Some(lane) => self.exchange(have, LaneBit(lane as u32)),
                    None => self.fold_register(have),
                };
                (stayed + fold, moved + share)
            });
            crossed += share;
            left -= 1;
            have = have.div_ceil(2);
        }
        match here {
            Some((stayed, moved)) if warps == end.warp() => crossed.min(stayed).min(moved),
            Some((stayed, moved)) => crossed.min(self.crossing(stayed, moved, have, left, at)),
            None => crossed,
        }
    }

    /// No more than a fold of `have` values or more across `lane`.
    fn exchange(&self, have: usize, lane: LaneBit) -> u32 {
        self.butterfly(have, lane, true)
            .min(self.butterfly(have, lane, false))
            .min(self.half_exchange(have, lane))
    }

    /// No more than a walk in which all `2^left` elements then cross the warps: `stayed` is for
    /// one whose threads hold `have` values or more, `moved` for one that shares them evenly.
    fn crossing(&self, stayed: u32, moved: u32, have: usize, left: usize, at: &Placement) -> u32 {
        let places = (at.lane().len(), at.warp().len());
        let side = |held: usize| {
            self.operands(|width| shared::least(left, held, places, width, self.costs))
        };
        let even = side(1);
        (stayed + side(have)).min(moved + even) + even + self.costs.barrier
    }
}
