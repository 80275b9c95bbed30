//! `#ttg.amd_mfma` and `#ttg.amd_wmma`: how AMD's matrix cores spread a matrix over a wave.
//!
//! The figures are in the instruction set manuals; AMD's matrix instruction calculator prints them.

use super::operand::{Operand, row_major};
use super::tile::{Column, Outside, Place, Tile};
use crate::layout::{Dim, LinearLayout, Shape};

/// The logarithm of the 64 lanes of a wave that `v_mfma` uses.
const WAVE64: u32 = 6;

/// The fields of `#ttg.amd_mfma`; sizes are logarithms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mfma {
    pub(super) rows: u32,
    pub(super) columns: u32,
    /// Adjacent elements that one lane holds: four, but one of 64 bits.
    pub(super) height: u32,
    pub(super) held_along: HeldAlong,
    pub(super) warps: Shape,
    pub(super) tiles_per_warp: Shape,
    pub(super) cluster: Vec<Column>,
}

/// Which dimension of the result one lane's registers move along.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum HeldAlong {
    /// Down a column.
    Rows,
    /// Along a row; Triton calls it transposed.
    Columns,
}

impl Mfma {
    pub(super) fn rank(&self) -> usize {
        self.warps.rank()
    }

    /// Repetitions cover a whole row of tiles before the warps move down. Triton's own lowering of
    /// the product depends on it.
    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        let (m, n) = (Dim(self.rank() - 2), Dim(self.rank() - 1));
        let (held, spread, spread_bits) = match self.held_along {
            HeldAlong::Rows => (m, n, self.columns),
            HeldAlong::Columns => (n, m, self.rows),
        };
        let mut tile = Tile::new(shape.rank());
        tile.extend(Place::Register, held, self.height);
        tile.extend(Place::Lane, spread, spread_bits);
        tile.extend(Place::Lane, held, WAVE64 - spread_bits);
        let held_bits = (self.rows + self.columns).saturating_sub(WAVE64 + self.height);
        tile.extend(Place::Register, held, held_bits);

        let (tiles, warps) = (&self.tiles_per_warp, &self.warps);
        tile.extend(Place::Register, n, tiles.bits(n));
        tile.extend(Place::Warp, n, warps.bits(n));
        let row = self.columns + warps.bits(n) + tiles.bits(n);
        tile.extend(Place::Register, n, shape.bits(n).saturating_sub(row));
        tile.extend(Place::Register, m, tiles.bits(m));
        tile.extend(Place::Warp, m, warps.bits(m));
        for batch in 0..m.0 {
            tile.extend(Place::Warp, Dim(batch), warps.bits(Dim(batch)));
        }
        tile.cover(shape, &row_major(self.rank()), &self.cluster, Outside::Broadcast)
    }

    pub(super) fn operand(&self, operand: Operand, width: u32, shape: &Shape) -> LinearLayout {
        let (summed, kept) = (operand.summed(self.rank()), operand.kept(self.rank()));
        let kept_bits = match operand {
            Operand::A => self.rows,
            Operand::B => self.columns,
        };
        let mut tile = Tile::new(shape.rank());
        tile.extend(Place::Register, summed, width);
        tile.extend(Place::Lane, kept, kept_bits);
        tile.extend(Place::Lane, summed, WAVE64 - kept_bits);
        let mut summed_bits = WAVE64 - kept_bits + width;
        if kept_bits == WAVE64 {
            // The instruction is 64x4 or 4x64: sixteen of them make one of the usual depth.
            tile.extend(Place::Register, summed, 4);
            summed_bits += 4;
        }
        let repeats = shape.bits(summed).saturating_sub(summed_bits);
        tile.extend(Place::Register, summed, repeats);
        tile.extend(Place::Register, kept, self.tiles_per_warp.bits(kept));
        for dim in row_major(self.rank()) {
            tile.extend(Place::Warp, dim, self.warps.bits(dim));
        }
        tile.cover(shape, &operand.order(self.rank()), &self.cluster, Outside::Broadcast)
    }
}

/// The fields of `#ttg.amd_wmma`; sizes are logarithms.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wmma {
    pub(super) rank: usize,
    pub(super) lanes: Lanes,
    pub(super) held_along: HeldAlong,
    /// The instruction's rows, columns and depth.
    pub(super) instruction: [u32; 3],
    /// How repetitions and warps count copies of the instruction's tile.
    pub(super) repeat: Vec<Column>,
    pub(super) warps: Vec<Column>,
    pub(super) cluster: Vec<Column>,
}

/// What the upper half of a wave of 32 lanes holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Lanes {
    /// Version 1: results alternate between the halves, and both hold the same operands.
    Interleaved,
    /// Versions 2 and 3: each half holds its own part.
    Halves,
}

/// The logarithm of the 16 lanes along one dimension.
const HALF_WAVE: u32 = 4;

impl Wmma {
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        let (m, n) = (Dim(self.rank - 2), Dim(self.rank - 1));
        let (held, spread) = match self.held_along {
            HeldAlong::Rows => (m, n),
            HeldAlong::Columns => (n, m),
        };
        let mut tile = Tile::new(shape.rank());
        tile.extend(Place::Lane, spread, HALF_WAVE);
        match self.lanes {
            Lanes::Interleaved => {
                tile.extend(Place::Lane, held, 1);
                tile.extend(Place::Register, held, 3);
            }
            Lanes::Halves => {
                tile.extend(Place::Register, held, 3);
                tile.extend(Place::Lane, held, 1);
                tile.extend(Place::Register, held, self.instruction[0] - HALF_WAVE);
            }
        }
        tile.multiply(&[(Place::Register, &self.repeat), (Place::Warp, &self.warps)]);
        tile.cover(shape, &row_major(self.rank), &self.cluster, Outside::Broadcast)
    }

    pub(super) fn operand(&self, operand: Operand, width: u32, shape: &Shape) -> LinearLayout {
        let (summed, kept) = (operand.summed(self.rank), operand.kept(self.rank));
        let [rows, columns, depth] = self.instruction;
        // Held along a row, the instruction computes the transposed product: the operands swap.
        let kept_bits = match (operand, self.held_along) {
            (Operand::A, HeldAlong::Rows) | (Operand::B, HeldAlong::Columns) => rows,
            (Operand::B, HeldAlong::Rows) | (Operand::A, HeldAlong::Columns) => columns,
        };
        let mut tile = Tile::new(shape.rank());
        tile.extend(Place::Register, summed, width);
        tile.extend(Place::Lane, kept, HALF_WAVE);
        match self.lanes {
            Lanes::Interleaved => tile.broadcast(Place::Lane, 1),
            Lanes::Halves => tile.extend(Place::Lane, summed, 1),
        }
        tile.extend(Place::Register, summed, depth.saturating_sub(width + 1));
        tile.extend(Place::Register, kept, kept_bits - HALF_WAVE);

        let mut repeat = operand.cluster(&self.repeat, self.rank);
        repeat.retain(|&column| column != Column::Broadcast);
        let warps = operand.cluster(&self.warps, self.rank);
        tile.multiply(&[(Place::Register, &repeat), (Place::Warp, &warps)]);
        let cluster = operand.cluster(&self.cluster, self.rank);
        tile.cover(shape, &operand.order(self.rank), &cluster, Outside::Broadcast)
    }
}
