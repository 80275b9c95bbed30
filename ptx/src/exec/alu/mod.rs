//! Lane instructions: an opcode with its types to a function over 32 lanes.

use super::lane::{LaneStep, Operands};
use crate::ir::Op;

/// An instruction that is not executed.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0} is not executed")]
pub struct Unsupported(pub String);

/// Finds the function that runs `op` on each lane.
pub fn lower(op: &Op, operands: Operands) -> Result<LaneStep, Unsupported> {
    let _ = operands;
    Err(Unsupported(format!("{op:?}")))
}
