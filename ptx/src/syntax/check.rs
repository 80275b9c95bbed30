//! Operands against the signature of their instruction.
//!
//! # Idea
//! How many operands, of which kind and width, is said once for parser and executor, in
//! [`ir::signature`](crate::ir::signature). Here they are brought to one form first, and what PTX
//! asks beyond widths is added: floats and integers do not mix.
//! # Invariants
//! - **K1** A vector of one register is a register, where the instruction has no vectors; one
//!   register is a vector of one, where it has.

use super::{ErrorKind, opcode, special};
use crate::ir::{
    Class, Data, Mismatch, Op, Operand, Register, Role, Scalar, Shape, Width, signature,
};

/// Brings operands to the form the IR promises, and says what is wrong with them.
pub(super) fn settle(
    op: &Op,
    operands: &mut [Operand],
    registers: &[Register],
) -> Result<(), ErrorKind> {
    let signature = signature(op);
    for (operand, place) in operands.iter_mut().zip(&signature.places) {
        if let Role::Write(data) | Role::Read(data) = place.role {
            reshape(operand, data.shape);
        }
    }
    let roles = signature.roles(operands, registers).map_err(|mismatch| {
        let what = match mismatch {
            Mismatch::Operand { place, expected } => {
                let found = shown(&operands[place - 1], registers);
                return operand_error(op, place, expected, found);
            }
            Mismatch::Missing { missing, .. } => format!("{missing} is missing"),
            Mismatch::Surplus { most, .. } => format!("at most {most} are expected"),
        };
        ErrorKind::OperandCount { opcode: opcode::print(op), found: operands.len(), what }
    })?;
    for (place, (operand, role)) in operands.iter().zip(roles).enumerate() {
        let data = match role {
            Some(Role::Write(data) | Role::WritePair(data) | Role::Read(data)) => data,
            _ => continue,
        };
        if !agrees(data, operand, registers) {
            let expected = format!("a value of .{}", data.ty);
            return Err(operand_error(op, place + 1, expected, shown(operand, registers)));
        }
    }
    Ok(())
}

fn operand_error(op: &Op, number: usize, expected: String, found: String) -> ErrorKind {
    ErrorKind::Operand { opcode: opcode::print(op), number, expected, found }
}

/// `{ %r1 }` where one value is wanted, and `%r1` where a vector of one is.
fn reshape(operand: &mut Operand, shape: Shape) {
    if let Operand::Vector(elements) = operand {
        if shape == Shape::One && elements.len() == 1 {
            *operand = elements.remove(0);
        }
    } else if shape == Shape::Vector(1) {
        *operand = Operand::Vector(vec![operand.clone()]);
    }
}

/// Whether kinds agree: untyped bits agree with everything, signed with unsigned, floats with
/// floats alone. Registers that may be wider are free of it, as in PTX.
fn agrees(data: Data, operand: &Operand, registers: &[Register]) -> bool {
    let integer = |class| matches!(class, Class::Signed | Class::Unsigned);
    let need = data.ty.class();
    match operand {
        Operand::Register(id) if data.width == Width::Exact => {
            let have = registers[id.index()].ty.class();
            let mixed = |one, other| one == Class::Float && integer(other);
            !mixed(have, need) && !mixed(need, have)
        }
        Operand::Int(_) => !matches!(data.ty, Scalar::F32 | Scalar::F64),
        Operand::Float32(_) | Operand::Float64(_) => !integer(need) && need != Class::Predicate,
        Operand::Vector(elements) => {
            elements.iter().all(|element| agrees(data, element, registers))
        }
        Operand::Register(_)
        | Operand::Not(_)
        | Operand::Special(_)
        | Operand::Symbol { .. }
        | Operand::Address { .. }
        | Operand::Pair(..)
        | Operand::Sink
        | Operand::Label(_)
        | Operand::Table(_)
        | Operand::List(_)
        | Operand::Bracket(_) => true,
    }
}

/// An operand as an error shows it.
fn shown(operand: &Operand, registers: &[Register]) -> String {
    match operand {
        Operand::Register(id) | Operand::Not(id) => {
            let Register { name, ty } = &registers[id.index()];
            format!("`{name}` of .{ty}")
        }
        Operand::Special(special) => format!("`{}`", special::name(*special)),
        Operand::Int(value) => format!("the integer {}", *value as i64),
        Operand::Float32(_) | Operand::Float64(_) => "a floating-point number".to_owned(),
        Operand::Symbol { name, .. } => format!("the address of `{name}`"),
        Operand::Address { .. } => "an address".to_owned(),
        Operand::Vector(elements) => format!("{} operands in braces", elements.len()),
        Operand::Pair(..) => "two destinations".to_owned(),
        Operand::Sink => "`_`".to_owned(),
        Operand::Label(_) | Operand::Table(_) => "a label".to_owned(),
        Operand::List(_) => "a list".to_owned(),
        Operand::Bracket(_) => "several operands in brackets".to_owned(),
    }
}
