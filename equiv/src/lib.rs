//! Do two compiled kernels return the same bits? Without a GPU, and without inputs.
#![deny(clippy::wildcard_enum_match_arm)]

mod check;
mod each;
mod flow;
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
