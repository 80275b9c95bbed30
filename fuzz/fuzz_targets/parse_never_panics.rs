//! No text panics the PTX parser, and what parses prints to something equal.
//! `ptx/tests/syntax_hostile.rs` runs the same oracle in `cargo test`.

#![no_main]

use bitstable_ptx::syntax::fuzz::parse_never_panics;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parse_never_panics(bytes));
