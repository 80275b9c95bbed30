//! Typed PTX: what the parser builds, the printer prints, and the executor decodes.

pub mod module;
pub mod op;
pub mod signature;
pub mod types;

pub use module::*;
pub use op::*;
pub use signature::*;
pub use types::*;
