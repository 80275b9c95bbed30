//! Signatures: which operands an instruction takes, and which it refuses.

use bitstable_ptx::ir::{
    Barrier, Compare, Data, Half, IntBinary, Logic, Mbarrier, Mismatch, Op, Operand, Ordering,
    Register, RegisterId, Role, Scalar, Scope, Shape, Shuffle, Space, Width, signature,
};
use strum::IntoEnumIterator;

/// One register of each width: `reg(bits)` is its operand.
fn registers() -> Vec<Register> {
    [Scalar::Pred, Scalar::B8, Scalar::B16, Scalar::B32, Scalar::B64, Scalar::B128]
        .into_iter()
        .map(|ty| Register { name: format!("%{ty}"), ty })
        .collect()
}

fn reg(bits: u32) -> Operand {
    let index = [1, 8, 16, 32, 64, 128].iter().position(|width| *width == bits).expect("a width");
    Operand::Register(RegisterId(index as u32))
}

fn address() -> Operand {
    Operand::Address { base: Box::new(reg(64)), offset: 0 }
}

fn roles(op: &Op, operands: &[Operand]) -> Result<Vec<Option<Role>>, Mismatch> {
    signature(op).roles(operands, &registers())
}

#[track_caller]
fn takes(op: &Op, operands: &[Operand]) {
    assert!(roles(op, operands).is_ok(), "{:?}", roles(op, operands));
}

#[track_caller]
fn refuses(op: &Op, operands: &[Operand], place: usize) {
    match roles(op, operands) {
        Err(Mismatch::Operand { place: at, .. }) => assert_eq!(at, place),
        other => panic!("{other:?}"),
    }
}

fn plain(ty: Scalar) -> Data {
    Data { ty, shape: Shape::One, width: Width::Exact }
}

/// Whose type is not the instruction's own suffix.
#[test]
fn types_that_differ_from_the_suffix() {
    let shl = Op::IntBinary { op: IntBinary::Shl, ty: Scalar::B64, sat: false };
    assert_eq!(signature(&shl).places[2].role, Role::Read(plain(Scalar::U32)));
    takes(&shl, &[reg(64), reg(64), Operand::Int(3)]);
    takes(&shl, &[reg(64), reg(64), reg(32)]);
    refuses(&shl, &[reg(64), reg(64), reg(64)], 3);

    let wide = Op::IntBinary { op: IntBinary::Mul(Half::Wide), ty: Scalar::S16, sat: false };
    takes(&wide, &[reg(32), reg(16), reg(16)]);
    refuses(&wide, &[reg(16), reg(16), reg(16)], 1);

    takes(&Op::Selp { ty: Scalar::F64 }, &[reg(64), reg(64), Operand::Float64(0), reg(1)]);
    refuses(&Op::Selp { ty: Scalar::F64 }, &[reg(64), reg(64), reg(64), reg(32)], 4);
    takes(
        &Op::Slct { ty: Scalar::B64, by: Scalar::F32, ftz: false },
        &[reg(64), reg(64), reg(64), reg(32)],
    );
    takes(&Op::Bfind { ty: Scalar::U64, shiftamt: false }, &[reg(32), reg(64)]);
}

/// S2: `ld`, `st` and `cvt` alone take registers wider than their types.
#[test]
fn wider_registers() {
    let cvt = |to, from| Op::Cvt {
        to,
        from,
        round: None,
        int_round: None,
        ftz: false,
        sat: false,
        relu: false,
        satfinite: false,
    };
    takes(&cvt(Scalar::S8, Scalar::U16), &[reg(64), reg(32)]);
    refuses(&cvt(Scalar::U32, Scalar::U16), &[reg(16), reg(32)], 1);
    let load = |ty, vector| Op::Ld {
        space: Space::Global,
        ordering: Ordering::Weak,
        ty,
        vector,
        nc: false,
        hints: vec![],
    };
    takes(&load(Scalar::U8, 1), &[reg(32), address()]);
    refuses(&load(Scalar::U32, 1), &[reg(16), address()], 1);
    takes(&load(Scalar::B16, 2), &[Operand::Vector(vec![reg(32), reg(16)]), address()]);
    refuses(&load(Scalar::B16, 4), &[Operand::Vector(vec![reg(16), reg(16)]), address()], 1);
    let add = Op::IntBinary { op: IntBinary::Add, ty: Scalar::S32, sat: false };
    refuses(&add, &[reg(32), reg(64), reg(32)], 2);
}

#[test]
fn pairs_sinks_and_negation() {
    let setp = |join| Op::Setp { cmp: Compare::Lt, ty: Scalar::F32, ftz: false, join };
    let pair = |first, second| Operand::Pair(Box::new(first), Box::new(second));
    takes(&setp(None), &[reg(1), reg(32), Operand::Float32(0)]);
    takes(&setp(None), &[pair(reg(1), Operand::Sink), reg(32), reg(32)]);
    refuses(&setp(None), &[pair(reg(1), reg(32)), reg(32), reg(32)], 1);
    let not = |bits: u32| match reg(bits) {
        Operand::Register(id) => Operand::Not(id),
        other => other,
    };
    takes(&setp(Some(Logic::And)), &[reg(1), reg(32), reg(32), not(1)]);
    refuses(&setp(Some(Logic::And)), &[reg(1), reg(32), reg(32), not(32)], 4);
    refuses(&Op::Selp { ty: Scalar::B32 }, &[reg(32), reg(32), reg(32), not(1)], 4);
    assert_eq!(
        roles(&setp(None), &[reg(1), reg(32), reg(32), reg(1)]),
        Err(Mismatch::Surplus { given: 4, most: 3 })
    );
    takes(
        &Op::Shfl { mode: Shuffle::Bfly },
        &[pair(reg(32), reg(1)), reg(32), Operand::Int(1), Operand::Int(31), Operand::Int(0)],
    );
}

#[test]
fn pieces_of_a_move() {
    let mov = Op::Mov { ty: Scalar::B32 };
    takes(&mov, &[reg(32), Operand::Vector(vec![reg(16), reg(16)])]);
    takes(&mov, &[Operand::Vector(vec![reg(16), Operand::Sink]), reg(32)]);
    takes(&mov, &[reg(32), Operand::Vector(vec![reg(8), reg(8), reg(8), reg(8)])]);
    refuses(&mov, &[reg(32), Operand::Vector(vec![reg(16); 3])], 2);
    refuses(&mov, &[reg(32), Operand::Vector(vec![reg(32); 2])], 2);
    takes(&Op::Mov { ty: Scalar::B128 }, &[reg(128), Operand::Vector(vec![reg(64), reg(64)])]);
    assert_eq!(
        roles(&mov, &[reg(32)]),
        Err(Mismatch::Missing { given: 1, missing: ".b32 or its pieces".into() })
    );
}

/// S1: an optional position is passed over when the operand does not fit it.
#[test]
fn optional_operands() {
    let red = Op::Bar { kind: Barrier::Red(Logic::Or), aligned: true };
    takes(&red, &[reg(1), Operand::Int(0), reg(1)]);
    takes(&red, &[reg(1), Operand::Int(0), reg(32), reg(1)]);
    refuses(&red, &[reg(1), Operand::Int(0), reg(64)], 3);

    let copy = |hints: &[&str]| Op::CpAsync {
        cg: true,
        hints: hints.iter().map(|hint| (*hint).to_owned()).collect(),
    };
    let sized = |rest: &[Operand]| [&[address(), address(), Operand::Int(16)], rest].concat();
    takes(&copy(&[]), &sized(&[]));
    takes(&copy(&[]), &sized(&[reg(32)]));
    takes(&copy(&[]), &sized(&[reg(1)]));
    assert!(roles(&copy(&[]), &sized(&[reg(64)])).is_err(), "no policy without its modifier");
    takes(&copy(&["L2::cache_hint"]), &sized(&[reg(32), reg(64)]));

    let wait = Op::Mbarrier {
        op: Mbarrier::Wait { try_wait: true, parity: true },
        ordering: Ordering::Acquire(Scope::Cta),
        space: Space::Shared,
    };
    takes(&wait, &[reg(1), address(), reg(32)]);
    takes(&wait, &[reg(1), address(), reg(32), Operand::Int(100)]);
}

/// Registers of a fragment: elements of the tile by 32 lanes, packed to 32 bits.
#[test]
fn matrix_fragments() {
    let mma = |m, n, k, d, a, c| Op::Mma { m, n, k, d, a, b: a, c, satfinite: false };
    for (op, lengths) in [
        (mma(16, 8, 16, Scalar::F32, Scalar::F16, Scalar::F32), [4, 4, 2, 4]),
        (mma(16, 8, 16, Scalar::F16, Scalar::F16, Scalar::F16), [2, 4, 2, 2]),
        (mma(16, 8, 8, Scalar::F32, Scalar::TF32, Scalar::F32), [4, 4, 2, 4]),
        (mma(16, 8, 32, Scalar::S32, Scalar::S8, Scalar::S32), [4, 4, 2, 4]),
        (mma(16, 8, 32, Scalar::F32, Scalar::E4m3, Scalar::F32), [4, 4, 2, 4]),
        (mma(8, 8, 4, Scalar::F64, Scalar::F64, Scalar::F64), [2, 1, 1, 2]),
        (mma(8, 8, 4, Scalar::F32, Scalar::F16, Scalar::F32), [8, 2, 2, 8]),
        (mma(8, 8, 128, Scalar::S32, Scalar::B1, Scalar::S32), [2, 1, 1, 2]),
    ] {
        let places = signature(&op).places;
        let found = places.iter().map(|place| match place.role {
            Role::Write(data) | Role::Read(data) => data.shape,
            other => panic!("{other:?}"),
        });
        let wanted = lengths.map(Shape::Vector);
        assert!(found.eq(wanted), "{op:?}");
    }
}

/// Whatever the fields, a signature is found and says its own types.
#[test]
fn no_field_is_too_strange() {
    for ty in Scalar::iter() {
        for n in [0, 1, u16::MAX] {
            signature(&Op::Mma { m: n, n, k: n, d: ty, a: ty, b: ty, c: ty, satfinite: false });
        }
        for number in [0, 1, u8::MAX] {
            let shape = "m16n16".to_owned();
            let space = Space::Shared;
            signature(&Op::Ldmatrix { number, trans: false, space, shape, ty: String::new() });
        }
        assert_eq!(signature(&Op::Sad { ty }).places.len(), 4);
    }
    assert!(signature(&Op::Opaque { name: "wgmma".to_owned() }).open);
}
