//! Passes over the text of a Triton module: text in, text out.
//!
//! - [`build`]: makes operations, the one way in which emission code does.
//! - [`target`]: the GPU that a module is for.
//! - [`place`]: where in the user's source an operation comes from.
//! - [`refusal`]: what goes wrong, by whose fault it is.
//!
//! MLIR is used through its generic form only: no Triton dialect is registered, so every operation
//! and type of Triton is opaque here and goes back out as it came in.

pub mod build;
pub mod place;
pub mod refusal;
pub mod target;
mod text;
