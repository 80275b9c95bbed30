//! Verdicts in the reader's terms.
//!
//! # Idea
//! A verdict holds nodes and element numbers; here they get names. A join is named by the elements it
//! covers, a leaf by its expression.

use rustc_hash::FxHashMap;

use super::{
    graph::{Graph, Node, NodeId},
    label::{Identity, Label, What},
    print::{Names, expression},
    verdict::{
        Analysis, Canonical, Departure, Disorder, MOST, Obstacle, Padding, Role, Span, Verdict,
        sides,
    },
};
use crate::ir::Op;

/// What was found, in one sentence or two.
pub fn explain(graph: &Graph, analysis: &Analysis, names: Names<'_>) -> String {
    let teller = Teller { graph, analysis, names };
    match &analysis.verdict {
        Verdict::Canonical(canonical) => teller.canonical(canonical),
        Verdict::Departs(departure) => format!("not canonical: {}", teller.departure(departure)),
        Verdict::Unknown(Obstacle::TooLarge) => {
            format!("unknown: the tree has more than {MOST} nodes when it is unfolded")
        }
        Verdict::Unknown(Obstacle::Choice(_)) => {
            "unknown: the value is chosen together with another, which alone shows the order".into()
        }
        Verdict::Unknown(Obstacle::Opaque(leaf)) => format!(
            "unknown: {} could not be followed, or is too large to compare",
            teller.short(*leaf)
        ),
    }
}

struct Teller<'a> {
    graph: &'a Graph,
    analysis: &'a Analysis,
    names: Names<'a>,
}

impl Teller<'_> {
    fn short(&self, node: NodeId) -> String {
        expression(self.graph, node, self.names, 6)
    }

    fn combine(&self) -> String {
        let label = self.analysis.tree.combine.map(|label| self.graph.label(label));
        label.map_or_else(|| "nothing".into(), Label::name)
    }

    fn canonical(&self, found: &Canonical) -> String {
        if found.combine.is_none() {
            return "canonical: one element, nothing is combined".into();
        }
        let mut out =
            format!("canonical: {} elements combined by {}", found.elements, self.combine());
        if found.chooses {
            out.push_str(", each choice reading its two sides alone");
        }
        match found.padding {
            None => {}
            Some(Padding::Identity(Identity::Exact)) => {
                out.push_str("; padded at the end with its identity");
            }
            Some(Padding::Identity(Identity::UpToZeroSign)) => {
                out.push_str("; padded at the end with zeros, which can move a zero total's sign");
            }
            Some(Padding::Filler) => {
                out.push_str("; padded at the end with values not known to be its identity");
            }
        }
        if found.swapped {
            out.push_str("; some operands are the other way round");
        }
        if found.contractible {
            out.push_str("; the rounding is not written, so ptxas may contract it");
        }
        out
    }

    fn departure(&self, departure: &Departure) -> String {
        let combine = self.combine();
        match departure {
            Departure::Join { lo, hi, found: [a, b], expected: [x, y] } => format!(
                "at leaves [{lo}, {hi}), {combine} joins {} and {}; canonical is {} and {}",
                self.side(*a),
                self.side(*b),
                self.span(*x),
                self.span(*y)
            ),
            Departure::Number { number, other, identity } => format!(
                "{combine} joins the number {} and {}{}",
                self.short(*number),
                self.side(*other),
                if *identity { "; padding belongs behind the last element" } else { "" }
            ),
            Departure::Choice { node, reads } => format!(
                "the choice {} reads {}, which is on neither of its sides",
                self.short(*node),
                self.short(*reads)
            ),
            Departure::Swapped { node } => format!(
                "{} has the higher elements on its left, and {combine} does not commute",
                self.short(*node)
            ),
            Departure::Leaves(disorder) => self.disorder(disorder),
            Departure::Extent { elements, covers, extent } => {
                format!("{elements} elements in a tree over {covers}, where the axis has {extent}")
            }
            Departure::NoCombine { node } => format!(
                "the operation at the top, {}, does not join two sides{}",
                self.short(*node),
                if self.fused(*node) { ": a product was fused into the reduction" } else { "" }
            ),
        }
    }

    fn fused(&self, node: NodeId) -> bool {
        matches!(
            self.graph.label_of(node),
            Some(Label { what: What::Operation(Op::Fma { .. }), .. })
        )
    }

    fn disorder(&self, disorder: &Disorder) -> String {
        match disorder {
            Disorder::NoElement => "no input element is combined".into(),
            Disorder::Differs { first, other } => {
                let fused = self.fused(*first) != self.fused(*other);
                format!(
                    "the leaf {} is not computed as {} is{}",
                    self.short(*other),
                    self.short(*first),
                    if fused { ": a product was fused into the reduction" } else { "" }
                )
            }
            Disorder::Repeats { leaf } => format!("the leaf {} is used twice", self.short(*leaf)),
            Disorder::Uneven { before, after } => format!(
                "leaves are not one step apart: {} is followed by {}",
                self.short(*before),
                self.short(*after)
            ),
            Disorder::Opaque { leaf } => format!("{} could not be followed", self.short(*leaf)),
        }
    }

    /// A side of a join by the elements it covers.
    fn side(&self, node: NodeId) -> String {
        let combine = self.analysis.tree.combine;
        let joins = self.graph.label_of(node).is_some() && self.joins(node);
        if !joins || combine.is_none() {
            return self.short(node);
        }
        let mut elements = self.elements(node);
        elements.sort_unstable();
        let (Some(first), Some(last)) = (elements.first(), elements.last()) else {
            return self.short(node);
        };
        if (last - first) as usize + 1 == elements.len() {
            return self.span(Span { lo: u64::from(*first), hi: u64::from(*last) + 1 });
        }
        let shown: Vec<String> = elements.iter().take(4).map(u32::to_string).collect();
        let more = if elements.len() > 4 { ", …" } else { "" };
        format!("the {} leaves {{{}{more}}}", elements.len(), shown.join(", "))
    }

    fn joins(&self, node: NodeId) -> bool {
        match (self.graph.node(node), self.analysis.tree.combine) {
            (Node::Apply { label, .. }, Some(combine)) => self.graph.same_meaning(label, combine),
            (Node::Apply { .. } | Node::Leaf(_) | Node::Constant { .. }, _) => false,
        }
    }

    fn elements(&self, node: NodeId) -> Vec<u32> {
        let Some(order) = &self.analysis.order else {
            return Vec::new();
        };
        let entries = &self.analysis.tree.entries;
        let role = |at: u32| order.roles.get(&at).copied();
        let indices: FxHashMap<NodeId, u32> = order
            .elements
            .iter()
            .filter_map(|at| match role(*at) {
                Some(Role::Element(index)) => Some((entries[*at as usize].node, index)),
                Some(Role::Padding { .. } | Role::Number) | None => None,
            })
            .collect();
        let (mut out, mut stack) = (Vec::new(), vec![node]);
        while let Some(next) = stack.pop() {
            if let Some(index) = indices.get(&next) {
                out.push(*index);
            } else if self.joins(next)
                && let Some(arms) = sides(self.graph, next)
                && out.len() + stack.len() < MOST
            {
                stack.extend(arms);
            }
        }
        out
    }

    fn span(&self, span: Span) -> String {
        if span.hi != span.lo + 1 {
            return format!("leaves [{}, {})", span.lo, span.hi);
        }
        let order = self.analysis.order.as_ref();
        let entry = order.and_then(|order| order.elements.get(span.lo as usize));
        match entry {
            Some(at) => self.short(self.analysis.tree.entries[*at as usize].node),
            None => format!("leaf {}", span.lo),
        }
    }
}
