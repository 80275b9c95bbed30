//! `mma.sync`: which lane holds which matrix element.
//!
//! # Idea
//! With `e` elements in a register, lane `4g + t` holds of `A` the rows `g` (and `g + 8`) and of
//! `B` the column `g`, both at `k = 4eq + et + j` for register group `q` and element `j`; of `C` and
//! `D` it holds columns `2t` and `2t + 1` of rows `g` (and `g + 8`). The arithmetic of one output
//! element is [`crate::num::mma`]'s.
//! # Source
//! PTX ISA, "Matrix fragments for mma" of each shape; one rule covers those that are executed.

use smallvec::SmallVec;

use super::{
    cta::Cta,
    program::{MmaStep, MmaTypes, Slots},
    registers::{LANES, Mask, Registers},
    step::At,
};
use crate::{
    ir::Scalar,
    num::mma::{Dot, Vector},
};

/// Most products of one output element.
const MOST_K: usize = 64;

/// Whether a shape with its types is executed.
pub(crate) fn supported(m: u16, n: u16, k: u16, types: MmaTypes) -> bool {
    use Scalar::*;
    let shape = (m, n, k);
    let floats = matches!((types.d, types.c), (F32, F32) | (F16, F16));
    match (types.a, types.b) {
        (F16, F16) => matches!(shape, (16, 8, 8 | 16)) && floats,
        (BF16, BF16) => matches!(shape, (16, 8, 8 | 16)) && (types.d, types.c) == (F32, F32),
        (TF32, TF32) => matches!(shape, (16, 8, 4 | 8)) && (types.d, types.c) == (F32, F32),
        (F64, F64) => {
            matches!(shape, (8, 8, 4) | (16, 8, 4 | 8 | 16)) && (types.d, types.c) == (F64, F64)
        }
        (E4m3 | E5m2, E4m3 | E5m2) => matches!(shape, (16, 8, 16 | 32)) && floats,
        (S8 | U8, S8 | U8) => {
            matches!(shape, (8, 8, 16) | (16, 8, 16 | 32)) && (types.d, types.c) == (S32, S32)
        }
        (S4 | U4, S4 | U4) => {
            matches!(shape, (8, 8, 32) | (16, 8, 32 | 64)) && (types.d, types.c) == (S32, S32)
        }
        _ => false,
    }
}

/// Where one element is: lane, register of the fragment, shift inside it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cell {
    pub lane: usize,
    pub register: usize,
    pub shift: u32,
}

/// `A[row][k]`, and with `row_halves` 1 also `B[k][row]`.
pub fn factor(row: usize, k: usize, bits: u32, row_halves: usize) -> Cell {
    let each = (32 / bits as usize).max(1);
    let (group, within) = (k / (4 * each), k % (4 * each));
    Cell {
        lane: row % 8 * 4 + within / each,
        register: group * row_halves + row / 8,
        shift: (within % each) as u32 * bits,
    }
}

/// `C[row][column]` or `D[row][column]`.
pub fn sum(row: usize, column: usize, bits: u32) -> Cell {
    let lane = row % 8 * 4 + column / 2;
    if bits == 16 {
        return Cell { lane, register: row / 8, shift: column as u32 % 2 * 16 };
    }
    Cell { lane, register: row / 8 * 2 + column % 2, shift: 0 }
}

fn read(registers: &Registers, slots: &Slots, cell: Cell, bits: u32) -> u64 {
    let Some(slot) = slots.get(cell.register) else { return 0 };
    let value = registers.lane(*slot, cell.lane) >> cell.shift;
    if bits < 64 { value & ((1 << bits) - 1) } else { value }
}

impl Cta<'_> {
    pub fn mma(&mut self, at: At, step: &MmaStep) {
        let registers = &self.warps[at.warp].registers;
        let (m, n, k) = (usize::from(step.m), usize::from(step.n), usize::from(step.k));
        let MmaTypes { d, a, b, c } = step.types;
        let dot = Dot::new(self.context.request.options.mma, d, a, b, c, step.satfinite);
        let line = |slots: &Slots, index: usize, ty: Scalar, halves: usize| {
            let mut values = [0; MOST_K];
            for (at, value) in values.iter_mut().enumerate().take(k) {
                *value = read(registers, slots, factor(index, at, ty.bits(), halves), ty.bits());
            }
            values
        };
        let columns: SmallVec<[Vector; 8]> =
            (0..n).map(|column| dot.load_b(&line(&step.b, column, b, 1)[..k])).collect();
        let mut results = [[0u64; LANES]; 4];
        for row in 0..m {
            let values = dot.load_a(&line(&step.a, row, a, m / 8)[..k]);
            for (column, other) in columns.iter().enumerate() {
                let start = read(registers, &step.c, sum(row, column, c.bits()), c.bits());
                let value = dot.multiply(&values, other, start);
                let cell = sum(row, column, d.bits());
                results[cell.register][cell.lane] |= value << cell.shift;
            }
        }
        let registers = &mut self.warps[at.warp].registers;
        for (slot, row) in step.d.iter().zip(&results) {
            for (lane, value) in row.iter().enumerate() {
                if at.active & (1 << lane as Mask) != 0 {
                    registers.set_lane(*slot, lane, *value);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the manual's figures for m16n8k16 (16 bit), m16n8k32 (8 bit), m16n8k8 (tf32).
    #[test]
    fn cells_follow_the_manual() {
        let cell = |lane, register, shift| Cell { lane, register, shift };
        assert_eq!(factor(0, 0, 16, 2), cell(0, 0, 0));
        assert_eq!(factor(9, 3, 16, 2), cell(5, 1, 16));
        assert_eq!(factor(1, 12, 16, 2), cell(6, 2, 0));
        assert_eq!(factor(15, 15, 16, 2), cell(31, 3, 16));
        assert_eq!(factor(3, 21, 8, 2), cell(13, 2, 8));
        assert_eq!(factor(2, 6, 32, 2), cell(10, 2, 0));
        assert_eq!(factor(7, 9, 16, 1), cell(28, 1, 16));
        assert_eq!(sum(10, 5, 32), cell(10, 3, 0));
        assert_eq!(sum(10, 5, 16), cell(10, 1, 16));
    }

    /// Each element has a cell of its own, and the cells fill the fragments.
    #[test]
    fn cells_are_a_bijection() {
        for (m, k, bits) in [(16, 8, 16), (16, 16, 16), (16, 8, 32), (16, 32, 8), (8, 4, 64)] {
            let mut seen = std::collections::BTreeSet::new();
            for row in 0..m {
                for at in 0..k {
                    let cell = factor(row, at, bits, m / 8);
                    assert!(cell.lane < 32);
                    assert!(seen.insert((cell.lane, cell.register, cell.shift)), "{row} {at}");
                }
            }
            assert_eq!(seen.len(), m * k);
        }
    }
}
