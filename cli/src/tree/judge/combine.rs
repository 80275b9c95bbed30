//! Which nodes combine, and whether their order matters.

use bitstable_ptx::{
    ir::{Class, FloatBinary, FloatMode, IntBinary, Op},
    symbol::{
        Graph, Label, Node, NodeId,
        label::What,
        verdict::{Tree, sides},
    },
};
use rustc_hash::FxHashMap;

use crate::tree::shape::Shapes;

/// The operation of a node.
fn operation(graph: &Graph, node: NodeId) -> Option<&Op> {
    match graph.label_of(node) {
        Some(Label { what: What::Operation(op), .. }) => Some(op),
        _ => None,
    }
}

/// The two sides of a node that may combine, and whether each combines in the same way.
pub fn joined(graph: &Graph, node: NodeId) -> Option<[(NodeId, bool); 2]> {
    let Node::Apply { label, .. } = graph.node(node) else { return None };
    let same = |side: NodeId| match graph.node(side) {
        Node::Apply { label: other, .. } => graph.same_meaning(label, other),
        Node::Leaf(_) | Node::Constant { .. } => false,
    };
    Some(sides(graph, node)?.map(|side| (side, same(side))))
}

/// Factors and addend of a multiply-add.
pub fn multiply_add(graph: &Graph, node: NodeId) -> Option<([NodeId; 2], NodeId)> {
    let Some(Op::Fma { .. }) = operation(graph, node) else { return None };
    let &[a, b, addend] = graph.args(node) else { return None };
    Some(([a, b], addend))
}

/// The addend of a multiply-add, if it is one too and both products are computed alike.
pub fn chained(graph: &Graph, shapes: &mut Shapes, node: NodeId) -> Option<NodeId> {
    let (own, addend) = multiply_add(graph, node)?;
    let (other, _) = multiply_add(graph, addend)?;
    let mut form = |factors: [NodeId; 2]| factors.map(|factor| shapes.form(graph, factor));
    (own != other && form(own) == form(other)).then_some(addend)
}

/// Whether two different leaves of the joins at `root` are computed alike.
pub fn joins_alike(graph: &Graph, shapes: &mut Shapes, root: NodeId) -> bool {
    // What is too large to unfold is too large to be anything else.
    let Ok(tree) = Tree::of(graph, root, u32::MAX) else { return true };
    let mut seen = FxHashMap::default();
    tree.leaves().into_iter().any(|leaf| {
        let node = tree.entries[leaf as usize].node;
        // Numbers are alike only as padding.
        !matches!(graph.node(node), Node::Constant { .. })
            && *seen.entry(shapes.form(graph, node)).or_insert(node) != node
    })
}

/// Whether the combine at a node gives the same bits in every order: integers, minima and maxima.
pub fn any_order(graph: &Graph, node: NodeId) -> bool {
    let operation = operation(graph, node);
    if let Some(Op::FloatBinary { op: FloatBinary::Min | FloatBinary::Max, mode, .. }) = operation {
        return *mode == FloatMode { ftz: mode.ftz, nan: mode.nan, ..FloatMode::default() };
    }
    let Some(Op::IntBinary { op, ty, sat: false }) = operation else { return false };
    ty.class() != Class::Float
        && matches!(
            op,
            IntBinary::Add
                | IntBinary::Min
                | IntBinary::Max
                | IntBinary::And
                | IntBinary::Or
                | IntBinary::Xor
        )
}
