//! Every description, drawn at random, prints to something that reads back as the same.

use proptest::{collection::vec, prelude::*};

use super::*;

/// An opcode, and the words that choose among its skeletons: each description is reached.
#[rustfmt::skip]
const SKELETONS: &[(&str, &[&str])] = &[
    ("mov", &[]), ("cvta", &[]), ("isspacep", &[]), ("mapa", &[]), ("getctarank", &[]),
    ("selp", &[]), ("slct", &[]), ("prmt", &[]), ("cvt", &[]), ("cvt", &["pack"]), ("setp", &[]),
    ("set", &[]), ("testp", &[]),
    ("add", &["cc"]), ("addc", &[]), ("sub", &["cc"]), ("subc", &[]), ("mad", &["cc"]), ("madc", &[]),
    ("add", &["s32"]), ("sub", &["s32"]), ("mul", &["s32"]), ("mul24", &[]), ("div", &["s32"]),
    ("rem", &[]), ("min", &["s32"]), ("max", &["s32"]), ("and", &[]), ("or", &[]), ("xor", &[]),
    ("shl", &[]), ("shr", &[]), ("abs", &["s32"]), ("neg", &["s32"]), ("not", &[]), ("cnot", &[]),
    ("popc", &[]), ("clz", &[]), ("brev", &[]), ("mad", &["s32"]), ("mad24", &[]), ("sad", &[]),
    ("bfe", &[]), ("bfi", &[]), ("bfind", &[]), ("bmsk", &[]), ("szext", &[]), ("fns", &[]),
    ("lop3", &[]), ("shf", &[]), ("dp4a", &[]), ("dp2a", &[]),
    ("add", &["f32"]), ("add", &["f16x2"]), ("add", &["f32x2"]), ("sub", &["bf16"]), ("mul", &["f64"]),
    ("div", &["f32"]), ("min", &["f32"]), ("max", &["bf16x2"]), ("copysign", &["f32"]),
    ("abs", &["f16"]), ("neg", &["f32"]), ("sqrt", &["f32"]), ("rcp", &["f64"]), ("rsqrt", &["f32"]),
    ("sin", &["f32"]), ("cos", &["f32"]), ("lg2", &["f32"]), ("ex2", &["f32"]), ("tanh", &["f32"]),
    ("fma", &["f32"]), ("fma", &["f16"]), ("fma", &["bf16x2"]), ("mad", &["f32"]),
    ("add", &["f32", "f16"]), ("sub", &["f32", "bf16"]), ("fma", &["f32", "f16"]),
    ("ld", &[]), ("st", &[]), ("atom", &[]), ("red", &[]),
    ("cp", &["async", "ca", "shared", "global"]), ("cp", &["async", "commit_group"]),
    ("cp", &["async", "wait_all"]), ("cp", &["async", "wait_group"]), ("cp", &["async", "mbarrier"]),
    ("ldmatrix", &[]), ("stmatrix", &[]), ("movmatrix", &[]), ("mma", &["sync", "aligned", "row", "col"]),
    ("shfl", &[]), ("vote", &[]), ("match", &[]), ("redux", &[]), ("activemask", &[]), ("elect", &[]),
    ("bar", &["warp"]), ("bar", &[]), ("barrier", &[]), ("bar", &["arrive"]), ("bar", &["red"]),
    ("barrier", &["red", "popc"]), ("barrier", &["cluster", "arrive"]), ("barrier", &["cluster", "wait"]),
    ("fence", &[]), ("fence", &["proxy"]),
    ("mbarrier", &["init"]), ("mbarrier", &["inval"]), ("mbarrier", &["arrive"]),
    ("mbarrier", &["arrive", "expect_tx"]), ("mbarrier", &["arrive_drop", "noComplete"]),
    ("mbarrier", &["expect_tx"]), ("mbarrier", &["complete_tx"]), ("mbarrier", &["test_wait"]),
    ("mbarrier", &["try_wait", "parity"]), ("mbarrier", &["pending_count"]),
    ("bra", &[]), ("brx", &[]), ("call", &[]), ("ret", &[]), ("exit", &[]), ("trap", &[]),
    ("brkpt", &[]), ("nanosleep", &[]), ("griddepcontrol", &["wait"]), ("prefetch", &["global", "L2"]),
    ("createpolicy", &["fractional", "L2::evict_first", "b64"]), ("wgmma", &["fence", "sync", "aligned"]),
    ("mma", &["sync", "aligned", "m8n8k4", "col", "col", "f32", "f16", "f16", "f32"]),
    ("cp", &["async", "bulk", "commit_group"]),
];

/// The opcode and the modifiers of a text, as the parser sees them.
fn split(text: &str) -> (&str, Vec<&str>) {
    let mut words = text.split('.');
    (words.next().unwrap_or_default(), words.collect())
}

#[test]
fn skeletons_are_known() {
    for (opcode, words) in SKELETONS {
        assert!(skeleton(opcode, Peek(words)).is_some(), "{opcode} {words:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4096, ..ProptestConfig::default() })]

    #[test]
    fn what_is_printed_reads_back(
        at in 0..SKELETONS.len(),
        choices in vec(any::<u16>(), 24),
    ) {
        let (opcode, words) = SKELETONS[at];
        let mut op = skeleton(opcode, Peek(words)).unwrap();
        describe(&mut op, &mut Modifiers::draw(choices), "");
        let text = print(&op);
        let (opcode, words) = split(&text);
        prop_assert_eq!(read(opcode, &words), Ok(op), "{}", text);
    }

    #[test]
    fn a_word_too_many_is_an_error(
        at in 0..SKELETONS.len(),
        choices in vec(any::<u16>(), 24),
        place in any::<prop::sample::Index>(),
    ) {
        let (opcode, words) = SKELETONS[at];
        let mut op = skeleton(opcode, Peek(words)).unwrap();
        describe(&mut op, &mut Modifiers::draw(choices), "");
        // Instructions that are kept as text know only their first words.
        prop_assume!(!matches!(
            op,
            Op::Opaque { .. } | Op::Nop { .. } | Op::Hint { .. } | Op::Createpolicy { .. }
        ));
        let text = print(&op);
        let (opcode, mut words) = split(&text);
        words.insert(place.index(words.len() + 1), "nonsense");
        prop_assert!(read(opcode, &words).is_err(), "{} {:?}", opcode, words);
    }
}

#[test]
fn orders_of_hand_and_compiler_are_one() {
    for (one, other) in [
        ("atom.global.gpu.acq_rel.exch.b32", "atom.acq_rel.gpu.global.exch.b32"),
        ("atom.global.acq_rel.gpu.cas.b32", "atom.acq_rel.gpu.global.cas.b32"),
        ("membar.gl", "fence.sc.gpu"),
        ("barrier.sync.aligned", "bar.sync"),
        ("ld.weak.global.u32", "ld.global.u32"),
        ("ld.shared::cta.b32", "ld.shared.b32"),
        ("mad.rn.f32", "fma.rn.f32"),
    ] {
        let [one, other] = [one, other].map(|text| {
            let (opcode, words) = split(text);
            read(opcode, &words)
        });
        assert!(one.is_ok());
        assert_eq!(one, other);
    }
}

#[test]
fn order_that_carries_meaning_is_kept() {
    for text in ["mma.sync.aligned.m8n8k4.col.row.f32.f16.f16.f32", "cvt.f32.f16", "cvt.rn.f16.f32"]
    {
        let (opcode, words) = split(text);
        assert_eq!(print(&read(opcode, &words).unwrap()), text);
    }
    let (opcode, words) = split("cp.async.ca.global.shared");
    assert!(read(opcode, &words).is_err());
}
