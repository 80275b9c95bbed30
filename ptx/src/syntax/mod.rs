//! PTX text to [`Module`], and back.
//!
//! # Idea
//! A hand-written parser over tokens: [`parse`] refuses what it does not know by line and column,
//! [`print`] is its inverse. Opcodes and modifiers have one description for both directions
//! (`opcode/`).
//! # Invariants
//! - **T1** `parse(print(m)) == m` for every module that [`parse`] gave.
//! - **T2** No text makes it panic, recurse without bound, or use memory beyond a multiple of the
//!   text's length.
//! - **T3** An opcode, a modifier or an operand that is not understood is an error, but for the
//!   families that are [`Op::Opaque`](crate::ir::Op::Opaque) by name.
//! # Held by
//! T1: `tests/syntax.rs`, on Triton's texts. T1, T2: `tests/syntax_hostile.rs`, and the fuzz target
//! `parse_never_panics`. T3: `tests/syntax_words.rs`, `tests/syntax_errors.rs`.
//! # Not here
//! What instructions do; whether a target has them.

mod body;
mod check;
mod cursor;
mod declaration;
mod error;
pub mod fuzz;
mod labels;
mod lexer;
mod literal;
mod module;
mod opcode;
mod operand;
mod print;
mod scope;
mod special;

pub use error::{ErrorKind, SyntaxError};

use crate::ir::{Body, Instruction, Module, Op};

/// The largest text, in bytes.
const MOST_TEXT: usize = 1 << 27;

/// Parses a PTX module.
///
/// # Errors
/// When the text is no PTX that is understood; the error says what, and where.
pub fn parse(text: &str) -> Result<Module, SyntaxError> {
    if text.len() > MOST_TEXT {
        let kind = ErrorKind::TooLarge { what: "the text", limit: MOST_TEXT as u64 };
        return Err(SyntaxError::new(kind, text, 0));
    }
    module::parse(text)
}

/// The text of a module; parsing it gives an equal module.
pub fn print(module: &Module) -> String {
    module.to_string()
}

/// The text of one instruction, as messages show it.
pub fn print_instruction(body: &Body, instruction: &Instruction) -> String {
    print::instruction(body, instruction)
}

/// Opcode and modifiers of an operation, as in PTX.
pub fn print_op(op: &Op) -> String {
    opcode::print(op)
}
