//! The operations that an exchange becomes, by type and target.

use std::collections::BTreeMap;

use bitstable_lowering::plan::{LaneBit, Operands};

use melior::ir::operation::OperationLike;

use crate::{
    build::Builder,
    emit::{
        combine::Combine,
        exchange::{exchange_xor, half_pair, pair, wave_fold},
    },
    ir::{self, Op, Val},
    session::Session,
    target::Target,
};

fn nvidia() -> Target {
    Target::Nvidia { capability: 90 }
}

fn amd(arch: &str, lanes: u32) -> Target {
    Target::Amd { arch: arch.into(), lanes }
}

/// How often each operation stands in front of the reduction after `emit` of four values.
fn counted(
    ty: &str,
    emit: impl for<'c> Fn(Builder<'c>, &[Val<'c>], Op<'c>),
) -> BTreeMap<String, usize> {
    let text = format!(
        r#""builtin.module"() ({{
  %x:4 = "test.leaves"() : () -> ({ty}, {ty}, {ty}, {ty})
  %r = "tt.reduce"(%x#0) ({{
  ^bb0(%a: {ty}, %b: {ty}):
    %s = "arith.addf"(%a, %b) : ({ty}, {ty}) -> {ty}
    "tt.reduce.return"(%s) : ({ty}) -> ()
  }}) : ({ty}) -> {ty}
}}) : () -> ()"#
    );
    let session = Session::new();
    let module = session.parse(&text).expect("the test's module parses");
    let operations = ir::walk(ir::root(&module));
    let (leaves, reduce) = (operations[1], operations[2]);
    emit(Builder::before(&session, &reduce), &ir::results(leaves), reduce);
    let mut counts = BTreeMap::new();
    for operation in ir::operations(reduce.block().expect("it stands in a block")) {
        *counts.entry(ir::name(operation).to_owned()).or_default() += 1;
    }
    counts
}

fn xor(target: &Target, bit: u32, ty: &str) -> BTreeMap<String, usize> {
    counted(ty, |b, values, _| {
        let moved = exchange_xor(b, target, LaneBit(bit), values);
        let types = |v: &[Val<'_>]| -> Vec<String> {
            use melior::ir::ValueLike;
            v.iter().map(|v| v.r#type().to_string()).collect()
        };
        assert_eq!(types(&moved), types(values));
    })
}

#[test]
fn narrow_values_share_a_shuffle() {
    let shuffles = |ty| xor(&nvidia(), 0, ty)["nvvm.shfl.sync"];
    assert_eq!(["f64", "i64"].map(shuffles), [8, 8]);
    assert_eq!(["f32", "i32"].map(shuffles), [4, 4]);
    assert_eq!(["f16", "bf16", "i16"].map(shuffles), [2, 2, 2]);
    assert_eq!(["i8", "i1"].map(shuffles), [1, 1]);
}

#[test]
fn data_parallel_primitives_are_free_and_packing_is_not() {
    let counts = xor(&amd("gfx942", 64), 0, "f16");
    assert_eq!(counts["rocdl.update.dpp"], 4);
    assert!(!counts.contains_key("llvm.insertelement"));
    assert_eq!(xor(&amd("gfx942", 64), 2, "f32")["rocdl.update.dpp"], 8);
    assert_eq!(xor(&amd("gfx942", 64), 4, "f16")["rocdl.ds_swizzle"], 2);
    assert_eq!(xor(&amd("gfx942", 64), 5, "f32")["rocdl.ds_bpermute"], 4);
    assert_eq!(xor(&amd("gfx950", 64), 5, "f32")["rocdl.permlane32.swap"], 4);
    assert_eq!(xor(&amd("gfx1201", 32), 3, "f32")["rocdl.update.dpp"], 4);
    assert_eq!(xor(&amd("gfx1201", 32), 4, "bf16")["rocdl.permlanex16"], 2);
}

/// Where one instruction gives both sides, nothing is selected.
#[test]
fn some_pairs_come_in_order() {
    let selects = |target: &Target, bit, operands| {
        let counts = counted("f32", |b, values, _| {
            pair(b, target, operands, LaneBit(bit), values);
        });
        counts.get("llvm.select").copied().unwrap_or(0)
    };
    assert_eq!(selects(&nvidia(), 0, Operands::Commute), 0);
    assert_eq!(selects(&nvidia(), 0, Operands::Ordered), 8);
    assert_eq!(selects(&amd("gfx942", 64), 1, Operands::Ordered), 0);
    assert_eq!(selects(&amd("gfx942", 64), 3, Operands::Ordered), 8);
    assert_eq!(selects(&amd("gfx950", 64), 5, Operands::Ordered), 0);
}

#[test]
fn a_half_exchange_is_a_swap_on_gfx950() {
    let half = |target: &Target| {
        counted("f32", |b, values, _| {
            let sides = (&values[..2], &values[2..]);
            half_pair(b, target, Operands::Ordered, LaneBit(4), sides);
        })
    };
    let swaps = half(&amd("gfx950", 64));
    assert_eq!(swaps["rocdl.permlane16.swap"], 2);
    assert!(!swaps.contains_key("llvm.select"));
    assert_eq!(half(&nvidia())["nvvm.shfl.sync"], 2);
    assert_eq!(half(&nvidia())["llvm.select"], 8);
}

#[test]
fn a_whole_wave_folds_without_the_lds() {
    let fold = |target: &Target, bits: u32| {
        counted("f32", |b, values, reduce| {
            let block = ir::blocks(reduce.regions().next().expect("one region"))[0];
            let combine = Combine::new(block, target).expect("an addition");
            wave_fold(b, target, &combine, &values[..1], bits);
        })
    };
    let wave = fold(&amd("gfx942", 64), 6);
    assert_eq!(wave["rocdl.update.dpp"], 6);
    assert_eq!(wave["llvm.intr.experimental.constrained.fadd"], 6);
    assert_eq!(wave["rocdl.readlane"], 1);
    let row = fold(&amd("gfx942", 64), 4);
    assert_eq!(row["rocdl.update.dpp"], 5);
    for (target, bits) in [(amd("gfx942", 64), 5), (amd("gfx1201", 32), 5), (nvidia(), 5)] {
        assert_eq!(fold(&target, bits).len(), 2, "the leaves and the reduction, nothing else");
    }
}
