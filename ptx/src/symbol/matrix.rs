//! Matrix fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `mma`.
//!
//! # Idea
//! Loads, stores and transpositions move pairs of bytes between lanes. A product makes one node an
//! output element, over its row, its column and its addend: the hardware's order of addition inside
//! is the label's business.
//! # Invariants
//! - **X1** Of an 8x8 matrix of 16-bit elements lane `l` holds row `l / 4`, columns `2 (l % 4)` and
//!   the next; row `r` of matrix `i` is at the address that lane `8 i + r` gives.

use smallvec::SmallVec;

use super::{
    At, Cell, Limit, Move, NodeId, Place, Symbols,
    label::{Label, What},
    piece::{Piece, Value, WIDEST},
};
use crate::{
    exec::registers::{LANES, Registers, Slot},
    ir::{Op, Scalar},
};

/// Where the elements of a matrix product are, row by row: `d` and `c` are m×n, `a` is m×k, `b` is
/// k×n.
#[derive(Clone, Copy, Debug)]
pub struct MmaCells<'a> {
    pub a: &'a [Cell],
    pub b: &'a [Cell],
    pub c: &'a [Cell],
    pub d: &'a [Cell],
}

/// Lane and byte of the element at `row`, `column` of an 8x8 matrix.
fn held(row: usize, column: usize) -> (u8, u8) {
    ((row * 4 + column / 2) as u8, (column % 2 * 2) as u8)
}

/// Row and column of each element.
fn elements() -> impl Iterator<Item = (usize, usize)> {
    (0..64).map(|at| (at / 8, at % 8))
}

impl Symbols {
    /// `ldmatrix` of `b16` elements: matrix `i` goes to `dst[i]`.
    pub fn load_matrix(
        &mut self,
        at: At,
        dst: &[Slot],
        places: &[Place; LANES],
        trans: bool,
    ) -> Result<(), Limit> {
        self.matrix(dst, places, trans, |symbols, cell, place| {
            symbols.load_bytes(at, cell, place, 2)
        })
    }

    /// `stmatrix` of `b16` elements: matrix `i` comes from `src[i]`.
    pub fn store_matrix(
        &mut self,
        at: At,
        src: &[Slot],
        places: &[Place; LANES],
        trans: bool,
    ) -> Result<(), Limit> {
        self.matrix(src, places, trans, |symbols, cell, place| {
            symbols.store_bytes(at, cell, place, 2)
        })
    }

    fn matrix(
        &mut self,
        slots: &[Slot],
        places: &[Place; LANES],
        trans: bool,
        mut each: impl FnMut(&mut Self, Cell, Place) -> Result<(), Limit>,
    ) -> Result<(), Limit> {
        for (number, slot) in slots.iter().enumerate() {
            for (row, column) in elements() {
                let (lane, byte) = if trans { held(column, row) } else { held(row, column) };
                let place = places[(number * 8 + row) % LANES].after(2 * column as u64);
                each(self, Cell { lane, slot: *slot, byte }, place)?;
            }
        }
        Ok(())
    }

    /// `movmatrix`: the transposed matrix.
    pub fn move_matrix(&mut self, at: At, dst: Slot, src: Slot) {
        let moves: Vec<Move> = elements()
            .map(|(row, column)| {
                let ((lane, byte), (from_lane, from_byte)) = (held(column, row), held(row, column));
                Move {
                    to: Cell { lane, slot: dst, byte },
                    from: Cell { lane: from_lane, slot: src, byte: from_byte },
                    bytes: 2,
                }
            })
            .collect();
        self.permute(at, &moves);
    }

    /// `mma`: each element of `d` is one node over a row of `a`, a column of `b`, and `c`.
    pub fn mma(
        &mut self,
        at: At,
        op: &Op,
        cells: MmaCells<'_>,
        registers: &Registers,
    ) -> Result<(), Limit> {
        let Op::Mma { m, n, k, d, a, b, c, .. } = op else {
            return Ok(());
        };
        let (m, n, k) = (usize::from(*m), usize::from(*n), usize::from(*k));
        let sources = [(cells.a, *a, m * k), (cells.b, *b, k * n), (cells.c, *c, m * n)];
        let mut nodes: [Vec<Option<NodeId>>; 3] = Default::default();
        for (nodes, (cells, ty, count)) in nodes.iter_mut().zip(sources) {
            let cells = cells.get(..count).unwrap_or(&[]);
            for cell in cells {
                nodes.push(self.element(at, *cell, ty, registers)?);
            }
            nodes.resize(count, None);
        }
        let label = self.graph.intern(Label { what: What::Operation(op.clone()), result: *d });
        let mut results = Vec::with_capacity(cells.d.len());
        for (at_d, cell) in cells.d.iter().enumerate().take(m * n) {
            let (i, j) = (at_d / n, at_d % n);
            let row = (0..k).map(|x| (nodes[0][i * k + x], sources[0].0.get(i * k + x), *a));
            let column = (0..k).map(|x| (nodes[1][x * n + j], sources[1].0.get(x * n + j), *b));
            let add = [(nodes[2][at_d], sources[2].0.get(at_d), *c)];
            let all: SmallVec<[_; 36]> = row.chain(column).chain(add).collect();
            if all.iter().all(|(node, ..)| node.is_none()) {
                results.push((*cell, None));
                continue;
            }
            let mut args = SmallVec::<[NodeId; 36]>::new();
            for (node, source, ty) in all {
                let bits = source.map_or(0, |cell| bits(registers, *cell));
                args.push(match node {
                    Some(node) => node,
                    None => self.graph.constant(bits, ty)?,
                });
            }
            let site = at.site(usize::from(cell.lane));
            results.push((*cell, Some(self.graph.apply(label, &args, site)?)));
        }
        let bytes = (d.bytes() as usize).min(WIDEST);
        for (cell, node) in results {
            let pieces = node.map_or([Piece::NUMBER; WIDEST], |node| Value::whole(node, bytes));
            self.set_cell(at, cell, &pieces[..bytes]);
        }
        Ok(())
    }

    /// The node of a matrix element; elements below a byte have none that could be named.
    fn element(
        &mut self,
        at: At,
        cell: Cell,
        ty: Scalar,
        registers: &Registers,
    ) -> Result<Option<NodeId>, Limit> {
        let bytes = (ty.bytes() as usize).min(WIDEST);
        let value = Value { pieces: self.cell(at, cell, bytes), bits: bits(registers, cell) };
        if ty.bits() < 8 && !value.is_number(bytes) {
            return self.graph.unknown(ty).map(Some);
        }
        value.node(&mut self.graph, ty, at.site(usize::from(cell.lane)))
    }
}

fn bits(registers: &Registers, cell: Cell) -> u64 {
    let whole = registers.lane(cell.slot, usize::from(cell.lane) % LANES);
    whole.checked_shr(8 * u32::from(cell.byte)).unwrap_or(0)
}
