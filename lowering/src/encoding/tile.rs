//! A layout that is being built, before it is fitted to a tensor.
//!
//! # Idea
//! While a tile grows, every hardware bit moves the index by one bit of one dimension or by
//! nothing: a [`Column`]. Appending to a place takes the dimension's next free bit, which is what
//! Triton's product of layouts does.
//! # Invariants
//! - **B1** A column's bit lies below the tile's size along its dimension.
//! # Held by
//! B1: [`Tile::extend`] and [`Tile::push`], the only ways to a column that moves.

use crate::layout::{Basis, Dim, LinearLayout, Shape};

/// Where one hardware bit moves the index, while the tile may still be larger than the tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Column {
    /// Nowhere.
    Broadcast,
    /// By one bit of one dimension.
    Bit(Dim, u32),
}

impl Column {
    pub(super) fn dim(self) -> Option<Dim> {
        match self {
            Column::Broadcast => None,
            Column::Bit(dim, _) => Some(dim),
        }
    }

    /// Whether the bit does not exist where every dimension has `limit` bits.
    fn is_outside(self, limit: impl Fn(Dim) -> u32) -> bool {
        matches!(self, Column::Bit(dim, bit) if bit >= limit(dim))
    }

    /// The column in a tensor of `shape`; a bit outside of it is broadcast.
    fn basis(self, shape: &Shape) -> Basis {
        match self {
            Column::Bit(dim, bit) if bit < shape.bits(dim) => shape.unit(dim, bit),
            Column::Bit(..) | Column::Broadcast => Basis::ZERO,
        }
    }
}

/// The kinds of hardware bits within one CTA.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Place {
    Register,
    Lane,
    Warp,
}

/// What becomes of registers that fall outside the tensor. Lanes and warps are always broadcast.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outside {
    /// There are none. Triton 3.9 does this for blocked and linear encodings.
    Drop,
    /// They repeat others, as all that matrix units compute does.
    Broadcast,
}

/// The columns so far, and how many bits of each dimension they use.
pub(super) struct Tile {
    size: Vec<u32>,
    register: Vec<Column>,
    lane: Vec<Column>,
    warp: Vec<Column>,
}

impl Tile {
    /// A tile of one element.
    pub(super) fn new(rank: usize) -> Tile {
        Tile { size: vec![0; rank], register: Vec::new(), lane: Vec::new(), warp: Vec::new() }
    }

    /// Adds a column that is known, and makes the tile large enough for it.
    pub(super) fn push(&mut self, place: Place, column: Column) {
        self.reserve(column);
        self.columns(place).push(column);
    }

    /// Makes the tile large enough for `column`, which some other place has.
    pub(super) fn reserve(&mut self, column: Column) {
        if let Column::Bit(dim, bit) = column {
            self.size[dim.0] = self.size[dim.0].max(bit + 1);
        }
    }

    fn columns(&mut self, place: Place) -> &mut Vec<Column> {
        match place {
            Place::Register => &mut self.register,
            Place::Lane => &mut self.lane,
            Place::Warp => &mut self.warp,
        }
    }

    /// Lets the next bits of `place` move along `dim`.
    pub(super) fn extend(&mut self, place: Place, dim: Dim, bits: u32) {
        for _ in 0..bits {
            let bit = self.size[dim.0];
            self.columns(place).push(Column::Bit(dim, bit));
            self.size[dim.0] += 1;
        }
    }

    /// Lets the next bits of `place` move nowhere.
    pub(super) fn broadcast(&mut self, place: Place, bits: u32) {
        let columns = self.columns(place);
        columns.extend((0..bits).map(|_| Column::Broadcast));
    }

    /// Appends columns that count copies of the tile so far.
    pub(super) fn multiply(&mut self, places: &[(Place, &[Column])]) {
        let base = self.size.clone();
        for &(place, columns) in places {
            for &column in columns {
                self.push(
                    place,
                    match column {
                        Column::Bit(dim, bit) => Column::Bit(dim, base[dim.0] + bit),
                        Column::Broadcast => Column::Broadcast,
                    },
                );
            }
        }
    }

    /// Fits the tile to a tensor whose highest bits belong to the CTAs of a cluster.
    ///
    /// The columns of `cluster` count its CTAs; CTAs that the tensor is too small for repeat it.
    pub(super) fn cover(
        self,
        shape: &Shape,
        order: &[Dim],
        cluster: &[Column],
        outside: Outside,
    ) -> LinearLayout {
        let mut own: Vec<u32> = (0..shape.rank()).map(|dim| shape.bits(Dim(dim))).collect();
        for &column in cluster {
            if let Column::Bit(dim, bit) = column {
                own[dim.0] = own[dim.0].min(shape.bits(dim).saturating_sub(bit + 1));
            }
        }
        let raised = |column: &Column| match *column {
            Column::Bit(dim, bit) => Column::Bit(dim, bit + own[dim.0]),
            Column::Broadcast => Column::Broadcast,
        };
        let block: Vec<Column> = cluster.iter().map(raised).collect();
        self.fit(shape, order, |dim| own[dim.0], &block, outside)
    }

    /// Fits the tile to a tensor of which each CTA holds `own` bits, and the columns of `block`
    /// the rest. More registers cover what is too large for the tile, dimension by dimension in
    /// `order`.
    pub(super) fn fit(
        mut self,
        shape: &Shape,
        order: &[Dim],
        own: impl Fn(Dim) -> u32,
        block: &[Column],
        outside: Outside,
    ) -> LinearLayout {
        for &dim in order {
            let missing = own(dim).saturating_sub(self.size[dim.0]);
            self.extend(Place::Register, dim, missing);
        }
        if outside == Outside::Drop {
            self.register.retain(|column| !column.is_outside(&own));
        }
        let inside =
            |column: &Column| if column.is_outside(&own) { Column::Broadcast } else { *column };
        let bases =
            |columns: &[Column]| columns.iter().map(|column| inside(column).basis(shape)).collect();
        LinearLayout {
            register: bases(&self.register),
            lane: bases(&self.lane),
            warp: bases(&self.warp),
            block: block.iter().map(|column| column.basis(shape)).collect(),
            shape: shape.clone(),
        }
    }
}
