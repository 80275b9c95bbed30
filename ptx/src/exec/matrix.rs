//! Matrix fragments: `ldmatrix`, `stmatrix`, `movmatrix`.
//!
//! # Idea
//! A matrix is eight rows of sixteen bytes; the row addresses of matrix `i` come from lanes
//! `8i .. 8i+8`. Untransposed, word `w` of row `r` belongs to lane `4r + w`; transposed, the 16-bit
//! element `(r, c)` belongs to the lane that holds `(c, r)`.
//! # Source
//! PTX ISA, `ldmatrix`, `stmatrix`, `movmatrix`, fragment layouts of 8×8 `b16` matrices.

use super::{
    cta::Cta,
    program::{Address, Slots},
    registers::{LANES, Mask, Slot},
    step::At,
};
use crate::{
    ir::{Ordering, Space},
    memory::WarpAccess,
};

const ROWS: usize = 8;

/// A matrix as its 16-bit elements.
type Matrix = [[u16; ROWS]; ROWS];

impl Cta<'_> {
    pub fn load_matrix(&mut self, at: At, address: Address, trans: bool, dst: &Slots) {
        let addresses = self.addresses(at.warp, address);
        let access = row_access(at, &addresses, dst.len());
        let mut rows = [[0; LANES]; 2];
        self.memory.load(self.context.memory, &access, &mut rows);
        let registers = &mut self.warps[at.warp].registers;
        for (number, slot) in dst.iter().enumerate() {
            let matrix = split(&rows, number);
            registers.words[slot.row()] = fragment(&matrix, trans);
        }
    }

    pub fn store_matrix(&mut self, at: At, address: Address, trans: bool, src: &Slots) {
        let addresses = self.addresses(at.warp, address);
        let access = row_access(at, &addresses, src.len());
        let registers = &self.warps[at.warp].registers;
        let mut rows = [[0; LANES]; 2];
        for (number, slot) in src.iter().enumerate() {
            let matrix = gather(&registers.words[slot.row()], trans);
            join(&matrix, number, &mut rows);
        }
        self.memory.store(self.context.memory, &access, &rows);
    }

    pub fn move_matrix(&mut self, at: At, dst: Slot, src: Slot) {
        let registers = &mut self.warps[at.warp].registers;
        let matrix = gather(&registers.words[src.row()], false);
        registers.words[dst.row()] = fragment(&matrix, true);
    }
}

/// One row of sixteen bytes a lane, for the lanes that give row addresses.
fn row_access<'a>(at: At, addresses: &'a [u64; LANES], matrices: usize) -> WarpAccess<'a> {
    let providers = ROWS * matrices;
    let mask = if providers >= LANES { Mask::MAX } else { (1 << providers) - 1 };
    WarpAccess {
        pc: at.pc,
        warp: at.warp as u32,
        mask: mask & at.active,
        space: Space::Shared,
        ordering: Ordering::Weak,
        addresses,
        width: 8,
        count: 2,
    }
}

fn split(rows: &[[u64; LANES]; 2], number: usize) -> Matrix {
    std::array::from_fn(|row| {
        let lane = number * ROWS + row;
        std::array::from_fn(|column| (rows[column / 4][lane] >> (column % 4 * 16)) as u16)
    })
}

fn join(matrix: &Matrix, number: usize, rows: &mut [[u64; LANES]; 2]) {
    for (row, elements) in matrix.iter().enumerate() {
        for (half, word) in elements.chunks_exact(4).enumerate() {
            let packed = word.iter().rev().fold(0, |all, &element| all << 16 | u64::from(element));
            rows[half][number * ROWS + row] = packed;
        }
    }
}

/// What each lane holds of a matrix.
fn fragment(matrix: &Matrix, trans: bool) -> [u32; LANES] {
    std::array::from_fn(|lane| {
        let (row, column) = (lane / 4, lane % 4 * 2);
        let element = |column: usize| {
            u32::from(if trans { matrix[column][row] } else { matrix[row][column] })
        };
        element(column) | element(column + 1) << 16
    })
}

/// The matrix that the lanes hold together.
fn gather(words: &[u32; LANES], trans: bool) -> Matrix {
    let mut matrix = [[0; ROWS]; ROWS];
    for (lane, word) in words.iter().enumerate() {
        let (row, column) = (lane / 4, lane % 4 * 2);
        for half in 0..2 {
            let element = (word >> (16 * half)) as u16;
            if trans {
                matrix[column + half][row] = element;
            } else {
                matrix[row][column + half] = element;
            }
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lane 5 holds row 1, columns 2 and 3; transposed, column 1 of rows 2 and 3.
    #[test]
    fn fragments_follow_the_manual() {
        let matrix: Matrix =
            std::array::from_fn(|row| std::array::from_fn(|column| (row * 16 + column) as u16));
        assert_eq!(fragment(&matrix, false)[5], 0x0013_0012);
        assert_eq!(fragment(&matrix, true)[5], 0x0031_0021);
    }

    #[test]
    fn gather_undoes_fragment() {
        let matrix: Matrix =
            std::array::from_fn(|row| std::array::from_fn(|column| (row * 16 + column) as u16));
        for trans in [false, true] {
            assert_eq!(gather(&fragment(&matrix, trans), trans), matrix, "trans {trans}");
        }
        let mut rows = [[0; LANES]; 2];
        join(&matrix, 2, &mut rows);
        assert_eq!(split(&rows, 2), matrix);
    }
}
