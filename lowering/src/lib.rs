//! How a pinned reduction is lowered, decided without MLIR.
//!
//! - [`layout`]: which lane, warp and register holds which element of a tensor.
//! - [`encoding`]: Triton's layout attributes, read as linear layouts.
//! - [`tree`]: the canonical tree, by its definition.
//! - [`plan`]: the steps that fold one axis; [`planner`] chooses them under a [`cost`] model.
//! - [`shared`]: where elements lie in shared memory between two layouts.
//! - [`renumber`]: layouts of an operand that are cheaper to fold and as cheap to load.
//! - [`explain`]: a plan in words.
//! - [`check`]: an independent proof that a plan folds the canonical tree.
//!
//! Dependencies point one way: `layout` ← `plan` ← `planner`, `check`; only `encoding` knows a
//! text format.

pub mod check;
pub mod cost;
pub mod encoding;
pub mod explain;
pub mod layout;
mod placement;
pub mod plan;
pub mod planner;
pub mod renumber;
pub mod shared;
pub mod tree;
