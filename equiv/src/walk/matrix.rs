//! Matrix fragments: `ldmatrix`, `stmatrix`, `movmatrix`, `mma.sync`.
//!
//! # Idea
//! Loads and stores move 16-bit elements between lanes. A product is one term an output element,
//! over its row, its column and its addend: in which order the unit adds is the instruction's
//! business, so equal instructions of one architecture on equal rows and columns are equal.
//! # Source
//! The executor's tables of which lane holds which element ([`bitstable_ptx::exec::mma`]).

use std::rc::Rc;

use bitstable_ptx::{
    exec::mma::{factor, sum},
    ir::{Instruction, Op, Scalar},
};
use smallvec::SmallVec;

use super::{
    Stop, Walk,
    shared::{Cell, Runs},
};
use crate::{
    each::Each,
    graph::Node,
    term::{Atom, Body, Mixer, seed},
    value::{Value, parts},
};

/// Names of a fragment's elements: by register, by element in it, by thread.
type Fragment = Vec<SmallVec<[Each<Body>; 4]>>;

/// A matrix's rows.
const ROWS: usize = 8;

impl<'m> Walk<'m> {
    pub(super) fn ldmatrix(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Ldmatrix { number, trans, ref shape, ref ty, .. } = instruction.op else {
            return self.stop("no matrix load");
        };
        self.square(shape, ty)?;
        self.all_here(instruction, "a matrix load")?;
        let decoded = self.decoded(instruction)?;
        let addresses = self.row_addresses(instruction)?;
        let guard = self.own_guard(instruction);
        let Some(targets) = decoded.targets.first() else { return self.stop("no target") };
        for (matrix, target) in targets.iter().enumerate().take(usize::from(number)) {
            let mut rows = Vec::with_capacity(self.threads);
            for thread in 0..self.threads {
                let mut cells = Runs::new();
                // Neighbours of a row are read as one, or a constant would be two of half its width.
                let halves: &[(usize, u8)] = if trans { &[(0, 2), (1, 2)] } else { &[(0, 4)] };
                for &(half, bytes) in halves {
                    let (provider, column) = element(thread, matrix, half, trans);
                    let address = addresses.at(provider) + 2 * column as u64;
                    match self.shared.read(address, bytes, provider as u32) {
                        Ok(mut run) => cells.append(&mut run),
                        Err(race) => return self.stop(race),
                    }
                }
                rows.push(Some(cells));
            }
            let value = self.gathered(&rows, 4);
            self.write(*target, value, guard.as_ref());
        }
        Ok(())
    }

    pub(super) fn stmatrix(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Stmatrix { number, trans, ref shape, ref ty, .. } = instruction.op else {
            return self.stop("no matrix store");
        };
        self.square(shape, ty)?;
        self.all_here(instruction, "a matrix store")?;
        let decoded = self.decoded(instruction)?;
        let addresses = self.row_addresses(instruction)?;
        let Some(source) = decoded.sources.first() else { return self.stop("no source") };
        let operand = &instruction.operands[source.operand];
        let each = if let bitstable_ptx::ir::Operand::Vector(parts) = operand {
            parts.as_slice()
        } else {
            std::slice::from_ref(operand)
        };
        for (matrix, part) in each.iter().enumerate().take(usize::from(number)) {
            let value = self.read(part, Scalar::B32)?;
            let halves: SmallVec<[Each<Cell>; 2]> =
                value.split(4, 2).iter().map(|half| self.cells(half)).collect();
            for thread in 0..self.threads {
                for (half, cells) in halves.iter().enumerate() {
                    let (provider, column) = element(thread, matrix, half, trans);
                    let address = addresses.at(provider) + 2 * column as u64;
                    let cell = cells.at(thread);
                    if let Err(race) = self.shared.write(address, cell, 2, provider as u32) {
                        return self.stop(race);
                    }
                }
            }
        }
        Ok(())
    }

    fn cells(&mut self, value: &Value) -> Each<Cell> {
        if let Value::Bits(bits) = value {
            return bits.map(Cell::Bits);
        }
        value.atoms(&mut self.world.algebra, 2, self.threads).map(Cell::Atom)
    }

    pub(super) fn movmatrix(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        self.all_here(instruction, "a matrix move")?;
        let decoded = self.decoded(instruction)?;
        let value = self.source(instruction, 0)?;
        let guard = self.own_guard(instruction);
        let halves = value.split(4, 2);
        let [low, high] = halves.as_slice() else { return self.stop("a matrix of no elements") };
        let threads = self.threads;
        let mut each = Vec::with_capacity(2);
        for half in 0..2 {
            let source = |thread: usize| {
                let (warp, lane) = (thread / 32 * 32, thread % 32);
                warp + (lane % 4 * 2 + half) * 4 + lane / 8
            };
            let odd = Each::from_fn(threads, |thread| thread % 32 / 4 % 2 == 1);
            let (from_low, from_high) =
                (low.permuted(threads, &source), high.permuted(threads, &source));
            each.push(from_high.chosen(&from_low, &odd, &mut self.world.algebra, 2));
        }
        let target = decoded.targets.first().and_then(|targets| targets.first()).copied().flatten();
        self.write(target, parts(each, 2), guard.as_ref());
        Ok(())
    }

    /// Only 8x8 matrices of 16-bit elements are followed.
    fn square(&self, shape: &str, ty: &str) -> Result<(), Stop> {
        if shape == "m8n8" && ty == "b16" {
            return Ok(());
        }
        self.stop(format!("matrices of shape {shape} and type {ty}"))
    }

    fn row_addresses(&mut self, instruction: &'m Instruction) -> Result<Each<u64>, Stop> {
        let decoded = self.decoded(instruction)?;
        let Some(&at) = decoded.addresses.first() else { return self.stop("no address") };
        let address = self.address(&instruction.operands[at])?;
        self.shared_address(&address)
    }

    pub(super) fn mma(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Mma { m, n, k, d, a, b, c, .. } = instruction.op else {
            return self.stop("no matrix product");
        };
        self.all_here(instruction, "a matrix product")?;
        let narrow = [a, b, c, d].iter().any(|ty| ty.bits() < 8);
        if narrow || (m, n, k, a) == (8, 8, 4, Scalar::F16) {
            return self.stop("a matrix product of this shape");
        }
        let (m, n, k) = (usize::from(m), usize::from(n), usize::from(k));
        let decoded = self.decoded(instruction)?;
        let guard = self.own_guard(instruction);
        let mut fragments: SmallVec<[Fragment; 3]> = SmallVec::new();
        for (source, ty) in decoded.sources.iter().zip([a, b, c]) {
            fragments.push(self.fragment(&instruction.operands[source.operand], source.ty, ty)?);
        }
        let [of_a, of_b, of_c] = fragments.as_slice() else {
            return self.stop("a matrix product of other operands");
        };
        let id = self.world.labels.of(&instruction.op, d, self.module.target.sm);
        let label = self.world.labels.get(id).clone();
        let (threads, bytes) = (self.threads, (d.bits() / 8) as u8);
        let algebra = &mut self.world.algebra;
        let per_register = (32 / d.bits() as usize).max(1);
        let registers = decoded.targets.first().map_or(0, SmallVec::len);
        let mut results = vec![vec![Atom::UNDEFINED; threads]; registers * per_register];
        for warp in 0..threads / 32 {
            let element = |fragment: &[SmallVec<[Each<Body>; 4]>],
                           cell: bitstable_ptx::exec::mma::Cell,
                           ty: Scalar| {
                let part = cell.shift as usize / ty.bits() as usize;
                let each = fragment.get(cell.register).and_then(|parts| parts.get(part));
                each.map_or(Atom::UNDEFINED.body, |each| each.at(warp * 32 + cell.lane))
            };
            let mut line = |fragment: &[SmallVec<[Each<Body>; 4]>],
                            index: usize,
                            ty: Scalar,
                            halves: usize| {
                let bodies: SmallVec<[Body; 32]> = (0..k)
                    .map(|at| element(fragment, factor(index, at, ty.bits(), halves), ty))
                    .collect();
                if bodies.contains(&Atom::UNDEFINED.body) {
                    return Atom::UNDEFINED.body;
                }
                let mixer = bodies.iter().fold(Mixer::new(seed::MATRIX), |m, body| m.body(*body));
                algebra
                    .named(mixer.finish(), || Node::Other { what: "line", args: bodies.to_vec() })
            };
            let columns: SmallVec<[Body; 8]> =
                (0..n).map(|column| line(of_b, column, b, 1)).collect();
            let rows: SmallVec<[Body; 16]> =
                (0..m).map(|row| line(of_a, row, a, m / ROWS)).collect();
            for (row, row_body) in rows.iter().enumerate() {
                for (column, column_body) in columns.iter().enumerate() {
                    let addend = element(of_c, sum(row, column, c.bits()), c);
                    let atom = algebra.apply(&label, &[*row_body, *column_body, addend]);
                    let cell = sum(row, column, d.bits());
                    let part = cell.shift as usize / d.bits() as usize;
                    results[cell.register * per_register + part][warp * 32 + cell.lane] = atom;
                }
            }
        }
        let Some(targets) = decoded.targets.first() else { return self.stop("no target") };
        for (register, target) in targets.iter().enumerate() {
            let each: Vec<Value> = (0..per_register)
                .map(|part| {
                    let atoms: Rc<[Atom]> =
                        results[register * per_register + part].as_slice().into();
                    Value::Atoms(Each::gathered(atoms), bytes)
                })
                .collect();
            self.write(*target, parts(each, bytes), guard.as_ref());
        }
        Ok(())
    }

    /// Names of a fragment's elements: by register, by element in it, by thread.
    fn fragment(
        &mut self,
        operand: &bitstable_ptx::ir::Operand,
        holder: Scalar,
        ty: Scalar,
    ) -> Result<Fragment, Stop> {
        let each = if let bitstable_ptx::ir::Operand::Vector(parts) = operand {
            parts.as_slice()
        } else {
            std::slice::from_ref(operand)
        };
        let unit = (ty.bits() / 8) as u8;
        let mut all = Vec::with_capacity(each.len());
        for part in each {
            let value = self.read(part, holder)?;
            if unit >= 4 {
                let bodies = value.bodies(&mut self.world.algebra, unit, self.threads);
                all.push(smallvec::smallvec![bodies]);
            } else {
                all.push(self.part_bodies(&value, unit));
            }
        }
        Ok(all)
    }
}

/// The lane that gives the row's address, and the column in it, of a thread's element.
fn element(thread: usize, matrix: usize, half: usize, trans: bool) -> (usize, usize) {
    let (warp, lane) = (thread / 32 * 32, thread % 32);
    let (row, column) = (lane / 4, lane % 4 * 2 + half);
    let (row, column) = if trans { (column, row) } else { (row, column) };
    (warp + (matrix * ROWS + row) % 32, column)
}
