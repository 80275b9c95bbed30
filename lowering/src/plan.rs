//! A plan: the steps by which one pinned reduction folds its axis.
//!
//! # Idea
//! The canonical tree folds axis bit 0, then bit 1, … A [`Step`] either folds the lowest axis bit
//! that is left, or changes where the index bits live. Between steps the values form a smaller
//! tensor, whose axis extent halves at each fold; [`State`] is its layout.
//! # Invariants
//! - **P1** A fold always takes axis bit 0 *of the tensor as it then is*; what was bit 1 becomes
//!   bit 0. No other order can be written down.
//! - **P2** A state has no broadcast register bits: equal values are held once.
//! - **P3** Lane, warp and block bits keep their number from the first state to the last.
//! # Held by
//! P1: [`Step`] names a place, never an axis bit. P2: [`LinearLayout::distinct_registers`].
//! P3: `check.rs`, which also proves that a plan folds the canonical tree.
//! # Not here
//! Which plan is best (`planner.rs`); what a step costs (`cost.rs`); how it is emitted.

use std::fmt;

use crate::layout::{Basis, Dim, LinearLayout, Shape};

/// A bit of the register number. Not a register: two registers differ in it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct RegisterBit(pub u32);

/// A bit of the lane number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct LaneBit(pub u32);

/// One step of a plan. `R` is the number of values a lane holds before the step.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Step {
    /// The axis bit is in the register number: `R/2` combines and no communication.
    /// The register bit disappears; higher ones move down.
    FoldRegister(RegisterBit),
    /// Every value meets its partner's in lane `l ^ (1 << bit)`: `R` exchanges, `R` combines.
    /// Afterwards both lanes hold the result: the lane bit is a broadcast bit.
    Butterfly(LaneBit),
    /// Lanes trade half of their values: the lane whose bit is clear keeps the registers whose
    /// bit is clear, its partner the others. `R/2` exchanges, `R/2` combines. The index bit of
    /// `register` moves into `lane`, and the register bit disappears.
    HalfExchange {
        /// The lane bit that holds the axis bit.
        lane: LaneBit,
        /// The register bit whose index bit moves into the lane.
        register: RegisterBit,
    },
    /// Everything moves to another layout of the same tensor. Folds nothing.
    Relayout(LinearLayout),
}

/// Whether a combine may take its operands in either order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Operands {
    /// The result has the same bits either way: addition, multiplication.
    Commute,
    /// The lower index must stand on the left.
    Ordered,
}

/// One pinned reduction, as the planner sees it.
#[derive(Clone, Debug)]
pub struct Site {
    /// The layout of the operands, which share it.
    pub source: LinearLayout,
    /// The dimension that is folded.
    pub axis: Dim,
    /// Where the results are wanted: a layout of the tensor without the axis. A scalar is a
    /// tensor of rank zero, all of whose columns are broadcasts.
    pub result: LinearLayout,
    /// The width of each operand in bits.
    pub widths: Vec<u32>,
    /// Whether operands may be exchanged.
    pub operands: Operands,
    /// How many instructions one evaluation of the combine takes, roughly.
    pub combine_cost: u32,
}

/// A plan for one site.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The steps in order.
    pub steps: Vec<Step>,
    /// For each register of the result's layout, the register of the last state that holds it.
    pub gather: Vec<u32>,
    /// What the steps cost under the model that the plan was made for.
    pub cost: u32,
}

/// The layout between two steps.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct State {
    /// The layout of the partly folded tensor; no register column is zero.
    pub layout: LinearLayout,
    /// The dimension that is folded.
    pub axis: Dim,
}

impl LinearLayout {
    /// The layout without its broadcast register bits, and the register that stands for each of
    /// its registers: what is left to hold once equal values are held once.
    pub fn distinct_registers(&self) -> (LinearLayout, Vec<u32>) {
        let kept: Vec<usize> =
            (0..self.register.len()).filter(|&b| self.register[b] != Basis::ZERO).collect();
        let representatives = (0..1u32 << kept.len())
            .map(|r| kept.iter().enumerate().map(|(new, old)| ((r >> new) & 1) << old).sum())
            .collect();
        let register = kept.iter().map(|&b| self.register[b]).collect();
        (LinearLayout { register, ..self.clone() }, representatives)
    }

    /// How many registers a lane has.
    pub fn registers(&self) -> usize {
        1 << self.register.len()
    }
}

impl Shape {
    /// The shape with the axis halved: what is left after one fold.
    fn folded(&self, axis: Dim) -> Shape {
        let mut extents = self.extents();
        extents[axis.0] /= 2;
        Shape::from_extents(&extents).expect("half of a power of two above one is a power of two")
    }
}

impl State {
    /// The state before the first step.
    pub fn new(site: &Site) -> State {
        State { layout: site.source.distinct_registers().0, axis: site.axis }
    }

    /// How many axis bits are left to fold.
    pub fn bits_left(&self) -> u32 {
        self.layout.shape.bits(self.axis)
    }

    /// The column of the axis bit that folds next.
    ///
    /// # Panics
    /// When nothing is left to fold.
    pub fn next_bit(&self) -> Basis {
        self.layout.shape.unit(self.axis, 0)
    }

    /// The state after `step`. Whether the step was right is for `check.rs` to say.
    pub fn after(&self, step: &Step) -> State {
        let mut layout = self.layout.clone();
        match step {
            Step::FoldRegister(bit) => {
                layout.register.remove(bit.0 as usize);
                self.fold(layout)
            }
            Step::Butterfly(bit) => {
                layout.lane[bit.0 as usize] = Basis::ZERO;
                self.fold(layout)
            }
            Step::HalfExchange { lane, register } => {
                layout.lane[lane.0 as usize] = layout.register.remove(register.0 as usize);
                self.fold(layout)
            }
            Step::Relayout(target) => {
                State { layout: target.distinct_registers().0, axis: self.axis }
            }
        }
    }

    fn fold(&self, layout: LinearLayout) -> State {
        let below = (1u64 << layout.shape.offset(self.axis)) - 1;
        let shift = |b: Basis| Basis((b.0 & below) | ((b.0 >> 1) & !below));
        let columns = |bases: Vec<Basis>| bases.into_iter().map(shift).collect();
        let layout = LinearLayout {
            shape: layout.shape.folded(self.axis),
            register: columns(layout.register),
            lane: columns(layout.lane),
            warp: columns(layout.warp),
            block: columns(layout.block),
        };
        State { layout, axis: self.axis }
    }

    /// The registers that hold `result`, if every lane and warp already has what it wants.
    ///
    /// The axis has extent 1 here and so takes no bits: columns with and without it are equal.
    pub fn gather(&self, result: &LinearLayout) -> Option<Vec<u32>> {
        let layout = &self.layout;
        let placed = layout.lane == result.lane
            && layout.warp == result.warp
            && layout.block == result.block;
        if !placed {
            return None;
        }
        let sources: Option<Vec<u32>> = result
            .register
            .iter()
            .map(|&wanted| match wanted {
                Basis::ZERO => Some(0),
                _ => layout.register.iter().position(|&b| b == wanted).map(|p| 1 << p),
            })
            .collect();
        let sources = sources?;
        let register =
            |r: usize| sources.iter().enumerate().map(|(bit, s)| s * ((r >> bit) as u32 & 1)).sum();
        Some((0..result.registers()).map(register).collect())
    }

    /// `result` as a layout of this state's tensor: with the axis, of extent 1.
    pub fn embed(&self, result: &LinearLayout) -> LinearLayout {
        LinearLayout { shape: self.layout.shape.clone(), ..result.clone() }
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::FoldRegister(bit) => write!(f, "fold register bit {}", bit.0),
            Step::Butterfly(bit) => write!(f, "butterfly lane bit {}", bit.0),
            Step::HalfExchange { lane, register } => {
                write!(f, "half exchange lane bit {}, register bit {}", lane.0, register.0)
            }
            Step::Relayout(target) => write!(f, "relayout to {target}"),
        }
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.steps.iter().try_for_each(|step| writeln!(f, "{step}"))
    }
}
