//! How a pinned reduction is lowered, decided without MLIR.
//!
//! - [`layout`]: which lane, warp and register holds which element of a tensor.
//! - [`plan`]: the steps that fold one axis, and the planner that chooses them.
//! - [`check`]: an independent proof that a plan folds the canonical tree.
//!
//! Dependencies point one way: `layout` ← `plan` ← `check`; nothing here knows a text format but
//! [`encoding`], which reads Triton's layout attributes.

pub mod layout;
