//! The native library: a few C functions, text in and text out.
//!
//! # Idea
//! A plain C ABI over text serves every CPython, the free-threaded ones too, for which there is no
//! stable ABI. Whatever goes wrong inside is a reply ([`Status`]), never a signal or a panic of
//! the host's process; [`guard`] sees to that.
//! # Who owns, who fails
//! The caller owns the inputs and the reply; the reply's buffers are ours until
//! [`bitstable_free`]. The library exports the functions here, in [`emulation`], in [`equivalence`],
//! in [`certificate`], in [`resources`] and in [`command`], and nothing else.

#[cfg(test)]
mod asked;
mod certificate;
mod command;
mod emulation;
mod equivalence;
mod guard;
mod resources;
#[cfg(test)]
mod tests;

use std::ffi::{CStr, c_char};

use bitstable_passes::{
    place::Place,
    refusal::Failure,
    report::{Diagnostic, Diagnostics},
    rewrite,
};
use guard::Outcome;

/// What became of a call.
#[derive(Clone, Copy)]
#[repr(u32)]
enum Status {
    /// What was asked for was done.
    Done = 0,
    /// It was refused: the input's doing.
    Refused = 1,
    /// We failed.
    Bug = 2,
}

/// The answer to one call.
#[repr(C)]
pub struct Reply {
    status: u32,
    reserved: u32,
    text: *mut c_char,
    text_len: usize,
    report: *mut c_char,
    report_len: usize,
}

/// What fills a [`Reply`].
struct Answer {
    status: Status,
    text: String,
    report: String,
}

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("the version holds a NUL"),
    };

/// The version of the library, such as `0.1.0`; the string is static.
#[unsafe(no_mangle)]
pub extern "C" fn bitstable_version() -> *const c_char {
    VERSION.as_ptr()
}

/// Runs `pipeline` over `module` and fills `out`, from any thread.
///
/// # Safety
/// `module` and `pipeline` must point at as many bytes as their lengths say; `out` must be valid
/// for writing, and what it held is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_rewrite(
    module: *const c_char,
    module_len: usize,
    pipeline: *const c_char,
    pipeline_len: usize,
    out: *mut Reply,
) {
    // SAFETY: the caller's.
    let inputs = unsafe { (text(module, module_len), text(pipeline, pipeline_len)) };
    let answer = match inputs {
        (Some(module), Some(pipeline)) => answer(module, pipeline),
        (None, _) => not_utf8("the module"),
        (_, None) => not_utf8("the pipeline"),
    };
    // SAFETY: the caller's.
    unsafe { answer.send(out) }
}

/// Frees the buffers of a reply and forgets them, so that freeing twice is harmless.
///
/// # Safety
/// `reply` must be null, or a reply that a function of this library filled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_free(reply: *mut Reply) {
    // SAFETY: the caller's.
    let Some(reply) = (unsafe { reply.as_mut() }) else { return };
    // SAFETY: the buffers come from `leak`, and are forgotten below.
    unsafe {
        reclaim(reply.text, reply.text_len);
        reclaim(reply.report, reply.report_len);
    }
    (reply.text, reply.text_len) = (std::ptr::null_mut(), 0);
    (reply.report, reply.report_len) = (std::ptr::null_mut(), 0);
}

impl Answer {
    /// It was not done, and why.
    fn failed(status: Status, diagnostics: &Diagnostics) -> Answer {
        Answer { status, text: String::new(), report: json(diagnostics) }
    }

    /// Hands it to the caller.
    ///
    /// # Safety
    /// `out` must be null, or valid for writing.
    unsafe fn send(self, out: *mut Reply) {
        if out.is_null() {
            return;
        }
        let (text, text_len) = leak(self.text);
        let (report, report_len) = leak(self.report);
        let status = self.status as u32;
        // SAFETY: the caller's.
        unsafe { out.write(Reply { status, reserved: 0, text, text_len, report, report_len }) }
    }
}

fn answer(module: &str, pipeline: &str) -> Answer {
    // The thread that does the work may never return, so it owns what it reads.
    let (module, pipeline) = (module.to_owned(), pipeline.to_owned());
    match guard::run(move || rewrite(&module, &pipeline)) {
        Outcome::Done(Ok(rewritten)) => {
            Answer { status: Status::Done, text: rewritten.text, report: json(&rewritten.report) }
        }
        Outcome::Done(Err(failure)) => {
            let status = match failure {
                Failure::Refused(_) => Status::Refused,
                Failure::Bug(..) => Status::Bug,
            };
            Answer::failed(status, &Diagnostics::from(&failure))
        }
        Outcome::Failed(how) => {
            Answer::failed(Status::Bug, &Diagnostics::fault(how, Place::default()))
        }
    }
}

fn not_utf8(what: &str) -> Answer {
    refused(format!("{what} is not UTF-8"), None)
}

/// The input's doing, at no place in a kernel's source.
fn refused(message: String, help: Option<&str>) -> Answer {
    let (at, notes, help) = (Place::default(), Vec::new(), help.map(str::to_owned));
    let diagnostic = Diagnostic { severity: "error", message, at, notes, help };
    Answer::failed(Status::Refused, &Diagnostics { diagnostics: vec![diagnostic] })
}

fn json(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|_| r#"{"diagnostics":[]}"#.into())
}

/// # Safety
/// `data` must point at `len` bytes, or `len` be 0.
unsafe fn text<'a>(data: *const c_char, len: usize) -> Option<&'a str> {
    if len == 0 || data.is_null() {
        return Some("");
    }
    // SAFETY: the caller's.
    str::from_utf8(unsafe { std::slice::from_raw_parts(data.cast::<u8>(), len) }).ok()
}

/// Hands a buffer to the caller; an empty one is null.
fn leak(text: String) -> (*mut c_char, usize) {
    let len = text.len();
    if len == 0 {
        return (std::ptr::null_mut(), 0);
    }
    (Box::into_raw(text.into_bytes().into_boxed_slice()).cast(), len)
}

/// # Safety
/// `data` and `len` must come from [`leak`] and not have been reclaimed.
unsafe fn reclaim(data: *mut c_char, len: usize) {
    if !data.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), len);
        // SAFETY: the caller's.
        drop(unsafe { Box::from_raw(slice) });
    }
}
