//! The order of a reduction's leaves, read off their addresses.
//!
//! # Idea
//! Leaves of one reduction are one expression at different places: `x[i]`, `x[i] * y[i]`,
//! `exp(x[i] - max)`. Compared side by side with the first, each differs by how far its input
//! elements lie ahead; where those distances are multiples of one step, the multiple is the leaf's
//! index along the axis.
//! # Invariants
//! - **O1** Parts that two leaves share, node for node, are not walked: the maximum in
//!   `exp(x[i] - max)` costs nothing.
//! - **O2** Two leaves with the same index are the same leaf.
//! # Held by
//! O1: the first test of `compare`. O2: `steps`, which refuses a distance of zero.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::tree::Tree;
use crate::symbol::{
    graph::{Graph, Leaf, Node, NodeId},
    label::{Identity, What},
};

/// How a leaf that holds no element keeps the value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Padding {
    /// A number that the combine leaves its neighbour alone for.
    Identity(Identity),
    /// Not known to be an identity: a leaf's expression over a number, or the number of a choice.
    Filler,
}

/// What an entry without children is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// Element `.0` along the axis.
    Element(u32),
    /// `whole`: one number that stands for any number of padding elements.
    Padding { kind: Padding, whole: bool },
    /// A number that is no padding.
    Number,
}

/// Why leaves have no order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Disorder {
    /// There is no element at all.
    NoElement,
    /// `other` is not computed as `first` is.
    Differs { first: NodeId, other: NodeId },
    /// A leaf is used twice.
    Repeats { leaf: NodeId },
    /// Between neighbours the step is not the one between the first two.
    Uneven { before: NodeId, after: NodeId },
    /// A leaf holds a value that could not be followed, or is too large to compare.
    Opaque { leaf: NodeId },
}

/// Leaves in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Order {
    /// Of each leaf entry of the tree.
    pub roles: FxHashMap<u32, Role>,
    /// Entries that are elements, by index.
    pub elements: Vec<u32>,
    /// Bytes from one element to the next, for each input element that moves.
    pub steps: Vec<i64>,
}

/// How a leaf differs from the first.
enum Difference {
    /// How far each input element that is not the same lies ahead, in bytes.
    Ahead(SmallVec<[i64; 2]>),
    /// The same expression with a number for an element.
    Filled,
}

/// Pairs of nodes that one comparison looks at.
const PAIRS: usize = 1 << 16;

/// Orders the leaves of `tree`.
pub fn order(graph: &Graph, tree: &Tree) -> Result<Order, Disorder> {
    let leaves = tree.leaves();
    let mut roles = FxHashMap::default();
    let mut symbolic = Vec::new();
    for &at in &leaves {
        match number_role(graph, tree, tree.entries[at as usize].node) {
            Some(role) => drop(roles.insert(at, role)),
            None => symbolic.push(at),
        }
    }
    let first = template(tree, &symbolic).ok_or(Disorder::NoElement)?;
    let mut placed = Vec::with_capacity(symbolic.len());
    for &at in &symbolic {
        let other = tree.entries[at as usize].node;
        match compare(graph, first, other)? {
            Difference::Ahead(distances) => placed.push((distances, at)),
            Difference::Filled => {
                roles.insert(at, Role::Padding { kind: Padding::Filler, whole: false });
            }
        }
    }
    let node = |at: u32| tree.entries[at as usize].node;
    let steps = steps(&mut placed, node)?;
    let elements: Vec<u32> = placed.iter().map(|(_, at)| *at).collect();
    roles.extend(elements.iter().enumerate().map(|(k, at)| (*at, Role::Element(k as u32))));
    Ok(Order { roles, elements, steps })
}

fn number_role(graph: &Graph, tree: &Tree, node: NodeId) -> Option<Role> {
    let Node::Constant { bits, .. } = graph.node(node) else {
        return None;
    };
    let Some(label) = tree.combine.map(|label| graph.label(label)) else {
        return Some(Role::Number);
    };
    if label.what == What::Select {
        return Some(Role::Padding { kind: Padding::Filler, whole: true });
    }
    Some(match label.identity(bits) {
        Some(identity) => Role::Padding { kind: Padding::Identity(identity), whole: true },
        None => Role::Number,
    })
}

/// The leaf that others are compared with: one that is used once, since fillers are one node used
/// many times.
fn template(tree: &Tree, symbolic: &[u32]) -> Option<NodeId> {
    let mut uses = FxHashMap::<NodeId, u32>::default();
    let nodes = || symbolic.iter().map(|at| tree.entries[*at as usize].node);
    nodes().for_each(|node| *uses.entry(node).or_default() += 1);
    nodes().find(|node| uses.get(node) == Some(&1)).or_else(|| nodes().next())
}

fn compare(graph: &Graph, first: NodeId, other: NodeId) -> Result<Difference, Disorder> {
    let differs = Disorder::Differs { first, other };
    let mut distances = SmallVec::new();
    let mut filled = false;
    let mut seen = FxHashSet::default();
    let mut stack = vec![(first, other)];
    while let Some((a, b)) = stack.pop() {
        // What a butterfly gave to each lane is one value, whichever operand was the lane's own.
        if graph.class(a) == graph.class(b) || !seen.insert((a, b)) {
            continue;
        }
        if seen.len() > PAIRS {
            return Err(Disorder::Opaque { leaf: other });
        }
        match (graph.node(a), graph.node(b)) {
            (Node::Leaf(x), Node::Leaf(y))
                if x.buffer == Leaf::UNKNOWN || y.buffer == Leaf::UNKNOWN =>
            {
                return Err(Disorder::Opaque { leaf: other });
            }
            (Node::Leaf(x), Node::Leaf(y)) if x.buffer == y.buffer && x.ty == y.ty => {
                distances.push(y.offset.wrapping_sub(x.offset) as i64);
            }
            (Node::Leaf(x), Node::Constant { ty, .. }) if x.ty.bits() == ty.bits() => filled = true,
            (Node::Apply { label: x, args: xs }, Node::Apply { label: y, args: ys }) => {
                let same = graph.same_meaning(x, y);
                if !same || xs.len() != ys.len() {
                    return Err(differs);
                }
                stack.extend(xs.iter().copied().zip(ys.iter().copied()).rev());
            }
            (Node::Leaf(_) | Node::Constant { .. } | Node::Apply { .. }, _) => return Err(differs),
        }
    }
    Ok(if filled { Difference::Filled } else { Difference::Ahead(distances) })
}

type Placed = (SmallVec<[i64; 2]>, u32);

/// Sorts leaves by address and gives the step between them.
fn steps(placed: &mut [Placed], node: impl Fn(u32) -> NodeId) -> Result<Vec<i64>, Disorder> {
    placed.sort_by_key(|(distances, _)| distances.first().copied().unwrap_or(0));
    let width = placed.iter().map(|(distances, _)| distances.len()).max().unwrap_or(0);
    // The first leaf does not differ from itself: its distances are zeros.
    let at = |k: usize, component: usize| placed[k].0.get(component).copied().unwrap_or(0);
    let mut step = Vec::new();
    for k in 1..placed.len() {
        let (before, after) = (node(placed[k - 1].1), node(placed[k].1));
        let own: Vec<i64> = (0..width).map(|c| at(k, c).wrapping_sub(at(k - 1, c))).collect();
        if own.iter().all(|distance| *distance == 0) {
            return Err(Disorder::Repeats { leaf: after });
        }
        if step.is_empty() {
            step = own;
        } else if step != own {
            return Err(Disorder::Uneven { before, after });
        }
    }
    Ok(step)
}
