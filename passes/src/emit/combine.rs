//! The combine function of a pinned reduction, evaluated on scalars.
//!
//! # Idea
//! The function's block is copied in front of the reduction for every combine of the tree, its
//! arguments replaced by the operands. Float arithmetic is replaced by a form that rounds once and
//! that nothing contracts (`float.rs`); everything else is copied as it is.
//! # Invariants
//! - **E1** Every operation of the function is known by name; one that is not is refused, with its
//!   name and place, before anything is emitted.
//! - **E2** No float operation of the function is left plain where it rounds: the six of
//!   [`FloatOp`] are replaced, also inside `scf.if` and `scf.for`.
//! - **E3** A copied operation whose expansion rounds more than once (`exp`, `tanh`, inline
//!   assembly, libdevice) takes its operands through a fence, so that its bits do not depend on
//!   whether a product is still in a register.
//! - **E4** A packed combine gives, in each of its two lanes, the bits of the scalar one.
//! # Held by
//! E1: [`Combine::new`], which visits every operation, nested ones too. E2 and E3: [`treatment`].
//! E4: [`packing`], which wants every operation to be a packed instruction or a constant.
//! # Not here
//! Whether operands commute (`combine_kind.rs`), and packed instructions (`packed.rs`).

pub mod float;

use std::{collections::HashMap, ffi::c_void};

use melior::ir::{Operation, OperationRef, ValueLike, operation::OperationLike};
use mlir_sys::{MlirOperation, mlirOperationClone, mlirOperationSetOperand};

use crate::{
    build::Builder,
    element::Element,
    emit::packed::Packing,
    ir::{self, Blk, Op, Val},
    place::Place,
    refusal::{Refusal, Refused},
    target::Target,
    text,
};
use float::FloatOp;

/// What happens to an operation of the combine function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Treatment {
    /// It is replaced by a form that rounds once.
    Pin(FloatOp, Element),
    /// It is copied: it does not round, or rounds once by its own nature.
    Copy,
    /// It is copied, its operands fenced: the same bits on one target only.
    CopyFenced,
}

/// What the machine code of a combine may hold beyond operations that round once.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Freedom {
    /// Nothing.
    RoundsOnce,
    /// Fused multiply-adds, for those of the function.
    Fma,
    /// Whatever the target expands an approximate operation to.
    Expanded,
}

/// A combine function that can be emitted.
pub struct Combine<'c> {
    freedom: Freedom,
    target: Target,
    arguments: Vec<Val<'c>>,
    body: Vec<(Op<'c>, Treatment)>,
    returned: Vec<Val<'c>>,
    packing: Option<Packing>,
}

impl<'c> Combine<'c> {
    /// The combine function with the one block `block`, which ends in `tt.reduce.return`.
    pub fn new(block: Blk<'c>, target: &Target) -> Result<Combine<'c>, Refused> {
        let mut body = Vec::new();
        let mut returned = Vec::new();
        let mut freedom = Freedom::RoundsOnce;
        for operation in ir::operations(block) {
            for inner in ir::walk(operation) {
                let treatment = treatment(inner, target).map_err(|why| refused_at(inner, why))?;
                freedom = freedom.max(match treatment {
                    Treatment::Pin(FloatOp::Fma, _) => Freedom::Fma,
                    Treatment::Pin(..) | Treatment::Copy => Freedom::RoundsOnce,
                    Treatment::CopyFenced => Freedom::Expanded,
                });
            }
            if ir::name(operation) == RETURN {
                returned = ir::operands(operation);
            } else if let Ok(treatment) = treatment(operation, target) {
                body.push((operation, treatment));
            }
        }
        let (target, arguments) = (target.clone(), ir::arguments(block));
        let packing = packing(&target, &arguments, &body);
        Ok(Combine { freedom, target, arguments, body, returned, packing })
    }

    /// What its machine code may hold.
    pub fn freedom(&self) -> Freedom {
        self.freedom
    }

    /// Emits one combine: `left` and `right` hold one value for each operand of the reduction.
    pub fn apply(&self, b: Builder<'c>, left: &[Val<'c>], right: &[Val<'c>]) -> Vec<Val<'c>> {
        assert_eq!(self.arguments.len(), left.len() + right.len(), "operands of a combine");
        let mut values = Values::default();
        for (&argument, &value) in self.arguments.iter().zip(left.iter().chain(right)) {
            values.set(argument, value);
        }
        for &(operation, treatment) in &self.body {
            let results = self.emit(b, operation, treatment, &values);
            for (old, new) in ir::results(operation).into_iter().zip(results) {
                values.set(old, new);
            }
        }
        self.returned.iter().map(|&value| values.get(value)).collect()
    }

    /// How two combines become one, where the target can.
    pub fn packing(&self) -> Option<Packing> {
        self.packing
    }

    /// Emits two combines as one: `left` and `right` hold one pair for each operand.
    ///
    /// # Panics
    /// Where there is no [`Combine::packing`].
    pub fn apply_packed(
        &self,
        b: Builder<'c>,
        left: &[Val<'c>],
        right: &[Val<'c>],
    ) -> Vec<Val<'c>> {
        let Some(packing) = self.packing else { panic!("no packed form of this combine") };
        let (mut pairs, mut constants) = (Values::default(), Values::default());
        for (&argument, &pair) in self.arguments.iter().zip(left.iter().chain(right)) {
            pairs.set(argument, pair);
        }
        let pair = |pairs: &Values<'c>, constants: &Values<'c>, value: Val<'c>| {
            pairs.find(value).unwrap_or_else(|| {
                let constant = constants.get(value);
                packing.pack(b, constant, constant)
            })
        };
        for &(operation, treatment) in &self.body {
            let result = ir::results(operation)[0];
            if let Treatment::Pin(op, _) = treatment {
                let operands = ir::operands(operation).into_iter();
                let operands: Vec<Val<'c>> =
                    operands.map(|value| pair(&pairs, &constants, value)).collect();
                pairs.set(result, packing.emit(b, &self.target, op, &operands));
            } else {
                constants.set(result, b.clone_op(operation, &[])[0]);
            }
        }
        self.returned.iter().map(|&value| pair(&pairs, &constants, value)).collect()
    }

    fn emit(
        &self,
        b: Builder<'c>,
        operation: Op<'c>,
        treatment: Treatment,
        values: &Values<'c>,
    ) -> Vec<Val<'c>> {
        let operands: Vec<Val<'c>> =
            ir::operands(operation).into_iter().map(|v| values.get(v)).collect();
        match treatment {
            Treatment::Pin(op, element) => {
                vec![float::emit(b, &self.target, op, element, &operands)]
            }
            Treatment::CopyFenced => {
                b.clone_op(operation, &self.fenced(b, &ir::operands(operation), &operands))
            }
            Treatment::Copy if operation.region_count() == 0 => b.clone_op(operation, &operands),
            Treatment::Copy => {
                // SAFETY: `operation` is valid, so its clone is a valid operation; it is ours until
                // `insert` takes it.
                let copy = unsafe { mlirOperationClone(operation.to_raw()) };
                self.rewrite_regions(b, copy, values);
                // SAFETY: as above; nobody else owns the clone.
                b.insert(unsafe { Operation::from_raw(copy) })
            }
        }
    }

    /// The operands `new`, which stand for `old`, behind fences. What a pinned operation made is
    /// its own fence.
    fn fenced(&self, b: Builder<'c>, old: &[Val<'c>], new: &[Val<'c>]) -> Vec<Val<'c>> {
        let fence = |(&old, &new): (&Val<'c>, &Val<'c>)| match element(new) {
            Some(element) if !is_pinned(old) => float::fence(b, &self.target, element, new),
            _ => new,
        };
        old.iter().zip(new).map(fence).collect()
    }

    /// Gives a detached copy of an operation with regions its operands, and treats what is inside.
    fn rewrite_regions(&self, b: Builder<'c>, copy: MlirOperation, values: &Values<'c>) {
        // SAFETY: `copy` is valid; what is inside it is touched here only.
        let root: Op<'c> = unsafe { OperationRef::from_raw(copy) };
        for operation in ir::walk(root) {
            for (i, operand) in ir::operands(operation).into_iter().enumerate() {
                set_operand(operation, i, values.get(operand));
            }
            if operation == root {
                continue;
            }
            let here = b.moved_before(&operation);
            match treatment(operation, &self.target) {
                Ok(Treatment::Pin(op, element)) => {
                    let operands = ir::operands(operation);
                    let value = float::emit(here, &self.target, op, element, &operands);
                    ir::replace(ir::results(operation)[0], value);
                    ir::erase(operation);
                }
                Ok(Treatment::CopyFenced) => {
                    let operands = ir::operands(operation);
                    let operands = self.fenced(here, &operands, &operands);
                    for (i, operand) in operands.into_iter().enumerate() {
                        set_operand(operation, i, operand);
                    }
                }
                Ok(Treatment::Copy) => {}
                Err(why) => unreachable!("{} was let through: {why}", ir::name(operation)),
            }
        }
    }
}

/// How two combines of such a function become one: all it does is packed arithmetic on one type.
fn packing(
    target: &Target,
    arguments: &[Val<'_>],
    body: &[(Op<'_>, Treatment)],
) -> Option<Packing> {
    let own = element(*arguments.first()?)?;
    let mut ops = Vec::new();
    for &(operation, treatment) in body {
        match treatment {
            Treatment::Pin(op, _) => ops.push(op),
            Treatment::Copy if CONSTANTS.contains(&ir::name(operation)) => {}
            _ => return None,
        }
    }
    let results = body.iter().flat_map(|&(operation, _)| ir::results(operation));
    let mut values = arguments.iter().copied().chain(results);
    if ops.is_empty() || values.any(|value| element(value) != Some(own)) {
        return None;
    }
    Packing::new(target, own, &ops)
}

fn refused_at(operation: Op<'_>, why: &'static str) -> Refused {
    let op = ir::name(operation).to_owned();
    Refusal::CombineOp { op, why }.at(Place::of(operation.location()))
}

/// Whether `value` comes from a pinned operation, or from what replaced one.
fn is_pinned(value: Val<'_>) -> bool {
    match ir::source(value) {
        ir::Source::Result(operation, _) => {
            let name = ir::name(operation);
            pinned(name).is_some() || name.starts_with("llvm.")
        }
        ir::Source::Argument(..) => false,
    }
}

fn set_operand<'c>(operation: Op<'c>, index: usize, value: Val<'c>) {
    // SAFETY: both are valid and `index` is the number of an operand.
    unsafe { mlirOperationSetOperand(operation.to_raw(), index as isize, value.to_raw()) }
}

/// What stands for each value of the function. Values from outside stand for themselves.
#[derive(Default)]
struct Values<'c>(HashMap<*const c_void, Val<'c>>);

impl<'c> Values<'c> {
    fn set(&mut self, old: Val<'c>, new: Val<'c>) {
        self.0.insert(old.to_raw().ptr, new);
    }

    fn find(&self, old: Val<'c>) -> Option<Val<'c>> {
        self.0.get(&old.to_raw().ptr).copied()
    }

    fn get(&self, old: Val<'c>) -> Val<'c> {
        self.find(old).unwrap_or(old)
    }
}

fn element(value: Val<'_>) -> Option<Element> {
    Element::parse(&text::printed_type(value.r#type()))
}

const RETURN: &str = "tt.reduce.return";
const CONSTANTS: [&str; 2] = ["arith.constant", "llvm.mlir.constant"];

/// Control flow. What is inside is treated by itself.
const CONTROL: [&str; 4] = [RETURN, "scf.if", "scf.for", "scf.yield"];

/// Float operations that do not round, and conversions, which round once by themselves.
const EXACT: [&str; 28] = [
    "arith.bitcast",
    "arith.cmpf",
    "arith.constant",
    "arith.extf",
    "arith.fptosi",
    "arith.fptoui",
    "arith.maximumf",
    "arith.maxnumf",
    "arith.minimumf",
    "arith.minnumf",
    "arith.negf",
    "arith.select",
    "arith.sitofp",
    "arith.truncf",
    "arith.uitofp",
    "math.absf",
    "math.ceil",
    "math.copysign",
    "math.floor",
    "math.round",
    "math.roundeven",
    "math.trunc",
    "tt.bitcast",
    "tt.clampf",
    "tt.fp_to_fp",
    "tt.mulhiui",
    "llvm.mlir.constant",
    "arith.cmpi",
];

/// Operations on integers.
const INTEGER: [&str; 30] = [
    "arith.addi",
    "arith.andi",
    "arith.ceildivsi",
    "arith.ceildivui",
    "arith.divsi",
    "arith.divui",
    "arith.extsi",
    "arith.extui",
    "arith.floordivsi",
    "arith.maxsi",
    "arith.maxui",
    "arith.minsi",
    "arith.minui",
    "arith.muli",
    "arith.mulsi_extended",
    "arith.mului_extended",
    "arith.ori",
    "arith.remsi",
    "arith.remui",
    "arith.shli",
    "arith.shrsi",
    "arith.shrui",
    "arith.subi",
    "arith.trunci",
    "arith.xori",
    "math.absi",
    "math.ctlz",
    "math.ctpop",
    "math.cttz",
    "math.ipowi",
];

/// Operations that are expanded by the target: the same bits on one target and toolchain.
const APPROXIMATE: [&str; 19] = [
    "math.atan2",
    "math.cos",
    "math.erf",
    "math.exp",
    "math.exp2",
    "math.expm1",
    "math.log",
    "math.log10",
    "math.log1p",
    "math.log2",
    "math.powf",
    "math.rsqrt",
    "math.sin",
    "math.tan",
    "math.tanh",
    "math.cbrt",
    "math.fpowi",
    ASSEMBLY,
    LIBDEVICE,
];
const ASSEMBLY: &str = "tt.elementwise_inline_asm";
const LIBDEVICE: &str = "tt.extern_elementwise";

/// What happens to `operation`, or why it is refused.
fn treatment(operation: Op<'_>, target: &Target) -> Result<Treatment, &'static str> {
    let name = ir::name(operation);
    if let Some(op) = pinned(name) {
        plain_flags(operation)?;
        let result = ir::results(operation);
        let element = result.first().and_then(|&v| element(v)).ok_or(NOT_A_SCALAR)?;
        if !float::rounds_once(target, op, element) {
            return Err("this target has no form of it that rounds once");
        }
        return Ok(Treatment::Pin(op, element));
    }
    if let Some(why) = refused(name) {
        return Err(why);
    }
    let copied = [&EXACT[..], &INTEGER[..], &CONTROL[..]].concat().contains(&name);
    let approximate = APPROXIMATE.contains(&name);
    if !copied && !approximate {
        return Err("it is not known to give the same bits everywhere");
    }
    scalars(operation)?;
    plain_flags(operation)?;
    conversion(operation, name)?;
    if [ASSEMBLY, LIBDEVICE].contains(&name) {
        let pure = operation.attribute("pure").ok().and_then(text::boolean);
        if pure != Some(true) {
            return Err("it may have effects");
        }
    }
    Ok(if approximate { Treatment::CopyFenced } else { Treatment::Copy })
}

fn pinned(name: &str) -> Option<FloatOp> {
    Some(match name {
        "arith.addf" => FloatOp::Add,
        "arith.subf" => FloatOp::Sub,
        "arith.mulf" => FloatOp::Mul,
        "arith.divf" | "tt.precise_divf" | "tt.approx_divf" => FloatOp::Div,
        "math.sqrt" | "tt.precise_sqrt" => FloatOp::Sqrt,
        "math.fma" => FloatOp::Fma,
        _ => return None,
    })
}

/// Why some operations that one might expect are refused.
fn refused(name: &str) -> Option<&'static str> {
    Some(match name {
        "arith.remf" => "its expansion rounds in between",
        "tt.call" => "a call that was not inlined",
        "tt.assert" | "tt.print" => "an effect",
        "tt.load" | "tt.store" => "a memory access",
        _ => return None,
    })
}

const NOT_A_SCALAR: &str = "it is not on numbers of 1 to 64 bits";

/// Refuses whatever is not a number that both vendors handle alike.
fn scalars(operation: Op<'_>) -> Result<(), &'static str> {
    for value in ir::operands(operation).into_iter().chain(ir::results(operation)) {
        if element(value).is_none() {
            return Err(match text::printed_type(value.r#type()) {
                ty if ty.starts_with("f8") => "8-bit floats are not rounded alike on all targets",
                ty if ty.starts_with("tensor") => "it uses a tensor from outside the function",
                _ => NOT_A_SCALAR,
            });
        }
    }
    Ok(())
}

/// Refuses licences to change the result.
fn plain_flags(operation: Op<'_>) -> Result<(), &'static str> {
    match operation.attribute("fastmath") {
        Ok(flags) if !text::printed(flags).contains("<none>") => {
            Err("its fastmath flags allow other results")
        }
        _ => Ok(()),
    }
}

/// Refuses conversions that do not round once to nearest.
fn conversion(operation: Op<'_>, name: &str) -> Result<(), &'static str> {
    let first = |values: Vec<Val<'_>>| values.first().and_then(|&v| element(v));
    let from = first(ir::operands(operation));
    let to = first(ir::results(operation));
    match (name, from, to) {
        ("arith.truncf", Some(Element::F64), Some(Element::Bf16)) => {
            Err("Triton has no conversion from f64 to bf16")
        }
        ("arith.truncf", ..) => match operation.attribute("roundingmode") {
            Ok(mode) if !text::printed(mode).contains("to_nearest_even") => {
                Err("it does not round to nearest even")
            }
            _ => Ok(()),
        },
        ("arith.sitofp" | "arith.uitofp", Some(from), Some(Element::Bf16)) if from.bits() > 24 => {
            Err("an integer of more than 24 bits is rounded twice on its way to bf16")
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
