//! Do two compiled kernels return the same bits? Without a GPU, and without inputs.
//!
//! # Idea
//! A kernel is walked once, for all threads of a CTA in step ([`walk`]). Thread numbers are numbers;
//! what the launch decides is linear in symbols (`linear.rs`); everything else is a term, named by
//! a hash of the operation that made it (`term.rs`). Shuffles, shared memory and moves only carry
//! terms about, so layouts leave no trace. What a kernel returns is the set of its outputs
//! (`outputs.rs`): address, value, condition. Kernels with one set return the same bits.
//! # Invariants
//! - **E1** Sound: kernels of one digest return the same bytes, NaNs being one, on every input and
//!   every launch that agrees with the facts given, under the assumptions below, if no hash collided.
//! - **E2** Total: what is not understood is an [`Obstacle`], and the digest is then that of the
//!   kernel's own text. No input makes it panic or run on.
//! - **E3** [`same`] decides by terms, not hashes.
//! # Assumptions
//! - Buffers of different pointer parameters do not overlap where one of them is written, and no
//!   two outputs of a launch overlap unless their addresses are equal.
//! - Index arithmetic does not overflow, as Triton's own lowering takes for granted (`nsw`).
//! - There is no data race on global memory, and no access out of bounds. Races in shared memory
//!   are noticed.
//! - Unless grids are given, both kernels are launched with one grid.
//! - `ptxas` translates as PTX says. Where it may fuse a product and a sum, the sum has a name of its
//!   own and is listed ([`Signature::contractions`]).
//! # Held by
//! E1: `tests/walk/`, `tests/mutants.rs` and the corpus under `tests/corpus`, all against the
//! executor. E2: the fuzz target `equiv_never_panics`. E3: `graph.rs`, which finds collisions.
//! # Not here
//! The PTX semantics of numbers ([`bitstable_ptx`]'s, which computes what is known).
#![deny(clippy::wildcard_enum_match_arm)]

mod check;
mod each;
mod flow;
pub mod fuzz;
mod graph;
mod label;
mod launch;
mod linear;
mod live;
mod outputs;
pub mod partition;
pub mod pins;
mod print;
mod same;
mod signature;
mod term;
mod told;
mod value;
mod walk;

pub use check::{InputError, signature};
pub use launch::Launch;
pub use same::{Difference, Verdict, same};
pub use signature::{Digest, Obstacle, Place, Signature};
pub use told::{Stuck, Told, Unlike};
