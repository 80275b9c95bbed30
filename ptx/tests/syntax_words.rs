//! Every word of an instruction is understood: a word less, a word changed, is another instruction
//! or none.

use bitstable_ptx::{
    ir::Op,
    syntax::{parse, print_op},
};

/// Instructions as the PTX manual, LLVM and Triton write them, with operands that fit.
#[rustfmt::skip]
const INSTRUCTIONS: &[&str] = &[
    "mov.pred p, q", "mov.b128 q1, {d1, d2}", "cvta.to.shared.u64 d1, d2", "isspacep.shared::cluster p, d1",
    "mapa.shared::cluster.u32 r1, r2, r3", "getctarank.shared::cluster.u32 r1, r2", "selp.f32 f1, f2, f3, p",
    "slct.ftz.b32.f32 r1, r2, r3, f1", "prmt.b32.rc16 r1, r2, r3, r4", "cvt.rn.relu.satfinite.e4m3x2.f32 h1, f1, f2",
    "cvt.rni.ftz.sat.f32.f32 f1, f2", "cvt.rna.tf32.f32 r1, f2", "cvt.rs.relu.f16x2.f32 r1, f1, f2, r2",
    "cvt.rz.sat.u16.f64 h1, d2", "cvt.pack.sat.s8.s32.b32 r1, r2, r3, r4", "cvt.rn.f16x2.e5m2x2 r1, h1",
    "setp.ltu.and.ftz.f32 p|q, f1, f2, !p", "set.nan.xor.f16x2.f16x2 r1, r2, r3, p", "testp.notanumber.f32 p, f1",
    "add.sat.s32 r1, r2, r3", "add.cc.s64 d1, d2, d3", "addc.cc.u32 r1, r2, r3", "subc.u32 r1, r2, r3",
    "madc.hi.cc.u32 r1, r2, r3, r4", "mul.wide.s16 r1, h1, h2", "mul24.lo.u32 r1, r2, r3", "mad.lo.sat.s32 r1, r2, r3, r4",
    "mad24.hi.sat.s32 r1, r2, r3, r4", "sad.u64 d1, d2, d3, d1", "bfe.s64 d1, d2, r1, r2", "bfi.b32 r1, r2, r3, 4, 5",
    "bfind.shiftamt.s64 r1, d2", "bmsk.clamp.b32 r1, r2, r3", "szext.wrap.s32 r1, r2, r3", "fns.b32 r1, r2, r3, r4",
    "lop3.b32 r1, r2, r3, r4, 0xF8", "shf.r.clamp.b32 r1, r2, r3, r4", "dp4a.s32.u32 r1, r2, r3, r4",
    "dp2a.hi.u32.s32 r1, r2, r3, r4", "popc.b64 r1, d2", "shr.s16 h1, h2, 3", "not.pred p, q", "min.s16x2 r1, r2, r3",
    "add.rz.ftz.sat.f32 f1, f2, f3", "mul.rn.bf16x2 r1, r2, r3", "sub.rn.sat.f16 h1, h2, h3", "div.full.ftz.f32 f1, f2, f3",
    "div.rp.f64 d1, d2, d3", "min.ftz.NaN.xorsign.abs.f32 f1, f2, f3", "max.NaN.abs.f32 f1, f2, f3, f1",
    "copysign.f64 d1, d2, d3", "sqrt.rm.ftz.f32 f1, f2", "rcp.approx.ftz.f64 d1, d2", "tanh.approx.bf16x2 r1, r2",
    "ex2.approx.ftz.f16 h1, h2", "fma.rn.ftz.relu.f16x2 r1, r2, r3, r4", "fma.rz.sat.f32.bf16 f1, h1, h2, f2",
    "add.rm.f32.f16 f1, h1, f2",
    "ld.acquire.gpu.global.L1::no_allocate.L2::cache_hint.v4.b32 {r1, r2, r3, r4}, [d1], d2", "ld.global.nc.L2::128B.v2.u64 {d1, d2}, [d3]",
    "ld.mmio.relaxed.sys.global.u32 r1, [d1]", "ld.volatile.shared.b8 h1, [r1]", "st.release.cluster.shared::cluster.b64 [r1], d1",
    "st.global.wt.v2.f32 [d1], {f1, f2}", "atom.acquire.cta.shared::cta.cas.b64 d1, [r1], d2, d3", "atom.add.noftz.bf16x2 r1, [d1], r2",
    "red.release.sys.global.max.s64 [d1], d2", "red.global.add.L2::cache_hint.v4.f32 [d1], {f1, f2, f3, f1}, d2",
    "cp.async.cg.shared.global.L2::256B [r1], [d1], 16, r2", "cp.async.wait_group 2", "cp.async.wait_all",
    "cp.async.mbarrier.arrive.noinc.shared.b64 [r1]", "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r1, r2}, [r3]",
    "stmatrix.sync.aligned.m8n8.x2.trans.shared.b16 [r1], {r2, r3}", "movmatrix.sync.aligned.m8n8.trans.b16 r1, r2",
    "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {r1, r2, r3, r4}, {r1, r2, r3, r4}, {r1, r2}, {r1, r2, r3, r4}",
    "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f32 {r1, r2}, {r1, r2, r3, r4}, {r1, r2}, {r1, r2, r3, r4}",
    "shfl.sync.down.b32 r1|p, r2, 1, 31, -1", "vote.sync.ballot.b32 r1, !p, -1", "match.all.sync.b64 r1|p, d1, -1",
    "redux.sync.min.abs.NaN.f32 f1, f2, -1", "bar.warp.sync -1", "bar.red.popc.u32 r1, 0, 64, p", "barrier.cta.red.and.pred p, 0, q",
    "bar.arrive 1, 64", "fence.acquire.cluster", "fence.sc.sys", "fence.proxy.tensormap::generic.acquire.gpu [d1], 128",
    "barrier.cluster.arrive.relaxed.aligned", "barrier.cluster.wait.acquire", "mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [r1], 32",
    "mbarrier.arrive_drop.noComplete.shared::cta.b64 d1, [r1], 2", "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [r1], r2, r3",
    "mbarrier.test_wait.shared.b64 p, [r1], d1", "mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [r1], 4", "mbarrier.pending_count.b64 r1, d1",
    "ret.uni", "nanosleep.u32 20", "createpolicy.fractional.L2::evict_first.b64 d1, 0f3F800000",
];

/// Words that say what holds without them.
const NEUTRAL: &[(&str, &[&str])] = &[
    ("cvta.to.shared.u64", &[]),
    ("bar.cta", &["cta"]),
    ("barrier.cta.red.and.pred", &["cta"]),
    ("barrier.cluster.wait.acquire", &["acquire"]),
    ("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64", &["relaxed"]),
    ("mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64", &["acquire"]),
    ("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64", &["release"]),
    ("ld.mmio.relaxed.sys.global.u32", &["sys"]),
];

/// The operation of an instruction, in a kernel that declares every register it may use.
fn operation(instruction: &str) -> Option<Op> {
    let module = parse(&format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k()\n{{\n\
         .reg .pred p, q; .reg .b16 h<4>; .reg .b32 r<5>; .reg .b64 d<4>; .reg .b128 q<2>; .reg .f32 f<4>;\n\
         {instruction};\n}}\n"
    ));
    let mut functions = module.ok()?.functions;
    Some(functions.pop()?.body?.instructions.pop()?.op)
}

#[test]
fn every_instruction_parses_and_prints_back() {
    for instruction in INSTRUCTIONS {
        let op = operation(instruction).unwrap_or_else(|| panic!("refused: {instruction}"));
        let operands = instruction.split_once(' ').map_or("", |(_, operands)| operands);
        let printed = format!("{} {operands}", print_op(&op));
        assert_eq!(operation(&printed), Some(op), "{instruction}, printed {printed}");
    }
}

#[test]
fn a_word_less_is_another_instruction_or_none() {
    for instruction in INSTRUCTIONS {
        let (name, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let op = operation(instruction);
        let neutral =
            NEUTRAL.iter().find(|(known, _)| *known == name).map_or(&[][..], |known| known.1);
        let words: Vec<&str> = name.split('.').collect();
        for at in (1..words.len()).filter(|&at| !neutral.contains(&words[at])) {
            let fewer: Vec<&str> = [&words[..at], &words[at + 1..]].concat();
            let fewer = format!("{} {operands}", fewer.join("."));
            assert_ne!(operation(&fewer), op, "`.{}` of {instruction} means nothing", words[at]);
        }
    }
}

#[test]
fn a_word_changed_is_another_instruction_or_none() {
    for instruction in INSTRUCTIONS {
        let (name, operands) = instruction.split_once(' ').unwrap_or((instruction, ""));
        let op = operation(instruction);
        // Instructions that are kept as text know only their first words.
        if matches!(op, Some(Op::Createpolicy { .. })) {
            continue;
        }
        let words: Vec<&str> = name.split('.').collect();
        for at in 1..words.len() {
            let mut other = words.clone();
            other[at] = "nonsense";
            let other = format!("{} {operands}", other.join("."));
            assert_eq!(operation(&other), None, "{other}");
        }
    }
}
