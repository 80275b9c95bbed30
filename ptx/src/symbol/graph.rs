//! Expressions, each kept once.
//!
//! # Idea
//! A node is a leaf (an element of an input buffer), a number that met one, or an operation on
//! ordered operands. Nodes that are equal are one node, so that equality is equality of ids and a
//! value that a thousand threads hold costs one node.
//! # Invariants
//! - **G1** Operands are older than the node that uses them: ids are a topological order.
//! - **G2** Equal nodes have equal ids. Who made a node is no part of it: the first maker is kept.
//! - **G3** There are never more than the limit of nodes, nor four times as many operands.
//! - **G4** Nodes of one [class](Graph::class) hold equal bits: they differ in the order of operands
//!   that commute, at any depth. Lanes that exchange values each have their own order.
//! # Held by
//! G1: ids are only handed out by this module. G2: `find_or_add`. G3: `room`.
//! # Not here
//! Which operations are the same by arithmetic (`rewrite.rs`); which order is canonical
//! (`verdict/`).

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

use super::{
    Limit,
    label::{Label, LabelId, Labels},
};
use crate::{ir::Scalar, report::Site};

/// An expression.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct NodeId(pub(crate) u32);

impl NodeId {
    /// Into tables that hold one entry a node.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// An element of an input buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Leaf {
    /// Number that the launch gave the buffer.
    pub buffer: u32,
    /// Bytes from the start of the buffer.
    pub offset: u64,
    pub ty: Scalar,
}

impl Leaf {
    /// The buffer of values that could not be followed; each offset stands for another one.
    pub const UNKNOWN: u32 = u32::MAX;
}

/// What a node is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node<'g> {
    Leaf(Leaf),
    /// A number, `bits` of type `ty`.
    Constant {
        bits: u64,
        ty: Scalar,
    },
    Apply {
        label: LabelId,
        args: &'g [NodeId],
    },
}

/// How far apart the threads were whose values met in an operation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Meeting {
    /// Registers of one thread.
    Thread,
    /// Lanes of one warp.
    Warp,
    /// Warps of one CTA, through shared memory.
    Cta,
    /// CTAs, through global or distributed shared memory.
    Grid,
}

/// Who computed a node first; of a leaf, who loaded it first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Maker {
    pub site: Site,
    pub meeting: Meeting,
}

#[derive(Clone, Copy, Debug)]
enum Stored {
    Leaf(Leaf),
    Constant { bits: u64, ty: Scalar },
    Apply { label: LabelId, start: u32, count: u32 },
}

/// All expressions of one run.
#[derive(Debug)]
pub struct Graph {
    nodes: Vec<Stored>,
    args: Vec<NodeId>,
    makers: Vec<Option<Maker>>,
    /// Nodes by the hash of their contents.
    index: FxHashMap<u64, SmallVec<[NodeId; 1]>>,
    /// Of each node, the first node of its class.
    classes: Vec<NodeId>,
    /// First nodes of classes by the hash of what their members share.
    members: FxHashMap<u64, SmallVec<[NodeId; 1]>>,
    labels: Labels,
    limit: usize,
}

/// Ids and parts share 32 bits in a piece (`piece.rs`).
const MOST_NODES: usize = 1 << 27;

impl Graph {
    /// At most `limit` nodes will be made.
    pub fn new(limit: usize) -> Self {
        // Id 0 is never handed out: a zero piece means "a number".
        let nothing = Stored::Constant { bits: 0, ty: Scalar::Pred };
        Self {
            nodes: vec![nothing],
            args: Vec::new(),
            makers: vec![None],
            index: FxHashMap::default(),
            classes: vec![NodeId(0)],
            members: FxHashMap::default(),
            labels: Labels::default(),
            limit: limit.min(MOST_NODES),
        }
    }

    /// Nodes made so far.
    pub fn count(&self) -> usize {
        self.nodes.len() - 1
    }

    pub fn node(&self, id: NodeId) -> Node<'_> {
        match self.nodes[id.index()] {
            Stored::Leaf(leaf) => Node::Leaf(leaf),
            Stored::Constant { bits, ty } => Node::Constant { bits, ty },
            Stored::Apply { label, start, count } => {
                let start = start as usize;
                Node::Apply { label, args: &self.args[start..start + count as usize] }
            }
        }
    }

    /// Ordered operands; none for a leaf or a number.
    pub fn args(&self, id: NodeId) -> &[NodeId] {
        match self.node(id) {
            Node::Apply { args, .. } => args,
            Node::Leaf(_) | Node::Constant { .. } => &[],
        }
    }

    /// The operation at the top of a node.
    pub fn label_of(&self, id: NodeId) -> Option<&Label> {
        match self.node(id) {
            Node::Apply { label, .. } => Some(self.labels.get(label)),
            Node::Leaf(_) | Node::Constant { .. } => None,
        }
    }

    pub fn label(&self, id: LabelId) -> &Label {
        self.labels.get(id)
    }

    /// Whether two labels give equal values on equal operands: [`Label::meaning`], compared.
    pub fn same_meaning(&self, a: LabelId, b: LabelId) -> bool {
        self.labels.same_meaning(a, b)
    }

    /// The type of a node's value.
    pub fn ty(&self, id: NodeId) -> Scalar {
        match self.node(id) {
            Node::Leaf(leaf) => leaf.ty,
            Node::Constant { ty, .. } => ty,
            Node::Apply { label, .. } => self.labels.get(label).result,
        }
    }

    /// `None` for numbers and for leaves that no thread loaded.
    pub fn maker(&self, id: NodeId) -> Option<Maker> {
        self.makers[id.index()]
    }

    /// The id of a label.
    pub fn intern(&mut self, label: Label) -> LabelId {
        self.labels.intern(label)
    }

    pub fn leaf(&mut self, leaf: Leaf) -> Result<NodeId, Limit> {
        self.find_or_add(Node::Leaf(leaf))
    }

    /// A value nobody can name, unlike any other.
    pub(crate) fn unknown(&mut self, ty: Scalar) -> Result<NodeId, Limit> {
        self.leaf(Leaf { buffer: Leaf::UNKNOWN, offset: self.nodes.len() as u64, ty })
    }

    /// `bits` beyond the type's width are dropped.
    pub fn constant(&mut self, bits: u64, ty: Scalar) -> Result<NodeId, Limit> {
        let width = ty.bits().min(64);
        let bits = if width == 64 { bits } else { bits & ((1 << width) - 1) };
        self.find_or_add(Node::Constant { bits, ty })
    }

    /// The operation itself, no identity applied; `site` is kept when the node is new.
    pub fn apply(&mut self, label: LabelId, args: &[NodeId], site: Site) -> Result<NodeId, Limit> {
        let before = self.nodes.len();
        let id = self.find_or_add(Node::Apply { label, args })?;
        if id.index() == before {
            let meeting = self.meeting(args, site);
            self.makers[before] = Some(Maker { site, meeting });
            self.classify(id);
        }
        Ok(id)
    }

    /// The first node that differs from this one at most in the order of operands that commute.
    pub fn class(&self, id: NodeId) -> NodeId {
        self.classes[id.index()]
    }

    /// Finds the class of a new operation.
    fn classify(&mut self, id: NodeId) {
        let shared = self.shared(id);
        let mut hasher = FxHasher::default();
        shared.hash(&mut hasher);
        let hash = hasher.finish();
        let known = self.members.get(&hash).into_iter().flatten();
        match known.copied().find(|first| self.shared(*first) == shared) {
            Some(first) => self.classes[id.index()] = first,
            None => self.members.entry(hash).or_default().push(id),
        }
    }

    /// What nodes of one class share: meaning, and classes of operands.
    fn shared(&self, id: NodeId) -> (Option<LabelId>, SmallVec<[NodeId; 4]>) {
        let mut args: SmallVec<[NodeId; 4]> =
            self.args(id).iter().map(|arg| self.class(*arg)).collect();
        let Node::Apply { label, .. } = self.node(id) else {
            return (None, args);
        };
        if args.len() >= 2 && self.label(label).commutes() {
            args[..2].sort_unstable();
        }
        (Some(self.labels.first_of_meaning(label)), args)
    }

    /// A thread loaded a leaf into a register.
    pub(crate) fn loaded(&mut self, id: NodeId, site: Site) {
        let maker = &mut self.makers[id.index()];
        if maker.is_none() && matches!(self.nodes[id.index()], Stored::Leaf(_)) {
            *maker = Some(Maker { site, meeting: Meeting::Thread });
        }
    }

    fn meeting(&self, args: &[NodeId], site: Site) -> Meeting {
        let here = site.thread;
        let of = |id: &NodeId| {
            let Some(Maker { site: Site { thread, .. }, .. }) = self.maker(*id) else {
                return Meeting::Thread;
            };
            if thread == here {
                Meeting::Thread
            } else if thread.cta != here.cta {
                Meeting::Grid
            } else if thread.thread / 32 != here.thread / 32 {
                Meeting::Cta
            } else {
                Meeting::Warp
            }
        };
        args.iter().map(of).max().unwrap_or(Meeting::Thread)
    }

    fn find_or_add(&mut self, node: Node<'_>) -> Result<NodeId, Limit> {
        let hash = hash_of(&node);
        if let Some(found) = self.index.get(&hash)
            && let Some(id) = found.iter().find(|id| self.node(**id) == node)
        {
            return Ok(*id);
        }
        self.room(&node)?;
        let id = NodeId(self.nodes.len() as u32);
        let stored = match node {
            Node::Leaf(leaf) => Stored::Leaf(leaf),
            Node::Constant { bits, ty } => Stored::Constant { bits, ty },
            Node::Apply { label, args } => {
                let start = self.args.len() as u32;
                self.args.extend_from_slice(args);
                Stored::Apply { label, start, count: args.len() as u32 }
            }
        };
        self.nodes.push(stored);
        self.makers.push(None);
        self.classes.push(id);
        self.index.entry(hash).or_default().push(id);
        Ok(id)
    }

    fn room(&self, node: &Node<'_>) -> Result<(), Limit> {
        let args = match node {
            Node::Apply { args, .. } => args.len(),
            Node::Leaf(_) | Node::Constant { .. } => 0,
        };
        if self.count() >= self.limit || self.args.len() + args > 4 * self.limit.max(64) {
            return Err(Limit::Nodes(self.limit));
        }
        Ok(())
    }
}

fn hash_of(node: &Node<'_>) -> u64 {
    let mut hasher = FxHasher::default();
    match node {
        Node::Leaf(leaf) => (0u8, leaf).hash(&mut hasher),
        Node::Constant { bits, ty } => (1u8, bits, ty).hash(&mut hasher),
        Node::Apply { label, args } => (2u8, label, args).hash(&mut hasher),
    }
    hasher.finish()
}
