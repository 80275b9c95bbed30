//! `bitstable equiv`: classes, facts, lists, errors.

mod common;

use std::{fmt::Write as _, path::Path};

use common::{answer, bitstable, failure, json};
use serde_json::{Value, json};

const SAME: &str = "equiv K/row_sum.ptx K/row_sum.ptx";

/// A copy of a test kernel with one word replaced.
fn copy(folder: &Path, name: &str, kernel: &str, from: &str, to: &str) -> String {
    let text = std::fs::read_to_string(format!("tests/kernels/{kernel}")).expect("it is there");
    assert!(text.contains(from), "{from}");
    let file = folder.join(name);
    std::fs::write(&file, text.replace(from, to)).expect("it is written");
    file.display().to_string()
}

/// The files of each class.
fn classes(report: &Value) -> Vec<Vec<String>> {
    let classes = report["classes"].as_array().expect("classes");
    let files = |class: &Value| serde_json::from_value(class["files"].clone()).expect("names");
    classes.iter().map(files).collect()
}

/// Signatures are long, and another version's may be others.
fn without_digests(text: &str) -> String {
    let blank = |word: &str| match word.len() == 32 && word.bytes().all(|b| b.is_ascii_hexdigit()) {
        true => "<signature>".to_owned(),
        false => word.to_owned(),
    };
    text.split('\n')
        .map(|line| line.split(' ').map(blank).collect::<Vec<_>>().join(" "))
        .collect::<Vec<_>>()
        .join("\n")
}

#[test]
fn a_kernel_equals_itself() {
    let said = without_digests(&answer(0, SAME));
    let row = "  tests/kernels/row_sum.ptx\n";
    assert_eq!(
        said,
        format!("the same: 2 kernels, 1 class\nclass 1  <signature>  2 kernels\n{row}{row}")
    );
}

#[test]
fn what_is_no_instruction_is_no_difference() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = copy(folder.path(), "other.ptx", "row_sum.ptx", ".loc 1 13 8", "// as before");
    let report = json(0, &format!("equiv K/row_sum.ptx {other} --confirm --json"));
    assert_eq!(classes(&report), [["tests/kernels/row_sum.ptx".to_owned(), other]]);
    assert_eq!(report["unconfirmed"], json!([]));
}

#[test]
fn another_order_is_another_class() {
    let said = answer(1, "equiv K/row_sum.ptx K/row_sum_stock.ptx");
    let expected = "not proved the same: 2 kernels, 2 classes\n\
                    class 1  <signature>  1 kernel\n  tests/kernels/row_sum.ptx\n\
                    class 2  <signature>  1 kernel\n  tests/kernels/row_sum_stock.ptx\n";
    assert_eq!(without_digests(&said), expected);
}

#[test]
fn differences_are_explained() {
    let report = json(1, "equiv K/row_sum.ptx K/row_sum_stock.ptx --explain --json");
    let difference = &report["differences"][0];
    assert_eq!(difference["verdict"], "different", "{difference:#}");
    assert_eq!((&difference["classes"], &difference["kernels"]), (&json!([0, 1]), &json!([0, 1])));
    let output = &difference["outputs"][0];
    assert!(output["output"].is_string() && output["text"].is_string(), "{output:#}");
    assert!(output["at"][0]["line"].as_u64() > Some(0), "{output:#}");
    let said = answer(1, "equiv K/row_sum.ptx K/row_sum_stock.ptx --explain");
    assert!(said.contains("classes 1 and 2:\n  first: tests/kernels/row_sum.ptx\n"), "{said}");
    assert!(said.contains("row_sum.py:"), "{said}");
    // Not more than was asked for.
    let none = json(1, "equiv K/row_sum.ptx K/row_sum_stock.ptx --explain=0 --json");
    assert_eq!(none["differences"], json!([]));
}

#[test]
fn the_json_document() {
    let report = json(1, "equiv K/row_sum.ptx K/row_sum_stock.ptx K/row_sum.ptx --json");
    assert_eq!(
        keys(&report),
        ["classes", "command", "differences", "errors", "exit", "same", "schema", "unconfirmed"]
    );
    assert_eq!((&report["command"], &report["schema"]), (&json!("equiv"), &json!(1)));
    assert_eq!((&report["same"], &report["exit"]), (&json!(false), &json!(1)));
    let class = &report["classes"][0];
    assert_eq!(keys(class), ["contractions", "files", "kernels", "signature", "writes"]);
    assert_eq!(class["kernels"], json!([0, 2]));
    assert_eq!(class["writes"], json!([1]));
    let signature = class["signature"].as_str().expect("a text");
    assert!(signature.len() == 32 && signature.bytes().all(|byte| byte.is_ascii_hexdigit()));
    assert_eq!(report["errors"], json!([]));
}

fn keys(value: &Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
    keys.sort_unstable();
    keys
}

#[test]
fn one_kernel_alone_is_one_class() {
    assert_eq!(json(0, "equiv K/softmax.ptx --json")["same"], true);
}

#[test]
fn a_file_that_is_wrong_takes_no_answer_from_the_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let text = std::fs::read_to_string("tests/kernels/row_sum.ptx").expect("it is there");
    let cut = folder.path().join("cut.ptx");
    std::fs::write(&cut, &text[..text.len() / 2]).expect("it is written");
    let bytes = folder.path().join("bytes.ptx");
    std::fs::write(&bytes, b"\xff\xfe").expect("it is written");
    let empty =
        copy(folder.path(), "empty.ptx", "row_sum.ptx", ".visible .entry", ".visible .func");
    let (cut, bytes) = (cut.display(), bytes.display());
    let line = format!("{SAME} K/none.ptx {cut} tests {bytes} {empty} K/forms.ptx");

    let ended = bitstable(&format!("{line} --json"));
    assert_eq!((ended.status, ended.err.as_str()), (2, ""));
    let report: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!((&report["same"], &report["exit"]), (&json!(false), &json!(2)));
    assert_eq!(report["classes"][0]["kernels"], json!([0, 1]));
    assert_eq!(report["classes"].as_array().map(Vec::len), Some(1));
    let errors = report["errors"].as_array().expect("errors");
    let numbers: Vec<u64> = errors.iter().filter_map(|error| error["kernel"].as_u64()).collect();
    assert_eq!(numbers, [2, 3, 4, 5, 6, 7]);
    let said = |at: usize| errors[at]["error"].as_str().expect("a text");
    assert!(said(0).starts_with("No such file"), "{}", said(0));
    assert!(said(1).starts_with("PTX line ") && said(1).contains('^'), "{}", said(1));
    assert!(said(2).contains("directory"), "{}", said(2));
    assert_eq!(said(3), "byte 0 is not UTF-8: no PTX text");

    let ended = bitstable(&line);
    assert_eq!(ended.status, 2);
    assert!(ended.out.starts_with("not proved the same: 2 kernels, 1 class, 6 errors"));
    assert!(ended.err.contains("error: tests/kernels/none.ptx: No such file"), "{}", ended.err);
    assert!(ended.err.contains("cut.ptx:") && ended.err.contains('^'), "{}", ended.err);
}

#[test]
fn an_entry_is_chosen_or_missing() {
    let report = json(0, "equiv K/forms.ptx --entry cube --json");
    assert_eq!(report["classes"][0]["kernels"], json!([0]));
    let ended = bitstable("equiv K/forms.ptx --entry square");
    assert_eq!(ended.status, 2);
    assert!(ended.err.starts_with("error: tests/kernels/forms.ptx: "), "{}", ended.err);
}

/// One with the metadata of a launch, one without.
#[test]
fn facts_are_of_the_kernels_parameters() {
    for (facts, said) in [
        ("--scalar n=1", "there is no parameter named `n`; there are: add_param_0"),
        ("--scalar 9=1", "there is no parameter 9: the kernel has 6 parameters"),
        ("--scalar 0=1", "parameter 0: it is a pointer"),
        ("--scalar 3=1.5", "`1.5` is no u32"),
        ("--scalar 3=1 --scalar add_param_3=2", "parameter 3 has more than one value"),
        ("--block 64", "a block of 64,1,1 is not the kernel's own, .reqntid 128"),
        ("--grid 0", "a grid has a size of 0"),
    ] {
        let ended = bitstable(&format!("equiv K/add.ptx {facts}"));
        assert_eq!(ended.status, 2, "{facts}");
        assert!(ended.err.starts_with("error: tests/kernels/add.ptx: "), "{}", ended.err);
        assert!(ended.err.contains(said), "{}", ended.err);
    }
    answer(0, "equiv K/add.ptx K/add.ptx --scalar 3=200 --grid 2 --block 128");
    answer(0, "equiv K/add.ptx K/add.ptx --scalar add_param_3=i32:-1 --grid 2,1,1");
}

#[test]
fn command_lines_that_are_wrong() {
    assert!(failure("equiv").contains("error: there are no kernels to compare"));
    assert!(failure("equiv --scalar 3").contains("3=1024"));
    assert!(failure("equiv - --files-from -").contains("read once, not 2 times"));
    assert!(failure("equiv --files-from K/none.txt").contains("none.txt: No such file"));
    assert!(failure("equiv K/add.ptx --jobs many").contains("invalid value 'many'"));
}

#[test]
fn files_come_from_a_list() {
    let folder = tempfile::tempdir().expect("a folder");
    let list = folder.path().join("list");
    let kernels = "tests/kernels/row_sum.ptx\r\n\ntests/kernels/row_sum_stock.ptx";
    std::fs::write(&list, kernels).expect("it is written");
    let report = json(1, &format!("equiv K/row_sum.ptx --files-from {} --json", list.display()));
    let (ours, stock) = ("tests/kernels/row_sum.ptx", "tests/kernels/row_sum_stock.ptx");
    assert_eq!(classes(&report), [vec![ours, ours], vec![stock]]);
    std::fs::write(&list, "\n").expect("it is written");
    assert!(failure(&format!("equiv --files-from {}", list.display())).contains("no kernels"));
}

fn launches(all: &Value) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("launches.json");
    std::fs::write(&file, all.to_string()).expect("it is written");
    let line = format!("equiv --launches {}", file.display());
    (folder, line)
}

#[test]
fn only_kernels_of_a_group_are_compared() {
    let (row, stock) = ("tests/kernels/row_sum.ptx", "tests/kernels/row_sum_stock.ptx");
    let apart = json!([
        {"file": row, "group": "pinned"}, {"file": stock, "group": 7},
        {"file": row, "group": "pinned", "name": "again"},
        {"file": stock, "group": 7},
    ]);
    let (_folder, line) = launches(&apart);
    let report = json(0, &format!("{line} --json"));
    let groups: Vec<&Value> =
        report["classes"].as_array().into_iter().flatten().map(|class| &class["group"]).collect();
    assert_eq!(groups, [&json!("pinned"), &json!("7")], "{report:#}");
    assert_eq!(report["classes"][0]["files"], json!([row, "again"]));
    assert_eq!(report["classes"][1]["files"], json!([stock, stock]));
    let said = answer(0, &line);
    assert!(said.starts_with("the same: 4 kernels, 2 classes in 2 groups\n"), "{said}");
    assert!(said.contains("2 kernels of group 7"), "{said}");
    // And of one group, they are not the same.
    let together = json!([{"file": row, "group": "a"}, {"file": stock, "group": "a"}]);
    let (_folder, line) = launches(&together);
    assert!(answer(1, &line).starts_with("not proved the same: 2 kernels, 2 classes in 1 group\n"));
}

#[test]
fn launches_have_facts_of_their_own() {
    let kernel = |n: Value| json!({"file": "tests/kernels/add.ptx", "scalars": {"3": n}});
    let (_folder, line) = launches(&json!([kernel(json!(200)), kernel(json!("0xc8"))]));
    answer(0, &format!("{line} --grid 2 --scalar 3=7"));
    for (kernels, said) in [
        (json!([{"file": "a", "colour": 1}]), "unknown field `colour`"),
        (json!([{"name": "a"}]), "kernel 0: it has neither a `file` nor a `ptx`"),
        (json!([{"file": "a", "ptx": "b"}]), "kernel 0: it has a `file` and a `ptx`"),
        (json!([{"file": "a", "grid": []}]), "a grid is one to three numbers, not 0"),
        (json!([{"file": "a", "group": 1.5}]), "a group is a string or an integer"),
        (json!([{"file": "a", "scalars": {"3": [1]}}]), "a scalar is a number"),
        (json!({"file": "a"}), "expected a sequence"),
        (json!([]), "there are no kernels to compare"),
    ] {
        let (_folder, line) = launches(&kernels);
        let told = failure(&line);
        assert!(told.contains(said), "{told}");
    }
    let (_folder, line) = launches(&json!([kernel(json!(1.5)), kernel(json!(true))]));
    let ended = bitstable(&format!("{line} --json"));
    let report: Value = serde_json::from_str(&ended.out).expect("JSON");
    assert_eq!((ended.status, &report["errors"][0]["kernel"]), (2, &json!(0)));
    assert_eq!(report["classes"][0]["kernels"], json!([1]));
}

#[test]
fn what_ptxas_may_fuse_is_a_note_of_a_class_of_several() {
    let folder = tempfile::tempdir().expect("a folder");
    let fusible = "mul.f32 %r13, %r10, %r10;\n\tadd.f32 %r12, %r13, %r11";
    let sum = "add.rn.f32 %r12, %r10, %r11";
    let a = copy(folder.path(), "a.ptx", "row_sum.ptx", sum, fusible);
    let b = copy(folder.path(), "b.ptx", "row_sum.ptx", sum, &format!("// b\n\t{fusible}"));
    let report = json(0, &format!("equiv {a} {b} --json"));
    let source = json!({"file": "/home/user/kernels/row_sum.py", "line": 13, "column": 8});
    assert_eq!(report["classes"][0]["contractions"], json!([{"line": 49, "source": source}]));
    let note = "note: ptxas may fuse a product with the sum that takes it, \
                at /home/user/kernels/row_sum.py:13 (PTX line 49)";
    assert!(answer(0, &format!("equiv {a} {b}")).contains(note));
    assert!(
        !answer(0, &format!("equiv {a}")).contains("note"),
        "alone, there is nothing to differ"
    );
    let rounded = fusible.replace("mul.f32", "mul.rn.f32").replace("add.f32", "add.rn.f32");
    let c = copy(folder.path(), "c.ptx", "row_sum.ptx", sum, &rounded);
    assert_eq!(json(0, &format!("equiv {c} --json"))["classes"][0]["contractions"], json!([]));
}

/// What is not understood is the same as its own text, and as no other.
#[test]
fn what_is_not_followed_is_its_own_text() {
    let folder = tempfile::tempdir().expect("a folder");
    let opaque = "tcgen05.wait::ld.sync.aligned;\n\tadd.rn.f32 %r12";
    let a = copy(folder.path(), "a.ptx", "row_sum.ptx", "add.rn.f32 %r12", opaque);
    let b = copy(folder.path(), "b.ptx", "row_sum.ptx", "add.rn.f32 %r12", opaque);
    let report = json(0, &format!("equiv {a} {b} --json --confirm"));
    let obstacle = &report["classes"][0]["obstacle"];
    assert!(obstacle["what"].is_string() && obstacle["line"].as_u64() > Some(1), "{report:#}");
    let other = opaque.replace("wait::ld", "wait::st");
    let c = copy(folder.path(), "c.ptx", "row_sum.ptx", "add.rn.f32 %r12", &other);
    let report = json(1, &format!("equiv {a} {c} --json --explain"));
    // Its class says why; a comparison says no more.
    assert_eq!(report["differences"], json!([]));
    let report =
        json(1, &format!("equiv {a} K/row_sum.ptx {c} K/row_sum_stock.ptx --json --explain"));
    assert_eq!(report["differences"].as_array().map(Vec::len), Some(1));
    assert_eq!(report["differences"][0]["kernels"], json!([1, 3]));
    let said = answer(1, &format!("equiv {a} {c}"));
    assert!(said.contains("not followed, and so the same as its own text alone"), "{said}");
}

/// Many files, some of them equal, some wrong: the answer is the same on any number of threads.
#[test]
fn threads_do_not_enter_the_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut list = String::new();
    for number in 0..60 {
        let value = 3 + number % 7;
        let kernel = copy(
            folder.path(),
            &format!("{number}.ptx"),
            "row_sum.ptx",
            "shl.b32 %r3, %r1, 6",
            &format!("shl.b32 %r3, %r1, {value}"),
        );
        let _ = writeln!(list, "{kernel}");
        if number % 20 == 0 {
            let _ = writeln!(list, "none{number}.ptx");
        }
    }
    let file = folder.path().join("list");
    std::fs::write(&file, list).expect("it is written");
    let run = |jobs: u32| {
        let line = format!("equiv --files-from {} --json --jobs {jobs}", file.display());
        bitstable(&line)
    };
    let one = run(1);
    assert_eq!(one.status, 2);
    let report: Value = serde_json::from_str(&one.out).expect("JSON");
    assert_eq!(report["classes"].as_array().map(Vec::len), Some(7));
    assert_eq!(report["errors"].as_array().map(Vec::len), Some(3));
    for jobs in [2, 3, 16] {
        assert_eq!(run(jobs).out, one.out, "{jobs} threads");
    }
}

#[test]
fn long_answers_are_cut_unless_all_is_asked_for() {
    let line = format!("equiv{}", " K/row_sum.ptx".repeat(20));
    assert!(answer(0, &line).contains("\n  … and 4 more (--all)\n"));
    assert_eq!(answer(0, &format!("{line} --all")).lines().count(), 22);
}
