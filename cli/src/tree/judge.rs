//! What an output is judged by: every reduction below it.
//!
//! # Idea
//! An output may be a sum, or a quotient of exponentials by a sum with a maximum in it, or have no
//! reduction at all. So the reductions below it are found first, and each is judged.
//! # Invariants
//! - **J1** What joins at least two different values that are computed alike is a reduction: the
//!   elements of an axis differ only in where they lie. `x + y + bias` and `x * x * x` are none.
//! - **J2** A chain of multiply-adds whose products are alike is a reduction that fused its
//!   products, and departs.
//! - **J3** With an extent there must be a reduction.

use bitstable_ptx::{
    ir::Op,
    symbol::{
        Expect, Graph, Label, Node, NodeId, Verdict, analyse,
        label::What,
        verdict::{Analysis, Tree, reductions},
    },
};
use rustc_hash::{FxHashMap, FxHashSet};

use super::shape::Shapes;

/// How an output stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Standing {
    /// Every reduction below it is canonical.
    Canonical,
    /// One is not.
    Departs,
    /// One could not be judged.
    Unknown,
    /// There is nothing to judge.
    NoReduction,
}

/// An output's standing, and the analysis to show for it.
pub struct Judgement {
    pub standing: Standing,
    /// Reductions below it.
    pub reductions: usize,
    /// Of the first reduction that is not canonical, or of the outermost.
    pub analysis: Analysis,
}

impl Judgement {
    /// Judges an output; `extent` as in [`Expect`].
    pub fn of(graph: &Graph, output: NodeId, extent: Option<u64>) -> Self {
        let expect = Expect { extent };
        let mut below = reductions(graph, output);
        let mut shapes = Shapes::default();
        below.retain(|&node| joins_alike(graph, &mut shapes, node));
        below.extend(fused(graph, &mut shapes, output));
        let whole = analyse(graph, output, expect);
        let combined = matches!(&whole.verdict, Verdict::Canonical(c) if c.combine.is_some());
        if below.is_empty() {
            // Two elements make a reduction of one join, which nothing tells from an addition.
            let standing = match &whole.verdict {
                Verdict::Canonical(_) if combined || extent.is_some() => Standing::Canonical,
                Verdict::Departs(_) if extent.is_some() => Standing::Departs,
                Verdict::Unknown(_) => Standing::Unknown,
                Verdict::Canonical(_) | Verdict::Departs(_) => Standing::NoReduction,
            };
            return Self { standing, reductions: usize::from(combined), analysis: whole };
        }
        let count = below.len();
        let mut outermost = None;
        let mut unknown = None;
        for node in below {
            let analysis = if node == whole.root { whole.clone() } else { analyse(graph, node, expect) };
            match &analysis.verdict {
                Verdict::Canonical(_) => outermost = outermost.or(Some(analysis)),
                Verdict::Unknown(_) => unknown = unknown.or(Some(analysis)),
                Verdict::Departs(_) => {
                    return Self { standing: Standing::Departs, reductions: count, analysis };
                }
            }
        }
        let standing = if unknown.is_some() { Standing::Unknown } else { Standing::Canonical };
        let analysis = unknown.or(outermost).unwrap_or(whole);
        Self { standing, reductions: count, analysis }
    }
}

/// Whether two different leaves of the joins at `root` are computed alike.
fn joins_alike(graph: &Graph, shapes: &mut Shapes, root: NodeId) -> bool {
    // What is too large to unfold is too large to be anything else.
    let Ok(tree) = Tree::of(graph, root, u32::MAX) else { return true };
    let mut seen = FxHashMap::default();
    tree.leaves().into_iter().any(|leaf| {
        let node = tree.entries[leaf as usize].node;
        // Numbers are alike only as padding.
        !matches!(graph.node(node), Node::Constant { .. })
            && *seen.entry(shapes.of(graph, node)).or_insert(node) != node
    })
}

/// The multiply-adds at the top of chains whose products are alike.
fn fused(graph: &Graph, shapes: &mut Shapes, root: NodeId) -> Vec<NodeId> {
    let (mut seen, mut inside) = (FxHashSet::default(), FxHashSet::default());
    let (mut tops, mut stack) = (Vec::new(), vec![root]);
    while let Some(node) = stack.pop() {
        if !seen.insert(node) {
            continue;
        }
        if let Some(([a, b], addend)) = multiply_add(graph, node)
            && let Some(([c, d], _)) = multiply_add(graph, addend)
            && [a, b] != [c, d]
            && [a, b].map(|factor| shapes.of(graph, factor))
                == [c, d].map(|factor| shapes.of(graph, factor))
        {
            inside.insert(addend);
            tops.push(node);
        }
        stack.extend_from_slice(graph.args(node));
    }
    tops.retain(|top| !inside.contains(top));
    tops.sort_unstable_by(|a, b| b.cmp(a));
    tops
}

/// Factors and addend of a multiply-add.
fn multiply_add(graph: &Graph, node: NodeId) -> Option<([NodeId; 2], NodeId)> {
    let What::Operation(Op::Fma { .. }) = graph.label_of(node).map(|Label { what, .. }| what)?
    else {
        return None;
    };
    let &[a, b, addend] = graph.args(node) else { return None };
    Some(([a, b], addend))
}
