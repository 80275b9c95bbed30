//! Instructions that work on each lane alone.
//!
//! # Idea
//! Where no source holds a piece, nothing is done but to clear the destination. Otherwise a lane's
//! values are moved (`moves.rs`), taken apart into elements (packed operations), chosen (`selp`), or
//! they become operands of one node, whatever the instruction is.
//! # Invariants
//! - **N1** A destination of an instruction without a rule of its own is a node over *all* sources.
//! - **N2** A choice by a number is a move; a choice by a symbolic predicate keeps both arms.

use smallvec::SmallVec;

use super::{
    At, Limit, NodeId, Symbols,
    graph::Graph,
    label::{Label, What},
    moves::{Moved, moved},
    piece::{Piece, Value, WIDEST},
    rewrite::plain_cvt,
    shadow::{Shadow, halves, width},
};
use crate::{
    exec::{
        lane::Operands,
        registers::{Mask, Registers, Slot, lanes},
    },
    ir::{Class, Op, Scalar, Signature, signature::Role, signature::signature},
    report::Site,
};

type Values = SmallVec<[Value; 4]>;

impl Symbols {
    /// An instruction that works on each lane alone, about to run on the lanes of `mask`.
    pub fn lane(
        &mut self,
        at: At,
        op: &Op,
        operands: &Operands,
        registers: &Registers,
        mask: Mask,
    ) -> Result<(), Limit> {
        let (graph, shadow) = self.parts(at);
        let (reads_carry, writes_carry) = carries(op);
        let mut live = operands.src.iter().fold(0, |live, slot| live | shadow.live(*slot));
        if reads_carry {
            live |= lanes(mask).filter(|lane| !shadow.carry[*lane].is_number()).fold(0, bit);
        }
        live &= mask;
        let dst: SmallVec<[Slot; 4]> = operands.dst.iter().flat_map(|slot| halves(*slot)).collect();
        dst.iter().for_each(|slot| shadow.clear(*slot, mask & !live));
        if writes_carry {
            lanes(mask & !live).for_each(|lane| shadow.carry[lane] = Piece::NUMBER);
        }
        if live == 0 {
            return Ok(());
        }
        let src: SmallVec<[Slot; 4]> = operands.src.iter().flat_map(|slot| halves(*slot)).collect();
        let types = Types::of(op);
        for lane in lanes(live) {
            let mut values: Values =
                src.iter().map(|slot| shadow.value(registers, *slot, lane)).collect();
            if reads_carry {
                values.push(carry_value(shadow, registers, lane));
            }
            let declared = u32::from(operands.declared);
            let step = Step { op, types: &types, dst: &dst, declared, site: at.site(lane) };
            let out = step.run(graph, &values)?;
            if writes_carry {
                shadow.carry[lane] = step.carry(graph, &values)?;
            }
            for (slot, pieces) in dst.iter().zip(&out) {
                shadow.write(*slot, lane, pieces);
            }
        }
        Ok(())
    }
}

fn bit(mask: Mask, lane: usize) -> Mask {
    mask | 1 << lane
}

fn carry_value(shadow: &Shadow, registers: &Registers, lane: usize) -> Value {
    let mut value = Value::number(u64::from(registers.carry >> lane & 1));
    value.pieces[0] = shadow.carry[lane];
    value
}

/// Whether the condition code is read, and written.
fn carries(op: &Op) -> (bool, bool) {
    if let Op::AddCarry { carry_in, carry_out, .. }
    | Op::SubCarry { carry_in, carry_out, .. }
    | Op::MadCarry { carry_in, carry_out, .. } = op
    {
        return (*carry_in, *carry_out);
    }
    (false, false)
}

/// Types of the sources and of the first destination, in order.
#[derive(Clone, Debug)]
struct Types {
    src: SmallVec<[Scalar; 4]>,
    dst: Option<Scalar>,
}

impl Types {
    fn of(op: &Op) -> Self {
        let Signature { places, .. } = signature(op);
        let (mut src, mut dst) = (SmallVec::new(), None);
        for place in places {
            match place.role {
                Role::Write(data) | Role::WritePair(data) => dst = dst.or(Some(data.ty)),
                Role::Read(data) => src.push(data.ty),
                Role::Predicate => src.push(Scalar::Pred),
                Role::Immediate(ty) => src.push(ty),
                Role::Address | Role::Label | Role::Table => {}
                Role::Returns | Role::Callee | Role::Arguments => {}
            }
        }
        Self { src, dst }
    }

    fn source(&self, at: usize) -> Scalar {
        self.src.get(at).copied().unwrap_or(Scalar::B64)
    }
}

/// One lane of one instruction.
#[derive(Clone)]
struct Step<'a> {
    op: &'a Op,
    types: &'a Types,
    dst: &'a [Slot],
    /// Bits of the register that a narrower signed result is extended to; 0: as wide as the type.
    declared: u32,
    site: Site,
}

impl Step<'_> {
    fn run(&self, graph: &mut Graph, values: &[Value]) -> Result<Moved, Limit> {
        let mut out = self.narrow(graph, values)?;
        if let (Op::Cvt { to, .. }, Some(pieces)) = (self.op, out.first_mut())
            && to.class() == Class::Signed
            && self.declared > to.bits()
        {
            self.extend(graph, *to, pieces)?;
        }
        Ok(out)
    }

    /// A register wider than the type takes the sign in its upper bytes.
    fn extend(
        &self,
        graph: &mut Graph,
        ty: Scalar,
        pieces: &mut [Piece; WIDEST],
    ) -> Result<(), Limit> {
        let value = Value { pieces: *pieces, bits: 0 };
        let Some(top) = (ty.bytes() as usize).checked_sub(1) else {
            return Ok(());
        };
        if value.slice(top, 1).is_number(1) {
            return Ok(());
        }
        // Bits of bytes that are numbers are not at hand: without a whole node there is no name.
        let node = match value.node_at(graph, 0) {
            Some((node, width)) if width > top => node,
            Some(_) | None => graph.unknown(ty)?,
        };
        let wide = if self.declared > 32 { Scalar::S64 } else { Scalar::S32 };
        let node = graph.operation(&plain_cvt(wide, ty, None), wide, &[node], self.site)?;
        *pieces = Value::whole(node, wide.bytes() as usize);
        Ok(())
    }

    /// As wide as the type.
    fn narrow(&self, graph: &mut Graph, values: &[Value]) -> Result<Moved, Limit> {
        if let Some(moved) = moved(graph, self.op, values, self.dst.len(), self.site)? {
            return Ok(moved);
        }
        if let (Op::Selp { ty }, [a, b, p]) = (self.op, values) {
            return Ok(one(self.select(graph, *ty, [a, b, p])?));
        }
        if let Op::Cvt { to, from, .. } = self.op
            && (to.lanes() > 1 || from.lanes() > 1)
        {
            return Ok(one(self.packed_conversion(graph, *to, *from, values)?));
        }
        if let Some((ty, element)) = elementwise(self.op) {
            return Ok(one(self.elements(graph, ty, &element, values)?));
        }
        self.general(graph, values)
    }

    /// Each element of a packed float operation for itself.
    fn elements(
        &self,
        graph: &mut Graph,
        ty: Scalar,
        op: &Op,
        values: &[Value],
    ) -> Result<[Piece; WIDEST], Limit> {
        let element = ty.element();
        let unit = element.bytes() as usize;
        let mut out = [Piece::NUMBER; WIDEST];
        for lane in 0..ty.lanes() as usize {
            let parts: Values = values.iter().map(|value| value.slice(lane * unit, unit)).collect();
            if let Some(node) = self.node(graph, op, element, &parts, |_| element)? {
                out[lane * unit..][..unit].copy_from_slice(&Value::whole(node, unit)[..unit]);
            }
        }
        Ok(out)
    }

    /// `cvt` to or from packed types: two sources fill the upper half first; one source is converted
    /// element by element.
    fn packed_conversion(
        &self,
        graph: &mut Graph,
        to: Scalar,
        from: Scalar,
        values: &[Value],
    ) -> Result<[Piece; WIDEST], Limit> {
        let (one_to, one_from) = (to.element(), from.element());
        let count = to.lanes().max(from.lanes()) as usize;
        let whole_bytes = one_to.bits() >= 8 && one_from.bits() >= 8;
        let mut elements = Values::new();
        if values.len() >= count && from.lanes() == 1 {
            elements.extend(values[..count].iter().rev().copied());
        } else if let [value] = values {
            let unit = one_from.bytes() as usize;
            elements.extend((0..count).map(|k| value.slice(k * unit, unit)));
        }
        if !whole_bytes || elements.len() != count {
            return Ok(self.general(graph, values)?.first().copied().unwrap_or_default());
        }
        let mut op = self.op.clone();
        if let Op::Cvt { to, from, .. } = &mut op {
            (*to, *from) = (one_to, one_from);
        }
        // Further sources, such as the random bits of `.rs`, belong to every element.
        let shared = if values.len() > count { &values[count..] } else { &[] };
        let (unit, mut out) = (one_to.bytes() as usize, [Piece::NUMBER; WIDEST]);
        for (k, element) in elements.iter().enumerate() {
            let mut parts: Values = SmallVec::from_slice(&[*element]);
            parts.extend_from_slice(shared);
            let source = |at| if at == 0 { one_from } else { Scalar::B32 };
            if let Some(node) = self.node(graph, &op, one_to, &parts, source)? {
                out[k * unit..][..unit].copy_from_slice(&Value::whole(node, unit)[..unit]);
            }
        }
        Ok(out)
    }

    /// A choice by a number picks; a symbolic choice keeps predicate and arms, for each half of a
    /// packed value on its own.
    fn select(
        &self,
        graph: &mut Graph,
        ty: Scalar,
        [a, b, p]: [&Value; 3],
    ) -> Result<[Piece; WIDEST], Limit> {
        let bytes = (ty.bytes() as usize).min(WIDEST);
        if p.is_number(1) {
            return Ok(if p.bits & 1 == 0 { b.pieces } else { a.pieces });
        }
        let chooser = p.operand(graph, Scalar::Pred, self.site)?;
        let mut out = [Piece::NUMBER; WIDEST];
        let mut at = 0;
        while at < bytes {
            let widths = [a, b].map(|arm| arm.node_at(graph, at).map(|(_, width)| width));
            let unit = match widths {
                [Some(x), Some(y)] if x == y => x,
                [Some(x), None] if b.slice(at, x).is_number(x) => x,
                [None, Some(x)] if a.slice(at, x).is_number(x) => x,
                _ => bytes - at,
            };
            let unit = unit.min(bytes - at);
            let part = part_type(graph, ty, [a, b], at, unit);
            let arms = [a, b].map(|arm| arm.slice(at, unit).operand(graph, part, self.site));
            let [x, y] = arms;
            let (x, y) = (x?, y?);
            let node = if x == y {
                x
            } else {
                let label = graph.intern(Label::select(part));
                graph.apply(label, &[chooser, x, y], self.site)?
            };
            if !matches!(graph.node(node), super::Node::Constant { .. }) {
                out[at..at + unit].copy_from_slice(&Value::whole(node, unit)[..unit]);
            }
            at += unit;
        }
        Ok(out)
    }

    /// One node a destination, over every source.
    fn general(&self, graph: &mut Graph, values: &[Value]) -> Result<Moved, Limit> {
        let mut all = Moved::new();
        for (number, slot) in self.dst.iter().enumerate() {
            let result = match slot {
                Slot::Flag(_) => Scalar::Pred,
                Slot::Wide(_) | Slot::Quad(_) => self.result(8, Scalar::B64),
                Slot::Word(_) | Slot::Sink => self.result(4, Scalar::B32),
            };
            let first = self.node(graph, self.op, result, values, |at| self.types.source(at))?;
            let Some(first) = first else {
                all.push([Piece::NUMBER; WIDEST]);
                continue;
            };
            let node = if number == 0 { first } else { self.later(graph, number, first)? };
            all.push(Value::whole(node, width(*slot).min(result.bytes() as usize)));
        }
        Ok(all)
    }

    fn result(&self, most: u32, otherwise: Scalar) -> Scalar {
        self.types.dst.filter(|ty| ty.bytes() <= most).unwrap_or(otherwise)
    }

    /// A destination after the first: `setp` writes the complement, others their own value.
    fn later(&self, graph: &mut Graph, number: usize, first: NodeId) -> Result<NodeId, Limit> {
        let args: SmallVec<[NodeId; 4]> = graph.args(first).into();
        let what = if matches!(self.op, Op::Setp { .. }) {
            What::Complement(self.op.clone())
        } else {
            What::Output(self.op.clone(), number as u8)
        };
        let label = graph.intern(Label { what, result: graph.ty(first) });
        graph.apply(label, &args, self.site)
    }

    /// The condition code the instruction leaves.
    fn carry(&self, graph: &mut Graph, values: &[Value]) -> Result<Piece, Limit> {
        let Some(first) = self.node(graph, self.op, self.result(8, Scalar::B64), values, |at| {
            self.types.source(at)
        })?
        else {
            return Ok(Piece::NUMBER);
        };
        let args: SmallVec<[NodeId; 4]> = graph.args(first).into();
        let what = What::Output(self.op.clone(), 1);
        let label = graph.intern(Label { what, result: Scalar::Pred });
        Ok(Piece::of(graph.apply(label, &args, self.site)?, 0))
    }

    /// The node of `op`, or nothing where every operand is a number.
    fn node(
        &self,
        graph: &mut Graph,
        op: &Op,
        result: Scalar,
        values: &[Value],
        ty: impl Fn(usize) -> Scalar,
    ) -> Result<Option<NodeId>, Limit> {
        let numbers = |(at, value): (usize, &Value)| value.is_number(ty(at).bytes() as usize);
        if values.iter().enumerate().all(numbers) {
            return Ok(None);
        }
        let mut args = SmallVec::<[NodeId; 4]>::new();
        for (at, value) in values.iter().enumerate() {
            args.push(value.operand(graph, ty(at), self.site)?);
        }
        graph.operation(op, result, &args, self.site).map(Some)
    }
}

fn one(pieces: [Piece; WIDEST]) -> Moved {
    SmallVec::from_slice(&[pieces])
}

/// The type that `unit` bytes of a chosen value have: that of the arms' own nodes where they agree.
fn part_type(graph: &Graph, ty: Scalar, arms: [&Value; 2], at: usize, unit: usize) -> Scalar {
    let own = |arm: &Value| arm.node_at(graph, at).filter(|(_, width)| *width == unit);
    let types = arms.map(|arm| own(arm).map(|(node, _)| graph.ty(node)));
    match types {
        [Some(x), Some(y)] if x == y => x,
        [Some(x), None] | [None, Some(x)] => x,
        _ if unit == ty.bytes() as usize => ty,
        _ => match unit {
            1 => Scalar::B8,
            2 => Scalar::B16,
            4 => Scalar::B32,
            _ => Scalar::B64,
        },
    }
}

/// Type and one-element form of a float operation whose operands all have its type.
pub fn elementwise(op: &Op) -> Option<(Scalar, Op)> {
    let mut element = op.clone();
    let (Op::FloatUnary { ty, .. }
    | Op::FloatBinary { ty, .. }
    | Op::FloatTernary { ty, .. }
    | Op::Fma { ty, .. }) = &mut element
    else {
        return None;
    };
    let whole = *ty;
    *ty = whole.element();
    Some((whole, element))
}
