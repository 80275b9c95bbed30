//! Tells the symbolic side what each step is about to do.
//!
//! # Idea
//! The machine runs bits and nothing else; before it runs a step, [`Cta::trace`] translates the step
//! into the events that [`Symbols`](crate::symbol::Symbols) knows, with addresses resolved.
//! # Invariants
//! - **Y1** Every action that writes a register or memory has an event here: [`Cta::trace`] and
//!   [`Cta::trace_warp`] match without a default.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    cta::Cta,
    decode::NEGATE,
    members::source_lanes,
    mma::{factor, sum},
    program::{Action, Address, AtomicStep, CopyStep, MmaStep, WarpAction},
    registers::{LANES, Slot, lanes},
    step::At,
};
use crate::{
    ir::{Op, Scalar, Space},
    memory::space,
    num::atomic::apply,
    report::Thread,
    symbol::{self, Area, Limit, MmaCells, Place, Symbols},
};

impl Cta<'_> {
    /// Before a step that is not warp-wide.
    pub fn trace(&mut self, at: At, action: &Action) {
        let Some(mut symbols) = self.symbols.take() else { return };
        if let Err(limit) = self.trace_action(&mut symbols, at, action) {
            self.reached(limit);
        }
        self.symbols = Some(symbols);
    }

    /// Before a warp-wide step whose members are there.
    pub fn trace_warp(&mut self, at: At, action: &WarpAction) {
        let Some(mut symbols) = self.symbols.take() else { return };
        if let Err(limit) = self.trace_members(&mut symbols, at, action) {
            self.reached(limit);
        }
        self.symbols = Some(symbols);
    }

    /// The run needs more symbols than it may have: it ends here.
    fn reached(&mut self, limit: Limit) {
        self.limit.get_or_insert(limit);
        self.stop();
    }

    fn here(&self, at: At) -> symbol::At {
        symbol::At { pc: at.pc, cta: self.index, warp: at.warp as u32 }
    }

    fn trace_action(
        &mut self,
        symbols: &mut Symbols,
        at: At,
        action: &Action,
    ) -> Result<(), Limit> {
        let here = self.here(at);
        if let Some(guard) = self.program.steps[at.pc as usize].guard {
            symbols.decided(here, Slot::Flag(guard.flag), at.mask);
        }
        let Some(op) = self.program.instruction(at.pc).map(|instruction| &instruction.op) else {
            return Ok(());
        };
        match action {
            Action::Lane(lane) => {
                let registers = &self.warps[at.warp].registers;
                let negates = self.program.steps[at.pc as usize].negates;
                let op = if negates { &NEGATE } else { op };
                symbols.lane(here, op, &lane.operands, registers, at.active)
            }
            Action::Param { dst, .. } => {
                symbols.forget(here, dst, at.active);
                Ok(())
            }
            Action::Load(step) => {
                let places = self.places(symbols, at, step.space, step.address);
                symbols.load(here, &step.data, step.ty, &places, at.active)
            }
            Action::Store(step) => {
                let places = self.places(symbols, at, step.space, step.address);
                symbols.store(here, &step.data, step.ty, &places, at.active)
            }
            Action::Atomic(step) => self.trace_atomic(symbols, at, op, step),
            Action::Copy(step) => self.trace_copy(symbols, at, step),
            Action::Mbarrier(step) => {
                symbols.forget(here, &[step.dst], at.active);
                Ok(())
            }
            Action::Activemask { dst } | Action::Clock { dst, .. } => {
                symbols.forget(here, &[*dst], at.active);
                Ok(())
            }
            Action::Barrier(step) => {
                if let Some(predicate) = step.predicate {
                    symbols.decided(here, predicate, at.active);
                }
                if let Some(dst) = step.dst {
                    symbols.forget(here, &[dst], at.active);
                }
                Ok(())
            }
            Action::BranchIndexed { index, .. } => {
                symbols.decided(here, *index, at.active);
                Ok(())
            }
            Action::Warp(_)
            | Action::CopyCommit
            | Action::CopyWait(_)
            | Action::CopyArrive { .. }
            | Action::Fence { .. }
            | Action::Branch { .. }
            | Action::Call { .. }
            | Action::Return
            | Action::Exit
            | Action::Trap
            | Action::External(_)
            | Action::Nop => Ok(()),
        }
    }

    fn trace_members(
        &mut self,
        symbols: &mut Symbols,
        at: At,
        action: &WarpAction,
    ) -> Result<(), Limit> {
        let here = self.here(at);
        let Some(op) = self.program.instruction(at.pc).map(|instruction| &instruction.op) else {
            return Ok(());
        };
        match action {
            WarpAction::Shuffle { mode, dst, found, value, lane, clamp } => {
                let registers = &self.warps[at.warp].registers;
                let from = source_lanes(registers, *mode, [*lane, *clamp], at.active);
                symbols.forget(here, &[*found], at.active);
                symbols.shuffle(here, *dst, *value, &from, at.active);
                Ok(())
            }
            WarpAction::Vote { dst, predicate: value, .. }
            | WarpAction::Redux { dst, value, .. } => {
                let registers = &self.warps[at.warp].registers;
                symbols.collective(here, op, *dst, *value, registers, at.active)
            }
            WarpAction::Match { dst, agree, value, .. } => {
                let registers = &self.warps[at.warp].registers;
                symbols.decided(here, *value, at.active);
                symbols.collective(here, op, *dst, *value, registers, at.active)?;
                symbols.forget(here, &[*agree], at.active);
                Ok(())
            }
            WarpAction::Elect { dst, elected } => {
                symbols.forget(here, &[*dst, *elected], at.active);
                Ok(())
            }
            WarpAction::Sync => Ok(()),
            WarpAction::LoadMatrix { address, trans, dst } => {
                let places = self.places(symbols, at, Space::Shared, *address);
                symbols.load_matrix(here, dst, &places, *trans)
            }
            WarpAction::StoreMatrix { address, trans, src } => {
                let places = self.places(symbols, at, Space::Shared, *address);
                symbols.store_matrix(here, src, &places, *trans)
            }
            WarpAction::MoveMatrix { dst, src } => {
                symbols.move_matrix(here, *dst, *src);
                Ok(())
            }
            WarpAction::Mma(step) => {
                let cells = cells(step);
                let [a, b, c, d] = &cells;
                let registers = &self.warps[at.warp].registers;
                symbols.mma(here, op, MmaCells { a, b, c, d }, registers)
            }
        }
    }

    fn trace_atomic(
        &mut self,
        symbols: &mut Symbols,
        at: At,
        op: &Op,
        step: &AtomicStep,
    ) -> Result<(), Limit> {
        let here = self.here(at);
        let places = self.places(symbols, at, step.space, step.address);
        let addresses = self.addresses(at.warp, step.address);
        let registers = &self.warps[at.warp].registers;
        // What earlier lanes of this step make of a word: memory does not have it yet.
        let mut made: FxHashMap<u64, u64> = FxHashMap::default();
        for element in 0..step.operand.len() {
            let offset = element as u64 * u64::from(step.ty.bytes());
            let slots = [step.operand.get(element), step.new.get(element)];
            let src: SmallVec<[Slot; 2]> = slots.into_iter().flatten().copied().collect();
            for lane in lanes(at.active) {
                let place = places[lane].after(offset);
                let mut raw = [0; 8];
                let bytes = &mut raw[..step.ty.bytes().min(8) as usize];
                let generic = space::generic(step.space, addresses[lane]).wrapping_add(offset);
                self.memory.peek(self.context.memory, at.warp as u32, lane, generic, bytes);
                let old = made.get(&generic).copied().unwrap_or(u64::from_le_bytes(raw));
                let [operand, new] = slots.map(|s| s.map_or(0, |s| registers.lane(*s, lane)));
                let after = apply(step.op, step.ty, place.area.space, old, operand, new);
                made.insert(generic, after);
                let dst = step.dst.get(element).copied();
                symbols.atomic(here, op, lane, dst, &src, registers, place, old)?;
            }
        }
        Ok(())
    }

    fn trace_copy(&mut self, symbols: &mut Symbols, at: At, step: &CopyStep) -> Result<(), Limit> {
        let to = self.places(symbols, at, Space::Shared, step.dst);
        let from = self.places(symbols, at, Space::Global, step.src);
        let sizes = self.source_sizes(at, step);
        for lane in lanes(at.active) {
            let read = sizes[lane].min(step.bytes);
            symbols.copy(to[lane], from[lane], read as usize)?;
            let rest = (step.bytes - read) as usize;
            symbols.forget_memory(to[lane].after(u64::from(read)), rest)?;
        }
        Ok(())
    }

    /// Where each lane's address leads; an address that depends on data is noted.
    fn places(
        &self,
        symbols: &mut Symbols,
        at: At,
        space: Space,
        address: Address,
    ) -> [Place; LANES] {
        symbols.decided(self.here(at), address.base, at.active);
        let addresses = self.addresses(at.warp, address);
        std::array::from_fn(|lane| {
            let (space, offset) = space::resolve(space, addresses[lane]);
            let thread = (at.warp * LANES + lane) as u32;
            let area = match space {
                Space::Shared | Space::SharedCluster => Area::shared(self.index),
                Space::Local => Area::local(Thread { cta: self.index, thread }),
                Space::Generic | Space::Global | Space::Param | Space::Const => Area::GLOBAL,
            };
            Place { area, address: offset }
        })
    }
}

/// The cells of `A` (row-major), `B` (k-major), `C` and `D` (row-major).
fn cells(step: &MmaStep) -> [Vec<symbol::Cell>; 4] {
    let (m, n, k) = (usize::from(step.m), usize::from(step.n), usize::from(step.k));
    let cell = |slots: &super::program::Slots, cell: super::mma::Cell| symbol::Cell {
        lane: cell.lane as u8,
        slot: slots.get(cell.register).copied().unwrap_or(Slot::Sink),
        byte: (cell.shift / 8) as u8,
    };
    let grid = |rows: usize, columns: usize| {
        (0..rows).flat_map(move |row| (0..columns).map(move |column| (row, column)))
    };
    let bits = |ty: Scalar| ty.bits();
    let types = step.types;
    [
        grid(m, k).map(|(i, x)| cell(&step.a, factor(i, x, bits(types.a), m / 8))).collect(),
        grid(k, n).map(|(x, j)| cell(&step.b, factor(j, x, bits(types.b), 1))).collect(),
        grid(m, n).map(|(i, j)| cell(&step.c, sum(i, j, bits(types.c)))).collect(),
        grid(m, n).map(|(i, j)| cell(&step.d, sum(i, j, bits(types.d)))).collect(),
    ]
}
