//! Digests of trees, to compare kernels, configurations, and runs on different machines.
//!
//! # Idea
//! Every node is hashed with SHA-256 over what it says: its tag, its text or numbers, and the
//! digests of its operands; the first 128 bits are kept. Nothing of the run enters: no node number,
//! no address, no thread.
//!
//! | node | bytes hashed |
//! |---|---|
//! | leaf | `L`, buffer (u32), byte offset (u64), type |
//! | number | `C`, bits (u64), type |
//! | operation | `A`, [`Label::meaning`](super::Label::meaning), count (u32), operands' digests |
//!
//! Numbers are little endian; a text is its length (u32) and its bytes.
//! # Invariants
//! - **D1** Equal trees up to the addresses of buffers have equal digests, on every platform.
//! - **D2** [`Digest::tree`] is blind to the order of two operands that commute; [`Digest::ordered`]
//!   is not.
//! - **D3** A tree with a value that could not be followed has none.
//! # Held by
//! D1: the table above, pinned by a test with literal digests. D2, D3: unit tests.

use std::fmt;

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use super::graph::{Graph, Leaf, Node, NodeId};

/// Of one tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Digest {
    /// Equal for trees that differ only in which operand of a commuting operation comes first.
    pub tree: u128,
    /// Equal for trees that do not differ at all.
    pub ordered: u128,
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.tree)
    }
}

/// Digests of a graph's nodes, computed once each.
#[derive(Debug, Default)]
pub struct Digests {
    known: FxHashMap<NodeId, Option<Digest>>,
}

impl Digests {
    /// Of one output; `None` where a value below could not be followed.
    pub fn of(&mut self, graph: &Graph, root: NodeId) -> Option<Digest> {
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            if self.known.contains_key(&node) {
                stack.pop();
                continue;
            }
            let before = stack.len();
            let args = graph.args(node).iter();
            stack.extend(args.filter(|arg| !self.known.contains_key(arg)));
            if stack.len() == before {
                let digest = self.combine(graph, node);
                self.known.insert(node, digest);
                stack.pop();
            }
        }
        self.known.get(&root).copied().flatten()
    }

    /// Of all outputs of a launch, in the order given: each with its buffer and byte offset.
    pub fn of_outputs(&mut self, graph: &Graph, outputs: &[(u32, u64, NodeId)]) -> Option<Digest> {
        let (mut tree, mut ordered) = (Sha256::new(), Sha256::new());
        for (buffer, offset, node) in outputs {
            let digest = self.of(graph, *node)?;
            for (hash, own) in [(&mut tree, digest.tree), (&mut ordered, digest.ordered)] {
                hash.update(b"O");
                hash.update(buffer.to_le_bytes());
                hash.update(offset.to_le_bytes());
                hash.update(own.to_le_bytes());
            }
        }
        Some(Digest { tree: first(tree), ordered: first(ordered) })
    }

    fn combine(&self, graph: &Graph, node: NodeId) -> Option<Digest> {
        let (label, args) = match graph.node(node) {
            Node::Leaf(Leaf { buffer: Leaf::UNKNOWN, .. }) => return None,
            Node::Leaf(leaf) => {
                let mut hash = Sha256::new();
                hash.update(b"L");
                hash.update(leaf.buffer.to_le_bytes());
                hash.update(leaf.offset.to_le_bytes());
                text(&mut hash, &leaf.ty.to_string());
                return Some(both(first(hash)));
            }
            Node::Constant { bits, ty } => {
                let mut hash = Sha256::new();
                hash.update(b"C");
                hash.update(bits.to_le_bytes());
                text(&mut hash, &ty.to_string());
                return Some(both(first(hash)));
            }
            Node::Apply { label, args } => (graph.label(label), args),
        };
        let mut tree = Vec::with_capacity(args.len());
        let mut ordered = Vec::with_capacity(args.len());
        for arg in args {
            let digest = self.known.get(arg).copied().flatten()?;
            tree.push(digest.tree);
            ordered.push(digest.ordered);
        }
        if label.commutes() && tree.len() >= 2 {
            tree[..2].sort_unstable();
        }
        let meaning = label.meaning();
        let [tree, ordered] = [tree, ordered].map(|args| {
            let mut hash = Sha256::new();
            hash.update(b"A");
            text(&mut hash, &meaning);
            hash.update((args.len() as u32).to_le_bytes());
            args.iter().for_each(|arg| hash.update(arg.to_le_bytes()));
            first(hash)
        });
        Some(Digest { tree, ordered })
    }
}

fn both(value: u128) -> Digest {
    Digest { tree: value, ordered: value }
}

fn text(hash: &mut Sha256, text: &str) {
    hash.update((text.len() as u32).to_le_bytes());
    hash.update(text.as_bytes());
}

/// The first 128 bits, as the hexadecimal text of the hash begins.
fn first(hash: Sha256) -> u128 {
    hash.finalize().iter().take(16).fold(0, |all, byte| all << 8 | u128::from(*byte))
}
