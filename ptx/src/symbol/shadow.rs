//! The shadow of the register files and of memory.
//!
//! # Idea
//! A row of registers has a row of pieces and a mask of the lanes that hold any, so that address
//! arithmetic, which never does, costs one test a step.
//! # Invariants
//! - **R1** A lane outside a row's mask holds a number, whatever its cells say.
//! - **R2** As in the registers, upper bytes of a narrow value in a word row are numbers, zeros.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::{
    At, Decision, Limit, Options,
    graph::{Graph, NodeId},
    memory::Memory,
    piece::{Piece, Value, WIDEST},
};
use crate::{
    exec::registers::{LANES, Mask, Registers, Slot, lanes},
    ir::{Scalar, Space},
    report::{Site, Thread},
};

/// A memory that addresses count bytes of: global memory is one, shared memory one a CTA, local
/// memory one a thread.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Area {
    pub space: Space,
    /// Tells memories of one space apart.
    pub owner: u64,
}

/// A byte of memory; generic addresses are already resolved to their space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Place {
    pub area: Area,
    pub address: u64,
}

impl Place {
    /// `bytes` further on, wrapping.
    pub fn after(self, bytes: u64) -> Self {
        Self { address: self.address.wrapping_add(bytes), ..self }
    }
}

/// Part of a register of one lane: `ty` wide, from byte `byte`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub lane: u8,
    pub slot: Slot,
    pub byte: u8,
}

/// Pieces of one row of registers of `N` bytes.
#[derive(Clone, Debug, Default)]
struct Row<const N: usize> {
    live: Mask,
    cells: Vec<[Piece; N]>,
}

impl<const N: usize> Row<N> {
    fn read(&self, lane: usize) -> [Piece; WIDEST] {
        let mut out = [Piece::NUMBER; WIDEST];
        if self.live >> lane & 1 != 0 {
            out[..N].copy_from_slice(&self.cells[lane]);
        }
        out
    }

    fn write(&mut self, lane: usize, pieces: &[Piece; WIDEST]) {
        let bit = 1 << lane;
        if pieces[..N].iter().all(|piece| piece.is_number()) {
            self.live &= !bit;
            return;
        }
        if self.cells.is_empty() {
            self.cells = vec![[Piece::NUMBER; N]; LANES];
        }
        self.cells[lane].copy_from_slice(&pieces[..N]);
        self.live |= bit;
    }
}

/// Pieces of one warp's registers.
#[derive(Debug, Default)]
pub(crate) struct Shadow {
    flags: Vec<Row<1>>,
    words: Vec<Row<4>>,
    wides: Vec<Row<8>>,
    /// The condition code.
    pub carry: [Piece; LANES],
}

fn row<const N: usize>(rows: &mut Vec<Row<N>>, at: usize) -> &mut Row<N> {
    if at >= rows.len() {
        rows.resize_with(at + 1, Row::default);
    }
    &mut rows[at]
}

impl Shadow {
    /// Lanes of a slot that hold pieces.
    pub fn live(&self, slot: Slot) -> Mask {
        let at = slot.row();
        match slot {
            Slot::Flag(_) => self.flags.get(at).map_or(0, |row| row.live),
            Slot::Word(_) => self.words.get(at).map_or(0, |row| row.live),
            Slot::Wide(_) => self.wides.get(at).map_or(0, |row| row.live),
            Slot::Quad(_) => halves(slot).iter().fold(0, |live, half| live | self.live(*half)),
            Slot::Sink => 0,
        }
    }

    /// Of a [`Slot::Quad`], the low half.
    pub fn read(&self, slot: Slot, lane: usize) -> [Piece; WIDEST] {
        let (at, none) = (slot.row(), [Piece::NUMBER; WIDEST]);
        match slot {
            Slot::Flag(_) => self.flags.get(at).map_or(none, |row| row.read(lane)),
            Slot::Word(_) => self.words.get(at).map_or(none, |row| row.read(lane)),
            Slot::Wide(_) | Slot::Quad(_) => self.wides.get(at).map_or(none, |row| row.read(lane)),
            Slot::Sink => none,
        }
    }

    /// Of a [`Slot::Quad`], the low half.
    pub fn write(&mut self, slot: Slot, lane: usize, pieces: &[Piece; WIDEST]) {
        let at = slot.row();
        match slot {
            Slot::Flag(_) => row(&mut self.flags, at).write(lane, pieces),
            Slot::Word(_) => row(&mut self.words, at).write(lane, pieces),
            Slot::Wide(_) | Slot::Quad(_) => row(&mut self.wides, at).write(lane, pieces),
            Slot::Sink => {}
        }
    }

    /// The lanes of `mask` hold numbers now.
    pub fn clear(&mut self, slot: Slot, mask: Mask) {
        if self.live(slot) & mask == 0 {
            return;
        }
        for half in halves(slot) {
            for lane in lanes(mask) {
                self.write(half, lane, &[Piece::NUMBER; WIDEST]);
            }
        }
    }

    /// Pieces and bits of one lane.
    pub fn value(&self, registers: &Registers, slot: Slot, lane: usize) -> Value {
        Value { pieces: self.read(slot, lane), bits: registers.lane(slot, lane) }
    }
}

/// A 128-bit slot as its two 64-bit rows; any other slot as it is.
pub(crate) fn halves(slot: Slot) -> SmallVec<[Slot; 2]> {
    if let Slot::Quad(row) = slot {
        SmallVec::from_slice(&[Slot::Wide(row), Slot::Wide(row + 1)])
    } else {
        SmallVec::from_slice(&[slot])
    }
}

/// Bytes of a slot's row.
pub(crate) fn width(slot: Slot) -> usize {
    match slot {
        Slot::Flag(_) => 1,
        Slot::Word(_) => 4,
        Slot::Wide(_) => 8,
        Slot::Quad(_) => 16,
        Slot::Sink => 0,
    }
}

/// Decisions kept; later ones are only counted.
const DECISIONS: usize = 64;

/// The symbolic side of a run. The machine calls it *before* it executes an instruction, with the
/// registers as they are then.
#[derive(Debug)]
pub struct Symbols {
    pub(crate) graph: Graph,
    pub(crate) warps: FxHashMap<(u32, u32), Shadow>,
    pub(crate) memory: Memory,
    decisions: Vec<Decision>,
}

impl Default for Symbols {
    fn default() -> Self {
        Self::new(Options::default())
    }
}

impl Symbols {
    pub fn new(options: Options) -> Self {
        Self {
            graph: Graph::new(options.nodes),
            warps: FxHashMap::default(),
            memory: Memory::new(options.bytes),
            decisions: Vec::new(),
        }
    }

    /// All expressions so far.
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Memory from `place` on is `bytes` bytes of input number `buffer`, elements of type `ty`. To
    /// be called before the launch; a buffer that is not marked holds numbers.
    pub fn mark_leaves(&mut self, place: Place, bytes: u64, ty: Scalar, buffer: u32) {
        self.memory.mark(place, bytes, ty, buffer);
    }

    /// The expression that memory at `place` holds as a `ty`; `None` when it is a number, which is
    /// then `bits` (what memory holds there).
    pub fn output(&mut self, place: Place, ty: Scalar, bits: u64) -> Result<Option<NodeId>, Limit> {
        let bytes = (ty.bytes() as usize).min(WIDEST);
        let value = Value { pieces: self.memory.read(&mut self.graph, place, bytes)?, bits };
        let nobody = Site { pc: u32::MAX, thread: Thread { cta: u32::MAX, thread: u32::MAX } };
        value.node(&mut self.graph, ty, nobody)
    }

    /// The CTA is done: its registers and shared memory are forgotten.
    pub fn retire(&mut self, cta: u32) {
        self.warps.retain(|(owner, _), _| *owner != cta);
        self.memory.forget(Area::shared(cta));
    }

    /// The concrete value of `slot` chose a branch, a guard or an address on the lanes of `mask`.
    pub fn decided(&mut self, at: At, slot: Slot, mask: Mask) {
        let Some(shadow) = self.warps.get(&(at.cta, at.warp)) else {
            return;
        };
        let Some(lane) = lanes(shadow.live(slot) & mask).next() else {
            return;
        };
        let node = shadow.read(slot, lane).iter().find_map(|piece| piece.node());
        let known = self.decisions.iter().any(|decision| decision.at.pc == at.pc);
        if let Some(node) = node
            && !known
            && self.decisions.len() < DECISIONS
        {
            self.decisions.push(Decision { at, node });
        }
    }

    /// Where control or addresses read symbolic values, one entry a step, the first 64 of them. If
    /// there is any, trees hold for this run's path.
    pub fn decisions(&self) -> &[Decision] {
        &self.decisions
    }

    pub(crate) fn shadow(&mut self, at: At) -> &mut Shadow {
        self.warps.entry((at.cta, at.warp)).or_default()
    }

    /// The graph and the warp's shadow, together.
    pub(crate) fn parts(&mut self, at: At) -> (&mut Graph, &mut Shadow) {
        let shadow = self.warps.entry((at.cta, at.warp)).or_default();
        (&mut self.graph, shadow)
    }
}

impl At {
    pub(crate) fn site(self, lane: usize) -> Site {
        let thread = self.warp * LANES as u32 + lane as u32;
        Site { pc: self.pc, thread: Thread { cta: self.cta, thread } }
    }
}
