//! What is said about a wrong command line, file or kernel: each names the thing that is wrong.

mod common;

use common::failure;

#[test]
fn files() {
    insta::assert_snapshot!(failure("run K/none.ptx --grid 1"), @r"
    error: tests/kernels/none.ptx: No such file or directory (os error 2)
    ");
    let said = failure("run tests --grid 1");
    assert!(said.starts_with("error: tests: "), "{said}");
}

fn broken(name: &str, from: &str, to: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join(name);
    let text = std::fs::read_to_string("tests/kernels/add.ptx").expect("it is there");
    assert!(text.contains(from));
    std::fs::write(&file, text.replace(from, to)).expect("it is written");
    let arguments = "--grid 2 x=f32:200=iota y=f32:200=0.5 out=f32:200 n=200";
    failure(&format!("run {} {arguments}", file.display()))
        .replace(&format!("{}/", folder.path().display()), "")
}

#[test]
fn syntax_errors_have_a_place_and_a_caret() {
    insta::assert_snapshot!(broken("unknown.ptx", "add.f32 %r7", "add.f33 %r7"), @"");
}

#[test]
fn instructions_that_are_not_executed_have_a_place_and_a_caret() {
    let opaque = "tcgen05.wait::ld.sync.aligned;\n\tadd.f32 %r7";
    insta::assert_snapshot!(broken("opaque.ptx", "add.f32 %r7", opaque), @"");
}

#[test]
fn arguments() {
    let add = "run K/add.ptx --grid 2";
    insta::assert_snapshot!(failure(&format!("{add} f32:200")), @"");
    insta::assert_snapshot!(failure(&format!("{add} i32=1 f32:1 f32:1 n=1")), @"");
    insta::assert_snapshot!(failure(&format!("{add} f32:1 f32:1 f32:1 n=f32:1")), @"");
    insta::assert_snapshot!(failure(&format!("{add} f32:1 f32:1 f32:1 n=f32=1")), @"");
    insta::assert_snapshot!(failure(&format!("{add} f32:1 f32:1 f32:1 n=1.5")), @"");
    insta::assert_snapshot!(failure(&format!("{add} x=f32:1 x=f32:1 f32:1 n=1")), @"");
    insta::assert_snapshot!(failure(&format!("{add} x=f32:1=@none.npy f32:1 f32:1 n=1")), @"");
    insta::assert_snapshot!(failure(&format!("{add} x=f32:3=1,2 f32:1 f32:1 n=1")), @"");
}

#[test]
fn options() {
    let add = "run K/add.ptx f32:1 f32:1 f32:1 n=1";
    insta::assert_snapshot!(failure(add), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 0")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --block 64")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --print z")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --schedule backward")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --mma fast")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --triton K/add.ptx")), @"");
    insta::assert_snapshot!(failure(&format!("{add} --grid 1 --entry sub")), @"");
}

#[test]
fn trees() {
    let sum = "tree K/row_sum.ptx --grid 1 --shared 8 x=f32:64=1 out=f32:1";
    insta::assert_snapshot!(failure(&format!("{sum} --output out:7")), @"");
    insta::assert_snapshot!(failure(&format!("{sum} --leaves y")), @"");
    insta::assert_snapshot!(failure(&format!("{sum} --nodes 20")), @"");
    insta::assert_snapshot!(failure(&format!("{sum} --output x")), @"");
}

#[test]
fn python_s_commands_say_where_they_are() {
    insta::assert_snapshot!(failure("bits kernel.py --anything"), @"");
}

#[test]
fn nothing_at_all_shows_the_help() {
    assert!(failure("").contains("Usage: bitstable <COMMAND>"));
}
