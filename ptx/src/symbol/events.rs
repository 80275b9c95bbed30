//! What a thread learns from outside: loads, shuffles, votes, atomics.
//!
//! # Idea
//! Most events move pieces; those that compute make one node of everything they read.
//! # Invariants
//! - **E1** Sources are read before a destination is written, as in the machine.
//! - **E2** A destination whose sources are numbers holds a number afterwards.

use smallvec::SmallVec;

use super::{
    At, Cell, Limit, NodeId, Place, Symbols,
    piece::{Piece, Value, WIDEST},
    rewrite::plain_cvt,
    shadow::{halves, width},
};
use crate::{
    exec::registers::{LANES, Mask, Registers, Slot, lanes},
    ir::{Atomic, Class, Op, Scalar, Vote},
};

/// Bytes that go from one register to another, of the same warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Move {
    pub to: Cell,
    pub from: Cell,
    pub bytes: u8,
}

impl Symbols {
    /// The instruction wrote numbers to `slots`: special registers, parameters, tokens.
    pub fn forget(&mut self, at: At, slots: &[Slot], mask: Mask) {
        let shadow = self.shadow(at);
        slots.iter().for_each(|slot| shadow.clear(*slot, mask));
    }

    /// `ld`: element `k` of the vector, in `dst[k]`, comes from `places[lane]` and `k` times the
    /// type's bytes.
    pub fn load(
        &mut self,
        at: At,
        dst: &[Slot],
        ty: Scalar,
        places: &[Place; LANES],
        mask: Mask,
    ) -> Result<(), Limit> {
        let unit = ty.bytes() as usize;
        for (k, slot) in dst.iter().enumerate() {
            for (h, half) in halves(*slot).into_iter().enumerate() {
                let bytes = unit.saturating_sub(WIDEST * h).min(WIDEST);
                for lane in lanes(mask) {
                    let place = places[lane].after((k * unit + WIDEST * h) as u64);
                    let mut pieces = self.memory.read(&mut self.graph, place, bytes)?;
                    if !pieces.iter().all(|piece| piece.is_number()) {
                        self.arrive(at, lane, half, ty, &mut pieces)?;
                    }
                    self.shadow(at).write(half, lane, &pieces);
                }
            }
        }
        Ok(())
    }

    /// Leaves remember who loaded them; a narrow signed value is extended.
    fn arrive(
        &mut self,
        at: At,
        lane: usize,
        slot: Slot,
        ty: Scalar,
        pieces: &mut [Piece; WIDEST],
    ) -> Result<(), Limit> {
        let site = at.site(lane);
        for piece in pieces.iter() {
            if let Some(node) = piece.node() {
                self.graph.loaded(node, site);
            }
        }
        if ty.class() != Class::Signed || ty.bytes() as usize >= width(slot) {
            return Ok(());
        }
        let whole = Value { pieces: *pieces, bits: 0 }.node_at(&self.graph, 0);
        let node = match whole {
            Some((node, bytes)) if bytes == ty.bytes() as usize => node,
            _ => self.graph.unknown(ty)?,
        };
        let to = if width(slot) == 8 { Scalar::S64 } else { Scalar::S32 };
        let node = self.graph.operation(&plain_cvt(to, ty, None), to, &[node], site)?;
        *pieces = Value::whole(node, width(slot));
        Ok(())
    }

    /// `st`: as [`Symbols::load`], the other way.
    pub fn store(
        &mut self,
        at: At,
        src: &[Slot],
        ty: Scalar,
        places: &[Place; LANES],
        mask: Mask,
    ) -> Result<(), Limit> {
        let unit = ty.bytes() as usize;
        for (k, slot) in src.iter().enumerate() {
            for (h, half) in halves(*slot).into_iter().enumerate() {
                let bytes = unit.saturating_sub(WIDEST * h).min(WIDEST);
                for lane in lanes(mask) {
                    let place = places[lane].after((k * unit + WIDEST * h) as u64);
                    let pieces = self.shadow(at).read(half, lane);
                    self.memory.write(&mut self.graph, place, &pieces[..bytes])?;
                }
            }
        }
        Ok(())
    }

    /// Memory to memory, `cp.async`; call [`Symbols::forget_memory`] for the bytes filled with zeros.
    pub fn copy(&mut self, to: Place, from: Place, bytes: usize) -> Result<(), Limit> {
        let mut all = Vec::with_capacity(bytes);
        for start in (0..bytes).step_by(WIDEST) {
            let count = (bytes - start).min(WIDEST);
            let run = self.memory.read(&mut self.graph, from.after(start as u64), count)?;
            all.extend_from_slice(&run[..count]);
        }
        for (k, run) in all.chunks(WIDEST).enumerate() {
            self.memory.write(&mut self.graph, to.after((k * WIDEST) as u64), run)?;
        }
        Ok(())
    }

    /// Numbers were written to memory.
    pub fn forget_memory(&mut self, place: Place, bytes: usize) -> Result<(), Limit> {
        for start in (0..bytes).step_by(WIDEST) {
            let run = &[Piece::NUMBER; WIDEST][..(bytes - start).min(WIDEST)];
            self.memory.write(&mut self.graph, place.after(start as u64), run)?;
        }
        Ok(())
    }

    /// `bytes` bytes of a register from memory, the rest of it left: `ldmatrix`.
    pub fn load_bytes(
        &mut self,
        at: At,
        to: Cell,
        place: Place,
        bytes: usize,
    ) -> Result<(), Limit> {
        let run = self.memory.read(&mut self.graph, place, bytes.min(WIDEST))?;
        let site = at.site(usize::from(to.lane));
        for node in run.iter().filter_map(|piece| piece.node()) {
            self.graph.loaded(node, site);
        }
        self.set_cell(at, to, &run[..bytes.min(WIDEST)]);
        Ok(())
    }

    /// `bytes` bytes of a register to memory: `stmatrix`.
    pub fn store_bytes(
        &mut self,
        at: At,
        from: Cell,
        place: Place,
        bytes: usize,
    ) -> Result<(), Limit> {
        let pieces = self.cell(at, from, bytes);
        self.memory.write(&mut self.graph, place, &pieces[..bytes.min(WIDEST)])
    }

    /// `shfl`: lane `l` of `mask` gets `src` of lane `from[l]`.
    pub fn shuffle(&mut self, at: At, dst: Slot, src: Slot, from: &[u8; LANES], mask: Mask) {
        let shadow = self.shadow(at);
        if shadow.live(src) == 0 {
            return shadow.clear(dst, mask);
        }
        let before: [_; LANES] = std::array::from_fn(|lane| shadow.read(src, lane));
        for lane in lanes(mask) {
            shadow.write(dst, lane, &before[usize::from(from[lane]) % LANES]);
        }
    }

    /// Register to register, across lanes: `movmatrix`.
    pub fn permute(&mut self, at: At, moves: &[Move]) {
        let runs: Vec<_> =
            moves.iter().map(|step| self.cell(at, step.from, usize::from(step.bytes))).collect();
        for (step, run) in moves.iter().zip(runs) {
            self.set_cell(at, step.to, &run[..usize::from(step.bytes).min(WIDEST)]);
        }
    }

    /// `vote`, `redux`, `match`: one value of all lanes of `members`, in lane order, to each of them.
    pub fn collective(
        &mut self,
        at: At,
        op: &Op,
        dst: Slot,
        src: Slot,
        registers: &Registers,
        members: Mask,
    ) -> Result<(), Limit> {
        let (graph, shadow) = self.parts(at);
        if shadow.live(src) & members == 0 {
            shadow.clear(dst, members);
            return Ok(());
        }
        let (ty, result) = collective_types(op);
        let mut args = SmallVec::<[NodeId; LANES]>::new();
        for lane in lanes(members) {
            args.push(shadow.value(registers, src, lane).operand(graph, ty, at.site(lane))?);
        }
        if !matches!(op, Op::Redux { .. }) {
            args.push(graph.constant(u64::from(members), Scalar::B32)?);
        }
        let own: SmallVec<[NodeId; LANES]> = args.clone();
        for (k, lane) in lanes(members).enumerate() {
            if matches!(op, Op::Match { .. }) {
                args.clear();
                args.push(own[k]);
                args.extend_from_slice(&own);
            }
            let node = graph.operation(op, result, &args, at.site(lane))?;
            shadow.write(dst, lane, &Value::whole(node, width(dst).min(result.bytes() as usize)));
        }
        Ok(())
    }

    /// One element of `atom` or `red` of one lane, in the order the machine takes lanes: `old` is
    /// what memory holds. `src` are the operands after the address.
    #[allow(clippy::too_many_arguments, reason = "an atomic has this many parts")]
    pub fn atomic(
        &mut self,
        at: At,
        op: &Op,
        lane: usize,
        dst: Option<Slot>,
        src: &[Slot],
        registers: &Registers,
        place: Place,
        old: u64,
    ) -> Result<(), Limit> {
        let Op::Atom { op: kind, ty, .. } = op else {
            return Ok(());
        };
        let bytes = (ty.bytes() as usize).min(WIDEST);
        let old = Value { pieces: self.memory.read(&mut self.graph, place, bytes)?, bits: old };
        let shadow = self.shadow(at);
        let values: SmallVec<[Value; 2]> =
            src.iter().map(|slot| shadow.value(registers, *slot, lane)).collect();
        let new = if ty.bytes() as usize > WIDEST {
            self.wide_atomic(&old, &values, *ty)?
        } else {
            self.updated(at, op, *kind, *ty, lane, &old, &values)?
        };
        self.memory.write(&mut self.graph, place, &new[..bytes])?;
        if let Some(dst) = dst {
            self.shadow(at).write(dst, lane, &old.pieces);
        }
        Ok(())
    }

    /// 128-bit updates are followed by their low half only, as a value without a name.
    fn wide_atomic(
        &mut self,
        old: &Value,
        values: &[Value],
        ty: Scalar,
    ) -> Result<[Piece; WIDEST], Limit> {
        if values.iter().chain([old]).all(|value| value.is_number(WIDEST)) {
            return Ok([Piece::NUMBER; WIDEST]);
        }
        let node = self.graph.unknown(ty)?;
        Ok(Value::whole(node, WIDEST))
    }

    #[allow(clippy::too_many_arguments, reason = "an atomic has this many parts")]
    fn updated(
        &mut self,
        at: At,
        op: &Op,
        kind: Atomic,
        ty: Scalar,
        lane: usize,
        old: &Value,
        values: &[Value],
    ) -> Result<[Piece; WIDEST], Limit> {
        let bytes = ty.bytes() as usize;
        let number = |value: &Value| value.is_number(bytes);
        match (kind, values) {
            (Atomic::Exch, [new]) => return Ok(new.pieces),
            (Atomic::Cas, [compare, new]) if number(old) && number(compare) => {
                let equal = old.slice(0, bytes).bits == compare.slice(0, bytes).bits;
                return Ok(if equal { new.pieces } else { old.pieces });
            }
            _ if number(old) && values.iter().all(number) => return Ok([Piece::NUMBER; WIDEST]),
            _ => {}
        }
        let element = ty.element();
        let unit = element.bytes() as usize;
        let mut element_op = op.clone();
        if let Op::Atom { ty, vector, .. } = &mut element_op {
            (*ty, *vector) = (element, 1);
        }
        let mut out = [Piece::NUMBER; WIDEST];
        for start in (0..bytes).step_by(unit) {
            let parts = [old].into_iter().chain(values).map(|value| value.slice(start, unit));
            let parts: SmallVec<[Value; 3]> = parts.collect();
            if parts.iter().all(|part| part.is_number(unit)) {
                continue;
            }
            let mut args = SmallVec::<[NodeId; 3]>::new();
            for part in &parts {
                args.push(part.operand(&mut self.graph, element, at.site(lane))?);
            }
            let node = self.graph.operation(&element_op, element, &args, at.site(lane))?;
            out[start..start + unit].copy_from_slice(&Value::whole(node, unit)[..unit]);
        }
        Ok(out)
    }

    pub(super) fn cell(&mut self, at: At, cell: Cell, bytes: usize) -> [Piece; WIDEST] {
        let pieces = self.shadow(at).read(cell.slot, usize::from(cell.lane) % LANES);
        Value { pieces, bits: 0 }.slice(usize::from(cell.byte), bytes.min(WIDEST)).pieces
    }

    pub(super) fn set_cell(&mut self, at: At, cell: Cell, run: &[Piece]) {
        let lane = usize::from(cell.lane) % LANES;
        let shadow = self.shadow(at);
        let mut pieces = shadow.read(cell.slot, lane);
        for (to, piece) in pieces.iter_mut().skip(usize::from(cell.byte)).zip(run) {
            *to = *piece;
        }
        shadow.write(cell.slot, lane, &pieces);
    }
}

/// Of the operand and of the result.
fn collective_types(op: &Op) -> (Scalar, Scalar) {
    if let Op::Vote { mode } = op {
        let ballot = *mode == Vote::Ballot;
        return (Scalar::Pred, if ballot { Scalar::B32 } else { Scalar::Pred });
    }
    if let Op::Match { ty, .. } = op {
        return (*ty, Scalar::B32);
    }
    if let Op::Redux { ty, .. } = op { (*ty, *ty) } else { (Scalar::B32, Scalar::B32) }
}
