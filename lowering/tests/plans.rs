//! Every plan of the planner folds the canonical tree, and the checker says so.

mod common;
#[path = "common/sites.rs"]
mod sites;

use bitstable_lowering::check;
use bitstable_lowering::cost::CostModel;
use bitstable_lowering::plan::{LaneBit, Plan, RegisterBit, Step};
use bitstable_lowering::planner;
use common::is_canonical;
use proptest::prelude::*;
use sites::sites;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn every_plan_is_canonical(site in sites(8, 3, 2)) {
        for costs in [CostModel::nvidia(), CostModel::amd_wave64(), CostModel::amd_wave32()] {
            let plan = planner::plan(&site, &costs).expect("no blocks are involved");
            prop_assert_eq!(check::canonical(&site, &plan), Ok(()), "plan:\n{}", plan);
            prop_assert!(is_canonical(&site, &plan), "plan:\n{}", plan);
        }
    }

    /// Equal sites get equal plans.
    #[test]
    fn plans_are_deterministic(site in sites(8, 3, 2)) {
        let plan = || planner::plan(&site, &CostModel::nvidia());
        prop_assert_eq!(plan(), plan());
    }

    /// The checker and the oracle agree on plans with one step changed, dropped or doubled.
    #[test]
    fn the_checker_accepts_exactly_what_the_oracle_accepts(
        site in sites(8, 3, 2),
        at in any::<prop::sample::Index>(),
        change in 0..6u8,
        bit in 0..4u32,
    ) {
        let mut plan = planner::plan(&site, &CostModel::nvidia()).expect("no blocks are involved");
        mutate(&mut plan, at, change, bit);
        let verdict = check::canonical(&site, &plan);
        if verdict.is_ok() {
            prop_assert!(is_canonical(&site, &plan), "accepted a wrong plan:\n{}", plan);
        } else if runnable(&site, &plan) {
            prop_assert!(!is_canonical(&site, &plan), "refused {:?} of\n{}", verdict, plan);
        }
    }
}

fn mutate(plan: &mut Plan, at: prop::sample::Index, change: u8, bit: u32) {
    if plan.steps.is_empty() {
        return;
    }
    let at = at.index(plan.steps.len());
    match change {
        0 => drop(plan.steps.remove(at)),
        1 => plan.steps.insert(at, plan.steps[at].clone()),
        2 => plan.steps[at] = Step::FoldRegister(RegisterBit(bit)),
        3 => plan.steps[at] = Step::Butterfly(LaneBit(bit)),
        4 => {
            plan.steps[at] =
                Step::HalfExchange { lane: LaneBit(bit), register: RegisterBit(bit / 2) };
        }
        _ => {
            let last = plan.gather.len() - 1;
            plan.gather.swap(0, last);
        }
    }
}

/// Whether the oracle can run the plan at all: every bit it names exists when it is named.
fn runnable(site: &bitstable_lowering::plan::Site, plan: &Plan) -> bool {
    let mut state = bitstable_lowering::plan::State::new(site);
    for step in &plan.steps {
        let registers = state.layout.register.len() as u32;
        let lanes = state.layout.lane.len() as u32;
        let exists = match step {
            Step::FoldRegister(r) => r.0 < registers,
            Step::Butterfly(l) => l.0 < lanes,
            Step::HalfExchange { lane, register } => lane.0 < lanes && register.0 < registers,
            Step::Relayout(target) => target.shape == state.layout.shape,
        };
        if !exists || (state.bits_left() == 0 && !matches!(step, Step::Relayout(_))) {
            return false;
        }
        // A wrong fold leaves a layout that holds nothing sensible; relayouts need every element.
        if !matches!(step, Step::Relayout(_)) && !folds_the_next_bit(&state, step) {
            return false;
        }
        state = state.after(step);
    }
    true
}

fn folds_the_next_bit(state: &bitstable_lowering::plan::State, step: &Step) -> bool {
    let held = match step {
        Step::FoldRegister(r) => state.layout.register[r.0 as usize],
        Step::Butterfly(l) | Step::HalfExchange { lane: l, .. } => state.layout.lane[l.0 as usize],
        Step::Relayout(_) => return true,
    };
    held == state.next_bit()
}

/// A tensor that no program holds is refused, not planned for.
#[test]
fn tensors_beyond_measure_are_refused() {
    use bitstable_lowering::layout::{Basis, Dim, LinearLayout, Shape};
    let shape = Shape::from_extents(&[1 << 40]).expect("a power of two");
    let register = (0..40).map(|bit| shape.unit(Dim(0), bit)).collect();
    let place = |shape, register| LinearLayout {
        shape,
        register,
        lane: vec![Basis::ZERO; 5],
        warp: vec![],
        block: vec![],
    };
    let site = bitstable_lowering::plan::Site {
        source: place(shape, register),
        axis: Dim(0),
        result: place(Shape::from_extents(&[]).expect("no extents"), vec![]),
        widths: vec![32],
        operands: bitstable_lowering::plan::Operands::Commute,
        combine_cost: 1,
    };
    let refused = planner::plan(&site, &CostModel::nvidia());
    assert_eq!(refused, Err(planner::NoPlan::TooLarge { elements: 40, warps: 0 }));
}
