//! Mutation testing of the checker: kernels, changed in one place, run and walked.
//!
//! # Idea
//! A changed kernel either returns other bytes on some draw, or errs, or is not seen to differ. All
//! changes of one kernel, and the kernel itself, are put into classes by the checker's digest; a
//! class whose members returned different bytes is an *over-merge*: the checker called different
//! things the same. A class is as many pairs as it has members, so each change also tests all
//! others.
//! # Invariants
//! - **U1** Everything is a function of the seed: kernels, draws and changes.
//! # Not here
//! What is not proved same though equal is only counted.

pub mod case;
pub mod change;
pub mod draw;
pub mod judge;
pub mod ops;
pub mod random;
pub mod rig;
