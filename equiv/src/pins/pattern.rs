//! What a combine does with its two parts, whichever they are.
//!
//! # Idea
//! The term of a combine's result, in which the lower part of operand `k` is called `Lk` and the upper
//! `Rk`: a hash of it names the pattern. Operands that commute are sorted by these hashes, as the names
//! of the parts themselves, by which the graph sorts them, differ from combine to combine. What LLVM
//! spells in several ways has one spelling here: comparisons and their complements, and bits that are
//! cleared above an operand that is narrower than its register.
//! # Invariants
//! - **O1** Equal names are equal functions of `L` and `R`.
//! - **O2** A term that is too large to be one combine is not told: reading ends.
//! # Held by
//! O1: [`Reader::name`], which hashes the whole term. O2: [`Reader::parts`], which goes first.

use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::{SmallVec, smallvec};

use super::marks::May;
use crate::{
    graph::{Graph, Node},
    label::{LabelId, Labels},
    term::{Atom, Body, Mixer},
    walk::pins::Part,
};

/// Names in the terms of one combine; and how deep they nest.
const MOST: usize = 20_000;
const DEEPEST: u32 = 200;
/// Operations that are written out.
const MOST_WORDS: usize = 60;
const SEED: u64 = 0x7061_7474;

fn mixer(kind: u64) -> Mixer {
    Mixer::new(SEED).word(kind)
}

/// A comparison as one of `lt`, `le`, `eq`, `equ`, `nan`, of its operands or of them swapped, or the
/// complement of that.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Comparison {
    base: &'static str,
    swapped: bool,
    flipped: bool,
}

/// The one spelling of PTX's comparison `name`; numbers that are not floats have no order but one.
fn spelling(name: &str, float: bool) -> Option<Comparison> {
    let (base, swapped, flipped) = match (name, float) {
        ("lt" | "lo", _) => ("lt", false, false),
        ("gt" | "hi", _) => ("lt", true, false),
        ("le", true) => ("le", false, false),
        ("ge", true) => ("le", true, false),
        ("le" | "ls", false) => ("lt", true, true),
        ("ge" | "hs", false) => ("lt", false, true),
        ("ltu", true) => ("le", true, true),
        ("gtu", true) => ("le", false, true),
        ("leu", true) => ("lt", true, true),
        ("geu", true) => ("lt", false, true),
        ("eq", _) => ("eq", false, false),
        ("ne", false) | ("neu", true) => ("eq", false, true),
        ("equ", true) => ("equ", false, false),
        ("ne", true) => ("equ", false, true),
        ("nan", true) => ("nan", false, false),
        ("num", true) => ("nan", false, true),
        _ => return None,
    };
    Some(Comparison { base, swapped, flipped })
}

type Operands = SmallVec<[Body; 4]>;

/// A set of names, of which there are few.
#[derive(Default)]
struct Known {
    few: SmallVec<[Body; 24]>,
    more: FxHashSet<Body>,
}

impl Known {
    /// Whether it was new.
    fn insert(&mut self, body: Body) -> bool {
        if self.few.contains(&body) {
            return false;
        }
        if self.few.len() < self.few.inline_size() {
            self.few.push(body);
            return true;
        }
        self.more.insert(body)
    }

    fn count(&self) -> usize {
        self.few.len() + self.more.len()
    }
}

/// Reads the terms of one combine.
pub(crate) struct Reader<'a> {
    graph: &'a Graph,
    labels: &'a Labels,
    parts: &'a FxHashMap<Body, Part>,
    /// Where the lower and the upper part begin.
    sides: [u64; 2],
    /// Names, and whether the complement or negative of what is named is meant.
    names: FxHashMap<Body, (Body, bool)>,
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
        let mut open: SmallVec<[(Body, u32); 32]> = bodies.iter().map(|body| (*body, 0)).collect();
        let mut known = Known::default();
        let mut found = Vec::new();
        while let Some((body, depth)) = open.pop() {
            if !known.insert(body) {
                continue;
            }
            if known.count() > MOST || depth > DEEPEST {
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

    fn operands(&self, body: Body) -> Result<Operands, String> {
        Ok(match self.node(body)? {
            Node::Apply { args, .. } => args.as_slice().into(),
            Node::Join { label, parts } => self.graph.members(*label, parts).into(),
            Node::Member { of, .. } | Node::Flipped(of) | Node::Slice(of, ..) => smallvec![*of],
            Node::Select { predicate, arms } => smallvec![*predicate, arms[0], arms[1]],
            Node::Pack { parts, .. } => parts.as_slice().into(),
            Node::Other { args, .. } => args.as_slice().into(),
            Node::Linear { terms, .. } => {
                terms.iter().flat_map(|(m, _)| m.iter().copied()).collect()
            }
            Node::Offset { base, .. } => smallvec![*base],
            Node::Constant { .. } | Node::Symbol(_) | Node::Load(..) => Operands::new(),
        })
    }

    /// The name of a term in which parts are `L` and `R`.
    pub fn name(&mut self, body: Body) -> Result<Body, String> {
        let (name, flipped) = self.signed(body)?;
        Ok(if flipped { mixer(7).body(name).finish() } else { name })
    }

    fn signed(&mut self, body: Body) -> Result<(Body, bool), String> {
        if let Some(name) = self.names.get(&body) {
            return Ok(*name);
        }
        let name = match self.node(body) {
            Ok(Node::Flipped(of)) if !self.parts.contains_key(&body) => {
                let (name, flipped) = self.signed(*of)?;
                (name, !flipped)
            }
            Ok(Node::Apply { label, args }) if args.len() == 2 => match self.comparison(*label) {
                Some(comparison) => self.compared(comparison, args)?,
                None => (self.fresh(body)?, false),
            },
            Ok(_) | Err(_) => match self.cleared(body).or_else(|| self.low(body)) {
                Some(inside) => self.signed(inside)?,
                None => (self.fresh(body)?, false),
            },
        };
        self.names.insert(body, name);
        Ok(name)
    }

    /// A comparison in its one spelling.
    fn comparison(&self, label: LabelId) -> Option<(Comparison, &'a str)> {
        let (compare, ty) = self.labels.name(label).strip_prefix("setp.")?.split_once('.')?;
        let float = ty
            .rsplit('.')
            .next()
            .is_some_and(|ty| ty.starts_with(['f', 'e']) || ty.starts_with("bf"));
        Some((spelling(compare, float)?, ty))
    }

    fn compared(
        &mut self,
        (comparison, ty): (Comparison, &str),
        args: &[Body],
    ) -> Result<(Body, bool), String> {
        let Comparison { base, swapped, flipped } = comparison;
        let mut names = [self.name(args[0])?, self.name(args[1])?];
        match base {
            "lt" | "le" => names.rotate_left(usize::from(swapped)),
            _ => names.sort_unstable(),
        }
        let head = mixer(13).bytes(base.as_bytes()).bytes(ty.as_bytes());
        Ok((head.body(names[0]).body(names[1]).finish(), flipped))
    }

    /// What is left where bits are cleared that are none of a narrow part's.
    fn cleared(&self, body: Body) -> Option<Body> {
        let Ok(Node::Join { label, parts }) = self.node(body) else { return None };
        if !self.labels.name(*label).starts_with("and.") {
            return None;
        }
        let members = self.graph.members(*label, parts).into_iter().map(|member| {
            match self.graph.get(member) {
                Some(Node::Member { of, .. }) => *of,
                Some(_) | None => member,
            }
        });
        let [a, b] = members.collect::<Vec<_>>()[..] else { return None };
        let keeps = |mask: Body, of: Body| {
            let Some(Node::Constant { bits, .. }) = self.graph.get(mask) else { return false };
            let Some(width) = self.narrow(of) else { return false };
            let own = (1u64 << width) - 1;
            bits & own == own
        };
        if keeps(a, b) { Some(b) } else { keeps(b, a).then_some(a) }
    }

    /// The narrow part whose byte this is.
    fn low(&self, body: Body) -> Option<Body> {
        let Ok(Node::Slice(of, from, _)) = self.node(body) else { return None };
        // The low 16 bits are where it begins; above them is the size of the whole.
        if from & 0xffff != 0 {
            return None;
        }
        let of = self.cleared(*of).unwrap_or(*of);
        self.narrow(of)?;
        match self.graph.get(of) {
            Some(Node::Pack { parts, .. }) => parts.first().copied(),
            Some(_) | None => Some(of),
        }
    }

    /// Whether it is zero: a number, or what is above a narrow part.
    fn vacant(&self, body: Body) -> bool {
        match self.node(body) {
            Ok(Node::Constant { bits, .. }) => *bits == 0,
            Ok(Node::Slice(of, from, _)) => {
                let of = self.cleared(*of).unwrap_or(*of);
                from & 0xffff != 0 && self.narrow(of).is_some()
            }
            Ok(_) | Err(_) => false,
        }
    }

    /// Bits of a narrow part with zeros above it.
    fn narrow(&self, body: Body) -> Option<u32> {
        if let Some(part) = self.parts.get(&body) {
            return (part.narrow > 0).then_some(part.narrow);
        }
        let Some(Node::Pack { parts, .. }) = self.graph.get(body) else { return None };
        let (first, rest) = parts.split_first()?;
        let first = self.low(*first).unwrap_or(*first);
        if rest.iter().all(|body| self.vacant(*body)) { self.narrow(first) } else { None }
    }

    /// The part that a value is, whatever was cleared above it.
    pub fn held(&self, mut body: Body) -> Option<Part> {
        loop {
            if let Some(part) = self.parts.get(&body) {
                return Some(*part);
            }
            body = match self.graph.get(body)? {
                Node::Slice(..) => self.low(body)?,
                Node::Pack { parts, .. } if self.narrow(body).is_some() => *parts.first()?,
                Node::Join { .. } => self.cleared(body)?,
                Node::Constant { .. }
                | Node::Symbol(_)
                | Node::Linear { .. }
                | Node::Offset { .. }
                | Node::Load(..)
                | Node::Flipped(_)
                | Node::Apply { .. }
                | Node::Member { .. }
                | Node::Select { .. }
                | Node::Pack { .. }
                | Node::Other { .. } => return None,
            };
        }
    }

    fn fresh(&mut self, body: Body) -> Result<Body, String> {
        if let Some(part) = self.parts.get(&body) {
            let side = u64::from(part.from == self.sides[1]);
            return Ok(mixer(1).word(side).word(part.operand as u64).finish());
        }
        if self.vacant(body) {
            return Ok(mixer(14).finish());
        }
        let mut args = Operands::new();
        let mut operands = self.operands(body)?;
        if let Node::Select { predicate, .. } = self.node(body)? {
            // The complement of a condition chooses the other way round.
            let (condition, flipped) = self.signed(*predicate)?;
            args.push(condition);
            operands.remove(0);
            operands.rotate_left(usize::from(flipped));
        }
        for operand in operands {
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
                if let Some(loose) =
                    [".ftz", ".approx", ".full"].iter().find(|s| name.contains(**s))
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
        let commutes = if let Node::Join { .. } = node {
            args.len()
        } else if matches!(node, Node::Apply { label, .. } if self.commutes(*label)) {
            args.len().min(2)
        } else {
            0
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
