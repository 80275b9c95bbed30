//! One change of a kernel: which kinds there are, where each is possible, and the changed kernel.
//!
//! # Invariants
//! - **C1** A change is made of instructions replaced by others; labels stay where they were.
//! # Not here
//! Whether the result is a kernel: the executor refuses what is none.

use bitstable_ptx::{
    ir::{
        Body, FloatBinary, FloatMode, Instruction, Module, Op, Operand, Register, RegisterId, Role,
        Round, Scalar, Special, signature,
    },
    syntax::print_instruction,
};

use super::{ops, random::Random};

/// Instructions, by their number, and what stands in the place of each.
pub struct Change {
    pub kind: &'static str,
    replaced: Vec<(usize, Vec<Instruction>)>,
    registers: Vec<Register>,
}

pub type Find = fn(&Body, usize, &mut Random) -> Option<Change>;

/// All kinds, and what makes one at an instruction.
pub const KINDS: [(&str, Find); 27] = [
    ("operands swapped", |b, at, r| edited(b, at, |i| swapped(b, i, r))),
    ("another register", |b, at, r| edited(b, at, |i| renamed(b, at, i, r))),
    ("another number", |b, at, r| edited(b, at, |i| renumbered(b, i, r))),
    ("another offset", |b, at, r| edited(b, at, |i| offset(i, r))),
    ("shuffle mask", |b, at, r| edited(b, at, |i| mask(i, r))),
    ("rounding dropped", |b, at, r| reworked(b, at, r, ops::rounding_dropped)),
    ("another rounding", |b, at, r| reworked(b, at, r, ops::rounding)),
    ("flushing", |b, at, r| reworked(b, at, r, ops::flushing)),
    ("clamping", |b, at, r| reworked(b, at, r, ops::clamping)),
    ("another operation", |b, at, r| reworked(b, at, r, ops::operation)),
    ("another comparison", |b, at, r| reworked(b, at, r, ops::comparison)),
    ("another type", |b, at, r| reworked(b, at, r, ops::kind)),
    ("another variant", |b, at, r| reworked(b, at, r, ops::variant)),
    ("contracted", contracted),
    ("split", split),
    ("barrier dropped", |b, at, _| barrier(b, at).then(|| replacing(vec![(at, vec![])]))),
    ("barrier moved", |b, at, r| if barrier(b, at) { moved(b, at, r) } else { None }),
    ("instruction moved", moved),
    ("instruction dropped", |_, at, _| Some(replacing(vec![(at, vec![])]))),
    ("guard dropped", |b, at, _| edited(b, at, |i| i.guard.take().is_some())),
    ("guard turned", |b, at, _| {
        edited(b, at, |i| {
            i.guard.as_mut().is_some_and(|guard| {
                guard.negated = !guard.negated;
                true
            })
        })
    }),
    ("another guard", |b, at, r| edited(b, at, |i| reguarded(b, at, i, r))),
    ("stores exchanged", stores),
    ("fragment swapped", |b, at, r| edited(b, at, |i| fragment(i, r))),
    ("another parameter", |b, at, r| edited(b, at, |i| parameter(b, i, r))),
    ("another thread index", |b, at, r| edited(b, at, |i| special(i, r))),
    ("another target", |b, at, r| edited(b, at, |i| target(b, at, i, r))),
];

/// A change somewhere, of any kind that is possible.
pub fn change(body: &Body, random: &mut Random) -> Option<Change> {
    for _ in 0..64 {
        let (kind, find) = KINDS[random.below(KINDS.len())];
        let start = random.below(body.instructions.len());
        for step in 0..body.instructions.len() {
            let at = (start + step) % body.instructions.len();
            if let Some(change) = find(body, at, random) {
                return Some(Change { kind, ..change });
            }
        }
    }
    None
}

impl Change {
    /// The changed kernel.
    pub fn apply(&self, module: &Module) -> Module {
        let mut module = module.clone();
        let Some(body) = entry(&mut module) else { return module };
        body.registers.extend(self.registers.iter().cloned());
        let old = std::mem::take(&mut body.instructions);
        let mut starts = Vec::with_capacity(old.len() + 1);
        for (at, instruction) in old.into_iter().enumerate() {
            starts.push(body.instructions.len() as u32);
            match self.replaced.iter().find(|(place, _)| *place == at) {
                Some((_, new)) => body.instructions.extend(new.iter().cloned()),
                None => body.instructions.push(instruction),
            }
        }
        starts.push(body.instructions.len() as u32);
        for label in &mut body.labels {
            label.at = starts[label.at as usize];
        }
        module
    }

    /// Lines before and after.
    pub fn describe(&self, body: &Body) -> String {
        let mut after = body.clone();
        after.registers.extend(self.registers.iter().cloned());
        let mut text = self.kind.to_owned();
        for (at, new) in &self.replaced {
            let old = &body.instructions[*at];
            text += &format!("\n  line {}: {}", old.at.line, print_instruction(body, old));
            for instruction in new {
                text += &format!("\n        now: {}", print_instruction(&after, instruction));
            }
        }
        text
    }
}

/// The body of the one kernel.
pub fn entry(module: &mut Module) -> Option<&mut Body> {
    module.functions.iter_mut().find(|function| function.entry)?.body.as_mut()
}

fn replacing(replaced: Vec<(usize, Vec<Instruction>)>) -> Change {
    Change { kind: "", replaced, registers: Vec::new() }
}

fn edited(body: &Body, at: usize, edit: impl FnOnce(&mut Instruction) -> bool) -> Option<Change> {
    let mut instruction = body.instructions[at].clone();
    let changed = edit(&mut instruction) && instruction != body.instructions[at];
    changed.then(|| replacing(vec![(at, vec![instruction])]))
}

fn reworked(
    body: &Body,
    at: usize,
    random: &mut Random,
    rework: fn(&Op, &mut Random) -> Option<Op>,
) -> Option<Change> {
    let op = rework(&body.instructions[at].op, random)?;
    edited(body, at, |instruction| {
        instruction.op = op;
        true
    })
}

/// Positions that are read.
fn read(body: &Body, instruction: &Instruction) -> Vec<usize> {
    let roles = signature(&instruction.op).roles(&instruction.operands, &body.registers);
    let Ok(roles) = roles else { return Vec::new() };
    let reads = |role: &Option<Role>| {
        matches!(role, Some(Role::Read(_) | Role::Predicate | Role::Immediate(_) | Role::Address))
    };
    (0..instruction.operands.len()).filter(|at| roles.get(*at).is_some_and(reads)).collect()
}

/// Registers that an instruction writes.
fn written(body: &Body, instruction: &Instruction) -> Vec<RegisterId> {
    let reads = read(body, instruction);
    let mut found = Vec::new();
    for (at, operand) in instruction.operands.iter().enumerate() {
        if !reads.contains(&at) {
            leaves(&mut operand.clone(), &mut |leaf| {
                if let Operand::Register(register) = leaf {
                    found.push(*register);
                }
            });
        }
    }
    found
}

/// Every operand that is not made of others.
fn leaves(operand: &mut Operand, visit: &mut dyn FnMut(&mut Operand)) {
    match operand {
        Operand::Vector(all) | Operand::List(all) | Operand::Bracket(all) => {
            all.iter_mut().for_each(|one| leaves(one, visit));
        }
        Operand::Pair(a, b) => {
            leaves(a, visit);
            leaves(b, visit);
        }
        Operand::Address { base, .. } => leaves(base, visit),
        leaf => visit(leaf),
    }
}

/// Changes one leaf of what is read, of those that `wanted` takes.
fn one_leaf(
    body: &Body,
    instruction: &mut Instruction,
    random: &mut Random,
    wanted: impl Fn(&Operand) -> bool,
    edit: impl FnOnce(&mut Operand, &mut Random) -> bool,
) -> bool {
    let reads = read(body, instruction);
    let mut count = 0;
    for at in &reads {
        leaves(&mut instruction.operands[*at], &mut |leaf| count += usize::from(wanted(leaf)));
    }
    if count == 0 {
        return false;
    }
    let chosen = random.below(count);
    let (mut number, mut edit, mut done) = (0, Some(edit), false);
    for at in reads {
        leaves(&mut instruction.operands[at], &mut |leaf| {
            if !wanted(leaf) {
                return;
            }
            if number == chosen
                && let Some(edit) = edit.take()
            {
                done = edit(leaf, random);
            }
            number += 1;
        });
    }
    done
}

fn swapped(body: &Body, instruction: &mut Instruction, random: &mut Random) -> bool {
    let reads = read(body, instruction);
    let reads: Vec<usize> = reads
        .into_iter()
        .filter(|at| !matches!(instruction.operands[*at], Operand::Address { .. }))
        .collect();
    if reads.len() < 2 {
        return false;
    }
    let first = random.below(reads.len());
    let second = (first + 1 + random.below(reads.len() - 1)) % reads.len();
    instruction.operands.swap(reads[first], reads[second]);
    true
}

/// A register of this type that was written before.
fn other(body: &Body, at: usize, register: RegisterId, random: &mut Random) -> Option<RegisterId> {
    let ty = body.registers[register.index()].ty;
    let before = body.instructions[..at].iter().flat_map(|one| written(body, one));
    let same: Vec<RegisterId> = before
        .filter(|other| *other != register && body.registers[other.index()].ty == ty)
        .collect();
    // Near ones are alike, and more often the same to a checker that is wrong.
    let near = &same[same.len().saturating_sub(6)..];
    let from = if random.chance(2) { near } else { &same };
    random.pick(from).copied()
}

fn renamed(body: &Body, at: usize, instruction: &mut Instruction, random: &mut Random) -> bool {
    let register = |leaf: &Operand| matches!(leaf, Operand::Register(_) | Operand::Not(_));
    one_leaf(body, instruction, random, register, |leaf, random| {
        let (Operand::Register(register) | Operand::Not(register)) = leaf else { return false };
        match other(body, at, *register, random) {
            Some(other) => {
                *register = other;
                true
            }
            None => false,
        }
    })
}

fn target(body: &Body, at: usize, instruction: &mut Instruction, random: &mut Random) -> bool {
    let targets = written(body, instruction);
    let Some(old) = random.pick(&targets).copied() else { return false };
    let Some(new) = other(body, at, old, random) else { return false };
    for operand in &mut instruction.operands {
        leaves(operand, &mut |leaf| {
            if *leaf == Operand::Register(old) {
                *leaf = Operand::Register(new);
            }
        });
    }
    true
}

fn renumbered(body: &Body, instruction: &mut Instruction, random: &mut Random) -> bool {
    let number = |leaf: &Operand| {
        matches!(leaf, Operand::Int(_) | Operand::Float32(_) | Operand::Float64(_))
    };
    one_leaf(body, instruction, random, number, |leaf, random| {
        match leaf {
            Operand::Int(bits) => *bits = integer(*bits, random),
            Operand::Float32(bits) => *bits ^= 1 << [0, 1, 22, 23, 24, 30, 31][random.below(7)],
            Operand::Float64(bits) => *bits ^= 1 << [0, 51, 52, 53, 62, 63][random.below(6)],
            _ => return false,
        }
        true
    })
}

fn integer(bits: u64, random: &mut Random) -> u64 {
    match random.below(8) {
        0 => bits.wrapping_add(1),
        1 => bits.wrapping_sub(1),
        2 => bits.wrapping_mul(2),
        3 => bits >> 1,
        4 => bits.wrapping_neg(),
        5 => bits ^ 1 << random.below(32),
        6 => 0,
        _ => bits ^ 1 << random.below(6),
    }
}

fn offset(instruction: &mut Instruction, random: &mut Random) -> bool {
    if let Op::Ld { space: bitstable_ptx::ir::Space::Param, .. } = instruction.op {
        return false;
    }
    let steps = [-16, -8, -4, -2, -1, 1, 2, 4, 8, 16, 32, 64, 128, 512];
    for operand in &mut instruction.operands {
        if let Operand::Address { offset, .. } = operand {
            *offset += steps[random.below(steps.len())];
            return true;
        }
    }
    false
}

fn mask(instruction: &mut Instruction, random: &mut Random) -> bool {
    if !matches!(instruction.op, Op::Shfl { .. }) {
        return false;
    }
    match instruction.operands.get_mut(2 + random.below(3)) {
        Some(Operand::Int(bits)) => {
            let most = if random.chance(3) { 13 } else { 5 };
            *bits ^= 1 << random.below(most);
            true
        }
        _ => false,
    }
}

fn fragment(instruction: &mut Instruction, random: &mut Random) -> bool {
    let matrix = matches!(
        instruction.op,
        Op::Mma { .. }
            | Op::Ldmatrix { .. }
            | Op::Stmatrix { .. }
            | Op::Ld { .. }
            | Op::St { .. }
            | Op::Mov { .. }
    );
    let vectors = instruction.operands.iter_mut().filter_map(|operand| match operand {
        Operand::Vector(parts) if parts.len() > 1 => Some(parts),
        _ => None,
    });
    let mut vectors: Vec<&mut Vec<Operand>> = vectors.collect();
    if !matrix || vectors.is_empty() {
        return false;
    }
    let chosen = random.below(vectors.len());
    let parts = &mut vectors[chosen];
    let (first, second) = (random.below(parts.len()), random.below(parts.len()));
    parts.swap(first, second);
    true
}

fn parameter(body: &Body, instruction: &mut Instruction, random: &mut Random) -> bool {
    let Op::Ld { space: bitstable_ptx::ir::Space::Param, ty, .. } = &instruction.op else {
        return false;
    };
    let alike = body.instructions.iter().filter(
        |one| matches!(&one.op, Op::Ld { space: bitstable_ptx::ir::Space::Param, ty: own, .. } if own == ty),
    );
    let all: Vec<&Operand> = alike.map(|one| &one.operands[1]).collect();
    let Some(other) = random.pick(&all) else { return false };
    instruction.operands[1] = (*other).clone();
    true
}

fn special(instruction: &mut Instruction, random: &mut Random) -> bool {
    let all = [
        Special::Tid(0),
        Special::Tid(1),
        Special::Ctaid(0),
        Special::Ctaid(1),
        Special::Nctaid(0),
        Special::Ntid(0),
        Special::LaneId,
    ];
    let mut specials = instruction.operands.iter_mut().filter_map(|operand| match operand {
        Operand::Special(special) => Some(special),
        _ => None,
    });
    let Some(special) = specials.next() else { return false };
    *special = all[random.below(all.len())];
    true
}

fn reguarded(body: &Body, at: usize, instruction: &mut Instruction, random: &mut Random) -> bool {
    let Some(guard) = &mut instruction.guard else { return false };
    let Some(other) = other(body, at, guard.register, random) else { return false };
    guard.register = other;
    true
}

fn barrier(body: &Body, at: usize) -> bool {
    matches!(
        body.instructions[at].op,
        Op::Bar { .. } | Op::BarWarp | Op::CpAsyncWait { .. } | Op::CpAsyncCommit
    )
}

/// An instruction, up to twelve places from where it was.
fn moved(body: &Body, at: usize, random: &mut Random) -> Option<Change> {
    let by = 1 + random.below(12);
    let to = if random.chance(2) { at.checked_sub(by)? } else { at + by };
    let there = body.instructions.get(to)?.clone();
    let here = body.instructions[at].clone();
    let both = if to < at { vec![here, there] } else { vec![there, here] };
    Some(replacing(vec![(at, vec![]), (to, both)]))
}

/// Two stores' values.
fn stores(body: &Body, at: usize, random: &mut Random) -> Option<Change> {
    let store = |one: &Instruction| matches!(one.op, Op::St { .. });
    let first = &body.instructions[at];
    let alike = |other: &usize| {
        let other = &body.instructions[*other];
        store(other) && other.op == first.op
    };
    if !store(first) {
        return None;
    }
    let all: Vec<usize> = (at + 1..body.instructions.len()).filter(alike).collect();
    let to = *random.pick(&all)?;
    let (mut a, mut b) = (first.clone(), body.instructions[to].clone());
    std::mem::swap(a.operands.get_mut(1)?, b.operands.get_mut(1)?);
    (a != *first).then(|| replacing(vec![(at, vec![a]), (to, vec![b])]))
}

/// A product and the sum that takes it, as one fma; the product stays for others.
fn contracted(body: &Body, at: usize, random: &mut Random) -> Option<Change> {
    let sum = &body.instructions[at];
    let Op::FloatBinary { op: FloatBinary::Add | FloatBinary::Sub, ty, mode } = &sum.op else {
        return None;
    };
    let position = 1 + random.below(2);
    let taken = &sum.operands[position];
    let Operand::Register(register) = taken else { return None };
    let product =
        body.instructions[..at].iter().rev().find(|one| written(body, one).contains(register))?;
    if !matches!(&product.op, Op::FloatBinary { op: FloatBinary::Mul, ty: own, .. } if own == ty) {
        return None;
    }
    let mut fused = sum.clone();
    fused.op = Op::Fma { ty: *ty, mode: FloatMode { round: Some(Round::Rn), ..*mode } };
    let addend = sum.operands[3 - position].clone();
    fused.operands = vec![
        sum.operands[0].clone(),
        product.operands[1].clone(),
        product.operands[2].clone(),
        addend,
    ];
    Some(replacing(vec![(at, vec![fused])]))
}

/// A product and a sum for an fma.
fn split(body: &Body, at: usize, _: &mut Random) -> Option<Change> {
    let fused = &body.instructions[at];
    let Op::Fma { ty, mode } = &fused.op else { return None };
    let [to, a, b, c] = fused.operands.as_slice() else { return None };
    let register = RegisterId(body.registers.len() as u32);
    let untyped = match ty.bits() {
        16 => Scalar::B16,
        32 => Scalar::B32,
        _ => Scalar::B64,
    };
    let between = Operand::Register(register);
    let part = |op, operands: [&Operand; 3]| Instruction {
        op: Op::FloatBinary { op, ty: *ty, mode: *mode },
        operands: operands.map(Clone::clone).into(),
        ..fused.clone()
    };
    let both =
        vec![part(FloatBinary::Mul, [&between, a, b]), part(FloatBinary::Add, [to, &between, c])];
    Some(Change {
        kind: "",
        replaced: vec![(at, both)],
        registers: vec![Register { name: "%between".into(), ty: untyped }],
    })
}
