//! Do two compiled kernels return the same bits? Without a GPU, and without inputs.
#![deny(clippy::wildcard_enum_match_arm)]

mod launch;
mod signature;

pub use launch::Launch;
pub use signature::{Digest, Obstacle, Place, Signature};
