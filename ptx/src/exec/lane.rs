//! An instruction that works on each lane alone, ready to run.
//!
//! # Idea
//! Decoding picks one function for the opcode, its modifiers and its types; running it is one
//! indirect call for 32 lanes.

use smallvec::SmallVec;

use super::registers::{Mask, Registers, Slot};

/// Destination and source rows, in the order of the PTX text.
#[derive(Clone, Debug, Default)]
pub struct Operands {
    pub dst: SmallVec<[Slot; 2]>,
    pub src: SmallVec<[Slot; 4]>,
    /// Declared width in bits of the first destination's register, where the type is narrower
    /// (`cvt.s8.s32 %r1, …`: a signed result is extended to it); 0: as wide as the type.
    pub declared: u8,
    /// What a function that serves several modifiers needs to tell them apart; set by `lower`.
    pub payload: u64,
}

/// Runs one instruction on the lanes of a mask. Sources are read before a destination is written.
pub type LaneFn = fn(&mut Registers, &Operands, Mask);

/// A decoded lane instruction.
#[derive(Clone, Debug)]
pub struct LaneStep {
    pub run: LaneFn,
    pub operands: Operands,
}
