//! Passes over the text of a Triton module: text in, text out.
//!
//! - [`build`]: makes operations, the one way in which emission code does.
//! - [`target`]: the GPU that a module is for.
//!
//! MLIR is used through its generic form only: no Triton dialect is registered, so every operation
//! and type of Triton is opaque here and goes back out as it came in.

pub mod build;
pub mod target;
mod text;
