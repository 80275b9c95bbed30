//! What is said about a wrong command line, file or kernel: each names the thing that is wrong.

mod common;

use common::failure;

/// Command lines, each with what is said about it.
fn transcript(command: &str, rest: &[&str]) -> String {
    let say = |rest: &&str| {
        format!("$ bitstable {command} {rest}\n{}", failure(&format!("{command} {rest}")))
    };
    rest.iter().map(say).collect::<Vec<_>>().join("\n")
}

#[test]
fn files() {
    let said = failure("run K/none.ptx --grid 1");
    assert!(said.starts_with("error: tests/kernels/none.ptx: No such file"), "{said}");
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
    insta::assert_snapshot!(broken("unknown.ptx", "add.f32 %r7", "add.f33 %r7"));
}

#[test]
fn instructions_that_are_not_executed_have_a_place_and_a_caret() {
    let opaque = "tcgen05.wait::ld.sync.aligned;\n\tadd.f32 %r7";
    insta::assert_snapshot!(broken("opaque.ptx", "add.f32 %r7", opaque));
}

#[test]
fn arguments() {
    let told = transcript(
        "run K/add.ptx --grid 2",
        &[
            "f32:200",
            "i32=1 f32:1 f32:1 n=1",
            "f32:1 f32:1 f32:1 n=f32:1",
            "f32:1 f32:1 f32:1 n=f32=1",
            "f32:1 f32:1 f32:1 n=1.5",
            "x=f32:1 x=f32:1 f32:1 n=1",
            "x=f32:1=@none.npy f32:1 f32:1 n=1",
            "x=f32:3=1,2 f32:1 f32:1 n=1",
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn options() {
    let told = transcript(
        "run K/add.ptx f32:1 f32:1 f32:1 n=1",
        &[
            "",
            "--grid 0",
            "--grid 1,2,3,4",
            "--grid 1 --block 64",
            "--grid 1 --print z",
            "--grid 1 --schedule backward",
            "--grid 1 --mma fast",
            "--grid 1 --triton K/add.ptx",
            "--grid 1 --entry sub",
        ],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn trees() {
    let told = transcript(
        "tree K/row_sum.ptx --grid 1 --shared 8 x=f32:64=1 out=f32:1",
        &["--output out:7", "--leaves y", "--nodes 20", "--output x"],
    );
    insta::assert_snapshot!(told);
}

#[test]
fn a_kernel_among_several_must_be_named() {
    let said = failure("run K/forms.ptx --grid 1");
    assert!(said.contains("cube, bias, fused, maximum, chain"), "{said}");
    assert!(said.contains("help: --entry NAME"), "{said}");
}

#[test]
fn python_s_commands_say_where_they_are() {
    let said = failure("bits kernel.py --anything");
    assert!(said.contains("needs Python and Triton") && said.contains("help: "), "{said}");
}

#[test]
fn nothing_at_all_shows_the_help() {
    assert!(failure("").contains("Usage: bitstable <COMMAND>"));
}
