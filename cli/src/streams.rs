//! Where a command writes.

use std::io::Write;

use serde::Serialize;

use crate::failure::Failure;

/// The two streams of a command.
pub struct Streams<'a> {
    pub out: &'a mut dyn Write,
    pub err: &'a mut dyn Write,
    /// The error stream is a terminal: progress may be drawn there.
    pub live: bool,
}

impl Streams<'_> {
    /// A remark about how the answer was made.
    pub fn note(&mut self, text: &str) -> Result<(), Failure> {
        Ok(writeln!(self.err, "note: {text}")?)
    }

    /// One JSON document, on lines of its own.
    pub fn json(&mut self, value: &impl Serialize) -> Result<(), Failure> {
        serde_json::to_writer_pretty(&mut *self.out, value).map_err(std::io::Error::from)?;
        Ok(writeln!(self.out)?)
    }
}

/// `1 leaf`, `2 leaves`: a number and its noun.
pub fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match (number, noun.strip_suffix('f')) {
        (1, _) => format!("1 {noun}"),
        (_, Some(stem)) => format!("{number} {stem}ves"),
        (_, None) => format!("{number} {noun}s"),
    }
}
