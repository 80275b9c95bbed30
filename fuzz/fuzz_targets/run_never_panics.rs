//! No kernel panics the PTX machine, or keeps it from ending.
//! `ptx/tests/run_hostile.rs` runs the same oracle in `cargo test`.

#![no_main]

use bitstable_ptx::fuzz::run_never_panics;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| run_never_panics(bytes));
