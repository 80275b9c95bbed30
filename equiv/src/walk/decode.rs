//! What an instruction's operands are, found once.

use std::rc::Rc;

use bitstable_ptx::{
    exec::{
        alu,
        lane::{LaneStep, Operands},
        registers::Slot,
    },
    ir::{Instruction, Operand, RegisterId, Role, Scalar, Shape, signature},
};
use smallvec::SmallVec;

use super::{Stop, Walk};

/// A register that is written; `None`: `_`.
pub(super) type Target = Option<RegisterId>;

#[derive(Clone, Debug, Default)]
pub(super) struct Decoded {
    /// Written values, a list of registers each.
    pub targets: SmallVec<[SmallVec<[Target; 4]>; 2]>,
    /// Read values: operands and the type of each.
    pub sources: SmallVec<[Source; 4]>,
    /// Position of the address, among operands.
    pub addresses: SmallVec<[usize; 2]>,
    /// The executor's function, for numbers.
    pub step: Option<LaneStep>,
}

#[derive(Clone, Debug)]
pub(super) struct Source {
    /// Positions of the operand; a vector's parts are read in order.
    pub operand: usize,
    pub ty: Scalar,
}

impl<'m> Walk<'m> {
    /// The operands of an instruction, as its signature orders them.
    pub(super) fn decoded(&mut self, instruction: &Instruction) -> Result<Rc<Decoded>, Stop> {
        if let Some(known) = &self.decoded[self.pc] {
            return Ok(known.clone());
        }
        let fresh = Rc::new(self.decode(instruction)?);
        self.decoded[self.pc] = Some(fresh.clone());
        Ok(fresh)
    }

    fn decode(&self, instruction: &Instruction) -> Result<Decoded, Stop> {
        let roles = signature(&instruction.op).roles(&instruction.operands, &self.body.registers);
        let roles = match roles {
            Ok(roles) => roles,
            Err(mismatch) => return self.stop(mismatch.to_string()),
        };
        let mut decoded = Decoded::default();
        for (at, (operand, role)) in instruction.operands.iter().zip(roles).enumerate() {
            match role {
                Some(Role::Write(data)) => {
                    decoded.targets.push(targets(operand));
                    debug_assert!(data.shape != Shape::One || decoded.targets.len() < 9);
                }
                Some(Role::WritePair(_)) => {
                    if let Operand::Pair(first, second) = operand {
                        decoded.targets.push(targets(first));
                        decoded.targets.push(targets(second));
                    } else {
                        decoded.targets.push(targets(operand));
                    }
                }
                Some(Role::Read(data)) => {
                    decoded.sources.push(Source { operand: at, ty: data.ty });
                }
                Some(Role::Predicate) => {
                    decoded.sources.push(Source { operand: at, ty: Scalar::Pred });
                }
                Some(Role::Immediate(ty)) => decoded.sources.push(Source { operand: at, ty }),
                Some(Role::Address) => decoded.addresses.push(at),
                Some(
                    Role::Label | Role::Table | Role::Returns | Role::Callee | Role::Arguments,
                )
                | None => {}
            }
        }
        decoded.step = self.step_of(instruction, &decoded);
        Ok(decoded)
    }

    /// The executor's function on rows of its own: sources first, then destinations.
    fn step_of(&self, instruction: &Instruction, decoded: &Decoded) -> Option<LaneStep> {
        let mut rows = Rows::default();
        let mut operands = Operands::default();
        for source in &decoded.sources {
            let operand = &instruction.operands[source.operand];
            if matches!(operand, Operand::Vector(_)) {
                return None;
            }
            operands.src.push(rows.next(self.operand_bits(operand, source.ty)));
        }
        for targets in &decoded.targets {
            let [target] = targets.as_slice() else { return None };
            operands.dst.push(match target {
                Some(register) => rows.next(self.body.registers[register.index()].ty.bits()),
                None => Slot::Sink,
            });
        }
        if let Some(Some(register)) = decoded.targets.first().and_then(|targets| targets.first())
            && let bitstable_ptx::ir::Op::Cvt { to, .. } = &instruction.op
        {
            let declared = self.body.registers[register.index()].ty.bits();
            operands.declared = if declared > to.bits() { declared as u8 } else { 0 };
        }
        alu::lower(&instruction.op, operands).ok()
    }

    /// Bits of the row that an operand is read from.
    pub(super) fn operand_bits(&self, operand: &Operand, ty: Scalar) -> u32 {
        match operand {
            Operand::Register(register) | Operand::Not(register) => {
                self.body.registers[register.index()].ty.bits()
            }
            Operand::Special(_)
            | Operand::Int(_)
            | Operand::Float32(_)
            | Operand::Float64(_)
            | Operand::Symbol { .. }
            | Operand::Address { .. }
            | Operand::Vector(_)
            | Operand::Pair(..)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::Table(_)
            | Operand::List(_)
            | Operand::Bracket(_) => ty.bits(),
        }
    }
}

fn targets(operand: &Operand) -> SmallVec<[Target; 4]> {
    let one = |operand: &Operand| {
        if let Operand::Register(register) = operand { Some(*register) } else { None }
    };
    if let Operand::Vector(parts) = operand {
        parts.iter().map(one).collect()
    } else {
        smallvec::smallvec![one(operand)]
    }
}

/// Hands out rows by width.
#[derive(Default)]
struct Rows {
    flags: u32,
    words: u32,
    wides: u32,
}

impl Rows {
    fn next(&mut self, bits: u32) -> Slot {
        let (count, slot): (&mut u32, fn(u32) -> Slot) = match bits {
            1 => (&mut self.flags, Slot::Flag),
            2..=32 => (&mut self.words, Slot::Word),
            _ => (&mut self.wides, Slot::Wide),
        };
        *count += 1;
        slot(*count - 1)
    }
}
