//! Certificates: that a kernel's own PTX folds its pinned reductions as the canonical tree says.
//!
//! # Idea
//! The compiler marks where elements enter a pinned reduction, where each combine ends, and where
//! results leave (`marks.rs`). The kernel is walked, and at each mark a value becomes an opaque *part*:
//! so many neighbouring elements of one line of the tensor, in one execution of the reduction. So
//! every combine stands alone: it must be made of two parts that are neighbours in the canonical tree,
//! and what it does with them, the lower left, must be what all others do (`walk/pins.rs`, `pattern.rs`). A result must
//! be the part that is the whole line it stands for. By induction, it is then the canonical tree.
//! # Invariants
//! - **V1** [`Proof::Certified`] says of every launch, of every execution of every mark that was
//!   walked: the terms are in a graph without a collision, and what combines do is compared by 128
//!   bits of hash.
//! - **V2** What could not be followed is [`Proof::Unknown`], unless every mark was walked before.
//! # Taken for granted
//! The marks: that they stand where the compiler says they do, and that places which hold one element
//! of a tensor hold equal values. What a combine does is compared with the other combines of its
//! reduction, not with the source: it is shown ([`Certificate::pattern`]) for a person to compare.
//! # Not here
//! That ptxas keeps what PTX says; reductions whose order does not matter, which have no marks.

pub(crate) mod marks;
pub(crate) mod pattern;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, rc::Rc};

use bitstable_ptx::{
    ir::{Body, Instruction, Module, Op, Operand},
    syntax::{SyntaxError, parse},
};

use crate::{
    Launch,
    check::{InputError, block, find},
    flow::Flow,
    graph::Graph,
    signature::Obstacle,
    told::{Stuck, Told},
    walk::{
        Walk, World,
        pins::{Mark, Pins},
    },
};
use marks::Marker;
pub(crate) use pattern::OPEN;

/// What a check of a kernel's marks comes to.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Proof {
    /// Every marked reduction folds the canonical tree; one certificate each, by number.
    Certified(Vec<Certificate>),
    /// One does not.
    Refuted(Fault),
    /// The kernel could not be followed.
    Unknown(Stuck),
}

/// What was found of one pinned reduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Certificate {
    /// Its number in the module.
    pub pin: u32,
    /// Elements that are reduced to one.
    pub extent: u64,
    /// Combines that were checked, an execution each; those of one term count once.
    pub combines: u64,
    /// Results that were checked.
    pub results: u64,
    /// What a combine does, for each operand: `L0` is its lower part of operand 0.
    pub pattern: Vec<String>,
    /// Where the walk ended, if it did after every mark was seen: executions after that were not.
    pub until: Option<Stuck>,
}

/// How a reduction differs from the canonical tree.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The reduction's number in the module.
    pub pin: u32,
    pub what: String,
    /// The mark at which it was found.
    pub at: Told,
}

/// Text that is no kernel.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum NotAKernel {
    #[error(transparent)]
    Syntax(#[from] SyntaxError),
    #[error(transparent)]
    Input(#[from] InputError),
}

/// Checks the pinned reductions that are marked in a kernel's PTX.
///
/// # Errors
/// When the text is no PTX with one entry function.
pub fn certify(text: &str) -> Result<Proof, NotAKernel> {
    let module = parse(text)?;
    let markers = match marks::scan(text) {
        Ok(markers) => markers,
        Err((line, what)) => return Ok(unmarked(line, what)),
    };
    let launch = Launch::default();
    let function = find(&module, None)?;
    let block = block(function, &launch)?;
    let Some(body) = &function.body else { return Err(InputError::NoEntry.into()) };
    let mut pins = match placed(markers, body) {
        Ok(pins) => pins,
        Err((line, what)) => return Ok(unmarked(line, what)),
    };
    let stuck = |obstacle: Obstacle| Stuck::new(obstacle, &module, Some(body));
    let flow = match Flow::of(body) {
        Ok(flow) => Rc::new(flow),
        Err(jump) => {
            let place = crate::walk::place(&body.instructions[jump.0]);
            let what = "a jump through a table".into();
            return Ok(Proof::Unknown(stuck(Obstacle { what, place })));
        }
    };
    let mut world = World::default();
    world.algebra.graph = Some(Graph::default());
    let mut walk = Walk::new(&module, function, body, flow, (&launch, block), &mut world);
    walk.pins = Some(Box::new(std::mem::take(&mut pins)));
    let ran = walk.run(None);
    let pins = walk.pins.take().unwrap_or_default();
    let collision = world.algebra.graph.as_ref().and_then(Graph::failure);
    Ok(judged(
        &pins,
        ran.err().map(|stop| *stop),
        collision.map(|f| f.to_string()),
        (&module, body),
    ))
}

fn judged(
    pins: &Pins,
    obstacle: Option<Obstacle>,
    collision: Option<String>,
    (module, body): (&Module, &Body),
) -> Proof {
    if let Some((pin, what, place)) = &pins.fault {
        let at = Told::new(place, module, Some(body));
        return Proof::Refuted(Fault { pin: *pin, what: what.clone(), at });
    }
    if pins.collided {
        return unmarked(0, "two parts of reductions have one hash".into());
    }
    if let Some(what) = collision {
        return unmarked(0, what);
    }
    let until = obstacle.map(|obstacle| Stuck::new(obstacle, module, Some(body)));
    match until {
        Some(stuck) if !pins.all_seen() => Proof::Unknown(stuck),
        until => Proof::Certified(pins.certificates(until.as_ref())),
    }
}

/// Nothing can be said, as of a line of PTX.
fn unmarked(line: u32, what: String) -> Proof {
    Proof::Unknown(Stuck { what, at: Told { line, source: None } })
}

/// The marks at their instructions.
fn placed(markers: Vec<Marker>, body: &Body) -> Result<Pins, (u32, String)> {
    let mut lines: BTreeMap<u32, Vec<(usize, &Instruction)>> = BTreeMap::new();
    for (pc, instruction) in body.instructions.iter().enumerate() {
        lines.entry(instruction.at.line).or_default().push((pc, instruction));
    }
    let mut pins = Pins::default();
    for marker in markers {
        let line = marker.line;
        let here = lines.get(&line).map_or(&[][..], Vec::as_slice);
        let mut targets = Vec::new();
        for (_, instruction) in here {
            match (&instruction.op, instruction.operands.first(), instruction.guard) {
                (Op::Mov { .. }, Some(Operand::Register(register)), None) => {
                    targets.push(*register)
                }
                _ => return Err((line, "a mark on an instruction that is no plain move".into())),
            }
        }
        let Some((last, _)) = here.last().filter(|_| targets.len() == marker.narrow.len()) else {
            return Err((line, "a mark without its moves".into()));
        };
        pins.place(*last, Mark { marker, targets }).map_err(|what| (line, what))?;
    }
    Ok(pins)
}
