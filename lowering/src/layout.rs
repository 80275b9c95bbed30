//! Linear layouts: which lane, warp and register holds which element of a tensor.
//!
//! # Idea
//! Every Triton encoding is a linear map over GF(2) from the bits of a hardware place (register,
//! lane, warp, block) to the bits of a tensor index. A map is the list of its columns, one
//! [`Basis`] for every hardware bit. The idea is Triton's own (Zhou et al., "Linear Layouts",
//! ASPLOS 2026, and `include/triton/Tools/LinearLayout.h`).
//! # Invariants
//! - **L1** A tensor's extents are powers of two; [`Shape`] holds their logarithms.
//! - **L2** A basis mentions only bits that the shape has.
//! - **L3** A zero basis is a *broadcast* bit: the places that differ in it hold equal data.
//! # Held by
//! L1, L2: the constructors. L3: the definition of the map.
//! # Not here
//! Triton's attribute syntax (`encoding.rs`); what is done with a layout (`plan.rs`).

use std::fmt;

/// The logarithms of a tensor's extents, outermost dimension first.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Shape(Vec<u32>);

/// A dimension of a tensor, counted from the outermost.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Dim(pub usize);

/// An exclusive-or of index bits: where one hardware bit moves the index. Zero moves it nowhere.
///
/// Bit `shape.offset(dim) + b` stands for bit `b` of the index along `dim`.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Basis(pub u64);

impl Basis {
    /// The basis of a broadcast bit.
    pub const ZERO: Basis = Basis(0);

    /// Whether the hardware bit carries exactly one index bit.
    pub fn is_unit(self) -> bool {
        self.0.is_power_of_two()
    }
}

/// An extent that is not a power of two, or a tensor too large to number its elements in 64 bits.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("extents {extents:?} are not powers of two with a product below 2^64")]
pub struct ShapeError {
    /// The extents as given.
    pub extents: Vec<u64>,
}

impl Shape {
    /// From extents such as `[16, 256]`.
    pub fn from_extents(extents: &[u64]) -> Result<Shape, ShapeError> {
        let log2: Vec<u32> = extents.iter().map(|e| e.trailing_zeros()).collect();
        let powers = extents.iter().all(|e| e.is_power_of_two());
        if !powers || log2.iter().sum::<u32>() >= 64 {
            return Err(ShapeError { extents: extents.to_vec() });
        }
        Ok(Shape(log2))
    }

    /// The number of dimensions.
    pub fn rank(&self) -> usize {
        self.0.len()
    }

    /// How many bits number the elements along `dim`.
    pub fn bits(&self, dim: Dim) -> u32 {
        self.0[dim.0]
    }

    /// How many bits number all elements.
    pub fn total_bits(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Where the bits of `dim` begin in a [`Basis`]; the innermost dimension begins at 0, so a
    /// basis read as a number is the row-major position of an element.
    pub fn offset(&self, dim: Dim) -> u32 {
        self.0[dim.0 + 1..].iter().sum()
    }

    /// The extent along `dim`.
    pub fn extent(&self, dim: Dim) -> u64 {
        1 << self.bits(dim)
    }

    /// All extents, outermost first.
    pub fn extents(&self) -> Vec<u64> {
        self.0.iter().map(|b| 1 << b).collect()
    }

    /// The basis of one index bit.
    pub fn unit(&self, dim: Dim, bit: u32) -> Basis {
        debug_assert!(bit < self.bits(dim));
        Basis(1 << (self.offset(dim) + bit))
    }

    /// The part of `basis` along `dim`, as an offset of the index.
    pub fn component(&self, basis: Basis, dim: Dim) -> u64 {
        (basis.0 >> self.offset(dim)) & (self.extent(dim) - 1)
    }

    /// Columns as Triton writes them, such as `[[0, 1], [0, 2]]`.
    pub fn columns(&self, bases: &[Basis]) -> String {
        let column = |basis: &Basis| -> Vec<u64> {
            (0..self.rank()).map(|d| self.component(*basis, Dim(d))).collect()
        };
        format!("{:?}", bases.iter().map(column).collect::<Vec<_>>())
    }

    /// A basis from its offset along each dimension, outermost first.
    pub fn basis(&self, offsets: &[u64]) -> Option<Basis> {
        if offsets.len() != self.rank() {
            return None;
        }
        let mut bits = 0;
        for (d, &offset) in offsets.iter().enumerate() {
            if offset >= self.extent(Dim(d)) {
                return None;
            }
            bits |= offset << self.offset(Dim(d));
        }
        Some(Basis(bits))
    }
}

/// The map from hardware places to elements of a tensor.
///
/// `register[i]` is where register bit `i` moves the index, and so on. Places are numbered as
/// Triton numbers them: register order is the order of the values in the LLVM struct.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LinearLayout {
    /// The tensor's extents.
    pub shape: Shape,
    /// Columns of the register bits.
    pub register: Vec<Basis>,
    /// Columns of the lane bits.
    pub lane: Vec<Basis>,
    /// Columns of the warp bits.
    pub warp: Vec<Basis>,
    /// Columns of the bits of the CTA within its cluster.
    pub block: Vec<Basis>,
}

impl LinearLayout {
    /// All columns: registers, lanes, warps, blocks.
    pub fn columns(&self) -> impl Iterator<Item = Basis> + '_ {
        self.register.iter().chain(&self.lane).chain(&self.warp).chain(&self.block).copied()
    }

    /// Whether every place bit carries one index bit or none, and no index bit twice.
    pub fn is_permutation(&self) -> bool {
        let mut seen = 0u64;
        self.columns().filter(|&b| b != Basis::ZERO).all(|b| {
            let fresh = b.is_unit() && seen & b.0 == 0;
            seen |= b.0;
            fresh
        })
    }
}

/// As a `#ttg.linear` attribute, the form in which Triton reads it.
impl fmt::Display for LinearLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let columns = |bases: &[Basis]| self.shape.columns(bases);
        write!(
            f,
            "#ttg.linear<{{register = {}, lane = {}, warp = {}, block = {}}}>",
            columns(&self.register),
            columns(&self.lane),
            columns(&self.warp),
            columns(&self.block)
        )
    }
}
