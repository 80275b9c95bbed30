//! A warp that runs one lane instruction and watches what it leaves alone.
//!
//! # Idea
//! An instruction's signature says which rows it needs, so a check is an [`Op`] and an oracle on
//! one lane's patterns. Every check is repeated with mixed masks and with each source as the
//! destination; lanes outside the mask, sources, and the carry must stay as they were.

use bitstable_ptx::{
    exec::{
        alu::lower,
        lane::Operands,
        registers::{LANES, Mask, Registers, Slot},
    },
    ir::{Op, Role, Scalar, Shape, signature},
};

pub const MASKS: [Mask; 5] = [Mask::MAX, 0x0ff0_1234, 0x8000_0001, 0x5555_5555, 0];
const POISON: u64 = 0xdead_beef_5eed_cafe;

/// Patterns that are drawn again for the same seed.
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9e37_79b9_7f4a_7c15)
    }

    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// A pattern of a type, of which every other is a corner: zeros, ones, ends of the ranges,
    /// and for floats infinities, NaN, subnormals, the threshold of the normal numbers, small ones.
    pub fn pattern(&mut self, ty: Scalar) -> u64 {
        let (width, kind) = (ty.bits().min(64), self.next());
        let ones = u64::MAX >> (64 - width);
        let sign = 1 << (width - 1);
        let draw = self.next() & ones;
        if kind & 1 == 0 || ty == Scalar::Pred {
            return draw;
        }
        let element = ty.element().bits();
        let copies =
            |bits: u64| (0..ty.lanes()).fold(0, |all, lane| all | bits << (lane * element));
        let (infinity, one): (u64, u64) = match ty.element() {
            Scalar::F16 => (0x7c00, 0x3c00),
            Scalar::BF16 => (0x7f80, 0x3f80),
            Scalar::F32 => (0x7f80_0000, 0x3f80_0000),
            Scalar::F64 => (0x7ff0_0000_0000_0000, 0x3ff0_0000_0000_0000),
            _ => (ones >> 1, 3),
        };
        let quantum = one & one.wrapping_neg();
        let corners = [0, 1, infinity, infinity + 1, one, 2, infinity - 1, one + quantum];
        let corner = copies(corners[(kind >> 8) as usize % corners.len()]);
        (if kind >> 16 & 1 == 0 { corner } else { corner | sign }) & ones
    }
}

/// The types of an instruction's destinations and sources, in order.
pub fn types(op: &Op) -> (Vec<Scalar>, Vec<Scalar>) {
    let (mut dst, mut src) = (vec![], vec![]);
    for place in signature(op).places {
        match place.role {
            Role::Write(data) | Role::WritePair(data) => dst.push(data.ty),
            Role::Read(data) => {
                let count = if let Shape::Vector(length) = data.shape { length } else { 1 };
                src.extend(std::iter::repeat_n(data.ty, count.into()));
            }
            Role::Predicate => src.push(Scalar::Pred),
            Role::Immediate(ty) => src.push(ty),
            Role::Address
            | Role::Label
            | Role::Table
            | Role::Returns
            | Role::Callee
            | Role::Arguments => {}
        }
    }
    (dst, src)
}

/// A row of its own for each type, from the given row number on.
pub fn slots(types: &[Scalar], from: u32) -> Vec<Slot> {
    let slot = |(row, ty): (u32, &Scalar)| match ty.bits() {
        1 => Slot::Flag(from + row),
        64 => Slot::Wide(from + row),
        128 => Slot::Quad(from + 2 * row),
        _ => Slot::Word(from + row),
    };
    (0..).zip(types).map(slot).collect()
}

/// Registers that are all poison.
pub fn poisoned() -> Registers {
    const ROWS: usize = 32;
    Registers {
        flags: vec![POISON as u32; ROWS],
        words: vec![[POISON as u32; LANES]; ROWS],
        wides: vec![[POISON; LANES]; ROWS],
        carry: POISON as u32,
    }
}

pub fn operands(dst: &[Slot], src: &[Slot]) -> Operands {
    Operands {
        dst: dst.iter().copied().collect(),
        src: src.iter().copied().collect(),
        ..Operands::default()
    }
}

/// Checks an instruction with one destination against an oracle on a lane's patterns.
#[track_caller]
pub fn check(op: &Op, oracle: impl Fn(&[u64]) -> u64) {
    let (dst_types, src_types) = types(op);
    check_rows(op, 0, &slots(&dst_types, 0), &slots(&src_types, 8), &src_types, |sources| {
        vec![oracle(sources)]
    });
}

/// Checks an instruction on given rows; the oracle gives a pattern for each destination.
#[track_caller]
pub fn check_rows(
    op: &Op,
    declared: u8,
    dst: &[Slot],
    src: &[Slot],
    src_types: &[Scalar],
    oracle: impl Fn(&[u64]) -> Vec<u64>,
) {
    let in_place = src.iter().filter(|source| kind(**source) == kind(dst[0])).map(|slot| {
        let mut dst = dst.to_vec();
        dst[0] = *slot;
        dst
    });
    let mut placements = vec![dst.to_vec()];
    placements.extend(in_place);
    for dst in placements {
        for (seed, mask) in (1..).zip(MASKS.iter().cycle().take(2 * MASKS.len())) {
            check_once(op, declared, &dst, src, src_types, *mask, seed, &oracle);
        }
    }
}

fn kind(slot: Slot) -> u32 {
    match slot {
        Slot::Flag(_) => 1,
        Slot::Word(_) => 32,
        Slot::Wide(_) => 64,
        Slot::Quad(_) => 128,
        Slot::Sink => 0,
    }
}

#[track_caller]
#[expect(clippy::too_many_arguments, reason = "one point of the matrix that `check_rows` walks")]
fn check_once(
    op: &Op,
    declared: u8,
    dst: &[Slot],
    src: &[Slot],
    src_types: &[Scalar],
    mask: Mask,
    seed: u64,
    oracle: &impl Fn(&[u64]) -> Vec<u64>,
) {
    let mut draw = Draw::new(seed);
    let mut registers = poisoned();
    for (&slot, &ty) in src.iter().zip(src_types) {
        for lane in 0..LANES {
            registers.set_lane(slot, lane, draw.pattern(ty));
        }
    }
    let before = registers.clone();
    let step = lower(op, Operands { declared, ..operands(dst, src) })
        .unwrap_or_else(|refusal| panic!("{refusal}"));
    (step.run)(&mut registers, &step.operands, mask);
    for lane in 0..LANES {
        let sources: Vec<u64> = src.iter().map(|&slot| before.lane(slot, lane)).collect();
        let active = mask >> lane & 1 != 0;
        let wanted = oracle(&sources);
        for (index, &slot) in dst.iter().enumerate() {
            let want = if active { wanted[index] } else { before.lane(slot, lane) };
            let have = registers.lane(slot, lane);
            assert_eq!(
                have, want,
                "{op:?}: lane {lane} of {mask:#x}, seed {seed}, {sources:x?}: {have:#x} for {want:#x}"
            );
        }
    }
    for &slot in src.iter().filter(|slot| !dst.contains(slot)) {
        for lane in 0..LANES {
            assert_eq!(
                registers.lane(slot, lane),
                before.lane(slot, lane),
                "{op:?}: a source moved"
            );
        }
    }
    assert_eq!(registers.carry, before.carry, "{op:?}: the carry moved");
}
