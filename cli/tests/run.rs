//! `bitstable run`: what it finds, what it prints, and how it ends.

mod common;

use common::{answer, bitstable, json};

const ADD: &str = "run K/add.ptx --grid 2 x=f32:200=iota y=f32:200=0.5 out=f32:200";
const RACY: &str = "run K/racy.ptx --grid 1 --shared 128 out=i32:64";

#[test]
fn a_correct_kernel() {
    insta::assert_snapshot!(answer(0, &format!("{ADD} n=200 --print out:10 --digest")));
}

#[test]
fn a_race_is_explained() {
    insta::assert_snapshot!(answer(1, RACY));
}

#[test]
fn bytes_that_depend_on_the_schedule() {
    insta::assert_snapshot!(answer(1, &format!("{RACY} --no-races --schedules 3")));
}

#[test]
fn bytes_that_do_not() {
    let said = answer(0, &format!("{ADD} n=200 --schedules 4"));
    assert!(said.contains("4 schedules, the same bytes under all"), "{said}");
}

#[test]
fn a_mask_leaves_elements_alone() {
    let said = answer(0, &format!("{ADD} n=i32=100"));
    assert!(said.contains("100 of 200 elements changed"), "{said}");
    assert!(said.lines().any(|line| line.starts_with("x ") && line.ends_with("unchanged")));
}

#[test]
fn an_access_outside_a_buffer_is_found() {
    let report = json(1, &format!("{ADD} n=256 --json"));
    let finding = &report["runs"][0]["findings"][0];
    assert_eq!(
        (&finding["kind"], &finding["severity"]),
        (&"out-of-bounds".into(), &"error".into())
    );
    let source = serde_json::json!({"file": "/home/user/kernels/add.py", "line": 8, "column": 12});
    assert_eq!(finding["places"][0]["source"], source);
    assert_eq!(report["exit"], 1);
}

#[test]
fn a_schedule_is_repeated_exactly() {
    let line = format!("{RACY} --no-races --schedule random:7 --digest");
    assert_eq!(answer(0, &line), answer(0, &line));
    assert_ne!(answer(0, &line), answer(0, &line.replace("random:7", "reversed")));
}

/// As documented in `docs/command.md`.
#[test]
fn the_json_document() {
    let report = json(1, &format!("{RACY} --json --schedules 3 --print out:2"));
    assert_eq!(
        keys(&report),
        [
            "block",
            "buffers",
            "command",
            "difference",
            "exit",
            "file",
            "grid",
            "kernel",
            "runs",
            "schedules_agree",
            "shared",
            "version",
        ]
    );
    assert_eq!(
        keys(&report["runs"][0]),
        ["errors", "findings", "findings_left_out", "printed", "schedule", "statistics",]
    );
    assert_eq!(
        keys(&report["buffers"][0]),
        ["changed", "count", "name", "parameter", "sha256", "type", "values",]
    );
    assert_eq!(report["runs"].as_array().map(Vec::len), Some(3));
    assert_eq!(report["buffers"][0]["values"], serde_json::json!(["32", "33"]));
    let difference = serde_json::json!({
        "buffer": "out", "element": 0, "count": 64,
        "schedules": ["forward", "reversed"], "values": ["32", "0"],
    });
    assert_eq!(report["difference"], difference);
    assert_eq!(report["schedules_agree"], false);
}

fn keys(value: &serde_json::Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
    keys.sort_unstable();
    keys
}

/// The digest is SHA-256 of the bytes alone, so that `sha256sum` of a GPU's bytes compares.
#[test]
fn saved_files_hold_what_was_digested() {
    let folder = tempfile::tempdir().expect("a folder");
    let (raw, array) = (folder.path().join("out.bin"), folder.path().join("out.npy"));
    let saves = format!("--save out={} --save out={}", raw.display(), array.display());
    let report = json(0, &format!("{ADD} n=200 --json {saves}"));
    let bytes = std::fs::read(&raw).expect("it was written");
    let elements: Vec<f32> =
        bytes.chunks(4).map(|four| f32::from_le_bytes(four.try_into().expect("four"))).collect();
    let expected: Vec<f32> = (0..200).map(|at| at as f32 + 0.5).collect();
    assert_eq!(elements, expected);
    assert_eq!(std::fs::read(&array).expect("it was written")[128..], bytes);
    // And back in: the array as an input.
    let input = array.display();
    let line = format!("run K/add.ptx --grid 2 x=f32:200=@{input} f32:200 f32:200 n=200 --json");
    assert_eq!(json(0, &line)["buffers"][0]["sha256"], report["buffers"][2]["sha256"]);
}

#[test]
fn dynamic_shared_memory_of_unknown_size_is_noted() {
    let ended = bitstable("run K/racy.ptx --grid 1 out=i32:64");
    assert_eq!(ended.status, 1);
    assert!(ended.err.starts_with("note: the kernel has dynamic shared memory"), "{}", ended.err);
    assert!(ended.out.contains("out-of-bounds"), "{}", ended.out);
}

#[test]
fn the_step_limit_is_a_finding() {
    let said = answer(1, &format!("{ADD} n=200 --step-limit 10"));
    assert!(said.contains("error: step-limit"), "{said}");
}
