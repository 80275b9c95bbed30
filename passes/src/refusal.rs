//! What goes wrong, by whose fault it is.
//!
//! A [`Refusal`] is about the user's input, or about what is not supported yet: it says what,
//! where, and what to do. A [`Bug`] is ours and asks for a report. Both are values; their text is
//! made where they leave the library ([`crate::report`]).

use bitstable_lowering::{check::PlanFault, encoding::EncodingError, planner::NoPlan};

use crate::{place::Place, target::TargetError};

/// Why a module is not rewritten: the input's doing.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Refusal {
    /// The text is not a module in generic form.
    #[error("the module does not parse: {message}")]
    Parse {
        /// What MLIR said.
        message: String,
    },
    /// Brackets nest deeper than any compiler would write.
    #[error("the module nests brackets more than {limit} deep")]
    TooDeep {
        /// The deepest nesting that is read.
        limit: usize,
    },
    /// The module is too large to be a kernel.
    #[error("the module is {bytes} bytes long, more than the {limit} that are read")]
    TooLarge {
        /// Its length.
        bytes: usize,
        /// The greatest length that is read.
        limit: usize,
    },
    /// The pipeline is not understood.
    #[error("pipeline: {message}")]
    Pipeline {
        /// What is wrong, with the choices.
        message: String,
    },
    /// The module does not say what it is for.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A GPU whose lanes we cannot make exchange values.
    #[error("pinned reductions are not supported on {target}")]
    NoExchanges {
        /// The GPU.
        target: String,
    },
    /// An order that we do not know.
    #[error("tt.order is {found} on {op}")]
    UnknownOrder {
        /// The operation.
        op: String,
        /// The attribute's value.
        found: String,
    },
    /// The order stands on something that has none.
    #[error("tt.order on {op}: only tt.reduce has an order")]
    OrderElsewhere {
        /// The operation.
        op: String,
    },
    /// The mark of a pinned reduction reached something else.
    #[error("a reduction pinned to inner_tree was turned into {op} and lost its order")]
    LostPin {
        /// What uses the marked value.
        op: String,
    },
    /// The reduction is not what Triton's verifier lets through.
    #[error("tt.reduce is malformed: {what}")]
    Malformed {
        /// What is wrong with it.
        what: String,
    },
    /// An element type that no combine is emitted for.
    #[error("a pinned tt.reduce over elements of type {ty} is not supported")]
    ElementType {
        /// The type.
        ty: String,
    },
    /// The layout cannot be read, and cannot be converted from.
    #[error("tt.reduce pinned to inner_tree, axis {axis}: {error}")]
    Encoding {
        /// The reduced axis.
        axis: u32,
        /// What is not understood.
        error: EncodingError,
    },
    /// The layout is of another machine than the module's attributes say.
    #[error("{encoding} has {found} {what} where the module has {expected}")]
    LayoutSize {
        /// The attribute.
        encoding: String,
        /// Lanes, warps or CTAs.
        what: &'static str,
        /// How many the layout has.
        found: u64,
        /// How many the module has.
        expected: u64,
    },
    /// The planner has no plan.
    #[error("tt.reduce pinned to inner_tree, axis {axis}: {why}")]
    NoPlan {
        /// The reduced axis.
        axis: u32,
        /// Why.
        why: NoPlan,
    },
    /// An operation that a pinned combine may not have, or that is not emitted yet.
    #[error("the combine function of a pinned reduction holds {op}: {why}")]
    CombineOp {
        /// The operation, with its type where that matters.
        op: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The combine function's shape, not one of its operations.
    #[error("the combine function of a pinned reduction {what}")]
    CombineShape {
        /// What is wrong with it.
        what: String,
    },
    /// The order of the elements is not the tensor's but its layout's.
    #[error("a pinned reduction reads elements in the order of {op}, which depends on the layout")]
    Reordered {
        /// The operation.
        op: String,
    },
}

impl Refusal {
    /// What the user can do about it.
    pub fn help(&self) -> Option<&'static str> {
        Some(match self {
            Refusal::Parse { .. } => {
                "print the module with --mlir-print-op-generic and --mlir-print-local-scope"
            }
            Refusal::UnknownOrder { .. } => "the choices are: \"inner_tree\"",
            Refusal::OrderElsewhere { .. } => "remove tt.order from the operation",
            Refusal::LostPin { .. } => {
                "compile with the order that was asked for, or drop order=\"inner_tree\""
            }
            Refusal::ElementType { .. } => {
                "convert the operand first: f64, f32, f16, bf16, i1, i8, i16, i32 and i64 are \
                 supported"
            }
            Refusal::Encoding { .. } => {
                "convert the operand to #ttg.linear first, or drop order=\"inner_tree\""
            }
            Refusal::NoPlan { .. } => "use num_ctas=1, or drop order=\"inner_tree\"",
            Refusal::CombineOp { .. } | Refusal::CombineShape { .. } => {
                "write the combine function with arithmetic on its arguments alone"
            }
            Refusal::Reordered { .. } => "use tl.join, or tl.reshape without can_reorder",
            Refusal::NoExchanges { .. } => "drop order=\"inner_tree\" on this GPU",
            Refusal::TooDeep { .. }
            | Refusal::TooLarge { .. }
            | Refusal::Pipeline { .. }
            | Refusal::Target(_)
            | Refusal::Malformed { .. }
            | Refusal::LayoutSize { .. } => return None,
        })
    }
}

/// A refusal and where in the user's source it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refused {
    /// What is refused.
    pub refusal: Refusal,
    /// Where.
    pub at: Place,
    /// What else MLIR had to say.
    pub notes: Vec<String>,
}

impl Refusal {
    /// The refusal, at a place.
    pub fn at(self, at: Place) -> Refused {
        Refused { refusal: self, at, notes: Vec::new() }
    }
}

/// A fault of this library. The user's input is right, or at least we should have said otherwise.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Bug {
    /// The planner made a plan that the checker does not accept.
    #[error("the plan does not fold the canonical tree: {fault}\nsite: {site}\nplan:\n{plan}")]
    Plan {
        /// What the checker found.
        fault: PlanFault,
        /// The site, for the report.
        site: String,
        /// The plan, for the report.
        plan: String,
    },
    /// The module that we made does not verify.
    #[error("the rewritten module does not verify: {message}")]
    Verify {
        /// What MLIR said.
        message: String,
    },
    /// A pass found its own work undone.
    #[error("{what}")]
    Invariant {
        /// Which invariant.
        what: String,
    },
}

/// Why there is no rewritten module.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Failure {
    /// The input's fault. Never empty.
    Refused(Vec<Refused>),
    /// Ours.
    Bug(Bug, Place),
}

impl From<Refused> for Failure {
    fn from(refused: Refused) -> Failure {
        Failure::Refused(vec![refused])
    }
}
