//! Making operations: a cursor in front of one operation.
//!
//! # Idea
//! Every operation that a lowering makes stands right before the operation it replaces and takes
//! its location, so profilers and debuggers go on pointing at the user's line.
//! # Invariants
//! - **B1** Types and attributes are given as text of our own. Text that does not parse is a bug
//!   of ours and panics; nothing derived from the user's input may come this way unchecked.
//! - **B2** Equal texts are parsed once a module: a lowering names few types, and names them often.
//! - **B3** A constant stands once before an anchor; what is made later follows it.
//! - **B4** Operations are made in generic form and are verified by Triton, which knows their
//!   dialects. Here they are unregistered.
//! # Not here
//! Which operations a step needs (`emit/`).

use std::{cell::RefCell, collections::HashMap};

use melior::{
    Context,
    ir::{
        Attribute, AttributeLike, Identifier, Location, Operation, OperationRef, Type, TypeLike,
        Value, ValueLike,
        operation::{OperationBuilder, OperationLike},
    },
};
use mlir_sys::{
    MlirAttribute, MlirOperation, MlirType, MlirValue, mlirBlockInsertOwnedOperationBefore,
    mlirOperationClone, mlirOperationGetBlock, mlirOperationGetNumResults, mlirOperationGetResult,
};

use crate::session::Session;

/// The types and attributes that builders of one module have parsed, and the constants that stand
/// in front of the anchors of the reduction at hand.
#[derive(Default)]
pub struct Parsed {
    types: RefCell<HashMap<String, MlirType>>,
    attributes: RefCell<HashMap<String, MlirAttribute>>,
    constants: RefCell<HashMap<(usize, i32), MlirValue>>,
}

/// Makes operations in front of an anchor, at the anchor's location.
#[derive(Clone, Copy)]
pub struct Builder<'c> {
    context: &'c Context,
    parsed: &'c Parsed,
    location: Location<'c>,
    anchor: MlirOperation,
}

impl<'c> Builder<'c> {
    /// A builder that inserts in front of `anchor`, which must stay in its block meanwhile.
    pub fn before<'a>(session: &'c Session, anchor: &impl OperationLike<'c, 'a>) -> Builder<'c>
    where
        'c: 'a,
    {
        let (context, parsed) = (session.context(), session.parsed());
        // An erased anchor's address may come back as another's.
        parsed.constants.borrow_mut().clear();
        Builder { context, parsed, location: anchor.location(), anchor: anchor.to_raw() }
    }

    /// The same in front of another operation, at that operation's location.
    pub fn moved_before<'a>(&self, anchor: &impl OperationLike<'c, 'a>) -> Builder<'c>
    where
        'c: 'a,
    {
        Builder { location: anchor.location(), anchor: anchor.to_raw(), ..*self }
    }

    /// The context of the module.
    pub fn context(&self) -> &'c Context {
        self.context
    }

    /// A type from our own text.
    pub fn ty(&self, text: &str) -> Type<'c> {
        if let Some(&raw) = self.parsed.types.borrow().get(text) {
            // SAFETY: it was made in this context, where types live as long as the context.
            return unsafe { Type::from_raw(raw) };
        }
        match Type::parse(self.context, text) {
            Some(ty) => {
                self.parsed.types.borrow_mut().insert(text.to_owned(), ty.to_raw());
                ty
            }
            None => panic!("type does not parse: {text}"),
        }
    }

    /// An attribute from our own text.
    pub fn attr(&self, text: &str) -> Attribute<'c> {
        if let Some(&raw) = self.parsed.attributes.borrow().get(text) {
            // SAFETY: it was made in this context, where attributes live as long as the context.
            return unsafe { Attribute::from_raw(raw) };
        }
        match Attribute::parse(self.context, text) {
            Some(attribute) => {
                self.parsed.attributes.borrow_mut().insert(text.to_owned(), attribute.to_raw());
                attribute
            }
            None => panic!("attribute does not parse: {text}"),
        }
    }

    /// An operation with any number of results, which it returns.
    pub fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'c>],
        results: &[Type<'c>],
        attrs: &[(&str, Attribute<'c>)],
    ) -> Vec<Value<'c, 'c>> {
        let attrs: Vec<(Identifier<'c>, Attribute<'c>)> =
            attrs.iter().map(|(name, a)| (Identifier::new(self.context, name), *a)).collect();
        let operation = OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attrs)
            .build();
        match operation {
            Ok(operation) => self.insert(operation),
            Err(error) => panic!("operation {name}: {error}"),
        }
    }

    /// An operation with one result, which it returns.
    pub fn one(
        &self,
        name: &str,
        operands: &[Value<'c, 'c>],
        result: Type<'c>,
        attrs: &[(&str, Attribute<'c>)],
    ) -> Value<'c, 'c> {
        self.op(name, operands, &[result], attrs)[0]
    }

    /// A constant of type i32 in the LLVM dialect.
    pub fn i32(&self, v: i32) -> Value<'c, 'c> {
        let key = (self.anchor.ptr as usize, v);
        if let Some(&raw) = self.parsed.constants.borrow().get(&key) {
            // SAFETY: it was made before this builder's anchor and nothing erased it since: the
            // constants are forgotten when a new reduction is begun.
            return unsafe { Value::from_raw(raw) };
        }
        let value = self.attr(&format!("{v} : i32"));
        let constant = self.one("llvm.mlir.constant", &[], self.ty("i32"), &[("value", value)]);
        self.parsed.constants.borrow_mut().insert(key, constant.to_raw());
        constant
    }

    /// A copy of `operation` (attributes, regions, result types) with other operands.
    pub fn clone_op(
        &self,
        operation: OperationRef<'c, '_>,
        operands: &[Value<'c, 'c>],
    ) -> Vec<Value<'c, 'c>> {
        assert_eq!(operation.operand_count(), operands.len(), "operands of {operation}");
        // SAFETY: `operation` is valid, so its clone is a valid operation that we own.
        let copy = unsafe { Operation::from_raw(mlirOperationClone(operation.to_raw())) };
        for (i, operand) in operands.iter().enumerate() {
            // SAFETY: `i` is below the operand count, and both values belong to one context.
            unsafe {
                mlir_sys::mlirOperationSetOperand(copy.to_raw(), i as isize, operand.to_raw())
            };
        }
        self.insert(copy)
    }

    /// Inserts an operation that was made elsewhere; returns its results.
    pub fn insert(&self, operation: Operation<'c>) -> Vec<Value<'c, 'c>> {
        let raw = operation.into_raw();
        // SAFETY: the anchor stands in a block while the builder lives (`before`), and `raw` is
        // owned by nobody until the block takes it. The results live as long as the module, whose
        // context outlives 'c; nothing erases them before the emission of their reduction ends.
        unsafe {
            mlirBlockInsertOwnedOperationBefore(
                mlirOperationGetBlock(self.anchor),
                self.anchor,
                raw,
            );
            (0..mlirOperationGetNumResults(raw))
                .map(|i| Value::from_raw(mlirOperationGetResult(raw, i)))
                .collect()
        }
    }
}
