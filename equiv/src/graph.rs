//! What names stand for.
//!
//! # Idea
//! Deciding needs hashes alone. Certifying and explaining need the terms: with a graph, every name
//! that is made is kept with its operation and operands.
//! # Invariants
//! - **G1** A name has one meaning: another one for it is a collision of the hash, which is kept.
//! - **G2** There are never more than [`MOST_NODES`] names.
//! # Held by
//! G1 and G2: [`Graph::record`].

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::{label::LabelId, linear::Monomial, term::Body};

/// Names that are kept: about 100 bytes each.
const MOST_NODES: usize = 12 << 20;

/// An operation and the names of its operands.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Node {
    Constant {
        bits: u64,
        bytes: u8,
    },
    Symbol(Box<str>),
    Linear {
        terms: Vec<(Monomial, i64)>,
        constant: i64,
    },
    Offset {
        base: Body,
        constant: i64,
    },
    /// Memory at an address plus an offset.
    Load(Body, i32, u8),
    Slice(Body, i32, u8),
    /// The complement of a predicate, the negative of a float.
    Flipped(Body),
    Apply {
        label: LabelId,
        args: SmallVec<[Body; 3]>,
    },
    /// A multiset in two parts, each a multiset or a member.
    Join {
        label: LabelId,
        parts: [Body; 2],
    },
    Member {
        label: LabelId,
        of: Body,
    },
    Select {
        predicate: Body,
        arms: [Body; 2],
    },
    Pack {
        parts: SmallVec<[Body; 4]>,
        bytes: u8,
    },
    /// Anything else: a name for what it is, and operands.
    Other {
        what: &'static str,
        args: Vec<Body>,
    },
}

impl Node {
    /// An operation; operands that commute in the order of their names.
    pub fn apply(label: LabelId, args: &[Body], commutes: bool) -> Self {
        let mut args: SmallVec<[Body; 3]> = args.into();
        if commutes && args.len() >= 2 {
            args[..2].sort_unstable();
        }
        Node::Apply { label, args }
    }
}

/// Which instruction of which kernel made a term first.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Maker {
    pub kernel: u8,
    pub pc: u32,
}

/// Names and their meanings.
#[derive(Debug, Default)]
pub struct Graph {
    nodes: FxHashMap<Body, (Node, Maker)>,
    /// Who makes terms now.
    pub maker: Maker,
    /// Two meanings met under one name, or there were too many names.
    failed: Option<Failure>,
}

/// A graph that proves nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Failure {
    #[error("two terms have one hash")]
    Collision,
    #[error("the terms need more than {MOST_NODES} nodes")]
    TooLarge,
}

impl Graph {
    pub fn record(&mut self, body: Body, node: Node) {
        if self.failed.is_some() {
            return;
        }
        if let Some((known, _)) = self.nodes.get(&body) {
            if *known != node && !self.one_multiset(known, &node) {
                self.failed = Some(Failure::Collision);
            }
            return;
        }
        if self.nodes.len() >= MOST_NODES {
            self.failed = Some(Failure::TooLarge);
            return;
        }
        self.nodes.insert(body, (node, self.maker));
    }

    pub fn failure(&self) -> Option<Failure> {
        self.failed
    }

    pub fn get(&self, body: Body) -> Option<&Node> {
        self.nodes.get(&body).map(|(node, _)| node)
    }

    pub fn maker(&self, body: Body) -> Option<Maker> {
        self.nodes.get(&body).map(|(_, maker)| *maker)
    }

    /// Two ways to put one multiset together.
    fn one_multiset(&self, a: &Node, b: &Node) -> bool {
        let (Node::Join { label: x, parts: a }, Node::Join { label: y, parts: b }) = (a, b) else {
            return false;
        };
        x == y && self.members(*x, a) == self.members(*y, b)
    }

    /// The members of a multiset, sorted.
    pub fn members(&self, label: LabelId, parts: &[Body]) -> Vec<Body> {
        let (mut open, mut members) = (parts.to_vec(), Vec::new());
        while let Some(body) = open.pop() {
            match self.nodes.get(&body) {
                Some((Node::Join { label: of, parts }, _)) if *of == label => open.extend(parts),
                Some(_) | None => members.push(body),
            }
        }
        members.sort_unstable();
        members
    }
}
