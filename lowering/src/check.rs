//! The plan checker: a proof, on every plan of every compile, that it folds the canonical tree.
//!
//! # Idea
//! After `k` folds the claim about each hardware place is: *it holds `T[a·2^k, (a+1)·2^k)` of the
//! row `o`*, where `a` and `o` are linear in the bits of the place. A claim is therefore known
//! from its columns, one per place bit, and each step has a precondition on columns under which
//! the claim holds again afterwards: to join `T[2a·2^k, …)` with `T[(2a+1)·2^k, …)` at all places
//! at once, the bit that tells the two apart must move the axis by exactly one and nothing else,
//! and no other place bit may touch axis bit 0. Checking columns is checking all places.
//! regalloc2's symbolic checker is the model.
//! # Invariants
//! - **C1** Nothing here is shared with the planner but the types of a plan; in particular not
//!   [`crate::plan::State`].
//! - **C2** A plan that passes leaves the result, complete, at every place that the result's
//!   layout names, replicas included.
//! # Held by
//! C2: `tests/check.rs`, which runs plans, right and wrong, on explicit trees at every place.
//! # Not here
//! Whether the emitted code does what the plan says: the tests execute it.

use crate::layout::{Basis, Dim, LinearLayout, Shape};
use crate::plan::{Plan, Site, Step};

/// A plan that does not fold the canonical tree. Always our bug, never the user's.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("step {step}: {why}")]
pub struct PlanFault {
    /// Index of the step, or the number of steps when the end is wrong.
    pub step: usize,
    /// What went wrong.
    pub why: Fault,
}

/// What a step, or the end of a plan, got wrong.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Fault {
    /// A fold, but the axis is folded already.
    #[error("nothing is left to fold")]
    NothingLeft,
    /// A bit number that the hardware place does not have.
    #[error("{what} bit {bit} does not exist")]
    NoSuchBit {
        /// Register or lane.
        what: &'static str,
        /// Its number.
        bit: u32,
    },
    /// The bit that is folded does not hold exactly axis bit 0.
    #[error("{what} bit {bit} moves the axis by {axis} and the row by {row}, not by 1 and 0")]
    NotTheNextBit {
        /// Register or lane.
        what: &'static str,
        /// Its number.
        bit: u32,
        /// Its offset along the axis.
        axis: u64,
        /// Its offset across the axis.
        row: u64,
    },
    /// Another bit moves the axis by an odd distance, so the two halves are not neighbours.
    #[error("axis bit 0 is also in {what} bit {bit}")]
    SharedAxisBit {
        /// Which bits of the place.
        what: &'static str,
        /// Its number.
        bit: u32,
    },
    /// A relayout to a layout of another tensor or another machine.
    #[error("the target is a layout of another shape or number of lanes, warps or blocks")]
    ForeignLayout,
    /// A layout that misses elements: what it does not hold would be lost.
    #[error("the layout does not hold every element")]
    Incomplete,
    /// The plan ends before the axis is folded.
    #[error("{0} axis bits are not folded")]
    Unfinished(u32),
    /// A place that the result's layout names does not hold what it wants.
    #[error("{what} bit {bit} of the result does not hold what its users expect")]
    Misplaced {
        /// Which bits of the place.
        what: &'static str,
        /// Its number.
        bit: usize,
    },
    /// The result's registers are not all named, or name registers that do not exist.
    #[error("the gather names {got} registers where the result has {wanted}")]
    Gather {
        /// Entries in the plan.
        got: usize,
        /// Registers of the result.
        wanted: usize,
    },
}

/// How far a place bit moves the axis and the row.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Column {
    axis: u64,
    row: u64,
}

const STILL: Column = Column { axis: 0, row: 0 };

/// What every place holds.
struct Claim {
    /// What is left of the axis.
    extent: u64,
    /// The extents of the other dimensions, which no step changes.
    rows: Vec<u64>,
    register: Vec<Column>,
    lane: Vec<Column>,
    warp: Vec<Column>,
    block: Vec<Column>,
}

/// Proves that `plan` folds the canonical tree at `site`.
pub fn canonical(site: &Site, plan: &Plan) -> Result<(), PlanFault> {
    let fault = |step, why| PlanFault { step, why };
    let mut claim = Claim::of(&site.source, site.axis).map_err(|why| fault(0, why))?;
    for (number, step) in plan.steps.iter().enumerate() {
        claim.step(step, site.axis).map_err(|why| fault(number, why))?;
    }
    claim.finish(site, &plan.gather).map_err(|why| fault(plan.steps.len(), why))
}

/// The index across the axis: the offset along every other dimension.
fn split(shape: &Shape, basis: Basis, axis: Dim) -> Column {
    let mut row = 0;
    for dim in (0..shape.rank()).map(Dim).filter(|&d| d != axis) {
        row = (row << shape.bits(dim)) | shape.component(basis, dim);
    }
    Column { axis: shape.component(basis, axis), row }
}

impl Claim {
    /// The claim before any fold. Registers that hold the same elements are held once.
    fn of(layout: &LinearLayout, axis: Dim) -> Result<Claim, Fault> {
        if !is_surjective(layout) {
            return Err(Fault::Incomplete);
        }
        let columns =
            |bases: &[Basis]| bases.iter().map(|&b| split(&layout.shape, b, axis)).collect();
        let mut register: Vec<Column> = columns(&layout.register);
        register.retain(|&column| column != STILL);
        let mut rows = layout.shape.extents();
        let extent = rows.remove(axis.0);
        Ok(Claim {
            extent,
            rows,
            register,
            lane: columns(&layout.lane),
            warp: columns(&layout.warp),
            block: columns(&layout.block),
        })
    }

    fn step(&mut self, step: &Step, axis: Dim) -> Result<(), Fault> {
        match step {
            Step::FoldRegister(bit) => {
                let held = take(&mut self.register, bit.0)?;
                self.join("register", bit.0, held)
            }
            Step::Butterfly(bit) => {
                let held = self.vacate_lane(bit.0)?;
                self.join("lane", bit.0, held)
            }
            Step::HalfExchange { lane, register } => {
                let held = self.vacate_lane(lane.0)?;
                let moved = take(&mut self.register, register.0)?;
                self.lane[lane.0 as usize] = moved;
                // The moved bit must not be odd either: `join` looks at it in its new place.
                self.join("lane", lane.0, held)
            }
            Step::Relayout(target) => self.relayout(target, axis),
        }
    }

    fn vacate_lane(&mut self, bit: u32) -> Result<Column, Fault> {
        let column =
            self.lane.get_mut(bit as usize).ok_or(Fault::NoSuchBit { what: "lane", bit })?;
        Ok(std::mem::replace(column, STILL))
    }

    /// Joins neighbours that a bit told apart; the bit itself is no longer among the columns.
    fn join(&mut self, what: &'static str, bit: u32, held: Column) -> Result<(), Fault> {
        if self.extent < 2 {
            return Err(Fault::NothingLeft);
        }
        if held != (Column { axis: 1, row: 0 }) {
            return Err(Fault::NotTheNextBit { what, bit, axis: held.axis, row: held.row });
        }
        let places = [
            ("register", &mut self.register),
            ("lane", &mut self.lane),
            ("warp", &mut self.warp),
            ("block", &mut self.block),
        ];
        for (what, columns) in places {
            for (bit, column) in (0..).zip(columns.iter_mut()) {
                if column.axis % 2 == 1 {
                    return Err(Fault::SharedAxisBit { what, bit });
                }
                column.axis /= 2;
            }
        }
        self.extent /= 2;
        Ok(())
    }

    fn relayout(&mut self, target: &LinearLayout, axis: Dim) -> Result<(), Fault> {
        if target.shape.rank() <= axis.0 {
            return Err(Fault::ForeignLayout);
        }
        let moved = Claim::of(target, axis)?;
        let same_tensor = moved.extent == self.extent && moved.rows == self.rows;
        let same_machine = moved.lane.len() == self.lane.len()
            && moved.warp.len() == self.warp.len()
            && moved.block.len() == self.block.len();
        if !same_tensor || !same_machine {
            return Err(Fault::ForeignLayout);
        }
        *self = moved;
        Ok(())
    }

    fn finish(&self, site: &Site, gather: &[u32]) -> Result<(), Fault> {
        if self.extent != 1 {
            return Err(Fault::Unfinished(self.extent.trailing_zeros()));
        }
        // Without the axis an index is the row alone, numbered as `split` numbers it.
        let result = &site.result;
        if result.shape.extents() != self.rows {
            return Err(Fault::ForeignLayout);
        }
        for (what, columns, wanted) in [
            ("lane", &self.lane, &result.lane),
            ("warp", &self.warp, &result.warp),
            ("block", &self.block, &result.block),
        ] {
            if columns.len() != wanted.len() {
                return Err(Fault::ForeignLayout);
            }
            let wrong = columns.iter().zip(wanted).position(|(c, w)| c.row != w.0);
            if let Some(bit) = wrong {
                return Err(Fault::Misplaced { what, bit });
            }
        }
        let wanted = 1usize << result.register.len();
        let have = 1u64 << self.register.len();
        if gather.len() != wanted || gather.iter().any(|&r| u64::from(r) >= have) {
            return Err(Fault::Gather { got: gather.len(), wanted });
        }
        let row_of = |register: usize, columns: &mut dyn Iterator<Item = u64>| {
            columns
                .enumerate()
                .filter(|(bit, _)| (register >> bit) & 1 == 1)
                .fold(0, |row, (_, column)| row ^ column)
        };
        for (register, &source) in gather.iter().enumerate() {
            let want = row_of(register, &mut result.register.iter().map(|b| b.0));
            let hold = row_of(source as usize, &mut self.register.iter().map(|c| c.row));
            if want != hold {
                return Err(Fault::Misplaced { what: "register", bit: register });
            }
        }
        Ok(())
    }
}

fn take(columns: &mut Vec<Column>, bit: u32) -> Result<Column, Fault> {
    if bit as usize >= columns.len() {
        return Err(Fault::NoSuchBit { what: "register", bit });
    }
    Ok(columns.remove(bit as usize))
}

/// Whether every element has a place: the columns have full rank.
fn is_surjective(layout: &LinearLayout) -> bool {
    let mut pivots: Vec<u64> = Vec::new();
    for Basis(mut vector) in layout.columns() {
        for &pivot in &pivots {
            vector = vector.min(vector ^ pivot);
        }
        if vector != 0 {
            pivots.push(vector);
        }
    }
    pivots.len() == layout.shape.total_bits() as usize
}
