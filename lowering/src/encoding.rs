//! Triton's layout attributes: from their text to a [`LinearLayout`].
//!
//! # Idea
//! An attribute describes a *tile*: how many index bits of each dimension its registers, lanes and
//! warps hold, and in which order. A tensor larger than the tile is covered by more registers; in a
//! tensor smaller than the tile, lanes and warps that fall outside are broadcast. The CTAs of a
//! cluster then take the highest bits (`tile.rs`). The text is the one that Triton 3.9 prints with
//! local scope, where no alias such as `#blocked` is left.
//! # Invariants
//! - **E1** [`parse`] and [`Encoding::to_linear`] return for every text and shape: no panic, no
//!   recursion deeper than [`NESTING`].
//! - **E2** A layout is Triton's own, bit for bit, register order and broadcast bits included.
//! - **E3** What is not understood to the last field is an error, never a guess.
//! # Held by
//! E1: `tests.rs`. E2: `tests/python/test_layouts.py`, whose oracle is Triton. E3:
//! `read.rs`, to which a field that it did not use is an error.
//! # Not here
//! Shared and tensor memory, which hold no operand of a reduction; tensor types.

mod amd;
mod nvidia;
mod operand;
mod plain;
mod read;
mod syntax;
#[cfg(test)]
mod tests;
mod tile;

use crate::layout::{Basis, Dim, LinearLayout, Shape, ShapeError};
pub use amd::{Mfma, Wmma};
pub use nvidia::Mma;
pub use operand::DotOperand;
pub use plain::{Blocked, Linear};

/// The deepest nesting of brackets that is read: ten slices, more than a tensor has dimensions.
pub const NESTING: usize = 24;

/// A distributed layout attribute, as Triton spells it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Encoding {
    /// `#ttg.blocked`: a box of elements for each thread, of threads for each warp, and so on.
    Blocked(Blocked),
    /// `#ttg.slice`: the parent's layout of a tensor that had one more dimension, `dim`.
    Slice {
        /// The dimension that the parent has and the slice has not.
        dim: Dim,
        /// The layout that was sliced.
        parent: Box<Encoding>,
    },
    /// `#ttg.linear`: the columns themselves.
    Linear(Linear),
    /// `#ttg.nvidia_mma`: the result of `mma.sync` or `wgmma`.
    Mma(Mma),
    /// `#ttg.amd_mfma`: the result of `v_mfma`.
    Mfma(Mfma),
    /// `#ttg.amd_wmma`: the result of `v_wmma`.
    Wmma(Wmma),
    /// `#ttg.dot_op`: an operand of a product whose result has the parent's layout.
    DotOperand(DotOperand),
}

/// Why a text is not a layout of a tensor. All of them are the input's doing, not ours.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum EncodingError {
    /// An attribute, or a version of one, that this module does not know.
    #[error("encoding {encoding} is not understood")]
    Unknown {
        /// The attribute's name, with the version where that is what is unknown.
        encoding: String,
    },
    /// The text is not an attribute.
    #[error("byte {at}: expected {expected}")]
    Syntax {
        /// Where, in bytes from the start.
        at: usize,
        /// What would have been right there.
        expected: String,
    },
    /// Brackets nest deeper than [`NESTING`].
    #[error("byte {at}: brackets nest deeper than {NESTING}")]
    Nesting {
        /// Where the first bracket too many stands.
        at: usize,
    },
    /// A field that must be there is not.
    #[error("byte {at}: field {field} is missing")]
    Missing {
        /// Where the dictionary begins.
        at: usize,
        /// The field's name.
        field: &'static str,
    },
    /// A field that no such attribute has, or that stands there twice.
    #[error("byte {at}: field {field} is not known here, or is repeated")]
    Stray {
        /// Where the field stands.
        at: usize,
        /// Its name, as found.
        field: String,
    },
    /// A field's value breaks a rule of the attribute.
    #[error("byte {at}: field {field} must be {expected}")]
    Field {
        /// Where the value begins.
        at: usize,
        /// The field's name.
        field: &'static str,
        /// The rule.
        expected: &'static str,
    },
    /// The attribute is for tensors of another rank.
    #[error("the encoding is for tensors of rank {encoding}, the tensor has rank {tensor}")]
    Rank {
        /// The rank that the attribute speaks of.
        encoding: usize,
        /// The tensor's rank.
        tensor: usize,
    },
    /// The shape of a slice's parent cannot be numbered.
    #[error(transparent)]
    Shape(#[from] ShapeError),
}

/// Reads one attribute, such as `#ttg.slice<{dim = 0, parent = #ttg.blocked<{…}>}>`.
pub fn parse(text: &str) -> Result<Encoding, EncodingError> {
    read::encoding(syntax::attribute(text)?)
}

/// The layout that the attribute `text` gives a tensor of `shape`.
pub fn linear_layout(text: &str, shape: &Shape) -> Result<LinearLayout, EncodingError> {
    parse(text)?.to_linear(shape)
}

impl Encoding {
    /// The rank of the tensors that can have this encoding.
    pub fn rank(&self) -> usize {
        match self {
            Encoding::Blocked(blocked) => blocked.rank(),
            Encoding::Slice { parent, .. } => parent.rank() - 1,
            Encoding::Linear(linear) => linear.rank(),
            Encoding::Mma(mma) => mma.rank(),
            Encoding::Mfma(mfma) => mfma.rank(),
            Encoding::Wmma(wmma) => wmma.rank(),
            Encoding::DotOperand(operand) => operand.rank(),
        }
    }

    /// The layout that this encoding gives a tensor of `shape`.
    pub fn to_linear(&self, shape: &Shape) -> Result<LinearLayout, EncodingError> {
        if self.rank() != shape.rank() {
            return Err(EncodingError::Rank { encoding: self.rank(), tensor: shape.rank() });
        }
        Ok(match self {
            Encoding::Blocked(blocked) => blocked.to_linear(shape),
            Encoding::Linear(linear) => linear.to_linear(shape),
            Encoding::Mma(mma) => mma.to_linear(shape),
            Encoding::Mfma(mfma) => mfma.to_linear(shape),
            Encoding::Wmma(wmma) => wmma.to_linear(shape),
            Encoding::DotOperand(operand) => operand.to_linear(shape),
            Encoding::Slice { dim, parent } => {
                let mut extents = shape.extents();
                extents.insert(dim.0, 1);
                let layout = parent.to_linear(&Shape::from_extents(&extents)?)?;
                without_unit_dimension(layout, shape)
            }
        })
    }
}

/// Removes a dimension of extent one, and with it every register that repeats another.
///
/// Such a dimension has no bits, so every [`Basis`] means the same before and after.
fn without_unit_dimension(mut layout: LinearLayout, shape: &Shape) -> LinearLayout {
    layout.shape = shape.clone();
    layout.register.retain(|&basis| basis != Basis::ZERO);
    layout
}
