//! Digests: equal for equal trees, whoever computed them, and for no others.

mod symbol_trees;

use bitstable_ptx::{
    exec::{
        lane::Operands,
        registers::{LANES, Registers, Slot},
    },
    ir::{FloatBinary, FloatMode, FloatUnary, Op, Precision, Round, Scalar},
    symbol::{Area, At, Digest, Digests, Graph, Leaf, NodeId, Place, Symbols},
};
use symbol_trees::*;

fn digest(graph: &Graph, node: NodeId) -> Digest {
    Digests::default().of(graph, node).expect("everything could be followed")
}

fn added(trees: &mut Trees, mode: FloatMode) -> Digest {
    let x = trees.row(2);
    let op = Op::FloatBinary { op: FloatBinary::Add, ty: Scalar::F32, mode };
    let node = trees.operation(&op, Scalar::F32, &x);
    digest(&trees.graph, node)
}

#[test]
fn digests_are_the_documented_hash() {
    let mut trees = Trees::new();
    let x = trees.row(2);
    let sum = trees.join(FloatBinary::Add, x[0], x[1]);
    // As hashlib gives them for the bytes in the module's table.
    assert_eq!(digest(&trees.graph, x[0]).to_string(), "68274700cbb53e88c425a5be60b26413");
    assert_eq!(digest(&trees.graph, sum).to_string(), "8321b306a2246c85e107a01d166cea60");
}

#[test]
fn equal_nodes_are_one() {
    let mut trees = Trees::new();
    let x = trees.row(2);
    let first = trees.join(FloatBinary::Add, x[0], x[1]);
    trees.thread = 99;
    let before = trees.graph.count();
    assert_eq!(trees.join(FloatBinary::Add, x[0], x[1]), first);
    assert_eq!(trees.graph.count(), before);
    assert_ne!(trees.join(FloatBinary::Add, x[1], x[0]), first);
    assert_eq!(trees.graph.maker(first).expect("made here").site.thread.thread, 0);
}

#[test]
fn operation_rounding_and_type_matter() {
    let mut trees = Trees::new();
    let rn = FloatMode { round: Some(Round::Rn), ..FloatMode::default() };
    let nearest = added(&mut trees, rn);
    assert_eq!(added(&mut trees, FloatMode::default()), nearest, "unwritten is to nearest");
    assert_ne!(added(&mut trees, FloatMode { round: Some(Round::Rz), ..rn }), nearest);
    assert_ne!(added(&mut trees, FloatMode { ftz: true, ..rn }), nearest);
    assert_ne!(added(&mut trees, FloatMode { sat: true, ..rn }), nearest);

    let x = trees.row(3);
    let mut all: Vec<Digest> = combines()
        .map(|op| {
            let node = trees.join(op, x[0], x[1]);
            digest(&trees.graph, node)
        })
        .to_vec();
    for precision in [Precision::Rounded, Precision::Approx, Precision::Full] {
        let node = trees.join(FloatBinary::Div(precision), x[0], x[1]);
        all.push(digest(&trees.graph, node));
        let op = FloatUnary::Sqrt(precision);
        let op = Op::FloatUnary { op, ty: Scalar::F32, mode: FloatMode::default() };
        let node = trees.operation(&op, Scalar::F32, &x[..1]);
        all.push(digest(&trees.graph, node));
    }
    let product = trees.join(FloatBinary::Mul, x[0], x[1]);
    let sum = trees.join(FloatBinary::Add, product, x[2]);
    let fused = trees.fma(x[0], x[1], x[2]);
    all.extend([digest(&trees.graph, sum), digest(&trees.graph, fused)]);
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}

#[test]
fn order_matters_but_not_of_operands_that_commute() {
    let mut trees = Trees::new();
    let x = trees.row(4);
    let tree = trees.count_up(FloatBinary::Add, &x);
    let strided = trees.count_up(FloatBinary::Add, &[x[0], x[2], x[1], x[3]]);
    assert_ne!(digest(&trees.graph, tree).tree, digest(&trees.graph, strided).tree);
    let (a, b) =
        (trees.join(FloatBinary::Add, x[1], x[0]), trees.join(FloatBinary::Add, x[2], x[3]));
    let swapped = trees.join(FloatBinary::Add, b, a);
    assert_eq!(digest(&trees.graph, tree).tree, digest(&trees.graph, swapped).tree);
    assert_ne!(digest(&trees.graph, tree).ordered, digest(&trees.graph, swapped).ordered);
    let (a, b) =
        (trees.join(FloatBinary::Sub, x[0], x[1]), trees.join(FloatBinary::Sub, x[1], x[0]));
    assert_ne!(digest(&trees.graph, a).tree, digest(&trees.graph, b).tree);
}

/// One sum, with the operands met in one thread's registers or by a shuffle, at other addresses.
#[test]
fn layouts_and_addresses_do_not_matter() {
    let mode = FloatMode { round: Some(Round::Rn), ..FloatMode::default() };
    let op = Op::FloatBinary { op: FloatBinary::Add, ty: Scalar::F32, mode };
    let operands = Operands {
        dst: [Slot::Word(2)].into_iter().collect(),
        src: [Slot::Word(0), Slot::Word(1)].into_iter().collect(),
        ..Operands::default()
    };
    let registers = Registers { words: vec![[0; LANES]; 3], ..Registers::default() };
    let run = |base: u64, shuffled: bool, at: At| {
        let mut symbols = Symbols::default();
        let place = |address| Place { area: Area::GLOBAL, address };
        symbols.mark_leaves(place(base), 128, Scalar::F32, 0);
        let row: [Place; LANES] = std::array::from_fn(|lane| place(base + 4 * lane as u64));
        symbols.load(at, &[Slot::Word(0)], Scalar::F32, &row, u32::MAX).expect("room");
        if shuffled {
            let from: [u8; LANES] = std::array::from_fn(|lane| lane as u8 ^ 1);
            symbols.shuffle(at, Slot::Word(1), Slot::Word(0), &from, u32::MAX);
        } else {
            let row: [Place; LANES] =
                std::array::from_fn(|lane| place(base + 4 * (lane as u64 ^ 1)));
            symbols.load(at, &[Slot::Word(1)], Scalar::F32, &row, u32::MAX).expect("room");
        }
        symbols.lane(at, &op, &operands, &registers, u32::MAX).expect("room");
        let out: [Place; LANES] = std::array::from_fn(|lane| place(0x10_0000 + 4 * lane as u64));
        symbols.store(at, &[Slot::Word(2)], Scalar::F32, &out, u32::MAX).expect("room");
        let node = |symbols: &mut Symbols, lane: usize| {
            symbols.output(out[lane], Scalar::F32, 0).expect("room").expect("symbolic")
        };
        let (low, high) = (node(&mut symbols, 0), node(&mut symbols, 1));
        [digest(symbols.graph(), low), digest(symbols.graph(), high)]
    };
    let [low, high] = run(0x1000, false, At { pc: 1, cta: 0, warp: 0 });
    assert_eq!(low.tree, high.tree, "x[0] + x[1] and x[1] + x[0]");
    assert_ne!(low.ordered, high.ordered);
    assert_eq!(run(0x7_F004, true, At { pc: 77, cta: 3, warp: 2 }), [low, high]);
}

#[test]
fn what_could_not_be_followed_has_no_digest() {
    let mut trees = Trees::new();
    let x = trees.row(1);
    let lost = Leaf { buffer: Leaf::UNKNOWN, offset: 1, ty: Scalar::F32 };
    let lost = trees.graph.leaf(lost).expect("room");
    let sum = trees.join(FloatBinary::Add, x[0], lost);
    let mut digests = Digests::default();
    assert_eq!(digests.of(&trees.graph, sum), None);
    assert_eq!(digests.of_outputs(&trees.graph, &[(0, 0, x[0]), (0, 4, sum)]), None);
    assert!(digests.of_outputs(&trees.graph, &[(0, 0, x[0])]).is_some());
}

#[test]
fn deep_trees_are_walked_without_recursion() {
    let mut trees = Trees::new();
    let x = trees.row(2);
    let deep = (0..20_000).fold(x[0], |sum, _| trees.join(FloatBinary::Add, sum, x[1]));
    assert!(Digests::default().of(&trees.graph, deep).is_some());
}
