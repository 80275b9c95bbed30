//! Pieces against bits: what an instruction's symbols say is what it computes, on random bits.
//!
//! Each instruction runs twice, with the same numbers and two draws for what is symbolic. The node
//! that the first run gave must evaluate to both results; where it gave a number, both results must
//! be that number, or a dependence was lost.

mod symbol_trees;

use bitstable_ptx::{
    exec::{
        alu,
        lane::Operands,
        registers::{LANES, Registers, Slot},
    },
    ir::{
        Class, Compare, FloatBinary, FloatMode, FloatUnary, Half, IntBinary, IntUnary, Op, Round,
        Scalar,
    },
    symbol::{
        Area, At, Graph, Limit, Node, NodeId, Options, Place, Symbols,
        label::{Part, What},
    },
};
use proptest::prelude::*;

const AT: At = At { pc: 0, cta: 0, warp: 0 };

fn place(address: u64) -> Place {
    Place { area: Area::GLOBAL, address }
}

/// An operand: its type, and its number, or nothing where it is symbolic.
type Source = (Scalar, Option<u64>);

struct Run {
    symbols: Symbols,
    registers: Registers,
    operands: Operands,
    types: Vec<Scalar>,
}

fn slot(ty: Scalar, row: u32) -> Slot {
    match ty.bits() {
        1 => Slot::Flag(row),
        64 => Slot::Wide(row),
        _ => Slot::Word(row),
    }
}

impl Run {
    fn new(sources: &[Source], results: &[Scalar]) -> Self {
        let rows = sources.len() + results.len();
        let registers = Registers {
            flags: vec![0; rows],
            words: vec![[0; LANES]; rows],
            wides: vec![[0; LANES]; rows],
            carry: 0,
        };
        let mut run = Self {
            symbols: Symbols::new(Options::default()),
            registers,
            operands: Operands::default(),
            types: results.to_vec(),
        };
        for (row, (ty, number)) in sources.iter().enumerate() {
            let own = slot(*ty, row as u32);
            run.operands.src.push(own);
            if number.is_none() {
                let from = place(1024 * row as u64);
                run.symbols.mark_leaves(from, u64::from(ty.bytes()), *ty, row as u32);
                run.symbols.load(AT, &[own], *ty, &[from; LANES], 1).expect("room");
            }
        }
        for (k, ty) in results.iter().enumerate() {
            run.operands.dst.push(slot(*ty, (sources.len() + k) as u32));
        }
        run
    }

    /// Sets the registers: numbers as they are, symbolic ones from `leaves`.
    fn set(&mut self, sources: &[Source], leaves: &[u64]) {
        for (row, (ty, number)) in sources.iter().enumerate() {
            let bits = number.unwrap_or(leaves[row]) & mask(*ty);
            self.registers.set_lane(self.operands.src[row], 0, bits);
        }
    }

    fn execute(&mut self, op: &Op) -> Vec<u64> {
        let step = alu::lower(op, self.operands.clone()).expect("executed");
        (step.run)(&mut self.registers, &step.operands, 1);
        self.operands.dst.iter().map(|slot| self.registers.lane(*slot, 0)).collect()
    }

    /// The node of result `k`, its concrete value given.
    fn node(&mut self, k: usize, bits: u64) -> Option<NodeId> {
        let (ty, to) = (register_type(self.types[k]), place(1 << 20));
        self.symbols.store(AT, &[self.operands.dst[k]], ty, &[to; LANES], 1).expect("room");
        self.symbols.output(to, ty, bits).expect("room")
    }
}

/// A result is read as wide as its register, so that upper bytes are looked at too.
fn register_type(ty: Scalar) -> Scalar {
    match ty.bits() {
        1 => Scalar::B8,
        64 => Scalar::B64,
        _ => Scalar::B32,
    }
}

fn mask(ty: Scalar) -> u64 {
    u64::MAX >> (64 - ty.bits().clamp(1, 64))
}

/// What a node is worth; `None` where an operation is not known here.
fn worth(graph: &Graph, node: NodeId, leaves: &[u64]) -> Option<u64> {
    let (label, args) = match graph.node(node) {
        Node::Leaf(leaf) => return Some(leaves[leaf.buffer as usize] & mask(leaf.ty)),
        Node::Constant { bits, .. } => return Some(bits),
        Node::Apply { label, args } => (graph.label(label), args),
    };
    let mut values = Vec::new();
    for arg in args {
        values.push(worth(graph, *arg, leaves)?);
    }
    let sign = 1u64 << (label.result.bits() - 1);
    match &label.what {
        What::Bits(parts) => Some(parts.iter().rev().fold(0, |all, part| {
            all << 8
                | match part {
                    Part::Number(byte) => u64::from(*byte),
                    Part::Of { arg, byte } => values[usize::from(*arg)] >> (8 * byte) & 255,
                }
        })),
        What::Operation(Op::FloatUnary { op: FloatUnary::Neg, .. }) => Some(values[0] ^ sign),
        What::Operation(Op::FloatUnary { op: FloatUnary::Abs, .. }) => Some(values[0] & !sign),
        What::Operation(Op::Cvt { to: Scalar::F32, from: Scalar::BF16, .. }) => {
            Some(values[0] << 16)
        }
        What::Operation(Op::Cvt { to, from, .. }) if from.class() == Class::Signed => {
            let unused = 64 - from.bits();
            Some(((values[0] << unused) as i64 >> unused) as u64 & mask(*to))
        }
        What::Operation(_) | What::Complement(_) | What::Select | What::Output(..) => None,
    }
}

/// Runs `op` on both draws; whether its first node could be evaluated.
fn agrees(op: &Op, sources: &[Source], results: &[Scalar], draws: [&[u64]; 2]) -> bool {
    let mut run = Run::new(sources, results);
    run.set(sources, draws[0]);
    run.symbols.lane(AT, op, &run.operands, &run.registers, 1).expect("room");
    let first = run.execute(op);
    run.set(sources, draws[1]);
    let second = run.execute(op);
    let mut evaluated = false;
    for k in 0..results.len() {
        match run.node(k, first[k]) {
            None => assert_eq!(first[k], second[k], "{op:?} on {sources:x?} lost a dependence"),
            Some(node) => {
                let graph = run.symbols.graph();
                for (draw, result) in draws.iter().zip([first[k], second[k]]) {
                    let Some(value) = worth(graph, node, draw) else { continue };
                    evaluated = true;
                    let text = bitstable_ptx::symbol::print::expression(
                        graph,
                        node,
                        symbol_trees::named(),
                        20,
                    );
                    assert_eq!(value, result, "{op:?} on {sources:x?} is not {text}");
                }
            }
        }
    }
    evaluated
}

fn binary(op: IntBinary, ty: Scalar) -> Op {
    Op::IntBinary { op, ty, sat: false }
}

/// Numbers that instructions which move bytes are given, and others.
fn number() -> impl Strategy<Value = u64> {
    prop_oneof![
        prop::sample::select(vec![
            0,
            8,
            16,
            24,
            32,
            48,
            1,
            7,
            0xFF,
            0xFFFF,
            0xFFFF_0000,
            0x00FF_00FF,
            0x7FFF_FFFF,
            0x8000_0000,
            0x8000_8000,
            0x7FFF,
            0x8000,
            0x5410,
            0x7632,
            0x1054,
            0x3210,
            0x9910,
            0xFFFF_FFFF_FFFF,
            0xC0,
            0xFC,
            0x3C,
            0xEA,
            u64::MAX
        ]),
        any::<u64>(),
    ]
}

fn source(ty: Scalar) -> impl Strategy<Value = Source> {
    prop::option::weighted(0.6, number()).prop_map(move |number| (ty, number))
}

/// An instruction, the types of its sources and of its results.
fn instruction() -> impl Strategy<Value = (Op, Vec<Scalar>, Vec<Scalar>)> {
    use Scalar::*;
    let mut all: Vec<(Op, Vec<Scalar>, Vec<Scalar>)> = Vec::new();
    for ty in [B16, B32, B64] {
        for op in [IntBinary::And, IntBinary::Or, IntBinary::Xor] {
            all.push((binary(op, ty), vec![ty, ty], vec![ty]));
        }
        all.push((Op::IntUnary { op: IntUnary::Not, ty }, vec![ty], vec![ty]));
        all.push((binary(IntBinary::Shl, ty), vec![ty, U32], vec![ty]));
        all.push((Op::Selp { ty }, vec![ty, ty, Pred], vec![ty]));
        all.push((Op::Mov { ty }, vec![ty], vec![ty]));
    }
    for ty in [U16, S16, U32, S32, U64, S64] {
        all.push((binary(IntBinary::Shr, ty), vec![ty, U32], vec![ty]));
        all.push((binary(IntBinary::Add, ty), vec![ty, ty], vec![ty]));
        all.push((binary(IntBinary::Max, ty), vec![ty, ty], vec![ty]));
        for to in [U16, S16, U32, S32, U64, S64] {
            all.push((symbol_trees::cvt(to, ty, None), vec![ty], vec![to]));
        }
    }
    for ty in [U32, S32, U64, S64] {
        all.push((Op::Bfe { ty }, vec![ty, U32, U32], vec![ty]));
    }
    for ty in [B32, B64] {
        all.push((Op::Bfi { ty }, vec![ty, ty, U32, U32], vec![ty]));
    }
    all.push((Op::Prmt { mode: None }, vec![B32, B32, B32], vec![B32]));
    for (left, clamp) in [(true, true), (true, false), (false, true), (false, false)] {
        all.push((Op::Shf { left, clamp }, vec![B32, B32, U32], vec![B32]));
    }
    all.push((Op::Mov { ty: B32 }, vec![B16, B16], vec![B32]));
    all.push((Op::Mov { ty: B32 }, vec![B32], vec![B16, B16]));
    all.push((Op::Mov { ty: B64 }, vec![B32, B32], vec![B64]));
    all.push((Op::Mov { ty: B64 }, vec![B64], vec![B16, B16, B16, B16]));
    all.push((binary(IntBinary::Mul(Half::Wide), U32), vec![U32, U32], vec![U64]));
    let setp = Op::Setp { cmp: Compare::Lt, ty: S32, ftz: false, join: None };
    all.push((setp, vec![S32, S32], vec![Pred, Pred]));
    all.push((Op::IntUnary { op: IntUnary::Popc, ty: B32 }, vec![B32], vec![U32]));
    // As floats: signs, packed halves.
    for ty in [F16, BF16, F32, F64] {
        let bits = [B16, B32, B64][ty.bits().ilog2() as usize - 4];
        for op in [IntBinary::And, IntBinary::Or, IntBinary::Xor] {
            all.push((binary(op, bits), vec![ty, bits], vec![bits]));
        }
    }
    let mode = FloatMode { round: Some(Round::Rn), ..FloatMode::default() };
    for ty in [F16x2, F32, F64] {
        let add = Op::FloatBinary { op: FloatBinary::Add, ty, mode };
        all.push((add, vec![ty, ty], vec![ty]));
    }
    prop::sample::select(all)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4000, ..ProptestConfig::default() })]

    #[test]
    fn symbols_say_what_bits_do(
        (op, sources, results, draws) in instruction().prop_flat_map(|(op, types, results)| {
            let sources: Vec<_> = types.into_iter().map(source).collect();
            let draws = prop::array::uniform2(prop::collection::vec(any::<u64>(), 4));
            (Just(op), sources, Just(results), draws)
        }),
    ) {
        agrees(&op, &sources, &results, [&draws[0], &draws[1]]);
    }

    /// The table of `lop3` is a literal of the instruction.
    #[test]
    fn any_lop3_says_what_it_does(
        sources in prop::array::uniform3(source(Scalar::B32)),
        table in any::<u8>(),
        draws in prop::array::uniform2(prop::collection::vec(any::<u64>(), 4)),
    ) {
        let mut sources = sources.to_vec();
        sources.push((Scalar::B32, Some(u64::from(table))));
        agrees(&Op::Lop3, &sources, &[Scalar::B32], [&draws[0], &draws[1]]);
    }
}

/// Each way that Triton takes halves apart and puts them together is a move, not an operation.
#[test]
fn packing_is_a_move() {
    use Scalar::*;
    let draws: [&[u64]; 2] = [&[0x1234_5678_9ABC_DEF0; 4], &[0x0FED_CBA9_8765_4321; 4]];
    let moves: Vec<(Op, Vec<Source>, Vec<Scalar>)> = vec![
        (Op::Mov { ty: B32 }, vec![(B16, None), (B16, None)], vec![B32]),
        (Op::Mov { ty: B32 }, vec![(B32, None)], vec![B16, B16]),
        (Op::Prmt { mode: None }, vec![(B32, None), (B32, None), (B32, Some(0x5410))], vec![B32]),
        (binary(IntBinary::Shl, B32), vec![(B32, None), (U32, Some(16))], vec![B32]),
        (binary(IntBinary::Shr, U32), vec![(U32, None), (U32, Some(16))], vec![U32]),
        (binary(IntBinary::And, B32), vec![(B32, None), (B32, Some(0xFFFF_0000))], vec![B32]),
        (binary(IntBinary::And, B32), vec![(F32, None), (B32, Some(0x7FFF_FFFF))], vec![B32]),
        (binary(IntBinary::Xor, B16), vec![(BF16, None), (B16, Some(0x8000))], vec![B16]),
        (Op::Bfe { ty: U32 }, vec![(U32, None), (U32, Some(8)), (U32, Some(16))], vec![U32]),
        (symbol_trees::cvt(U32, U16, None), vec![(U16, None)], vec![U32]),
        (symbol_trees::cvt(S32, S16, None), vec![(S16, None)], vec![S32]),
        (Op::Selp { ty: B32 }, vec![(B32, None), (B32, None), (Pred, Some(1))], vec![B32]),
    ];
    for (op, sources, results) in moves {
        assert!(agrees(&op, &sources, &results, draws), "{op:?} is no move");
    }
}

#[test]
fn a_packed_addition_is_two_nodes() {
    let sources = [(Scalar::F16x2, None), (Scalar::F16x2, None)];
    let mut run = Run::new(&sources, &[Scalar::F16x2]);
    // Two halves in one register, each a leaf of its own.
    for row in 0..2u32 {
        let from = place(65536 + 1024 * u64::from(row));
        run.symbols.mark_leaves(from, 4, Scalar::F16, 2 + row);
        run.symbols.load(AT, &[Slot::Word(row)], Scalar::B32, &[from; LANES], 1).expect("room");
    }
    let mode = FloatMode { round: Some(Round::Rn), ..FloatMode::default() };
    let op = Op::FloatBinary { op: FloatBinary::Add, ty: Scalar::F16x2, mode };
    run.symbols.lane(AT, &op, &run.operands, &run.registers, 1).expect("room");
    run.symbols
        .store(AT, &[Slot::Word(2)], Scalar::B32, &[place(1 << 20); LANES], 1)
        .expect("room");
    for (half, shown) in ["b2[0] + b3[0]", "b2[1] + b3[1]"].into_iter().enumerate() {
        let node =
            run.symbols.output(place((1 << 20) + 2 * half as u64), Scalar::F16, 0).expect("room");
        let node = node.expect("symbolic");
        let names = bitstable_ptx::symbol::print::Names::plain();
        let graph = run.symbols.graph();
        assert_eq!(bitstable_ptx::symbol::print::expression(graph, node, names, 9), shown);
        assert_eq!(graph.ty(node), Scalar::F16);
    }
}

#[test]
fn a_choice_by_data_keeps_both_arms_and_one_by_a_number_picks() {
    let sources = [(Scalar::B32, None), (Scalar::B32, None), (Scalar::Pred, None)];
    let mut run = Run::new(&sources, &[Scalar::B32]);
    run.symbols
        .lane(AT, &Op::Selp { ty: Scalar::B32 }, &run.operands, &run.registers, 1)
        .expect("room");
    let node = run.node(0, 0).expect("symbolic");
    assert_eq!(
        run.symbols.graph().label_of(node).map(|label| label.name()).as_deref(),
        Some("select.b32")
    );
    assert_eq!(run.symbols.graph().args(node).len(), 3);
}

#[test]
fn shuffles_move_pieces_and_numbers_end_them() {
    let mut run = Run::new(&[], &[]);
    run.symbols.mark_leaves(place(0), 128, Scalar::F32, 0);
    let places: [Place; LANES] = std::array::from_fn(|lane| place(4 * lane as u64));
    let (a, b) = (Slot::Word(0), Slot::Word(1));
    run.symbols.load(AT, &[a], Scalar::F32, &places, u32::MAX).expect("room");
    let from: [u8; LANES] = std::array::from_fn(|lane| lane as u8 ^ 1);
    run.symbols.shuffle(AT, b, a, &from, u32::MAX);
    run.symbols.store(AT, &[b], Scalar::F32, &places, u32::MAX).expect("room");
    let node = run.symbols.output(place(0), Scalar::F32, 0).expect("room").expect("symbolic");
    assert!(matches!(run.symbols.graph().node(node), Node::Leaf(leaf) if leaf.offset == 4));
    run.symbols.forget(AT, &[b], u32::MAX);
    run.symbols.store(AT, &[b], Scalar::F32, &places, u32::MAX).expect("room");
    assert_eq!(run.symbols.output(place(0), Scalar::F32, 0), Ok(None));
}

#[test]
fn limits_are_errors() {
    let mut symbols = Symbols::new(Options { nodes: 10, bytes: 1 << 20 });
    symbols.mark_leaves(place(0), 1 << 40, Scalar::F32, 0);
    let places: [Place; LANES] = std::array::from_fn(|lane| place(4 * lane as u64));
    let found = symbols.load(AT, &[Slot::Word(0)], Scalar::F32, &places, u32::MAX);
    assert_eq!(found, Err(Limit::Nodes(10)));

    let mut symbols = Symbols::new(Options { nodes: 1 << 20, bytes: 1024 });
    symbols.mark_leaves(place(0), u64::MAX, Scalar::F32, 0);
    let places: [Place; LANES] = std::array::from_fn(|lane| place(4096 * lane as u64));
    let found = symbols.load(AT, &[Slot::Word(0)], Scalar::F32, &places, u32::MAX);
    assert_eq!(found, Err(Limit::Bytes(1024)));
    // The last bytes of an address space wrap; they are no reason to panic.
    let end = [place(u64::MAX - 1); LANES];
    let mut symbols = Symbols::default();
    symbols.mark_leaves(place(u64::MAX - 1), 8, Scalar::F32, 0);
    symbols.load(AT, &[Slot::Wide(0)], Scalar::B64, &end, 1).expect("room");
}
