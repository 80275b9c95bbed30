//! What an output is judged by: every reduction below it.
//!
//! # Idea
//! An output may be a sum, or a quotient of exponentials by a sum with a maximum in it, or have no
//! reduction at all. So the reductions below it are found first, and each is judged once, however
//! many outputs share it or have one that is only moved.
//! # Invariants
//! - **J1** What joins at least two different values that are computed alike is a reduction: the
//!   elements of an axis differ only in where they lie. `x + y + bias` and `x * x * x` are none.
//! - **J2** A chain of multiply-adds whose products are alike is a reduction that fused its
//!   products, and departs.
//! - **J3** A combine whose order cannot move the bits is never held against an output.
//! - **J4** With an extent there must be a reduction.

mod below;
mod combine;

use std::rc::Rc;

use bitstable_ptx::symbol::{Expect, Graph, NodeId, Verdict, analyse, verdict::Analysis};
use rustc_hash::{FxHashMap, FxHashSet};

use super::shape::Shapes;
use below::Below;

/// How an output stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Every reduction below it is canonical, or of a combine whose order does not matter.
    Canonical,
    /// One is not.
    Departs,
    /// One could not be judged.
    Unknown,
    /// There are reductions, and the order of none matters.
    AnyOrder,
    /// There is nothing to judge.
    NoReduction,
}

/// One reduction, judged.
pub struct Judged {
    pub standing: Standing,
    pub analysis: Analysis,
}

/// An output's standing.
#[derive(Clone)]
pub struct Judgement {
    pub standing: Standing,
    /// Shapes of the reductions below it, outermost first; its own where there are none. Outputs
    /// that agree in them are judged alike.
    pub kind: Rc<[u128]>,
    /// Reductions below it.
    pub reductions: usize,
    /// What to show: the first reduction that is not canonical, or the outermost.
    pub shown: Rc<Judged>,
}

/// Judges the outputs of one run.
pub struct Judge<'g> {
    graph: &'g Graph,
    expect: Expect,
    shapes: Shapes,
    below: Below,
    /// Reductions by shape; `None`: what looked like one is none.
    known: FxHashMap<u128, Option<Rc<Judged>>>,
}

impl<'g> Judge<'g> {
    /// `extent` as in [`Expect`].
    pub fn new(graph: &'g Graph, extent: Option<u64>) -> Self {
        let (shapes, below, known) = (Shapes::default(), Below::default(), FxHashMap::default());
        Self { graph, expect: Expect { extent }, shapes, below, known }
    }

    /// Judges an output.
    pub fn judge(&mut self, output: NodeId) -> Judgement {
        let mut found: Vec<(u128, Rc<Judged>)> = Vec::new();
        // Lanes may compute one reduction with operands swapped; it counts once.
        let mut places = FxHashSet::default();
        for &node in self.below.of(self.graph, &mut self.shapes, output).iter() {
            let shape = self.shapes.of(self.graph, node);
            if let Some(judged) = self.reduction(node, shape)
                && places.insert(self.shapes.placed(self.graph, node))
            {
                found.push((shape, judged));
            }
        }
        if found.is_empty() {
            return self.alone(output);
        }
        let first = |standing| found.iter().find(|(_, judged)| judged.standing == standing);
        let order = [Standing::Departs, Standing::Unknown, Standing::Canonical];
        let shown = order.into_iter().find_map(first).unwrap_or(&found[0]);
        Judgement {
            standing: shown.1.standing,
            kind: found.iter().map(|(shape, _)| *shape).collect(),
            reductions: found.len(),
            shown: Rc::clone(&shown.1),
        }
    }

    /// A reduction that is found below some output.
    fn reduction(&mut self, node: NodeId, shape: u128) -> Option<Rc<Judged>> {
        if let Some(known) = self.known.get(&shape) {
            return known.clone();
        }
        let fused = combine::multiply_add(self.graph, node).is_some();
        let real = fused || combine::joins_alike(self.graph, &mut self.shapes, node);
        let judged = real.then(|| {
            let analysis = analyse(self.graph, node, self.expect);
            let standing = if combine::any_order(self.graph, node) {
                Standing::AnyOrder
            } else {
                standing(&analysis.verdict)
            };
            Rc::new(Judged { standing, analysis })
        });
        self.known.insert(shape, judged.clone());
        judged
    }

    /// An output without a reduction that can be told from other arithmetic. A single join of two
    /// neighbours is the canonical tree over them.
    fn alone(&mut self, output: NodeId) -> Judgement {
        let analysis = analyse(self.graph, output, self.expect);
        let standing = match &analysis.verdict {
            Verdict::Canonical(found)
                if found.combine.is_none() && self.expect.extent.is_none() =>
            {
                Standing::NoReduction
            }
            Verdict::Departs(_) if self.expect.extent.is_none() => Standing::NoReduction,
            verdict => standing(verdict),
        };
        let reductions = usize::from(standing == Standing::Canonical);
        let kind = Rc::from([self.shapes.of(self.graph, output)]);
        Judgement { standing, kind, reductions, shown: Rc::new(Judged { standing, analysis }) }
    }
}

fn standing(verdict: &Verdict) -> Standing {
    match verdict {
        Verdict::Canonical(_) => Standing::Canonical,
        Verdict::Departs(_) => Standing::Departs,
        Verdict::Unknown(_) => Standing::Unknown,
    }
}
