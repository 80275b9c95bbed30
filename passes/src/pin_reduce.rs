//! The pass `pin-reduce`: lowers every pinned reduction, or none.
//!
//! # Invariants
//! - **Q1** Nothing is changed before every reduction has a plan that passed the checker and a
//!   combine function that can be emitted.
//! - **Q2** All refusals of a module are reported together.
//! # Not here
//! Which plan (`lowering`), and how it is emitted (`emit/`).

use bitstable_lowering::{
    check,
    cost::CostModel,
    explain,
    plan::{Plan, Site, State, Step},
    planner, tree,
};
use melior::ir::operation::OperationLike;

use crate::{
    build::Builder,
    emit::{self, combine::Combine, mark::Marks},
    ir::{self, Op},
    pipeline::{Marking, Remarks},
    place::Place,
    refusal::{Bug, Failure, Refusal, Refused},
    report::{self, Diagnostic, Report},
    session::Session,
    shield,
    site::{self, Lowered, Reduction, Way},
    target::{Machine, Target},
};

/// What is to be emitted for one reduction.
struct Decided<'c> {
    reduction: Reduction<'c>,
    plan: Option<(Plan, Combine<'c>)>,
}

/// Runs the pass.
pub fn run<'c>(
    session: &'c Session,
    root: Op<'c>,
    (remarks, marking): (Remarks, Marking),
    report: &mut Report,
) -> Result<(), Failure> {
    let operations = ir::walk(root);
    let pinned = site::pinned(&operations).map_err(Failure::Refused)?;
    let shields: Vec<Op<'c>> = operations.into_iter().filter(|&op| shield::is_shield(op)).collect();
    if pinned.is_empty() && shields.is_empty() {
        return Ok(());
    }
    let mut refused = shield::check(&shields);
    let machine = Machine::of_module(&root)
        .map_err(|error| Refusal::from(error).at(Place::of(root.location())))?;
    if !emit::exchange::supported(&machine.target) {
        let target = machine.target.to_string();
        return Err(Refusal::NoExchanges { target }.at(Place::of(root.location())).into());
    }
    let mut decided = Vec::new();
    for op in pinned {
        match decide(op, &machine) {
            Ok(decision) => decided.push(decision),
            Err(Failure::Refused(more)) => refused.extend(more),
            Err(bug) => return Err(bug),
        }
    }
    if !refused.is_empty() {
        return Err(Failure::Refused(refused));
    }
    shield::strip(&shields);
    for Decided { reduction, plan } in decided {
        let mut entry = entry(&reduction, plan.as_ref().map(|(plan, _)| plan));
        if remarks == Remarks::Plans {
            entry.explained = explained(&reduction, plan.as_ref(), &machine.target);
            report.diagnostics.push(remark(&entry));
        }
        let pin = report.reductions.len();
        report.reductions.push(entry);
        match (&reduction.way, plan) {
            (Way::Lowered(lowered), Some((plan, combine))) => {
                let b = Builder::before(session, &reduction.op);
                let marked =
                    marking == Marking::On && matches!(machine.target, Target::Nvidia { .. });
                let marks = marked.then(|| Marks::new(pin, &lowered.site, &combine));
                emit::lower(b, reduction.op, lowered, &plan, (&combine, marks), &machine.target);
            }
            _ => ir::remove_discardable_attribute(reduction.op, site::ORDER),
        }
    }
    Ok(())
}

/// Reads a reduction, plans it and proves the plan.
fn decide<'c>(op: Op<'c>, machine: &Machine) -> Result<Decided<'c>, Failure> {
    let reduction = site::read(op, machine).map_err(Failure::Refused)?;
    let plan = match &reduction.way {
        Way::LeftToTriton => None,
        Way::Lowered(lowered) => {
            let combine = Combine::new(reduction.block, &machine.target)?;
            Some((planned(&reduction, lowered, &machine.target)?, combine))
        }
    };
    Ok(Decided { reduction, plan })
}

fn planned(
    reduction: &Reduction<'_>,
    lowered: &Lowered<'_>,
    target: &Target,
) -> Result<Plan, Failure> {
    let site = &lowered.site;
    let refuse =
        |why| -> Refused { Refusal::NoPlan { axis: reduction.axis, why }.at(reduction.at.clone()) };
    let plan = planner::plan(site, &costs(target)).map_err(refuse)?;
    check::canonical(site, &plan).map_err(|fault| {
        let bug = Bug::Plan { fault, site: format!("{site:?}"), plan: plan.to_string() };
        Failure::Bug(bug, reduction.at.clone())
    })?;
    Ok(plan)
}

/// The prices on a target.
pub fn costs(target: &Target) -> CostModel {
    match target {
        Target::Nvidia { .. } => CostModel::nvidia(),
        Target::Amd { arch, lanes: 64 } if arch == "gfx950" => CostModel::amd_wave64_swaps(),
        Target::Amd { lanes: 64, .. } => CostModel::amd_wave64(),
        Target::Amd { .. } => CostModel::amd_wave32(),
    }
}

fn entry(reduction: &Reduction<'_>, plan: Option<&Plan>) -> report::Reduction {
    let axis = bitstable_lowering::layout::Dim(reduction.axis as usize);
    let mut entry = report::Reduction {
        at: reduction.at.clone(),
        axis: reduction.axis,
        extent: reduction.shape.extent(axis),
        plan: vec!["order-insensitive: left to Triton".into()],
        relayouts: 0,
        exchanges: 0,
        digest: String::new(),
        explained: Vec::new(),
    };
    if let (Way::Lowered(lowered), Some(plan)) = (&reduction.way, plan) {
        entry.plan = plan.steps.iter().map(Step::to_string).collect();
        entry.relayouts = plan.steps.iter().filter(|s| matches!(s, Step::Relayout(_))).count();
        entry.exchanges = exchanges(&lowered.site, plan);
        entry.digest = tree::digest(reduction.shape.bits(axis));
    }
    entry
}

/// The plan in words, with the operands' shape and types.
fn explained(
    reduction: &Reduction<'_>,
    plan: Option<&(Plan, Combine<'_>)>,
    target: &Target,
) -> Vec<String> {
    let (Way::Lowered(lowered), Some((plan, _))) = (&reduction.way, plan) else {
        return vec!["any order gives the same bits: left to Triton".into()];
    };
    let extents: Vec<String> = reduction.shape.extents().iter().map(u64::to_string).collect();
    let types: Vec<String> = lowered.elements.iter().map(|element| element.name()).collect();
    let operands = format!("operands {} of {}", extents.join("x"), types.join(" and "));
    let told = explain::explain(&lowered.site, &costs(target), plan);
    std::iter::once(operands).chain(told).collect()
}

/// How many values a lane receives from others, over all operands.
fn exchanges(site: &Site, plan: &Plan) -> usize {
    let mut state = State::new(site);
    let mut count = 0;
    for step in &plan.steps {
        let registers = state.layout.registers();
        count += site.widths.len()
            * match step {
                Step::Butterfly(_) => registers,
                Step::HalfExchange { .. } => registers / 2,
                Step::FoldRegister(_) | Step::Relayout(_) => 0,
            };
        state = state.after(step);
    }
    count
}

fn remark(entry: &report::Reduction) -> Diagnostic {
    Diagnostic {
        severity: "remark",
        message: format!(
            "axis {} of extent {}: {}",
            entry.axis,
            entry.extent,
            entry.plan.join("; ")
        ),
        at: entry.at.clone(),
        notes: Vec::new(),
        help: None,
    }
}
