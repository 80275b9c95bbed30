//! The binary: standard input, and an output that nobody reads.

use std::{
    io::Write,
    process::{Command, Stdio},
};

fn add(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bitstable"));
    command.args(["run", "-", "--grid", "1", "f32:128=1", "f32:128=2", "f32:128", "n=128"]);
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

#[test]
fn ptx_may_come_from_standard_input() {
    let mut child = add(&["--print", "arg2:1"]).spawn().expect("it starts");
    let text = std::fs::read("tests/kernels/add.ptx").expect("it is there");
    child.stdin.take().expect("it is piped").write_all(&text).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    let said = String::from_utf8(output.stdout).expect("UTF-8");
    assert_eq!(output.status.code(), Some(0));
    assert!(said.starts_with("<stdin>: kernel `add`") && said.contains("[0] 3.0"), "{said}");
}

#[test]
fn a_closed_output_is_no_failure() {
    let mut child = add(&["--print", "arg2"]).spawn().expect("it starts");
    drop(child.stdout.take());
    let text = std::fs::read("tests/kernels/add.ptx").expect("it is there");
    child.stdin.take().expect("it is piped").write_all(&text).expect("it is read");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(output.status.code(), Some(0));
}
