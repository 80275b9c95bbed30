//! What kind of combine function a reduction has, and whether a pinned one may have it.
//!
//! # Idea
//! The kind is read from operations, never guessed from the shape of a region: `where(a > b, a, b)`
//! is not a maximum, because of NaN.
//! # Invariants
//! - **K1** A combine is order-insensitive only if any tree over any order gives one result, bit
//!   for bit, but for the payload of a NaN.
//! - **K2** A pinned combine is a function of its arguments and of scalars: it reads no memory and
//!   has no effects.
//! # Not here
//! Which operations can be emitted, and how (`emit/combine.rs`).

use bitstable_lowering::plan::Operands;
use melior::ir::{Attribute, operation::OperationLike};

use crate::{
    ir::{self, Blk, Op, Val},
    place::Place,
    refusal::{Refusal, Refused},
    text,
};

/// How much of an order a combine function needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// None: Triton's own lowering is as good as any.
    OrderInsensitive,
    /// The tree, and perhaps the order of its operands.
    Tree(Operands),
}

const ANY_ORDER: [&str; 13] = [
    "arith.addi",
    "arith.muli",
    "arith.andi",
    "arith.ori",
    "arith.xori",
    "arith.minsi",
    "arith.maxsi",
    "arith.minui",
    "arith.maxui",
    "arith.maximumf",
    "arith.minimumf",
    "arith.maxnumf",
    "arith.minnumf",
];

const COMMUTE: [&str; 2] = ["arith.addf", "arith.mulf"];

/// The one block of the combine function of `reduce`.
pub fn block<'c>(reduce: Op<'c>) -> Result<Blk<'c>, Refusal> {
    let shape = |what: &str| Refusal::CombineShape { what: what.into() };
    let region = reduce.region(0).map_err(|_| shape("is missing"))?;
    let blocks = ir::blocks(region);
    let [block] = blocks[..] else {
        return Err(shape("has branches"));
    };
    let arguments = ir::arguments(block).len();
    let results = reduce.result_count();
    if arguments != 2 * results {
        return Err(shape(&format!("takes {arguments} arguments for {results} operands")));
    }
    let last = ir::operations(block).last().copied();
    match last {
        Some(last) if ir::name(last) == "tt.reduce.return" && last.operand_count() == results => {
            Ok(block)
        }
        _ => Err(shape("does not end in tt.reduce.return with one value for each operand")),
    }
}

/// The kind of the combine function whose block is `block`.
pub fn kind(block: Blk<'_>) -> Kind {
    let operations = ir::operations(block);
    let arguments = ir::arguments(block);
    let n = arguments.len() / 2;
    // One operation for each operand, on the operand's own two arguments, and the return.
    if operations.len() != n + 1 {
        return Kind::Tree(Operands::Ordered);
    }
    let returned = ir::operands(operations[n]);
    let is = |names: &[&str]| {
        (0..n).all(|i| {
            operation_on(returned[i], arguments[i], arguments[n + i])
                .is_some_and(|name| names.contains(&name))
        })
    };
    if is(&ANY_ORDER) {
        Kind::OrderInsensitive
    } else if is(&[&ANY_ORDER[..], &COMMUTE[..]].concat()) {
        Kind::Tree(Operands::Commute)
    } else {
        Kind::Tree(Operands::Ordered)
    }
}

/// The operation that makes `value` from `a` and `b`, in either order.
fn operation_on<'c>(value: Val<'c>, a: Val<'c>, b: Val<'c>) -> Option<&'c str> {
    let ir::Source::Result(operation, _) = ir::source(value) else { return None };
    let operands = ir::operands(operation);
    (operands == [a, b] || operands == [b, a]).then(|| ir::name(operation))
}

/// Refuses what K2 excludes.
pub fn check(block: Blk<'_>, refused: &mut Vec<Refused>) {
    let inside: Vec<Op<'_>> = ir::operations(block).into_iter().flat_map(ir::walk).collect();
    for operation in inside {
        let at = || Place::of(operation.location());
        if let Some(why) = impure(operation) {
            let op = ir::name(operation).to_owned();
            refused.push(Refusal::CombineOp { op, why }.at(at()));
        }
        // Within the function every value is a scalar: a tensor comes from outside.
        if ir::operands(operation).into_iter().any(ir::is_tensor) {
            let op = ir::name(operation).to_owned();
            let why = "it uses a tensor from outside the function";
            refused.push(Refusal::CombineOp { op, why }.at(at()));
        }
    }
}

fn impure(operation: Op<'_>) -> Option<&'static str> {
    let name = ir::name(operation);
    match name {
        "tt.call" => Some("a call that was not inlined"),
        "tt.assert" | "tt.print" => Some("an effect"),
        "tt.load" | "tt.store" => Some("a memory access"),
        "tt.elementwise_inline_asm" | "tt.extern_elementwise" => {
            let pure =
                operation.attribute("pure").ok().and_then(|a: Attribute<'_>| text::boolean(a));
            (pure != Some(true)).then_some("it may have effects")
        }
        _ if ["tt.atomic", "tt.descriptor", "ttg.local", "ttg.async", "ttng."]
            .iter()
            .any(|prefix| name.starts_with(prefix)) =>
        {
            Some("a memory access")
        }
        _ => None,
    }
}
