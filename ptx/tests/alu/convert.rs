//! `cvt` and `cvt.pack`: the meaning is `num`'s; here, rows, widths and extension.

use bitstable_ptx::{
    exec::{
        alu::lower,
        registers::{LANES, Slot},
    },
    ir::{IntRound, Op, Round, Scalar},
    num::convert::{Cvt, cvt_pack, extended},
};
use strum::IntoEnumIterator;

use crate::machine::{check, check_rows, operands, slots, types};

fn op(cvt: Cvt) -> Op {
    let Cvt { to, from, round, int_round, ftz, sat, relu, satfinite } = cvt;
    Op::Cvt { to, from, round, int_round, ftz, sat, relu, satfinite }
}

/// Every supported conversion, the hot ones among them, equals the general road.
#[test]
fn every_pair_with_every_rounding() {
    let rounds = || std::iter::once(None).chain(Round::iter().map(Some));
    let int_rounds = || std::iter::once(None).chain(IntRound::iter().map(Some));
    let mut supported = 0;
    for to in Scalar::iter() {
        for from in Scalar::iter() {
            for (round, int_round) in rounds()
                .map(|round| (round, None))
                .chain(int_rounds().map(|int_round| (None, int_round)))
            {
                for flag in 0..5 {
                    let cvt = Cvt {
                        round,
                        int_round,
                        ftz: flag == 1,
                        sat: flag == 2,
                        relu: flag == 3,
                        satfinite: flag == 4,
                        ..Cvt::plain(to, from)
                    };
                    if cvt.supported() {
                        supported += 1;
                        check_once(cvt);
                    }
                }
            }
        }
    }
    assert!(supported > 500, "{supported} conversions");
}

/// One full warp and one mixed mask, since there are many.
fn check_once(cvt: Cvt) {
    let (dst, src) = types(&op(cvt));
    let (dst, src_slots) = (slots(&dst, 0), slots(&src, 8));
    let step = lower(&op(cvt), operands(&dst, &src_slots)).unwrap_or_else(|e| panic!("{e}"));
    let mut registers = crate::machine::poisoned();
    let mut draw = crate::machine::Draw::new(cvt.to as u64 * 64 + cvt.from as u64);
    for (&slot, &ty) in src_slots.iter().zip(&src) {
        for lane in 0..LANES {
            registers.set_lane(slot, lane, draw.pattern(ty));
        }
    }
    let before = registers.clone();
    for mask in [0x0ff0_1234, u32::MAX] {
        (step.run)(&mut registers, &step.operands, mask);
        for lane in 0..LANES {
            let source = |index: usize| src_slots.get(index).map_or(0, |s| before.lane(*s, lane));
            let active = mask >> lane & 1 != 0;
            let computed = cvt.apply_slowly([source(0), source(1)]);
            let want = if active { computed } else { before.lane(dst[0], lane) };
            assert_eq!(registers.lane(dst[0], lane), want, "{cvt:?} of {:#x}", source(0));
        }
    }
}

/// A destination wider than the type takes the value extended by its own sign; a source wider than
/// the type gives its low bits.
#[test]
fn registers_wider_than_their_types() {
    for (to, from) in [
        (Scalar::S8, Scalar::S32),
        (Scalar::U8, Scalar::S32),
        (Scalar::S16, Scalar::S8),
        (Scalar::S32, Scalar::U16),
        (Scalar::S8, Scalar::F32),
    ] {
        let int_round = (from == Scalar::F32).then_some(IntRound::Rzi);
        let cvt = Cvt { int_round, ..Cvt::plain(to, from) };
        for (declared, dst) in
            [(16, Slot::Word(0)), (32, Slot::Word(0)), (64, Slot::Wide(0))].into_iter()
        {
            if u32::from(declared) < to.bits() {
                continue;
            }
            for src in [Slot::Word(8), Slot::Wide(8)] {
                // Drawn as wide as the row, so that the upper bits are not zero.
                let drawn = if src == Slot::Word(8) { Scalar::B32 } else { Scalar::B64 };
                check_rows(&op(cvt), declared, &[dst], &[src], &[drawn], |source| {
                    let ones = u64::MAX >> (64 - declared);
                    vec![extended(to, cvt.apply_slowly([source[0], 0])) & ones]
                });
            }
        }
    }
}

#[test]
fn packing_clamps_each() {
    let word = |source: &[u64], index: usize| source.get(index).map_or(0, |bits| *bits as u32);
    for (to, third) in [
        (Scalar::U16, false),
        (Scalar::S16, false),
        (Scalar::U8, true),
        (Scalar::S8, true),
        (Scalar::U4, true),
        (Scalar::S4, true),
    ] {
        check(&Op::CvtPack { to, from: Scalar::S32, third }, |source| {
            cvt_pack(to, word(source, 0), word(source, 1), word(source, 2)).into()
        });
        let refused = Op::CvtPack { to, from: Scalar::S32, third: !third };
        let (dst, src) = types(&refused);
        assert!(lower(&refused, operands(&slots(&dst, 0), &slots(&src, 8))).is_err());
    }
}
