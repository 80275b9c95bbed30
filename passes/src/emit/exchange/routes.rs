//! How a value gets from lane to lane, as data.
//!
//! # Idea
//! Each vendor and generation has its own instructions for reading another lane's register. A
//! [`Move`] is one of them and knows from which lane each lane reads; a route is a list of moves
//! whose composition is the exchange that is wanted.
//! # Invariants
//! - **R1** [`exchange`] is `lane ^ (1 << bit)` in every lane.
//! - **R2** A [`Fold`] computes the canonical tree of its lanes in [`Fold::root`], with the lower
//!   lane on the left, when each of its moves is followed by `combine(moved, own)`; its broadcast
//!   then gives the root's value to every lane. Other lanes hold something else in between.
//! - **R3** [`sides`] are the two lanes of a pair, the one whose bit is clear first.
//! - **R4** Every lane is active: reductions stand under uniform control flow.
//! # Held by
//! R1, R2, R3: the tests, which run the tables on symbolic lanes by each instruction's definition.
//! # Not here
//! The operations that make a move (`exchange.rs`).

use crate::target::Target;
use bitstable_lowering::plan::LaneBit;

/// A control of AMD's data-parallel primitives: the lane that a lane reads, within rows of 16.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dpp {
    /// Within each four lanes, lane `i` reads lane `0[i]`.
    QuadPerm([u32; 4]),
    /// Reads the lane so many below; nothing where there is none in the row.
    RowShr(u32),
    /// The same, around the row.
    RowRor(u32),
    /// Reads lane `7 - i` of its eight.
    RowHalfMirror,
    /// Reads the last lane of the row before; gfx9 only.
    RowBcast15,
    /// The upper half reads lane 31; gfx9 only.
    RowBcast31,
    /// Reads lane `0` of its row; gfx90a and later gfx9.
    RowNewbcast(u32),
    /// Reads lane `i ^ 0` of its row; gfx10 and later.
    RowXmask(u32),
}

impl Dpp {
    /// The control's encoding (`DPP_CTRL`).
    pub fn encoding(self) -> i32 {
        let number = match self {
            Dpp::QuadPerm(p) => p[0] | p[1] << 2 | p[2] << 4 | p[3] << 6,
            Dpp::RowShr(n) => 0x110 + n,
            Dpp::RowRor(n) => 0x120 + n,
            Dpp::RowHalfMirror => 0x141,
            Dpp::RowBcast15 => 0x142,
            Dpp::RowBcast31 => 0x143,
            Dpp::RowNewbcast(n) => 0x150 + n,
            Dpp::RowXmask(n) => 0x160 + n,
        };
        number as i32
    }
}

/// One instruction that moves a register between lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Move {
    /// NVIDIA's `shfl.sync.bfly`: reads lane `i ^ mask`.
    Shuffle(u32),
    /// AMD's data-parallel primitives.
    Dpp(Dpp),
    /// `ds_swizzle_b32`: reads lane `i ^ mask` within 32 lanes.
    Swizzle(u32),
    /// `ds_bpermute_b32` with the address of lane `i ^ mask`.
    Bpermute(u32),
    /// `v_permlanex16_b32` with the identity: reads the same lane of the other row of its 32.
    PermlaneX16,
    /// `v_permlane16_swap_b32`, `v_permlane32_swap_b32` of a register with itself: the first
    /// result is the value of the lane whose bit is clear, the second of the one whose bit is set.
    Swap(u32),
}

impl Move {
    /// Whether it is an instruction of its own. A DPP control usually becomes a part of the
    /// instruction that uses the value.
    pub fn costs(self) -> bool {
        !matches!(self, Move::Dpp(_))
    }
}

/// What there is to move values with.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Family {
    /// Every NVIDIA GPU since Volta.
    Nvidia,
    /// gfx9 before gfx90a: no `row_newbcast`.
    Vega,
    /// gfx90a and gfx942.
    Cdna,
    /// gfx950.
    Cdna4,
    /// gfx10 and later, wave32.
    Rdna,
}

impl Family {
    /// The family of `target`; nothing where we know no way.
    pub fn of(target: &Target) -> Option<Family> {
        match target {
            Target::Nvidia { capability } => (*capability >= 70).then_some(Family::Nvidia),
            Target::Amd { arch, lanes: 64 } => match arch.as_str() {
                "gfx90a" | "gfx940" | "gfx941" | "gfx942" => Some(Family::Cdna),
                "gfx950" => Some(Family::Cdna4),
                _ if arch.starts_with("gfx9") => Some(Family::Vega),
                _ => None,
            },
            Target::Amd { arch, .. } => ["gfx10", "gfx11", "gfx12"]
                .iter()
                .any(|g| arch.starts_with(g))
                .then_some(Family::Rdna),
        }
    }
}

/// The moves by which every lane reads lane `i ^ (1 << bit)`.
///
/// # Panics
/// When there is no such lane.
pub fn exchange(family: Family, bit: LaneBit) -> &'static [Move] {
    const SHUFFLES: [[Move; 1]; 5] = [
        [Move::Shuffle(1)],
        [Move::Shuffle(2)],
        [Move::Shuffle(4)],
        [Move::Shuffle(8)],
        [Move::Shuffle(16)],
    ];
    // Of three ways to reach lane `i ^ 4` on gfx9, two DPP moves need no wait for the LDS.
    const GFX9: [&[Move]; 6] = [
        &[Move::Dpp(Dpp::QuadPerm([1, 0, 3, 2]))],
        &[Move::Dpp(Dpp::QuadPerm([2, 3, 0, 1]))],
        &[Move::Dpp(Dpp::QuadPerm([3, 2, 1, 0])), Move::Dpp(Dpp::RowHalfMirror)],
        &[Move::Dpp(Dpp::RowRor(8))],
        &[Move::Swizzle(16)],
        &[Move::Bpermute(32)],
    ];
    const RDNA: [[Move; 1]; 5] = [
        [Move::Dpp(Dpp::RowXmask(1))],
        [Move::Dpp(Dpp::RowXmask(2))],
        [Move::Dpp(Dpp::RowXmask(4))],
        [Move::Dpp(Dpp::RowXmask(8))],
        [Move::PermlaneX16],
    ];
    let bit = bit.0 as usize;
    match family {
        Family::Nvidia => &SHUFFLES[bit],
        Family::Cdna4 if bit == 4 => &[Move::Swap(16)],
        Family::Cdna4 if bit == 5 => &[Move::Swap(32)],
        Family::Vega | Family::Cdna | Family::Cdna4 => GFX9[bit],
        Family::Rdna => &RDNA[bit],
    }
}

/// The moves by which every lane reads the lane of its pair whose bit is clear, and the one whose
/// bit is set: a pair in order, with nothing to select.
pub fn sides(family: Family, bit: LaneBit) -> Option<[Dpp; 2]> {
    const SIDES: [[Dpp; 2]; 2] = [
        [Dpp::QuadPerm([0, 0, 2, 2]), Dpp::QuadPerm([1, 1, 3, 3])],
        [Dpp::QuadPerm([0, 1, 0, 1]), Dpp::QuadPerm([2, 3, 2, 3])],
    ];
    match family {
        Family::Nvidia => None,
        Family::Vega | Family::Cdna | Family::Cdna4 | Family::Rdna => {
            SIDES.get(bit.0 as usize).copied()
        }
    }
}

/// How the result of a [`Fold`] reaches every lane.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Broadcast {
    /// `v_readlane_b32`: one lane's value for the whole wave.
    ReadLane(u32),
    /// A DPP move within each row.
    Dpp(Dpp),
}

/// A fold of neighbouring lanes in one of them, in place of butterflies in all of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fold {
    /// The moves, each followed by a combine.
    pub moves: &'static [Dpp],
    /// From the lane that holds the result.
    pub broadcast: Broadcast,
}

const ROW: [Dpp; 4] = [Dpp::RowShr(1), Dpp::RowShr(2), Dpp::RowShr(4), Dpp::RowShr(8)];
const WAVE: [Dpp; 6] = [ROW[0], ROW[1], ROW[2], ROW[3], Dpp::RowBcast15, Dpp::RowBcast31];

/// The fold of the lowest `lane_bits` lane bits, where the target has one.
pub fn fold(family: Family, lane_bits: u32) -> Option<Fold> {
    match (family, lane_bits) {
        (Family::Vega | Family::Cdna | Family::Cdna4, 6) => {
            Some(Fold { moves: &WAVE, broadcast: Broadcast::ReadLane(63) })
        }
        (Family::Cdna | Family::Cdna4, 4) => {
            Some(Fold { moves: &ROW, broadcast: Broadcast::Dpp(Dpp::RowNewbcast(15)) })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Broadcast, Dpp, Family, Move, exchange, fold, sides};
    use crate::target::Target;
    use bitstable_lowering::plan::LaneBit;

    const GFX9: [Family; 3] = [Family::Vega, Family::Cdna, Family::Cdna4];

    /// The lane that `lane` reads, by the manuals' definition of each control.
    fn reads(control: Dpp, lane: u32) -> Option<u32> {
        let (row, within) = (lane & !15, lane & 15);
        match control {
            Dpp::QuadPerm(p) => Some((lane & !3) | p[(lane & 3) as usize]),
            Dpp::RowShr(n) => within.checked_sub(n).map(|l| row | l),
            Dpp::RowRor(n) => Some(row | ((within + 16 - n) & 15)),
            Dpp::RowHalfMirror => Some((lane & !7) | (7 - (lane & 7))),
            Dpp::RowBcast15 => row.checked_sub(1),
            Dpp::RowBcast31 => (lane >= 32).then_some(31),
            Dpp::RowNewbcast(n) => Some(row | n),
            Dpp::RowXmask(n) => Some(row | (within ^ n)),
        }
    }

    fn moved<T: Clone>(step: Move, bit: LaneBit, lanes: &[T]) -> Vec<Option<T>> {
        let from = |lane: u32| match step {
            Move::Shuffle(m) | Move::Bpermute(m) => Some(lane ^ m),
            Move::Swizzle(m) => Some((lane & !31) | ((lane & 31) ^ m)),
            Move::Dpp(control) => reads(control, lane),
            Move::PermlaneX16 => Some((lane & !31) | ((lane & 31) ^ 16)),
            // Both results; the lane picks the one that is not its own.
            Move::Swap(m) if lane & m == 0 => Some(lane | m),
            Move::Swap(m) => Some(lane & !m),
        };
        if let Move::Swap(m) = step {
            assert_eq!(m, 1 << bit.0);
        }
        (0..lanes.len() as u32)
            .map(|lane| from(lane).and_then(|l| lanes.get(l as usize).cloned()))
            .collect()
    }

    #[test]
    fn every_exchange_reaches_the_partner() {
        let families = [(Family::Nvidia, 5), (Family::Rdna, 5)];
        for (family, bits) in families.into_iter().chain(GFX9.map(|f| (f, 6))) {
            for bit in (0..bits).map(LaneBit) {
                let mut lanes: Vec<u32> = (0..1 << bits).collect();
                for &step in exchange(family, bit) {
                    lanes = moved(step, bit, &lanes).into_iter().map(Option::unwrap).collect();
                }
                let partners: Vec<u32> = (0..1 << bits).map(|lane| lane ^ (1 << bit.0)).collect();
                assert_eq!(lanes, partners, "{family:?} {bit:?}");
            }
        }
    }

    #[test]
    fn sides_are_the_two_lanes_of_a_pair() {
        for bit in (0..6).map(LaneBit) {
            let Some([clear, set]) = sides(Family::Cdna, bit) else {
                assert!(bit.0 > 1);
                continue;
            };
            for lane in 0..64 {
                assert_eq!(reads(clear, lane), Some(lane & !(1 << bit.0)), "{bit:?}");
                assert_eq!(reads(set, lane), Some(lane | 1 << bit.0), "{bit:?}");
            }
        }
    }

    /// A value: the leaves `first..first + len` in the canonical tree, or none of our business.
    type Tree = Option<(u32, u32)>;

    fn combine(left: Tree, right: Tree) -> Tree {
        let ((a, n), (b, m)) = (left?, right?);
        (n == m && a + n == b && a % (2 * n) == 0).then_some((a, 2 * n))
    }

    #[test]
    fn every_fold_is_the_canonical_tree() {
        for family in GFX9 {
            for bits in 1..=6 {
                let Some(fold) = fold(family, bits) else { continue };
                let mut lanes: Vec<Tree> = (0..64).map(|lane| Some((lane, 1))).collect();
                for &control in fold.moves {
                    let left = moved(Move::Dpp(control), LaneBit(0), &lanes);
                    lanes = (0..64).map(|l| combine(left[l].flatten(), lanes[l])).collect();
                }
                for lane in 0..64u32 {
                    let from = match fold.broadcast {
                        Broadcast::ReadLane(root) => root,
                        Broadcast::Dpp(control) => reads(control, lane).unwrap(),
                    };
                    let first = lane & !((1 << bits) - 1);
                    assert_eq!(lanes[from as usize], Some((first, 1 << bits)), "{family:?} {bits}");
                }
            }
        }
    }

    #[test]
    fn folds_are_where_the_manuals_have_their_controls() {
        let bits = |family| (0..=6).filter(|&b| fold(family, b).is_some()).collect::<Vec<_>>();
        assert_eq!(bits(Family::Vega), [6]);
        assert_eq!(bits(Family::Cdna), [4, 6]);
        assert_eq!(bits(Family::Cdna4), [4, 6]);
        assert!(bits(Family::Rdna).is_empty() && bits(Family::Nvidia).is_empty());
    }

    #[test]
    fn controls_are_encoded_as_the_assembler_does() {
        let encoded = [
            (Dpp::QuadPerm([1, 0, 3, 2]), 0xb1),
            (Dpp::QuadPerm([2, 3, 0, 1]), 0x4e),
            (Dpp::QuadPerm([3, 2, 1, 0]), 0x1b),
            (Dpp::RowShr(8), 0x118),
            (Dpp::RowRor(8), 0x128),
            (Dpp::RowHalfMirror, 0x141),
            (Dpp::RowBcast15, 0x142),
            (Dpp::RowBcast31, 0x143),
            (Dpp::RowNewbcast(15), 0x15f),
            (Dpp::RowXmask(4), 0x164),
        ];
        for (control, number) in encoded {
            assert_eq!(control.encoding(), number, "{control:?}");
        }
    }

    #[test]
    fn families() {
        let amd = |arch: &str, lanes| Family::of(&Target::Amd { arch: arch.into(), lanes });
        assert_eq!(Family::of(&Target::Nvidia { capability: 90 }), Some(Family::Nvidia));
        assert_eq!(Family::of(&Target::Nvidia { capability: 61 }), None);
        assert_eq!(amd("gfx942", 64), Some(Family::Cdna));
        assert_eq!(amd("gfx950", 64), Some(Family::Cdna4));
        assert_eq!(amd("gfx908", 64), Some(Family::Vega));
        assert_eq!(amd("gfx1201", 32), Some(Family::Rdna));
        assert_eq!(amd("gfx1100", 64), None);
    }
}
