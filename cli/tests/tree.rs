//! `bitstable tree`: verdicts, groups, comparisons, drawings.

mod common;

use common::{answer, json};

/// Rows of 64 elements; what `{}` stands for is the kernel.
fn rows(kernel: &str) -> String {
    format!("tree K/{kernel} --grid 3 --shared 8 x=f32:192=random:1 out=f32:3")
}

#[test]
fn a_canonical_sum() {
    insta::assert_snapshot!(answer(0, &format!("{} --print=8", rows("row_sum.ptx"))));
}

#[test]
fn stock_triton_folds_lanes_farthest_first() {
    insta::assert_snapshot!(answer(1, &rows("row_sum_stock.ptx")));
}

#[test]
fn elementwise_outputs_have_nothing_to_judge() {
    let line = "tree K/add.ptx --grid 2 x=f32:200=1 y=f32:200=2 out=f32:200 n=200";
    insta::assert_snapshot!(answer(0, line));
}

/// What Triton compiles: every lane has a maximum of its own, with operands swapped, and it is one
/// value; its order does not matter, and that of the sum does.
#[test]
fn a_softmax_has_a_sum_and_a_maximum() {
    let line = "tree K/softmax.ptx --shared 16 --grid 2 x=f32:2x1024=random:1 out=f32:2x1024";
    let report = json(0, &format!("{line} --extent 1024 --json"));
    let groups = report["files"][0]["groups"].as_array().expect("groups");
    assert_eq!(groups.len(), 1);
    let told = ["count", "reductions", "combine", "verdict"].map(|key| groups[0][key].clone());
    assert_eq!(serde_json::json!(told), serde_json::json!([2048, 2, "add.rn.f32", "canonical"]));
}

/// The verdict on one of `forms.ptx`, whose last argument is the output.
fn form(entry: &str, status: u8, arguments: &str) -> serde_json::Value {
    let line = format!("tree K/forms.ptx --entry {entry} --grid 1 {arguments} --json");
    json(status, &line)["files"][0]["groups"][0]["verdict"].clone()
}

#[test]
fn a_reduction_joins_different_values_that_are_computed_alike() {
    assert_eq!(form("cube", 0, "f32:1=2 f32:1"), "no-reduction");
    assert_eq!(form("bias", 0, "f32:1=2 f32:1=3 f32:1=4 f32:1"), "no-reduction");
    assert_eq!(form("chain", 1, "f32:4=iota f32:1"), "departs");
}

#[test]
fn a_chain_of_fused_products_departs() {
    assert_eq!(form("fused", 1, "f32:4=iota f32:4=iota f32:1"), "departs");
}

#[test]
fn the_order_of_a_maximum_is_not_held_against_it() {
    assert_eq!(form("maximum", 0, "f32:4=iota f32:1"), "any-order");
}

#[test]
fn the_extent_is_held_against_the_tree() {
    let line = rows("row_sum.ptx");
    assert!(answer(0, &format!("{line} --extent 64")).contains("3 canonical"));
    let said = answer(1, &format!("{line} --extent 128"));
    assert!(said.contains("64 elements in a tree over 64, where the axis has 128"), "{said}");
}

#[test]
fn two_kernels_are_compared() {
    let compared = |other: &str| format!("{} --compare K/{other}", rows("row_sum.ptx"));
    assert!(answer(0, &compared("row_sum.ptx")).ends_with("the trees are the same\n"));
    insta::assert_snapshot!(answer(1, &compared("row_sum_stock.ptx")));
}

/// Equal trees are enough for a comparison, canonical or not.
#[test]
fn a_comparison_judges_sameness_alone() {
    let line = format!("{} --compare K/row_sum_stock.ptx", rows("row_sum_stock.ptx"));
    assert!(answer(0, &line).contains("3 not canonical"));
}

#[test]
fn one_output_may_be_asked_for() {
    let report = json(0, &format!("{} --output out:1 --json", rows("row_sum.ptx")));
    let group = &report["files"][0]["groups"][0];
    assert_eq!((&group["elements"][0], &group["count"]), (&"out[1]".into(), &1.into()));
}

#[test]
fn a_race_leaves_nothing_to_rely_on() {
    let line = "tree K/racy.ptx --grid 1 --shared 128 --output out:0 out=i32:64";
    let said = answer(1, line);
    assert!(said.contains("error: race"), "{said}");
}

/// As documented in `docs/command.md`.
#[test]
fn the_json_document() {
    let report = json(0, &format!("{} --json", rows("row_sum.ptx")));
    assert_eq!(keys(&report), ["command", "difference", "exit", "files", "same", "version"]);
    let file = &report["files"][0];
    assert_eq!(
        keys(file),
        [
            "block", "depends", "digest", "errors", "file", "grid", "groups", "kernel", "numbers",
            "outputs", "shared",
        ]
    );
    let group = &file["groups"][0];
    assert_eq!(
        keys(group),
        [
            "combine",
            "contractible",
            "count",
            "depth",
            "digest",
            "elements",
            "explanation",
            "first",
            "leaves",
            "ordered",
            "reductions",
            "tree",
            "verdict",
        ]
    );
    assert_eq!(group["contractible"], false);
    assert_eq!(group["elements"], serde_json::json!(["out[0..3]"]));
    assert_eq!((&group["verdict"], &group["leaves"]), (&"canonical".into(), &64.into()));
    assert_eq!(group["digest"].as_str().map(str::len), Some(32));
}

fn keys(value: &serde_json::Value) -> Vec<&str> {
    let mut keys: Vec<&str> =
        value.as_object().map(|all| all.keys().map(String::as_str).collect()).unwrap_or_default();
    keys.sort_unstable();
    keys
}

#[test]
fn drawings_are_svg_and_show_departures_in_red() {
    let folder = tempfile::tempdir().expect("a folder");
    let draw = |kernel: &str, status| {
        let file = folder.path().join(kernel).with_extension("svg");
        answer(status, &format!("{} --output out:2 --svg {}", rows(kernel), file.display()));
        std::fs::read_to_string(file).expect("it was written")
    };
    let (good, bad) = (draw("row_sum.ptx", 0), draw("row_sum_stock.ptx", 1));
    assert!(good.starts_with("<svg") && good.trim_end().ends_with("</svg>"));
    assert!(good.contains("out[2]") && good.contains("x[128]"));
    assert!(!good.contains("class=\"departing\"") && bad.contains("not canonical"));
}

/// Triton writes `kernel.json` beside `kernel.ptx`; block and shared memory come from there.
#[test]
fn metadata_beside_the_kernel_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = folder.path().join("row_sum.ptx");
    let text = std::fs::read_to_string("tests/kernels/row_sum.ptx").expect("it is there");
    std::fs::write(&kernel, text.replace(".reqntid 64", "")).expect("it is written");
    let told = r#"{"num_warps": 2, "warp_size": 32, "shared": 8, "name": "row_sum"}"#;
    std::fs::write(kernel.with_extension("json"), told).expect("it is written");
    let line = format!("tree {} --grid 3 x=f32:192=random:1 out=f32:3", kernel.display());
    let said = answer(0, &line);
    assert!(said.contains("block 64, shared memory 8") && said.contains("3 canonical"), "{said}");
}
