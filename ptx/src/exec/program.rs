//! A decoded kernel: what the machine runs.
//!
//! # Idea
//! Decoding happens once a kernel: functions are laid out one after the other, labels become step
//! numbers, operands become rows, and each opcode becomes one [`Action`]. Running never looks at
//! the typed IR again, but for messages and symbols.
//! # Invariants
//! - **P1** Every row and every step number of an action is in range; decoding checked it.
//! - **P2** `origins[pc]` is the instruction that step `pc` came from.

use std::sync::Arc;

use smallvec::SmallVec;

use super::{
    lane::LaneStep,
    registers::{Registers, Slot},
};
use crate::ir::{
    Atomic, Barrier, Instruction, Mbarrier, Module, Ordering, Redux, Scalar, Shuffle, Space,
    Special, Vote,
};
use crate::num::mma::{Core, MmaModel};

/// A kernel, decoded.
#[derive(Debug)]
pub struct Program {
    pub(crate) module: Arc<Module>,
    pub(crate) entry: usize,
    pub(crate) steps: Vec<Step>,
    pub(crate) origins: Vec<Origin>,
    /// Row counts, and constants in their rows.
    pub(crate) template: Registers,
    pub(crate) specials: Vec<(Special, Slot)>,
    /// Rows that hold the address of a module variable, plus an offset.
    pub(crate) addresses: Vec<VariableAddress>,
    pub(crate) variables: Vec<ModuleVariable>,
    pub(crate) params: Vec<Param>,
    pub(crate) param_bytes: u32,
    /// Bytes of `.shared` variables with a size; dynamic shared memory follows.
    pub(crate) static_shared: u32,
    /// Bytes of local memory a thread.
    pub(crate) local_bytes: u32,
    /// CTAs may speak to each other: atomics, acquire or release on global memory.
    pub(crate) communicates: bool,
}

/// Where a step came from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Origin {
    pub function: u32,
    pub instruction: u32,
}

/// A row that holds `address of variable + offset`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct VariableAddress {
    pub slot: Slot,
    pub variable: usize,
    pub offset: i64,
}

/// A `.global` or `.const` variable of the module.
#[derive(Clone, Debug)]
pub(crate) struct ModuleVariable {
    pub name: String,
    pub bytes: Vec<u8>,
    pub align: u32,
}

/// A kernel parameter and its place in the parameter block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Param {
    pub name: String,
    pub ty: Scalar,
    /// Bytes from the start of the block.
    pub offset: u32,
    pub bytes: u32,
    /// `.ptr` was given: the argument is an address.
    pub pointer: bool,
}

/// The predicate an instruction runs under.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StepGuard {
    pub flag: u32,
    pub negated: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub guard: Option<StepGuard>,
    pub action: Action,
    /// Negates a predicate operand of the next step: decoding added it.
    pub negates: bool,
}

/// A list of rows.
pub(crate) type Slots = SmallVec<[Slot; 4]>;

/// `[base + offset]`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Address {
    pub base: Slot,
    pub offset: i64,
}

/// What a step does.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    Lane(LaneStep),
    /// `ld.param` of a kernel parameter: the same value in every lane.
    Param {
        offset: u32,
        ty: Scalar,
        dst: Slots,
    },
    Load(Transfer),
    Store(Transfer),
    Atomic(Box<AtomicStep>),
    Copy(Box<CopyStep>),
    CopyCommit,
    /// `None`: all groups.
    CopyWait(Option<u32>),
    CopyArrive {
        address: Address,
        noinc: bool,
    },
    Fence {
        ordering: Ordering,
    },
    Warp(Box<WarpStep>),
    Barrier(Box<BarrierStep>),
    Mbarrier(Box<MbarrierStep>),
    Activemask {
        dst: Slot,
    },
    /// A clock: steps of the CTA, or the upper half of their number.
    Clock {
        dst: Slot,
        high: bool,
    },
    Branch {
        target: u32,
        uniform: bool,
    },
    BranchIndexed {
        index: Slot,
        targets: Box<[u32]>,
    },
    /// Argument and return values are copied between local variables by steps around it.
    Call {
        target: u32,
    },
    Return,
    Exit,
    Trap,
    External(Box<ExternalCall>),
    Nop,
}

/// `ld` or `st`.
#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    pub space: Space,
    pub ordering: Ordering,
    pub ty: Scalar,
    pub address: Address,
    /// One for each element of the vector.
    pub data: Slots,
    /// Declared width of a destination register that is wider than the type; 0 otherwise.
    pub declared: u8,
}

#[derive(Clone, Debug)]
pub(crate) struct AtomicStep {
    pub op: Atomic,
    pub space: Space,
    pub ordering: Ordering,
    pub ty: Scalar,
    pub address: Address,
    /// Empty for `red`.
    pub dst: Slots,
    /// What is compared, for `cas`.
    pub operand: Slots,
    /// What `cas` stores; empty otherwise.
    pub new: Slots,
}

/// `cp.async`.
#[derive(Clone, Debug)]
pub(crate) struct CopyStep {
    pub dst: Address,
    pub src: Address,
    /// Of the source.
    pub space: Space,
    pub bytes: u32,
    /// Bytes that are read, the rest is zero; all when absent.
    pub source_bytes: Option<Slot>,
    /// When true, nothing is read.
    pub ignore: Option<Slot>,
}

/// Which lanes must be at the instruction together.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Members {
    /// Those of a mask operand.
    Operand(Slot),
    /// `.aligned`: all of the warp that have not exited.
    Live,
}

#[derive(Clone, Debug)]
pub(crate) struct WarpStep {
    pub members: Members,
    pub action: WarpAction,
}

#[derive(Clone, Debug)]
pub(crate) enum WarpAction {
    Shuffle { mode: Shuffle, dst: Slot, found: Slot, value: Slot, lane: Slot, clamp: Slot },
    Vote { mode: Vote, dst: Slot, predicate: Slot },
    Match { all: bool, dst: Slot, agree: Slot, value: Slot },
    Redux { op: Redux, ty: Scalar, abs: bool, nan: bool, dst: Slot, value: Slot },
    Elect { dst: Slot, elected: Slot },
    Sync,
    LoadMatrix { address: Address, trans: bool, dst: Slots },
    StoreMatrix { address: Address, trans: bool, src: Slots },
    MoveMatrix { dst: Slot, src: Slot },
    Mma(Box<MmaStep>),
}

#[derive(Clone, Debug)]
pub(crate) struct MmaStep {
    pub m: u16,
    pub n: u16,
    pub k: u16,
    pub types: MmaTypes,
    pub satfinite: bool,
    pub d: Slots,
    pub a: Slots,
    pub b: Slots,
    pub c: Slots,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MmaTypes {
    pub d: Scalar,
    pub a: Scalar,
    pub b: Scalar,
    pub c: Scalar,
}

#[derive(Clone, Debug)]
pub(crate) struct BarrierStep {
    pub kind: Barrier,
    pub aligned: bool,
    pub id: Slot,
    /// Absent: all threads of the CTA.
    pub threads: Option<Slot>,
    pub predicate: Option<Slot>,
    pub dst: Option<Slot>,
}

#[derive(Clone, Debug)]
pub(crate) struct MbarrierStep {
    pub op: Mbarrier,
    pub ordering: Ordering,
    pub space: Space,
    pub address: Address,
    pub dst: Slot,
    /// Count, transaction count, state token or parity, by the operation.
    pub operands: Slots,
}

/// A call that leaves the program.
#[derive(Clone, Debug)]
pub(crate) enum ExternalCall {
    /// Local offsets of the format and argument pointers, and of the result.
    Print { format: u32, arguments: u32, result: Option<u32> },
    /// Local offsets of message, file, line and function.
    AssertFail { message: u32, file: u32, line: u32, function: u32 },
}

impl Program {
    /// The kernel's name.
    pub fn name(&self) -> &str {
        &self.module.functions[self.entry].name
    }

    /// The module it was decoded from.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// What `mma.sync` computes on the architecture the kernel was compiled for, where a published
    /// model is known.
    pub fn hardware_mma(&self) -> Option<MmaModel> {
        Core::of_sm(self.module.target.sm).map(MmaModel::Hardware)
    }

    /// Parameters in order, with their places in the parameter block.
    pub fn params(&self) -> &[Param] {
        &self.params
    }

    /// Bytes of the parameter block.
    pub fn param_bytes(&self) -> u32 {
        self.param_bytes
    }

    /// Threads a CTA must have, from `.reqntid`.
    pub fn required_threads(&self) -> Option<[u32; 3]> {
        self.threads("reqntid")
    }

    /// Threads a CTA may have at most, from `.maxntid`.
    pub fn maximum_threads(&self) -> Option<[u32; 3]> {
        self.threads("maxntid")
    }

    fn threads(&self, directive: &str) -> Option<[u32; 3]> {
        let numbers = self.module.functions[self.entry].directive(directive)?;
        let of = |axis: usize| numbers.get(axis).copied().unwrap_or(1);
        Some([of(0), of(1), of(2)])
    }

    /// Steps in the program; a `pc` is below it.
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// No steps.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// The instruction a step came from.
    pub fn instruction(&self, pc: u32) -> Option<&Instruction> {
        let origin = self.origins.get(pc as usize)?;
        let body = self.module.functions.get(origin.function as usize)?.body.as_ref()?;
        body.instructions.get(origin.instruction as usize)
    }
}
