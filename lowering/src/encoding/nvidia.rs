//! `#ttg.nvidia_mma`: how `mma.sync` and `wgmma` spread a matrix over a warp.
//!
//! Both use one pattern, eight rows of four lanes, repeated over the instruction's tile. The figures
//! are in the PTX manual, "Matrix Fragments for mma.m16n8k16" and the ones beside it.

use super::operand::{Operand, column_major, row_major};
use super::tile::{Column, Outside, Place, Tile};
use crate::layout::{Dim, LinearLayout, Shape};

/// The instructions that `versionMajor` tells apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Generation {
    /// `mma.sync`: warps are numbered along the rows of tiles.
    Ampere,
    /// `wgmma`: warps are numbered down the columns of tiles.
    Hopper,
}

/// The fields of `#ttg.nvidia_mma`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mma {
    pub(super) generation: Generation,
    /// The rows and columns of one instruction's result, as logarithms of at least 3.
    pub(super) rows: u32,
    pub(super) columns: u32,
    pub(super) warps: Shape,
    pub(super) cluster: Vec<Column>,
}

/// The smallest logarithm of an instruction's rows and columns: eight rows of four lanes with two.
pub(super) const SMALLEST: u32 = 3;

impl Mma {
    pub(super) fn rank(&self) -> usize {
        self.warps.rank()
    }

    fn warp_order(&self) -> Vec<Dim> {
        match self.generation {
            Generation::Ampere => row_major(self.rank()),
            Generation::Hopper => column_major(self.rank()),
        }
    }

    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        let order = row_major(self.rank());
        let mut tile = Tile::new(shape.rank());
        fragment(&mut tile, &order, 1, self.columns, self.rows);
        for dim in self.warp_order() {
            tile.extend(Place::Warp, dim, self.warps.bits(dim));
        }
        tile.cover(shape, &order, &self.cluster, Outside::Broadcast)
    }

    pub(super) fn operand(&self, operand: Operand, width: u32, shape: &Shape) -> LinearLayout {
        // The instruction for f64, with eight rows, sums over half as much.
        let summed = width + if self.rows == SMALLEST { 2 } else { 3 };
        let kept = match operand {
            Operand::A => self.rows,
            Operand::B => SMALLEST,
        };
        let order = operand.order(self.rank());
        let mut tile = Tile::new(shape.rank());
        fragment(&mut tile, &order, width, summed, kept);
        operand.extend_shared(&mut tile, Place::Warp, &self.warp_order(), &self.warps);
        let cluster = operand.cluster(&self.cluster, self.rank());
        tile.cover(shape, &order, &cluster, Outside::Broadcast)
    }
}

/// One instruction's tile: `2^inner` elements along `order[0]`, `2^outer` along `order[1]`, and
/// `2^width` adjacent ones in each lane.
fn fragment(tile: &mut Tile, order: &[Dim], width: u32, inner: u32, outer: u32) {
    tile.extend(Place::Register, order[0], width);
    tile.extend(Place::Lane, order[0], 2);
    tile.extend(Place::Lane, order[1], 3);
    tile.extend(Place::Register, order[1], outer - 3);
    tile.extend(Place::Register, order[0], inner - width - 2);
}
