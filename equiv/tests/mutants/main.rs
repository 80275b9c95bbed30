//! Kernels with one change: those that are seen to differ are never called the same.

mod hostile;
#[path = "mod.rs"]
mod mutants;

use std::path::PathBuf;

use bitstable_equiv::signature;
use mutants::{
    case::{Case, cases},
    change,
    judge::{Tally, judge},
    random::Random,
    rig::{Rig, Seen},
};
use rayon::prelude::*;

const SEED: u64 = 5;
const EACH: usize = 24;
const DRAWS: usize = 3;

fn kernels() -> Vec<Case> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/kernels");
    let all = cases(&folder);
    assert!(all.len() >= 12, "{} kernels", all.len());
    all
}

fn parsed(case: &Case) -> bitstable_ptx::ir::Module {
    bitstable_ptx::syntax::parse(&std::fs::read_to_string(&case.file).unwrap()).unwrap()
}

#[test]
fn what_is_seen_to_differ_is_never_called_the_same() {
    let tallies: Vec<Tally> = kernels()
        .par_iter()
        .enumerate()
        .map(|(at, case)| judge(case, EACH, DRAWS, SEED + at as u64))
        .collect();
    let mut total = Tally::default();
    tallies.into_iter().for_each(|tally| total.add(tally));
    assert!(total.over_merges.is_empty(), "seed {SEED}: {}", total.over_merges.join("\n"));
    assert!(total.faults.is_empty(), "seed {SEED}: {}", total.faults.join("\n"));
    println!("{:?}", total.slowest);
    // The test tests something: most changes are seen, and many that are not are proved the same.
    let counts = (total.mutants, total.differing, total.proved);
    assert!(total.mutants > 250 && total.differing > 150 && total.proved > 30, "{counts:?}");
}

/// A rig that sees nothing would find no over-merge.
#[test]
fn the_rig_sees_what_a_change_does() {
    let all = kernels();
    let case = all.iter().find(|case| case.name.starts_with("sum_rows ")).unwrap();
    let module = parsed(case);
    let mut rig = Rig::new(case, DRAWS, SEED);
    let Some(Seen::Bytes(first)) = rig.run(&module) else { panic!("the kernel runs") };
    assert_eq!(rig.run(&module), Some(Seen::Bytes(first)), "the same again");
    let mut dropped = module.clone();
    let body = change::entry(&mut dropped).unwrap();
    let at = body
        .instructions
        .iter()
        .position(|one| matches!(one.op, bitstable_ptx::ir::Op::Bar { .. }));
    body.instructions.remove(at.unwrap());
    let last = body.instructions.len() as u32;
    body.labels.iter_mut().for_each(|label| label.at = label.at.min(last));
    assert!(matches!(rig.run(&dropped), Some(Seen::Errors(kinds)) if kinds.contains(&"race")));
    let launch = case.launch();
    let digests = [&module, &dropped].map(|one| signature(one, None, &launch).unwrap().digest);
    assert_ne!(digests[0], digests[1]);
}

/// Unwritten rounding is to nearest, but what adds such a product may be contracted.
#[test]
fn a_dropped_rounding_is_told_where_a_product_is_added() {
    let text = |mul: &str, add: &str| {
        format!(
            ".version 8.7\n.target sm_80\n.address_size 64\n
             .visible .entry k(.param .u64 x, .param .u64 o) .reqntid 32 {{
             .reg .b64 %d<4>; .reg .f32 %f<6>;
             ld.param.u64 %d0, [x]; ld.param.u64 %d1, [o];
             ld.global.f32 %f0, [%d0]; ld.global.f32 %f1, [%d0+4]; ld.global.f32 %f2, [%d0+8];
             {mul} %f3, %f0, %f1; {add} %f4, %f3, %f2; st.global.f32 [%d1], %f4; ret; }}"
        )
    };
    let signed = |mul: &str, add: &str| {
        let module = bitstable_ptx::syntax::parse(&text(mul, add)).unwrap();
        signature(&module, None, &bitstable_equiv::Launch::default()).unwrap()
    };
    let written = signed("mul.rn.f32", "add.rn.f32");
    assert!(written.contractions.is_empty());
    for (mul, add) in [("mul.rn.f32", "add.f32"), ("mul.f32", "add.rn.f32")] {
        let one = signed(mul, add);
        assert!(one.contractions.is_empty() && one.digest == written.digest, "{mul}, {add}");
    }
    let both = signed("mul.f32", "add.f32");
    assert_eq!(both.contractions.len(), 1);
    assert_ne!(both.digest, written.digest);
}

#[test]
fn every_kind_of_change_is_made() {
    let mut kinds = std::collections::BTreeSet::new();
    let mut random = Random::new(SEED);
    for case in kernels() {
        let mut module = parsed(&case);
        let body = change::entry(&mut module).unwrap().clone();
        kinds.extend((0..200).filter_map(|_| change::change(&body, &mut random)).map(|c| c.kind));
    }
    assert_eq!(kinds.len(), change::KINDS.len(), "{kinds:?}");
}
