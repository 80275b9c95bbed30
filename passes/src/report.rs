//! What is said about a rewrite, as JSON.

use serde::Serialize;

use crate::{
    place::Place,
    refusal::{Bug, Failure, Refused},
};

/// What was done to a module.
#[derive(Clone, Default, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// The pinned reductions, in the order of the module.
    pub reductions: Vec<Reduction>,
    /// The layouts that were given to operands of pinned reductions in place of Triton's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub layouts: Vec<Layout>,
    /// What the passes were asked to say.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
}

/// One pinned reduction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Reduction {
    /// Where it stands in the user's source.
    #[serde(flatten)]
    pub at: Place,
    /// The reduced axis.
    pub axis: u32,
    /// How many elements are reduced to one.
    pub extent: u64,
    /// The steps.
    pub plan: Vec<String>,
    /// How many of them are relayouts.
    pub relayouts: usize,
    /// How many values a lane receives from other lanes of its warp.
    pub exchanges: usize,
    /// The digest of the tree that is folded; empty when the order does not matter.
    pub digest: String,
    /// The plan in words for people, line by line, where it was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub explained: Vec<String>,
}

/// Another layout for the operand of a pinned reduction.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Layout {
    /// Where the reduction stands in the user's source.
    #[serde(flatten)]
    pub at: Place,
    /// `renumber` or `convert`.
    pub strategy: &'static str,
    /// The layout before.
    pub from: String,
    /// The layout after.
    pub to: String,
    /// The price of all that the rewrite touches, before it.
    pub cost_before: u64,
    /// The same after it.
    pub cost_after: u64,
}

/// Something to tell the user.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostic {
    /// `error` or `remark`.
    pub severity: &'static str,
    /// What.
    pub message: String,
    /// Where.
    #[serde(flatten)]
    pub at: Place,
    /// What else.
    pub notes: Vec<String>,
    /// What to do about it.
    pub help: Option<String>,
}

/// The answer to a module that was not rewritten.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Diagnostics {
    /// Why it was not. Never empty.
    pub diagnostics: Vec<Diagnostic>,
}

/// What we ask of a user who meets a fault of ours.
pub const PLEASE_REPORT: &str =
    "this is a fault of bitstable, not of the kernel: please report it with the kernel's TTGIR";

impl From<&Refused> for Diagnostic {
    fn from(refused: &Refused) -> Diagnostic {
        Diagnostic {
            severity: "error",
            message: refused.refusal.to_string(),
            at: refused.at.clone(),
            notes: refused.notes.clone(),
            help: refused.refusal.help().map(str::to_owned),
        }
    }
}

impl Diagnostics {
    /// A fault of ours.
    pub fn fault(message: String, at: Place) -> Diagnostics {
        let help = Some(PLEASE_REPORT.to_owned());
        let notes = Vec::new();
        let diagnostic = Diagnostic { severity: "error", message, at, notes, help };
        Diagnostics { diagnostics: vec![diagnostic] }
    }

    fn bug(bug: &Bug, at: &Place) -> Diagnostics {
        Diagnostics::fault(bug.to_string(), at.clone())
    }
}

impl From<&Failure> for Diagnostics {
    fn from(failure: &Failure) -> Diagnostics {
        match failure {
            Failure::Refused(all) => {
                Diagnostics { diagnostics: all.iter().map(Diagnostic::from).collect() }
            }
            Failure::Bug(bug, at) => Diagnostics::bug(bug, at),
        }
    }
}
