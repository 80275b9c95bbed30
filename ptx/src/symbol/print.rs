//! Trees as text.
//!
//! # Idea
//! An expression in one line, or an outline with one node a line. Whatever is too large is elided,
//! with the number of leaves that are not shown.
//! # Invariants
//! - **O1** The text has at most as many nodes as asked for; walking never recurses deeper than
//!   [`DEEPEST`], however deep the tree.

use std::fmt::Write as _;

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    graph::{Graph, Leaf, Meeting, Node, NodeId},
    label::{Label, What},
};
use crate::ir::{Class, FloatBinary, FloatMode, Op, Round, Scalar};

/// What a reader calls things.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    /// A buffer, by its number.
    pub buffer: &'a dyn Fn(u32) -> String,
    /// Source line of a step: `sum.py:12`.
    pub source: &'a dyn Fn(u32) -> Option<String>,
}

impl Names<'static> {
    /// Buffers are `b0`, `b1`, …; source lines are not known.
    pub fn plain() -> Self {
        Self { buffer: &|number| format!("b{number}"), source: &|_| None }
    }
}

/// Nesting that a text may have.
pub const DEEPEST: usize = 48;

impl Meeting {
    /// As a legend says it.
    pub fn describe(self) -> &'static str {
        match self {
            Meeting::Thread => "registers of one thread",
            Meeting::Warp => "lanes of one warp",
            Meeting::Cta => "warps, through shared memory",
            Meeting::Grid => "CTAs, through global memory",
        }
    }
}

/// `x[3]`: elements count from the start of the buffer.
pub fn element(leaf: Leaf, names: Names<'_>) -> String {
    if leaf.buffer == Leaf::UNKNOWN {
        return "?".into();
    }
    let (name, unit) = ((names.buffer)(leaf.buffer), u64::from(leaf.ty.bytes()).max(1));
    if leaf.offset.is_multiple_of(unit) {
        format!("{name}[{}]", leaf.offset / unit)
    } else {
        format!("{name}[byte {}]", leaf.offset)
    }
}

/// A number of a type, as a reader would write it.
pub fn number(bits: u64, ty: Scalar) -> String {
    let signed = || {
        let unused = 64 - ty.bits().clamp(1, 64);
        (((bits << unused) as i64) >> unused).to_string()
    };
    match (ty, ty.class()) {
        (Scalar::F64, _) => format!("{:?}", f64::from_bits(bits)),
        (Scalar::F32, _) => format!("{:?}", f32::from_bits(bits as u32)),
        (Scalar::F16, _) => format!("{:?}", half::f16::from_bits(bits as u16).to_f32()),
        (Scalar::BF16, _) => format!("{:?}", half::bf16::from_bits(bits as u16).to_f32()),
        (_, Class::Predicate) => if bits & 1 == 0 { "false" } else { "true" }.into(),
        (_, Class::Signed) => signed(),
        (_, Class::Unsigned | Class::Bits | Class::Float) => format!("{bits:#x}"),
    }
}

/// `+` for an addition rounded to nearest, and so on; other operations have no sign.
pub fn sign(label: &Label) -> Option<&'static str> {
    let What::Operation(Op::FloatBinary { op, mode, .. }) = &label.what else {
        return None;
    };
    let plain = FloatMode { round: mode.round, ..FloatMode::default() };
    if *mode != plain || !matches!(mode.round, None | Some(Round::Rn)) {
        return None;
    }
    match op {
        FloatBinary::Add => Some("+"),
        FloatBinary::Sub => Some("-"),
        FloatBinary::Mul => Some("*"),
        FloatBinary::Div(_) | FloatBinary::Min | FloatBinary::Max | FloatBinary::Copysign => None,
    }
}

/// Leaves under nodes, counted as a tree unfolds, at most `u64::MAX`.
#[derive(Debug, Default)]
pub struct Counts(FxHashMap<NodeId, u64>);

impl Counts {
    pub fn of(&mut self, graph: &Graph, root: NodeId) -> u64 {
        let mut stack = vec![root];
        while let Some(&node) = stack.last() {
            let before = stack.len();
            let args = graph.args(node);
            if !self.0.contains_key(&node) {
                stack.extend(args.iter().filter(|arg| !self.0.contains_key(arg)));
            }
            if stack.len() == before {
                let below = args.iter().map(|arg| self.0.get(arg).copied().unwrap_or(0));
                let leaf = u64::from(matches!(graph.node(node), Node::Leaf(_)));
                let total = below.fold(leaf, u64::saturating_add);
                self.0.entry(node).or_insert(total);
                stack.pop();
            }
        }
        self.0.get(&root).copied().unwrap_or(0)
    }
}

/// A node in one line, of at most `most` nodes: `(x[0] + x[1]) + … 2 leaves`.
pub fn expression(graph: &Graph, root: NodeId, names: Names<'_>, most: usize) -> String {
    let mut line = Line { graph, names, left: most.max(1), counts: Counts::default() };
    let mut out = String::new();
    line.write(&mut out, root, 0);
    out
}

struct Line<'a> {
    graph: &'a Graph,
    names: Names<'a>,
    left: usize,
    counts: Counts,
}

impl Line<'_> {
    fn write(&mut self, out: &mut String, node: NodeId, depth: usize) {
        let (label, args) = match self.graph.node(node) {
            Node::Leaf(leaf) => return out.push_str(&element(leaf, self.names)),
            Node::Constant { bits, ty } => return out.push_str(&number(bits, ty)),
            Node::Apply { label, args } => (self.graph.label(label), args),
        };
        if self.left == 0 || depth >= DEEPEST {
            let count = self.counts.of(self.graph, node);
            out.push_str(&elided(count));
            return;
        }
        self.left -= 1;
        if let (Some(operator), [a, b]) = (sign(label), args) {
            for (side, arg) in [a, b].into_iter().enumerate() {
                let nested = self.graph.label_of(*arg).and_then(sign).is_some();
                let parentheses = nested && self.left > 0;
                out.push_str(if side == 1 { operator } else { "" });
                out.push_str(if side == 1 { " " } else { "" });
                out.push_str(if parentheses { "(" } else { "" });
                self.write(out, *arg, depth + 1);
                out.push_str(if parentheses { ")" } else { "" });
                out.push_str(if side == 0 { " " } else { "" });
            }
            return;
        }
        out.push_str(&label.name());
        out.push('(');
        for (k, arg) in args.iter().enumerate() {
            out.push_str(if k == 0 { "" } else { ", " });
            self.write(out, *arg, depth + 1);
        }
        out.push(')');
    }
}

fn elided(leaves: u64) -> String {
    match leaves {
        1 => "… 1 leaf".into(),
        u64::MAX => "… more leaves than can be counted".into(),
        many => format!("… {many} leaves"),
    }
}

/// A tree with one node a line, of at most `most` lines (or one), opened level by level; what was
/// shown before is referred to.
///
/// ```text
/// add.rn.f32        lanes of one warp
/// ├─ add.rn.f32     registers of one thread
/// │  ├─ x[0]
/// │  └─ x[1]
/// └─ … 2 leaves
/// ```
pub fn outline(graph: &Graph, root: NodeId, names: Names<'_>, most: usize) -> String {
    let opened = opened(graph, root, most);
    let mut rows: Vec<(String, &str)> = Vec::new();
    let mut counts = Counts::default();
    let mut shown = FxHashMap::<NodeId, usize>::default();
    // Node, the indent of its own line, and that of its children's.
    let mut stack = vec![(root, String::new(), String::new())];
    while let Some((node, own, below)) = stack.pop() {
        let (text, met) = match graph.node(node) {
            Node::Leaf(leaf) => (element(leaf, names), ""),
            Node::Constant { bits, ty } => (number(bits, ty), ""),
            Node::Apply { label, args } => match shown.get(&node) {
                Some(line) => (format!("as in line {line}"), ""),
                None if !opened.contains(&node) => (elided(counts.of(graph, node)), ""),
                None => {
                    shown.insert(node, rows.len() + 1);
                    for (k, arg) in args.iter().enumerate().rev() {
                        let last = k + 1 == args.len();
                        let (tick, bar) =
                            if last { ("└─ ", "   ") } else { ("├─ ", "│  ") };
                        stack.push((*arg, format!("{below}{tick}"), format!("{below}{bar}")));
                    }
                    let met = graph.maker(node).map_or("", |maker| maker.meeting.describe());
                    (graph.label(label).name(), met)
                }
            },
        };
        rows.push((own + &text, met));
    }
    let told = rows.iter().filter(|(_, right)| !right.is_empty());
    let width = told.map(|(left, _)| left.chars().count()).max().unwrap_or(0);
    let mut out = String::new();
    for (left, right) in rows {
        let line = if right.is_empty() { left } else { format!("{left:width$}  {right}") };
        let _ = writeln!(out, "{line}");
    }
    out
}

/// Nodes whose operands are shown: level by level, while lines are left and nesting allows.
fn opened(graph: &Graph, root: NodeId, most: usize) -> FxHashSet<NodeId> {
    let (mut opened, mut lines) = (FxHashSet::default(), 1);
    let mut level = vec![root];
    for _ in 0..DEEPEST {
        let mut next = Vec::new();
        for node in level {
            let args = graph.args(node);
            if lines + args.len() > most || args.is_empty() || !opened.insert(node) {
                continue;
            }
            lines += args.len();
            next.extend_from_slice(args);
        }
        level = next;
    }
    opened
}
