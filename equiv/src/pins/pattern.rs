//! What a combine does with its two parts, whichever they are.
//!
//! # Idea
//! The term of a combine's result, in which the lower part of operand `k` is called `Lk` and the upper
//! `Rk`: a hash of it names the pattern. Operands that commute are sorted by these hashes, as the names
//! of the parts themselves, by which the graph sorts them, differ from combine to combine.
//! # Invariants
//! - **O1** Equal names are equal functions of `L` and `R`.
//! - **O2** A term that is too large to be one combine is not told: reading ends.
//! # Held by
//! O1: [`Reader::name`], which hashes the whole term. O2: [`Reader::parts`], which goes first.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{marks::May, tree::Part};
use crate::{
    graph::{Graph, Node},
    label::{LabelId, Labels},
    term::{Atom, Body, Mixer},
};

/// Names in the terms of one combine; and how deep they nest.
const MOST: usize = 20_000;
const DEEPEST: u32 = 200;
/// Operations that are written out.
const MOST_WORDS: usize = 60;
const SEED: u64 = 0x7061_7474;

/// Reads the terms of one combine.
pub(super) struct Reader<'a> {
    graph: &'a Graph,
    labels: &'a Labels,
    parts: &'a FxHashMap<Body, Part>,
    /// Where the lower and the upper part begin.
    sides: [u64; 2],
    names: FxHashMap<Body, Body>,
}

impl<'a> Reader<'a> {
    pub fn new(graph: &'a Graph, labels: &'a Labels, parts: &'a FxHashMap<Body, Part>) -> Self {
        Self { graph, labels, parts, sides: [0, 0], names: FxHashMap::default() }
    }

    /// The two parts are known.
    pub fn sides(&mut self, low: u64, high: u64) {
        self.sides = [low, high];
    }

    /// All parts in some terms; an error is for people.
    pub fn parts(&self, bodies: &[Body]) -> Result<Vec<Part>, String> {
        let mut open: Vec<(Body, u32)> = bodies.iter().map(|body| (*body, 0)).collect();
        let mut known: FxHashSet<Body> = FxHashSet::default();
        let mut found = Vec::new();
        while let Some((body, depth)) = open.pop() {
            if !known.insert(body) {
                continue;
            }
            if known.len() > MOST || depth > DEEPEST {
                return Err("more than one combine between two marks".into());
            }
            if body == Atom::UNDEFINED.body {
                return Err("a combine takes in a value that is not known".into());
            }
            match self.parts.get(&body) {
                Some(part) => found.push(*part),
                None => open.extend(self.operands(body)?.into_iter().map(|b| (b, depth + 1))),
            }
        }
        Ok(found)
    }

    fn node(&self, body: Body) -> Result<&'a Node, String> {
        self.graph.get(body).ok_or_else(|| "a combine takes in a value without a term".into())
    }

    fn operands(&self, body: Body) -> Result<Vec<Body>, String> {
        Ok(match self.node(body)? {
            Node::Apply { args, .. } => args.to_vec(),
            Node::Join { label, parts } => self.graph.members(*label, parts),
            Node::Member { of, .. } | Node::Flipped(of) | Node::Slice(of, ..) => vec![*of],
            Node::Select { predicate, arms } => vec![*predicate, arms[0], arms[1]],
            Node::Pack { parts, .. } => parts.to_vec(),
            Node::Other { args, .. } => args.clone(),
            Node::Linear { terms, .. } => terms.iter().flat_map(|(m, _)| m.iter().copied()).collect(),
            Node::Offset { base, .. } => vec![*base],
            Node::Constant { .. } | Node::Symbol(_) | Node::Load(..) => Vec::new(),
        })
    }

    /// The name of a term in which parts are `L` and `R`.
    pub fn name(&mut self, body: Body) -> Result<Body, String> {
        if let Some(name) = self.names.get(&body) {
            return Ok(*name);
        }
        let name = self.fresh(body)?;
        self.names.insert(body, name);
        Ok(name)
    }

    fn fresh(&mut self, body: Body) -> Result<Body, String> {
        let mixer = |kind: u64| Mixer::new(SEED).word(kind);
        if let Some(part) = self.parts.get(&body) {
            let side = u64::from(part.from == self.sides[1]);
            return Ok(mixer(1).word(side).word(part.operand as u64).finish());
        }
        let mut args = Vec::new();
        for operand in self.operands(body)? {
            args.push(self.name(operand)?);
        }
        let head = match self.node(body)? {
            Node::Constant { .. } | Node::Symbol(_) | Node::Load(..) => mixer(2).body(body),
            Node::Apply { label, .. } => {
                if args.len() >= 2 && self.commutes(*label) {
                    args[..2].sort_unstable();
                }
                mixer(3).word(u64::from(label.0))
            }
            Node::Join { label, .. } => {
                args.sort_unstable();
                mixer(4).word(u64::from(label.0))
            }
            // A member is what it is a member by; sets of one operation are compared as sets.
            Node::Member { label, .. } => mixer(5).word(u64::from(label.0)),
            Node::Select { .. } => mixer(6),
            Node::Flipped(_) => mixer(7),
            Node::Slice(_, offset, bytes) => mixer(8).word(*offset as u64).word(u64::from(*bytes)),
            Node::Pack { bytes, .. } => mixer(9).word(u64::from(*bytes)),
            Node::Other { what, .. } => mixer(10).bytes(what.as_bytes()),
            Node::Linear { terms, constant } => {
                let shape = terms.iter().map(|(m, n)| (m.len() as u64) << 32 ^ *n as u64);
                shape.fold(mixer(11).word(*constant as u64), Mixer::word)
            }
            Node::Offset { constant, .. } => mixer(12).word(*constant as u64),
        };
        let head = head.word(args.len() as u64);
        Ok(args.iter().fold(head, |mixer, arg| mixer.body(*arg)).finish())
    }

    /// As the operation that a label was made from does.
    fn commutes(&self, label: LabelId) -> bool {
        let derived = ["minus ", "fusible ", OPEN].iter();
        self.labels.get(label).commutes
            || derived.into_iter().any(|before| self.labels.name(label).starts_with(before))
    }

    /// Whether nothing in a combine's terms is rounded otherwise than its function says.
    pub fn rounds_once(&self, bodies: &[Body], may: May) -> Result<(), String> {
        if may == May::Anything {
            return Ok(());
        }
        let (mut open, mut known) = (bodies.to_vec(), FxHashSet::default());
        while let Some(body) = open.pop() {
            if !known.insert(body) || self.parts.contains_key(&body) {
                continue;
            }
            if let Node::Apply { label, args } = self.node(body)? {
                let name = self.labels.name(*label);
                if let Some(plain) = name.strip_prefix(OPEN) {
                    return Err(format!(
                        "a combine has a `{plain}` whose rounding is not written: ptxas may \
                         contract it"
                    ));
                }
                if may == May::Nothing && name.contains("fma") && !self.times_one(args) {
                    return Err(format!(
                        "a combine has a `{name}` where its function multiplies and adds: the \
                         product is contracted into the addition"
                    ));
                }
                if let Some(loose) = [".ftz", ".approx", ".full"].iter().find(|s| name.contains(**s))
                {
                    return Err(format!("a combine has a `{name}`: `{loose}` is not IEEE"));
                }
            }
            open.extend(self.operands(body)?);
        }
        Ok(())
    }

    /// Whether a factor of a fused multiply-add is one: the product is exact.
    fn times_one(&self, args: &[Body]) -> bool {
        const ONES: [u64; 4] = [0x3f80_0000, 0x3ff0_0000_0000_0000, 0x3c00, 0x3f80];
        args.iter().take(2).any(|arg| {
            matches!(self.graph.get(*arg), Some(Node::Constant { bits, .. }) if ONES.contains(bits))
        })
    }

    /// The terms in words.
    pub fn words(&self, bodies: &[Body]) -> Vec<String> {
        let write = |body: &Body| {
            let (mut out, mut left) = (String::new(), MOST_WORDS);
            self.write(&mut out, *body, &mut left);
            out
        };
        bodies.iter().map(write).collect()
    }

    fn write(&self, out: &mut String, body: Body, left: &mut usize) {
        if let Some(part) = self.parts.get(&body) {
            let side = if part.from == self.sides[1] { 'R' } else { 'L' };
            out.push_str(&format!("{side}{}", part.operand));
            return;
        }
        let Some(node) = self.graph.get(body) else { return out.push('?') };
        let name = match node {
            Node::Constant { bits, bytes: 4 } => {
                out.push_str(&format!("{:?}:{bits:#x}", f32::from_bits(*bits as u32)));
                return;
            }
            Node::Constant { bits, .. } => return out.push_str(&format!("{bits:#x}")),
            Node::Symbol(name) => return out.push_str(name),
            Node::Load(..) => return out.push_str("load"),
            Node::Member { of, .. } => return self.write(out, *of, left),
            Node::Apply { label, .. } | Node::Join { label, .. } => self.labels.name(*label),
            Node::Flipped(_) => "-",
            Node::Slice(..) => "bytes",
            Node::Select { .. } => "select",
            Node::Pack { .. } => "pack",
            Node::Linear { .. } | Node::Offset { .. } => "sum",
            Node::Other { what, .. } => what,
        };
        out.push_str(name);
        if *left == 0 {
            return out.push_str("(…)");
        }
        *left -= 1;
        let mut args = self.operands(body).unwrap_or_default();
        let commutes = match node {
            Node::Join { .. } => args.len(),
            Node::Apply { label, .. } if self.commutes(*label) => args.len().min(2),
            _ => 0,
        };
        let side = |body: &Body| self.parts.get(body).map(|part| (part.from, part.operand));
        args[..commutes].sort_by_key(side);
        out.push('(');
        for (at, arg) in args.into_iter().enumerate() {
            out.push_str(if at > 0 { ", " } else { "" });
            self.write(out, arg, left);
        }
        out.push(')');
    }
}

/// What the walk puts before the name of an operation whose rounding is not written.
pub(crate) const OPEN: &str = "open ";
