//! Operands to rows, by what the opcode's signature says of each position.

use super::{DecodeError, Decoder, Frame, refuse, storage::Place};
use crate::{
    exec::{
        alu,
        lane::{LaneStep, Operands},
        program::{Action, Address, Origin, Slots},
        registers::Slot,
    },
    ir::{
        Data, Instruction, IntUnary, Op, Operand, RegisterId, Role, Scalar, Space, Special,
        signature,
    },
    memory::space::SHARED_BASE,
};

/// An instruction's operands, by kind, each in the order of the text.
#[derive(Default, Debug)]
pub(super) struct Resolved {
    pub dst: Slots,
    pub src: Slots,
    /// How many rows each source operand of the text has.
    pub groups: Vec<usize>,
    pub addresses: Vec<ResolvedAddress>,
    /// Declared width of the first destination register, where it is wider than its type.
    pub declared: u8,
    pub clock: Option<Special>,
}

/// `[base+offset]`, with the space its symbol is in.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResolvedAddress {
    pub address: Address,
    pub place: Option<Place>,
}

impl Resolved {
    /// The rows of source operand `number`.
    pub fn source(&self, number: usize) -> Slots {
        let start = self.groups[..number.min(self.groups.len())].iter().sum::<usize>();
        let count = self.groups.get(number).copied().unwrap_or(0);
        self.src[start..start + count].iter().copied().collect()
    }

    /// The only row of source operand `number`.
    pub fn one(&self, number: usize) -> Option<Slot> {
        self.source(number).first().copied()
    }

    pub fn first_dst(&self) -> Slot {
        self.dst.first().copied().unwrap_or(Slot::Sink)
    }

    pub fn second_dst(&self) -> Slot {
        self.dst.get(1).copied().unwrap_or(Slot::Sink)
    }

    /// The only row of a source operand that the signature demands.
    pub fn source_or_sink(&self, number: usize) -> Slot {
        self.one(number).unwrap_or(Slot::Sink)
    }
}

impl<'m> Decoder<'m> {
    /// Checks the operands against the signature and gives each its rows.
    pub(super) fn resolve(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        origin: Origin,
    ) -> Result<Resolved, DecodeError> {
        let roles = signature(&instruction.op)
            .roles(&instruction.operands, &frame.body.registers)
            .map_err(|mismatch| refuse(instruction, mismatch.to_string()))?;
        let mut resolved = Resolved::default();
        for (operand, role) in instruction.operands.iter().zip(roles) {
            match role {
                Some(Role::Write(data)) => {
                    self.destination(frame, operand, data, &mut resolved)?;
                }
                Some(Role::WritePair(data)) => {
                    let pair = if let Operand::Pair(first, second) = operand {
                        [first.as_ref(), second.as_ref()]
                    } else {
                        [operand, &Operand::Sink]
                    };
                    for operand in pair {
                        self.destination(frame, operand, data, &mut resolved)?;
                    }
                }
                Some(Role::Read(data)) => {
                    self.source(frame, instruction, operand, data, &mut resolved)?;
                }
                Some(Role::Predicate) => {
                    let slot = self.predicate(frame, instruction, operand, origin)?;
                    resolved.src.push(slot);
                    resolved.groups.push(1);
                }
                Some(Role::Immediate(ty)) => {
                    let slot = self.value(frame, instruction, operand, ty, &mut resolved)?;
                    resolved.src.push(slot);
                    resolved.groups.push(1);
                }
                Some(Role::Address) => {
                    let address = self.address(frame, instruction, operand)?;
                    resolved.addresses.push(address);
                }
                Some(
                    Role::Label | Role::Table | Role::Returns | Role::Callee | Role::Arguments,
                )
                | None => {}
            }
        }
        Ok(resolved)
    }

    fn destination(
        &mut self,
        frame: &Frame<'m>,
        operand: &'m Operand,
        data: Data,
        resolved: &mut Resolved,
    ) -> Result<(), DecodeError> {
        let parts = parts(operand);
        for part in parts {
            // The signature lets registers and `_` through, and nothing else.
            let Operand::Register(id) = part else {
                resolved.dst.push(Slot::Sink);
                continue;
            };
            let bits = self.declared(frame, *id);
            let ty = data.piece(parts.len()).unwrap_or(data.ty);
            if resolved.dst.is_empty() && bits > ty.bits() {
                resolved.declared = bits.min(128) as u8;
            }
            let slot = self.rows.register(frame.index, frame.body, *id)?;
            resolved.dst.push(slot);
        }
        Ok(())
    }

    fn declared(&self, frame: &Frame<'m>, id: RegisterId) -> u32 {
        frame.body.registers.get(id.index()).map_or(0, |register| register.ty.bits())
    }

    fn source(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        operand: &'m Operand,
        data: Data,
        resolved: &mut Resolved,
    ) -> Result<(), DecodeError> {
        let parts = parts(operand);
        let ty = data.piece(parts.len()).unwrap_or(data.ty);
        for part in parts {
            let slot = self.value(frame, instruction, part, ty, resolved)?;
            resolved.src.push(slot);
        }
        resolved.groups.push(parts.len());
        Ok(())
    }

    /// The row of a value that is read.
    fn value(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        operand: &'m Operand,
        ty: Scalar,
        resolved: &mut Resolved,
    ) -> Result<Slot, DecodeError> {
        match operand {
            Operand::Register(id) => self.rows.register(frame.index, frame.body, *id),
            Operand::Int(value) => self.rows.constant(ty, integer(*value, ty)),
            Operand::Float32(bits) => match ty.bits() {
                32 => self.rows.constant(ty, u64::from(*bits)),
                64 => self.rows.constant(ty, f64::from(f32::from_bits(*bits)).to_bits()),
                _ => Err(misplaced(instruction, 32, ty)),
            },
            Operand::Float64(bits) => match ty.bits() {
                64 => self.rows.constant(ty, *bits),
                32 => {
                    let narrow = f64::from_bits(*bits) as f32;
                    self.rows.constant(ty, u64::from(narrow.to_bits()))
                }
                _ => Err(misplaced(instruction, 64, ty)),
            },
            Operand::Special(special) if is_clock(*special) => {
                resolved.clock = Some(*special);
                self.rows.constant(ty, 0)
            }
            Operand::Special(special) => self.rows.special(*special, ty),
            Operand::Symbol { name, offset } => self.symbol(frame, instruction, name, *offset, ty),
            Operand::Not(_)
            | Operand::Address { .. }
            | Operand::Vector(_)
            | Operand::Pair(..)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::Table(_)
            | Operand::List(_)
            | Operand::Bracket(_) => Err(refuse(instruction, "this operand is not a value")),
        }
    }

    /// The address of a symbol as a value.
    fn symbol(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        name: &str,
        offset: i64,
        ty: Scalar,
    ) -> Result<Slot, DecodeError> {
        let base = match self.storage.find(frame.index, name) {
            Some(Place::Local(at) | Place::Shared(at)) => at,
            Some(Place::DynamicShared) => self.dynamic_shared(),
            Some(Place::Module(variable)) => return self.rows.address(variable, offset),
            Some(Place::Param(_)) => {
                return Err(refuse(
                    instruction,
                    format!("the address of kernel parameter `{name}` is not executed"),
                ));
            }
            None => return Err(refuse(instruction, format!("`{name}` is not declared"))),
        };
        self.rows.constant(ty, u64::from(base).wrapping_add_signed(offset))
    }

    /// Where dynamic shared memory begins: all sized variables are known from the start.
    fn dynamic_shared(&self) -> u32 {
        SHARED_BASE + self.storage.shared_bytes.next_multiple_of(16)
    }

    fn predicate(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        operand: &'m Operand,
        origin: Origin,
    ) -> Result<Slot, DecodeError> {
        if let Operand::Register(id) = operand {
            return self.rows.register(frame.index, frame.body, *id);
        }
        let Operand::Not(id) = *operand else {
            return Err(refuse(instruction, "this operand is not a predicate"));
        };
        // A negated predicate gets a row of its own, computed just before.
        let source = self.rows.register(frame.index, frame.body, id)?;
        let target = self.rows.fresh(1, 0)?;
        let mut operands = Operands::default();
        operands.dst.push(target);
        operands.src.push(source);
        let step = lane(&NEGATE, operands).map_err(|reason| refuse(instruction, reason))?;
        self.push(origin, None, Action::Lane(step));
        if let Some(step) = self.steps.last_mut() {
            step.negates = true;
        }
        Ok(target)
    }

    fn address(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        operand: &'m Operand,
    ) -> Result<ResolvedAddress, DecodeError> {
        let Operand::Address { base, offset } = operand else {
            return Err(refuse(instruction, "this operand is not an address"));
        };
        let (slot, offset, place) = if let Operand::Register(id) = base.as_ref() {
            (self.rows.register(frame.index, frame.body, *id)?, *offset, None)
        } else if let Operand::Int(value) = base.as_ref() {
            (Slot::Sink, offset.wrapping_add(*value as i64), None)
        } else if let Operand::Symbol { name, offset: more } = base.as_ref() {
            self.variable_address(frame, instruction, name, offset.wrapping_add(*more))?
        } else {
            return Err(refuse(instruction, "this address is not understood"));
        };
        if matches!(slot, Slot::Flag(_) | Slot::Quad(_)) {
            return Err(refuse(instruction, "the base of an address is 32 or 64 bits wide"));
        }
        Ok(ResolvedAddress { address: Address { base: slot, offset }, place })
    }

    fn variable_address(
        &mut self,
        frame: &Frame<'m>,
        instruction: &'m Instruction,
        name: &str,
        offset: i64,
    ) -> Result<(Slot, i64, Option<Place>), DecodeError> {
        let place = self.storage.find(frame.index, name);
        let offset = |at: u32| offset.wrapping_add(i64::from(at));
        match place {
            Some(Place::Local(at) | Place::Shared(at) | Place::Param(at)) => {
                Ok((Slot::Sink, offset(at), place))
            }
            Some(Place::DynamicShared) => Ok((Slot::Sink, offset(self.dynamic_shared()), place)),
            Some(Place::Module(variable)) => {
                Ok((self.rows.address(variable, 0)?, offset(0), place))
            }
            None => Err(refuse(instruction, format!("`{name}` is not declared"))),
        }
    }

    /// The space an access goes to: a symbol knows better than `.param`.
    pub(super) fn space(&self, space: Space, address: &ResolvedAddress) -> Space {
        match (space, address.place) {
            (Space::Param, Some(Place::Local(_))) => Space::Local,
            (Space::Const, _) => Space::Global,
            (Space::Generic, Some(Place::Shared(_) | Place::DynamicShared)) => Space::Shared,
            (Space::Generic, Some(Place::Local(_))) => Space::Local,
            (other, _) => other,
        }
    }
}

/// What decoding adds for a negated predicate operand.
pub(crate) const NEGATE: Op = Op::IntUnary { op: IntUnary::Not, ty: Scalar::Pred };

/// A step for an opcode that works lane by lane.
pub(super) fn lane(op: &Op, operands: Operands) -> Result<LaneStep, String> {
    alu::lower(op, operands).map_err(|unsupported| unsupported.to_string())
}

/// The elements of `{a, b, …}`; a lone operand is its own.
fn parts(operand: &Operand) -> &[Operand] {
    if let Operand::Vector(parts) = operand { parts } else { std::slice::from_ref(operand) }
}

fn misplaced(instruction: &Instruction, bits: u32, ty: Scalar) -> DecodeError {
    refuse(instruction, format!("a {bits}-bit literal where .{ty} is needed"))
}

/// Special registers that change while a kernel runs.
fn is_clock(special: Special) -> bool {
    use Special::*;
    matches!(special, Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi)
}

/// An integer literal at a position of a type; floats take integers as values.
fn integer(value: u64, ty: Scalar) -> u64 {
    if ty == Scalar::F32 {
        u64::from((value as i64 as f32).to_bits())
    } else if ty == Scalar::F64 {
        (value as i64 as f64).to_bits()
    } else {
        value
    }
}
