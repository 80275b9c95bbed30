//! `#ttg.dot_op`: the operands of a matrix product, and what all matrix units share.
//!
//! The product sums over the last dimension of A and the last but one of B, called the *summed* one
//! here. Warps and CTAs that differ only along it share an operand.

use super::amd::{Mfma, Wmma};
use super::nvidia::Mma;
use super::plain::Blocked;
use super::tile::{Column, Place, Tile};
use crate::layout::{Dim, LinearLayout, Shape};

/// Which operand of `D = A · B + C`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Operand {
    A,
    B,
}

/// What computes the product, and how its result lies. A lane holds `2^width` adjacent elements
/// along the summed dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Unit {
    /// Multiply-adds of each thread.
    Threads(Blocked),
    /// NVIDIA's tensor cores.
    Mma { result: Mma, width: u32 },
    /// AMD's matrix cores of the CDNA family.
    Mfma { result: Mfma, width: u32 },
    /// AMD's matrix cores of the RDNA family, and of gfx1250.
    Wmma { result: Wmma, width: u32 },
}

/// The fields of `#ttg.dot_op`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DotOperand {
    pub(super) operand: Operand,
    pub(super) unit: Unit,
}

impl DotOperand {
    pub(super) fn rank(&self) -> usize {
        match &self.unit {
            Unit::Threads(result) => result.rank(),
            Unit::Mma { result, .. } => result.rank(),
            Unit::Mfma { result, .. } => result.rank(),
            Unit::Wmma { result, .. } => result.rank(),
        }
    }

    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        match &self.unit {
            Unit::Threads(result) => result.operand(self.operand, shape),
            Unit::Mma { result, width } => result.operand(self.operand, *width, shape),
            Unit::Mfma { result, width } => result.operand(self.operand, *width, shape),
            Unit::Wmma { result, width } => result.operand(self.operand, *width, shape),
        }
    }
}

impl Operand {
    /// The dimension that is summed over.
    pub(super) fn summed(self, rank: usize) -> Dim {
        match self {
            Operand::A => Dim(rank - 1),
            Operand::B => Dim(rank - 2),
        }
    }

    /// The dimension that the result keeps.
    pub(super) fn kept(self, rank: usize) -> Dim {
        match self {
            Operand::A => Dim(rank - 2),
            Operand::B => Dim(rank - 1),
        }
    }

    /// The summed dimension first, then the kept one, then the batch.
    pub(super) fn order(self, rank: usize) -> Vec<Dim> {
        match self {
            Operand::A => row_major(rank),
            Operand::B => column_major(rank),
        }
    }

    /// Spreads `place` over the result's dimensions; along the summed one, all hold the same.
    pub(super) fn extend_shared(self, tile: &mut Tile, place: Place, order: &[Dim], size: &Shape) {
        for &dim in order {
            if dim == self.summed(size.rank()) {
                tile.broadcast(place, size.bits(dim));
            } else {
                tile.extend(place, dim, size.bits(dim));
            }
        }
    }

    /// The result's columns with the summed dimension taken out.
    pub(super) fn cluster(self, result: &[Column], rank: usize) -> Vec<Column> {
        let summed = Some(self.summed(rank));
        let shared = |&column: &Column| match column {
            _ if column.dim() == summed => Column::Broadcast,
            column => column,
        };
        result.iter().map(shared).collect()
    }
}

/// The innermost dimension first.
pub(super) fn row_major(rank: usize) -> Vec<Dim> {
    (0..rank).rev().map(Dim).collect()
}

/// As [`row_major`], with the two innermost dimensions exchanged.
pub(super) fn column_major(rank: usize) -> Vec<Dim> {
    let mut order = row_major(rank);
    order.swap(0, 1);
    order
}
