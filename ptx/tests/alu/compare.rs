//! `setp`, `set` and `testp`.

use bitstable_ptx::{
    exec::{alu::lower, registers::Slot},
    ir::{Class, Compare, Logic, Op, Scalar, TestProperty},
};
use strum::IntoEnumIterator;

use crate::machine::{check, check_rows, operands, slots, types};

/// What a comparison of two numbers says, from their order; `None` where one is NaN.
fn holds(cmp: Compare, order: Option<std::cmp::Ordering>) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let unordered = order.is_none();
    match cmp {
        Compare::Eq => order == Some(Equal),
        Compare::Ne => matches!(order, Some(Less | Greater)),
        Compare::Lt | Compare::Lo => order == Some(Less),
        Compare::Le | Compare::Ls => matches!(order, Some(Less | Equal)),
        Compare::Gt | Compare::Hi => order == Some(Greater),
        Compare::Ge | Compare::Hs => matches!(order, Some(Greater | Equal)),
        Compare::Equ => unordered || order == Some(Equal),
        Compare::Neu => order != Some(Equal),
        Compare::Ltu => unordered || order == Some(Less),
        Compare::Leu => order != Some(Greater),
        Compare::Gtu => unordered || order == Some(Greater),
        Compare::Geu => order != Some(Less),
        Compare::Num => !unordered,
        Compare::Nan => unordered,
    }
}

fn order(ty: Scalar, a: u64, b: u64) -> Option<std::cmp::Ordering> {
    match ty {
        Scalar::F64 => f64::from_bits(a).partial_cmp(&f64::from_bits(b)),
        Scalar::F32 => f32::from_bits(a as u32).partial_cmp(&f32::from_bits(b as u32)),
        Scalar::F16 => half::f16::from_bits(a as u16).partial_cmp(&half::f16::from_bits(b as u16)),
        Scalar::BF16 => {
            half::bf16::from_bits(a as u16).partial_cmp(&half::bf16::from_bits(b as u16))
        }
        _ => {
            let unused = 64 - ty.bits();
            let [a, b] = [a << unused, b << unused];
            let signed = ty.class() == Class::Signed;
            Some(if signed { (a as i64).cmp(&(b as i64)) } else { a.cmp(&b) })
        }
    }
}

#[test]
fn every_relation_of_every_type() {
    let mut accepted = 0;
    for ty in Scalar::iter().filter(|ty| ty.lanes() == 1) {
        for cmp in Compare::iter() {
            let op = Op::Setp { cmp, ty, ftz: false, join: None };
            let (dst, src) = types(&op);
            if lower(&op, operands(&slots(&dst, 0), &slots(&src, 8))).is_ok() {
                accepted += 1;
                check(&op, |source| holds(cmp, order(ty, source[0], source[1])).into());
            }
        }
    }
    // Floats have all 18, unsigned 10, signed 6, bits 2.
    assert_eq!(accepted, 4 * 18 + 3 * 10 + 3 * 6 + 3 * 2);
}

/// C1: the second predicate joins the opposite comparison.
#[test]
fn joins_with_a_predicate() {
    let join_of = |join, t: bool, c: bool| match join {
        None => t,
        Some(Logic::And) => t && c,
        Some(Logic::Or) => t || c,
        Some(Logic::Xor) => t != c,
    };
    for join in [None, Some(Logic::And), Some(Logic::Or), Some(Logic::Xor)] {
        let op = Op::Setp { cmp: Compare::Lt, ty: Scalar::S32, ftz: false, join };
        let src_types = types(&op).1;
        for dst in [vec![Slot::Flag(0)], vec![Slot::Flag(0), Slot::Flag(1)]] {
            check_rows(&op, 0, &dst, &slots(&src_types, 8), &src_types, |source| {
                let less = (source[0] as i32) < source[1] as i32;
                let joined = source.get(2).is_some_and(|bit| *bit != 0);
                vec![join_of(join, less, joined).into(), join_of(join, !less, joined).into()]
            });
        }
    }
    // `_` stands for either: nothing is written there.
    let op = Op::Setp { cmp: Compare::Eq, ty: Scalar::B32, ftz: false, join: None };
    let src = slots(&[Scalar::B32; 2], 8);
    check_rows(&op, 0, &[Slot::Flag(0), Slot::Sink], &src, &[Scalar::B32; 2], |source| {
        vec![(source[0] == source[1]).into(), 0]
    });
}

/// With `.ftz` a subnormal equals zero.
#[test]
fn flushing_comes_first() {
    let flushed = |bits: u64| {
        let value = f32::from_bits(bits as u32);
        if value.is_subnormal() { 0.0 } else { value }
    };
    for cmp in Compare::iter() {
        check(&Op::Setp { cmp, ty: Scalar::F32, ftz: true, join: None }, |source| {
            holds(cmp, flushed(source[0]).partial_cmp(&flushed(source[1]))).into()
        });
    }
}

#[test]
fn packed_halves_have_a_predicate_each() {
    for cmp in Compare::iter() {
        for (ty, half) in [(Scalar::F16x2, Scalar::F16), (Scalar::BF16x2, Scalar::BF16)] {
            let op = Op::Setp { cmp, ty, ftz: false, join: None };
            let dst = [Slot::Flag(0), Slot::Flag(1)];
            check_rows(&op, 0, &dst, &slots(&[ty; 2], 8), &[ty; 2], |source| {
                let low = order(half, source[0], source[1]);
                let high = order(half, source[0] >> 16, source[1] >> 16);
                vec![holds(cmp, low).into(), holds(cmp, high).into()]
            });
        }
    }
}

#[test]
fn set_writes_ones_or_one() {
    for (to, truth) in
        [(Scalar::U32, 0xffff_ffff), (Scalar::S32, 0xffff_ffff), (Scalar::F32, 0x3f80_0000)]
    {
        for ty in [Scalar::S32, Scalar::U64, Scalar::F32, Scalar::F64, Scalar::F16] {
            let op = Op::Set { cmp: Compare::Le, to, ty, ftz: false, join: None };
            check(
                &op,
                |source| {
                    if holds(Compare::Le, order(ty, source[0], source[1])) { truth } else { 0 }
                },
            );
        }
    }
    let op = Op::Set {
        cmp: Compare::Gt,
        to: Scalar::F16x2,
        ty: Scalar::F16x2,
        ftz: false,
        join: Some(Logic::And),
    };
    check(&op, |source| {
        let half = |shift: u32| {
            let order = order(Scalar::F16, source[0] >> shift, source[1] >> shift);
            let one = if holds(Compare::Gt, order) && source[2] != 0 { 0x3c00 } else { 0 };
            one << shift
        };
        half(0) | half(16)
    });
}

#[test]
fn properties() {
    for (property, holds) in [
        (TestProperty::Finite, f32::is_finite as fn(f32) -> bool),
        (TestProperty::Infinite, f32::is_infinite),
        (TestProperty::Number, |value| !value.is_nan()),
        (TestProperty::NotANumber, f32::is_nan),
        (TestProperty::Normal, f32::is_normal),
        (TestProperty::Subnormal, f32::is_subnormal),
    ] {
        check(&Op::Testp { property, ty: Scalar::F32 }, |source| {
            holds(f32::from_bits(source[0] as u32)).into()
        });
        assert!(
            lower(
                &Op::Testp { property, ty: Scalar::F64 },
                operands(&[Slot::Flag(0)], &[Slot::Wide(0)])
            )
            .is_ok()
        );
    }
}
