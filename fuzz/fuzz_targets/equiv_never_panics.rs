//! No kernel panics the static checker or keeps it from ending, and each is the same as itself.
//! `equiv/tests/mutants/hostile.rs` runs the same oracle in `cargo test`.

#![no_main]

use bitstable_equiv::fuzz::equiv_never_panics;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| equiv_never_panics(bytes));
