//! How layouts flow: when one value changes its layout, which others must follow, and how.
//!
//! # Idea
//! An operation either accepts any layout, as long as its operands and results agree; or infers one
//! from another (slices, reshapes, transpositions), which is computed here; or joins or ends what
//! flows (loops, branches, conversions); or wants the layout that it has.
//! # Invariants
//! - **W1** What is not known wants the layout that it has.
//! - **W2** A reduction whose order is free keeps its layout, which decides its bits.
//! # Held by
//! W1: the last arms of [`Flow::user`] and [`Flow::producer`]. W2: [`is_free`].
//! # Not here
//! Following the flow (`component.rs`); what it costs (`price.rs`).

use bitstable_lowering::layout::{Dim, LinearLayout};
use melior::ir::operation::OperationLike;

use super::names::{self, Name, Names};
use crate::{
    combine_kind::{self, Kind},
    ir::{self, Op, Source, Val},
    site, text,
};

/// Operations, beside all of `arith` and `math`, that accept any layout that their operands and
/// results share.
const ELEMENTWISE: [&str; 16] = [
    "amdg.buffer_load",
    "amdg.buffer_store",
    "tt.addptr",
    "tt.bitcast",
    "tt.broadcast",
    "tt.clampf",
    "tt.elementwise_inline_asm",
    "tt.extern_elementwise",
    "tt.fp_to_fp",
    "tt.int_to_ptr",
    "tt.load",
    "tt.mulhiui",
    "tt.precise_divf",
    "tt.precise_sqrt",
    "tt.ptr_to_int",
    "tt.store",
];

/// Operations that take an operand in any layout and pass none on.
const SINKS: [&str; 5] =
    ["tt.assert", "tt.unsplat", "ttg.convert_layout", "ttg.local_alloc", "ttg.local_store"];

/// Something that takes on a layout.
#[derive(Clone, Copy)]
pub enum Reached<'c> {
    /// An operand, as this operation sees it.
    Use(Op<'c>, usize),
    /// A value, for all who use it.
    Value(Val<'c>),
}

/// What an operation says to another layout of one of its values.
pub enum Link<'c> {
    /// These follow, with these layouts.
    Follows(Vec<(Reached<'c>, Name)>),
    /// It takes any layout, and nothing follows.
    Ends,
    /// It can be made again, in any layout, for next to nothing.
    Copied,
    /// It wants the layout that it has.
    Wants,
}

/// Answers how layouts flow.
pub struct Flow<'a> {
    /// What names mean.
    pub names: &'a Names,
}

impl Flow<'_> {
    /// What the user `op` says when its operand `number` is named `name`.
    pub fn user<'c>(&self, op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
        match ir::name(op) {
            sink if SINKS.contains(&sink) => Link::Ends,
            "scf.for" if number >= 3 => carried(op, number - 3, name),
            "scf.while" => before(op, number, name),
            "scf.yield" => self.yielded(op, number, name),
            "scf.condition" if number >= 1 => {
                parent_of(op).map_or(Link::Wants, |around| after(around, number - 1, name))
            }
            "tt.expand_dims" => follow(integer(op, "axis").and_then(|axis| {
                let parent = names::parent(name, axis)?;
                Some(vec![(Reached::Value(first(ir::results(op))?), parent)])
            })),
            "tt.reduce" if !is_free(op) => reduced(op, name),
            "tt.reshape" | "tt.trans" => follow(first(ir::results(op)).and_then(|result| {
                let layout = self.names.layout(name, &self.names.of(operand(op)?)?.shape)?;
                let inferred = self.inferred(op, &layout, result)?;
                Some(vec![(Reached::Value(result), inferred)])
            })),
            other if is_elementwise(other) => same(op, name),
            _ => Link::Wants,
        }
    }

    /// What the producer of `value` says when it is to be named `name`.
    pub fn producer<'c>(&self, value: Val<'c>, name: &Name) -> Link<'c> {
        let (op, number) = match ir::source(value) {
            Source::Result(op, number) => (op, number),
            Source::Argument(block, number) => {
                let Some(around) = ir::parent(block) else { return Link::Wants };
                return match (ir::name(around), ir::region_number(around, block)) {
                    ("scf.for", _) if number >= 1 => carried(around, number - 1, name),
                    ("scf.while", Some(0)) => before(around, number, name),
                    ("scf.while", Some(1)) => after(around, number, name),
                    _ => Link::Wants,
                };
            }
        };
        match ir::name(op) {
            "arith.constant" | "tt.splat" | "tt.make_range" => Link::Copied,
            "ttg.convert_layout" | "ttg.local_load" => Link::Ends,
            "scf.for" => carried(op, number, name),
            "scf.if" => chosen(op, number, name),
            "scf.while" => after(op, number, name),
            "tt.expand_dims" => follow(
                integer(op, "axis")
                    .map(|axis| vec![(Reached::Use(op, 0), names::slice(axis, name))]),
            ),
            "tt.reduce" if !is_free(op) => {
                let parent = integer(op, "axis").and_then(|axis| names::parent(name, axis));
                parent.map_or(Link::Wants, |parent| reduced(op, &parent))
            }
            "tt.reshape" | "tt.trans" => follow(operand(op).and_then(|from| {
                let layout = self.names.layout(name, &self.names.of(value)?.shape)?;
                let inferred = self.inferred_back(op, &layout, from)?;
                Some(vec![(Reached::Use(op, 0), inferred)])
            })),
            other if is_elementwise(other) => same(op, name),
            _ => Link::Wants,
        }
    }

    fn yielded<'c>(&self, op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
        let Some(around) = parent_of(op) else { return Link::Wants };
        match ir::name(around) {
            "scf.for" => carried(around, number, name),
            "scf.if" => chosen(around, number, name),
            "scf.while" => before(around, number, name),
            _ => Link::Wants,
        }
    }

    /// The name that `op`, a reshape or a transposition, gives its result.
    fn inferred(&self, op: Op<'_>, layout: &LinearLayout, result: Val<'_>) -> Option<Name> {
        let inferred = match order(op)? {
            Some(order) => names::transposed(layout, &order)?,
            None => names::reshaped(layout, &self.names.of(result)?.shape)?,
        };
        self.names.for_value(result, &inferred)
    }

    /// The name of its operand from which it infers `layout`.
    fn inferred_back(&self, op: Op<'_>, layout: &LinearLayout, operand: Val<'_>) -> Option<Name> {
        let inferred = match order(op)? {
            Some(order) => names::transposed(layout, &names::inverse(&order))?,
            None => names::reshaped(layout, &self.names.of(operand)?.shape)?,
        };
        self.names.for_value(operand, &inferred)
    }
}

/// The order of a transposition; an inner None for a reshape that keeps the order of the elements.
fn order(op: Op<'_>) -> Option<Option<Vec<Dim>>> {
    if ir::name(op) == "tt.reshape" {
        return (!op.has_attribute("allow_reorder")).then_some(None);
    }
    let attribute = op.attribute("order").ok()?;
    let rank = crate::element::Tensor::of(operand(op)?)?.extents.len();
    let dim = |i: usize| text::i32_at(attribute, i).and_then(|d| usize::try_from(d).ok()).map(Dim);
    (0..rank).map(dim).collect::<Option<Vec<Dim>>>().map(Some)
}

/// Whether `op` infers a layout, up to its name.
pub fn infers(op: Op<'_>) -> bool {
    matches!(ir::name(op), "tt.reshape" | "tt.trans")
}

fn is_elementwise(name: &str) -> bool {
    name.starts_with("arith.") || name.starts_with("math.") || ELEMENTWISE.contains(&name)
}

/// Whether `op` is a reduction whose bits its layout decides. Pinning another must not move them.
pub fn is_free(op: Op<'_>) -> bool {
    let insensitive = || {
        let block = combine_kind::block(op);
        block.is_ok_and(|b| matches!(combine_kind::kind(b), Kind::OrderInsensitive))
    };
    ir::name(op) == "tt.reduce" && !op.has_attribute(site::ORDER) && !insensitive()
}

fn follow<'c>(all: Option<Vec<(Reached<'c>, Name)>>) -> Link<'c> {
    all.map_or(Link::Wants, Link::Follows)
}

fn first<T: Copy>(all: Vec<T>) -> Option<T> {
    all.first().copied()
}

fn operand(op: Op<'_>) -> Option<Val<'_>> {
    first(ir::operands(op))
}

fn integer(op: Op<'_>, attribute: &str) -> Option<usize> {
    op.attribute(attribute).ok().and_then(text::integer).and_then(|i| usize::try_from(i).ok())
}

fn parent_of(op: Op<'_>) -> Option<Op<'_>> {
    op.block().and_then(ir::parent)
}

/// All tensors that `op` reads and makes.
fn same<'c>(op: Op<'c>, name: &Name) -> Link<'c> {
    let operands = (0..).zip(ir::operands(op)).filter(|(_, value)| ir::is_tensor(*value));
    let uses = operands.map(|(number, _)| Reached::Use(op, number));
    let values = ir::results(op).into_iter().filter(|v| ir::is_tensor(*v)).map(Reached::Value);
    Link::Follows(uses.chain(values).map(|reached| (reached, name.clone())).collect())
}

/// All operands of a reduction, named `name`, and its results.
pub fn reduced<'c>(op: Op<'c>, name: &Name) -> Link<'c> {
    follow(integer(op, "axis").map(|axis| {
        let uses = (0..ir::operands(op).len()).map(|i| (Reached::Use(op, i), name.clone()));
        let values = ir::results(op).into_iter().filter(|v| ir::is_tensor(*v));
        let results = values.map(|v| (Reached::Value(v), names::slice(axis, name)));
        uses.chain(results).collect()
    }))
}

/// What carries variable `number` of a loop: into it, in it, around it and out of it.
fn carried<'c>(op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
    let group = || {
        let body = block(op, 0)?;
        let argument = *ir::arguments(body).get(number + 1)?;
        let result = *ir::results(op).get(number)?;
        let end = ir::terminator(body)?;
        Some(vec![
            Reached::Use(op, 3 + number),
            Reached::Value(argument),
            Reached::Value(result),
            Reached::Use(end, number),
        ])
    };
    named(group(), name)
}

/// What becomes result `number` of a branch.
fn chosen<'c>(op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
    let group = || {
        let end = |region| Some(Reached::Use(ir::terminator(block(op, region)?)?, number));
        let result = *ir::results(op).get(number)?;
        Some(vec![Reached::Value(result), end(0)?, end(1)?])
    };
    named(group(), name)
}

/// What becomes argument `number` of the first region of a `scf.while`.
fn before<'c>(op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
    let group = || {
        let argument = *ir::arguments(block(op, 0)?).get(number)?;
        let end = ir::terminator(block(op, 1)?)?;
        Some(vec![Reached::Use(op, number), Reached::Value(argument), Reached::Use(end, number)])
    };
    named(group(), name)
}

/// What becomes argument `number` of the second region of a `scf.while`, and its result.
fn after<'c>(op: Op<'c>, number: usize, name: &Name) -> Link<'c> {
    let group = || {
        let end = ir::terminator(block(op, 0)?)?;
        let argument = *ir::arguments(block(op, 1)?).get(number)?;
        let result = *ir::results(op).get(number)?;
        Some(vec![Reached::Use(end, number + 1), Reached::Value(argument), Reached::Value(result)])
    };
    named(group(), name)
}

fn named<'c>(group: Option<Vec<Reached<'c>>>, name: &Name) -> Link<'c> {
    follow(group.map(|all| all.into_iter().map(|reached| (reached, name.clone())).collect()))
}

fn block(op: Op<'_>, region: usize) -> Option<ir::Blk<'_>> {
    op.region(region).ok().and_then(|r| first(ir::blocks(r)))
}
