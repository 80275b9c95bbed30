//! A warp's registers: one row of 32 lanes a register.
//!
//! # Idea
//! Registers of up to 32 bits share one file, zero-extended; 64-bit registers have another;
//! predicates are lane masks. Constants and special registers have rows of their own, so that every
//! source operand is a row and no instruction asks what kind of operand it has.
//! # Invariants
//! - **R1** A row of [`Registers::words`] that stands for a narrower register has zero upper bits.
//! - **R2** A write changes the lanes of its mask and no others.

/// Lanes in a warp.
pub const LANES: usize = 32;

/// A set of lanes.
pub type Mask = u32;

/// Where an operand lives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Slot {
    /// A predicate: row of [`Registers::flags`].
    Flag(u32),
    /// Up to 32 bits: row of [`Registers::words`].
    Word(u32),
    /// 64 bits: row of [`Registers::wides`].
    Wide(u32),
    /// 128 bits: this row of [`Registers::wides`] (low half) and the next.
    Quad(u32),
    /// `_`: no register; never read.
    Sink,
}

impl Slot {
    /// The row; 0 for [`Slot::Sink`].
    #[inline(always)]
    pub fn row(self) -> usize {
        match self {
            Slot::Flag(row) | Slot::Word(row) | Slot::Wide(row) | Slot::Quad(row) => row as usize,
            Slot::Sink => 0,
        }
    }
}

/// The register file of one warp.
#[derive(Clone, Debug, Default)]
pub struct Registers {
    pub flags: Vec<Mask>,
    pub words: Vec<[u32; LANES]>,
    pub wides: Vec<[u64; LANES]>,
    /// The condition code of `add.cc` and its kin, a bit a lane.
    pub carry: Mask,
}

impl Registers {
    /// Writes the lanes of `mask` in a word row.
    #[inline(always)]
    pub fn set_word(&mut self, row: usize, value: &[u32; LANES], mask: Mask) {
        merge(&mut self.words[row], value, mask);
    }

    /// Writes the lanes of `mask` in a wide row.
    #[inline(always)]
    pub fn set_wide(&mut self, row: usize, value: &[u64; LANES], mask: Mask) {
        merge(&mut self.wides[row], value, mask);
    }

    /// Writes the lanes of `mask` in a predicate.
    #[inline(always)]
    pub fn set_flag(&mut self, row: usize, value: Mask, mask: Mask) {
        let flag = &mut self.flags[row];
        *flag = (*flag & !mask) | (value & mask);
    }

    /// One lane of a slot, zero-extended; a [`Slot::Quad`] gives its low half.
    #[inline]
    pub fn lane(&self, slot: Slot, lane: usize) -> u64 {
        match slot {
            Slot::Flag(row) => u64::from(self.flags[row as usize] >> lane & 1),
            Slot::Word(row) => u64::from(self.words[row as usize][lane]),
            Slot::Wide(row) | Slot::Quad(row) => self.wides[row as usize][lane],
            Slot::Sink => 0,
        }
    }

    /// Writes one lane of a slot; a [`Slot::Quad`] takes its low half.
    #[inline]
    pub fn set_lane(&mut self, slot: Slot, lane: usize, value: u64) {
        match slot {
            Slot::Flag(row) => {
                let bit = 1 << lane;
                self.set_flag(row as usize, if value & 1 == 0 { 0 } else { bit }, bit);
            }
            Slot::Word(row) => self.words[row as usize][lane] = value as u32,
            Slot::Wide(row) | Slot::Quad(row) => self.wides[row as usize][lane] = value,
            Slot::Sink => {}
        }
    }
}

#[inline(always)]
fn merge<T: Copy>(row: &mut [T; LANES], value: &[T; LANES], mask: Mask) {
    if mask == Mask::MAX {
        *row = *value;
        return;
    }
    for lane in 0..LANES {
        if mask >> lane & 1 != 0 {
            row[lane] = value[lane];
        }
    }
}

/// The lanes of a mask, lowest first.
#[inline(always)]
pub fn lanes(mask: Mask) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        if rest == 0 {
            return None;
        }
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        Some(lane)
    })
}
