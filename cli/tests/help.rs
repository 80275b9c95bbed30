//! What `--help` teaches, as a reader sees it.

mod common;

use common::answer;

#[test]
fn commands() {
    insta::assert_snapshot!(answer(0, "--help"));
}

#[test]
fn run() {
    insta::assert_snapshot!(answer(0, "run --help"));
}

#[test]
fn tree() {
    insta::assert_snapshot!(answer(0, "tree --help"));
}

#[test]
fn equiv() {
    insta::assert_snapshot!(answer(0, "equiv --help"));
}

#[test]
fn short_help_is_shorter() {
    for command in ["run", "tree", "equiv"] {
        let [short, long] = ["-h", "--help"].map(|flag| answer(0, &format!("{command} {flag}")));
        assert!(short.lines().count() < long.lines().count() / 2 + 20, "{short}");
        assert!(short.contains("`--help` explains"));
    }
}

#[test]
fn the_version_is_the_workspace_s() {
    assert_eq!(answer(0, "--version"), format!("bitstable {}\n", env!("CARGO_PKG_VERSION")));
}
