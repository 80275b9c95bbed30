//! The layouts that know nothing of matrix units: `#ttg.blocked` and `#ttg.linear`.

use std::fmt;

use super::operand::Operand;
use super::tile::{Column, Outside, Place, Tile};
use crate::layout::{Dim, LinearLayout, Shape};

/// The fields of `#ttg.blocked`; one entry for each dimension.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Blocked {
    /// Elements of a thread, before repetition.
    pub size_per_thread: Shape,
    /// Lanes of a warp.
    pub threads_per_warp: Shape,
    /// Warps of a CTA.
    pub warps_per_cta: Shape,
    /// From the dimension that the lowest bits move along to the one of the highest.
    pub order: Vec<Dim>,
    pub(super) cluster: Vec<Column>,
}

impl Blocked {
    /// Whether the tile is split over the CTAs of a cluster.
    pub fn in_cluster(&self) -> bool {
        !self.cluster.is_empty()
    }

    pub(super) fn rank(&self) -> usize {
        self.order.len()
    }

    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        let mut tile = Tile::new(shape.rank());
        for (place, size) in [
            (Place::Register, &self.size_per_thread),
            (Place::Lane, &self.threads_per_warp),
            (Place::Warp, &self.warps_per_cta),
        ] {
            for &dim in &self.order {
                tile.extend(place, dim, size.bits(dim));
            }
        }
        tile.cover(shape, &self.order, &self.cluster, Outside::Drop)
    }

    /// The operand of a product without matrix units: each thread holds all of the summed axis.
    pub(super) fn operand(&self, operand: Operand, shape: &Shape) -> LinearLayout {
        let summed = operand.summed(self.rank());
        let mut tile = Tile::new(shape.rank());
        for &dim in &self.order {
            let size = if dim == summed { shape } else { &self.size_per_thread };
            tile.extend(Place::Register, dim, size.bits(dim));
        }
        for (place, size) in
            [(Place::Lane, &self.threads_per_warp), (Place::Warp, &self.warps_per_cta)]
        {
            operand.extend_shared(&mut tile, place, &self.order, size);
        }
        let cluster = operand.cluster(&self.cluster, self.rank());
        tile.cover(shape, &self.order, &cluster, Outside::Broadcast)
    }
}

/// As Triton prints it. Only for layouts of one CTA.
impl fmt::Display for Blocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order: Vec<usize> = self.order.iter().map(|d| d.0).collect();
        write!(
            f,
            "#ttg.blocked<{{sizePerThread = {:?}, threadsPerWarp = {:?}, warpsPerCTA = {:?}, \
             order = {:?}}}>",
            self.size_per_thread.extents(),
            self.threads_per_warp.extents(),
            self.warps_per_cta.extents(),
            order
        )
    }
}

/// The fields of `#ttg.linear`. Apart from broadcast bits, the columns are a permutation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Linear {
    pub(super) rank: usize,
    pub(super) register: Vec<Column>,
    pub(super) lane: Vec<Column>,
    pub(super) warp: Vec<Column>,
    pub(super) block: Vec<Column>,
}

impl Linear {
    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    /// Triton scales this one without regard to clusters: new registers go above the blocks.
    pub(super) fn to_linear(&self, shape: &Shape) -> LinearLayout {
        let mut tile = Tile::new(self.rank);
        tile.multiply(&[
            (Place::Register, &self.register),
            (Place::Lane, &self.lane),
            (Place::Warp, &self.warp),
        ]);
        self.block.iter().for_each(|&column| tile.reserve(column));
        let order = self.repetition_order();
        tile.fit(shape, &order, |dim| shape.bits(dim), &self.block, Outside::Drop)
    }

    /// Dimensions in the order in which the registers first move along them, then innermost first.
    fn repetition_order(&self) -> Vec<Dim> {
        let mut order: Vec<Dim> = Vec::new();
        let moved = self.register.iter().filter_map(|column| column.dim());
        for dim in moved.chain((0..self.rank).rev().map(Dim)) {
            if !order.contains(&dim) {
                order.push(dim);
            }
        }
        order
    }
}
