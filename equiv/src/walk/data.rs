//! Instructions that work on each thread alone.
//!
//! # Idea
//! Numbers are computed by the executor's own functions. What is linear stays linear
//! (`integer.rs`), whole bytes that move are moved (`bytes.rs`), and everything else becomes one
//! operation an element (`arith.rs`), whatever the instruction is.

use bitstable_ptx::{
    ir::{Instruction, Op, Scalar},
    symbol::elementwise,
};
use smallvec::SmallVec;

use super::{Stop, Walk, control::register_bytes, decode::Decoded, operands::holds};
use crate::{
    each::Each,
    value::{Value, parts},
};

impl<'m> Walk<'m> {
    pub(super) fn lane(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let decoded = self.decoded(instruction)?;
        let guard = self.own_guard(instruction);
        if let Op::Mov { ty } = instruction.op {
            return self.mov(instruction, &decoded, ty, guard.as_ref());
        }
        let mut sources: SmallVec<[Value; 4]> = SmallVec::new();
        for source in &decoded.sources {
            sources.push(self.read(&instruction.operands[source.operand], source.ty)?);
        }
        let results = self.results(instruction, &decoded, &sources)?;
        for (targets, value) in decoded.targets.iter().zip(results) {
            self.write(targets.first().copied().flatten(), value, guard.as_ref());
        }
        Ok(())
    }

    fn results(
        &mut self,
        instruction: &'m Instruction,
        decoded: &Decoded,
        sources: &[Value],
    ) -> Result<SmallVec<[Value; 2]>, Stop> {
        if let Some(numbers) = self.all_numbers(decoded, sources) {
            return Ok(numbers);
        }
        let op = &instruction.op;
        if let (Op::Selp { ty }, [a, b, p]) = (op, sources) {
            let value = self.selected(&p.clone(), a, b, register_bytes(ty.bits()));
            return Ok(smallvec::smallvec![value]);
        }
        if let Op::Setp { cmp, ty, join, .. } = op {
            return self.comparison(op, (*cmp, *ty, *join), sources, decoded.targets.len());
        }
        if ty_is_predicate(op) {
            return self.logic(op, sources);
        }
        if let Some(value) = self.linear_result(op, sources) {
            return Ok(smallvec::smallvec![value]);
        }
        let bytes = self.target_bytes(decoded, 0);
        if let Some(value) = self.moved_bytes(op, sources, bytes) {
            return Ok(smallvec::smallvec![value]);
        }
        if decoded.targets.len() != 1 {
            return self.stop("an instruction of several results");
        }
        let value = self.operation(op, decoded, sources, bytes)?;
        Ok(smallvec::smallvec![value])
    }

    pub(super) fn target_bytes(&self, decoded: &Decoded, number: usize) -> u8 {
        let target = decoded.targets.get(number).and_then(|targets| targets.first()).copied();
        target
            .flatten()
            .map_or(4, |register| register_bytes(self.body.registers[register.index()].ty.bits()))
    }

    /// The executor's result, where every source is a number.
    fn all_numbers(
        &mut self,
        decoded: &Decoded,
        sources: &[Value],
    ) -> Option<SmallVec<[Value; 2]>> {
        let step = decoded.step.as_ref()?;
        let mut bits: SmallVec<[&Each<u64>; 4]> = SmallVec::new();
        for source in sources {
            let Value::Bits(numbers) = source else { return None };
            bits.push(numbers);
        }
        let results = self.numbers(step, &bits);
        let slots = step.operands.dst.iter();
        Some(
            results
                .into_iter()
                .zip(slots)
                .map(|(bits, slot)| if holds(*slot) { Value::Bits(bits) } else { Value::Undefined })
                .collect(),
        )
    }

    /// `mov`: the sources in a row are the destinations in a row.
    fn mov(
        &mut self,
        instruction: &'m Instruction,
        decoded: &Decoded,
        ty: Scalar,
        guard: Option<&Value>,
    ) -> Result<(), Stop> {
        let [targets] = decoded.targets.as_slice() else {
            return self.stop("a move of several values");
        };
        let Some(source) = decoded.sources.first() else {
            return self.stop("a move without a source");
        };
        let operand = &instruction.operands[source.operand];
        let value = self.read(operand, ty)?;
        if targets.len() == 1 {
            self.write(targets[0], value, guard);
            return Ok(());
        }
        let total = register_bytes(ty.bits());
        let each = total / targets.len() as u8;
        for (at, target) in targets.iter().enumerate() {
            let piece = value.piece(total, at as u8 * each, each);
            self.write(*target, piece, guard);
        }
        Ok(())
    }

    /// Any operation, as one term an element.
    fn operation(
        &mut self,
        op: &Op,
        decoded: &Decoded,
        sources: &[Value],
        bytes: u8,
    ) -> Result<Value, Stop> {
        if let Op::Cvt { to, from, .. } = op
            && (to.lanes() > 1 || from.lanes() > 1)
        {
            return self.packed_conversion(op, (*to, *from), decoded, sources, bytes);
        }
        if let Some((ty, element)) = elementwise(op)
            && ty.lanes() > 1
        {
            let (total, unit) = (register_bytes(ty.bits()), register_bytes(ty.element().bits()));
            let mut each = Vec::new();
            for lane in 0..ty.lanes() as u8 {
                let slices: SmallVec<[Value; 4]> =
                    sources.iter().map(|s| s.piece(total, lane * unit, unit)).collect();
                each.push(self.element(&element, ty.element(), &slices, unit)?);
            }
            return Ok(parts(each, unit));
        }
        let mut result = result_type(op, bytes);
        if result.lanes() > 1 {
            result = bitstable_ptx::ir::signature::untyped(8 * u32::from(bytes)).unwrap_or(result);
        }
        let own = register_bytes(result.bits()).max(u8::from(result != Scalar::Pred));
        let sizes: SmallVec<[u8; 4]> =
            decoded.sources.iter().map(|source| register_bytes(source.ty.bits())).collect();
        let narrowed: SmallVec<[Value; 4]> =
            sources.iter().zip(&sizes).map(|(value, size)| narrow(value, *size)).collect();
        let value = self.typed(op, result, &narrowed, &sizes, own)?;
        if own < bytes && own > 0 {
            return self.widened(op, value, own, bytes);
        }
        Ok(value)
    }

    /// A result narrower than its register: zeros above it, or its sign.
    fn widened(&mut self, op: &Op, value: Value, own: u8, bytes: u8) -> Result<Value, Stop> {
        if let Op::Cvt { to, .. } = op
            && to.class() == bitstable_ptx::ir::Class::Signed
        {
            let name = format!("sign {own} to {bytes}");
            return Ok(self.opaque(&name, &[value], &[own], bytes));
        }
        let count = usize::from(bytes / own);
        let mut each = vec![value];
        each.resize(count, Value::Bits(Each::All(0)));
        Ok(parts(each, own))
    }

    /// Each element for itself; of two sources, the first is the upper element.
    fn packed_conversion(
        &mut self,
        op: &Op,
        (to, from): (Scalar, Scalar),
        decoded: &Decoded,
        sources: &[Value],
        bytes: u8,
    ) -> Result<Value, Stop> {
        let (one_to, one_from) = (to.element(), from.element());
        let count = to.lanes().max(from.lanes()) as usize;
        let (unit_to, unit_from) = (register_bytes(one_to.bits()), register_bytes(one_from.bits()));
        let mut elements: Vec<Value> = Vec::new();
        if one_to.bits() >= 8 && one_from.bits() >= 8 {
            if from.lanes() == 1 && sources.len() == count {
                elements.extend(sources.iter().rev().map(|value| narrow(value, unit_from)));
            } else if let [value] = sources {
                let total = register_bytes(from.bits());
                elements
                    .extend((0..count as u8).map(|k| value.piece(total, k * unit_from, unit_from)));
            }
        }
        if elements.len() != count {
            let sizes: SmallVec<[u8; 4]> =
                decoded.sources.iter().map(|source| register_bytes(source.ty.bits())).collect();
            return self.typed(op, result_type(op, bytes), sources, &sizes, bytes);
        }
        let mut one = op.clone();
        if let Op::Cvt { to, from, .. } = &mut one {
            (*to, *from) = (one_to, one_from);
        }
        let mut each = Vec::new();
        for element in elements {
            each.push(self.typed(&one, one_to, &[element], &[unit_from], unit_to)?);
        }
        Ok(parts(each, unit_to))
    }
}

/// The low bytes of a value in a wider register.
fn narrow(value: &Value, bytes: u8) -> Value {
    match value {
        Value::Atoms(_, own) if *own > bytes && bytes > 0 => value.piece(*own, 0, bytes),
        Value::Parts(all, size) => {
            let total = *size * all.len() as u8;
            if total > bytes && bytes > 0 { value.piece(total, 0, bytes) } else { value.clone() }
        }
        Value::Bits(bits) if bytes > 0 && bytes < 8 => {
            let mask = (1u64 << (8 * u32::from(bytes))) - 1;
            Value::Bits(bits.map(|bits| bits & mask))
        }
        Value::Undefined | Value::Bits(_) | Value::Linear(_) | Value::Atoms(..) => value.clone(),
    }
}

fn ty_is_predicate(op: &Op) -> bool {
    matches!(op, Op::IntBinary { ty: Scalar::Pred, .. } | Op::IntUnary { ty: Scalar::Pred, .. })
}

/// The type of the first result.
pub(super) fn result_type(op: &Op, bytes: u8) -> Scalar {
    use bitstable_ptx::ir::{Role, signature};
    let places = signature(op).places;
    let written = places.iter().find_map(|place| match place.role {
        Role::Write(data) | Role::WritePair(data) => Some(data.ty),
        Role::Read(_)
        | Role::Predicate
        | Role::Immediate(_)
        | Role::Address
        | Role::Label
        | Role::Table
        | Role::Returns
        | Role::Callee
        | Role::Arguments => None,
    });
    let untyped = bitstable_ptx::ir::signature::untyped(8 * u32::from(bytes));
    written.or(untyped).unwrap_or(Scalar::B32)
}
