//! From a plan to operations: a match over its steps that decides nothing.
//!
//! # Idea
//! A tensor is taken apart into the registers of a thread by a cast to the struct that Triton's
//! own type conversion makes of it, and the results are put together the same way. In between
//! there are scalars; what crosses warps is stored to a `ttg.local_alloc` and loaded from it, for
//! which Triton allocates shared memory and places barriers.
//! # Invariants
//! - **M1** `values[operand][register]` follows [`State`]: register numbers are the state's.
//! # Held by
//! M1: an assertion after every run of steps. That the code folds the tree: the tests execute it.
//! # Not here
//! How one combine is evaluated (`combine.rs`), in which order the combines of one thread stand
//! (`run.rs`, `fold.rs`), how values change lanes (`exchange.rs`), and what a checker of the machine code is
//! told (`mark.rs`).

pub mod combine;
pub mod exchange;
mod fold;
pub mod mark;
pub mod packed;
mod run;

use bitstable_lowering::{
    layout::{Basis, LinearLayout},
    plan::{LaneBit, Operands, Plan, RegisterBit, State, Step},
    shared,
};
use melior::ir::{Type, ValueLike};

use crate::{
    build::Builder,
    element::Element,
    ir::{self, Op, Val},
    pin_reduce,
    site::{Converted, Lowered, Target as Results},
    target::Target,
};
use combine::Combine;
use mark::Marks;

/// What emission works on.
struct Emission<'a, 'c> {
    b: Builder<'c>,
    target: &'a Target,
    combine: &'a Combine<'c>,
    marks: Option<Marks>,
    elements: &'a [Element],
    operands: Operands,
    state: State,
    values: Vec<Vec<Val<'c>>>,
    /// What relayouts stored.
    buffers: Vec<Val<'c>>,
}

/// An operand in the middle of a relayout.
enum Moved<'c> {
    /// A tensor of the new layout.
    Converted(Val<'c>),
    /// A buffer to load it from.
    Stored(Val<'c>),
}

/// Replaces the reduction `op` by what `plan` says, and erases it; with marks where there are any.
pub fn lower<'c>(
    b: Builder<'c>,
    op: Op<'c>,
    lowered: &Lowered<'c>,
    plan: &Plan,
    (combine, marks): (&Combine<'c>, Option<Marks>),
    target: &Target,
) {
    let mut emission = Emission {
        b,
        target,
        combine,
        marks,
        elements: &lowered.elements,
        operands: lowered.site.operands,
        state: State::new(&lowered.site),
        values: Vec::new(),
        buffers: Vec::new(),
    };
    emission.open(op, lowered);
    for run in plan.steps.chunk_by(|_, next| !matches!(next, Step::Relayout(_))) {
        let steps = match run {
            [Step::Relayout(layout), steps @ ..] => {
                emission.relayout(layout);
                emission.advance(&run[..1]);
                steps
            }
            steps => steps,
        };
        emission.run(steps);
        emission.advance(steps);
    }
    emission.free();
    emission.close(op, lowered, &plan.gather);
    ir::erase(op);
}

impl<'c> Emission<'_, 'c> {
    /// Takes the operands apart.
    fn open(&mut self, op: Op<'c>, lowered: &Lowered<'c>) {
        let source = &lowered.site.source;
        for (operand, &element) in ir::operands(op).into_iter().zip(self.elements) {
            let operand = match lowered.converted {
                Converted::No => operand,
                Converted::Yes => self.convert(operand, self.tensor(source, element)),
            };
            let registers = self.take_apart(operand, source, element);
            self.values.push(registers);
        }
        let Some(marks) = &self.marks else { return };
        for (number, register) in source.distinct_registers().1.into_iter().enumerate() {
            let values = self.with_elements(self.values.iter().map(|v| v[number]));
            let marked = marks.elements(self.b, source, register, &values);
            for (operand, value) in self.values.iter_mut().zip(marked) {
                operand[number] = value;
            }
        }
    }

    fn with_elements(&self, values: impl IntoIterator<Item = Val<'c>>) -> Vec<(Val<'c>, Element)> {
        values.into_iter().zip(self.elements.iter().copied()).collect()
    }

    /// One combine.
    fn combine(&self, left: &[Val<'c>], right: &[Val<'c>]) -> Vec<Val<'c>> {
        self.marked(self.combine.apply(self.b, left, right))
    }

    /// What a combine made, marked where there are marks.
    fn marked(&self, values: Vec<Val<'c>>) -> Vec<Val<'c>> {
        match &self.marks {
            None => values,
            Some(marks) => marks.combined(self.b, &self.with_elements(values)),
        }
    }

    /// Emits steps, each for all registers before the next.
    fn in_turn(&mut self, mut steps: &[Step]) {
        while let Some(step) = steps.first() {
            let done = self
                .fold_wave(steps)
                .or_else(|| self.fold_registers(steps))
                .unwrap_or_else(|| self.step(step));
            steps = &steps[done..];
        }
    }

    /// Emits one step.
    fn step(&mut self, step: &Step) -> usize {
        match step {
            Step::Butterfly(bit) => {
                let own = std::mem::take(&mut self.values);
                let pair = exchange::pair(self.b, self.target, self.operands, *bit, &own.concat());
                self.values = self.combined_pair(pair);
            }
            Step::HalfExchange { register, .. } => {
                let (low, high) = self.halves(*register);
                self.across(step, [low, high]);
            }
            Step::FoldRegister(_) => unreachable!("`fold_registers` takes them all"),
            Step::Relayout(_) => unreachable!("no relayout stands in a run"),
        }
        1
    }

    /// Emits the step that combines two halves of the registers.
    fn across(&mut self, step: &Step, [low, high]: [Vec<Vec<Val<'c>>>; 2]) {
        self.values = match step {
            Step::HalfExchange { lane, .. } => {
                let (low, high) = (low.concat(), high.concat());
                let halves = (&low[..], &high[..]);
                let pair = exchange::half_pair(self.b, self.target, self.operands, *lane, halves);
                self.combined_pair(pair)
            }
            _ => self.combined(&low, &high),
        };
    }

    /// Emits the butterflies of lane bits 0, 1, … that `steps` begins with as one fold, where the
    /// target has one; how many steps that were.
    fn fold_wave(&mut self, steps: &[Step]) -> Option<usize> {
        let run = (0..)
            .zip(steps)
            .take_while(|(bit, step)| matches!(step, Step::Butterfly(LaneBit(b)) if b == bit));
        let (done, folded) = (1..=run.count()).rev().find_map(|bits| {
            let fold = |register: usize| {
                let values: Vec<Val<'c>> = self.values.iter().map(|v| v[register]).collect();
                let bits = bits as u32;
                exchange::wave_fold(self.b, self.target, self.combine, &values, bits)
            };
            let registers = self.values.first().map_or(0, Vec::len);
            let folded: Option<Vec<Vec<Val<'c>>>> = (0..registers).map(fold).collect();
            folded.map(|folded| (bits, folded))
        })?;
        self.values = transposed(&folded, self.elements.len());
        Some(done)
    }

    /// Follows what was emitted.
    fn advance(&mut self, steps: &[Step]) {
        self.state = steps.iter().fold(self.state.clone(), |state, step| state.after(step));
        let registers = self.state.layout.registers();
        assert!(self.values.iter().all(|v| v.len() == registers), "M1 after {steps:?}");
    }

    /// Within warps, Triton's conversion exchanges registers. Across them, all operands are stored
    /// before the first is loaded, so that one barrier serves them all.
    fn relayout(&mut self, target: &LinearLayout) {
        let own = std::mem::take(&mut self.values);
        let costs = pin_reduce::costs(self.target);
        let from = &self.state.layout;
        let mut moved = Vec::new();
        for (registers, &element) in own.iter().zip(self.elements) {
            let tensor = self.put_together(registers, self.tensor(from, element), element);
            let offsets = match element {
                Element::Int(1) => None, // shared memory holds no truth values
                _ => shared::offsets(from, target, element.bits(), &costs),
            };
            moved.push(match offsets {
                None => Moved::Converted(self.convert(tensor, self.tensor(target, element))),
                Some(offsets) => Moved::Stored(self.store(tensor, &offsets, element)),
            });
        }
        for (moved, &element) in moved.into_iter().zip(self.elements) {
            let tensor = match moved {
                Moved::Converted(tensor) => tensor,
                Moved::Stored(buffer) => {
                    self.buffers.push(buffer);
                    let ty = self.tensor(target, element);
                    self.b.one("ttg.local_load", &[buffer], ty, &[])
                }
            };
            self.values.push(self.take_apart(tensor, target, element));
        }
    }

    /// A buffer in shared memory that holds `tensor`.
    fn store(&self, tensor: Val<'c>, offsets: &[Basis], element: Element) -> Val<'c> {
        let shape = &self.state.layout.shape;
        let extents: String = shape.extents().iter().map(|e| format!("{e}x")).collect();
        let offsets = shape.columns(offsets);
        let ty = self.b.ty(&format!(
            "!ttg.memdesc<{extents}{}, #ttg.shared_linear<{{offset = {offsets}}}, alignment = 16>, \
             #ttg.shared_memory>",
            element.name()
        ));
        self.b.one("ttg.local_alloc", &[tensor], ty, &[])
    }

    /// Buffers of one reduction do not overlap, or a store would have to wait for the loads of the
    /// one before: all live to its end.
    fn free(&self) {
        for &buffer in self.buffers.iter().filter(|_| self.buffers.len() > self.elements.len()) {
            self.b.op("ttg.local_dealloc", &[buffer], &[], &[]);
        }
    }

    /// Puts the results together and hands them to the users.
    fn close(&self, op: Op<'c>, lowered: &Lowered<'c>, gather: &[u32]) {
        let results: Vec<Vec<Val<'c>>> = (0..)
            .zip(gather)
            .map(|(number, &register)| {
                let values = self.values.iter().map(|v| v[register as usize]);
                match &self.marks {
                    None => values.collect(),
                    Some(marks) => {
                        let (values, layout) = (self.with_elements(values), &lowered.site.result);
                        marks.results(self.b, layout, number, &values)
                    }
                }
            })
            .collect();
        for (i, result) in ir::results(op).into_iter().enumerate() {
            let registers: Vec<Val<'c>> = results.iter().map(|values| values[i]).collect();
            let element = self.elements[i];
            match &lowered.result {
                Results::Scalars => ir::replace(result, registers[0]),
                Results::Results(Converted::No) => {
                    let tensor = self.put_together(&registers, result.r#type(), element);
                    ir::replace(result, tensor);
                }
                Results::Results(Converted::Yes) => {
                    let planned = self.tensor(&lowered.site.result, element);
                    let tensor = self.put_together(&registers, planned, element);
                    ir::replace(result, self.convert(tensor, result.r#type()));
                }
                Results::Conversions(conversions) => {
                    if let Some(conversion) = conversions[i] {
                        let wanted = ir::results(conversion)[0];
                        let tensor = self.put_together(&registers, wanted.r#type(), element);
                        ir::replace(wanted, tensor);
                        ir::erase(conversion);
                    }
                }
            }
        }
    }

    /// The values whose register bit `bit` is clear, and those whose bit is set.
    fn halves(&self, bit: RegisterBit) -> (Vec<Vec<Val<'c>>>, Vec<Vec<Val<'c>>>) {
        let half = |side: usize| {
            let of =
                |v: &Vec<Val<'c>>| (0..v.len() / 2).map(|r| v[with_bit(r, bit, side)]).collect();
            self.values.iter().map(of).collect()
        };
        (half(0), half(1))
    }

    /// The registers of `tensor` that differ, in order.
    fn take_apart(&self, tensor: Val<'c>, layout: &LinearLayout, element: Element) -> Vec<Val<'c>> {
        let all = self.structure(layout.registers(), element);
        let whole = self.b.one("builtin.unrealized_conversion_cast", &[tensor], all, &[]);
        let ty = self.b.ty(&element.name());
        let extract = |register: u32| {
            let position = self.b.attr(&format!("array<i64: {register}>"));
            self.b.one("llvm.extractvalue", &[whole], ty, &[("position", position)])
        };
        layout.distinct_registers().1.into_iter().map(extract).collect()
    }

    /// A tensor of type `ty` from its registers.
    fn put_together(&self, registers: &[Val<'c>], ty: Type<'c>, element: Element) -> Val<'c> {
        let all = self.structure(registers.len(), element);
        let mut whole = self.b.one("llvm.mlir.undef", &[], all, &[]);
        for (register, &value) in registers.iter().enumerate() {
            let position = self.b.attr(&format!("array<i64: {register}>"));
            whole = self.b.one("llvm.insertvalue", &[whole, value], all, &[("position", position)]);
        }
        self.b.one("builtin.unrealized_conversion_cast", &[whole], ty, &[])
    }

    fn convert(&self, tensor: Val<'c>, ty: Type<'c>) -> Val<'c> {
        self.b.one("ttg.convert_layout", &[tensor], ty, &[])
    }

    fn structure(&self, registers: usize, element: Element) -> Type<'c> {
        let all = vec![element.name(); registers];
        self.b.ty(&format!("!llvm.struct<({})>", all.join(", ")))
    }

    fn tensor(&self, layout: &LinearLayout, element: Element) -> Type<'c> {
        let extents: String = layout.shape.extents().iter().map(|e| format!("{e}x")).collect();
        self.b.ty(&format!("tensor<{extents}{}, {layout}>", element.name()))
    }
}

/// The register whose bit `bit` is `side`, and whose other bits are those of `rest`.
fn with_bit(rest: usize, bit: RegisterBit, side: usize) -> usize {
    let below = (1usize << bit.0) - 1;
    ((rest & !below) << 1) | (side << bit.0) | (rest & below)
}

/// From a list for each register to a list for each operand.
fn transposed<'c>(registers: &[Vec<Val<'c>>], operands: usize) -> Vec<Vec<Val<'c>>> {
    (0..operands).map(|i| registers.iter().map(|values| values[i]).collect()).collect()
}
