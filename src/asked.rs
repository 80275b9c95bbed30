//! Calls of the library as a host makes them, for tests.

use std::{ffi::c_char, mem::MaybeUninit};

use serde_json::Value;

use crate::{Reply, bitstable_free, text};

/// An entry that takes a text and fills a reply.
type Entry = unsafe extern "C" fn(*const c_char, usize, *mut Reply);

/// The reply's status, and the JSON in it: of its text, or else of its report.
pub(crate) fn asked(entry: Entry, request: &[u8]) -> (u32, Value) {
    let mut reply = MaybeUninit::<Reply>::uninit();
    // SAFETY: the request is what its length says; the call fills the reply, and what it holds is
    // copied before it is freed.
    unsafe {
        entry(request.as_ptr().cast(), request.len(), reply.as_mut_ptr());
        let mut reply = reply.assume_init();
        let read = |data, len| text(data, len).expect("a reply is UTF-8").to_owned();
        let told = match read(reply.text, reply.text_len) {
            said if said.is_empty() => read(reply.report, reply.report_len),
            said => said,
        };
        let status = reply.status;
        bitstable_free(&mut reply);
        (status, serde_json::from_str(&told).expect("a reply is JSON"))
    }
}
