//! What a change of layouts costs and saves.
//!
//! # Idea
//! The price of a set is that of its pinned reductions, by the planner, and of the conversions at
//! its border and in it, before and after. What stands in a loop counts for every trip.
//! # Invariants
//! - **V1** No access of memory fetches more sectors than before, and none of shared memory goes
//!   through other banks.
//! - **V2** What is converted stays within the limits of registers and shared memory.
//! # Held by
//! V1: [`Prices::accesses`], before anything is priced. V2: [`Prices::within_limits`].
//! # Not here
//! The numbers (`lowering/src/cost.rs`).

use std::{
    cell::RefCell,
    collections::{BTreeMap, HashMap},
};

use bitstable_lowering::{
    cost::{self, CostModel},
    encoding,
    layout::{Dim, LinearLayout},
    plan::{Operands, Site, Step},
    planner,
    renumber::memory::{self, Memory, Request},
};
use melior::ir::operation::OperationLike;

use super::{
    component::{Component, Retyped, op_key},
    names::{Name, Names},
};
use crate::{
    element::{Element, Tensor},
    ir::{self, Op, Val},
    pin_reduce,
    pipeline::Layouts,
    place::Place,
    site::{Reduction, Target as Results, Way},
    target::{Machine, Target},
    text,
};

/// So many lines that requests touch beyond those before cost one issue slot: a look-up takes a
/// cycle of the cache, which serves four times as many sectors as reach it from beyond, and others
/// issue meanwhile.
const LINES: u64 = 8;
/// How often a loop's body is taken to run.
const TRIPS: u64 = 8;
/// How many loops around an operation are counted.
const DEEPEST: u32 = 3;

/// Why a set of changes is out of the question.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Obstacle {
    /// An access would fetch more sectors, or other banks would meet.
    Memory(String, Place),
    /// A layout that the planner cannot fold.
    Unplanned(Place),
    /// A converted value would take too many registers.
    Registers {
        /// How many of a thread.
        needed: u32,
        /// How many it may be.
        limit: u32,
    },
    /// A conversion would take too much shared memory.
    Shared {
        /// How many bytes.
        needed: u64,
        /// How many it may be.
        limit: u64,
    },
}

/// What a set costs, before and after the change.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Price {
    /// As the module is.
    pub before: u64,
    /// As it would be.
    pub after: u64,
    /// The part of `after` that conversions at the border cost.
    pub borders: u64,
}

impl Price {
    /// What is gained; negative where the change costs.
    pub fn gain(self) -> i64 {
        self.before as i64 - self.after as i64
    }
}

/// Prices changes of one module.
pub struct Prices<'a, 'c> {
    /// What names mean.
    pub names: &'a Names,
    /// The pinned reductions that are lowered, by operation.
    pub sites: BTreeMap<usize, Reduction<'c>>,
    costs: CostModel,
    memory: Memory,
    limits: Layouts,
    planned: RefCell<HashMap<Folding, Option<u64>>>,
}

/// What a plan's cost depends on, for one reduction: its operation, and two layouts.
type Folding = (usize, LinearLayout, LinearLayout);

impl<'a, 'c> Prices<'a, 'c> {
    /// Of a module with these pinned reductions.
    pub fn new(
        names: &'a Names,
        reductions: Vec<Reduction<'c>>,
        machine: &Machine,
        limits: Layouts,
    ) -> Self {
        let costs = pin_reduce::costs(&machine.target);
        let (sites, planned) = (BTreeMap::new(), RefCell::default());
        let memory = memory(&machine.target);
        let mut prices = Prices { names, sites, costs, memory, limits, planned };
        prices.reread(reductions);
        prices
    }

    /// The reductions as they are after a change.
    pub fn reread(&mut self, reductions: Vec<Reduction<'c>>) {
        self.sites = reductions.into_iter().map(|r| (op_key(r.op), r)).collect();
    }

    /// The index bits of the operands that must stay where they are, so that memory is accessed as
    /// before, and how it is accessed. `survey` is the set of what is connected.
    pub fn fixed(
        &self,
        survey: &Component<'c>,
        name: &Name,
        layout: &LinearLayout,
    ) -> (u64, Request) {
        let widths = survey.accesses.iter().filter_map(|&op| width(accessed(op)?));
        let narrowest = widths.min();
        let bytes = u64::from(narrowest.unwrap_or(32)).div_ceil(8);
        let request = match encoding::parse(name) {
            Ok(encoding) => Request::new(&encoding, layout, bytes),
            Err(_) => unreachable!("a layout was read from this text"),
        };
        let fixed = if narrowest.is_some() { request.together(self.memory) } else { 0 };
        (fixed, request)
    }

    /// The price of a change.
    pub fn of(&self, change: &Component<'c>) -> Result<Price, Obstacle> {
        for &op in &change.shared {
            self.same_banks(change, op)?;
        }
        let borders = self.borders(change)?;
        let mut price = Price { before: 0, after: borders + self.accesses(change)?, borders };
        for &op in change.conversions.iter().filter(|op| !self.is_folded(**op)) {
            let unplanned = || Obstacle::Unplanned(Place::of(op.location()));
            let (before, after) = self.conversion(change, op).ok_or_else(unplanned)?;
            price.before += before * weight(op);
            price.after += after * weight(op);
        }
        let (before, after) = self.work(change);
        price.before += before;
        price.after += after;
        let reductions = || change.reductions.iter().filter_map(|op| self.sites.get(&op_key(*op)));
        for reduction in reductions() {
            price.before += self.reduction(None, reduction)? * weight(reduction.op);
        }
        for reduction in reductions() {
            // What is too dear already need not be planned.
            if price.gain() > 0 {
                price.after += self.reduction(Some(change), reduction)? * weight(reduction.op);
            }
        }
        Ok(price)
    }

    /// What the lines cost that the accesses of memory touch beyond those that they touched.
    fn accesses(&self, change: &Component<'c>) -> Result<u64, Obstacle> {
        let mut more = 0;
        for &op in &change.accesses {
            let unknown = || Obstacle::Memory(ir::name(op).to_owned(), Place::of(op.location()));
            let (number, value) =
                (0..).zip(ir::operands(op)).find(|(_, v)| ir::is_tensor(*v)).ok_or_else(unknown)?;
            let Some(name) = change.operand(op, number) else { continue };
            let named = self.names.of(value).ok_or_else(unknown)?;
            let before = self.names.layout(&named.name, &named.shape).ok_or_else(unknown)?;
            let after = self.names.layout(name, &named.shape).ok_or_else(unknown)?;
            let bits = accessed(op).and_then(width).unwrap_or(8);
            let encoding = encoding::parse(&named.name).map_err(|_| unknown())?;
            let request = Request::new(&encoding, &before, u64::from(bits).div_ceil(8));
            if !request.keeps(&before, &after, self.memory) {
                return Err(unknown());
            }
            let lines = |layout| request.lines(layout, self.memory);
            more += lines(&after).saturating_sub(lines(&before)).div_ceil(LINES) * weight(op);
        }
        Ok(more)
    }

    fn same_banks(&self, change: &Component<'c>, op: Op<'c>) -> Result<(), Obstacle> {
        let unknown = || Obstacle::Memory(ir::name(op).to_owned(), Place::of(op.location()));
        let read = (0..).zip(ir::operands(op)).find(|(_, v)| ir::is_tensor(*v));
        let (value, name) = match read {
            Some((number, value)) => (value, change.operand(op, number)),
            None => {
                let value = *ir::results(op).first().ok_or_else(unknown)?;
                (value, change.value(value))
            }
        };
        let Some(name) = name else { return Ok(()) };
        let named = self.names.of(value).ok_or_else(unknown)?;
        let before = self.names.layout(&named.name, &named.shape).ok_or_else(unknown)?;
        let after = self.names.layout(name, &named.shape).ok_or_else(unknown)?;
        let bytes = u64::from(width(value).unwrap_or(8)).div_ceil(8);
        if memory::same_passes(&before, &after, bytes) { Ok(()) } else { Err(unknown()) }
    }

    /// What a pinned reduction costs, with a change or without.
    fn reduction(
        &self,
        change: Option<&Component<'c>>,
        reduction: &Reduction<'c>,
    ) -> Result<u64, Obstacle> {
        let unplanned = || Obstacle::Unplanned(reduction.at.clone());
        let Way::Lowered(lowered) = &reduction.way else { return Ok(0) };
        let mut site = lowered.site.clone();
        if let Some(name) = change.and_then(|change| change.operand(reduction.op, 0)) {
            let layout = self.names.layout(name, &reduction.shape).ok_or_else(unplanned)?;
            site.source = (*layout).clone();
        }
        if let Some((value, change)) = wanted(reduction, &lowered.result).zip(change) {
            let folded = change.retyped(value).is_some_and(is_converted_back);
            if let Some(name) = change.value(value).filter(|_| !folded) {
                let named = self.names.of(value).ok_or_else(unplanned)?;
                let layout = self.names.layout(name, &named.shape).ok_or_else(unplanned)?;
                site.result = (*layout).clone();
            }
        }
        let key = (op_key(reduction.op), site.source.clone(), site.result.clone());
        let plan = || planner::plan(&site, &self.costs).ok().map(|plan| u64::from(plan.cost));
        self.planned.borrow_mut().entry(key).or_insert_with(plan).ok_or_else(unplanned)
    }

    /// What the connected values cost themselves, before and after: one operation for each element
    /// that a thread holds of those of which it then holds more or fewer, and the numbers of the
    /// elements that are made from the numbers of lanes and warps. How such a number differs between
    /// registers is a constant, which loads and stores add to an address for nothing.
    fn work(&self, change: &Component<'c>) -> (u64, u64) {
        let values = change.retyped.iter().map(|r| (r.value, &r.from, &r.to, false));
        let copies = change.brought.iter().filter(|b| b.copied && is_range(b.value));
        let copies = copies.map(|b| (b.value, &b.from, &b.to, true));
        let (mut before, mut after) = (0, 0);
        for (value, from, to, range) in values.chain(copies) {
            let layouts = self.names.layout(&from.name, &from.shape);
            let layouts = layouts.zip(self.names.layout(to, &from.shape));
            let Some((old, new)) = layouts else { continue };
            let work = |layout: &LinearLayout| {
                let numbers = if range { runs(layout) * u64::from(self.costs.shift) } else { 0 };
                let each = if is_number(value) { 0 } else { layout.registers() as u64 };
                each + numbers
            };
            if range || old.register.len() != new.register.len() {
                before += work(&old) * weight_of(value);
                after += work(&new) * weight_of(value);
            }
        }
        (before, after)
    }

    /// Whether `op`, a conversion, is a part of the plan of the reduction before it.
    fn is_folded(&self, op: Op<'c>) -> bool {
        let folds = |reduction: &Reduction<'c>| match &reduction.way {
            Way::Lowered(lowered) => match &lowered.result {
                Results::Conversions(all) => all.iter().flatten().any(|c| op_key(*c) == op_key(op)),
                Results::Scalars | Results::Results(_) => false,
            },
            Way::LeftToTriton => false,
        };
        self.sites.values().any(folds)
    }

    /// What a conversion of the module costs, before and after.
    fn conversion(&self, change: &Component<'c>, op: Op<'c>) -> Option<(u64, u64)> {
        let (operand, result) = (*ir::operands(op).first()?, *ir::results(op).first()?);
        let (from, to) = (self.names.of(operand)?, self.names.of(result)?);
        let new_from = change.operand(op, 0).unwrap_or(&from.name);
        let new_to = change.value(result).unwrap_or(&to.name);
        let layout = |name| self.names.layout(name, &from.shape);
        let width = width(operand).unwrap_or(64);
        let before = self.moved(&*layout(&from.name)?, &*layout(&to.name)?, width);
        let after = self.moved(&*layout(new_from)?, &*layout(new_to)?, width);
        Some((before, after))
    }

    /// What the conversions cost that are put at the border.
    fn borders(&self, change: &Component<'c>) -> Result<u64, Obstacle> {
        let stale = change.retyped.iter().filter(|r| !r.stale.is_empty());
        let stale = stale.filter(|r| !(is_converted_back(r) && self.is_pinned_result(r.value)));
        let out = stale.map(|r| (r.value, &r.from.shape, &r.to, &r.from.name));
        let into = change.brought.iter().filter(|b| !b.copied);
        let into = into.map(|b| (b.value, &b.from.shape, &b.from.name, &b.to));
        let mut total = 0;
        for (value, shape, from, to) in out.chain(into) {
            let unplanned = || Obstacle::Unplanned(place(value));
            let from = self.names.layout(from, shape).ok_or_else(unplanned)?;
            let to = self.names.layout(to, shape).ok_or_else(unplanned)?;
            let width = width(value).unwrap_or(64);
            self.within_limits(&from, &to, width)?;
            total += self.moved(&from, &to, width) * weight_of(value);
        }
        Ok(total)
    }

    fn is_pinned_result(&self, value: Val<'c>) -> bool {
        match ir::source(value) {
            ir::Source::Result(op, _) => self.sites.contains_key(&op_key(op)),
            ir::Source::Argument(..) => false,
        }
    }

    fn within_limits(
        &self,
        from: &LinearLayout,
        to: &LinearLayout,
        width: u32,
    ) -> Result<(), Obstacle> {
        let needed = cost::words(from.registers(), width) + cost::words(to.registers(), width);
        let limit = self.limits.max_registers;
        if needed > limit {
            return Err(Obstacle::Registers { needed, limit });
        }
        let needed = (1u64 << from.shape.total_bits()) * u64::from(width.div_ceil(8));
        let limit = self.limits.max_shared;
        if from.warp != to.warp && needed > limit {
            return Err(Obstacle::Shared { needed, limit });
        }
        Ok(())
    }

    /// What moving a tensor between two layouts costs.
    fn moved(&self, from: &LinearLayout, to: &LinearLayout, width: u32) -> u64 {
        let site = Site {
            source: from.clone(),
            axis: Dim(0),
            result: from.clone(),
            widths: vec![width],
            operands: Operands::Commute,
            combine_cost: 1,
        };
        u64::from(planner::price(&site, &self.costs, &[Step::Relayout(to.clone())]))
    }
}

/// Whether all users of a value go on reading it in the layout that it had.
fn is_converted_back(retyped: &Retyped<'_>) -> bool {
    retyped.users == 0 && !retyped.stale.is_empty()
}

fn is_range(value: Val<'_>) -> bool {
    matches!(ir::source(value), ir::Source::Result(op, _) if ir::name(op) == "tt.make_range")
}

/// Whether `value` numbers elements, or points to them.
fn is_number(value: Val<'_>) -> bool {
    let element = Tensor::of(value).map(|tensor| text::printed_type(tensor.element));
    element.is_some_and(|ty| ty.starts_with("!tt.ptr") || ty == "i32" || ty == "i64")
}

/// How many runs of neighbouring bits the numbers of lane and warp fall into: each is one shift and
/// mask on the way to an element's number.
fn runs(layout: &LinearLayout) -> u64 {
    let bits: Vec<u64> = layout.lane.iter().chain(&layout.warp).map(|basis| basis.0).collect();
    let begins = |i: &usize| bits[*i] != 0 && (*i == 0 || bits[*i] != bits[*i - 1] << 1);
    (0..bits.len()).filter(begins).count() as u64
}

/// The value whose layout is the one that a reduction's plan ends with.
fn wanted<'c>(reduction: &Reduction<'c>, results: &Results<'c>) -> Option<Val<'c>> {
    match results {
        Results::Scalars => None,
        Results::Results(_) => ir::results(reduction.op).first().copied(),
        Results::Conversions(all) => {
            all.iter().flatten().next().and_then(|&op| ir::results(op).first().copied())
        }
    }
}

/// The transfers of a vendor's memory: a sector of an NVIDIA line, half a line on AMD.
fn memory(target: &Target) -> Memory {
    match target {
        Target::Nvidia { .. } => Memory { sector: 32, line: 128 },
        Target::Amd { .. } => Memory { sector: 64, line: 128 },
    }
}

/// The value that an access loads or stores.
fn accessed(op: Op<'_>) -> Option<Val<'_>> {
    match ir::name(op) {
        "tt.store" => ir::operands(op).get(1).copied(),
        "amdg.buffer_store" => ir::operands(op).first().copied(),
        _ => ir::results(op).first().copied(),
    }
}

/// The width of an element in bits; pointers have none here.
fn width(value: Val<'_>) -> Option<u32> {
    let element = text::printed_type(Tensor::of(value)?.element);
    match Element::parse(&element) {
        Some(known) => Some(known.bits()),
        None => element.starts_with('f').then_some(8),
    }
}

fn place(value: Val<'_>) -> Place {
    match ir::source(value) {
        ir::Source::Result(op, _) => Place::of(op.location()),
        ir::Source::Argument(block, _) => {
            ir::parent(block).map_or_else(Place::default, |op| Place::of(op.location()))
        }
    }
}

fn weight_of(value: Val<'_>) -> u64 {
    match ir::source(value) {
        ir::Source::Result(op, _) => weight(op),
        // An argument is converted within the loop.
        ir::Source::Argument(block, _) => ir::parent(block).map_or(1, |op| weight(op) * TRIPS),
    }
}

/// How often `op` runs.
fn weight(op: Op<'_>) -> u64 {
    let mut depth = 0;
    let mut around = op.block().and_then(ir::parent);
    while let Some(parent) = around {
        depth += u32::from(matches!(ir::name(parent), "scf.for" | "scf.while"));
        around = parent.block().and_then(ir::parent);
    }
    TRIPS.pow(depth.min(DEEPEST))
}
