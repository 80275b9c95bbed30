//! Digests that forget where leaves begin.
//!
//! # Idea
//! Row 0 is added up from `x[0]` on and row 1 from `x[1024]` on; their trees are one tree, moved.
//! A node's shape is a hash of its operations and of its leaves' distances from the lowest leaf of
//! their buffer below it, and those lowest leaves are kept beside the hash. So a parent can hash how
//! far its operands lie apart, and nothing absolute enters.
//!
//! A node's *form* forgets more: which elements of their buffers the leaves are. The leaves of one
//! reduction have one form.
//! # Invariants
//! - **S1** Two nodes have one shape exactly when one becomes the other by moving each buffer's
//!   leaves by one distance, hash collisions apart, and by swapping operands that commute.
//! - **S2** A value that could not be followed has a shape of its own.
//! # Not here
//! Digests to compare kernels by: `bitstable_ptx::symbol::digest`.

use bitstable_ptx::symbol::{Graph, Leaf, Node, NodeId};
use rustc_hash::FxHashMap;
use sha2::{Digest, Sha256};
use smallvec::SmallVec;

/// The lowest leaf below a node, in bytes, of each buffer.
type Lowest = SmallVec<[(u32, u64); 2]>;

struct Shape {
    hash: u128,
    form: u128,
    lowest: Lowest,
}

/// Shapes of a graph's nodes, computed once each.
#[derive(Default)]
pub struct Shapes(FxHashMap<NodeId, Shape>);

impl Shapes {
    /// The shape of a node.
    pub fn of(&mut self, graph: &Graph, root: NodeId) -> u128 {
        self.known(graph, root).map_or(0, |shape| shape.hash)
    }

    /// The form of a node.
    pub fn form(&mut self, graph: &Graph, root: NodeId) -> u128 {
        self.known(graph, root).map_or(0, |shape| shape.form)
    }

    /// The shape of a node and where it begins: equal for nodes that differ only in the order of
    /// operands that commute.
    pub fn placed(&mut self, graph: &Graph, root: NodeId) -> u128 {
        let bytes = self.known(graph, root).map(|shape| shape.placed(&Lowest::new()));
        bytes.map_or(0, |bytes| hash(&[b"P", &bytes]))
    }

    fn known(&mut self, graph: &Graph, root: NodeId) -> Option<&Shape> {
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            let before = stack.len();
            if !self.0.contains_key(&node) {
                let args = graph.args(node).iter();
                stack.extend(args.filter(|arg| !self.0.contains_key(arg)));
            }
            if stack.len() == before {
                stack.pop();
                if !self.0.contains_key(&node) {
                    let shape = self.shape(graph, node);
                    self.0.insert(node, shape);
                }
            }
        }
        self.0.get(&root)
    }

    fn shape(&self, graph: &Graph, node: NodeId) -> Shape {
        let (label, args) = match graph.node(node) {
            Node::Leaf(leaf) => return Shape::leaf(leaf),
            Node::Constant { bits, ty } => {
                let hash = hash(&[b"C", &bits.to_le_bytes(), ty.to_string().as_bytes()]);
                return Shape { hash, form: hash, lowest: Lowest::new() };
            }
            Node::Apply { label, args } => (graph.label(label), args),
        };
        let args: SmallVec<[&Shape; 4]> = args.iter().filter_map(|arg| self.0.get(arg)).collect();
        let mut lowest = Lowest::new();
        for &(buffer, offset) in args.iter().flat_map(|arg| &arg.lowest) {
            match lowest.iter_mut().find(|(known, _)| *known == buffer) {
                Some((_, least)) => *least = offset.min(*least),
                None => lowest.push((buffer, offset)),
            }
        }
        lowest.sort_unstable();
        let meaning = label.meaning();
        let combine = |mut operands: Vec<u128>| {
            if label.commutes() && operands.len() >= 2 {
                operands[..2].sort_unstable();
            }
            let operands: Vec<[u8; 16]> = operands.into_iter().map(u128::to_le_bytes).collect();
            hash(&[b"A", meaning.as_bytes(), b"\0", operands.as_flattened()])
        };
        let form = combine(args.iter().map(|arg| arg.form).collect());
        let moved = args.iter().map(|arg| hash(&[b"M", &arg.placed(&lowest)]));
        Shape { hash: combine(moved.collect()), form, lowest }
    }
}

impl Shape {
    fn leaf(leaf: Leaf) -> Self {
        let Leaf { buffer, offset, ty } = leaf;
        let ty = ty.to_string();
        if buffer == Leaf::UNKNOWN {
            let hash = hash(&[b"U", &offset.to_le_bytes(), ty.as_bytes()]);
            return Self { hash, form: hash, lowest: Lowest::new() };
        }
        let hash = hash(&[b"L", &buffer.to_le_bytes(), ty.as_bytes()]);
        Self { hash, form: hash, lowest: Lowest::from_slice(&[(buffer, offset)]) }
    }

    /// The shape, and how far above these lowest leaves it begins.
    fn placed(&self, lowest: &Lowest) -> Vec<u8> {
        let mut bytes = self.hash.to_le_bytes().to_vec();
        for (buffer, offset) in &self.lowest {
            let least = lowest.iter().find(|(known, _)| known == buffer);
            let distance = offset - least.map_or(0, |(_, least)| *least);
            bytes.extend(buffer.to_le_bytes());
            bytes.extend(distance.to_le_bytes());
        }
        bytes
    }
}

fn hash(parts: &[&[u8]]) -> u128 {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hash.finalize().iter().take(16).fold(0, |all, byte| all << 8 | u128::from(*byte))
}

#[cfg(test)]
mod tests {
    use bitstable_ptx::{
        ir::{FloatBinary, FloatMode, Op, Scalar},
        report::{Site, Thread},
        symbol::Label,
    };

    use super::*;

    const NOBODY: Site = Site { pc: 0, thread: Thread { cta: 0, thread: 0 } };

    fn leaf(graph: &mut Graph, buffer: u32, element: u64) -> NodeId {
        let leaf = Leaf { buffer, offset: 4 * element, ty: Scalar::F32 };
        graph.leaf(leaf).expect("room")
    }

    fn apply(graph: &mut Graph, op: FloatBinary, a: NodeId, b: NodeId) -> NodeId {
        let op = Op::FloatBinary { op, ty: Scalar::F32, mode: FloatMode::default() };
        let label = graph.intern(Label::operation(&op, Scalar::F32));
        graph.apply(label, &[a, b], NOBODY).expect("room")
    }

    /// `(b[i] + b[j]) - b[k]`.
    fn three(graph: &mut Graph, buffer: u32, [i, j, k]: [u64; 3]) -> NodeId {
        let [i, j, k] = [i, j, k].map(|element| leaf(graph, buffer, element));
        let sum = apply(graph, FloatBinary::Add, i, j);
        apply(graph, FloatBinary::Sub, sum, k)
    }

    #[test]
    fn a_moved_tree_is_the_same_and_another_order_is_not() {
        let (mut graph, mut shapes) = (Graph::new(1000), Shapes::default());
        let mut of = |buffer, elements| {
            let node = three(&mut graph, buffer, elements);
            shapes.of(&graph, node)
        };
        let here = of(0, [0, 1, 2]);
        assert_eq!(here, of(0, [1024, 1025, 1026]));
        assert_eq!(here, of(0, [1, 0, 2]), "addition commutes");
        for other in [[0, 2, 1], [0, 1, 3], [2, 1, 0], [0, 1, 1]] {
            assert_ne!(here, of(0, other), "{other:?}");
        }
        assert_ne!(here, of(1, [0, 1, 2]));
    }

    #[test]
    fn a_form_forgets_which_elements_are_read() {
        let (mut graph, mut shapes) = (Graph::new(1000), Shapes::default());
        let here = three(&mut graph, 0, [0, 1, 2]);
        let there = three(&mut graph, 0, [0, 7, 3]);
        let elsewhere = three(&mut graph, 1, [0, 1, 2]);
        assert_eq!(shapes.form(&graph, here), shapes.form(&graph, there));
        assert_ne!(shapes.form(&graph, here), shapes.form(&graph, elsewhere));
        assert_ne!(shapes.of(&graph, here), shapes.of(&graph, there));
    }

    #[test]
    fn a_place_tells_moved_trees_apart_and_forgets_the_order_of_operands() {
        let (mut graph, mut shapes) = (Graph::new(1000), Shapes::default());
        let mut of = |elements| {
            let node = three(&mut graph, 0, elements);
            shapes.placed(&graph, node)
        };
        assert_eq!(of([0, 1, 2]), of([1, 0, 2]));
        assert_ne!(of([0, 1, 2]), of([1, 2, 3]));
    }

    #[test]
    fn each_buffer_moves_alone() {
        let (mut graph, mut shapes) = (Graph::new(1000), Shapes::default());
        let mut of = |x, y| {
            let (x, y) = (leaf(&mut graph, 0, x), leaf(&mut graph, 1, y));
            let node = apply(&mut graph, FloatBinary::Mul, x, y);
            shapes.of(&graph, node)
        };
        assert_eq!(of(3, 0), of(7, 100));
    }
}
