//! A reduction taken out of the graph: the joins of one operation, and the leaves below them.
//!
//! # Idea
//! The graph shares nodes; a tree does not. Every *occurrence* of a node under the root is one
//! entry, so that a leaf that is used twice is two entries.
//! # Invariants
//! - **T1** Parents come before their children: going backwards is bottom up.
//! - **T2** Joins carry the root's operation, by its meaning; every other node is a leaf.
//! - **T3** There are at most [`MOST`] entries: shared nodes can unfold exponentially.

use crate::symbol::{
    graph::{Graph, Node, NodeId},
    label::{LabelId, What},
};

/// Most entries of a tree.
pub const MOST: usize = 1 << 21;

/// One occurrence of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry {
    pub node: NodeId,
    /// Left and right operand, of a join.
    pub join: Option<[u32; 2]>,
    pub depth: u32,
}

/// What is above a reduction: operations of one symbolic operand.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Epilogue(pub Vec<NodeId>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Tree {
    pub entries: Vec<Entry>,
    /// The operation of the joins; `None` when the root is a leaf.
    pub combine: Option<LabelId>,
}

/// The tree is too large to be unfolded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TooLarge;

/// The two values a node joins, left first, if it can be a combine: two operands, or a choice.
pub fn sides(graph: &Graph, node: NodeId) -> Option<[NodeId; 2]> {
    let Node::Apply { label, args } = graph.node(node) else {
        return None;
    };
    match (&graph.label(label).what, args) {
        (What::Select, [_, a, b]) => Some([*a, *b]),
        (What::Operation(_), [a, b]) => Some([*a, *b]),
        (
            What::Operation(_)
            | What::Complement(_)
            | What::Select
            | What::Bits(_)
            | What::Output(..),
            _,
        ) => None,
    }
}

/// Steps down from an output through operations that have one symbolic operand: conversions, scaling
/// by a number. A number that leaves its neighbour alone is padding, not scaling.
pub fn below_epilogue(graph: &Graph, root: NodeId) -> (NodeId, Epilogue) {
    let (mut node, mut above) = (root, Epilogue::default());
    while let Node::Apply { label, args } = graph.node(node) {
        let number = |arg: &NodeId| match graph.node(*arg) {
            Node::Constant { bits, .. } => Some(bits),
            Node::Leaf(_) | Node::Apply { .. } => None,
        };
        let mut symbolic = args.iter().filter(|arg| number(arg).is_none());
        let (Some(only), None) = (symbolic.next(), symbolic.next()) else {
            break;
        };
        let label = graph.label(label);
        if args.iter().filter_map(number).any(|bits| label.identity(bits).is_some()) {
            break;
        }
        above.0.push(node);
        node = *only;
    }
    (node, above)
}

/// Whether the operation at the top of `node` is `combine`.
fn is(graph: &Graph, combine: Option<LabelId>, node: NodeId) -> bool {
    match (graph.node(node), combine) {
        (Node::Apply { label, .. }, Some(combine)) => graph.same_meaning(label, combine),
        (Node::Apply { .. } | Node::Leaf(_) | Node::Constant { .. }, _) => false,
    }
}

impl Tree {
    /// Unfolds `root`, at most `depth` joins deep.
    pub fn of(graph: &Graph, root: NodeId, depth: u32) -> Result<Self, TooLarge> {
        let combine = match (graph.node(root), sides(graph, root)) {
            (Node::Apply { label, .. }, Some(_)) => Some(label),
            (Node::Apply { .. } | Node::Leaf(_) | Node::Constant { .. }, _) => None,
        };
        let mut entries = vec![Entry { node: root, join: None, depth: 0 }];
        let mut at = 0;
        while at < entries.len() {
            let Entry { node, depth: own, .. } = entries[at];
            if own < depth
                && is(graph, combine, node)
                && let Some(arms) = sides(graph, node)
            {
                if entries.len() + 2 > MOST {
                    return Err(TooLarge);
                }
                let left = entries.len() as u32;
                entries[at].join = Some([left, left + 1]);
                entries.extend(arms.map(|node| Entry { node, join: None, depth: own + 1 }));
            }
            at += 1;
        }
        Ok(Self { entries, combine })
    }

    /// Entries that are no joins, left to right.
    pub fn leaves(&self) -> Vec<u32> {
        let (mut out, mut stack) = (Vec::new(), vec![0u32]);
        while let Some(at) = stack.pop() {
            match self.entries[at as usize].join {
                Some([left, right]) => stack.extend([right, left]),
                None => out.push(at),
            }
        }
        out
    }

    /// Joins above the lowest leaf.
    pub fn depth(&self) -> u32 {
        self.entries.iter().map(|entry| entry.depth).max().unwrap_or(0)
    }
}

/// The reductions below an output, outermost first: nodes that join, with a side of the same
/// operation, and are not themselves such a side.
pub fn reductions(graph: &Graph, root: NodeId) -> Vec<NodeId> {
    let mut seen = vec![false; root.index() + 1];
    let mut inside = vec![false; root.index() + 1];
    let mut out = Vec::new();
    seen[root.index()] = true;
    for index in (1..=root.index()).rev() {
        let node = NodeId(index as u32);
        if !seen[index] {
            continue;
        }
        let Node::Apply { label, args } = graph.node(node) else {
            continue;
        };
        let arms = sides(graph, node).unwrap_or([node, node]);
        let joins = arms.iter().any(|arm| *arm != node && is(graph, Some(label), *arm));
        if joins && !inside[index] {
            out.push(node);
        }
        for arg in args {
            seen[arg.index()] = true;
            inside[arg.index()] |= arms.contains(arg) && is(graph, Some(label), *arg);
        }
    }
    out
}
