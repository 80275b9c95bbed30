//! Labels: which operation an instruction is, on one element.
//!
//! # Idea
//! The executor's labels name operations so that equal names give equal values on equal operands
//! ([`bitstable_ptx::symbol::Label`]). Here each gets a hash, and what the algebra may do with it.
//! # Invariants
//! - **L1** Approximate functions and matrix products are named with the architecture: hardware
//!   promises their bits on one architecture only.
//! - **L2** Only operations on integers, and min and max, are taken to associate.
//! # Held by
//! L1: [`per_target`]. L2: [`kind`].

use bitstable_ptx::{
    ir::{Class, FloatBinary, FloatMode, FloatUnary, Half, IntBinary, Op, Precision, Scalar},
    symbol,
};
use rustc_hash::FxHashMap;

use crate::term::{Body, Mixer, seed};

/// Of [`Labels`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId(pub u32);

/// What the algebra may do with an operation's operands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Keep their order, or sort the first two.
    Ordered,
    /// Gather them in a multiset.
    Associative,
    /// And count each once.
    Idempotent,
}

/// Whether ptxas may fuse it with a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rounding {
    Written,
    /// A sum or difference whose rounding is not written.
    OpenSum,
    /// A product whose rounding is not written.
    OpenProduct,
}

#[derive(Clone, Debug)]
pub struct Label {
    /// Of the first label of this name.
    pub id: LabelId,
    pub body: Body,
    pub kind: Kind,
    pub commutes: bool,
    /// Of a multiset operation, its number from 1; 0 otherwise.
    pub space: u16,
    pub rounding: Rounding,
    /// The integer that joins a multiset without moving its value.
    pub identity: Option<u64>,
}

/// The labels of one walk, or of all walks that share a graph.
#[derive(Debug, Default)]
pub struct Labels {
    all: Vec<(Label, String)>,
    ids: FxHashMap<(String, bool), LabelId>,
    by_op: FxHashMap<(Op, u32), LabelId>,
}

impl Labels {
    /// The label of an operation whose packed types were taken apart, on architecture `sm`.
    pub fn of(&mut self, op: &Op, result: Scalar, sm: u32) -> LabelId {
        let key = (op.clone(), sm);
        if let Some(id) = self.by_op.get(&key) {
            return *id;
        }
        let label = symbol::Label::operation(op, result);
        let mut name = label.meaning();
        if per_target(op) {
            name = format!("{name}@sm_{sm}");
        }
        let rounding = rounding(op);
        let kind = kind(op);
        let id = self.intern(name, kind, label.commutes(), rounding);
        self.all[id.0 as usize].0.identity = integer_identity(op, &label);
        self.by_op.insert(key, id);
        id
    }

    /// An operation that no one instruction is.
    pub fn named(&mut self, name: &str) -> LabelId {
        self.intern(name.into(), Kind::Ordered, false, Rounding::Written)
    }

    fn intern(&mut self, name: String, kind: Kind, commutes: bool, rounding: Rounding) -> LabelId {
        let key = (name, rounding == Rounding::Written);
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = LabelId(self.all.len() as u32);
        let body = Mixer::new(seed::LABEL).bytes(key.0.as_bytes()).finish();
        // Labels of one name are one operation, however their rounding is written.
        let first = self.all.iter().find(|(label, _)| label.body == body);
        let named = first.map_or(id, |(label, _)| label.id);
        let space = if kind == Kind::Ordered { 0 } else { named.0 as u16 + 1 };
        let identity = None;
        let label = Label { id: named, body, kind, commutes, space, rounding, identity };
        self.all.push((label, key.0.clone()));
        self.ids.insert(key, id);
        id
    }

    pub fn get(&self, id: LabelId) -> &Label {
        &self.all[id.0 as usize].0
    }

    pub fn name(&self, id: LabelId) -> &str {
        &self.all[id.0 as usize].1
    }
}

fn rounding(op: &Op) -> Rounding {
    if let Op::FloatBinary { op, mode: FloatMode { round: None, .. }, .. } = op {
        return match op {
            FloatBinary::Add | FloatBinary::Sub => Rounding::OpenSum,
            FloatBinary::Mul => Rounding::OpenProduct,
            FloatBinary::Div(_) | FloatBinary::Min | FloatBinary::Max | FloatBinary::Copysign => {
                Rounding::Written
            }
        };
    }
    Rounding::Written
}

fn integer_identity(op: &Op, label: &symbol::Label) -> Option<u64> {
    let Op::IntBinary { ty, .. } = op else { return None };
    let ones = u64::MAX >> (64 - ty.bits().clamp(1, 64));
    [0, 1, ones, ones >> 1, (ones >> 1) + 1]
        .into_iter()
        .find(|bits| label.identity(*bits).is_some())
}

fn kind(op: &Op) -> Kind {
    if let Op::IntBinary { op, ty, sat: false } = op
        && ty.lanes() == 1
    {
        return match op {
            IntBinary::Add | IntBinary::Xor | IntBinary::Mul(Half::Lo) => Kind::Associative,
            IntBinary::And | IntBinary::Or | IntBinary::Min | IntBinary::Max => Kind::Idempotent,
            IntBinary::Mul(Half::Hi | Half::Wide)
            | IntBinary::Mul24(_)
            | IntBinary::Sub
            | IntBinary::Div
            | IntBinary::Rem
            | IntBinary::Shl
            | IntBinary::Shr => Kind::Ordered,
        };
    }
    if let Op::FloatBinary { op: FloatBinary::Min | FloatBinary::Max, mode, .. } = op
        && !mode.abs
        && !mode.xorsign
    {
        // A flushed operand is another value, so one alone is not what it is joined with itself.
        return if mode.ftz { Kind::Associative } else { Kind::Idempotent };
    }
    Kind::Ordered
}

/// Operations whose bits are promised on one architecture only.
fn per_target(op: &Op) -> bool {
    if let Op::FloatBinary { op: FloatBinary::Div(precision), .. } = op {
        return *precision != Precision::Rounded;
    }
    let Op::FloatUnary { op, .. } = op else { return matches!(op, Op::Mma { .. }) };
    match op {
        FloatUnary::Abs | FloatUnary::Neg => false,
        FloatUnary::Sqrt(precision) | FloatUnary::Rcp(precision) => {
            *precision != Precision::Rounded
        }
        FloatUnary::Rsqrt
        | FloatUnary::Sin
        | FloatUnary::Cos
        | FloatUnary::Lg2
        | FloatUnary::Ex2
        | FloatUnary::Tanh => true,
    }
}

/// Integer types of one width add, and multiply to their own width, alike.
pub fn unsigned(op: &Op) -> Op {
    let mut op = op.clone();
    if let Op::IntBinary { op, ty, sat: false } = &mut op
        && ty.lanes() == 1
        && matches!(ty.class(), Class::Signed | Class::Unsigned | Class::Bits)
    {
        let same = match op {
            IntBinary::Add
            | IntBinary::Sub
            | IntBinary::Mul(Half::Lo)
            | IntBinary::And
            | IntBinary::Or
            | IntBinary::Xor
            | IntBinary::Shl => true,
            IntBinary::Mul(Half::Hi | Half::Wide)
            | IntBinary::Mul24(_)
            | IntBinary::Div
            | IntBinary::Rem
            | IntBinary::Min
            | IntBinary::Max
            | IntBinary::Shr => false,
        };
        if same {
            *ty = match ty.bits() {
                8 => Scalar::U8,
                16 => Scalar::U16,
                32 => Scalar::U32,
                _ => Scalar::U64,
            };
        }
    }
    op
}
