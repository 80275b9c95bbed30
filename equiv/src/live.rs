//! Which registers a block needs from those before it.

use bitstable_ptx::ir::{Body, Instruction, Operand, RegisterId, Role, signature};
use smallvec::SmallVec;

use crate::flow::Flow;

/// A set of registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Registers(Vec<u64>);

impl Registers {
    fn new(count: usize) -> Self {
        Self(vec![0; count.div_ceil(64)])
    }

    pub fn contains(&self, register: usize) -> bool {
        self.0[register / 64] >> (register % 64) & 1 == 1
    }

    fn insert(&mut self, register: usize) {
        self.0[register / 64] |= 1 << (register % 64);
    }

    fn remove(&mut self, register: usize) {
        self.0[register / 64] &= !(1 << (register % 64));
    }

    /// Whether anything was new.
    fn extend(&mut self, other: &Self) -> bool {
        let mut grown = false;
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            grown |= *more & !*own != 0;
            *own |= more;
        }
        grown
    }
}

/// Registers that each block reads before it writes them, or passes on to one that does.
pub fn live_in(body: &Body, flow: &Flow) -> Vec<Registers> {
    let count = body.registers.len();
    let mut live = vec![Registers::new(count); flow.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for (number, block) in flow.blocks.iter().enumerate().rev() {
            let mut here = Registers::new(count);
            for next in &block.next {
                if let Some(next) = live.get(*next) {
                    here.extend(next);
                }
            }
            for instruction in body.instructions[block.start..block.end].iter().rev() {
                let Accesses { reads, writes } = accesses(body, instruction);
                // A guarded write may leave what was there.
                if instruction.guard.is_none() {
                    writes.iter().for_each(|register| here.remove(register.index()));
                } else {
                    writes.iter().for_each(|register| here.insert(register.index()));
                }
                reads.iter().for_each(|register| here.insert(register.index()));
            }
            changed |= live[number].extend(&here);
        }
    }
    live
}

/// Registers that any of the blocks writes.
pub fn written(body: &Body, flow: &Flow, blocks: &[usize]) -> Registers {
    let mut all = Registers::new(body.registers.len());
    for block in blocks {
        let block = &flow.blocks[*block];
        for instruction in &body.instructions[block.start..block.end] {
            for register in accesses(body, instruction).writes {
                all.insert(register.index());
            }
        }
    }
    all
}

struct Accesses {
    reads: SmallVec<[RegisterId; 8]>,
    writes: SmallVec<[RegisterId; 8]>,
}

fn accesses(body: &Body, instruction: &Instruction) -> Accesses {
    let mut found = Accesses { reads: SmallVec::new(), writes: SmallVec::new() };
    found.reads.extend(instruction.guard.map(|guard| guard.register));
    let roles = signature(&instruction.op).roles(&instruction.operands, &body.registers);
    let roles = roles.unwrap_or_default();
    for (at, operand) in instruction.operands.iter().enumerate() {
        let written = matches!(
            roles.get(at),
            Some(Some(Role::Write(_) | Role::WritePair(_) | Role::Returns))
        );
        registers(operand, if written { &mut found.writes } else { &mut found.reads });
    }
    found
}

fn registers(operand: &Operand, out: &mut SmallVec<[RegisterId; 8]>) {
    match operand {
        Operand::Register(register) | Operand::Not(register) => out.push(*register),
        Operand::Address { base, .. } => registers(base, out),
        Operand::Vector(all) | Operand::List(all) | Operand::Bracket(all) => {
            all.iter().for_each(|part| registers(part, out));
        }
        Operand::Pair(first, second) => {
            registers(first, out);
            registers(second, out);
        }
        Operand::Special(_)
        | Operand::Int(_)
        | Operand::Float32(_)
        | Operand::Float64(_)
        | Operand::Symbol { .. }
        | Operand::Sink
        | Operand::Label(_)
        | Operand::Table(_) => {}
    }
}
