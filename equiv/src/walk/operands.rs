//! Reading and writing operands.

use bitstable_ptx::{
    exec::{
        lane::LaneStep,
        registers::{Registers, Slot},
    },
    ir::{Instruction, Operand, Scalar, Special},
};
use smallvec::SmallVec;

use super::{Stop, Variable, Walk, control::register_bytes, decode::Target};
use crate::{
    each::Each,
    linear::Linear,
    value::{Value, parts},
};

impl<'m> Walk<'m> {
    /// A source operand; a vector's parts are joined.
    pub(super) fn read(&mut self, operand: &Operand, ty: Scalar) -> Result<Value, Stop> {
        match operand {
            Operand::Register(register) => Ok(self.registers[register.index()].clone()),
            Operand::Not(register) => {
                let value = self.registers[register.index()].clone();
                Ok(self.negated(&value))
            }
            Operand::Int(bits) => Ok(Value::Bits(Each::All(bits & mask(ty.bits())))),
            Operand::Float32(bits) => Ok(Value::Bits(Each::All(float_literal(
                f64::from(f32::from_bits(*bits)),
                u64::from(*bits),
                ty,
            )))),
            Operand::Float64(bits) => {
                Ok(Value::Bits(Each::All(float_literal(f64::from_bits(*bits), *bits, ty))))
            }
            Operand::Special(special) => self.special(*special),
            Operand::Symbol { name, offset } => self.address_of(name, *offset),
            Operand::Vector(parts_read) => {
                let each = ty.bits() / parts_read.len().max(1) as u32;
                let of = |bits| bitstable_ptx::ir::signature::untyped(bits).unwrap_or(ty);
                let ty = of(each);
                let mut values = Vec::with_capacity(parts_read.len());
                for part in parts_read {
                    values.push(self.read(part, ty)?);
                }
                Ok(parts(values, register_bytes(each)))
            }
            Operand::Address { .. }
            | Operand::Pair(..)
            | Operand::Sink
            | Operand::Label(_)
            | Operand::Table(_)
            | Operand::List(_)
            | Operand::Bracket(_) => self.stop("an operand that is not followed"),
        }
    }

    fn special(&mut self, special: Special) -> Result<Value, Stop> {
        let [x, y, z] = self.block;
        let threads = self.threads;
        let numbers = |f: &dyn Fn(u32) -> u32| {
            Ok(Value::Bits(Each::from_fn(threads, |thread| u64::from(f(thread as u32)))))
        };
        match special {
            Special::Tid(0) => numbers(&|thread| thread % x),
            Special::Tid(1) => numbers(&|thread| thread / x % y),
            Special::Tid(_) => numbers(&|thread| thread / x / y % z.max(1)),
            Special::Ntid(axis) => Ok(Value::Bits(Each::All(u64::from(
                *self.block.get(usize::from(axis)).unwrap_or(&1),
            )))),
            Special::LaneId => numbers(&|thread| thread % 32),
            Special::Ctaid(axis) => match self.cta {
                Some(cta) => Ok(Value::Bits(Each::All(u64::from(cta[usize::from(axis.min(2))])))),
                None => Ok(self.symbol(&format!("ctaid.{axis}"))),
            },
            Special::Nctaid(axis) => match self.launch.grid {
                Some(grid) => Ok(Value::Bits(Each::All(u64::from(grid[usize::from(axis.min(2))])))),
                None => Ok(self.symbol(&format!("nctaid.{axis}"))),
            },
            Special::LaneMaskEq => numbers(&|thread| 1 << (thread % 32)),
            Special::LaneMaskLt => numbers(&|thread| (1u32 << (thread % 32)) - 1),
            Special::LaneMaskLe => numbers(&|thread| u32::MAX >> (31 - thread % 32)),
            Special::LaneMaskGt => numbers(&|thread| !(u32::MAX >> (31 - thread % 32))),
            Special::LaneMaskGe => numbers(&|thread| !((1u32 << (thread % 32)) - 1)),
            Special::WarpId
            | Special::NWarpId
            | Special::SmId
            | Special::NSmId
            | Special::GridId
            | Special::Clock
            | Special::ClockHi
            | Special::Clock64
            | Special::GlobalTimer
            | Special::GlobalTimerLo
            | Special::GlobalTimerHi
            | Special::ClusterId(_)
            | Special::NClusterId(_)
            | Special::ClusterCtaId(_)
            | Special::ClusterNCtaId(_)
            | Special::ClusterCtaRank
            | Special::ClusterNCtaRank
            | Special::IsExplicitCluster
            | Special::TotalSmemSize
            | Special::DynamicSmemSize => self.stop("a special register that is not followed"),
        }
    }

    /// A number that all threads share, known by name.
    pub(super) fn symbol(&mut self, name: &str) -> Value {
        let body = self.world.algebra.symbol(name);
        Value::Linear(std::rc::Rc::new(Linear::symbol(body)))
    }

    fn address_of(&mut self, name: &str, offset: i64) -> Result<Value, Stop> {
        match self.variables.get(name).copied() {
            Some(Variable::Shared(address)) => {
                Ok(Value::Bits(Each::All(address.wrapping_add(offset as u64))))
            }
            Some(Variable::Module(number)) => {
                let variable = &self.module.variables[number];
                // Named by its contents: kernels with one table read the same values from it.
                let text = format!("table {:?}", variable.initial);
                let value = self.symbol(&text);
                Ok(self.plus(&value, offset))
            }
            Some(Variable::Parameter(_)) | None => {
                self.stop(format!("the address of `{name}` is not followed"))
            }
        }
    }

    pub(super) fn plus(&self, value: &Value, offset: i64) -> Value {
        if offset == 0 {
            return value.clone();
        }
        let number = Linear::number(Each::All(offset));
        match value.linear(64).and_then(|linear| linear.combine(&number, 1)) {
            Some(sum) => Value::of_linear(sum, 64),
            None => Value::Undefined,
        }
    }

    /// Source operand `number`, as its position's type.
    pub(super) fn source(
        &mut self,
        instruction: &Instruction,
        number: usize,
    ) -> Result<Value, Stop> {
        let decoded = self.decoded(instruction)?;
        let Some(source) = decoded.sources.get(number) else {
            return self.stop("an operand is missing");
        };
        self.read(&instruction.operands[source.operand], source.ty)
    }

    /// Writes a register, where the guard allows.
    pub(super) fn write(&mut self, target: Target, value: Value, guard: Option<&Value>) {
        let Some(register) = target else { return };
        let at = register.index();
        self.registers[at] = match guard {
            None => value,
            Some(guard) => {
                let bytes = register_bytes(self.body.registers[at].ty.bits());
                let old = std::mem::replace(&mut self.registers[at], Value::Undefined);
                self.selected(guard, &value, &old, bytes)
            }
        };
    }

    /// The instruction's own guard, without the path: registers of other ways are chosen later.
    pub(super) fn own_guard(&mut self, instruction: &Instruction) -> Option<Value> {
        let guard = instruction.guard?;
        let value = self.registers[guard.register.index()].clone();
        Some(if guard.negated { self.negated(&value) } else { value })
    }

    /// Runs the executor's function on numbers.
    pub(super) fn numbers(
        &mut self,
        step: &LaneStep,
        sources: &[&Each<u64>],
    ) -> SmallVec<[Each<u64>; 2]> {
        let uniform = sources.iter().all(|bits| bits.uniform().is_some());
        let lanes = if uniform { 1 } else { self.threads };
        let mut registers = scratch(step);
        let mut out: SmallVec<[Vec<u64>; 2]> =
            step.operands.dst.iter().map(|_| Vec::new()).collect();
        for start in (0..lanes).step_by(32) {
            let width = (lanes - start).min(32);
            for (slot, bits) in step.operands.src.iter().zip(sources) {
                for lane in 0..width {
                    registers.set_lane(*slot, lane, bits.at(start + lane));
                }
            }
            let mask = if width == 32 { u32::MAX } else { (1 << width) - 1 };
            (step.run)(&mut registers, &step.operands, mask);
            for (slot, values) in step.operands.dst.iter().zip(&mut out) {
                values.extend((0..width).map(|lane| registers.lane(*slot, lane)));
            }
        }
        let whole = |values: Vec<u64>| {
            if uniform { Each::All(values[0]) } else { Each::gathered(values.into()) }
        };
        out.into_iter().map(whole).collect()
    }
}

/// Rows enough for an instruction.
fn scratch(step: &LaneStep) -> Registers {
    let rows = step.operands.src.len() + step.operands.dst.len();
    Registers {
        flags: vec![0; rows],
        words: vec![[0; 32]; rows],
        wides: vec![[0; 32]; rows],
        carry: 0,
    }
}

fn mask(bits: u32) -> u64 {
    if bits >= 64 { u64::MAX } else { (1 << bits) - 1 }
}

/// A literal in the operand's own format.
fn float_literal(value: f64, bits: u64, ty: Scalar) -> u64 {
    if ty == Scalar::F32 {
        u64::from((value as f32).to_bits())
    } else if ty == Scalar::F64 {
        value.to_bits()
    } else {
        bits & mask(ty.bits())
    }
}

/// Whether a slot holds anything; a sink does not.
pub(super) fn holds(slot: Slot) -> bool {
    slot != Slot::Sink
}
