//! The shield: an identity that hides a pinned reduction from Triton's own rewrites.
//!
//! # Idea
//! Before the layout passes, each operand of a pinned reduction goes through a pure, elementwise
//! call of the symbol `bitstable.pin`. Layouts flow through it, but `triton-combine` sees no
//! product below a sum and no reshape below a reduction, and `tritongpu-optimize-thread-locality`
//! sees no load. At the end it is taken off again.
//! # Invariants
//! - **H1** A shield that is still there leads to a pinned reduction, or that reduction lost its
//!   order on the way; the second is refused.
//! # Held by
//! H1: [`check`].

use std::collections::BTreeSet;

use melior::ir::{ValueLike, operation::OperationLike};

use crate::{
    build::Builder,
    element_order,
    ir::{self, Op, Val},
    place::Place,
    refusal::{Refusal, Refused},
    session::Session,
    site, text,
};

const CALL: &str = "tt.extern_elementwise";
const SYMBOL: &str = "bitstable.pin";

/// Whether `op` is a shield.
pub fn is_shield(op: Op<'_>) -> bool {
    ir::name(op) == CALL
        && op.operand_count() == 1
        && op.result_count() == 1
        && op.attribute("symbol").ok().and_then(text::string).as_deref() == Some(SYMBOL)
}

/// Refuses shields that lead elsewhere than to pinned reductions.
pub fn check(shields: &[Op<'_>]) -> Vec<Refused> {
    let mut refused: Vec<Refused> = Vec::new();
    for &shield in shields {
        if let Some(user) = stranger(shield) {
            let op = ir::name(user).to_owned();
            let refusal = Refusal::LostPin { op }.at(Place::of(shield.location()));
            if !refused.contains(&refusal) {
                refused.push(refusal);
            }
        }
    }
    refused
}

/// What Triton moves below an elementwise operation, and so below a shield.
const MOVED: [&str; 6] =
    ["ttg.convert_layout", "tt.splat", "tt.broadcast", "tt.expand_dims", "tt.reshape", "tt.trans"];

/// A user of the shielded value that is no pinned reduction; data movement and loops are seen
/// through.
fn stranger<'c>(shield: Op<'c>) -> Option<Op<'c>> {
    let mut seen = BTreeSet::new();
    let mut rest: Vec<Val<'c>> = ir::results(shield);
    while let Some(value) = rest.pop() {
        if !seen.insert(value.to_raw().ptr as usize) {
            continue;
        }
        for (user, number) in ir::uses(value) {
            match ir::name(user) {
                "tt.reduce" if user.has_attribute(site::ORDER) => {}
                name if MOVED.contains(&name) => rest.extend(ir::results(user)),
                "scf.yield" => rest.extend(after_yield(user, number)),
                "scf.for" if number >= 3 => rest.extend(carried(user, number - 3)),
                _ => return Some(user),
            }
        }
    }
    None
}

/// Where operand `number` of a yield goes.
fn after_yield(user: Op<'_>, number: usize) -> Vec<Val<'_>> {
    match user.block().and_then(ir::parent) {
        Some(parent) if ir::name(parent) == "scf.for" => carried(parent, number),
        Some(parent) => ir::results(parent).get(number).copied().into_iter().collect(),
        None => Vec::new(),
    }
}

/// The two values that carry variable `number` of a loop: in its body, and after it.
fn carried(parent: Op<'_>, number: usize) -> Vec<Val<'_>> {
    let body = parent.region(0).ok().and_then(|r| ir::blocks(r).first().copied());
    let argument = body.and_then(|b| ir::arguments(b).get(number + 1).copied());
    argument.into_iter().chain(ir::results(parent).get(number).copied()).collect()
}

/// Takes the shields off.
pub fn strip(shields: &[Op<'_>]) {
    for &shield in shields {
        ir::replace(ir::results(shield)[0], ir::operands(shield)[0]);
        ir::erase(shield);
    }
}

/// The pass `shield-reduce`: puts shields on the operands of pinned reductions that lack them, and
/// fixes the order of the elements of reshapes that lead to them.
pub fn run<'c>(session: &'c Session, root: Op<'c>) -> Result<(), Vec<Refused>> {
    for op in site::pinned(&ir::walk(root))? {
        let reshapes = element_order::history(&ir::operands(op));
        let reorder = |o: &Op<'_>| ir::name(*o) == "tt.reshape" && element_order::reorders(*o);
        reshapes.into_iter().filter(reorder).for_each(|r| fix_order(session, r));
        let b = Builder::before(session, &op);
        for (number, operand) in ir::operands(op).into_iter().enumerate() {
            let shielded =
                matches!(ir::source(operand), ir::Source::Result(made_by, _) if is_shield(made_by));
            if !shielded {
                ir::set_operand(op, number, put_on(b, operand));
            }
        }
    }
    Ok(())
}

fn put_on<'c>(b: Builder<'c>, operand: Val<'c>) -> Val<'c> {
    let empty = b.attr("\"\"");
    let attributes = [
        ("libname", empty),
        ("libpath", empty),
        ("pure", b.attr("true")),
        ("symbol", b.attr(&format!("\"{SYMBOL}\""))),
    ];
    b.one(CALL, &[operand], operand.r#type(), &attributes)
}

/// Makes a reshape keep the tensor's own order.
fn fix_order<'c>(session: &'c Session, reshape: Op<'c>) {
    let b = Builder::before(session, &reshape);
    let result = ir::results(reshape)[0];
    let new = b.one("tt.reshape", &ir::operands(reshape), result.r#type(), &[]);
    ir::replace(result, new);
    ir::erase(reshape);
}
