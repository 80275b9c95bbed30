//! Which kernels return the same bits, for a host that has their PTX.
//!
//! # Idea
//! A request in JSON names kernels, by text or by file, and what is known of their launches; the reply
//! is the document that `bitstable equiv --json` prints. `docs/equiv.md` has both.
//! # Who owns, who fails
//! A kernel that cannot be read or parsed is in the reply's errors and no failure of the call; a
//! request that is not understood is. The call cannot be cancelled.
//! # Limits
//! Workers are threads of their own, as many as the request says: a panic about one kernel is its
//! error, but is printed as the host prints panics.

use std::ffi::c_char;

use bitstable_passes::{place::Place, report::Diagnostics};

use crate::{
    Answer, Reply, Status,
    guard::{self, Outcome},
    not_utf8, refused, text,
};

/// Partitions the kernels of `request` into classes of equal bits.
///
/// # Safety
/// `request` must point at as many bytes as its length says; `out` must be valid for writing, and
/// what it held is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_equiv(
    request: *const c_char,
    request_len: usize,
    out: *mut Reply,
) {
    // SAFETY: the caller's.
    let answer = match unsafe { text(request, request_len) } {
        Some(request) => answer(request.to_owned()),
        None => not_utf8("the request"),
    };
    // SAFETY: the caller's.
    unsafe { answer.send(out) }
}

fn answer(request: String) -> Answer {
    match guard::run(move || bitstable_cli::equiv::answer(&request)) {
        Outcome::Done(Ok(text)) => Answer { status: Status::Done, text, report: String::new() },
        Outcome::Done(Err(reason)) => {
            let help = "docs/equiv.md has what a request may hold";
            refused(format!("the request: {reason}"), Some(help))
        }
        Outcome::Failed(how) => {
            Answer::failed(Status::Bug, &Diagnostics::fault(how, Place::default()))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::asked;

    const ROW: &str = include_str!("../cli/tests/kernels/row_sum.ptx");
    const STOCK: &str = include_str!("../cli/tests/kernels/row_sum_stock.ptx");

    fn asked(request: &[u8]) -> (u32, Value) {
        asked::asked(bitstable_equiv, request)
    }

    #[test]
    fn kernels_come_back_in_classes_by_number() {
        let request = json!({
            "kernels": [
                {"ptx": ROW, "name": "first"}, {"ptx": STOCK}, {"ptx": ROW},
                {"ptx": &ROW[..ROW.len() / 2]}, {"file": "/nowhere/at/all.ptx"},
            ],
            "confirm": true, "explain": 4, "jobs": 2,
        });
        let (status, told) = asked(request.to_string().as_bytes());
        assert_eq!(status, 0, "{told}");
        assert_eq!(told["classes"][0]["kernels"], json!([0, 2]));
        assert_eq!(told["classes"][0]["files"], json!(["first", "kernel 2"]));
        assert_eq!(told["classes"][1]["kernels"], json!([1]));
        assert_eq!(told["differences"][0]["kernels"], json!([0, 1]));
        assert_eq!(
            (&told["errors"][0]["kernel"], &told["errors"][1]["kernel"]),
            (&json!(3), &json!(4))
        );
        assert_eq!((&told["same"], &told["exit"]), (&json!(false), &json!(2)));
    }

    #[test]
    fn requests_that_make_no_sense_are_refused() {
        for (request, said) in [
            (json!({"kernels": []}), "there are no kernels to compare"),
            (json!({"kernels": [{"ptx": ROW}], "colour": 1}), "unknown field `colour`"),
            (json!({"kernels": [{"ptx": ROW, "scalar": {}}]}), "unknown field `scalar`"),
            (json!({}), "missing field `kernels`"),
        ] {
            let (status, told) = asked(request.to_string().as_bytes());
            let message = told["diagnostics"][0]["message"].as_str().unwrap_or_default();
            assert!(status == 1 && message.contains(said), "{told}");
        }
        assert_eq!(asked(b"\xff").0, 1);
        assert_eq!(asked(b"").0, 1);
    }
}
