//! Reductions below each node of a graph, found once.
//!
//! # Idea
//! What lies below a node is the union of what lies below its operands, and itself if it combines a
//! side that combines in the same way; such sides are parts of it and drop out. Nodes whose operands
//! agree share one list, which makes the lists cheap where many outputs share a reduction.
//! # Invariants
//! - **B1** A list is outermost first: a node is younger than everything below it.
//! - **B2** A list has at most [`MOST`] entries, the outermost.

use std::rc::Rc;

use bitstable_ptx::symbol::{Graph, NodeId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::combine::{chained, joined};
use crate::tree::shape::Shapes;

/// Most reductions that are listed below one node.
const MOST: usize = 64;

type List = Rc<[NodeId]>;

/// The lists of all nodes that were asked for, or lie below one.
#[derive(Default)]
pub struct Below(FxHashMap<NodeId, List>);

impl Below {
    /// What may be reductions at and below a node, youngest first.
    pub fn of(&mut self, graph: &Graph, shapes: &mut Shapes, root: NodeId) -> List {
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
                    let list = self.list(graph, shapes, node);
                    self.0.insert(node, list);
                }
            }
        }
        self.0.get(&root).cloned().unwrap_or_default()
    }

    fn list(&self, graph: &Graph, shapes: &mut Shapes, node: NodeId) -> List {
        let mut parts: SmallVec<[NodeId; 2]> = match joined(graph, node) {
            Some(sides) => sides.iter().filter(|(_, same)| *same).map(|(side, _)| *side).collect(),
            None => SmallVec::new(),
        };
        parts.extend(chained(graph, shapes, node));
        let args = graph.args(node);
        let lists = || args.iter().filter_map(|arg| self.0.get(arg));
        let longest = lists().max_by_key(|list| list.len());
        if let Some(longest) = longest
            && parts.is_empty()
            && lists().all(|list| list.is_empty() || Rc::ptr_eq(list, longest))
        {
            return Rc::clone(longest);
        }
        let mut all: Vec<NodeId> = lists().flat_map(|list| list.iter().copied()).collect();
        all.retain(|found| !parts.contains(found));
        if !parts.is_empty() {
            all.push(node);
        }
        all.sort_unstable_by(|a, b| b.cmp(a));
        all.dedup();
        all.truncate(MOST);
        Rc::from(all)
    }
}
