//! What an operation node does: its opcode and modifiers, on one element.
//!
//! # Idea
//! A label with its ordered operands says the whole value. Packed operations become one label an
//! element; modifiers without effect on the value are left out.
//! # Invariants
//! - **L1** Two labels of one [`Label::meaning`] give equal values on equal operands.
//! - **L2** Names do not depend on the run or the platform: digests are made of them.
//! # Held by
//! L1: [`Label::operation`], which clears hints, and `mnemonic.rs`, which spells every modifier.

use rustc_hash::FxHashMap;

use super::mnemonic;
use crate::ir::{FloatBinary, FloatMode, Half, IntBinary, Op, Ordering, Round, Scalar};

/// Of the graph's label table.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LabelId(u32);

/// One byte of a value that was put together from others.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Part {
    /// Byte `byte` of operand `arg`.
    Of {
        arg: u8,
        byte: u8,
    },
    Number(u8),
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum What {
    /// The instruction on one element, operands in its order.
    Operation(Op),
    /// The complement that `setp p|q` writes second.
    Complement(Op),
    /// Operand 1 where predicate operand 0 holds, else operand 2.
    Select,
    /// Bytes gathered from the operands, lowest first: a value no whole node stands for.
    Bits(Box<[Part]>),
    /// Output `.1` of an instruction of several destinations.
    Output(Op, u8),
}

/// An operation and the type of its result.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Label {
    pub what: What,
    pub result: Scalar,
}

/// How a number joins a reduction without moving its value.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Identity {
    /// For every other operand but a signalling NaN.
    Exact,
    /// It may move the sign of a zero total.
    UpToZeroSign,
}

impl Label {
    /// Of an instruction whose packed types were taken apart.
    pub fn operation(op: &Op, result: Scalar) -> Self {
        let mut op = op.clone();
        if let Op::Atom { hints, result, ordering, .. } = &mut op {
            hints.clear();
            *result = true;
            *ordering = Ordering::Weak;
        }
        Self { what: What::Operation(op), result }
    }

    pub fn select(ty: Scalar) -> Self {
        Self { what: What::Select, result: ty }
    }

    /// As written: `add.f32` where the text names no rounding.
    pub fn name(&self) -> String {
        mnemonic::label(self)
    }

    /// As executed: unwritten roundings are to nearest even. Equal for labels of one value.
    pub fn meaning(&self) -> String {
        let mut label = self.clone();
        if let What::Operation(Op::FloatBinary { op, mode, .. }) = &mut label.what
            && rounds(*op)
        {
            mode.round.get_or_insert(Round::Rn);
        }
        mnemonic::label(&label)
    }

    /// ptxas may fuse it with a neighbour: an addition or product whose rounding is not written.
    pub fn contractible(&self) -> bool {
        matches!(&self.what, What::Operation(Op::FloatBinary { op, mode, .. })
            if rounds(*op) && mode.round.is_none())
    }

    /// The first two operands may change places; the payload of a NaN may move.
    pub fn commutes(&self) -> bool {
        let What::Operation(op) = &self.what else {
            return false;
        };
        if let Op::FloatBinary { op, .. } = op {
            return matches!(
                op,
                FloatBinary::Add | FloatBinary::Mul | FloatBinary::Min | FloatBinary::Max
            );
        }
        if let Op::IntBinary { op, .. } = op {
            return !matches!(
                op,
                IntBinary::Sub | IntBinary::Div | IntBinary::Rem | IntBinary::Shl | IntBinary::Shr
            );
        }
        matches!(op, Op::Fma { .. } | Op::Mad { .. } | Op::Mad24 { .. })
    }

    /// Whether number `bits` leaves the other operand alone.
    pub fn identity(&self, bits: u64) -> Option<Identity> {
        let What::Operation(op) = &self.what else {
            return None;
        };
        if let Op::FloatBinary { op, ty, mode } = op {
            return float_identity(*op, *ty, *mode, bits);
        }
        if let Op::IntBinary { op, ty, sat: false } = op {
            return (int_identity(*op, *ty)? == bits).then_some(Identity::Exact);
        }
        None
    }
}

fn rounds(op: FloatBinary) -> bool {
    matches!(op, FloatBinary::Add | FloatBinary::Sub | FloatBinary::Mul)
}

fn float_identity(op: FloatBinary, ty: Scalar, mode: FloatMode, bits: u64) -> Option<Identity> {
    let plain = FloatMode { round: mode.round, ftz: mode.ftz, nan: mode.nan, ..Default::default() };
    if mode != plain || !matches!(mode.round, None | Some(Round::Rn)) {
        return None;
    }
    let Format { sign, one, infinity } = format(ty)?;
    match op {
        FloatBinary::Add if bits == sign => Some(Identity::Exact),
        FloatBinary::Add if bits == 0 => Some(Identity::UpToZeroSign),
        FloatBinary::Mul if bits == one => Some(Identity::Exact),
        FloatBinary::Min if bits == infinity => Some(Identity::Exact),
        FloatBinary::Max if bits == infinity | sign => Some(Identity::Exact),
        FloatBinary::Add
        | FloatBinary::Sub
        | FloatBinary::Mul
        | FloatBinary::Div(_)
        | FloatBinary::Min
        | FloatBinary::Max
        | FloatBinary::Copysign => None,
    }
}

/// Bits of numbers that matter to rewrites and identities.
pub struct Format {
    /// Minus zero.
    pub sign: u64,
    pub one: u64,
    pub infinity: u64,
}

/// Those of a type that has them.
pub fn format(ty: Scalar) -> Option<Format> {
    let (sign, one, infinity) = if ty == Scalar::F64 {
        (1 << 63, 1.0f64.to_bits(), f64::INFINITY.to_bits())
    } else if ty == Scalar::F32 {
        (1 << 31, u64::from(1.0f32.to_bits()), u64::from(f32::INFINITY.to_bits()))
    } else if ty == Scalar::F16 {
        (1 << 15, u64::from(half::f16::ONE.to_bits()), u64::from(half::f16::INFINITY.to_bits()))
    } else if ty == Scalar::BF16 {
        (1 << 15, u64::from(half::bf16::ONE.to_bits()), u64::from(half::bf16::INFINITY.to_bits()))
    } else {
        return None;
    };
    Some(Format { sign, one, infinity })
}

fn int_identity(op: IntBinary, ty: Scalar) -> Option<u64> {
    let width = ty.bits();
    if ty.lanes() != 1 || width > 64 {
        return None;
    }
    let ones = u64::MAX >> (64 - width);
    let signed = ty.class() == crate::ir::Class::Signed;
    match op {
        IntBinary::Add | IntBinary::Or | IntBinary::Xor => Some(0),
        IntBinary::Mul(Half::Lo) => Some(1),
        IntBinary::And => Some(ones),
        IntBinary::Min => Some(if signed { ones >> 1 } else { ones }),
        IntBinary::Max => Some(if signed { (ones >> 1) + 1 } else { 0 }),
        IntBinary::Sub
        | IntBinary::Mul(Half::Hi | Half::Wide)
        | IntBinary::Mul24(_)
        | IntBinary::Div
        | IntBinary::Rem
        | IntBinary::Shl
        | IntBinary::Shr => None,
    }
}

/// Labels by id and ids by label.
#[derive(Debug, Default)]
pub(crate) struct Labels {
    all: Vec<Label>,
    ids: FxHashMap<Label, LabelId>,
    /// Of each label, the first label of the same meaning.
    first: Vec<LabelId>,
    meanings: FxHashMap<String, LabelId>,
}

impl Labels {
    pub fn intern(&mut self, label: Label) -> LabelId {
        if let Some(id) = self.ids.get(&label) {
            return *id;
        }
        let id = LabelId(self.all.len() as u32);
        self.first.push(*self.meanings.entry(label.meaning()).or_insert(id));
        self.all.push(label.clone());
        self.ids.insert(label, id);
        id
    }

    pub fn get(&self, id: LabelId) -> &Label {
        &self.all[id.0 as usize]
    }

    /// The first label that means the same.
    pub fn first_of_meaning(&self, id: LabelId) -> LabelId {
        self.first[id.0 as usize]
    }

    pub fn same_meaning(&self, a: LabelId, b: LabelId) -> bool {
        self.first[a.0 as usize] == self.first[b.0 as usize]
    }
}
