//! The `bitstable` command, for a host that has its arguments.
//!
//! # Idea
//! The Python console script hands its arguments over and returns our exit status. Output goes to
//! the process's own streams: a result of a gigabyte is nobody's string.
//! # Who owns, who fails
//! The caller owns the arguments. A panic or an abort inside is status 3 and a message, never a
//! signal of the host's. The call cannot be cancelled: a host that was interrupted ends its process.

use std::{
    ffi::{OsString, c_char, c_int},
    io::Write,
};

use crate::{
    guard::{self, Outcome},
    text,
};

/// We failed.
const BUG: c_int = 3;
/// As of a command line that is wrong.
const USAGE: c_int = 2;

/// Runs a command line, a JSON array of strings with the program's name first; its exit status.
///
/// # Safety
/// `arguments` must point at `len` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_main(arguments: *const c_char, len: usize) -> c_int {
    // SAFETY: the caller's.
    let arguments = unsafe { text(arguments, len) };
    let arguments: Option<Vec<String>> = arguments.and_then(|text| serde_json::from_str(text).ok());
    let Some(arguments) = arguments else {
        return said("error: an argument is not UTF-8", USAGE);
    };
    // The thread that does the work may never return, so it owns what it reads.
    let arguments: Vec<OsString> = arguments.into_iter().map(OsString::from).collect();
    match guard::run(move || bitstable_cli::console(arguments)) {
        Outcome::Done(status) => c_int::from(status),
        Outcome::Failed(how) => {
            said(&format!("error: bitstable failed: {how}\n  help: please report this"), BUG)
        }
    }
}

/// The status, after a message where one can be written.
fn said(message: &str, status: c_int) -> c_int {
    // Without an error stream the status alone must do.
    let _ = writeln!(std::io::stderr(), "{message}");
    status
}
