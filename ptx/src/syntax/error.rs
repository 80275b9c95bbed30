//! What is wrong with a text, and where.

use std::fmt;

use crate::ir::Position;

/// A PTX text that is refused. Its message ends with the offending line and a caret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SyntaxError {
    pub kind: ErrorKind,
    /// Line, and column in bytes, from 1.
    pub at: Position,
    /// The offending line, cut to a readable length.
    pub excerpt: String,
    /// Where the caret stands in `excerpt`.
    pub caret: usize,
}

/// Why a text is refused.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ErrorKind {
    #[error("expected {expected}, found {found}")]
    Unexpected { expected: &'static str, found: String },
    #[error("the text ends where {expected} is expected")]
    Truncated { expected: &'static str },
    #[error("not a token of PTX: {0}")]
    NotAToken(String),
    #[error("{0} is no number of 64 bits")]
    Number(String),
    #[error("unknown directive `{0}`")]
    UnknownDirective(String),
    #[error("unknown opcode `{0}`")]
    UnknownOpcode(String),
    #[error("`{opcode}` does not take the modifier `.{modifier}`")]
    UnknownModifier { opcode: String, modifier: String },
    #[error("`{opcode}` lacks {what}")]
    MissingModifier { opcode: String, what: String },
    #[error("`{opcode}` with {found} operands: {what}")]
    OperandCount { opcode: String, found: usize, what: String },
    #[error("operand {number} of `{opcode}`: expected {expected}, found {found}")]
    Operand { opcode: String, number: usize, expected: String, found: String },
    #[error("`{0}` is not declared")]
    Undeclared(String),
    #[error("a guard must be a predicate register, `{0}` is not")]
    Guard(String),
    #[error("`{0}` is declared twice")]
    Duplicate(String),
    #[error("label `{0}` is not in scope")]
    UnknownLabel(String),
    #[error("{what} is too large: {limit} is the limit")]
    TooLarge { what: &'static str, limit: u64 },
    #[error("not supported: {0}")]
    Unsupported(String),
}

/// The longest excerpt, in bytes: a hostile line must not become a hostile message.
const EXCERPT: usize = 160;

impl SyntaxError {
    /// An error at byte `at` of `text`; `line` is known by whoever walked there.
    pub(super) fn new(kind: ErrorKind, text: &str, at: usize) -> Self {
        let at = at.min(text.len());
        let before = &text.as_bytes()[..at];
        let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let start = before.iter().rposition(|&byte| byte == b'\n').map_or(0, |found| found + 1);
        let end = text.as_bytes()[at..].iter().position(|&byte| byte == b'\n');
        let end = end.map_or(text.len(), |found| at + found);
        let from = floor_boundary(text, start.max(at.saturating_sub(EXCERPT / 2)));
        let to = floor_boundary(text, end.min(from + EXCERPT));
        Self {
            kind,
            at: Position { line: narrow(line), column: narrow(at - start + 1) },
            excerpt: text[from..to.max(from)].replace('\t', " "),
            caret: text.get(from..at).map_or(0, |shown| shown.chars().count()),
        }
    }
}

fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

/// The last character boundary at or before `at`.
fn floor_boundary(text: &str, at: usize) -> usize {
    (0..=at).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0)
}

impl fmt::Display for SyntaxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Position { line, column } = self.at;
        writeln!(f, "{line}:{column}: {}", self.kind)?;
        writeln!(f, "  {}", self.excerpt)?;
        write!(f, "  {:>1$}", '^', self.caret + 1)
    }
}

impl std::error::Error for SyntaxError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.kind)
    }
}
