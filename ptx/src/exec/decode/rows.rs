//! Which row holds what: registers on first use, constants, special registers, addresses.

use rustc_hash::FxHashMap;

use super::DecodeError;
use crate::{
    exec::{
        program::VariableAddress,
        registers::{LANES, Mask, Registers, Slot},
    },
    ir::{Body, RegisterId, Scalar, Special},
};

/// Rows a kernel may have; 32 lanes of 8 bytes each, so 64 MiB a warp at most.
const MOST_ROWS: usize = 1 << 18;

#[derive(Default)]
pub(super) struct Rows {
    flags: Vec<Mask>,
    words: Vec<u32>,
    wides: Vec<u64>,
    /// By function and register.
    registers: FxHashMap<(usize, RegisterId), Slot>,
    constants: FxHashMap<(u32, u64), Slot>,
    specials: Vec<(Special, Slot)>,
    addresses: Vec<VariableAddress>,
}

/// What a program needs of the rows.
type Finished = (Registers, Vec<(Special, Slot)>, Vec<VariableAddress>);

impl Rows {
    /// Nothing yet: registers get a row when they are used.
    pub fn enter(&mut self, _function: usize, body: &Body) {
        self.registers.reserve(body.registers.len().min(MOST_ROWS));
    }

    /// A new row for a value of `bits` bits.
    pub fn fresh(&mut self, bits: u32, value: u64) -> Result<Slot, DecodeError> {
        let used = self.flags.len() + self.words.len() + self.wides.len();
        if used >= MOST_ROWS {
            return Err(DecodeError::TooManyRegisters(used + 1, MOST_ROWS));
        }
        Ok(match bits {
            1 => {
                self.flags.push(if value & 1 == 0 { 0 } else { Mask::MAX });
                Slot::Flag(self.flags.len() as u32 - 1)
            }
            2..=32 => {
                self.words.push(value as u32);
                Slot::Word(self.words.len() as u32 - 1)
            }
            33..=64 => {
                self.wides.push(value);
                Slot::Wide(self.wides.len() as u32 - 1)
            }
            _ => {
                self.wides.extend([value, 0]);
                Slot::Quad(self.wides.len() as u32 - 2)
            }
        })
    }

    pub fn register(
        &mut self,
        function: usize,
        body: &Body,
        id: RegisterId,
    ) -> Result<Slot, DecodeError> {
        if let Some(slot) = self.registers.get(&(function, id)) {
            return Ok(*slot);
        }
        let bits = body.registers.get(id.index()).map_or(32, |register| register.ty.bits());
        let slot = self.fresh(bits, 0)?;
        self.registers.insert((function, id), slot);
        Ok(slot)
    }

    /// The row of a constant of a type; the value is cut to its width.
    pub fn constant(&mut self, ty: Scalar, value: u64) -> Result<Slot, DecodeError> {
        let bits = ty.bits();
        let value = if bits < 64 { value & ((1 << bits) - 1) } else { value };
        // Narrow constants share the word rows: zero-extended, they are the same.
        let key = (bits.clamp(if bits == 1 { 1 } else { 32 }, 128), value);
        if let Some(slot) = self.constants.get(&key) {
            return Ok(*slot);
        }
        let slot = self.fresh(bits, value)?;
        self.constants.insert(key, slot);
        Ok(slot)
    }

    pub fn special(&mut self, special: Special, ty: Scalar) -> Result<Slot, DecodeError> {
        let wide = ty.bits() > 32;
        let known = self
            .specials
            .iter()
            .find(|(known, slot)| *known == special && matches!(slot, Slot::Wide(_)) == wide);
        if let Some((_, slot)) = known {
            return Ok(*slot);
        }
        let slot = self.fresh(if wide { 64 } else { 32 }, 0)?;
        self.specials.push((special, slot));
        Ok(slot)
    }

    /// The row of a module variable's address.
    pub fn address(&mut self, variable: usize, offset: i64) -> Result<Slot, DecodeError> {
        let known = self.addresses.iter().find(|a| a.variable == variable && a.offset == offset);
        if let Some(known) = known {
            return Ok(known.slot);
        }
        let slot = self.fresh(64, 0)?;
        self.addresses.push(VariableAddress { slot, variable, offset });
        Ok(slot)
    }

    pub fn finish(self) -> Result<Finished, DecodeError> {
        let registers = Registers {
            flags: self.flags,
            words: self.words.into_iter().map(|value| [value; LANES]).collect(),
            wides: self.wides.into_iter().map(|value| [value; LANES]).collect(),
            carry: 0,
        };
        Ok((registers, self.specials, self.addresses))
    }
}
