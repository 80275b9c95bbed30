//! Whether a kernel's PTX folds its pinned reductions as the canonical tree says, for a host that has
//! the text.
//!
//! # Idea
//! The reply is a document in JSON: `verdict` is `certified`, with `certificates`, or `refuted`, with
//! the reduction's number `pin`, or `unknown`; the last two have `what` and `at`. `docs/verify.md` says
//! what each means.
//! # Who owns, who fails
//! Text that is no PTX with one entry is refused; a kernel that could not be followed is an answer.

use std::ffi::c_char;

use bitstable_equiv::{
    Stuck, Told,
    pins::{self, Certificate, NotAKernel, Proof},
};
use bitstable_passes::{place::Place, report::Diagnostics};
use serde_json::{Value, json};

use crate::{
    Answer, Reply, Status,
    guard::{self, Outcome},
    not_utf8, refused, text,
};

/// Checks the pinned reductions that are marked in `ptx`.
///
/// # Safety
/// `ptx` must point at as many bytes as its length says; `out` must be valid for writing, and what it
/// held is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_certify(ptx: *const c_char, ptx_len: usize, out: *mut Reply) {
    // SAFETY: the caller's.
    let answer = match unsafe { text(ptx, ptx_len) } {
        Some(ptx) => answer(ptx.to_owned()),
        None => not_utf8("the PTX"),
    };
    // SAFETY: the caller's.
    unsafe { answer.send(out) }
}

fn answer(ptx: String) -> Answer {
    match guard::run(move || pins::certify(&ptx)) {
        Outcome::Done(Ok(proof)) => {
            let text = described(&proof).to_string();
            Answer { status: Status::Done, text, report: String::new() }
        }
        Outcome::Done(Err(NotAKernel::Syntax(error))) => refused(format!("the PTX: {error}"), None),
        Outcome::Done(Err(NotAKernel::Input(error))) => refused(format!("the PTX: {error}"), None),
        Outcome::Failed(how) => {
            Answer::failed(Status::Bug, &Diagnostics::fault(how, Place::default()))
        }
    }
}

fn described(proof: &Proof) -> Value {
    match proof {
        Proof::Certified(all) => {
            let certificates: Vec<Value> = all.iter().map(certificate).collect();
            json!({ "verdict": "certified", "certificates": certificates })
        }
        Proof::Refuted(fault) => json!({
            "verdict": "refuted", "pin": fault.pin, "what": fault.what, "at": place(&fault.at),
        }),
        Proof::Unknown(stuck) => {
            json!({ "verdict": "unknown", "what": stuck.what, "at": place(&stuck.at) })
        }
    }
}

fn certificate(certificate: &Certificate) -> Value {
    json!({
        "pin": certificate.pin,
        "extent": certificate.extent,
        "combines": certificate.combines,
        "results": certificate.results,
        "pattern": certificate.pattern,
        "until": certificate.until.as_ref().map(Stuck::to_string),
    })
}

fn place(at: &Told) -> Value {
    let source = at.source.as_ref();
    json!({
        "ptx_line": at.line,
        "file": source.map(|source| &source.file),
        "line": source.map_or(0, |source| source.line),
        "col": source.map_or(0, |source| source.column),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::asked;

    fn asked(ptx: &[u8]) -> (u32, Value) {
        asked::asked(bitstable_certify, ptx)
    }

    #[test]
    fn a_kernel_without_marks_has_no_certificates() {
        let (status, told) = asked(include_bytes!("../cli/tests/kernels/row_sum.ptx"));
        assert_eq!((status, &told["verdict"]), (0, &json!("certified")), "{told}");
        assert_eq!(told["certificates"], json!([]));
    }

    #[test]
    fn what_is_no_kernel_is_refused() {
        for text in [&b""[..], b".version 8.0\n.target sm_90", b"\xff"] {
            let (status, told) = asked(text);
            assert!(status == 1 && told["diagnostics"][0]["message"].is_string(), "{told}");
        }
    }
}
