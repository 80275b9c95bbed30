//! Branches: walked one way where that is known, both ways where it is not.
//!
//! # Invariants
//! - **B1** Registers behind a branch are those of the way each thread took, chosen by the branch's
//!   own predicate where it is no number.
//! - **B2** A way that no thread takes is not walked.

use bitstable_ptx::ir::{Instruction, Op};

use super::{Stop, Truth, Walk};
use crate::{each::Each, term::Atom, value::Value};

impl<'m> Walk<'m> {
    /// Walks from a block up to another, which is not walked.
    pub(super) fn region(&mut self, mut block: usize, until: usize) -> Result<(), Stop> {
        while block != until {
            let Some(here) = self.flow.blocks.get(block).cloned() else { return Ok(()) };
            let last = here.end - 1;
            let instruction = &self.body.instructions[last];
            if !ends_control(&instruction.op) {
                self.straight(here.start, here.end)?;
                block += 1;
                continue;
            }
            self.straight(here.start, last)?;
            self.pc = last;
            if self.latch == Some(block) {
                return Ok(());
            }
            self.spend(1)?;
            if matches!(instruction.op, Op::Trap) {
                return self.stop("a trap");
            }
            let taken = here.next[0];
            if instruction.guard.is_none() {
                block = taken;
                continue;
            }
            let onward = here.next.get(1).copied().unwrap_or(taken);
            block = self.branch(instruction, (block, taken, onward))?;
        }
        Ok(())
    }

    /// The block to go on with.
    fn branch(
        &mut self,
        instruction: &'m Instruction,
        (block, taken, onward): (usize, usize, usize),
    ) -> Result<usize, Stop> {
        let goes = self.guard(instruction);
        let here = self.path.clone();
        let yes = self.both_paths(here.as_ref(), &goes);
        let refused = self.negated(&goes);
        let no = self.both_paths(here.as_ref(), &refused);
        let never = |walk: &Self, way: &Value| walk.truths(Some(way)).all(|t| t == Truth::No);
        if never(self, &no) {
            return Ok(taken);
        }
        if never(self, &yes) {
            return Ok(onward);
        }
        if !self.truths(Some(&goes)).all(|truth| !undefined(truth)) {
            return self.stop("a branch on a value that was never written");
        }
        match self.alike(&goes) {
            Some(Truth::If(atom)) => self.open_branch(&goes, atom, (block, taken, onward)),
            Some(Truth::Yes | Truth::No) | None => {
                self.parted(&goes, [yes, no], (block, taken, onward))
            }
        }
    }

    /// Threads part: each way with those that take it.
    fn parted(
        &mut self,
        goes: &Value,
        [yes, no]: [Value; 2],
        (block, taken, onward): (usize, usize, usize),
    ) -> Result<usize, Stop> {
        let join = self.flow.joins[block];
        self.deeper()?;
        let (before, here) = (self.registers.clone(), self.path.clone());
        self.path = Some(yes);
        self.region(taken, join)?;
        let after = std::mem::replace(&mut self.registers, before);
        self.path = Some(no);
        self.region(onward, join)?;
        self.path = here;
        self.depth -= 1;
        self.merge(goes, after);
        Ok(join)
    }

    /// All threads go one way, and which is not known: each way as if it were taken.
    fn open_branch(
        &mut self,
        goes: &Value,
        atom: Atom,
        (block, taken, onward): (usize, usize, usize),
    ) -> Result<usize, Stop> {
        self.deeper()?;
        let (before, outer) = (self.registers.clone(), self.when);
        let mut fork = self.shared.fork();
        let (back, on) = (taken <= block, onward <= block);
        let join = if back || on {
            let (header, exit) = if back { (taken, onward) } else { (onward, taken) };
            let again = if back { atom } else { atom.flipped() };
            self.when = Some(self.under_too(outer, again));
            self.recurrence(block, header)?;
            let after = std::mem::replace(&mut self.registers, before);
            let goes = Value::Atoms(Each::All(again), 0);
            self.merge(&goes, after);
            exit
        } else {
            let join = self.flow.joins[block];
            self.when = Some(self.under_too(outer, atom));
            self.region(taken, join)?;
            let after = std::mem::replace(&mut self.registers, before);
            self.shared.rewind(&mut fork);
            self.when = Some(self.under_too(outer, atom.flipped()));
            self.region(onward, join)?;
            self.merge(goes, after);
            join
        };
        if self.copies.in_flight() {
            return self.stop("copies in flight behind a branch that is not known");
        }
        self.shared.joined(&fork);
        self.when = outer;
        self.depth -= 1;
        Ok(join)
    }

    fn deeper(&mut self) -> Result<(), Stop> {
        self.depth += 1;
        if self.depth > super::DEEPEST {
            return self.stop("branches within branches, deeper than is followed");
        }
        Ok(())
    }

    /// The truth of a predicate for all threads that are here, where it is one.
    pub(super) fn alike(&self, goes: &Value) -> Option<Truth> {
        let (here, truths) = (self.truths(self.path.as_ref()), self.truths(Some(goes)));
        let mut found = None;
        for thread in 0..self.threads {
            match here.at(thread) {
                Truth::No => continue,
                Truth::If(_) => return None,
                Truth::Yes => {}
            }
            let truth = truths.at(thread);
            if found.is_some_and(|found| found != truth) {
                return None;
            }
            found = Some(truth);
        }
        found
    }

    fn under_too(&mut self, outer: Option<Atom>, atom: Atom) -> Atom {
        match outer {
            None => atom,
            Some(outer) => self.conjoined(outer, atom),
        }
    }

    pub(super) fn guard(&mut self, instruction: &Instruction) -> Value {
        let Some(guard) = instruction.guard else {
            return Value::Bits(Each::All(1));
        };
        let value = self.registers[guard.register.index()].clone();
        if guard.negated { self.negated(&value) } else { value }
    }

    fn both_paths(&mut self, here: Option<&Value>, way: &Value) -> Value {
        match here {
            None => way.clone(),
            Some(here) => self.both(here, way),
        }
    }

    /// Takes the first way's registers where the predicate holds.
    fn merge(&mut self, goes: &Value, mut first: Vec<Value>) {
        for (number, one) in first.iter_mut().enumerate() {
            let other = &self.registers[number];
            if same(one, other) {
                continue;
            }
            let bytes = register_bytes(self.body.registers[number].ty.bits());
            let other = other.clone();
            let one = std::mem::replace(one, Value::Undefined);
            self.registers[number] = self.selected(goes, &one, &other, bytes);
        }
    }
}

fn ends_control(op: &Op) -> bool {
    matches!(op, Op::Bra { .. } | Op::BrxIdx { .. } | Op::Ret { .. } | Op::Exit | Op::Trap)
}

fn undefined(truth: Truth) -> bool {
    matches!(truth, Truth::If(atom) if atom.is_undefined())
}

/// Bytes of a register; 0 of a predicate.
pub(super) fn register_bytes(bits: u32) -> u8 {
    (bits / 8) as u8
}

/// Equal without looking: nobody wrote it on either way.
fn same(a: &Value, b: &Value) -> bool {
    use std::rc::Rc;
    match (a, b) {
        (Value::Undefined, Value::Undefined) => true,
        (Value::Bits(Each::All(a)), Value::Bits(Each::All(b))) => a == b,
        (Value::Bits(Each::By(a)), Value::Bits(Each::By(b))) => Rc::ptr_eq(a, b),
        (Value::Linear(a), Value::Linear(b)) => Rc::ptr_eq(a, b),
        (Value::Atoms(Each::All(a), x), Value::Atoms(Each::All(b), y)) => a == b && x == y,
        (Value::Atoms(Each::By(a), x), Value::Atoms(Each::By(b), y)) => Rc::ptr_eq(a, b) && x == y,
        (Value::Parts(a, _), Value::Parts(b, _)) => Rc::ptr_eq(a, b),
        _ => false,
    }
}
