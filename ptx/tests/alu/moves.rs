//! Moves, selections and generic addresses.

use bitstable_ptx::{
    exec::{
        alu::lower,
        registers::{LANES, Slot},
    },
    ir::{Op, Scalar, Space},
    memory::space::{LOCAL_WINDOW, SHARED_WINDOW, WINDOW_BYTES},
};

use crate::machine::{Draw, MASKS, check, check_rows, operands, poisoned, slots};

#[test]
fn whole_registers_of_any_type() {
    for ty in [Scalar::Pred, Scalar::B16, Scalar::U32, Scalar::F32, Scalar::S64, Scalar::F64] {
        check(&Op::Mov { ty }, |source| source[0]);
    }
}

/// V1: pieces to a whole and back, for each width of both.
#[test]
fn pieces_make_a_whole_and_come_apart() {
    for (whole, pieces, piece) in [
        (Scalar::B16, 2, Scalar::B8),
        (Scalar::B32, 2, Scalar::B16),
        (Scalar::B32, 4, Scalar::B8),
        (Scalar::B64, 2, Scalar::B32),
        (Scalar::B64, 4, Scalar::B16),
    ] {
        let op = Op::Mov { ty: whole };
        let width = piece.bits();
        let many = vec![piece; pieces];
        check_rows(&op, 0, &slots(&[whole], 0), &slots(&many, 8), &many, |source| {
            let parts = (0..).zip(source);
            vec![parts.fold(0, |all, (at, part)| all | part << (at * width))]
        });
        check_rows(&op, 0, &slots(&many, 0), &slots(&[whole], 8), &[whole], |source| {
            (0..pieces as u32).map(|at| source[0] >> (at * width) & ((1 << width) - 1)).collect()
        });
        // `_` takes a piece and drops it.
        let mut dst = slots(&many, 0);
        dst[1] = Slot::Sink;
        check_rows(&op, 0, &dst, &slots(&[whole], 8), &[whole], |source| {
            let part = |at: u32| source[0] >> (at * width) & ((1 << width) - 1);
            (0..pieces as u32).map(|at| if at == 1 { 0 } else { part(at) }).collect()
        });
    }
}

#[test]
fn quads_move_whole_and_in_halves() {
    let quad = Slot::Quad(8);
    let halves = [Slot::Wide(8), Slot::Wide(9)];
    let mut registers = poisoned();
    let mut draw = Draw::new(128);
    for slot in halves {
        for lane in 0..LANES {
            registers.set_lane(slot, lane, draw.next());
        }
    }
    let before = registers.clone();
    let op = Op::Mov { ty: Scalar::B128 };
    for mask in MASKS {
        for (dst, src) in [
            (vec![Slot::Quad(0)], vec![quad]),
            (vec![Slot::Wide(0), Slot::Wide(1)], vec![quad]),
            (vec![Slot::Quad(0)], halves.to_vec()),
        ] {
            let mut registers = before.clone();
            let step = lower(&op, operands(&dst, &src)).expect("runs");
            (step.run)(&mut registers, &step.operands, mask);
            for lane in 0..LANES {
                for half in 0..2 {
                    let from = if mask >> lane & 1 != 0 { 8 + half } else { half };
                    assert_eq!(registers.wides[half][lane], before.wides[from][lane], "{src:?}");
                }
            }
        }
    }
}

#[test]
fn selections() {
    for ty in [Scalar::B16, Scalar::U32, Scalar::F32, Scalar::S64, Scalar::F64] {
        check(&Op::Selp { ty }, |source| if source[2] != 0 { source[0] } else { source[1] });
        check(&Op::Slct { ty, by: Scalar::S32, ftz: false }, |source| {
            if source[2] as i32 >= 0 { source[0] } else { source[1] }
        });
        for ftz in [false, true] {
            check(&Op::Slct { ty, by: Scalar::F32, ftz }, |source| {
                let by = f32::from_bits(source[2] as u32);
                let flushed = ftz && by.is_subnormal();
                if by >= 0.0 || flushed { source[0] } else { source[1] }
            });
        }
    }
}

#[test]
fn generic_addresses_of_the_spaces() {
    for (space, window) in [
        (Space::Global, 0),
        (Space::Const, 0),
        (Space::Shared, SHARED_WINDOW),
        (Space::SharedCluster, SHARED_WINDOW),
        (Space::Local, LOCAL_WINDOW),
    ] {
        let cvta = |to| Op::Cvta { to, space, ty: Scalar::U64 };
        check(&cvta(false), |source| source[0].wrapping_add(window));
        check(&cvta(true), |source| source[0].wrapping_sub(window));
    }
    let inside = |address: u64, window: u64| address.wrapping_sub(window) < WINDOW_BYTES;
    for (space, window) in [(Space::Shared, SHARED_WINDOW), (Space::Local, LOCAL_WINDOW)] {
        let dst = [Slot::Flag(0)];
        let src = [Slot::Wide(8)];
        let step = lower(&Op::Isspacep { space }, operands(&dst, &src)).expect("runs");
        let global =
            lower(&Op::Isspacep { space: Space::Global }, operands(&dst, &src)).expect("runs");
        let mut registers = poisoned();
        let edges = [0, 1, window - 1, window, window + 1, window + WINDOW_BYTES - 1];
        for lane in 0..LANES {
            let address = edges.get(lane).copied().unwrap_or(window + WINDOW_BYTES + lane as u64);
            registers.wides[8][lane] = address;
        }
        for (step, wanted) in [
            (step, &(|address| inside(address, window)) as &dyn Fn(u64) -> bool),
            (global, &|address| !inside(address, SHARED_WINDOW) && !inside(address, LOCAL_WINDOW)),
        ] {
            (step.run)(&mut registers, &step.operands, u32::MAX);
            for lane in 0..LANES {
                let address = registers.wides[8][lane];
                assert_eq!(registers.flags[0] >> lane & 1 != 0, wanted(address), "{address:#x}");
            }
        }
    }
    assert!(
        lower(&Op::Isspacep { space: Space::Const }, operands(&[Slot::Flag(0)], &[Slot::Wide(0)]))
            .is_err()
    );
}
