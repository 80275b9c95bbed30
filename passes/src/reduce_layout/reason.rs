//! Why a reduction's operands have the layout that they have.
//!
//! # Not here
//! The decision itself (`mod.rs`).

use melior::ir::operation::OperationLike;

use super::{
    component::Split,
    price::{Obstacle, Price},
};
use crate::{
    ir::{self, Op},
    place::Place,
    report::{Diagnostic, Layout},
};

/// What was done about one reduction, and why.
#[derive(Clone, Debug)]
pub enum Reason {
    /// Its operands have another layout now.
    Changed(Layout),
    /// Its result is the same in any order.
    AnyOrder,
    /// Its operands, or their layout, are not understood.
    Unread,
    /// There is no other layout to try.
    InOrder,
    /// The connected values do not agree on a layout.
    Split(Split),
    /// Something forbids the change.
    Obstacle(Obstacle),
    /// The change that comes nearest costs more than it saves.
    Dearer {
        /// What it costs.
        price: Price,
        /// What wants the layout that it has.
        borders: Vec<Border>,
    },
}

/// An operation that wants the layout that it has.
#[derive(Clone, Debug)]
pub struct Border {
    name: String,
    at: Place,
}

impl Border {
    /// Of an operation.
    pub fn of(op: Op<'_>) -> Border {
        Border { name: ir::name(op).to_owned(), at: Place::of(op.location()) }
    }
}

impl From<Split> for Reason {
    fn from(split: Split) -> Reason {
        Reason::Split(split)
    }
}

impl From<Obstacle> for Reason {
    fn from(obstacle: Obstacle) -> Reason {
        Reason::Obstacle(obstacle)
    }
}

impl Reason {
    /// Of two reasons the one that says more: what came nearest to a change.
    pub fn or(self, other: Reason) -> Reason {
        let rank = |reason: &Reason| match reason {
            Reason::Dearer { price, .. } => (4, price.gain()),
            Reason::Obstacle(_) => (3, 0),
            Reason::Split(_) => (2, 0),
            Reason::Unread => (1, 0),
            Reason::Changed(_) | Reason::AnyOrder | Reason::InOrder => (0, 0),
        };
        if rank(&other) > rank(&self) { other } else { self }
    }

    /// What is said about the reduction `op`.
    pub fn remark(&self, op: Op<'_>) -> Diagnostic {
        let (message, notes) = match self {
            Reason::Changed(Layout { strategy, to, cost_before, cost_after, .. }) => {
                let done = if *strategy == "convert" { "converted" } else { "renumbered" };
                (format!("operands {done} to {to}: cost {cost_before} -> {cost_after}"), Vec::new())
            }
            Reason::AnyOrder => kept("any order gives one result, and Triton chooses it"),
            Reason::Unread => kept("it is not understood"),
            Reason::InOrder => kept("its places fold in order as they are"),
            Reason::Split(Split::Meet(at)) => kept(&format!("two layouts would meet at {at}")),
            Reason::Obstacle(obstacle) => kept(&said(obstacle)),
            Reason::Dearer { price: Price { before, after, borders }, borders: all } => {
                let note =
                    |b: &Border| format!("{} at {} wants the layout that it has", b.name, b.at);
                let conversions = match borders {
                    0 => String::new(),
                    _ => format!(", {borders} of it for conversions"),
                };
                let message =
                    format!("the cheapest other costs {after}{conversions}, this one {before}");
                (kept(&message).0, all.iter().map(note).collect())
            }
        };
        let at = Place::of(op.location());
        Diagnostic { severity: "remark", message, at, notes, help: None }
    }
}

fn kept(why: &str) -> (String, Vec<String>) {
    (format!("the operands keep their layout: {why}"), Vec::new())
}

fn said(obstacle: &Obstacle) -> String {
    match obstacle {
        Obstacle::Memory(op, at) => format!("{op} at {at} would access more of memory in another"),
        Obstacle::Unplanned(at) => format!("what is connected at {at} is not understood"),
        Obstacle::Registers { needed, limit } => {
            format!(
                "a conversion takes {needed} registers of a thread, and max-registers is {limit}"
            )
        }
        Obstacle::Shared { needed, limit } => {
            format!("a conversion takes {needed} bytes of shared memory, and max-shared is {limit}")
        }
    }
}
