//! A command line, run in this process.
#![allow(dead_code, reason = "each test binary uses some of it")]

use std::ffi::OsString;

/// How a command ended, and what it wrote.
#[derive(Debug)]
pub struct Ended {
    pub status: u8,
    pub out: String,
    pub err: String,
}

/// Runs `bitstable` with these arguments, split at spaces; `K/` stands for the test kernels.
pub fn bitstable(line: &str) -> Ended {
    // Only where a word begins: a temporary folder's name may end in K.
    let words = line.split_whitespace().map(|word| match word.strip_prefix("K/") {
        Some(rest) => format!("tests/kernels/{rest}"),
        None => word.to_owned(),
    });
    let args = std::iter::once("bitstable".to_owned()).chain(words).map(OsString::from);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let status = bitstable_cli::main(args, &mut out, &mut err);
    let text = |bytes| String::from_utf8(bytes).expect("output is UTF-8");
    Ended { status, out: text(out), err: text(err) }
}

/// What a command that answers writes; it must say nothing about failures.
pub fn answer(status: u8, line: &str) -> String {
    let ended = bitstable(line);
    assert_eq!((ended.status, ended.err.as_str()), (status, ""), "{line}\n{}", ended.out);
    ended.out
}

/// What a command that fails says; it must not answer.
pub fn failure(line: &str) -> String {
    let ended = bitstable(line);
    assert_eq!((ended.status, ended.out.as_str()), (2, ""), "{line}\n{}", ended.err);
    ended.err
}

pub fn json(status: u8, line: &str) -> serde_json::Value {
    serde_json::from_str(&answer(status, line)).expect("the output is one JSON document")
}
