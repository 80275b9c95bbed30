//! Whether a value is the canonical tree of its leaves, and if not, where it first departs.
//!
//! # Idea
//! `T[lo, hi) = combine(T[lo, mid), T[mid, hi))`, lower index left. Every join is judged alone, by
//! what its two sides cover: they must be two aligned neighbouring blocks of one size, clipped at the
//! last element. If all are, the tree is canonical; if not, the lowest one that is not says where.
//! # Invariants
//! - **V1** `Canonical` is only said when every join was looked at.
//! - **V2** A number is padding only behind the last element, and only if the combine leaves its
//!   neighbour alone; what else stands there is said ([`Padding::Filler`]).
//! - **V3** Whatever cannot be followed is [`Verdict::Unknown`], never `Canonical`.
//! # Held by
//! `tests/symbol_verdict.rs`: all orders of small trees, and hand-made departures.
//! # Not here
//! Whether a *number* of leaves is right without an extent: a sum of four rows' sums is canonical
//! over four leaves that are sums. State the axis' extent to have it checked.

mod blocks;
mod order;
mod tree;

pub use order::{Disorder, Order, Padding, Role};
pub use tree::{Entry, Epilogue, MOST, Tree, reductions, sides};

use super::{
    graph::{Graph, Node, NodeId},
    label::{LabelId, What},
};
use blocks::Judge;

/// What is known about the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Expect {
    /// Elements of the axis, padding included; a power of two.
    pub extent: Option<u64>,
}

/// One of three answers; `Unknown` is never a pass.
#[derive(Clone, PartialEq, Eq, Debug)]
#[must_use]
pub enum Verdict {
    Canonical(Canonical),
    Departs(Departure),
    Unknown(Obstacle),
}

/// A canonical tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Canonical {
    /// `None` when the axis has one element, and nothing is combined.
    pub combine: Option<LabelId>,
    pub elements: u64,
    /// The weakest padding behind the last element.
    pub padding: Option<Padding>,
    /// Some join has its operands the other way round; bits agree where the combine commutes.
    pub swapped: bool,
    /// Some join's rounding is not written: ptxas may contract it with a product.
    pub contractible: bool,
    /// The combine is a choice by predicates, each of which reads its two sides alone.
    pub chooses: bool,
}

/// The first join that is not canonical: lowest, then leftmost; or what is wrong with the leaves.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Departure {
    /// The join of `found` covers elements from `lo`; `expected` are the canonical sides.
    Join {
        lo: u64,
        hi: u64,
        found: [NodeId; 2],
        expected: [Span; 2],
    },
    /// A number that is no padding, or is not at the end, joins `other`.
    Number {
        number: NodeId,
        other: NodeId,
        identity: bool,
    },
    /// The choice at this node reads something that is on neither of its sides.
    Choice {
        node: NodeId,
        reads: NodeId,
    },
    /// Operands of a combine that does not commute are the other way round.
    Swapped {
        node: NodeId,
    },
    Leaves(Disorder),
    Extent {
        elements: u64,
        covers: u64,
        extent: u64,
    },
    /// The operation at the top takes other than two values, so it combines nothing.
    NoCombine {
        node: NodeId,
    },
}

/// Elements `lo..hi` along the axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    pub lo: u64,
    pub hi: u64,
}

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// More than [`MOST`] entries.
    TooLarge,
    /// This leaf could not be followed.
    Opaque(NodeId),
    /// The choice is between values that are not the elements themselves, as the index of an
    /// argmax: only the value that is compared shows the order.
    Choice(NodeId),
}

/// A tree, its order and the verdict: what a drawing shows.
#[derive(Clone, Debug)]
pub struct Analysis {
    pub root: NodeId,
    pub above: Epilogue,
    pub tree: Tree,
    pub order: Option<Order>,
    /// Of each entry, whether it departs.
    pub departs: Vec<bool>,
    pub verdict: Verdict,
}

/// Judges an output.
pub fn judge(graph: &Graph, output: NodeId, expect: Expect) -> Verdict {
    analyse(graph, output, expect).verdict
}

/// Judges an output and keeps what a drawing needs.
pub fn analyse(graph: &Graph, output: NodeId, expect: Expect) -> Analysis {
    let (root, above) = tree::below_epilogue(graph, output);
    let at_depth = |depth| Analysis::of(graph, root, above.clone(), depth, expect);
    let whole = at_depth(u32::MAX);
    let (Some(extent), Verdict::Departs(_)) = (expect.extent, &whole.verdict) else {
        return whole;
    };
    // With the extent known, leaves may be sums themselves: so many joins and no more. A tree over
    // half the axis could then pass with a sum of two elements for each leaf, so it must not.
    let cut = at_depth(extent.max(1).checked_next_power_of_two().unwrap_or(1).trailing_zeros());
    match &cut.verdict {
        Verdict::Canonical(found) if found.elements > extent / 2 => cut,
        Verdict::Canonical(_) | Verdict::Departs(_) | Verdict::Unknown(_) => whole,
    }
}

impl Analysis {
    fn of(graph: &Graph, root: NodeId, above: Epilogue, depth: u32, expect: Expect) -> Self {
        let Ok(tree) = Tree::of(graph, root, depth) else {
            let entry = Entry { node: root, join: None, depth: 0 };
            return Self {
                root,
                above,
                tree: Tree { entries: vec![entry], combine: None },
                order: None,
                departs: vec![false],
                verdict: Verdict::Unknown(Obstacle::TooLarge),
            };
        };
        let departs = vec![false; tree.entries.len()];
        let vacuous = tree.combine.is_none() && expect.extent != Some(1);
        if vacuous && matches!(graph.node(root), Node::Apply { .. }) {
            let verdict = Verdict::Departs(Departure::NoCombine { node: root });
            return Self { root, above, tree, order: None, departs, verdict };
        }
        match order::order(graph, &tree) {
            Ok(order) => {
                let (verdict, departs) = Judge::new(graph, &tree, &order).verdict(expect);
                Self { root, above, tree, order: Some(order), departs, verdict }
            }
            Err(disorder) => {
                let chooses = graph.label_of(root).is_some_and(|label| label.what == What::Select);
                let verdict = match disorder {
                    Disorder::Opaque { leaf } => Verdict::Unknown(Obstacle::Opaque(leaf)),
                    Disorder::NoElement | Disorder::Differs { .. } if chooses => {
                        Verdict::Unknown(Obstacle::Choice(root))
                    }
                    Disorder::NoElement
                    | Disorder::Differs { .. }
                    | Disorder::Repeats { .. }
                    | Disorder::Uneven { .. } => Verdict::Departs(Departure::Leaves(disorder)),
                };
                Self { root, above, tree, order: None, departs, verdict }
            }
        }
    }
}
