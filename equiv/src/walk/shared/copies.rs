//! `cp.async`: bytes on their way from global to shared memory.
//!
//! # Idea
//! A copy's place holds a mark until the copy is waited for, and then what was at its source.
//! # Invariants
//! - **C1** Until a copy is waited for, its place is touched by nobody else.
//! # Held by
//! C1: [`Shared::read`](super::Shared::read), `write` and `arrive`; `tests/walk/races.rs`.

use bitstable_ptx::ir::Instruction;

use super::{Cell, Pointer, Stop, Walk};
use crate::{each::Each, value::Value};

/// Copies from global to shared memory that are under way.
#[derive(Default)]
pub(in crate::walk) struct Copies {
    open: Vec<Copy>,
    groups: std::collections::VecDeque<Vec<Copy>>,
}

struct Copy {
    thread: u32,
    address: u64,
    cell: Cell,
    bytes: u8,
}

impl Copies {
    /// Whether any bytes are under way.
    pub fn in_flight(&self) -> bool {
        !self.open.is_empty() || self.groups.iter().any(|group| !group.is_empty())
    }

    pub fn commit(&mut self) {
        self.groups.push_back(std::mem::take(&mut self.open));
    }
}

impl<'m> Walk<'m> {
    /// `cp.async`: bytes on their way until they are waited for.
    pub(in crate::walk) fn copy(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let decoded = self.decoded(instruction)?;
        let [to, from] = decoded.addresses.as_slice() else { return self.stop("no addresses") };
        let to = self.address(&instruction.operands[*to])?;
        let from = self.address(&instruction.operands[*from])?;
        let size = self.source(instruction, 0)?;
        let Value::Bits(Each::All(size)) = size else {
            return self.stop("a copy of no known size");
        };
        let kept = if decoded.sources.len() > 1 {
            let Value::Bits(kept) = self.source(instruction, 1)? else {
                return self.zero_filled(instruction, (&to, &from), size);
            };
            kept
        } else {
            Each::All(size)
        };
        if !kept.all(|kept| kept <= size) {
            return self.stop("a copy of more bytes than there is room for");
        }
        let under = self.under(instruction);
        let here = self.known(under.as_ref(), "a copy")?;
        if here.all(|here| !here) {
            return Ok(());
        }
        let to = self.shared_address(&to)?;
        let source = if kept.all(|kept| kept == 0) {
            None
        } else {
            self.unwritten(&from)?;
            Some(self.global_address(&from)?)
        };
        // Four bytes at a time: what is read may be narrower, and is then a part.
        for start in (0..size).step_by(4) {
            let value = match &source {
                Some(addresses) => self.leaf(addresses, start as i64, 4, under.as_ref())?,
                None => Value::Bits(Each::All(0)),
            };
            let atoms = value.atoms(&mut self.world.algebra, 4, self.threads);
            for thread in (0..self.threads).filter(|thread| here.at(*thread)) {
                let filled = start >= kept.at(thread);
                let cell = if filled { Cell::Bits(0) } else { Cell::Atom(atoms.at(thread)) };
                self.send(thread as u32, to.at(thread) + start, cell)?;
            }
        }
        Ok(())
    }

    /// Four bytes are under way.
    fn send(&mut self, thread: u32, address: u64, cell: Cell) -> Result<(), Stop> {
        if let Err(race) = self.shared.write(address, Cell::Copied, 4, thread) {
            return self.stop(race);
        }
        self.copies.open.push(Copy { thread, address, cell, bytes: 4 });
        Ok(())
    }

    /// A copy whose size depends on a condition: the memory there, or zeros.
    fn zero_filled(
        &mut self,
        instruction: &'m Instruction,
        (to, from): (&Pointer, &Pointer),
        size: u64,
    ) -> Result<(), Stop> {
        let kept = self.source(instruction, 1)?;
        let under = self.under(instruction);
        let here = self.known(under.as_ref(), "a copy")?;
        self.unwritten(from)?;
        let (to, from) = (self.shared_address(to)?, self.global_address(from)?);
        for start in (0..size).step_by(4) {
            let value = self.leaf(&from, start as i64, 4, under.as_ref())?;
            let filled = self.opaque("copied or zero", &[value, kept.clone()], &[4, 4], 4);
            let atoms = filled.atoms(&mut self.world.algebra, 4, self.threads);
            for thread in (0..self.threads).filter(|thread| here.at(*thread)) {
                self.send(thread as u32, to.at(thread) + start, Cell::Atom(atoms.at(thread)))?;
            }
        }
        Ok(())
    }

    /// What was waited for is there, for the thread that copied it.
    pub(in crate::walk) fn copy_wait(
        &mut self,
        instruction: &'m Instruction,
        all: bool,
    ) -> Result<(), Stop> {
        if self.path.is_some() {
            let path = self.path.clone();
            if !self.known(path.as_ref(), "a wait")?.all(|here| here) {
                return self.stop("a wait that not all threads do");
            }
        }
        let keep = if all {
            self.copies.commit();
            0
        } else {
            let keep = self.source(instruction, 0)?;
            let Value::Bits(Each::All(keep)) = keep else { return self.stop("an unknown wait") };
            keep as usize
        };
        while self.copies.groups.len() > keep {
            for copy in self.copies.groups.pop_front().unwrap_or_default() {
                let Copy { thread, address, cell, bytes } = copy;
                if let Err(race) = self.shared.arrive(address, cell, bytes, thread) {
                    return self.stop(race);
                }
            }
        }
        Ok(())
    }
}
