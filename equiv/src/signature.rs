//! What a kernel's walk comes to.

use std::collections::BTreeSet;

use bitstable_ptx::ir::SourceLine;

/// A name for what a kernel returns: kernels of one digest return the same bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    pub digest: Digest,
    /// Additions that ptxas may fuse with the product before them, as nothing rounds either.
    pub contractions: Vec<Place>,
    /// Numbers of the parameters that it writes through; `None`: not known.
    pub writes: Option<BTreeSet<u32>>,
    /// Why the kernel's values could not be followed: its digest is then that of its own text.
    pub obstacle: Option<Obstacle>,
}

/// 128 bits of a structural hash.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Digest(pub u128);

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// A line of PTX, and of the user's source where the PTX tells it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Place {
    pub line: u32,
    pub source: Option<SourceLine>,
}

/// Something in a kernel that the walk does not understand.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("line {}: {what}", place.line)]
pub struct Obstacle {
    pub what: String,
    pub place: Place,
}
