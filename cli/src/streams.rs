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
