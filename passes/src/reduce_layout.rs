//! The pass `reduce-layout`: gives the operands of pinned reductions a layout that folds cheaply.
//!
//! # Idea
//! A layout is a name, and renaming it everywhere in a module changes which thread holds what, but
//! no value: in MLIR's text that is a substitution of one attribute by another. For a pinned
//! reduction the bits cannot move, so the only question is the price, and the planner answers it
//! for the module before and after.
//! # Invariants
//! - **L1** Only layouts whose every user takes any layout are renamed ([`TAKES_ANY`]), and none
//!   that decides the bits of a reduction whose order is free.
//! - **L2** The module after the pass is parsed and verified like any input.
//! - **L3** Where something is not understood, nothing is renamed; the pass refuses nothing.
//! # Held by
//! L1: [`renamable`]. L2: the caller's session. L3: every question here answers with an `Option`.
//! # Not here
//! Which names there are (`bitstable_lowering::renumber`). Conversions of an operand to another
//! layout, which cost something themselves.

use std::collections::{BTreeMap, BTreeSet};

use bitstable_lowering::{encoding, layout::Dim, planner, renumber};
use melior::ir::{TypeLike, ValueLike, operation::OperationLike};

use crate::{
    combine_kind::{self, Kind},
    element::{Element, Tensor},
    ir::{self, Op, Val},
    pin_reduce,
    session::Session,
    site::{self, Reduction, Way},
    target::{Machine, Target},
    text,
};

/// Operations, beside all of `arith` and `math`, that accept any layout for their operands and
/// results, as long as it is one. Not here: what infers a layout from another (`tt.reshape`,
/// `tt.trans`, `tt.join`), what wants a certain one (`tt.dot`, asynchronous copies, descriptors),
/// what gives an order to its lanes (`tt.scan`, `tt.print`, atomics).
const TAKES_ANY: [&str; 32] = [
    "amdg.buffer_load",
    "amdg.buffer_store",
    "cf.br",
    "cf.cond_br",
    "scf.condition",
    "scf.for",
    "scf.if",
    "scf.while",
    "scf.yield",
    "tt.addptr",
    "tt.bitcast",
    "tt.broadcast",
    "tt.clampf",
    "tt.expand_dims",
    "tt.extern_elementwise",
    "tt.fp_to_fp",
    "tt.int_to_ptr",
    "tt.load",
    "tt.make_range",
    "tt.mulhiui",
    "tt.precise_divf",
    "tt.precise_sqrt",
    "tt.ptr_to_int",
    "tt.reduce",
    "tt.reduce.return",
    "tt.splat",
    "tt.store",
    "tt.unsplat",
    "ttg.convert_layout",
    "ttg.local_alloc",
    "ttg.local_load",
    "ttg.local_store",
];

/// Memory is read and written through these; their sectors are to stay whole.
const ACCESSES: [&str; 4] = ["tt.load", "tt.store", "amdg.buffer_load", "amdg.buffer_store"];

/// A layout that pinned reductions read, and what is known of its use.
struct Name {
    shape: bitstable_lowering::layout::Shape,
    axes: BTreeSet<usize>,
}

/// The module's text with cheaper layouts, or nothing if it is cheapest as it is.
///
/// `current` is the text of the module whose operation is `root`.
pub fn run(session: &Session, root: Op<'_>, current: &str) -> Option<String> {
    let machine = Machine::of_module(&root).ok()?;
    let operations = ir::walk(root);
    let reductions = reductions(&operations, &machine)?;
    let mut best = (price(&reductions, &machine)?, None);
    for (name, used) in names(&reductions) {
        let Some(width) = renamable(&operations, &name) else { continue };
        let before = encoding::parse(&name).ok()?;
        for &axis in &used.axes {
            let bytes = u64::from(width).div_ceil(8);
            let sector = sector_bytes(&machine.target);
            let found = renumber::candidate(&before, &used.shape, Dim(axis), bytes, sector);
            let Some(other) = found else { continue };
            let renamed = current.replace(&name, &other);
            let module = session.parse(&renamed).ok()?;
            let operations = ir::walk(ir::root(&module));
            let after = self::reductions(&operations, &machine)?;
            let cost = price(&after, &machine)?;
            if cost < best.0 {
                best = (cost, Some(renamed));
            }
        }
    }
    best.1
}

/// What memory transfers at the least: a sector of an NVIDIA line, half a line on AMD.
fn sector_bytes(target: &Target) -> u64 {
    match target {
        Target::Nvidia { .. } => 32,
        Target::Amd { .. } => 64,
    }
}

/// The pinned reductions. `pin-reduce` says what is wrong with one that cannot be read.
fn reductions<'c>(operations: &[Op<'c>], machine: &Machine) -> Option<Vec<Reduction<'c>>> {
    let pinned = site::pinned(operations).ok()?;
    pinned.into_iter().map(|op| site::read(op, machine).ok()).collect()
}

fn price(reductions: &[Reduction<'_>], machine: &Machine) -> Option<u32> {
    let costs = pin_reduce::costs(&machine.target);
    let price = |reduction: &Reduction<'_>| match &reduction.way {
        Way::LeftToTriton => Some(0),
        Way::Lowered(lowered) => planner::plan(&lowered.site, &costs).ok().map(|plan| plan.cost),
    };
    reductions.iter().map(price).sum()
}

/// The layouts that are lowered, with the axes along which each is reduced.
fn names(reductions: &[Reduction<'_>]) -> BTreeMap<String, Name> {
    let mut names: BTreeMap<String, Name> = BTreeMap::new();
    for reduction in reductions.iter().filter(|r| matches!(r.way, Way::Lowered(_))) {
        let operand = ir::operands(reduction.op).first().copied();
        let Some(encoding) = operand.and_then(Tensor::of).and_then(|t| t.encoding) else {
            continue;
        };
        let name = names
            .entry(text::printed(encoding))
            .or_insert_with(|| Name { shape: reduction.shape.clone(), axes: BTreeSet::new() });
        if name.shape == reduction.shape {
            name.axes.insert(reduction.axis as usize);
        }
    }
    names
}

/// The width in bits of the narrowest element that memory accesses in the layout `name`, if every
/// operation that touches the layout takes any; 32 if none is accessed.
fn renamable(operations: &[Op<'_>], name: &str) -> Option<u32> {
    let mut mentions = Mentions { name, known: BTreeMap::new() };
    let mut narrowest: Option<u32> = None;
    for &op in operations {
        let arguments = (0..op.region_count())
            .filter_map(|r| op.region(r).ok())
            .flat_map(ir::blocks)
            .flat_map(ir::arguments);
        let values: Vec<Val<'_>> =
            ir::operands(op).into_iter().chain(ir::results(op)).chain(arguments).collect();
        if !values.iter().any(|&value| mentions.value(value)) {
            continue;
        }
        if !takes_any(op) {
            return None;
        }
        if ACCESSES.contains(&ir::name(op)) {
            let widths = values.iter().filter(|&&v| mentions.value(v)).filter_map(|&v| width(v));
            narrowest = narrowest.into_iter().chain(widths).min();
        }
    }
    Some(narrowest.unwrap_or(32))
}

fn takes_any(op: Op<'_>) -> bool {
    let name = ir::name(op);
    let any = name.starts_with("arith.") || name.starts_with("math.") || TAKES_ANY.contains(&name);
    any && !is_free(op)
}

/// Whether `op` is a reduction whose bits its layout decides. Pinning another must not move them.
fn is_free(op: Op<'_>) -> bool {
    let insensitive = || {
        let block = combine_kind::block(op);
        block.is_ok_and(|b| matches!(combine_kind::kind(b), Kind::OrderInsensitive))
    };
    ir::name(op) == "tt.reduce" && !op.has_attribute(site::ORDER) && !insensitive()
}

/// The width of a loaded or stored element; masks are no elements, and pointers have none here.
fn width(value: Val<'_>) -> Option<u32> {
    let element = text::printed_type(Tensor::of(value)?.element);
    match Element::parse(&element) {
        Some(Element::Int(1)) => None,
        Some(known) => Some(known.bits()),
        None => element.starts_with('f').then_some(8),
    }
}

/// Which types mention a layout; a module has few types and many values.
struct Mentions<'a> {
    name: &'a str,
    known: BTreeMap<usize, bool>,
}

impl Mentions<'_> {
    fn value(&mut self, value: Val<'_>) -> bool {
        let ty = value.r#type();
        let name = self.name;
        *self
            .known
            .entry(ty.to_raw().ptr as usize)
            .or_insert_with(|| text::printed_type(ty).contains(name))
    }
}
