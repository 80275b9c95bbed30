//! The `bitstable` command, outside Python.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(bitstable_cli::console(std::env::args_os()))
}
