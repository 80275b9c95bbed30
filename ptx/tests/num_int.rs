//! `num::int` and the integer half of `num::atomic`, in 128 bits and bit by bit.

use bitstable_ptx::ir::{Atomic, Compare, Half, IntBinary, IntUnary, Scalar, Space};
use bitstable_ptx::num::atomic;
use bitstable_ptx::num::int::bits::{self, Permute};
use bitstable_ptx::num::int::{self, binary, unary};

#[path = "num_oracle/mod.rs"]
mod num_oracle;
use num_oracle::Rng;

const TYPES: [(Scalar, bool); 6] = [
    (Scalar::U16, false),
    (Scalar::S16, true),
    (Scalar::U32, false),
    (Scalar::S32, true),
    (Scalar::U64, false),
    (Scalar::S64, true),
];

/// Small, large, near a power of two, or anything.
fn draw(rng: &mut Rng) -> u64 {
    match rng.below(5) {
        0 => rng.below(4).wrapping_sub(2),
        1 => (1u64 << rng.below(64)).wrapping_add(rng.below(3)).wrapping_sub(1),
        2 => rng.next() >> rng.below(64),
        3 => !(rng.next() >> rng.below(64)),
        _ => rng.next(),
    }
}

fn value(ty: Scalar, signed: bool, bits: u64) -> i128 {
    let modulus = 1i128 << ty.bits();
    let low = i128::from(bits).rem_euclid(modulus);
    if signed && low >= modulus / 2 { low - modulus } else { low }
}

fn wrapped(bits: u32, value: i128) -> u64 {
    (value & ((1 << bits) - 1)) as u64
}

#[test]
fn arithmetic_wraps() {
    let mut rng = Rng::new(1);
    for _ in 0..20_000 {
        let (a, b, c) = (draw(&mut rng), draw(&mut rng), draw(&mut rng));
        for (ty, signed) in TYPES {
            let width = ty.bits();
            let [x, y, z] = [a, b, c].map(|bits| value(ty, signed, bits));
            let (quotient, remainder) = if y == 0 { (-1, -1) } else { (x / y, x % y) };
            let amount = i128::from(b as u32);
            let shifted = if amount >= i128::from(width) {
                (0, if x < 0 { -1 } else { 0 })
            } else {
                (x << amount, x >> amount)
            };
            for (op, want) in [
                (IntBinary::Add, x + y),
                (IntBinary::Sub, x - y),
                (IntBinary::Mul(Half::Lo), x.wrapping_mul(y)),
                (IntBinary::Mul(Half::Hi), high(width, x, y)),
                (IntBinary::Div, quotient),
                (IntBinary::Rem, remainder),
                (IntBinary::Min, x.min(y)),
                (IntBinary::Max, x.max(y)),
                (IntBinary::And, x & y),
                (IntBinary::Or, x | y),
                (IntBinary::Xor, x ^ y),
                (IntBinary::Shl, shifted.0),
                (IntBinary::Shr, shifted.1),
            ] {
                let got = binary(op, ty, false, a, b);
                assert_eq!(got, wrapped(width, want), "{op:?} {ty} {a:x} {b:x}");
            }
            if width < 64 {
                assert_eq!(int::mul(Half::Wide, ty, a, b), wrapped(2 * width, x * y));
                let wide = i128::from(c);
                let got = int::mad(Half::Wide, ty, false, a, b, c);
                assert_eq!(got, wrapped(2 * width, x * y + wide), "mad.wide {ty}");
            }
            let low = int::mad(Half::Lo, ty, false, a, b, c);
            assert_eq!(low, wrapped(width, x.wrapping_mul(y).wrapping_add(z)));
            let hi = int::mad(Half::Hi, ty, false, a, b, c);
            assert_eq!(hi, wrapped(width, high(width, x, y) + z));
            assert_eq!(int::sad(ty, a, b, c), wrapped(width, z + (x - y).abs()));
        }
    }
}

/// The upper half of a product of at most 64 bits a factor.
fn high(width: u32, x: i128, y: i128) -> i128 {
    if x >= 0 && y >= 0 { ((x as u128 * y as u128) >> width) as i128 } else { (x * y) >> width }
}

#[test]
fn saturation_is_of_s32() {
    let mut rng = Rng::new(2);
    let clamp = |value: i128| wrapped(32, value.clamp(i32::MIN.into(), i32::MAX.into()));
    for _ in 0..20_000 {
        let (a, b, c) = (draw(&mut rng), draw(&mut rng), draw(&mut rng));
        let [x, y, z] = [a, b, c].map(|bits| value(Scalar::S32, true, bits));
        assert_eq!(binary(IntBinary::Add, Scalar::S32, true, a, b), clamp(x + y));
        assert_eq!(binary(IntBinary::Sub, Scalar::S32, true, a, b), clamp(x - y));
        let mad = int::mad(Half::Hi, Scalar::S32, true, a, b, c);
        assert_eq!(mad, clamp(((x * y) >> 32) + z));
    }
}

#[test]
fn products_of_24_bits() {
    let mut rng = Rng::new(3);
    for _ in 0..10_000 {
        let (a, b, c) = (draw(&mut rng), draw(&mut rng), draw(&mut rng));
        for (ty, signed) in [(Scalar::U32, false), (Scalar::S32, true)] {
            let narrow = |bits: u64| {
                let low = i128::from(bits & 0xff_ffff);
                if signed && low >> 23 == 1 { low - (1 << 24) } else { low }
            };
            let product = narrow(a) * narrow(b);
            assert_eq!(int::mul24(Half::Lo, ty, a, b), wrapped(32, product));
            assert_eq!(int::mul24(Half::Hi, ty, a, b), wrapped(32, product >> 16));
            let sum = int::mad24(Half::Hi, ty, false, a, b, c);
            assert_eq!(sum, wrapped(32, (product >> 16) + i128::from(c)));
        }
    }
}

#[test]
fn packed_elements_do_not_meet() {
    let sum = binary(IntBinary::Add, Scalar::U16x2, false, 0x0001_ffff, 0x0001_0001);
    assert_eq!(sum, 0x0002_0000);
    let signed = binary(IntBinary::Min, Scalar::S16x2, false, 0x8000_0001, 0x7fff_ffff);
    assert_eq!(signed, 0x8000_ffff);
    let unsigned = binary(IntBinary::Max, Scalar::U16x2, false, 0x8000_0001, 0x7fff_ffff);
    assert_eq!(unsigned, 0x8000_ffff);
    let bytes = binary(IntBinary::Sub, Scalar::U8x4, false, 0x0001_0200, 0x0101_0101);
    assert_eq!(bytes, 0xff00_01ff);
}

#[test]
fn one_operand() {
    let mut rng = Rng::new(4);
    for _ in 0..10_000 {
        let a = draw(&mut rng);
        for (ty, signed) in TYPES {
            let width = ty.bits();
            let x = value(ty, signed, a);
            let unsigned = wrapped(width, x);
            let each = |bit: u32| unsigned >> bit & 1;
            assert_eq!(unary(IntUnary::Neg, ty, a), wrapped(width, -x));
            assert_eq!(unary(IntUnary::Not, ty, a), wrapped(width, !x));
            assert_eq!(unary(IntUnary::Cnot, ty, a), u64::from(x == 0));
            assert_eq!(unary(IntUnary::Popc, ty, a), (0..width).map(each).sum::<u64>());
            let leading = (0..width).rev().take_while(|&bit| each(bit) == 0).count();
            assert_eq!(unary(IntUnary::Clz, ty, a), leading as u64);
            let reversed = (0..width).map(|bit| each(bit) << (width - 1 - bit)).sum::<u64>();
            assert_eq!(unary(IntUnary::Brev, ty, a), reversed);
            if signed {
                assert_eq!(unary(IntUnary::Abs, ty, a), wrapped(width, x.abs()));
            }
        }
    }
}

#[test]
fn carries_chain() {
    let mut rng = Rng::new(5);
    for _ in 0..10_000 {
        let [a, b, c, d] = [(); 4].map(|()| draw(&mut rng));
        let (low, carry) = int::add_carry(Scalar::U64, a, b, false);
        let (high, out) = int::add_carry(Scalar::U64, c, d, carry);
        let join = |high: u64, low: u64| u128::from(high) << 64 | u128::from(low);
        let (sum, overflow) = join(c, a).overflowing_add(join(d, b));
        assert_eq!((join(high, low), out), (sum, overflow));
        let (low, borrow) = int::sub_borrow(Scalar::U64, a, b, false);
        let (high, out) = int::sub_borrow(Scalar::U64, c, d, borrow);
        let (difference, underflow) = join(c, a).overflowing_sub(join(d, b));
        assert_eq!((join(high, low), out), (difference, underflow));
        // The 64-bit product by 32-bit pieces, as compilers emit it.
        let (p, carry) = int::mad_carry(Half::Lo, Scalar::U32, a, b, c, false);
        let (q, _) = int::mad_carry(Half::Hi, Scalar::U32, a, b, 0, carry);
        let (a, b, c) = (u64::from(a as u32), u64::from(b as u32), u64::from(c as u32));
        assert_eq!(q << 32 | p, a.wrapping_mul(b).wrapping_add(c));
    }
}

#[test]
fn comparisons() {
    let mut rng = Rng::new(6);
    for _ in 0..10_000 {
        let (a, b) = (draw(&mut rng), draw(&mut rng));
        for (ty, signed) in TYPES {
            let [x, y] = [a, b].map(|bits| value(ty, signed, bits));
            let [p, q] = [a, b].map(|bits| value(ty, false, bits));
            for (cmp, want) in [
                (Compare::Eq, x == y),
                (Compare::Ne, x != y),
                (Compare::Lt, x < y),
                (Compare::Le, x <= y),
                (Compare::Gt, x > y),
                (Compare::Ge, x >= y),
                (Compare::Lo, p < q),
                (Compare::Ls, p <= q),
                (Compare::Hi, p > q),
                (Compare::Hs, p >= q),
            ] {
                assert_eq!(int::compare(cmp, ty, a, b), want, "{cmp} {ty} {a:x} {b:x}");
            }
        }
    }
}

#[test]
fn bit_fields() {
    let mut rng = Rng::new(7);
    for _ in 0..10_000 {
        let (a, b) = (draw(&mut rng), draw(&mut rng));
        let (start, length) = (rng.below(80), rng.below(80));
        for (ty, signed) in TYPES.into_iter().skip(2) {
            let top = u64::from(ty.bits()) - 1;
            let bit = |of: u64, at: u64| of >> at & 1;
            let sign =
                if signed && length != 0 { bit(a, (start + length - 1).min(top)) } else { 0 };
            let (mut field, mut inserted) = (0, b & (u64::MAX >> (63 - top)));
            for i in 0..=top {
                let inside = i < length && start + i <= top;
                field |= (if inside { bit(a, start + i) } else { sign }) << i;
                if inside {
                    inserted = inserted & !(1 << (start + i)) | bit(a, i) << (start + i);
                }
            }
            assert_eq!(bits::bfe(ty, a, start, length), field, "{ty} {a:x} {start} {length}");
            let junk = length | 0xff00;
            assert_eq!(bits::bfi(ty, a, b, start, junk), inserted, "{ty} {start} {length}");
            let flipped = if signed && bit(a, top) == 1 { !a } else { a };
            let found = (0..=top).rev().find(|&i| bit(flipped, i) == 1);
            let plain = found.map_or(u32::MAX, |i| i as u32);
            let amount = found.map_or(u32::MAX, |i| (top - i) as u32);
            assert_eq!(bits::bfind(ty, false, a), plain, "{ty} {a:x}");
            assert_eq!(bits::bfind(ty, true, a), amount, "{ty} {a:x}");
        }
    }
}

#[test]
fn masks_and_extensions() {
    for clamp in [false, true] {
        for start in 0..70u32 {
            for width in 0..70u32 {
                let (from, count) = if clamp { (start, width) } else { (start % 32, width % 32) };
                let want = (0..32).filter(|&i| i >= from && i < from + count);
                let want = want.map(|i| 1u32 << i).sum::<u32>();
                assert_eq!(bits::bmsk(clamp, start, width), want, "{clamp} {start} {width}");
            }
            let a = 0xa5c3_96f0u32;
            for (ty, signed) in [(Scalar::U32, false), (Scalar::S32, true)] {
                let count = if clamp { start.min(32) } else { start % 32 };
                let low = (0..count).map(|i| a >> i & 1).enumerate();
                let mut want = low.map(|(i, bit)| bit << i).sum::<u32>();
                if signed && count > 0 && a >> (count - 1) & 1 == 1 {
                    want |= (count..32).map(|i| 1 << i).sum::<u32>();
                }
                assert_eq!(bits::szext(ty, clamp, a, start), want, "{ty} {clamp} {start}");
            }
        }
    }
    assert_eq!(bits::bmsk(false, 1, 2), 6);
}

#[test]
fn nth_set_bit() {
    let mask = 0xaaaa_aaaa;
    for (base, offset, want) in [(3, 1, 3), (3, -1i32, 3), (2, 1, 3), (2, -1, 1), (3, 0, 3)] {
        assert_eq!(bits::fns(mask, base, offset as u32), want, "{base} {offset}");
    }
    assert_eq!(bits::fns(mask, 2, 0), u32::MAX);
    assert_eq!(bits::fns(mask, 0, 16), 31);
    assert_eq!(bits::fns(mask, 0, 17), u32::MAX);
    assert_eq!(bits::fns(mask, 31, (-16i32) as u32), 1);
    assert_eq!(bits::fns(mask, 31, (-17i32) as u32), u32::MAX);
    assert_eq!(bits::fns(u32::MAX, 40, i32::MIN as u32), u32::MAX);
}

#[test]
fn logic_tables() {
    let mut rng = Rng::new(8);
    for table in 0..=255u8 {
        let [a, b, c] = [(); 3].map(|()| rng.next() as u32);
        let got = bits::lop3(a, b, c, table);
        for i in 0..32 {
            let row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1);
            assert_eq!(got >> i & 1, u32::from(table >> row & 1), "{table:x}");
        }
    }
    // The manual's way to make a table: the operation on 0xf0, 0xcc, 0xaa.
    assert_eq!(bits::lop3(0xf0, 0xcc, 0xaa, 0xf0 & 0xcc | 0xaa) & 0xff, 0xf0 & 0xcc | 0xaa);
}

#[test]
fn funnel_shifts() {
    let mut rng = Rng::new(9);
    for amount in 0..70u32 {
        let (a, b) = (rng.next() as u32, rng.next() as u32);
        let both = u128::from(b) << 32 | u128::from(a);
        for clamp in [false, true] {
            let n = if clamp { amount.min(32) } else { amount % 32 };
            let left = (both << n >> 32) as u32;
            let right = (both >> n) as u32;
            assert_eq!(bits::shf(true, clamp, a, b, amount), left, "{clamp} {amount}");
            assert_eq!(bits::shf(false, clamp, a, b, amount), right, "{clamp} {amount}");
        }
    }
}

#[test]
fn permutes() {
    let (a, b) = (0x8382_8180, 0x0706_0504);
    // The manual's table of selected bytes, most significant first.
    for (mode, rows) in [
        (Permute::F4e, [0x3210, 0x4321, 0x5432, 0x6543]),
        (Permute::B4e, [0x5670, 0x6701, 0x7012, 0x0123]),
        (Permute::Rc8, [0x0000, 0x1111, 0x2222, 0x3333]),
        (Permute::Ecl, [0x3210, 0x3211, 0x3222, 0x3333]),
        (Permute::Ecr, [0x0000, 0x1110, 0x2210, 0x3210]),
        (Permute::Rc16, [0x1010, 0x3232, 0x1010, 0x3232]),
    ] {
        for (selected, row) in rows.into_iter().enumerate() {
            let want = bits::prmt(Permute::Index, a, b, row);
            let got = bits::prmt(mode, a, b, selected as u32 | 0xfff0);
            assert_eq!(got, want, "{mode} {selected}");
        }
    }
    assert_eq!(bits::prmt(Permute::Index, a, b, 0x7610), 0x0706_8180);
    assert_eq!(bits::prmt(Permute::Index, a, b, 0x8f42), 0xff00_0482);
}

#[test]
fn dot_products() {
    let mut rng = Rng::new(10);
    let types = [(Scalar::U32, false), (Scalar::S32, true)];
    let part = |word: u32, width: u32, index: u32, signed: bool| {
        let low = i128::from(word) >> (width * index) & ((1 << width) - 1);
        if signed && low >> (width - 1) == 1 { low - (1 << width) } else { low }
    };
    for _ in 0..5_000 {
        let [a, b, c] = [(); 3].map(|()| rng.next() as u32);
        for (at, a_signed) in types {
            for (bt, b_signed) in types {
                let four: i128 =
                    (0..4).map(|i| part(a, 8, i, a_signed) * part(b, 8, i, b_signed)).sum();
                let want = wrapped(32, four + i128::from(c));
                assert_eq!(u64::from(bits::dp4a(at, bt, a, b, c)), want);
                for (high, first) in [(false, 0), (true, 2)] {
                    let two: i128 = (0..2)
                        .map(|i| part(a, 16, i, a_signed) * part(b, 8, first + i, b_signed))
                        .sum();
                    let want = wrapped(32, two + i128::from(c));
                    assert_eq!(u64::from(bits::dp2a(high, at, bt, a, b, c)), want);
                }
            }
        }
    }
}

#[test]
fn atomics_on_integers() {
    let global = |op, ty, old, operand, new| {
        assert!(atomic::supported(op, ty), "{op} {ty}");
        atomic::apply(op, ty, Space::Global, old, operand, new)
    };
    assert_eq!(global(Atomic::Inc, Scalar::U32, 4, 5, 0), 5);
    assert_eq!(global(Atomic::Inc, Scalar::U32, 5, 5, 0), 0);
    assert_eq!(global(Atomic::Inc, Scalar::U32, 9, 5, 0), 0);
    assert_eq!(global(Atomic::Dec, Scalar::U32, 0, 5, 0), 5);
    assert_eq!(global(Atomic::Dec, Scalar::U32, 9, 5, 0), 5);
    assert_eq!(global(Atomic::Dec, Scalar::U32, 5, 5, 0), 4);
    assert_eq!(global(Atomic::Add, Scalar::U32, 0xffff_ffff, 2, 0), 1);
    assert_eq!(global(Atomic::Add, Scalar::U64, u64::MAX, 2, 0), 1);
    assert_eq!(global(Atomic::Min, Scalar::S32, 0xffff_ffff, 2, 0), 0xffff_ffff);
    assert_eq!(global(Atomic::Min, Scalar::U32, 0xffff_ffff, 2, 0), 2);
    assert_eq!(global(Atomic::Max, Scalar::S64, u64::MAX, 2, 0), 2);
    assert_eq!(global(Atomic::And, Scalar::B32, 0xc, 0xa, 0), 0x8);
    assert_eq!(global(Atomic::Or, Scalar::B64, 0xc, 0xa, 0), 0xe);
    assert_eq!(global(Atomic::Xor, Scalar::B32, 0xc, 0xa, 0), 0x6);
    assert_eq!(global(Atomic::Exch, Scalar::B32, 1, 0xa, 0), 0xa);
    assert_eq!(global(Atomic::Cas, Scalar::B32, 1, 1, 7), 7);
    assert_eq!(global(Atomic::Cas, Scalar::B64, 1, 2, 7), 1);
    assert_eq!(global(Atomic::Cas, Scalar::B16, 1, 0xffff_0001, 7), 7);
    assert!(!atomic::supported(Atomic::Inc, Scalar::U64));
    assert!(!atomic::supported(Atomic::Exch, Scalar::B128));
}
