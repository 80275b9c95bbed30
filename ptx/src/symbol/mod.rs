//! Symbols: which expression, over which input elements, every register and memory byte holds.
//!
//! # Idea
//! The executor is concolic. Concrete bits always run; with symbols on, every register lane and
//! every memory byte also carries a *piece*: the node whose byte it is. Moves carry pieces along,
//! arithmetic makes nodes, and an output's node is the dependence tree of that output: which
//! operations made it, in which order, from which leaves.
//! # Invariants
//! - **S1** A dependence is never lost: an instruction that reads a piece writes pieces, and the
//!   node it writes has everything it read below it.
//! - **S2** A node says its value wholly: the label and the ordered operands determine it. So two
//!   outputs with one node are equal bit for bit (payloads of NaNs apart) on every input that takes
//!   the same path.
//! - **S3** Memory is bounded: beyond [`Options`] there is an error, [`Limit`].
//! # Held by
//! S1: `lane.rs`, whose fallback takes every source; each event in `events.rs`. S2: `label.rs`.
//! S3: `graph.rs` and `shadow.rs`, which count.
//! # Not here
//! Control flow and addresses stay concrete. Where they read a piece, the machine says so by
//! [`Symbols::decided`], and a verdict then holds for this run's path only.

pub mod digest;
pub mod graph;
pub mod label;
pub mod print;
pub mod svg;
pub mod verdict;

mod events;
mod explain;
mod lane;
mod matrix;
mod memory;
mod mnemonic;
mod moves;
mod piece;
mod rewrite;
mod shadow;

pub use digest::{Digest, Digests};
pub use events::Move;
pub use explain::explain;
pub use graph::{Graph, Leaf, Maker, Meeting, Node, NodeId};
pub use label::{Identity, Label, LabelId};
pub use lane::elementwise;
pub use matrix::MmaCells;
pub use rewrite::plain_cvt;
pub use shadow::{Area, Cell, Place, Symbols};
pub use verdict::{Expect, Verdict, analyse, judge};

use crate::{ir::Space, report::Thread};

/// How much memory symbols may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Options {
    /// Most expression nodes; one takes about 60 bytes.
    pub nodes: usize,
    /// Most bytes of memory that may carry pieces; one takes four.
    pub bytes: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: 8 << 20, bytes: 64 << 20 }
    }
}

/// The run needs more symbols than it may have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Limit {
    #[error(
        "the dependence trees need more than {0} nodes; trace a smaller launch or raise the limit"
    )]
    Nodes(usize),
    #[error(
        "more than {0} bytes of memory carry symbols; trace a smaller launch or raise the limit"
    )]
    Bytes(usize),
}

/// Which warp executes which step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct At {
    /// Number of the program's step.
    pub pc: u32,
    /// Linear number of the CTA in the grid.
    pub cta: u32,
    /// Number of the warp in its CTA.
    pub warp: u32,
}

/// Control or an address read a symbolic value at this step: its first reader.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Decision {
    pub at: At,
    pub node: NodeId,
}

impl Area {
    /// Global memory, one of the grid.
    pub const GLOBAL: Area = Area { space: Space::Global, owner: 0 };

    /// Shared memory of a CTA.
    pub fn shared(cta: u32) -> Self {
        Area { space: Space::Shared, owner: u64::from(cta) }
    }

    /// Local memory of a thread.
    pub fn local(thread: Thread) -> Self {
        let owner = u64::from(thread.cta) << 32 | u64::from(thread.thread);
        Area { space: Space::Local, owner }
    }
}
