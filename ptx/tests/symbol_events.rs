//! What comes from outside a thread: memory, matrices, atomics, copies; and how it reads as text.

mod symbol_trees;

use bitstable_ptx::{
    exec::registers::{LANES, Mask, Registers, Slot},
    ir::{Atomic, FloatBinary, Op, Ordering, Redux, Scalar, Space, Vote},
    report::Thread,
    symbol::{
        Area, At, Cell, Meeting, MmaCells, NodeId, Place, Symbols,
        print::{Names, expression, outline},
    },
};
use symbol_trees::*;

const AT: At = At { pc: 3, cta: 1, warp: 2 };
const ALL: Mask = Mask::MAX;

fn global(address: u64) -> Place {
    Place { area: Area::GLOBAL, address }
}

fn shared(address: u64) -> Place {
    Place { area: Area::shared(1), address }
}

fn row(start: Place, step: u64) -> [Place; LANES] {
    std::array::from_fn(|lane| start.after(step * lane as u64))
}

/// Word 0 of lane `l` holds element `l` of x; the registers hold `words` rows of numbers.
fn loaded(ty: Scalar, words: usize) -> (Symbols, Registers) {
    let mut symbols = Symbols::default();
    symbols.mark_leaves(global(0), 4096, ty, 0);
    let step = u64::from(ty.bytes());
    symbols.load(AT, &[Slot::Word(0)], ty, &row(global(0), step), ALL).expect("room");
    let registers = Registers {
        words: vec![[0x3F80_0000; LANES]; words],
        flags: vec![0; words],
        ..Registers::default()
    };
    (symbols, registers)
}

fn shown(symbols: &Symbols, node: Option<NodeId>) -> String {
    let graph = symbols.graph();
    node.map_or_else(|| "a number".into(), |node| expression(graph, node, named(), 40))
}

/// The expression in a register, by way of memory nobody else uses.
fn held(symbols: &mut Symbols, slot: Slot, lane: usize, ty: Scalar) -> String {
    let at = global(1 << 30);
    symbols.store(AT, &[slot], ty, &[at; LANES], 1 << lane).expect("room");
    let node = symbols.output(at, ty, 0).expect("room");
    shown(symbols, node)
}

#[test]
fn areas_are_apart_and_a_retired_cta_is_forgotten() {
    let (mut symbols, _) = loaded(Scalar::F32, 1);
    symbols.store(AT, &[Slot::Word(0)], Scalar::F32, &row(shared(0), 4), ALL).expect("room");
    let node = symbols.output(shared(8), Scalar::F32, 0).expect("room");
    assert_eq!(shown(&symbols, node), "x[2]");
    let other = Place { area: Area::shared(2), address: 8 };
    assert_eq!(symbols.output(other, Scalar::F32, 0), Ok(None));
    let local = Place { area: Area::local(Thread { cta: 1, thread: 0 }), address: 8 };
    assert_eq!(symbols.output(local, Scalar::F32, 0), Ok(None));
    symbols.retire(1);
    assert_eq!(symbols.output(shared(8), Scalar::F32, 0), Ok(None));
    assert_eq!(held(&mut symbols, Slot::Word(0), 5, Scalar::F32), "a number");
}

#[test]
fn vectors_narrow_loads_and_copies_carry_pieces() {
    let (mut symbols, _) = loaded(Scalar::F32, 1);
    let slots = [Slot::Word(1), Slot::Word(2), Slot::Sink, Slot::Word(3)];
    symbols.load(AT, &slots, Scalar::F32, &row(global(0), 16), ALL).expect("room");
    assert_eq!(held(&mut symbols, Slot::Word(3), 2, Scalar::F32), "x[11]");
    symbols.load(AT, &[Slot::Quad(0)], Scalar::B128, &row(global(0), 16), ALL).expect("room");
    assert_eq!(held(&mut symbols, Slot::Wide(1), 1, Scalar::F32), "x[6]");

    symbols.load(AT, &[Slot::Word(4)], Scalar::U8, &row(global(0), 4), ALL).expect("room");
    assert_eq!(held(&mut symbols, Slot::Word(4), 1, Scalar::B8), "bits.b8[0.0](x[1])");
    assert_eq!(
        held(&mut symbols, Slot::Word(4), 1, Scalar::B32),
        "bits.b32[0.0 0x00 0x00 0x00](x[1])"
    );

    symbols.copy(shared(64), global(32), 12).expect("room");
    symbols.forget_memory(shared(72), 8).expect("room");
    let mut at = |address| {
        let node = symbols.output(shared(address), Scalar::F32, 0).expect("room");
        shown(&symbols, node)
    };
    assert_eq!([at(64), at(68), at(72), at(76)], ["x[8]", "x[9]", "a number", "a number"]);
}

#[test]
fn a_signed_narrow_load_is_extended_by_name() {
    let mut symbols = Symbols::default();
    symbols.mark_leaves(global(0), 64, Scalar::S8, 0);
    symbols.load(AT, &[Slot::Word(0)], Scalar::S8, &row(global(0), 1), ALL).expect("room");
    assert_eq!(held(&mut symbols, Slot::Word(0), 3, Scalar::S32), "cvt.s32.s8(x[3])");
}

#[test]
fn reductions_and_votes_read_every_member() {
    let (mut symbols, registers) = loaded(Scalar::F32, 4);
    let redux = Op::Redux { op: Redux::Max, ty: Scalar::F32, abs: false, nan: true };
    let slots = (Slot::Word(1), Slot::Word(0));
    symbols.collective(AT, &redux, slots.0, slots.1, &registers, 0b1011).expect("room");
    assert_eq!(
        held(&mut symbols, Slot::Word(1), 3, Scalar::F32),
        "redux.max.NaN.f32(x[0], x[1], x[3])"
    );
    assert_eq!(held(&mut symbols, Slot::Word(1), 2, Scalar::F32), "a number");
    let ballot = Op::Vote { mode: Vote::Ballot };
    symbols.collective(AT, &ballot, Slot::Word(1), Slot::Flag(0), &registers, ALL).expect("room");
    assert_eq!(held(&mut symbols, Slot::Word(1), 3, Scalar::F32), "a number");
}

fn atom(op: Atomic, ty: Scalar) -> Op {
    Op::Atom {
        op,
        result: true,
        space: Space::Global,
        ordering: Ordering::Weak,
        ty,
        vector: 1,
        noftz: false,
        hints: vec![],
    }
}

#[test]
fn atomics_follow_each_other() {
    let (mut symbols, registers) = loaded(Scalar::F32, 4);
    let place = global(1 << 20);
    let add = atom(Atomic::Add, Scalar::F32);
    for lane in 0..2 {
        let (dst, src) = (Some(Slot::Word(1)), [Slot::Word(0)]);
        symbols.atomic(AT, &add, lane, dst, &src, &registers, place, 0).expect("room");
    }
    let node = symbols.output(place, Scalar::F32, 0).expect("room");
    let first = "atom.global.add.f32(0.0, x[0])";
    assert_eq!(shown(&symbols, node), format!("atom.global.add.f32({first}, x[1])"));
    assert_eq!(held(&mut symbols, Slot::Word(1), 1, Scalar::F32), first);

    let swap = atom(Atomic::Exch, Scalar::B32);
    symbols.atomic(AT, &swap, 5, None, &[Slot::Word(0)], &registers, place, 0).expect("room");
    let node = symbols.output(place, Scalar::F32, 0).expect("room");
    assert_eq!(shown(&symbols, node), "x[5]");

    // A compare with numbers either takes place or does not; the new value is a piece.
    let cas = atom(Atomic::Cas, Scalar::B32);
    for (old, expected) in [(0x3F80_0000, "x[7]"), (0, "a number")] {
        let (place, src) = (global(1 << 21), [Slot::Word(3), Slot::Word(0)]);
        symbols.forget_memory(place, 4).expect("room");
        symbols.atomic(AT, &cas, 7, None, &src, &registers, place, old).expect("room");
        let node = symbols.output(place, Scalar::F32, 0).expect("room");
        assert_eq!(shown(&symbols, node), expected);
    }
}

#[test]
fn matrices_are_loaded_transposed_and_stored() {
    let mut symbols = Symbols::default();
    symbols.mark_leaves(global(0), 128, Scalar::F16, 0);
    symbols.copy(shared(0), global(0), 128).expect("room");
    let rows = row(shared(0), 16);
    symbols.load_matrix(AT, &[Slot::Word(0)], &rows, false).expect("room");
    // Lane 6 holds row 1, columns 4 and 5.
    assert_eq!(held(&mut symbols, Slot::Word(0), 6, Scalar::F16), "x[12]");
    symbols.move_matrix(AT, Slot::Word(1), Slot::Word(0));
    symbols.load_matrix(AT, &[Slot::Word(2)], &rows, true).expect("room");
    for slot in [Slot::Word(1), Slot::Word(2)] {
        assert_eq!(held(&mut symbols, slot, 6, Scalar::F16), "x[33]", "row 4, column 1");
    }
    symbols.store_matrix(AT, &[Slot::Word(1)], &row(shared(512), 16), true).expect("room");
    for k in 0..64 {
        let node = symbols.output(shared(512 + 2 * k), Scalar::F16, 0).expect("room");
        assert_eq!(shown(&symbols, node), format!("x[{k}]"));
    }
}

#[test]
fn a_matrix_product_is_a_node_an_element() {
    let (mut symbols, registers) = loaded(Scalar::F32, 2);
    let tf32 = Scalar::TF32;
    let op = Op::Mma {
        m: 2,
        n: 2,
        k: 2,
        d: Scalar::F32,
        a: tf32,
        b: tf32,
        c: Scalar::F32,
        satfinite: false,
    };
    let cell = |lane, row| Cell { lane, slot: Slot::Word(row), byte: 0 };
    let four = |first: u8, row| [0, 1, 2, 3].map(|k| cell(first + k, row));
    let (a, b, c, d) = (four(0, 0), four(4, 0), four(0, 1), four(0, 0));
    symbols.mma(AT, &op, MmaCells { a: &a, b: &b, c: &c, d: &d }, &registers).expect("room");
    assert_eq!(
        held(&mut symbols, Slot::Word(0), 2, Scalar::F32),
        "mma.m2n2k2.f32.tf32.tf32.f32(x[2], x[3], x[4], x[6], 1.0)"
    );
}

#[test]
fn decisions_on_data_are_noted_once_a_step() {
    let (mut symbols, _) = loaded(Scalar::F32, 1);
    symbols.decided(AT, Slot::Word(7), ALL);
    assert!(symbols.decisions().is_empty());
    symbols.decided(AT, Slot::Word(0), ALL);
    symbols.decided(AT, Slot::Word(0), ALL);
    assert_eq!(symbols.decisions().len(), 1);
    for pc in 0..1000 {
        symbols.decided(At { pc, ..AT }, Slot::Word(0), ALL);
    }
    assert_eq!(symbols.decisions().len(), 64);
}

#[test]
fn where_values_met_is_kept() {
    let mut trees = Trees::new();
    let x = trees.row(8);
    let pair = |trees: &mut Trees, cta, thread, k: usize| {
        (trees.cta, trees.thread) = (cta, thread);
        trees.join(FloatBinary::Add, x[k], x[k + 1])
    };
    let own = [pair(&mut trees, 0, 0, 0), pair(&mut trees, 0, 1, 2)];
    let other = [pair(&mut trees, 0, 32, 4), pair(&mut trees, 1, 0, 6)];
    (trees.cta, trees.thread) = (0, 0);
    let lanes = trees.join(FloatBinary::Add, own[0], own[1]);
    let warps = trees.join(FloatBinary::Add, lanes, other[0]);
    let grid = trees.join(FloatBinary::Add, warps, other[1]);
    let met = [own[0], lanes, warps, grid].map(|node| trees.graph.maker(node).map(|m| m.meeting));
    use Meeting::*;
    assert_eq!(met, [Some(Thread), Some(Warp), Some(Cta), Some(Grid)]);
}

#[test]
fn outlines_open_level_by_level_and_elide() {
    let mut trees = Trees::new();
    let x = trees.row(8);
    let root = trees.count_up(FloatBinary::Add, &x);
    assert_eq!(
        outline(&trees.graph, root, named(), 5),
        "add.rn.f32     registers of one thread\n\
         ├─ add.rn.f32  registers of one thread\n\
         │  ├─ … 2 leaves\n\
         │  └─ … 2 leaves\n\
         └─ … 4 leaves\n"
    );
    let square = trees.join(FloatBinary::Mul, root, root);
    let text = outline(&trees.graph, square, Names::plain(), 100);
    assert!(text.ends_with("└─ as in line 2\n"), "{text}");
    assert_eq!(
        expression(&trees.graph, root, named(), 2),
        "(… 2 leaves + … 2 leaves) + … 4 leaves"
    );
    let deep = (0..10_000).fold(x[0], |sum, _| trees.join(FloatBinary::Add, sum, sum));
    assert!(outline(&trees.graph, deep, named(), 1_000_000).contains("more leaves than can be"));
    assert!(expression(&trees.graph, deep, named(), 1000).len() < 100_000);
}
