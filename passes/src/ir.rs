//! Walking and changing a module: what melior leaves out, in one place.
//!
//! # Invariants
//! - **I1** [`Op`] and [`Val`] are valid until the operation is erased. Whoever erases holds the
//!   only list of what is left to visit.
//! # Held by
//! I1: [`erase`] is called by the passes on what they have just replaced, and on nothing else.

use melior::ir::{
    BlockRef, Module, OperationRef, RegionRef, Value, ValueLike, operation::OperationLike,
};
use mlir_sys::{
    MlirOperation, MlirValue, mlirBlockArgumentGetArgNumber, mlirBlockArgumentGetOwner,
    mlirBlockGetFirstOperation, mlirBlockGetNextInRegion, mlirBlockGetNumArguments,
    mlirBlockGetNumPredecessors, mlirBlockGetParentOperation, mlirBlockGetParentRegion,
    mlirBlockGetPredecessor, mlirModuleGetOperation, mlirOpOperandGetNextUse,
    mlirOpOperandGetOperandNumber, mlirOpOperandGetOwner, mlirOpOperandIsNull,
    mlirOpResultGetOwner, mlirOpResultGetResultNumber, mlirOperationDestroy,
    mlirOperationGetNextInBlock, mlirOperationGetRegion,
    mlirOperationRemoveDiscardableAttributeByName, mlirOperationSetOperand, mlirRegionEqual,
    mlirRegionGetFirstBlock, mlirTypeIsARankedTensor, mlirValueGetFirstUse, mlirValueGetType,
    mlirValueIsABlockArgument, mlirValueReplaceAllUsesOfWith,
};

use crate::text;

/// An operation of the module.
pub type Op<'c> = OperationRef<'c, 'c>;
/// A value of the module.
pub type Val<'c> = Value<'c, 'c>;
/// A block of the module.
pub type Blk<'c> = BlockRef<'c, 'c>;

/// The module's own operation.
pub fn root<'c>(module: &Module<'c>) -> Op<'c> {
    // SAFETY: the operation is valid as long as the module; see I1.
    unsafe { op(mlirModuleGetOperation(module.to_raw())) }
}

/// # Safety
/// `raw` must be valid.
unsafe fn op<'c>(raw: MlirOperation) -> Op<'c> {
    // SAFETY: the caller's.
    unsafe { OperationRef::from_raw(raw) }
}

/// # Safety
/// `raw` must be valid.
unsafe fn val<'c>(raw: MlirValue) -> Val<'c> {
    // SAFETY: the caller's.
    unsafe { Value::from_raw(raw) }
}

/// The operation's name, such as `tt.reduce`.
pub fn name(operation: Op<'_>) -> &str {
    text::borrowed(operation.name())
}

/// `root` and everything in it, parents first. No recursion: the input may nest deeply.
pub fn walk(root: Op<'_>) -> Vec<Op<'_>> {
    let mut all = Vec::new();
    let mut rest = vec![root];
    while let Some(operation) = rest.pop() {
        all.push(operation);
        let inside: Vec<Op<'_>> =
            operation.regions().flat_map(blocks).flat_map(operations).collect();
        rest.extend(inside.into_iter().rev());
    }
    all
}

/// The blocks of a region.
pub fn blocks<'c>(region: RegionRef<'c, 'c>) -> Vec<Blk<'c>> {
    use melior::ir::RegionLike;
    // SAFETY: `region` is valid; a null block ends the list.
    unsafe {
        let first = BlockRef::from_option_raw(mlirRegionGetFirstBlock(region.to_raw()));
        std::iter::successors(first, |block| {
            BlockRef::from_option_raw(mlirBlockGetNextInRegion(raw_block(*block)))
        })
        .collect()
    }
}

/// The operations of a block.
pub fn operations(block: Blk<'_>) -> Vec<Op<'_>> {
    // SAFETY: `block` is valid; a null operation ends the list.
    unsafe {
        let first = OperationRef::from_option_raw(mlirBlockGetFirstOperation(raw_block(block)));
        std::iter::successors(first, |operation: &Op<'_>| {
            OperationRef::from_option_raw(mlirOperationGetNextInBlock(operation.to_raw()))
        })
        .collect()
    }
}

fn raw_block(block: Blk<'_>) -> mlir_sys::MlirBlock {
    use melior::ir::BlockLike;
    block.to_raw()
}

/// The last operation of a block. MLIR's own notion of a terminator is of no use here: it asks the
/// operation, and ours are unregistered.
pub fn terminator(block: Blk<'_>) -> Option<Op<'_>> {
    operations(block).last().copied()
}

/// The operands.
pub fn operands<'c>(operation: Op<'c>) -> Vec<Val<'c>> {
    operation.operands().collect()
}

/// The results.
pub fn results<'c>(operation: Op<'c>) -> Vec<Val<'c>> {
    operation.results().map(Value::from).collect()
}

/// The arguments of a block.
pub fn arguments(block: Blk<'_>) -> Vec<Val<'_>> {
    // SAFETY: `i` is below the number of arguments.
    unsafe {
        (0..mlirBlockGetNumArguments(raw_block(block)))
            .map(|i| val(mlir_sys::mlirBlockGetArgument(raw_block(block), i)))
            .collect()
    }
}

/// Where a value comes from.
#[derive(Clone, Copy)]
pub enum Source<'c> {
    /// A result of an operation.
    Result(Op<'c>, usize),
    /// An argument of a block.
    Argument(Blk<'c>, usize),
}

/// Where `value` comes from.
pub fn source<'c>(value: Val<'c>) -> Source<'c> {
    let raw = value.to_raw();
    // SAFETY: `raw` is valid and of the kind that each accessor wants.
    unsafe {
        if mlirValueIsABlockArgument(raw) {
            let block = BlockRef::from_raw(mlirBlockArgumentGetOwner(raw));
            Source::Argument(block, mlirBlockArgumentGetArgNumber(raw) as usize)
        } else {
            let number = mlirOpResultGetResultNumber(raw) as usize;
            Source::Result(op(mlirOpResultGetOwner(raw)), number)
        }
    }
}

/// Who uses `value`, and as which operand.
pub fn uses<'c>(value: Val<'c>) -> Vec<(Op<'c>, usize)> {
    let mut all = Vec::new();
    // SAFETY: `value` is valid; the list of uses ends with a null.
    unsafe {
        let mut operand = mlirValueGetFirstUse(value.to_raw());
        while !mlirOpOperandIsNull(operand) {
            let number = mlirOpOperandGetOperandNumber(operand) as usize;
            all.push((op(mlirOpOperandGetOwner(operand)), number));
            operand = mlirOpOperandGetNextUse(operand);
        }
    }
    all
}

/// The operation that a block is in.
pub fn parent<'c>(block: Blk<'c>) -> Option<Op<'c>> {
    // SAFETY: `block` is valid; null where there is none.
    unsafe { OperationRef::from_option_raw(mlirBlockGetParentOperation(raw_block(block))) }
}

/// The blocks that branch to `block`.
pub fn predecessors(block: Blk<'_>) -> Vec<Blk<'_>> {
    // SAFETY: `i` is below the number of predecessors.
    unsafe {
        (0..mlirBlockGetNumPredecessors(raw_block(block)))
            .map(|i| BlockRef::from_raw(mlirBlockGetPredecessor(raw_block(block), i)))
            .collect()
    }
}

/// Which region of `operation` holds `block`.
pub fn region_number(operation: Op<'_>, block: Blk<'_>) -> Option<usize> {
    (0..operation.region_count()).find(|&i| {
        // SAFETY: `i` is below the number of regions.
        unsafe {
            mlirRegionEqual(
                mlirOperationGetRegion(operation.to_raw(), i as isize),
                mlirBlockGetParentRegion(raw_block(block)),
            )
        }
    })
}

/// Whether `value` is a tensor.
pub fn is_tensor(value: Val<'_>) -> bool {
    // SAFETY: `value` is valid.
    unsafe { mlirTypeIsARankedTensor(mlirValueGetType(value.to_raw())) }
}

/// Makes every user of `old` use `new`.
pub fn replace(old: Val<'_>, new: Val<'_>) {
    // SAFETY: both are valid values of one module.
    unsafe { mlirValueReplaceAllUsesOfWith(old.to_raw(), new.to_raw()) }
}

/// Makes `value` operand `number` of `operation`.
pub fn set_operand<'c>(operation: Op<'c>, number: usize, value: Val<'c>) {
    assert!(number < operation.operand_count(), "operand {number} of {operation}");
    // SAFETY: the operand exists, and both are of one module.
    unsafe { mlirOperationSetOperand(operation.to_raw(), number as isize, value.to_raw()) }
}

/// Removes a discardable attribute, if it is there.
pub fn remove_discardable_attribute(operation: Op<'_>, name: &str) {
    use melior::StringRef;
    // SAFETY: `operation` is valid; MLIR copies the name.
    unsafe {
        mlirOperationRemoveDiscardableAttributeByName(
            operation.to_raw(),
            StringRef::new(name).to_raw(),
        );
    }
}

/// Erases an operation whose results nobody uses.
pub fn erase(operation: Op<'_>) {
    debug_assert!(results(operation).into_iter().all(|r| uses(r).is_empty()));
    // SAFETY: the operation is valid and stands in a block, from which MLIR takes it; nobody uses
    // its results. It is not touched again: see I1.
    unsafe { mlirOperationDestroy(operation.to_raw()) }
}
