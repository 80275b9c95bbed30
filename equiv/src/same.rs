//! Two kernels, term by term.
//!
//! # Idea
//! Both are walked in one graph. Equal names are then equal terms, not equal hashes; where outputs
//! have different names, the two terms are descended together to the first operation that is not
//! the same.
//! # Invariants
//! - **C1** [`Verdict::Same`] is said of graphs in which no two terms met under one hash.
//! - **C2** A kernel that could not be followed is the same as its own text alone.

use bitstable_ptx::ir::{Body as Code, Module};

use crate::{
    check::{InputError, Walked, walk},
    graph::{Graph, Maker, Node},
    launch::Launch,
    outputs::{Address, Written},
    print::Printer,
    signature::{Obstacle, Place},
    term::Body,
    walk::{World, place},
};

/// A kernel: its module, its entry's name where there are several, and what is known of its launch.
pub type Kernel<'a> = (&'a Module, Option<&'a str>, &'a Launch);

/// What comparing comes to.
#[must_use]
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Equal bits, on every input.
    Same,
    /// Not proved equal: the first places where the terms differ.
    Different(Vec<Difference>),
    /// One of them could not be followed, or the terms are too many.
    Unknown(Obstacle),
}

/// Where two kernels' terms for one output part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// The output's address, as the kernels' parameters have it.
    pub output: String,
    /// Where either kernel computes what the other does not.
    pub at: [Option<Place>; 2],
    /// What either computes there.
    pub text: String,
}

/// Differences that are told.
const MOST_TOLD: usize = 8;

/// Compares two kernels exactly.
///
/// # Errors
/// When an input is no kernel that can be launched.
pub fn same(a: Kernel<'_>, b: Kernel<'_>) -> Result<Verdict, InputError> {
    let mut world = World::default();
    world.algebra.graph = Some(Graph::default());
    let first = walk(a.0, a.1, a.2, &mut world)?;
    if let Some(graph) = &mut world.algebra.graph {
        graph.maker = Maker { kernel: 1, pc: 0 };
    }
    let second = walk(b.0, b.1, b.2, &mut world)?;
    if first.signature.obstacle.is_some() && first.signature == second.signature {
        return Ok(Verdict::Same);
    }
    for walked in [&first, &second] {
        if let Some(obstacle) = &walked.signature.obstacle {
            return Ok(Verdict::Unknown(obstacle.clone()));
        }
    }
    let Some(graph) = &world.algebra.graph else { return Err(InputError::NoEntry) };
    if let Some(failure) = graph.failure() {
        let place = Place { line: 0, source: None };
        return Ok(Verdict::Unknown(Obstacle { what: failure.to_string(), place }));
    }
    let found = differences(graph, &world, (&first, &second), [a, b]);
    if found.is_empty() && first.outputs.updates() != second.outputs.updates() {
        return Ok(Verdict::Different(vec![Difference {
            output: "atomic updates".into(),
            at: [None, None],
            text: "they are not the same".into(),
        }]));
    }
    Ok(if found.is_empty() { Verdict::Same } else { Verdict::Different(found) })
}

fn differences(
    graph: &Graph,
    world: &World,
    (first, second): (&Walked, &Walked),
    kernels: [Kernel<'_>; 2],
) -> Vec<Difference> {
    let printer = Printer { graph, labels: &world.labels };
    let code = kernels.map(code);
    let mut found = Vec::new();
    let mut all = pairs(first, second);
    // What both store, and differently, says more than what one alone stores.
    all.sort_by_key(|(_, pair)| pair.iter().any(Option::is_none));
    for (address, pair) in all {
        if found.len() >= MOST_TOLD {
            break;
        }
        let (a, b) = match pair {
            [Some(a), Some(b)] => (a, b),
            [Some(_), None] | [None, Some(_)] => {
                let which = if pair[0].is_some() { "first" } else { "second" };
                let difference = Difference {
                    output: printer.address(address),
                    at: pair.map(|written| written.map(|written| written.place.clone())),
                    text: format!("only the {which} stores there"),
                };
                tell(&mut found, difference);
                continue;
            }
            [None, None] => continue,
        };
        let (one, other) = if a.output.when == b.output.when {
            (a.output.value, b.output.value)
        } else {
            (a.output.when, b.output.when)
        };
        let (one, other) = parting(graph, one, other);
        let at = |body: Body, kernel: usize, written: &Written| {
            let maker = graph.maker(body);
            let own = maker.filter(|maker| usize::from(maker.kernel) == kernel);
            let made = own.and_then(|maker| code[kernel]?.instructions.get(maker.pc as usize));
            Some(made.map_or_else(|| written.place.clone(), place))
        };
        let difference = Difference {
            output: printer.address(address),
            at: [at(one, 0, a), at(other, 1, b)],
            text: format!(
                "the first computes {}, the second {}",
                printer.term(one),
                printer.term(other)
            ),
        };
        tell(&mut found, difference);
    }
    found
}

/// One difference is many outputs': it is told once.
fn tell(found: &mut Vec<Difference>, difference: Difference) {
    if !found.iter().any(|known| known.at == difference.at) {
        found.push(difference);
    }
}

fn code<'a>((module, entry, _): Kernel<'a>) -> Option<&'a Code> {
    let mut entries = module.functions.iter().filter(|f| f.entry && f.body.is_some());
    let found = entries.find(|f| entry.is_none_or(|name| f.name == name))?;
    found.body.as_ref()
}

/// Outputs that are not the same, in the order of their addresses.
fn pairs<'a>(first: &'a Walked, second: &'a Walked) -> Vec<(Address, [Option<&'a Written>; 2])> {
    let (a, b) = (first.outputs.sorted(), second.outputs.sorted());
    let mut all: Vec<(Address, [Option<&Written>; 2])> = Vec::new();
    let (mut a, mut b) = (a.into_iter().peekable(), b.into_iter().peekable());
    loop {
        let key = |next: Option<&(Address, &Written)>| next.map(|(address, _)| *address);
        let (x, y) = (key(a.peek()), key(b.peek()));
        let (Some(least), left, right) = (match (x, y) {
            (None, None) => (None, false, false),
            (Some(x), None) => (Some(x), true, false),
            (None, Some(y)) => (Some(y), false, true),
            (Some(x), Some(y)) => (Some(x.min(y)), x <= y, y <= x),
        }) else {
            return all;
        };
        let one = if left { a.next().map(|(_, written)| written) } else { None };
        let other = if right { b.next().map(|(_, written)| written) } else { None };
        let same = match (one, other) {
            (Some(one), Some(other)) => one.same_as(other),
            (None, _) | (_, None) => false,
        };
        if !same {
            all.push((least, [one, other]));
        }
    }
}

/// Descends while the terms are one operation with one operand that differs.
fn parting(graph: &Graph, mut a: Body, mut b: Body) -> (Body, Body) {
    loop {
        let (Some(x), Some(y)) = (graph.get(a), graph.get(b)) else { return (a, b) };
        let (x_args, y_args) = (operands(graph, x), operands(graph, y));
        let multisets = matches!((x, y), (Node::Join { .. }, Node::Join { .. }));
        if !alike(x, y) || x_args.len() != y_args.len() && !multisets {
            return (a, b);
        }
        // Operands that commute may stand in another order: what both have is taken away.
        let only = |own: &[Body], other: &[Body]| {
            let mut rest = own.to_vec();
            for body in other {
                if let Some(at) = rest.iter().position(|known| known == body) {
                    rest.swap_remove(at);
                }
            }
            rest
        };
        let (left, right) = (only(&x_args, &y_args), only(&y_args, &x_args));
        let (Some(one), Some(other)) = (left.first(), right.first()) else { return (a, b) };
        // Where both operands of a tree differ, its lower levels may: one side is followed as far
        // as it leads to an operation that is not alike.
        if left.len() > 2 || multisets && (left.len(), right.len()) != (1, 1) {
            return (a, b);
        }
        (a, b) = (*one, *other);
    }
}

fn alike(a: &Node, b: &Node) -> bool {
    match (a, b) {
        (Node::Apply { label: x, .. }, Node::Apply { label: y, .. })
        | (Node::Member { label: x, .. }, Node::Member { label: y, .. })
        | (Node::Join { label: x, .. }, Node::Join { label: y, .. }) => x == y,
        (Node::Select { .. }, Node::Select { .. }) | (Node::Flipped(_), Node::Flipped(_)) => true,
        (Node::Pack { bytes: x, .. }, Node::Pack { bytes: y, .. }) => x == y,
        (Node::Slice(_, i, x), Node::Slice(_, j, y)) => (i, x) == (j, y),
        (Node::Other { what: x, .. }, Node::Other { what: y, .. }) => x == y,
        _ => false,
    }
}

fn operands(graph: &Graph, node: &Node) -> Vec<Body> {
    match node {
        Node::Apply { args, .. } => args.to_vec(),
        Node::Join { label, parts } => graph.members(*label, parts),
        Node::Member { of, .. } | Node::Flipped(of) | Node::Slice(of, ..) => vec![*of],
        Node::Select { predicate, arms } => vec![*predicate, arms[0], arms[1]],
        Node::Pack { parts, .. } => parts.to_vec(),
        Node::Other { args, .. } => args.clone(),
        Node::Constant { .. }
        | Node::Symbol(_)
        | Node::Linear { .. }
        | Node::Offset { .. }
        | Node::Load(..) => Vec::new(),
    }
}
