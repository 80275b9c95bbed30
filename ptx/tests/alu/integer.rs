//! Integers against arithmetic in 128 bits.

use bitstable_ptx::{
    exec::alu::lower,
    ir::{Class, Half, IntBinary, IntUnary, Op, Scalar},
    num::int::bits,
};

use crate::machine::{Draw, check, operands, poisoned, slots};

const TYPES: [Scalar; 6] =
    [Scalar::U16, Scalar::U32, Scalar::U64, Scalar::S16, Scalar::S32, Scalar::S64];
const WORDS: [Scalar; 4] = [Scalar::U32, Scalar::U64, Scalar::S32, Scalar::S64];

fn low(width: u32, value: i128) -> u64 {
    if width >= 64 { value as u64 } else { value as u64 & ((1 << width) - 1) }
}

/// The number that a pattern stands for.
fn number(ty: Scalar, bits: u64) -> i128 {
    let width = ty.bits();
    let value = i128::from(bits) & ((1 << width) - 1);
    let negative = ty.class() == Class::Signed && value >> (width - 1) != 0;
    if negative { value - (1 << width) } else { value }
}

fn binary(op: IntBinary, ty: Scalar) -> Op {
    Op::IntBinary { op, ty, sat: false }
}

/// Checks an operation that is a function of two numbers, cut to the type.
fn check_numbers(op: IntBinary, ty: Scalar, function: impl Fn(i128, i128) -> i128) {
    check(&binary(op, ty), |source| {
        low(ty.bits(), function(number(ty, source[0]), number(ty, source[1])))
    });
}

#[test]
fn sums_products_and_extrema_wrap() {
    for ty in TYPES {
        check_numbers(IntBinary::Add, ty, |a, b| a + b);
        check_numbers(IntBinary::Sub, ty, |a, b| a - b);
        check_numbers(IntBinary::Min, ty, |a, b| a.min(b));
        check_numbers(IntBinary::Max, ty, |a, b| a.max(b));
        check_numbers(IntBinary::Mul(Half::Lo), ty, |a, b| a.wrapping_mul(b));
        check_numbers(IntBinary::Mul(Half::Hi), ty, |a, b| {
            // The product of two u64 does not fit an i128's sign.
            if ty == Scalar::U64 {
                ((a as u128 * b as u128) >> 64) as i128
            } else {
                (a * b) >> ty.bits()
            }
        });
    }
}

#[test]
fn quotients_truncate_and_zero_divides_to_all_ones() {
    for ty in TYPES {
        check_numbers(IntBinary::Div, ty, |a, b| if b == 0 { -1 } else { a / b });
        check_numbers(IntBinary::Rem, ty, |a, b| if b == 0 { -1 } else { a % b });
    }
}

#[test]
fn wide_products_and_their_sums() {
    for ty in [Scalar::U16, Scalar::U32, Scalar::S16, Scalar::S32] {
        let width = 2 * ty.bits();
        let product = |source: &[u64]| number(ty, source[0]) * number(ty, source[1]);
        check(&binary(IntBinary::Mul(Half::Wide), ty), |source| low(width, product(source)));
        check(&Op::Mad { half: Half::Wide, ty, sat: false }, |source| {
            low(width, product(source) + i128::from(source[2]))
        });
    }
}

#[test]
fn products_with_an_addend() {
    for ty in [Scalar::U16, Scalar::U32, Scalar::S16, Scalar::S32, Scalar::S64] {
        let width = ty.bits();
        for (half, shift) in [(Half::Lo, 0), (Half::Hi, width)] {
            check(&Op::Mad { half, ty, sat: false }, |source| {
                let product = number(ty, source[0]) * number(ty, source[1]);
                low(width, (product >> shift) + number(ty, source[2]))
            });
        }
    }
    check(&Op::Mad { half: Half::Hi, ty: Scalar::S32, sat: true }, |source| {
        let [a, b, c] = [0, 1, 2].map(|index| number(Scalar::S32, source[index]));
        low(32, (((a * b) >> 32) + c).clamp(i32::MIN.into(), i32::MAX.into()))
    });
}

#[test]
fn products_of_24_bits() {
    for ty in [Scalar::U32, Scalar::S32] {
        let narrow = |bits: u64| {
            let value = i128::from(bits & 0xff_ffff);
            if ty == Scalar::S32 && value >> 23 != 0 { value - (1 << 24) } else { value }
        };
        for (half, shift) in [(Half::Lo, 0), (Half::Hi, 16)] {
            let product = |source: &[u64]| (narrow(source[0]) * narrow(source[1])) >> shift;
            check(&binary(IntBinary::Mul24(half), ty), |source| low(32, product(source)));
            check(&Op::Mad24 { half, ty, sat: false }, |source| {
                low(32, product(source) + i128::from(source[2]))
            });
        }
    }
}

#[test]
fn saturation_is_for_s32() {
    for (op, sign) in [(IntBinary::Add, 1), (IntBinary::Sub, -1)] {
        check(&Op::IntBinary { op, ty: Scalar::S32, sat: true }, |source| {
            let [a, b] = [0, 1].map(|index| number(Scalar::S32, source[index]));
            low(32, (a + sign * b).clamp(i32::MIN.into(), i32::MAX.into()))
        });
    }
}

#[test]
fn packed_pieces_do_not_carry_into_each_other() {
    for (ty, piece) in [
        (Scalar::U16x2, Scalar::U16),
        (Scalar::S16x2, Scalar::S16),
        (Scalar::U8x4, Scalar::U8),
        (Scalar::S8x4, Scalar::S8),
    ] {
        let width = piece.bits();
        let check = |op, function: fn(i128, i128) -> i128| {
            check(&binary(op, ty), |source| {
                (0..32 / width).fold(0, |packed, index| {
                    let [a, b] = [0, 1].map(|s| number(piece, source[s] >> (index * width)));
                    packed | low(width, function(a, b)) << (index * width)
                })
            });
        };
        check(IntBinary::Add, |a, b| a + b);
        check(IntBinary::Sub, |a, b| a - b);
        check(IntBinary::Min, i128::min);
        check(IntBinary::Max, i128::max);
    }
}

#[test]
fn logic_on_bits_and_predicates() {
    for ty in [Scalar::Pred, Scalar::B16, Scalar::B32, Scalar::B64] {
        check(&binary(IntBinary::And, ty), |source| source[0] & source[1]);
        check(&binary(IntBinary::Or, ty), |source| source[0] | source[1]);
        check(&binary(IntBinary::Xor, ty), |source| source[0] ^ source[1]);
        let ones = u64::MAX >> (64 - ty.bits());
        check(&Op::IntUnary { op: IntUnary::Not, ty }, |source| source[0] ^ ones);
    }
}

#[test]
fn shifts_clamp_their_amount() {
    for ty in [Scalar::B16, Scalar::B32, Scalar::B64] {
        let width = ty.bits();
        check(&binary(IntBinary::Shl, ty), |source| {
            if source[1] >= width.into() {
                0
            } else {
                low(width, i128::from(source[0]) << source[1])
            }
        });
    }
    for ty in [Scalar::B16, Scalar::B32, Scalar::B64].iter().chain(&TYPES) {
        check(&binary(IntBinary::Shr, *ty), |source| {
            low(ty.bits(), number(*ty, source[0]) >> source[1].min(100))
        });
    }
}

#[test]
fn operations_of_one_operand() {
    let op = |op, ty| Op::IntUnary { op, ty };
    for ty in [Scalar::S16, Scalar::S32, Scalar::S64] {
        check(&op(IntUnary::Neg, ty), |source| low(ty.bits(), -number(ty, source[0])));
        check(&op(IntUnary::Abs, ty), |source| low(ty.bits(), number(ty, source[0]).abs()));
    }
    for ty in [Scalar::B16, Scalar::B32, Scalar::B64] {
        check(&op(IntUnary::Cnot, ty), |source| u64::from(source[0] == 0));
    }
    for ty in [Scalar::B32, Scalar::B64] {
        let bit = |bits: u64, at: u32| bits >> at & 1;
        let width = ty.bits();
        check(&op(IntUnary::Popc, ty), |source| (0..width).map(|at| bit(source[0], at)).sum());
        check(&op(IntUnary::Clz, ty), |source| {
            (0..width).rev().take_while(|&at| bit(source[0], at) == 0).count() as u64
        });
        check(&op(IntUnary::Brev, ty), |source| {
            (0..width).fold(0, |all, at| all | bit(source[0], at) << (width - 1 - at))
        });
    }
}

#[test]
fn distances() {
    for ty in TYPES {
        check(&Op::Sad { ty }, |source| {
            let [a, b, c] = [0, 1, 2].map(|index| number(ty, source[index]));
            low(ty.bits(), c + (a - b).abs())
        });
    }
}

/// What the functions compute is held by `num_int.rs`; here, that each reaches its opcode.
#[test]
fn fields_and_permutations_are_wired() {
    for ty in WORDS {
        check(&Op::Bfe { ty }, |source| bits::bfe(ty, source[0], source[1], source[2]));
        for shiftamt in [false, true] {
            check(&Op::Bfind { ty, shiftamt }, |source| {
                bits::bfind(ty, shiftamt, source[0]).into()
            });
        }
    }
    for ty in [Scalar::B32, Scalar::B64] {
        check(&Op::Bfi { ty }, |source| bits::bfi(ty, source[0], source[1], source[2], source[3]));
    }
    let word = |source: &[u64], index: usize| source[index] as u32;
    for flag in [false, true] {
        check(&Op::Bmsk { clamp: flag }, |source| {
            bits::bmsk(flag, word(source, 0), word(source, 1)).into()
        });
        for ty in [Scalar::U32, Scalar::S32] {
            check(&Op::Szext { ty, clamp: flag }, |source| {
                bits::szext(ty, flag, word(source, 0), word(source, 1)).into()
            });
        }
        for left in [false, true] {
            check(&Op::Shf { left, clamp: flag }, |source| {
                bits::shf(left, flag, word(source, 0), word(source, 1), word(source, 2)).into()
            });
        }
    }
    check(&Op::Fns, |source| bits::fns(word(source, 0), word(source, 1), word(source, 2)).into());
    check(&Op::Lop3, |source| {
        bits::lop3(word(source, 0), word(source, 1), word(source, 2), source[3] as u8).into()
    });
}

#[test]
fn permutes_and_dot_products_are_wired() {
    let word = |source: &[u64], index: usize| source[index] as u32;
    for name in
        [None, Some("f4e"), Some("b4e"), Some("rc8"), Some("ecl"), Some("ecr"), Some("rc16")]
    {
        let mode = name.map_or(bits::Permute::Index, |name| name.parse().expect("a mode"));
        check(&Op::Prmt { mode: name.map(str::to_owned) }, |source| {
            bits::prmt(mode, word(source, 0), word(source, 1), word(source, 2)).into()
        });
    }
    for a in [Scalar::U32, Scalar::S32] {
        for b in [Scalar::U32, Scalar::S32] {
            check(&Op::Dp4a { a, b }, |source| {
                bits::dp4a(a, b, word(source, 0), word(source, 1), word(source, 2)).into()
            });
            for high in [false, true] {
                check(&Op::Dp2a { high, a, b }, |source| {
                    bits::dp2a(high, a, b, word(source, 0), word(source, 1), word(source, 2)).into()
                });
            }
        }
    }
}

/// Two limbs with the carry between them are one number of twice the width; lanes outside the mask
/// keep their carry.
#[test]
fn carries_chain_two_limbs() {
    const MASK: u32 = 0x7fff_0f0f;
    for (ty, width) in
        [(Scalar::U32, 32_u64), (Scalar::U64, 64), (Scalar::S32, 32), (Scalar::S64, 64)]
    {
        let ones = u128::MAX >> (128 - width);
        for subtract in [false, true] {
            let op = |carry_in| {
                if subtract {
                    Op::SubCarry { ty, carry_in, carry_out: !carry_in }
                } else {
                    Op::AddCarry { ty, carry_in, carry_out: !carry_in }
                }
            };
            let rows = slots(&[ty; 6], 0);
            let mut registers = poisoned();
            let mut draw = Draw::new(width);
            for slot in &rows[..4] {
                for lane in 0..32 {
                    registers.set_lane(*slot, lane, draw.pattern(ty));
                }
            }
            let before = registers.clone();
            for (limb, carry_in) in [(0, false), (1, true)] {
                let sources = [rows[limb], rows[2 + limb]];
                let step =
                    lower(&op(carry_in), operands(&[rows[4 + limb]], &sources)).expect("runs");
                (step.run)(&mut registers, &step.operands, MASK);
            }
            assert_eq!(registers.carry & !MASK, before.carry & !MASK, "C1");
            for lane in (0..32).filter(|lane| MASK >> lane & 1 != 0) {
                let number = |registers: &bitstable_ptx::exec::registers::Registers,
                              first: usize| {
                    let limb = |at: usize| u128::from(registers.lane(rows[at], lane));
                    limb(first) | limb(first + 1) << width
                };
                let (a, b) = (number(&before, 0), number(&before, 2));
                let want = if subtract { a.wrapping_sub(b) } else { a.wrapping_add(b) };
                let ones = if width == 64 { u128::MAX } else { ones | ones << width };
                assert_eq!(number(&registers, 4), want & ones, "{ty} {subtract} lane {lane}");
            }
        }
    }
}

#[test]
fn a_product_takes_the_carry_and_gives_one() {
    for (half, shift) in [(Half::Lo, 0), (Half::Hi, 32)] {
        let op = Op::MadCarry { half, ty: Scalar::U32, carry_in: true, carry_out: true };
        let rows = slots(&[Scalar::U32; 4], 0);
        let mut registers = poisoned();
        let mut draw = Draw::new(shift);
        for slot in &rows[1..] {
            for lane in 0..32 {
                registers.set_lane(*slot, lane, draw.pattern(Scalar::U32));
            }
        }
        let before = registers.clone();
        let step = lower(&op, operands(&rows[..1], &rows[1..])).expect("runs");
        (step.run)(&mut registers, &step.operands, u32::MAX);
        for lane in 0..32 {
            let [a, b, c] = [1, 2, 3].map(|row| before.lane(rows[row], lane));
            let carry = u64::from(before.carry >> lane & 1);
            let sum = ((a * b) >> shift & 0xffff_ffff) + c + carry;
            assert_eq!(registers.lane(rows[0], lane), sum & 0xffff_ffff);
            assert_eq!(u64::from(registers.carry >> lane & 1), sum >> 32);
        }
    }
}
