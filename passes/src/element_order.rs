//! Whether the elements of a pinned operand are in the tensor's order.
//!
//! # Idea
//! `tt.reshape` with `allow_reorder`, and `tt.cat`, may put elements in any order, and Triton picks
//! the one that its layout makes cheapest. A tree over such a tensor is a function of the layout,
//! whatever the tree. So the operand's history is walked, up to loads and reductions.
//! # Invariants
//! - **O1** Where the walk does not know how values flow (an operation with regions that is not
//!   listed here) it follows every tensor that might.
//! # Not here
//! What was stored to memory in such an order, and loaded again.

use std::collections::BTreeSet;

use melior::ir::{ValueLike, operation::OperationLike};

use crate::ir::{self, Blk, Op, Source, Val};

/// The first operation in the history of `values` that reorders elements, nearest first.
pub fn reordering<'c>(values: &[Val<'c>]) -> Option<Op<'c>> {
    history(values).into_iter().find(|&operation| reorders(operation))
}

/// Whether `operation` leaves the order of the elements open.
pub fn reorders(operation: Op<'_>) -> bool {
    match ir::name(operation) {
        "tt.cat" => true,
        "tt.reshape" => operation.has_attribute("allow_reorder"),
        _ => false,
    }
}

/// The operations through which tensors flow to `values`.
pub fn history<'c>(values: &[Val<'c>]) -> Vec<Op<'c>> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    let mut rest: Vec<Val<'c>> = values.to_vec();
    while let Some(value) = rest.pop() {
        if !ir::is_tensor(value) || !seen.insert(value.to_raw().ptr as usize) {
            continue;
        }
        match ir::source(value) {
            Source::Result(operation, number) => {
                found.push(operation);
                rest.extend(operands_of(operation, number));
            }
            Source::Argument(block, number) => rest.extend(incoming(block, number)),
        }
    }
    found
}

/// What flows into result `number` of `operation`.
fn operands_of(operation: Op<'_>, number: usize) -> Vec<Val<'_>> {
    let operands = ir::operands(operation);
    let yielded = |region: usize, index: usize| {
        yields(operation, region).into_iter().filter_map(move |y| y.get(index).copied())
    };
    match ir::name(operation) {
        name if is_source(name) => Vec::new(),
        "scf.for" => yielded(0, number).chain(operands.get(3 + number).copied()).collect(),
        "scf.if" => yielded(0, number).chain(yielded(1, number)).collect(),
        "scf.while" => yielded(0, number + 1).collect(),
        _ if operation.region_count() > 0 => everything(operation),
        _ => operands,
    }
}

/// What flows into argument `number` of `block`.
fn incoming(block: Blk<'_>, number: usize) -> Vec<Val<'_>> {
    let Some(parent) = ir::parent(block) else { return Vec::new() };
    let operands = ir::operands(parent);
    let yielded = |region: usize, index: usize| {
        yields(parent, region).into_iter().filter_map(move |y| y.get(index).copied())
    };
    let predecessors = ir::predecessors(block);
    if !predecessors.is_empty() {
        let ends = predecessors.into_iter().filter_map(ir::terminator);
        return ends.flat_map(ir::operands).collect();
    }
    match (ir::name(parent), ir::region_number(parent, block)) {
        ("tt.func", _) => Vec::new(),
        ("scf.for", _) if number == 0 => Vec::new(),
        ("scf.for", _) => yielded(0, number - 1).chain(operands.get(2 + number).copied()).collect(),
        ("scf.while", Some(0)) => yielded(1, number).chain(operands.get(number).copied()).collect(),
        ("scf.while", _) => yielded(0, number + 1).collect(),
        _ => everything(parent),
    }
}

/// The operands of the operations that end the blocks of a region.
fn yields(operation: Op<'_>, region: usize) -> Vec<Vec<Val<'_>>> {
    let Ok(region) = operation.region(region) else { return Vec::new() };
    ir::blocks(region).into_iter().filter_map(ir::terminator).map(ir::operands).collect()
}

/// Every value that an operation with regions may pass on.
fn everything(operation: Op<'_>) -> Vec<Val<'_>> {
    let regions = 0..operation.region_count();
    let ends = regions.flat_map(|r| yields(operation, r)).flatten();
    ends.chain(ir::operands(operation)).collect()
}

/// Operations whose results are in the tensor's own order, whatever their operands are in.
fn is_source(name: &str) -> bool {
    name.ends_with("load")
        || name.contains("load_")
        || name.starts_with("tt.atomic")
        || matches!(name, "tt.reduce" | "tt.make_range" | "tt.splat" | "arith.constant")
}
