//! From a plan to operations: a match over its steps that decides nothing.
//!
//! # Idea
//! A tensor is taken apart into the registers of a thread by a cast to the struct that Triton's
//! own type conversion makes of it, and the results are put together the same way. In between
//! there are scalars; what crosses warps is one `ttg.convert_layout`, for which Triton allocates
//! shared memory and places barriers.
//! # Invariants
//! - **M1** `values[operand][register]` follows [`State`]: register numbers are the state's.
//! - **M2** The operand with the lower index stands on the left, unless the combine commutes.
//! # Held by
//! M1: an assertion after every step. M2: [`Emission::butterfly`], [`Emission::half_exchange`];
//! the tests execute the compiled code.
//! # Not here
//! How one combine is evaluated (`combine.rs`) and how values change lanes (`exchange.rs`).

pub mod combine;
pub mod exchange;

use std::collections::BTreeMap;

use bitstable_lowering::{
    layout::LinearLayout,
    plan::{LaneBit, Operands, Plan, RegisterBit, State, Step},
};
use melior::ir::{Type, ValueLike};

use crate::{
    build::Builder,
    element::Element,
    ir::{self, Op, Val},
    site::{Converted, Lowered, Target as Results},
    target::Target,
};
use combine::Combine;

/// What emission works on.
struct Emission<'a, 'c> {
    b: Builder<'c>,
    target: &'a Target,
    combine: &'a Combine<'c>,
    elements: &'a [Element],
    operands: Operands,
    state: State,
    values: Vec<Vec<Val<'c>>>,
    lane_bits: BTreeMap<LaneBit, Val<'c>>,
}

/// Replaces the reduction `op` by what `plan` says, and erases it.
pub fn lower<'c>(
    b: Builder<'c>,
    op: Op<'c>,
    lowered: &Lowered<'c>,
    plan: &Plan,
    combine: &Combine<'c>,
    target: &Target,
) {
    let mut emission = Emission {
        b,
        target,
        combine,
        elements: &lowered.elements,
        operands: lowered.site.operands,
        state: State::new(&lowered.site),
        values: Vec::new(),
        lane_bits: BTreeMap::new(),
    };
    emission.open(op, lowered);
    let mut steps = &plan.steps[..];
    while let Some((step, rest)) = steps.split_first() {
        steps = rest;
        emission.step(step);
    }
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
    }

    fn step(&mut self, step: &Step) {
        match step {
            Step::FoldRegister(bit) => self.fold_register(*bit),
            Step::Butterfly(bit) => self.butterfly(*bit),
            Step::HalfExchange { lane, register } => self.half_exchange(*lane, *register),
            Step::Relayout(layout) => self.relayout(layout),
        }
        self.state = self.state.after(step);
        let registers = self.state.layout.registers();
        assert!(self.values.iter().all(|v| v.len() == registers), "M1 after {step}");
    }

    fn fold_register(&mut self, bit: RegisterBit) {
        let (low, high) = self.halves(bit);
        self.values = self.combined(&low, &high);
    }

    fn butterfly(&mut self, bit: LaneBit) {
        let own = std::mem::take(&mut self.values);
        let other = self.exchanged(bit, &own);
        self.values = match self.operands {
            Operands::Commute => self.combined(&own, &other),
            Operands::Ordered => {
                let left = self.select(bit, &other, &own);
                let right = self.select(bit, &own, &other);
                self.combined(&left, &right)
            }
        };
    }

    fn half_exchange(&mut self, lane: LaneBit, register: RegisterBit) {
        let (low, high) = self.halves(register);
        let sent = self.select(lane, &low, &high);
        let kept = self.select(lane, &high, &low);
        let received = self.exchanged(lane, &sent);
        self.values = match self.operands {
            Operands::Commute => self.combined(&kept, &received),
            Operands::Ordered => {
                let left = self.select(lane, &received, &kept);
                let right = self.select(lane, &kept, &received);
                self.combined(&left, &right)
            }
        };
    }

    fn relayout(&mut self, target: &LinearLayout) {
        let own = std::mem::take(&mut self.values);
        for (registers, &element) in own.iter().zip(self.elements) {
            let from = self.tensor(&self.state.layout, element);
            let tensor = self.put_together(registers, from, element);
            let moved = self.convert(tensor, self.tensor(target, element));
            let registers = self.take_apart(moved, target, element);
            self.values.push(registers);
        }
    }

    /// Puts the results together and hands them to the users.
    fn close(&self, op: Op<'c>, lowered: &Lowered<'c>, gather: &[u32]) {
        for (i, result) in ir::results(op).into_iter().enumerate() {
            let registers: Vec<Val<'c>> =
                gather.iter().map(|&r| self.values[i][r as usize]).collect();
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
        let below = (1usize << bit.0) - 1;
        let half = |side: usize| {
            let register = |r: usize| ((r & !below) << 1) | (side << bit.0) | (r & below);
            let of = |v: &Vec<Val<'c>>| (0..v.len() / 2).map(|r| v[register(r)]).collect();
            self.values.iter().map(of).collect()
        };
        (half(0), half(1))
    }

    fn combined(&self, left: &[Vec<Val<'c>>], right: &[Vec<Val<'c>>]) -> Vec<Vec<Val<'c>>> {
        let mut results = vec![Vec::with_capacity(left[0].len()); left.len()];
        for register in 0..left[0].len() {
            let at = |side: &[Vec<Val<'c>>]| -> Vec<Val<'c>> {
                side.iter().map(|operand| operand[register]).collect()
            };
            let combined = self.combine.apply(self.b, &at(left), &at(right));
            results.iter_mut().zip(combined).for_each(|(all, value)| all.push(value));
        }
        results
    }

    fn exchanged(&self, bit: LaneBit, values: &[Vec<Val<'c>>]) -> Vec<Vec<Val<'c>>> {
        values.iter().map(|v| exchange::exchange_xor(self.b, self.target, bit, v)).collect()
    }

    /// In each lane the first where its lane bit is set, else the second.
    fn select(
        &mut self,
        bit: LaneBit,
        set: &[Vec<Val<'c>>],
        clear: &[Vec<Val<'c>>],
    ) -> Vec<Vec<Val<'c>>> {
        let (b, target) = (self.b, self.target);
        let is_set = *self
            .lane_bits
            .entry(bit)
            .or_insert_with(|| exchange::lane_bit_is_set(b, target, bit));
        let pick = |(s, c): (&Val<'c>, &Val<'c>)| {
            b.one("llvm.select", &[is_set, *s, *c], s.r#type(), &[])
        };
        set.iter().zip(clear).map(|(s, c)| s.iter().zip(c).map(pick).collect()).collect()
    }

    /// The registers of `tensor` that differ, in order.
    fn take_apart(
        &self,
        tensor: Val<'c>,
        layout: &LinearLayout,
        element: Element,
    ) -> Vec<Val<'c>> {
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
            whole =
                self.b.one("llvm.insertvalue", &[whole, value], all, &[("position", position)]);
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
