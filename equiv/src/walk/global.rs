//! Global memory: loads are leaves, stores are outputs.
//!
//! # Invariants
//! - **G1** A leaf is named by its address: the linear part, and a number of bytes.
//! - **G2** What the kernel wrote itself is read back only where the address is the same; where it
//!   may be, but is not known to be, the walk ends.
//! # Not here
//! That buffers do not overlap is assumed, in the crate's docs.

use bitstable_ptx::ir::{Atomic, Class, Instruction, Op, Operand, Ordering, Scalar, Space};
use smallvec::SmallVec;

use super::{Stop, Truth, Variable, Walk, control::register_bytes};
use crate::{
    each::Each,
    outputs::{Address, Output},
    term::{Atom, Body, Mark, Mixer, View, seed},
    value::{Value, parts},
};

/// `[base + offset]`: a number or a form with the offset in it, or a term and the offset.
pub(super) struct Pointer {
    pub value: Value,
    offset: i64,
}

impl<'m> Walk<'m> {
    pub(super) fn load(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Ld { space, ordering, ty, .. } = instruction.op else {
            return self.stop("no load");
        };
        let decoded = self.decoded(instruction)?;
        let [targets] = decoded.targets.as_slice() else { return self.stop("a load of nothing") };
        let guard = self.own_guard(instruction);
        let Some(&at) = decoded.addresses.first() else { return self.stop("no address") };
        let operand = &instruction.operands[at];
        if space == Space::Param {
            let value = self.parameter(operand, ty)?;
            self.write(targets[0], value, guard.as_ref());
            return Ok(());
        }
        if !matches!(ordering, Ordering::Weak) {
            return self.stop("a load that other threads' stores may be ordered by");
        }
        let bytes = register_bytes(ty.bits());
        let address = self.address(operand)?;
        match space {
            Space::Shared => {
                let under = self.under(instruction);
                let values = self.shared_load(&address, bytes, targets.len(), under.as_ref())?;
                for (target, value) in targets.iter().zip(values) {
                    let value = self.extended(value, ty, *target);
                    self.write(*target, value, guard.as_ref());
                }
                Ok(())
            }
            Space::Global | Space::Generic | Space::Const => {
                let under = self.under(instruction);
                self.unwritten(&address)?;
                let addresses = self.global_address(&address)?;
                for (number, target) in targets.iter().enumerate() {
                    let start = number as i64 * i64::from(bytes);
                    let value = self.leaf(&addresses, start, bytes, under.as_ref())?;
                    let value = self.extended(value, ty, *target);
                    self.write(*target, value, guard.as_ref());
                }
                Ok(())
            }
            Space::SharedCluster | Space::Local | Space::Param => {
                self.stop(format!("a load from {space} memory"))
            }
        }
    }

    /// A loaded value in a register that may be wider.
    fn extended(&mut self, value: Value, ty: Scalar, target: super::decode::Target) -> Value {
        let Some(register) = target else { return value };
        let bytes = register_bytes(self.body.registers[register.index()].ty.bits());
        let own = register_bytes(ty.bits());
        if own == 0 || own >= bytes || matches!(value, Value::Undefined) {
            return value;
        }
        if ty.class() == Class::Signed {
            return self.opaque(&format!("sign {own} to {bytes}"), &[value], &[own], bytes);
        }
        let mut each = vec![value];
        each.resize(usize::from(bytes / own), Value::Bits(Each::All(0)));
        parts(each, own)
    }

    fn parameter(&mut self, operand: &Operand, ty: Scalar) -> Result<Value, Stop> {
        let Operand::Address { base, offset } = operand else {
            return self.stop("a parameter by no name");
        };
        let Operand::Symbol { name, offset: more } = base.as_ref() else {
            return self.stop("a parameter by address");
        };
        let Some(Variable::Parameter(number)) = self.variables.get(name.as_str()).copied() else {
            return self.stop(format!("`{name}` is no parameter"));
        };
        let at = offset + more;
        if let Some(bits) = self.launch.scalars.get(&number)
            && at == 0
        {
            let width = ty.bits();
            let mask = if width >= 64 { u64::MAX } else { (1 << width) - 1 };
            return Ok(Value::Bits(Each::All(bits & mask)));
        }
        let value = self.symbol(&format!("parameter {number} + {at}"));
        if let (Value::Linear(form), 64) = (&value, ty.bits()) {
            self.pointers.extend(form.terms().iter().map(|(names, _)| (names[0], number)));
        }
        Ok(value)
    }

    /// The value of `[base + offset]`.
    pub(super) fn address(&mut self, operand: &Operand) -> Result<Pointer, Stop> {
        let Operand::Address { base, offset } = operand else {
            return self.stop("an address that is not followed");
        };
        let base = self.read(base, Scalar::B64)?;
        match &base {
            Value::Bits(bits) => {
                let value = Value::Bits(bits.map(|b| b.wrapping_add(*offset as u64)));
                Ok(Pointer { value, offset: 0 })
            }
            Value::Linear(_) => Ok(Pointer { value: self.plus(&base, *offset), offset: 0 }),
            Value::Atoms(..) => Ok(Pointer { value: base, offset: *offset }),
            Value::Undefined | Value::Parts(..) => self.stop("an address that is not followed"),
        }
    }

    /// Linear part and number of an address, each thread's.
    pub(super) fn global_address(&mut self, address: &Pointer) -> Result<Each<Address>, Stop> {
        let threads = self.threads;
        match &address.value {
            Value::Linear(form) => {
                let bases = form.bases(&mut self.world.algebra, threads);
                Ok(bases.zip(form.constant(), |base, offset| Address { base, offset }))
            }
            Value::Atoms(atoms, bytes) => {
                let algebra = &mut self.world.algebra;
                let offset = address.offset;
                Ok(atoms.map(|atom| Address { base: algebra.whole(atom, *bytes), offset }))
            }
            Value::Undefined | Value::Bits(_) | Value::Parts(..) => {
                self.stop("an address without a pointer in it")
            }
        }
    }

    /// The number of the pointer in an address, where it is a parameter.
    pub(super) fn pointer(&self, address: &Pointer) -> Option<u32> {
        let Value::Linear(form) = &address.value else { return None };
        form.terms().iter().find_map(|(names, _)| match names.as_slice() {
            [name] => self.pointers.get(name).copied(),
            _ => None,
        })
    }

    /// Loads through a pointer that was stored through need addresses that can be compared.
    pub(super) fn unwritten(&mut self, address: &Pointer) -> Result<(), Stop> {
        let pointer = self.pointer(address);
        if !self.outputs.may_alias(pointer) {
            return Ok(());
        }
        let comparable = match &address.value {
            Value::Linear(form) => {
                form.terms().iter().all(|(_, c)| c.uniform().is_some())
                    && self.outputs.only_base(form.base(&mut self.world.algebra, 0))
            }
            Value::Undefined | Value::Bits(_) | Value::Atoms(..) | Value::Parts(..) => false,
        };
        if comparable {
            return Ok(());
        }
        self.stop("a load from memory that the kernel may have written")
    }

    /// In a loop that is walked for all iterations, each has to store to a place of its own.
    fn every_iteration(&self, address: &Pointer) -> Result<(), Stop> {
        let apart = |iteration: &Body| match &address.value {
            Value::Linear(form) => form.terms().iter().any(|(names, _)| names.contains(iteration)),
            Value::Undefined | Value::Bits(_) | Value::Atoms(..) | Value::Parts(..) => false,
        };
        if self.iterations.iter().all(apart) {
            return Ok(());
        }
        self.stop("a store to one address by many iterations")
    }

    /// Memory that was there before the kernel, or that the thread wrote itself.
    pub(super) fn leaf(
        &mut self,
        addresses: &Each<Address>,
        start: i64,
        bytes: u8,
        under: Option<&Value>,
    ) -> Result<Value, Stop> {
        if !self.outputs.is_empty() {
            let truths = self.truths(under);
            for thread in 0..self.threads {
                if truths.at(thread) == Truth::No {
                    continue;
                }
                let Address { base, offset } = addresses.at(thread);
                let address = Address { base, offset: offset + start };
                if self.outputs.may_hold(address, bytes) {
                    return self.stop("a load from memory that the kernel may have written");
                }
            }
        }
        let algebra = &mut self.world.algebra;
        Ok(Value::Atoms(
            addresses.map(|Address { base, offset }| leaf_atom(algebra, base, offset + start)),
            bytes,
        ))
    }

    pub(super) fn store(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::St { space, ordering, ty, vector, .. } = instruction.op else {
            return self.stop("no store");
        };
        if !matches!(ordering, Ordering::Weak) {
            return self.stop("a store that other threads' loads may be ordered by");
        }
        let decoded = self.decoded(instruction)?;
        let Some(&at) = decoded.addresses.first() else { return self.stop("no address") };
        let address = self.address(&instruction.operands[at])?;
        let values = self.elements(instruction, ty, vector)?;
        let under = self.under(instruction);
        let bytes = register_bytes(ty.bits());
        match space {
            Space::Shared => self.shared_store(&address, &values, bytes, under.as_ref()),
            Space::Global | Space::Generic => {
                let pointer = self.pointer(&address);
                self.outputs.through(pointer);
                self.every_iteration(&address)?;
                let addresses = self.global_address(&address)?;
                for (number, value) in values.iter().enumerate() {
                    let start = number as i64 * i64::from(bytes);
                    self.output(&addresses, (start, bytes), value, under.as_ref())?;
                }
                Ok(())
            }
            Space::SharedCluster | Space::Local | Space::Param | Space::Const => {
                self.stop(format!("a store to {space} memory"))
            }
        }
    }

    /// The stored elements.
    fn elements(
        &mut self,
        instruction: &'m Instruction,
        ty: Scalar,
        vector: u8,
    ) -> Result<SmallVec<[Value; 8]>, Stop> {
        let decoded = self.decoded(instruction)?;
        let Some(source) = decoded.sources.first() else { return self.stop("a store of nothing") };
        let operand = &instruction.operands[source.operand];
        let each: &[Operand] = if let Operand::Vector(parts) = operand {
            parts
        } else {
            std::slice::from_ref(operand)
        };
        if each.len() != usize::from(vector.max(1)) {
            return self.stop("a store of another number of values");
        }
        let bytes = register_bytes(ty.bits());
        let mut values = SmallVec::new();
        for part in each {
            let value = self.read(part, ty)?;
            let wide = register_bytes(self.operand_bits(part, ty));
            values.push(if wide > bytes { value.piece(wide, 0, bytes) } else { value });
        }
        Ok(values)
    }

    /// An element that is stored, in the parts that have names.
    fn output(
        &mut self,
        addresses: &Each<Address>,
        (start, bytes): (i64, u8),
        value: &Value,
        under: Option<&Value>,
    ) -> Result<(), Stop> {
        let unit = natural(value, bytes);
        if unit < bytes {
            for (at, part) in value.split(bytes, unit).iter().enumerate() {
                let start = start + at as i64 * i64::from(unit);
                self.output(addresses, (start, unit), part, under)?;
            }
            return Ok(());
        }
        let truths = self.truths(under);
        let threads = self.threads;
        let bodies = value.bodies(&mut self.world.algebra, bytes, threads);
        let place = self.place();
        for thread in 0..threads {
            let Some(when) = self.condition(truths.at(thread)) else { continue };
            let (value, Address { base, offset }) = (bodies.at(thread), addresses.at(thread));
            if value == Atom::UNDEFINED.body || when.is_undefined() {
                return self.stop("a store of a value that was never written");
            }
            let address = Address { base, offset: offset + start };
            let mut written = self.written(value, when, bytes, thread);
            let order = self.shared.epoch();
            if let Some(old) = self.outputs.at(address) {
                written = self.over(old, written);
            }
            if let Err(clash) = self.outputs.write(address, written, order, &place) {
                return self.stop(clash);
            }
        }
        Ok(())
    }

    fn written(&mut self, value: Body, condition: Atom, bytes: u8, thread: usize) -> Output {
        let when = self.world.algebra.whole(condition, 0);
        Output { value, when, condition, bytes, thread: thread as u32, layered: false }
    }

    /// What is at an address behind a store over another that has another condition: where the
    /// thread is the same, or only one of them happens.
    fn over(&mut self, old: Output, new: Output) -> Output {
        let [no, yes] = self.truth;
        let layered = old.when != new.when && old.bytes == new.bytes;
        let mut comparable =
            || old.thread == new.thread || self.conjoined(old.condition, new.condition) == no;
        if !layered || !comparable() {
            return new;
        }
        if new.condition == yes {
            return Output { layered: true, ..new };
        }
        let value = self.world.algebra.select(new.condition, new.value, old.value);
        let of = |condition| Value::Atoms(Each::All(condition), 0);
        let either = self.either(&of(old.condition), &of(new.condition));
        let condition = match self.truths(Some(&either)).at(0) {
            Truth::No => no,
            Truth::Yes => yes,
            Truth::If(atom) => atom,
        };
        let over = self.written(value.body, condition, new.bytes, new.thread as usize);
        Output { layered: true, ..over }
    }

    /// The whole condition of something a thread does; `None`: it does not.
    fn condition(&mut self, truth: Truth) -> Option<Atom> {
        let own = match truth {
            Truth::No => return None,
            Truth::Yes => self.truth[1],
            Truth::If(atom) => atom,
        };
        let Some(when) = self.when else { return Some(own) };
        let both = self.conjoined(when, own);
        (both != self.truth[0]).then_some(both)
    }

    /// Integer updates whose order is nobody's, and whose result nobody reads.
    pub(super) fn atomic(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Atom { op, space, ty, vector, .. } = instruction.op else {
            return self.stop("no atomic");
        };
        let decoded = self.decoded(instruction)?;
        let unread = decoded.targets.iter().flatten().all(Option::is_none);
        let ordered = match op {
            Atomic::And | Atomic::Or | Atomic::Xor | Atomic::Add | Atomic::Min | Atomic::Max => {
                ty.class() == Class::Float
            }
            Atomic::Inc | Atomic::Dec | Atomic::Exch | Atomic::Cas => true,
        };
        if !unread || ordered || vector > 1 || !matches!(space, Space::Global | Space::Generic) {
            return self.stop("an atomic whose result depends on the order of threads");
        }
        let Some(&at) = decoded.addresses.first() else { return self.stop("no address") };
        let address = self.address(&instruction.operands[at])?;
        let pointer = self.pointer(&address);
        self.outputs.through(pointer);
        self.every_iteration(&address)?;
        let addresses = self.global_address(&address)?;
        let value = self.source(instruction, 0)?;
        let under = self.under(instruction);
        let (truths, threads) = (self.truths(under.as_ref()), self.threads);
        let bodies = value.bodies(&mut self.world.algebra, register_bytes(ty.bits()), threads);
        let name = Mixer::new(seed::LABEL).bytes(format!("{op} {ty}").as_bytes()).finish();
        for thread in 0..threads {
            let Some(when) = self.condition(truths.at(thread)) else { continue };
            let value = bodies.at(thread);
            if value == Atom::UNDEFINED.body || when.is_undefined() {
                return self.stop("an atomic on a value that was never written");
            }
            let written = self.written(value, when, register_bytes(ty.bits()), thread);
            self.outputs.update(addresses.at(thread), name, written);
        }
        Ok(())
    }

    /// A cache policy: no value depends on it.
    pub(super) fn policy(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let decoded = self.decoded(instruction)?;
        let guard = self.own_guard(instruction);
        let target = decoded.targets.first().and_then(|targets| targets.first()).copied().flatten();
        self.write(target, Value::Bits(Each::All(0)), guard.as_ref());
        Ok(())
    }
}

/// Memory at a base and a number of bytes; what does not fit the offset goes into the base.
fn leaf_atom(algebra: &mut crate::term::Algebra, base: Body, offset: i64) -> Atom {
    const LOW: i64 = 0x3fff_ffff;
    let high = offset & !LOW;
    let body = if high == 0 {
        base
    } else {
        let body = Mixer::new(seed::LINEAR).body(base).word(high as u64).finish();
        algebra.named(body, || crate::graph::Node::Offset { base, constant: high })
    };
    Atom { body, offset: (offset & LOW) as i32, view: View::Load, ..Atom::default() }
}

/// Bytes of the parts that a value is stored in: copies and numbers by the byte, so that it does
/// not show how wide the move was.
fn natural(value: &Value, bytes: u8) -> u8 {
    match value {
        Value::Parts(_, size) => *size,
        Value::Bits(_) => 1,
        Value::Atoms(atoms, _)
            if atoms.all(|atom| atom.view == View::Load && !atom.mark.has(Mark::FLIPPED)) =>
        {
            1
        }
        Value::Atoms(..) | Value::Undefined | Value::Linear(_) => bytes,
    }
}
