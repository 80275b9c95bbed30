//! The pass `reduce-layout`: gives the operands of pinned reductions a layout that folds cheaply.
//!
//! # Idea
//! The bits of a pinned reduction cannot move, so the layout of its operand is a free choice, and
//! the only question is the price. A layout is a name: renaming it for all values that are
//! connected changes which thread holds what, but no value. Where a name cannot be changed, the
//! operand can be converted, which costs something itself.
//! # Invariants
//! - **L1** Every change is one that all operations accept, or stands behind a conversion; none
//!   moves the bits of a reduction whose order is free.
//! - **L2** A change is made only if all that it touches is cheaper afterwards, by the planner.
//! - **L3** Where something is not understood, nothing is changed; the pass refuses nothing.
//! # Held by
//! L1: `flow.rs`. L2: [`Rewriting::best`]. L3: every question here answers with an `Option`, or with
//! a reason, which becomes a remark.
//! # Not here
//! Which names there are (`bitstable_lowering::renumber`).

mod apply;
mod component;
mod flow;
mod names;
mod price;
mod reason;

use bitstable_lowering::{encoding, layout::Dim, renumber};

use crate::{
    ir::{self, Op},
    pipeline::{Layouts, Reasons, Strategy},
    report::{Layout, Report},
    session::Session,
    site::{self, Reduction, Way},
    target::Machine,
};
use component::{Component, Reach};
use names::{Name, Names};
use price::{Price, Prices};
use reason::Reason;

/// Runs the pass, in place.
pub fn run<'c>(session: &'c Session, root: Op<'c>, limits: Layouts, report: &mut Report) {
    if limits.strategy == Strategy::Off {
        return;
    }
    let Ok(machine) = Machine::of_module(&root) else { return };
    let Ok(pinned) = site::pinned(&ir::walk(root)) else { return };
    // What cannot be read is for `pin-reduce` to refuse.
    let read = || -> Option<Vec<Reduction<'c>>> {
        pinned.iter().map(|&op| site::read(op, &machine).ok()).collect()
    };
    let Some(reductions) = read() else { return };
    let names = Names::default();
    let prices = Prices::new(&names, reductions, &machine, limits);
    let mut rewriting = Rewriting { names: &names, prices, limits };
    for &op in &pinned {
        let reason = rewriting.one(op, |change| apply::apply(session, change));
        if limits.reasons == Reasons::On {
            report.diagnostics.push(reason.remark(op));
        }
        if let Reason::Changed(change) = reason {
            report.layouts.push(change);
            let Some(reductions) = read() else { return };
            rewriting.prices.reread(reductions);
        }
    }
}

/// Looks for cheaper layouts in a module.
struct Rewriting<'a, 'c> {
    names: &'a Names,
    prices: Prices<'a, 'c>,
    limits: Layouts,
}

/// A change that could be made.
struct Candidate<'c> {
    strategy: Strategy,
    name: Name,
    change: Component<'c>,
    price: Price,
}

impl<'c> Rewriting<'_, 'c> {
    /// Makes the best change for the reduction `op`, if one is worth it; what was done.
    fn one(&self, op: Op<'c>, apply: impl FnOnce(&Component<'c>)) -> Reason {
        let Some(reduction) = self.prices.sites.get(&component::op_key(op)) else {
            return Reason::Unread;
        };
        if let Way::LeftToTriton = reduction.way {
            return Reason::AnyOrder;
        }
        let Some(from) = ir::operands(op).first().and_then(|&v| self.names.of(v)) else {
            return Reason::Unread;
        };
        match self.best(reduction, &from.name) {
            Ok(best) => {
                apply(&best.change);
                Reason::Changed(Layout {
                    at: reduction.at.clone(),
                    strategy: if best.strategy == Strategy::Convert {
                        "convert"
                    } else {
                        "renumber"
                    },
                    from: from.name.to_string(),
                    to: best.name.to_string(),
                    cost_before: best.price.before,
                    cost_after: best.price.after,
                })
            }
            Err(reason) => reason,
        }
    }

    /// The change that gains most, or why there is none.
    fn best(&self, reduction: &Reduction<'c>, from: &Name) -> Result<Candidate<'c>, Reason> {
        let mut best: Option<Candidate<'c>> = None;
        let mut why = Reason::InOrder;
        for strategy in [Strategy::Renumber, Strategy::Convert] {
            // Where a name is enough, a conversion is not looked for.
            let auto = self.limits.strategy == Strategy::Auto && best.is_none();
            if !auto && self.limits.strategy != strategy {
                continue;
            }
            match self.candidates(reduction, from, strategy) {
                Ok(candidates) => {
                    for name in candidates {
                        match self.candidate(reduction, name, strategy) {
                            Ok(candidate) if candidate.price.gain() > 0 => {
                                let gain = |c: &Candidate<'_>| c.price.gain();
                                if best.as_ref().is_none_or(|b| gain(b) < gain(&candidate)) {
                                    best = Some(candidate);
                                }
                            }
                            Ok(candidate) => {
                                let borders = candidate.change.borders.iter();
                                let borders = borders.map(|op| reason::Border::of(*op)).collect();
                                why = why.or(Reason::Dearer { price: candidate.price, borders });
                            }
                            Err(reason) => why = why.or(reason),
                        }
                    }
                }
                Err(reason) => why = why.or(reason),
            }
        }
        best.ok_or(why)
    }

    /// The layouts that the operands could have instead of `from`.
    fn candidates(
        &self,
        reduction: &Reduction<'c>,
        from: &Name,
        strategy: Strategy,
    ) -> Result<Vec<Name>, Reason> {
        let axis = Dim(reduction.axis as usize);
        let layout = self.names.layout(from, &reduction.shape).ok_or(Reason::Unread)?;
        let encoding = encoding::parse(from).map_err(|_| Reason::Unread)?;
        let survey = match strategy {
            Strategy::Convert => Component::default(),
            _ => component::grow(reduction.op, from, Reach::Survey, self.names)?,
        };
        let (fixed, request) = self.prices.fixed(&survey, from, &layout);
        let found = renumber::candidates(&layout, axis, fixed, &request);
        Ok(found.iter().map(|layout| renumber::written(layout, &encoding).into()).collect())
    }

    fn candidate(
        &self,
        reduction: &Reduction<'c>,
        name: Name,
        strategy: Strategy,
    ) -> Result<Candidate<'c>, Reason> {
        let reach = match strategy {
            Strategy::Convert => Reach::Reduction,
            Strategy::Auto | Strategy::Renumber | Strategy::Off => Reach::All,
        };
        let change = component::grow(reduction.op, &name, reach, self.names)?;
        let price = self.prices.of(&change)?;
        Ok(Candidate { strategy, name, change, price })
    }
}
