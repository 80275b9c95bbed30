//! One join at a time: which block of elements it covers.
//!
//! # Idea
//! Bottom up, each entry covers an aligned block, padding, or nothing that has a name. A join of two
//! neighbouring blocks covers the block of twice the size; any other join departs, and what is above
//! it is not looked at for shape any more.

use rustc_hash::FxHashSet;

use super::{Canonical, Departure, Disorder, Expect, Order, Padding, Role, Span, Tree, Verdict};
use crate::symbol::{
    graph::{Graph, Node, NodeId},
    label::{Label, What},
};

/// What an entry covers.
#[derive(Clone, Copy, Debug)]
enum Covers {
    /// The aligned block of `1 << height` elements from `lo`, clipped at the last element.
    Block { lo: u64, height: u32 },
    /// Padding; `height` is `None` where one number stands for as much as is wanted.
    Padding { height: Option<u32> },
    /// No block: some join below departs. Its lowest element.
    Broken { lo: u64 },
    /// A number that is no padding.
    Number,
}

impl Covers {
    /// Height and lowest element.
    fn rank(self) -> Rank {
        match self {
            Covers::Block { lo, height } => (height, lo),
            Covers::Padding { height } => (height.unwrap_or(0), u64::MAX),
            Covers::Broken { lo } => (u32::MAX, lo),
            Covers::Number => (0, u64::MAX),
        }
    }
}

/// What a join's two sides make.
enum Joined {
    Canonical { covers: Covers, swapped: bool },
    Departs { rank: Rank },
    Above { lo: u64 },
}

/// Judges the joins of one tree.
pub(super) struct Judge<'a> {
    graph: &'a Graph,
    tree: &'a Tree,
    order: &'a Order,
    departs: Vec<bool>,
    /// The lowest departing join so far: height of its lower side, lowest element.
    first: Option<(Rank, Departure)>,
    notes: Notes,
}

type Rank = (u32, u64);

/// What was said about the joins so far.
#[derive(Default)]
struct Notes {
    swapped: Option<NodeId>,
    contractible: bool,
    padding: Option<Padding>,
}

impl<'a> Judge<'a> {
    pub fn new(graph: &'a Graph, tree: &'a Tree, order: &'a Order) -> Self {
        let departs = vec![false; tree.entries.len()];
        Self { graph, tree, order, departs, first: None, notes: Notes::default() }
    }

    fn elements(&self) -> u64 {
        self.order.elements.len() as u64
    }

    /// The verdict, and which entries depart.
    pub fn verdict(mut self, expect: Expect) -> (Verdict, Vec<bool>) {
        let mut covers = vec![Covers::Number; self.tree.entries.len()];
        for at in (0..self.tree.entries.len()).rev() {
            covers[at] = match self.tree.entries[at].join {
                None => self.leaf(at),
                Some(sides) => self.join(at, sides, &covers),
            };
        }
        let verdict = match self.first.take() {
            Some((_, departure)) => Verdict::Departs(departure),
            None => self.canonical(covers[0], expect),
        };
        (verdict, self.departs)
    }

    /// No join departs: what is left to ask.
    fn canonical(&self, root: Covers, expect: Expect) -> Verdict {
        let label = self.tree.combine.map(|label| self.graph.label(label));
        let chooses = label.is_some_and(|label| label.what == What::Select);
        // The arms of a choice say by themselves which side is which.
        let commutes = chooses || label.is_none_or(|label| label.commutes());
        let Covers::Block { height, .. } = root else {
            return Verdict::Departs(Departure::Leaves(Disorder::NoElement));
        };
        if let Some(departure) = self.extent(height, expect) {
            return Verdict::Departs(departure);
        }
        match self.notes.swapped {
            Some(node) if !commutes => Verdict::Departs(Departure::Swapped { node }),
            swapped => Verdict::Canonical(Canonical {
                combine: self.tree.combine,
                elements: self.elements(),
                padding: self.notes.padding,
                swapped: swapped.is_some(),
                contractible: self.notes.contractible,
                chooses,
            }),
        }
    }

    fn extent(&self, height: u32, expect: Expect) -> Option<Departure> {
        let extent = expect.extent?;
        let covers = 1u64.checked_shl(height).unwrap_or(u64::MAX);
        let elements = self.elements();
        (elements > extent || covers < extent).then_some(Departure::Extent {
            elements,
            covers,
            extent,
        })
    }

    fn leaf(&mut self, at: usize) -> Covers {
        match self.order.roles.get(&(at as u32)) {
            Some(Role::Element(index)) => Covers::Block { lo: u64::from(*index), height: 0 },
            Some(Role::Padding { kind, whole }) => {
                self.notes.padding = self.notes.padding.max(Some(*kind));
                Covers::Padding { height: if *whole { None } else { Some(0) } }
            }
            Some(Role::Number) | None => Covers::Number,
        }
    }

    fn join(&mut self, at: usize, sides: [u32; 2], covers: &[Covers]) -> Covers {
        let node = self.tree.entries[at].node;
        self.notes.contractible |= self.graph.label_of(node).is_some_and(Label::contractible);
        let nodes = sides.map(|side| self.tree.entries[side as usize].node);
        let [left, right] = sides.map(|side| covers[side as usize]);
        match self.joined(left, right) {
            Joined::Canonical { covers, swapped } => {
                if swapped {
                    self.notes.swapped = self.notes.swapped.or(Some(node));
                }
                if let Some(reads) = self.foreign(node, nodes) {
                    self.departs[at] = true;
                    self.keep(covers.rank(), Departure::Choice { node, reads });
                }
                covers
            }
            Joined::Departs { rank } => {
                self.departs[at] = true;
                self.keep(rank, self.departure(rank, nodes));
                Covers::Broken { lo: rank.1 }
            }
            // Above a departure everything is out of place; only its first cause is one.
            Joined::Above { lo } => Covers::Broken { lo },
        }
    }

    fn joined(&self, left: Covers, right: Covers) -> Joined {
        let canonical = |covers: Option<Covers>, swapped, rank| match covers {
            Some(covers) => Joined::Canonical { covers, swapped },
            None => Joined::Departs { rank },
        };
        match (left, right) {
            (Covers::Block { lo: a, height: x }, Covers::Block { lo: b, height: y }) => {
                let swapped = b < a;
                let (low, high) = if swapped { ((y, b), (x, a)) } else { ((x, a), (y, b)) };
                canonical(self.blocks(low, high), swapped, low)
            }
            (Covers::Block { lo, height }, Covers::Padding { height: other }) => {
                canonical(self.padded((height, lo), other), false, (height, lo))
            }
            (Covers::Padding { height: other }, Covers::Block { lo, height }) => {
                canonical(self.padded((height, lo), other), true, (height, lo))
            }
            (Covers::Padding { height: x }, Covers::Padding { height: y }) => match (x, y) {
                (Some(x), Some(y)) if x != y => Joined::Departs { rank: (x.min(y), u64::MAX) },
                (x, y) => {
                    let height = x.or(y).map(|height| height + 1);
                    Joined::Canonical { covers: Covers::Padding { height }, swapped: false }
                }
            },
            (Covers::Number, side) | (side, Covers::Number) => {
                Joined::Departs { rank: side.rank() }
            }
            (Covers::Broken { lo }, side) | (side, Covers::Broken { lo }) => {
                Joined::Above { lo: lo.min(side.rank().1) }
            }
        }
    }

    /// Two neighbours make a block when the lower is aligned to both and the upper is as high, or
    /// reaches the last element.
    fn blocks(&self, (height, lo): Rank, (other, next): Rank) -> Option<Covers> {
        let size = 1u64.checked_shl(height)?;
        let clipped = next + 1u64.checked_shl(other)? >= self.elements();
        let fits = lo.is_multiple_of(size.checked_mul(2)?)
            && next == lo + size
            && (other == height || other < height && clipped);
        fits.then_some(Covers::Block { lo, height: height + 1 })
    }

    /// Padding stands beside a block that reaches the last element, and above it.
    fn padded(&self, (height, lo): Rank, other: Option<u32>) -> Option<Covers> {
        let size = 1u64.checked_shl(height)?;
        let fits = lo.is_multiple_of(size.checked_mul(2)?)
            && lo + size >= self.elements()
            && other.is_none_or(|other| other == height);
        fits.then_some(Covers::Block { lo, height: height + 1 })
    }

    fn departure(&self, (height, lo): Rank, nodes: [NodeId; 2]) -> Departure {
        let number = |node| matches!(self.graph.node(node), Node::Constant { .. });
        let identity = |node| match self.graph.node(node) {
            Node::Constant { bits, .. } => {
                self.tree.combine.and_then(|label| self.graph.label(label).identity(bits)).is_some()
            }
            Node::Leaf(_) | Node::Apply { .. } => false,
        };
        match nodes {
            [a, b] if number(a) => Departure::Number { number: a, other: b, identity: identity(a) },
            [a, b] if number(b) => Departure::Number { number: b, other: a, identity: identity(b) },
            found => {
                let size = 1u64 << height.min(40);
                let lo = lo.min(self.elements());
                let start = lo / (2 * size) * (2 * size);
                let end = |hi: u64| hi.min(self.elements());
                let expected = [
                    Span { lo: start, hi: end(start + size) },
                    Span { lo: start + size, hi: end(start + 2 * size) },
                ];
                Departure::Join { lo: start, hi: end(start + 2 * size), found, expected }
            }
        }
    }

    fn keep(&mut self, rank: Rank, departure: Departure) {
        if self.first.as_ref().is_none_or(|(known, _)| rank < *known) {
            self.first = Some((rank, departure));
        }
    }

    /// What a choice's predicate reads beside its two sides, numbers apart. The other parts of a
    /// tuple (the index beside a maximum) are chosen by the sides' own predicates.
    fn foreign(&self, node: NodeId, [a, b]: [NodeId; 2]) -> Option<NodeId> {
        let choice = |node: NodeId| match self.graph.label_of(node) {
            Some(label) if label.what == What::Select => self.graph.args(node).first().copied(),
            _ => None,
        };
        let predicate = choice(node)?;
        let inside = [choice(a), choice(b)];
        let mut seen = FxHashSet::default();
        let mut stack = vec![predicate];
        while let Some(next) = stack.pop() {
            if next == a || next == b || !seen.insert(next) {
                continue;
            }
            match self.graph.node(next) {
                Node::Leaf(_) => return Some(next),
                Node::Constant { .. } => {}
                Node::Apply { args, .. } => {
                    let own = choice(next);
                    if own.is_none() || !inside.contains(&own) {
                        stack.extend_from_slice(args);
                    }
                }
            }
            if seen.len() > 1 << 12 {
                return Some(next);
            }
        }
        None
    }
}
