//! What is accepted is what the PTX manual lists, and nothing else.
//!
//! # Idea
//! The manual's syntax lines are written down below and expanded to opcodes. Against them stands
//! every opcode that can be said with the typed IR: the two sets must be equal.

use std::collections::BTreeSet;

use bitstable_ptx::{
    exec::{
        alu::{Unsupported, lower},
        registers::Slot,
    },
    ir::{
        FloatBinary, FloatMode, FloatUnary, Half, IntBinary, IntUnary, Op, Precision, Round,
        Scalar, Space,
    },
    syntax::print_op,
};
use strum::IntoEnumIterator;

use crate::machine::{operands, slots, types};

/// Every combination of roundings and flags.
pub fn modes() -> impl Iterator<Item = FloatMode> {
    let roundings = std::iter::once(None).chain(Round::iter().map(Some));
    roundings.flat_map(|round| {
        (0..64u32).map(move |flags| FloatMode {
            round,
            ftz: flags & 1 != 0,
            sat: flags & 2 != 0,
            relu: flags & 4 != 0,
            nan: flags & 8 != 0,
            // The text says `.abs` with `.xorsign` or alone.
            abs: flags & 16 != 0 || flags & 32 != 0,
            xorsign: flags & 32 != 0,
        })
    })
}

/// Expands `{.a|.b}` (one or none) and `<.a|.b>` (one).
fn expand(line: &str) -> Vec<String> {
    let Some(at) = line.find(['{', '<']) else { return vec![line.to_owned()] };
    let optional = line[at..].starts_with('{');
    let end = at + line[at..].find(['}', '>']).expect("closed");
    let (head, tail) = (&line[..at], &line[end + 1..]);
    let choices = line[at + 1..end].split('|').chain(optional.then_some(""));
    choices.flat_map(|choice| expand(&format!("{head}{choice}{tail}"))).collect()
}

fn expanded(lines: &[&str]) -> BTreeSet<String> {
    lines.iter().flat_map(|line| expand(line)).collect()
}

fn accepted(ops: impl Iterator<Item = Op>) -> BTreeSet<String> {
    let runs = |op: &Op| {
        let (dst, src) = types(op);
        lower(op, operands(&slots(&dst, 0), &slots(&src, 8)))
    };
    ops.filter(|op| match runs(op) {
        Ok(_) => true,
        Err(refusal) => {
            assert!(refusal.to_string().contains(&print_op(op)), "{refusal} names {op:?}");
            false
        }
    })
    .map(|op| print_op(&op))
    .collect()
}

/// The sets are equal; what differs is shown.
#[track_caller]
fn assert_same(accepted: &BTreeSet<String>, manual: &BTreeSet<String>) {
    let surplus: Vec<_> = accepted.difference(manual).collect();
    let missing: Vec<_> = manual.difference(accepted).collect();
    assert!(surplus.is_empty() && missing.is_empty(), "surplus {surplus:?}, missing {missing:?}");
}

const FLOATS: [Scalar; 7] = [
    Scalar::F16,
    Scalar::BF16,
    Scalar::F32,
    Scalar::F64,
    Scalar::F16x2,
    Scalar::BF16x2,
    Scalar::F32x2,
];

/// Every mode for the floats; for all other types the plain mode.
fn typed_modes() -> impl Iterator<Item = (Scalar, FloatMode)> {
    let rest = Scalar::iter().filter(|ty| !FLOATS.contains(ty));
    FLOATS
        .into_iter()
        .flat_map(|ty| modes().map(move |mode| (ty, mode)))
        .chain(rest.map(|ty| (ty, FloatMode::default())))
}

#[test]
fn float_operations_of_two_and_three() {
    const MANUAL: &[&str] = &[
        "<add|sub|mul>{.rn|.rz|.rm|.rp}{.ftz}{.sat}.f32",
        "<add|sub|mul>{.rn|.rz|.rm|.rp}{.ftz}.f32x2",
        "<add|sub|mul>{.rn|.rz|.rm|.rp}.f64",
        "<add|sub|mul>{.rn}{.ftz}{.sat}<.f16|.f16x2>",
        "<add|sub|mul>{.rn}<.bf16|.bf16x2>",
        "div<.approx|.full>{.ftz}.f32",
        "div<.rn|.rz|.rm|.rp>{.ftz}.f32",
        "div<.rn|.rz|.rm|.rp>.f64",
        "<min|max>{.ftz}{.NaN}{.xorsign.abs|.abs}<.f32|.f16|.f16x2>",
        "<min|max>{.NaN}{.xorsign.abs|.abs}<.bf16|.bf16x2>",
        "<min|max>.f64",
        "copysign<.f32|.f64>",
    ];
    let rounded = Precision::Rounded;
    let ops = [
        FloatBinary::Add,
        FloatBinary::Sub,
        FloatBinary::Mul,
        FloatBinary::Div(rounded),
        FloatBinary::Div(Precision::Approx),
        FloatBinary::Div(Precision::Full),
        FloatBinary::Min,
        FloatBinary::Max,
        FloatBinary::Copysign,
    ];
    let all = ops
        .into_iter()
        .flat_map(|op| typed_modes().map(move |(ty, mode)| Op::FloatBinary { op, ty, mode }));
    assert_same(&accepted(all), &expanded(MANUAL));

    const FUSED: &[&str] = &[
        "fma<.rn|.rz|.rm|.rp>{.ftz}{.sat}.f32",
        "fma<.rn|.rz|.rm|.rp>{.ftz}.f32x2",
        "fma<.rn|.rz|.rm|.rp>.f64",
        "fma.rn{.ftz}{.sat|.relu}<.f16|.f16x2>",
        "fma.rn{.relu}<.bf16|.bf16x2>",
    ];
    let all = typed_modes().map(|(ty, mode)| Op::Fma { ty, mode });
    assert_same(&accepted(all), &expanded(FUSED));

    let all = [FloatBinary::Min, FloatBinary::Max, FloatBinary::Add]
        .into_iter()
        .flat_map(|op| typed_modes().map(move |(ty, mode)| Op::FloatTernary { op, ty, mode }));
    assert_same(&accepted(all), &expanded(&["<min|max>{.ftz}{.NaN}{.abs}.f32"]));
}

#[test]
fn float_operations_of_one() {
    const MANUAL: &[&str] = &[
        "<abs|neg>{.ftz}<.f32|.f16|.f16x2>",
        "<abs|neg><.f64|.bf16|.bf16x2>",
        "<rcp|sqrt><.rn|.rz|.rm|.rp>{.ftz}.f32",
        "<rcp|sqrt><.rn|.rz|.rm|.rp>.f64",
        "<rcp|sqrt|rsqrt|sin|cos|lg2|ex2>.approx{.ftz}.f32",
        "rcp.approx.ftz.f64",
        "rsqrt.approx{.ftz}.f64",
        "ex2.approx<.f16|.f16x2>",
        "ex2.approx.ftz<.bf16|.bf16x2>",
        "tanh.approx<.f32|.f16|.f16x2|.bf16|.bf16x2>",
    ];
    let ops = [
        FloatUnary::Abs,
        FloatUnary::Neg,
        FloatUnary::Sqrt(Precision::Rounded),
        FloatUnary::Sqrt(Precision::Approx),
        FloatUnary::Rcp(Precision::Rounded),
        FloatUnary::Rcp(Precision::Approx),
        FloatUnary::Rsqrt,
        FloatUnary::Sin,
        FloatUnary::Cos,
        FloatUnary::Lg2,
        FloatUnary::Ex2,
        FloatUnary::Tanh,
    ];
    let all = ops
        .into_iter()
        .flat_map(|op| typed_modes().map(move |(ty, mode)| Op::FloatUnary { op, ty, mode }));
    assert_same(&accepted(all), &expanded(MANUAL));
}

#[test]
fn integer_operations() {
    const MANUAL: &[&str] = &[
        "<add|sub|min|max><.u16|.u32|.u64|.s16|.s32|.s64|.u16x2|.s16x2|.u8x4|.s8x4>",
        "<add|sub>.sat.s32",
        "<div|rem><.u16|.u32|.u64|.s16|.s32|.s64>",
        "mul<.lo|.hi><.u16|.u32|.u64|.s16|.s32|.s64>",
        "mul.wide<.u16|.u32|.s16|.s32>",
        "mul24<.lo|.hi><.u32|.s32>",
        "<and|or|xor><.pred|.b16|.b32|.b64>",
        "shl<.b16|.b32|.b64>",
        "shr<.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64>",
    ];
    use IntBinary::*;
    let halves = [Half::Lo, Half::Hi, Half::Wide];
    let ops = [Add, Sub, Div, Rem, Min, Max, And, Or, Xor, Shl, Shr]
        .into_iter()
        .chain(halves.map(Mul))
        .chain(halves.map(Mul24));
    let all = ops.flat_map(|op| {
        Scalar::iter().flat_map(move |ty| [false, true].map(|sat| Op::IntBinary { op, ty, sat }))
    });
    assert_same(&accepted(all), &expanded(MANUAL));

    const UNARY: &[&str] = &[
        "abs<.s16|.s32|.s64>",
        "neg<.s16|.s32|.s64>",
        "not<.pred|.b16|.b32|.b64>",
        "cnot<.b16|.b32|.b64>",
        "<popc|clz|brev><.b32|.b64>",
    ];
    use IntUnary::{Abs, Brev, Clz, Cnot, Neg, Not, Popc};
    let all = [Abs, Neg, Not, Cnot, Popc, Clz, Brev]
        .into_iter()
        .flat_map(|op| Scalar::iter().map(move |ty| Op::IntUnary { op, ty }));
    assert_same(&accepted(all), &expanded(UNARY));
}

#[test]
fn integer_operations_of_three_and_fields() {
    const MANUAL: &[&str] = &[
        "mad<.lo|.hi><.u16|.u32|.u64|.s16|.s32|.s64>",
        "mad.wide<.u16|.u32|.s16|.s32>",
        "mad.hi.sat.s32",
        "mad24<.lo|.hi><.u32|.s32>",
        "mad24.hi.sat.s32",
        "sad<.u16|.u32|.u64|.s16|.s32|.s64>",
        "bfe<.u32|.u64|.s32|.s64>",
        "bfi<.b32|.b64>",
        "bfind{.shiftamt}<.u32|.u64|.s32|.s64>",
        "szext<.clamp|.wrap><.u32|.s32>",
        "dp4a<.u32|.s32><.u32|.s32>",
    ];
    let all = Scalar::iter().flat_map(|ty| {
        let halves = [Half::Lo, Half::Hi, Half::Wide].into_iter();
        let mads = halves.flat_map(move |half| {
            [false, true]
                .into_iter()
                .flat_map(move |sat| [Op::Mad { half, ty, sat }, Op::Mad24 { half, ty, sat }])
        });
        mads.chain([Op::Sad { ty }, Op::Bfe { ty }, Op::Bfi { ty }])
            .chain([false, true].into_iter().flat_map(move |flag| {
                [Op::Bfind { ty, shiftamt: flag }, Op::Szext { ty, clamp: flag }]
            }))
            .chain(Scalar::iter().map(move |b| Op::Dp4a { a: ty, b }))
    });
    assert_same(&accepted(all), &expanded(MANUAL));
}

#[test]
fn moves_and_selections() {
    const MANUAL: &[&str] = &[
        "mov<.pred|.b16|.b32|.b64|.b128|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64>",
        "selp<.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64>",
        "slct<.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64>.s32",
        "slct{.ftz}<.b16|.b32|.b64|.u16|.u32|.u64|.s16|.s32|.s64|.f32|.f64>.f32",
        "isspacep<.global|.shared|.shared::cluster|.local>",
        "prmt.b32{.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}",
    ];
    let selections = Scalar::iter().flat_map(|ty| {
        let slct =
            Scalar::iter().flat_map(move |by| [false, true].map(|ftz| Op::Slct { ty, by, ftz }));
        slct.chain([Op::Selp { ty }, Op::Mov { ty }])
    });
    let spaces = [
        Space::Global,
        Space::Shared,
        Space::SharedCluster,
        Space::Local,
        Space::Param,
        Space::Const,
    ];
    let modes = [None, Some("f4e"), Some("b4e"), Some("rc8"), Some("ecl"), Some("ecr")]
        .into_iter()
        .chain([Some("rc16"), Some("rc32"), Some("index")]);
    let all = selections
        .chain(spaces.map(|space| Op::Isspacep { space }))
        .chain(modes.map(|mode| Op::Prmt { mode: mode.map(str::to_owned) }));
    assert_same(&accepted(all), &expanded(MANUAL));
}

/// What works on memory, on other lanes or on control is no lane instruction.
#[test]
fn other_families_are_refused_by_name() {
    for (op, name) in [
        (Op::Activemask, "activemask"),
        (Op::Movmatrix, "movmatrix"),
        (Op::Exit, "exit"),
        (Op::Opaque { name: "tcgen05.fence".to_owned() }, "tcgen05.fence"),
        (Op::Getctarank { space: Space::Shared, ty: Scalar::U64 }, "getctarank"),
    ] {
        let (dst, src) = types(&op);
        let refusal = lower(&op, operands(&slots(&dst, 0), &slots(&src, 8))).expect_err("refused");
        assert!(refusal.to_string().contains(name), "{refusal}");
    }
}

/// Operands of the wrong number or kind never reach a lane function.
#[test]
fn misfitting_operands_are_refused() {
    let op = Op::Fma { ty: Scalar::F32, mode: FloatMode::default() };
    let word = Slot::Word;
    let good = [word(1), word(2), word(3)];
    assert!(lower(&op, operands(&[word(0)], &good)).is_ok());
    for (dst, src) in [
        (vec![word(0)], vec![word(1), word(2)]),
        (vec![word(0)], vec![word(1), word(2), word(3), word(4)]),
        (vec![], good.to_vec()),
        (vec![word(0), word(5)], good.to_vec()),
        (vec![Slot::Wide(0)], good.to_vec()),
        (vec![Slot::Flag(0)], good.to_vec()),
        (vec![word(0)], vec![word(1), Slot::Wide(2), word(3)]),
        (vec![word(0)], vec![word(1), Slot::Sink, word(3)]),
    ] {
        let refusal = lower(&op, operands(&dst, &src)).expect_err("refused");
        assert!(matches!(refusal, Unsupported::Operands(_)), "{dst:?} {src:?}");
    }
}
