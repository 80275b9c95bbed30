//! Finding pinned reductions, and what the planner must know about each.
//!
//! # Invariants
//! - **F1** Every `tt.order` in the module is either honoured or refused.
//! - **F2** A site's layouts have as many lanes, warps and CTAs as the module says.
//! # Held by
//! F1: [`pinned`] looks at every operation. F2: [`sized`].
//! # Not here
//! The plan (`lowering`); what is emitted (`emit/`).

use bitstable_lowering::{
    encoding::{self, EncodingError},
    layout::{Basis, Dim, LinearLayout, Shape},
    plan,
};
use melior::ir::{Attribute, Type, operation::OperationLike};

use crate::{
    combine_kind::{self, Kind},
    element::{Element, Tensor},
    element_order,
    ir::{self, Blk, Op, Val},
    place::Place,
    refusal::{Refusal, Refused},
    target::Machine,
    text,
};

/// The attribute that carries the order.
pub const ORDER: &str = "tt.order";
/// The one order there is.
pub const INNER_TREE: &str = "inner_tree";

/// A pinned reduction.
pub struct Reduction<'c> {
    /// The `tt.reduce`.
    pub op: Op<'c>,
    /// Where it stands in the user's source.
    pub at: Place,
    /// The reduced axis.
    pub axis: u32,
    /// The operands' extents.
    pub shape: Shape,
    /// The block of its combine function.
    pub block: Blk<'c>,
    /// What is to be done with it.
    pub way: Way<'c>,
}

/// What is to be done with a pinned reduction.
pub enum Way<'c> {
    /// Nothing: its combine function gives one result in any order.
    LeftToTriton,
    /// It is lowered.
    Lowered(Box<Lowered<'c>>),
}

/// What the planner and the emission must know.
pub struct Lowered<'c> {
    /// The types of the operands.
    pub elements: Vec<Element>,
    /// For the planner.
    pub site: plan::Site,
    /// Whether the operands must first be converted to `site.source`.
    pub converted: Converted,
    /// Where the results go.
    pub result: Target<'c>,
}

/// Whether Triton's layout is the planner's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Converted {
    /// It is.
    No,
    /// It is not understood; a `ttg.convert_layout` stands between the two.
    Yes,
}

/// Where the results of a reduction go.
pub enum Target<'c> {
    /// They are scalars.
    Scalars,
    /// They replace the reduction's results, whose layout the planner's result has.
    Results(Converted),
    /// They replace the results of these conversions, one for each operand (none where the result
    /// is not used), which are the only users and are erased.
    Conversions(Vec<Option<Op<'c>>>),
}

/// The pinned reductions among `operations`, or why the module is refused.
pub fn pinned<'c>(operations: &[Op<'c>]) -> Result<Vec<Op<'c>>, Vec<Refused>> {
    let mut found = Vec::new();
    let mut refused = Vec::new();
    for &op in operations.iter().filter(|op| op.has_attribute(ORDER)) {
        match order(op) {
            Ok(()) => found.push(op),
            Err(refusal) => refused.push(refusal.at(Place::of(op.location()))),
        }
    }
    if refused.is_empty() { Ok(found) } else { Err(refused) }
}

fn order(op: Op<'_>) -> Result<(), Refusal> {
    let name = ir::name(op).to_owned();
    if name != "tt.reduce" {
        return Err(Refusal::OrderElsewhere { op: name });
    }
    let Ok(attribute) = op.discardable_attribute(ORDER) else {
        return Err(Refusal::Malformed { what: "tt.order stands among its properties".into() });
    };
    match text::string(attribute) {
        Some(order) if order == INNER_TREE => Ok(()),
        _ => Err(Refusal::UnknownOrder { op: name, found: text::printed(attribute) }),
    }
}

/// Reads one pinned reduction.
pub fn read<'c>(op: Op<'c>, machine: &Machine) -> Result<Reduction<'c>, Vec<Refused>> {
    let at = Place::of(op.location());
    let one = |refusal: Refusal| vec![refusal.at(at.clone())];
    let (axis, shape) = axis_and_shape(op).map_err(one)?;
    let block = combine_kind::block(op).map_err(one)?;
    let way = match combine_kind::kind(block) {
        Kind::OrderInsensitive => Way::LeftToTriton,
        Kind::Tree(operands) => {
            let mut refused = Vec::new();
            combine_kind::check(block, &mut refused);
            if let Some(culprit) = element_order::reordering(&ir::operands(op)) {
                let op = ir::name(culprit).to_owned();
                refused.push(Refusal::Reordered { op }.at(at.clone()));
            }
            if !refused.is_empty() {
                return Err(refused);
            }
            let reader = Reader { op, axis, shape: &shape, machine: &machine_at(op, machine) };
            let lowered = reader.lowered(operands, block).map_err(one)?;
            Way::Lowered(Box::new(lowered))
        }
    };
    Ok(Reduction { op, at, axis, shape, block, way })
}

fn axis_and_shape(op: Op<'_>) -> Result<(u32, Shape), Refusal> {
    let malformed = |what: &str| Refusal::Malformed { what: what.into() };
    let axis = op.attribute("axis").ok().and_then(text::integer);
    let axis = axis.and_then(|a| u32::try_from(a).ok()).ok_or(malformed("it has no axis"))?;
    let operand = ir::operands(op).first().copied().ok_or(malformed("it has no operand"))?;
    let tensor = Tensor::of(operand).ok_or(malformed("its operand is no tensor"))?;
    let extents: Option<Vec<u64>> = tensor.extents.iter().map(|&e| u64::try_from(e).ok()).collect();
    let extents = extents.ok_or(malformed("its operand has a dynamic shape"))?;
    let shape = Shape::from_extents(&extents).map_err(|e| malformed(&e.to_string()))?;
    if axis as usize >= shape.rank() {
        return Err(malformed("its axis is not below its operand's rank"));
    }
    if op.operand_count() != op.result_count() {
        return Err(malformed("it has not one result for each operand"));
    }
    Ok((axis, shape))
}

/// The machine as `op` sees it: partitions of a warp-specialised region have their own warps.
fn machine_at(op: Op<'_>, machine: &Machine) -> Machine {
    let mut around = op;
    while let Some(parent) = around.parent_operation() {
        if ir::name(parent) == "ttg.warp_specialize.partitions" {
            let number = around.block().and_then(|b| ir::region_number(parent, b));
            let whole = parent.parent_operation();
            let counts = whole.and_then(|w| w.attribute("partitionNumWarps").ok());
            let warps = counts.zip(number).and_then(|(counts, n)| text::i32_at(counts, n));
            if let Some(warps) = warps.and_then(|w| u32::try_from(w).ok()) {
                return Machine { num_warps: warps, ..machine.clone() };
            }
        }
        around = parent;
    }
    machine.clone()
}

struct Reader<'a, 'c> {
    op: Op<'c>,
    axis: u32,
    shape: &'a Shape,
    machine: &'a Machine,
}

impl<'c> Reader<'_, 'c> {
    fn lowered(&self, operands: plan::Operands, block: Blk<'c>) -> Result<Lowered<'c>, Refusal> {
        let tensors = self.tensors()?;
        let elements = tensors.iter().map(|t| element(t.element)).collect::<Result<Vec<_>, _>>()?;
        let encoding = tensors[0].encoding.ok_or_else(|| Refusal::Malformed {
            what: "its operand has no layout; pin-reduce works on TTGIR".into(),
        })?;
        let (source, converted) = self.layout(encoding, self.shape)?;
        let (result, target) = self.result(&source)?;
        let site = plan::Site {
            source,
            axis: Dim(self.axis as usize),
            result,
            widths: elements.iter().map(|e| e.bits()).collect(),
            operands,
            combine_cost: (ir::operations(block).len() as u32).saturating_sub(1).max(1),
        };
        Ok(Lowered { elements, site, converted, result: target })
    }

    /// The operands' types, which agree in all but the element.
    fn tensors(&self) -> Result<Vec<Tensor<'c>>, Refusal> {
        let all: Option<Vec<Tensor<'c>>> =
            ir::operands(self.op).into_iter().map(Tensor::of).collect();
        let malformed = |what: &str| Refusal::Malformed { what: what.into() };
        let all = all.ok_or(malformed("an operand is no tensor"))?;
        let first = &all[0];
        let agree = |t: &Tensor<'_>| t.extents == first.extents && t.encoding == first.encoding;
        if all.iter().all(agree) {
            Ok(all)
        } else {
            Err(malformed("its operands differ in shape or layout"))
        }
    }

    /// The layout of `encoding`, or a layout of our own if it is one that we do not know.
    fn layout(
        &self,
        encoding: Attribute<'c>,
        shape: &Shape,
    ) -> Result<(LinearLayout, Converted), Refusal> {
        let text = text::printed(encoding);
        match encoding::linear_layout(&text, shape) {
            Ok(layout) => {
                sized(&layout, &text, self.machine)?;
                Ok((layout, Converted::No))
            }
            // The tensor is at odds with itself.
            Err(error @ (EncodingError::Rank { .. } | EncodingError::Shape(_))) => {
                Err(Refusal::Encoding { axis: self.axis, error })
            }
            // A layout that Triton knows and we do not. Which CTA holds what is then not known.
            Err(error) if self.machine.num_ctas > 1 => {
                Err(Refusal::Encoding { axis: self.axis, error })
            }
            Err(_) => Ok((plain(shape, Dim(self.axis as usize), self.machine), Converted::Yes)),
        }
    }

    /// Where the results are wanted.
    fn result(&self, source: &LinearLayout) -> Result<(LinearLayout, Target<'c>), Refusal> {
        let results = ir::results(self.op);
        let Some(tensor) = results.first().and_then(|&r| Tensor::of(r)) else {
            return Ok((scalar(source), Target::Scalars));
        };
        let mut extents = self.shape.extents();
        extents.remove(self.axis as usize);
        let malformed = |what: &str| Refusal::Malformed { what: what.into() };
        let shape = Shape::from_extents(&extents).map_err(|e| malformed(&e.to_string()))?;
        if let Some((layout, conversions)) = self.conversions(&results, &shape) {
            return Ok((layout, Target::Conversions(conversions)));
        }
        let encoding = tensor.encoding.ok_or(malformed("its result has no layout"))?;
        let (layout, converted) = self.layout(encoding, &shape)?;
        Ok((layout, Target::Results(converted)))
    }

    /// The conversions that alone use the results, if they agree on a layout that is understood
    /// and stand in the reduction's block.
    fn conversions(
        &self,
        results: &[Val<'c>],
        shape: &Shape,
    ) -> Option<(LinearLayout, Vec<Option<Op<'c>>>)> {
        let mut wanted: Option<Attribute<'c>> = None;
        let mut all = Vec::new();
        for &result in results {
            let users = ir::uses(result);
            let user = match users[..] {
                [] => None,
                [(user, _)] => Some(user),
                _ => return None,
            };
            if let Some(user) = user {
                if ir::name(user) != "ttg.convert_layout" || user.block() != self.op.block() {
                    return None;
                }
                let encoding = Tensor::of(*ir::results(user).first()?)?.encoding?;
                if *wanted.get_or_insert(encoding) != encoding {
                    return None;
                }
            }
            all.push(user);
        }
        let text = text::printed(wanted?);
        let layout = encoding::linear_layout(&text, shape).ok()?;
        sized(&layout, &text, self.machine).ok()?;
        Some((layout, all))
    }
}

fn element(ty: Type<'_>) -> Result<Element, Refusal> {
    let text = text::printed_type(ty);
    Element::parse(&text).ok_or(Refusal::ElementType { ty: text })
}

/// Refuses a layout that is not of the module's machine.
fn sized(layout: &LinearLayout, encoding: &str, machine: &Machine) -> Result<(), Refusal> {
    let lanes = 1u64 << machine.target.lane_bits();
    for (what, columns, expected) in [
        ("lanes", &layout.lane, lanes),
        ("warps", &layout.warp, u64::from(machine.num_warps)),
        ("CTAs", &layout.block, u64::from(machine.num_ctas)),
    ] {
        let found = 1u64 << columns.len();
        if found != expected {
            return Err(Refusal::LayoutSize { encoding: encoding.into(), what, found, expected });
        }
    }
    Ok(())
}

/// A layout without an axis: every place holds the one value.
fn scalar(source: &LinearLayout) -> LinearLayout {
    let still = |columns: &[Basis]| vec![Basis::ZERO; columns.len()];
    LinearLayout {
        shape: Shape::from_extents(&[]).unwrap_or_else(|_| source.shape.clone()),
        register: Vec::new(),
        lane: still(&source.lane),
        warp: still(&source.warp),
        block: still(&source.block),
    }
}

/// A layout of `shape` for operands whose own is not understood: the low bits of the axis in
/// registers, its other bits in lanes, then the other dimensions.
fn plain(shape: &Shape, axis: Dim, machine: &Machine) -> LinearLayout {
    let lanes = machine.target.lane_bits() as usize;
    let threads = lanes + machine.num_warps.trailing_zeros() as usize;
    let axis = (axis.0 < shape.rank()).then_some(axis);
    let dims =
        axis.into_iter().chain((0..shape.rank()).rev().map(Dim).filter(|&d| Some(d) != axis));
    let mut bits: Vec<Basis> =
        dims.flat_map(|d| (0..shape.bits(d)).map(move |b| shape.unit(d, b))).collect();
    let mut rest = bits.split_off(bits.len().saturating_sub(threads)).into_iter();
    let mut fill = |n: usize| (0..n).map(|_| rest.next().unwrap_or(Basis::ZERO)).collect();
    let (lane, warp) = (fill(lanes), fill(threads - lanes));
    LinearLayout { shape: shape.clone(), register: bits, lane, warp, block: Vec::new() }
}
