//! Why there is no answer: the command line, a file, or a kernel that is not understood.
//!
//! # Idea
//! Every failure is the input's, and a value: what is wrong, where, and what to do about it. It
//! becomes text once, in [`Failure::render`].
//! # Invariants
//! - **E1** A failure about a place in a text names file, line and column, and shows the line with
//!   a caret. What is shown of the input is bounded.

use std::io::{self, Write};

use bitstable_ptx::{
    exec::{decode::DecodeError, launch::LaunchError},
    ir::Position,
    symbol::Limit,
    syntax::SyntaxError,
};

/// The command could not answer.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{path}: {reason}")]
    Read { path: String, reason: String },
    #[error("{path}:{error}")]
    Syntax { path: String, error: Box<SyntaxError> },
    #[error("{path}{}", pointed(*at, line, reason))]
    Place { path: String, at: Position, line: String, reason: String },
    #[error("{path}: {error}")]
    Decode { path: String, error: DecodeError },
    #[error("{path}: {reason}")]
    Metadata { path: String, reason: String },
    #[error("argument `{given}`: {reason}")]
    Argument { given: String, reason: String },
    #[error("{path}: the kernel takes {expected}, {given} given{listing}")]
    Count { path: String, expected: String, given: String, listing: String },
    #[error("there is no buffer named `{name}`; there are {known}")]
    UnknownName { name: String, known: String },
    #[error("`{0}` names more than one argument")]
    Ambiguous(String),
    #[error("{option} {given}: {reason}")]
    Option { option: &'static str, given: String, reason: String },
    #[error("{path}: nothing says how many threads a CTA has")]
    NoBlock { path: String },
    #[error("{path}: {error}")]
    Launch { path: String, error: LaunchError },
    #[error("{path}: {limit}")]
    Limit { path: String, limit: Limit },
    #[error("nothing was written: no output has a tree")]
    NoOutput,
    #[error("there are no kernels to compare")]
    NoKernels,
    #[error("`bitstable {0}` compiles kernels, which needs Python and Triton")]
    NeedsPython(&'static str),
    #[error("cannot write the output: {0}")]
    Output(#[from] io::Error),
}

impl Failure {
    /// What to do.
    fn help(&self) -> Option<&'static str> {
        match self {
            Self::Argument { .. } => {
                Some("arguments are [NAME=]TYPE[:COUNT]=VALUE: x=f32:1024=random:7, i32=5, null")
            }
            Self::Decode { error: DecodeError::ManyEntries(_), .. } => Some("--entry NAME"),
            Self::NoBlock { .. } => Some(
                "give --block X, or --triton KERNEL.json; Triton's own PTX says it by .reqntid",
            ),
            Self::NoOutput => Some(
                "check --grid and the arguments with `bitstable run`, or name one with --output",
            ),
            Self::NoKernels => {
                Some("name PTX files, or give --files-from LIST or --launches FILE.json")
            }
            Self::Limit { .. } => Some("a smaller --grid or smaller sizes do; --nodes raises it"),
            Self::NeedsPython(_) => {
                Some("use the `bitstable` that the wheel installs into a virtual environment")
            }
            Self::Launch { error: LaunchError::RequiredThreads { .. }, .. } => {
                Some("leave --block out: the kernel says it by itself")
            }
            Self::Read { .. }
            | Self::Syntax { .. }
            | Self::Place { .. }
            | Self::Decode { .. }
            | Self::Metadata { .. }
            | Self::Count { .. }
            | Self::UnknownName { .. }
            | Self::Ambiguous(_)
            | Self::Option { .. }
            | Self::Launch { .. }
            | Self::Output(_) => None,
        }
    }

    /// The message without what was given: for who shows that already.
    pub fn reason(self) -> String {
        match self {
            Self::Argument { reason, .. } => reason,
            other => other.to_string(),
        }
    }

    /// Writes the message, and what to do.
    pub fn render(&self, err: &mut dyn Write) -> io::Result<()> {
        writeln!(err, "error: {self}")?;
        if let Some(help) = self.help() {
            writeln!(err, "  help: {help}")?;
        }
        Ok(())
    }
}

/// The longest piece of a line that is shown, in characters.
const SHOWN: usize = 120;

/// A message about a place in a text, as [`SyntaxError`] writes it.
fn pointed(at: Position, line: &str, reason: &str) -> String {
    let before = (at.column.saturating_sub(1) as usize).min(line.len());
    let caret = line.get(..before).map_or(0, |text| text.chars().count());
    let skipped = caret.saturating_sub(SHOWN / 2);
    let shown: String = line.chars().skip(skipped).take(SHOWN).collect();
    let (shown, column) = (shown.replace('\t', " "), caret - skipped + 1);
    format!(":{}:{}: {reason}\n  {shown}\n  {:>column$}", at.line, at.column, '^')
}

/// A failure of decoding, at its place in the text when it has one.
pub fn decode(path: &str, text: &str, error: DecodeError) -> Failure {
    let (at, reason) = match error {
        DecodeError::Instruction { at, reason } => (at, reason),
        DecodeError::TooLarge { at, name, reason } => {
            (at, format!("`{name}` is too large: {reason}"))
        }
        other => return Failure::Decode { path: path.into(), error: other },
    };
    let line = text.lines().nth((at.line.max(1) - 1) as usize).unwrap_or_default();
    Failure::Place { path: path.into(), at, line: line.into(), reason }
}
