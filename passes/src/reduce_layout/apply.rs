//! Changing the layouts of a connected set, in place.
//!
//! # Idea
//! A layout stands in the types of values alone, so a value changes its layout when its type does.
//! At the borders of the set conversions are put in, right after the values that they convert.
//! # Invariants
//! - **A1** Nothing is decided here, and nothing fails.
//! # Held by
//! A1: the signatures; every type is put together from texts that have been read.
//! # Not here
//! Which values (`component.rs`).

use melior::{
    StringRef,
    ir::{
        Attribute, AttributeLike, OperationRef, Type, TypeLike, ValueLike, operation::OperationLike,
    },
};
use mlir_sys::{
    mlirOperationGetNextInBlock, mlirOperationHasInherentAttributeByName,
    mlirOperationSetDiscardableAttributeByName, mlirOperationSetInherentAttributeByName,
    mlirValueSetType,
};

use super::{
    component::{Brought, Component, Retyped, op_key},
    names::{Name, Named},
};
use crate::{
    build::Builder,
    element::Tensor,
    ir::{self, Op, Source, Val},
    session::Session,
    text,
};

/// Makes the change.
pub fn apply<'c>(session: &'c Session, change: &Component<'c>) {
    for brought in &change.brought {
        bring(session, brought);
    }
    let mut copied: Vec<Op<'c>> = change.brought.iter().filter_map(made_again).collect();
    copied.sort_by_key(|op| op_key(*op));
    copied.dedup_by_key(|op| op_key(*op));
    copied.into_iter().filter(|op| is_unused(*op)).for_each(ir::erase);
    for retyped in &change.retyped {
        retype(session, retyped);
    }
}

/// The operation whose result is made again.
fn made_again<'c>(brought: &Brought<'c>) -> Option<Op<'c>> {
    match ir::source(brought.value) {
        Source::Result(op, _) => brought.copied.then_some(op),
        Source::Argument(..) => None,
    }
}

fn is_unused(op: Op<'_>) -> bool {
    ir::results(op).into_iter().all(|result| ir::uses(result).is_empty())
}

/// Lets the uses of a value read it in another layout.
fn bring<'c>(session: &'c Session, brought: &Brought<'c>) {
    let Brought { value, from, to, uses, copied } = brought;
    let Some(anchor) = after(*value) else { return };
    let b = Builder::before(session, &anchor);
    let ty = renamed(b, *value, from, to);
    let new = match ir::source(*value) {
        Source::Result(op, _) if *copied => again(b, op, ty),
        _ => b.one("ttg.convert_layout", &[*value], ty, &[]),
    };
    uses.iter().for_each(|&(op, number)| ir::set_operand(op, number, new));
}

/// Makes what `op` makes, as a tensor of type `ty`.
fn again<'c>(b: Builder<'c>, op: Op<'c>, ty: Type<'c>) -> Val<'c> {
    let new = b.clone_op(op, &ir::operands(op))[0];
    set_type(new, ty);
    if let (Ok(value), Source::Result(made, _)) = (op.attribute("value"), ir::source(new)) {
        let old = text::printed_type(ir::results(op)[0].r#type());
        let value = text::printed(value);
        // A constant's value has its type in it, at the end.
        let value =
            value.strip_suffix(&old).map(|dense| format!("{dense}{}", text::printed_type(ty)));
        if let Some(value) = value {
            set_attribute(made, "value", b.attr(&value));
        }
    }
    new
}

/// Gives a value its new type; who wants the old one reads a conversion.
fn retype<'c>(session: &'c Session, retyped: &Retyped<'c>) {
    let Retyped { value, from, to, stale, .. } = retyped;
    let Some(anchor) = after(*value) else { return };
    let b = Builder::before(session, &anchor);
    let old = value.r#type();
    set_type(*value, renamed(b, *value, from, to));
    if !stale.is_empty() {
        let converted = b.one("ttg.convert_layout", &[*value], old, &[]);
        stale.iter().for_each(|&(op, number)| ir::set_operand(op, number, converted));
    }
}

fn renamed<'c>(b: Builder<'c>, value: Val<'c>, from: &Named, to: &Name) -> Type<'c> {
    let extents: String = from.shape.extents().iter().map(|e| format!("{e}x")).collect();
    let element = Tensor::of(value).map_or_else(String::new, |t| text::printed_type(t.element));
    b.ty(&format!("tensor<{extents}{element}, {to}>"))
}

fn set_type<'c>(value: Val<'c>, ty: Type<'c>) {
    // SAFETY: both are valid and of one context.
    unsafe { mlirValueSetType(value.to_raw(), ty.to_raw()) }
}

/// Sets an attribute that `op` has.
fn set_attribute<'c>(op: Op<'c>, name: &str, value: Attribute<'c>) {
    let name = StringRef::new(name).to_raw();
    // SAFETY: all are valid and of one context; MLIR copies the name, and an attribute among the
    // properties is set only where there is one.
    unsafe {
        if mlirOperationHasInherentAttributeByName(op.to_raw(), name) {
            mlirOperationSetInherentAttributeByName(op.to_raw(), name, value.to_raw());
        } else {
            mlirOperationSetDiscardableAttributeByName(op.to_raw(), name, value.to_raw());
        }
    }
}

/// The operation in front of which `value` is known: the next one, or the first of its block.
fn after<'c>(value: Val<'c>) -> Option<Op<'c>> {
    match ir::source(value) {
        // SAFETY: the operation is valid; null where it is the last.
        Source::Result(op, _) => unsafe {
            OperationRef::from_option_raw(mlirOperationGetNextInBlock(op.to_raw()))
        },
        Source::Argument(block, _) => ir::operations(block).first().copied(),
    }
}
