//! What the executor found: one kind of finding a variant, with everything a reader needs.
//!
//! # Invariants
//! - **F1** A finding is reported once for each pair of instructions and kind, with a count; the
//!   first occurrence in the schedule's order is the one shown.

mod collect;

use std::fmt;

use serde::Serialize;

pub use self::collect::{KEPT, Report, Reports};
use crate::ir::Space;

/// How bad a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Note,
    Error,
}

/// A thread of the grid.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
pub struct Thread {
    /// Linear index of the CTA in the grid.
    pub cta: u32,
    /// Linear index of the thread in its CTA.
    pub thread: u32,
}

impl fmt::Display for Thread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CTA {} thread {}", self.cta, self.thread)
    }
}

/// One end of a finding: which instruction, by which thread. `pc` numbers the program's steps.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Site {
    pub pc: u32,
    pub thread: Thread,
}

/// What an access does to memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AccessKind {
    Read,
    Write,
    Atomic,
}

/// What was found.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Finding {
    /// Two accesses, at least one a write, that nothing orders. `earlier` ran first here.
    Race {
        space: Space,
        address: u64,
        bytes: u32,
        earlier: (Site, AccessKind),
        later: (Site, AccessKind),
    },
    /// Two unordered writes of equal bytes: Triton stores replicated values on purpose.
    SameBytes {
        space: Space,
        address: u64,
        bytes: u32,
        earlier: Site,
        later: Site,
    },
    /// Unordered atomics whose order moves the result.
    ArrivalOrder {
        space: Space,
        address: u64,
        earlier: Site,
        later: Site,
    },
    /// `reason` names the space's bounds, or that no buffer is there.
    OutOfBounds {
        space: Space,
        address: u64,
        bytes: u32,
        kind: AccessKind,
        at: Site,
        reason: String,
    },
    Misaligned {
        space: Space,
        address: u64,
        alignment: u32,
        kind: AccessKind,
        at: Site,
    },
    Uninitialised {
        space: Space,
        address: u64,
        bytes: u32,
        at: Site,
    },
    /// A read-only buffer was written.
    ReadOnly {
        address: u64,
        at: Site,
    },
    /// A barrier at which `arrived` of `expected` threads wait for ever.
    BarrierStuck {
        id: u32,
        arrived: u32,
        expected: u32,
        at: Site,
        missing: Option<Site>,
    },
    /// Lanes of one warp at different aligned barriers, or some gone.
    BarrierDiverged {
        at: Site,
        other: Option<Site>,
    },
    /// Members of a warp-wide instruction that disagree: other instruction, other mask, or gone.
    MembersDisagree {
        members: u32,
        present: u32,
        at: Site,
        other: Option<Site>,
    },
    /// A shuffle that reads a lane which does not take part.
    LaneAbsent {
        lane: u32,
        at: Site,
    },
    /// The step limit was reached here.
    StepLimit {
        limit: u64,
        at: Site,
    },
    /// `trap`, or a failed assertion with its text.
    Trap {
        at: Site,
        message: Option<String>,
    },
    /// An operand that the instruction does not allow at run time.
    BadOperand {
        at: Site,
        message: String,
    },
}
