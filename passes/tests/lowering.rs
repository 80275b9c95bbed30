//! What becomes of modules that Triton made, and of small ones.

mod common;

use std::{fs, path::PathBuf};

use bitstable_passes::{Rewritten, rewrite};
use common::{BLOCKED, Module, machine};

fn data(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn pin(text: &str) -> Rewritten {
    rewrite(text, "pin-reduce").unwrap_or_else(|failure| panic!("{failure:?}\n{text}"))
}

fn count(text: &str, what: &str) -> usize {
    text.matches(what).count()
}

#[test]
fn kernels_of_triton() {
    for (name, line, extent, reductions) in [
        ("rowsum_sm90.mlir", 92, 256, 1),
        ("rowsum_gfx942.mlir", 92, 256, 1),
        ("colsum_sm90.mlir", 96, 64, 1),
        ("allsum_gfx942.mlir", 100, 1024, 1),
        ("argmax_sm90.mlir", 104, 128, 1),
        ("welford_gfx942.mlir", 116, 128, 1),
        ("loop_sm90.mlir", 126, 128, 1),
    ] {
        let rewritten = pin(&data(name));
        assert_eq!(rewritten.report.reductions.len(), reductions, "{name}");
        let entry = &rewritten.report.reductions[0];
        assert_eq!((entry.at.file.as_deref(), entry.at.line), (Some("kernel.py"), line), "{name}");
        assert_eq!((entry.extent, entry.digest.len()), (extent, 32), "{name}");
        assert!(!rewritten.text.contains("tt.order"), "{name}");
        assert!(!rewritten.text.contains("bitstable.pin"), "{name}");
        assert!(!rewritten.text.contains("\"tt.reduce\""), "{name}");
        // What comes out parses, and has nothing left to lower.
        assert!(pin(&rewritten.text).report.reductions.is_empty(), "{name}");
    }
}

#[test]
fn the_digest_is_the_extents_alone() {
    let digest = |name| pin(&data(name)).report.reductions[0].digest.clone();
    assert_eq!(digest("rowsum_sm90.mlir"), digest("rowsum_gfx942.mlir"));
    assert_ne!(digest("rowsum_sm90.mlir"), digest("colsum_sm90.mlir"));
}

#[test]
fn an_order_that_does_not_matter_is_left_to_triton() {
    let rewritten = pin(&data("max_sm90.mlir"));
    assert!(rewritten.text.contains("\"tt.reduce\""));
    assert!(!rewritten.text.contains("tt.order") && !rewritten.text.contains("bitstable.pin"));
    assert_eq!(rewritten.report.reductions[0].plan, ["order-insensitive: left to Triton"]);
}

#[test]
fn only_operations_tell_the_kind_of_a_combine() {
    let kind = |combine: &str, element: &str| {
        let module = Module { combine: combine.into(), ..Module::of(element) };
        pin(&module.text()).report.reductions[0].plan[0].starts_with("order-insensitive")
    };
    assert!(kind("%s = \"arith.maxnumf\"(%b, %a) : (f32, f32) -> f32", "f32"));
    assert!(kind("%s = \"arith.addi\"(%a, %b) : (i32, i32) -> i32", "i32"));
    assert!(!kind("%s = \"arith.addf\"(%a, %b) : (f32, f32) -> f32", "f32"));
    assert!(!kind("%s = \"arith.addi\"(%a, %a) : (i32, i32) -> i32", "i32"));
    let by_hand = "%g = \"arith.cmpf\"(%a, %b) <{predicate = 2 : i64}> : (f32, f32) -> i1\n\
                   %s = \"arith.select\"(%g, %a, %b) : (i1, f32, f32) -> f32";
    assert!(!kind(by_hand, "f32"));
}

/// Stock order folds lane bit 4 first; the canonical tree folds bit 0 first.
#[test]
fn butterflies_count_up() {
    let layout = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], \
                  warpsPerCTA = [4, 1], order = [1, 0]}>";
    let text = Module::default().text().replace(BLOCKED, layout).replace("4x256", "4x32");
    let rewritten = pin(&text);
    let plan = &rewritten.report.reductions[0].plan;
    let expected: Vec<String> = (0..5).map(|bit| format!("butterfly lane bit {bit}")).collect();
    assert_eq!(plan[..5], expected);
    assert_eq!(count(&rewritten.text, "\"nvvm.shfl.sync\""), 5);
    let masks = [1, 2, 4, 8, 16].map(|mask| {
        let constant = format!("value = {mask} : i32");
        rewritten.text.find(&constant).unwrap_or_else(|| panic!("{constant}: {}", rewritten.text))
    });
    assert!(masks.is_sorted(), "{masks:?}");
    assert!(!rewritten.text.contains("llvm.fadd"));
}

#[test]
fn a_whole_wave_of_amd_is_folded_by_row_shifts() {
    let layout = "#ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], \
                  warpsPerCTA = [4, 1], order = [1, 0]}>";
    let text = Module { module: machine("hip:gfx942", 64, 4, 1), ..Module::default() }.text();
    let rewritten = pin(&text.replace(BLOCKED, layout).replace("4x256", "4x64"));
    // row_shr 1, 2, 4, 8, row_bcast 15 and 31, in this order.
    let controls = [273, 274, 276, 280, 322, 323].map(|control| {
        let attribute = format!("dppCtrl = {control} : i32");
        rewritten.text.find(&attribute).unwrap_or_else(|| panic!("{}", rewritten.text))
    });
    assert!(controls.is_sorted(), "{controls:?}");
    assert_eq!(count(&rewritten.text, "\"rocdl.readlane\""), 1);
}

#[test]
fn the_only_conversion_of_a_result_is_planned_for() {
    /// Conversions, and ways through shared memory.
    fn moves(text: &str) -> [usize; 2] {
        ["\"ttg.convert_layout\"", "\"ttg.local_load\""].map(|op| count(text, op))
    }
    let module = Module::default();
    let wanted = "tensor<4xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], \
                  warpsPerCTA = [4], order = [0]}>>";
    let convert = format!(
        "%c = \"ttg.convert_layout\"(%r) : ({}) -> {wanted}\n\"test.sink\"(%c) : ({wanted}) -> ()",
        module.result
    );
    let (sink, twice) = (convert.clone(), format!("{convert}\n{}", module.sink));
    let alone = pin(&Module { sink, ..Module::default() }.text());
    assert_eq!(moves(&alone.text), [0, alone.report.reductions[0].relayouts], "{}", alone.text);
    let shared = pin(&Module { sink: twice, ..Module::default() }.text());
    assert_eq!(moves(&shared.text), [1, shared.report.reductions[0].relayouts], "{}", shared.text);
}

#[test]
fn partitions_have_their_own_warps() {
    let text = data("rowsum_sm90.mlir").replace("\"ttg.num-warps\" = 4", "\"ttg.num-warps\" = 8");
    assert!(rewrite(&text, "pin-reduce").is_err());
    let body = Module::default().text();
    let (head, tail) = body.split_once("%x = ").unwrap();
    let (inner, end) = tail.split_once("\"tt.return\"").unwrap();
    let partitioned = format!(
        "{head}\"ttg.warp_specialize\"() <{{partitionNumWarps = array<i32: 2, 4>}}> ({{\n\
         \"ttg.warp_yield\"() : () -> ()\n}}, {{\n\
         \"ttg.warp_specialize.partitions\"() ({{\n\"ttg.warp_return\"() : () -> ()\n}}, {{\n\
         %x = {inner}\n\"ttg.warp_return\"() : () -> ()\n}}) : () -> ()\n}}) : () -> ()\n\
         \"tt.return\"{end}"
    );
    pin(&partitioned.replace("\"ttg.num-warps\" = 4", "\"ttg.num-warps\" = 8"));
}

#[test]
fn shields_are_put_on_once_and_taken_off() {
    let module = Module {
        source: Module::default().source.replace("%x", "%y")
            + &format!(
                "\n%x = \"tt.reshape\"(%y) <{{allow_reorder}}> : ({0}) -> {0}",
                Module::default().operand
            ),
        ..Module::default()
    };
    let once = rewrite(&module.text(), "shield-reduce").unwrap().text;
    assert_eq!(count(&once, "bitstable.pin"), 1);
    assert!(!once.contains("allow_reorder"));
    let twice = rewrite(&once, "shield-reduce,shield-reduce").unwrap().text;
    assert_eq!(count(&twice, "bitstable.pin"), 1);
    let pinned = pin(&twice).text;
    assert!(!pinned.contains("bitstable.pin") && !pinned.contains("tt.reduce"));
}

#[test]
fn plans_as_remarks() {
    let text = Module::default().text();
    let silent = pin(&text).report;
    assert!(silent.diagnostics.is_empty() && silent.reductions[0].explained.is_empty());
    let rewritten = rewrite(&text, "pin-reduce{print-plan=true}").unwrap();
    let explained = &rewritten.report.reductions[0].explained;
    assert_eq!(explained[0], "operands 4x256 of f32");
    assert!(explained.len() >= rewritten.report.reductions[0].plan.len() + 3, "{explained:?}");
    let remark = &rewritten.report.diagnostics[0];
    assert_eq!((remark.severity, remark.at.line), ("remark", 7));
    assert!(remark.message.starts_with("axis 1 of extent 256: "), "{}", remark.message);
}

#[test]
fn locations_are_kept() {
    let text = pin(&data("rowsum_sm90.mlir")).text;
    for line in [90, 91, 92] {
        assert!(text.contains(&format!("\"kernel.py\":{line}:")), "{line}: {text}");
    }
}

/// Triton ends the process on its own `ctaLayout = {}`.
#[test]
fn an_empty_wmma_layout_is_spelled_out() {
    let wmma = "#ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {}}>";
    let text = Module { attributes: String::new(), ..Module::default() }.text();
    let rewritten = pin(&text.replace(BLOCKED, wmma));
    assert!(rewritten.text.contains("ctaLayout = {warp = []}"), "{}", rewritten.text);
    assert!(!rewritten.text.contains("ctaLayout = {}"));
}

/// 256 registers: a text that named their struct at each use would be 500 kB.
#[test]
fn the_text_is_linear_in_the_registers() {
    let text = Module::default().text().replace("4x256", "4x8192");
    let rewritten = pin(&text).text;
    assert!(rewritten.len() < 120_000, "{}", rewritten.len());
    assert_eq!(count(&rewritten, &["f32"; 256].join(", ")), 1);
    pin(&rewritten);
}

/// Every register of an element, every combine and every result has a mark, on NVIDIA.
#[test]
fn code_that_is_to_be_certified_is_marked() {
    let marked = |name| match rewrite(&data(name), "pin-reduce{certify=true}") {
        Ok(rewritten) => rewritten.text,
        Err(failure) => panic!("{failure:?}"),
    };
    let row = marked("rowsum_sm90.mlir");
    assert_eq!(count(&row, "// bitstable.combine"), count(&row, "llvm.nvvm.add.rn.f"));
    assert_eq!(count(&row, " open\""), 1, "one mark opens the reduction");
    assert_eq!(count(&row, "has_side_effects"), count(&row, "// bitstable."));
    assert!(count(&row, "// bitstable.result pin=0 narrow=0 at=0 lane=") > 0);
    // One mark for a value and its index.
    let index = marked("argmax_sm90.mlir");
    assert_eq!(
        count(&index, "// bitstable.element"),
        count(&index, "mov.b32 $0, $2; mov.b32 $1, $3; // bitstable.element")
    );
    assert!(count(&index, "may=none") > 0);
    assert_eq!(count(&marked("allsum_gfx942.mlir"), "bitstable."), 0);
    assert_eq!(count(&pin(&data("rowsum_sm90.mlir")).text, "// bitstable."), 0);
}
