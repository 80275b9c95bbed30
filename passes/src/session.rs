//! One module in one context: parsed, verified, printed.
//!
//! # Invariants
//! - **S1** Each call has a context of its own, without threads and with the builtin dialect alone:
//!   calls share nothing, and a context costs microseconds.
//! - **S2** Nothing is printed: what MLIR says is kept and handed back.
//! # Held by
//! S1: [`Session::new`]. S2: the handler that it attaches, which claims every diagnostic.

use std::{cell::RefCell, ffi::c_void, fmt::Write, rc::Rc};

use melior::{
    Context,
    ir::{
        Module,
        operation::{OperationLike, OperationPrintingFlags},
    },
};
use mlir_sys::mlirOperationPrintWithFlags;

use crate::{
    aliases,
    build::Parsed,
    ir,
    place::Place,
    refusal::{Bug, Refusal, Refused},
    text,
};

/// The longest text that is read; a kernel has a thousandth of it.
const LONGEST: usize = 256 << 20;

/// The deepest nesting of brackets that is read. MLIR's parser and printer are recursive; the
/// stack that the library gives them holds many times as much.
pub const DEEPEST: usize = 1000;

/// A context, and what it had to say.
pub struct Session {
    context: Context,
    parsed: Parsed,
    log: Rc<RefCell<Vec<Message>>>,
}

/// A diagnostic of MLIR, with its notes.
#[derive(Clone, Default)]
struct Message {
    text: String,
    at: Place,
    notes: Vec<String>,
}

impl Session {
    /// A context that knows the builtin dialect and takes every other as it comes.
    pub fn new() -> Session {
        let context = Context::new_with_threading(false);
        context.set_allow_unregistered_dialects(true);
        let log = Rc::new(RefCell::new(Vec::new()));
        let entries = Rc::clone(&log);
        context.attach_diagnostic_handler(move |diagnostic| {
            let mut message =
                Message { at: Place::of(diagnostic.location()), ..Message::default() };
            // Writing fails only on text that is not UTF-8; what came before it is kept.
            let _ = write!(message.text, "{diagnostic}");
            for note in (0..diagnostic.note_count()).filter_map(|i| diagnostic.note(i).ok()) {
                let mut text = String::new();
                let _ = write!(text, "{note}");
                message.notes.push(text);
            }
            entries.borrow_mut().push(message);
            true
        });
        Session { context, parsed: Parsed::default(), log }
    }

    /// The context.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// What builders have parsed.
    pub fn parsed(&self) -> &Parsed {
        &self.parsed
    }

    /// Parses a module in generic form. MLIR verifies it.
    pub fn parse(&self, text: &str) -> Result<Module<'_>, Refused> {
        let refuse = |refusal: Refusal| refusal.at(Place::default());
        if text.len() > LONGEST {
            return Err(refuse(Refusal::TooLarge { bytes: text.len(), limit: LONGEST }));
        }
        if nesting(text) > DEEPEST {
            return Err(refuse(Refusal::TooDeep { limit: DEEPEST }));
        }
        if text.contains('\0') {
            return Err(refuse(Refusal::Parse { message: "it holds a NUL".into() }));
        }
        match Module::parse(&self.context, text) {
            Some(module) => Ok(module),
            None => Err(self.why_not_parsed()),
        }
    }

    fn why_not_parsed(&self) -> Refused {
        let mut log = self.log.borrow_mut();
        let first = if log.is_empty() { Message::default() } else { log.swap_remove(0) };
        let Message { text, at, notes } = first;
        let in_module = at.file.as_deref().is_none_or(|f| f.is_empty() || f == "-");
        let message = match (in_module, at.line) {
            (true, 1..) => format!("line {}, column {}: {text}", at.line, at.col),
            _ => text,
        };
        let at = if in_module { Place::default() } else { at };
        Refused { notes, ..Refusal::Parse { message }.at(at) }
    }

    /// Verifies what a pass has made: a failure is our fault.
    pub fn verify(&self, module: &Module<'_>) -> Result<(), Bug> {
        if module.as_operation().verify() {
            return Ok(());
        }
        let message = self.log.borrow().first().map_or_else(String::new, |m| m.text.clone());
        Err(Bug::Verify { message })
    }
}

/// Prints a module in generic form, with locations.
///
/// MLIR gives aliases to locations alone: every type is opaque here, so [`aliases`] names them.
pub fn print(module: &Module<'_>) -> Result<String, Bug> {
    let flags =
        OperationPrintingFlags::new().print_generic_operation_form().enable_debug_info(true, false);
    let mut bytes: Vec<u8> = Vec::new();
    // SAFETY: the operation and the flags are valid; the callback is given the vector that
    // outlives the call.
    unsafe {
        let (module, data) = (ir::root(module).to_raw(), (&raw mut bytes).cast::<c_void>());
        mlirOperationPrintWithFlags(module, flags.to_raw(), Some(text::append), data);
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Bug::Invariant { what: "MLIR printed no UTF-8".into() })?;
    Ok(aliases::named(&readable_by_triton(text)))
}

/// Triton 3.9 prints the layout of AMD's matrix units over one warp without the bases that its own
/// parser demands, and ends the process when they are not there. The two forms mean the same.
fn readable_by_triton(text: String) -> String {
    const PRINTED: &str = "ctaLayout = {}";
    if text.contains(PRINTED) { text.replace(PRINTED, "ctaLayout = {warp = []}") } else { text }
}

/// How deep brackets nest, outside strings. An upper bound: `->` and `>=` close nothing.
fn nesting(text: &str) -> usize {
    let (mut depth, mut deepest) = (0usize, 0usize);
    let mut bytes = text.bytes();
    let mut previous = 0;
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => {
                while let Some(inside) = bytes.next() {
                    match inside {
                        b'\\' => drop(bytes.next()),
                        b'"' | b'\n' => break,
                        _ => {}
                    }
                }
            }
            b'(' | b'[' | b'{' | b'<' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b'>' if previous != b'-' => depth = depth.saturating_sub(1),
            _ => {}
        }
        previous = byte;
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_counts_brackets_outside_strings() {
        assert_eq!(nesting(r#""a((("() ({ }) : () -> i32 loc("x\"(((")"#), 2);
        assert_eq!(nesting("(()"), 2);
        assert_eq!(nesting("\"(\n(((("), 4);
    }
}
