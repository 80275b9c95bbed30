//! From the typed IR to a [`Program`]: layout of functions, rows, storage and steps.
//!
//! # Idea
//! The entry and every function it calls are laid out one after the other. PTX has no recursion
//! here, so each function's registers, parameters and local variables get one place for the whole
//! kernel, and a call is a jump between copies.
//! # Invariants
//! - **D1** A program that decodes can be run: whatever the executor does not know is refused here,
//!   by name, with its line and column.
//! - **D2** Rows and local bytes are bounded, whatever the text declares.
//! # Held by
//! D1: [`action`]'s match has no default. D2: [`rows::Rows`], [`storage`].

mod action;
mod call;
mod operands;
mod rows;
mod storage;

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::program::{Action, Origin, Program, Step, StepGuard};
use crate::ir::{Body, Instruction, LabelId, Module, Op, Operand, Position};
pub(crate) use operands::NEGATE;
use rows::Rows;
use storage::Storage;

/// Why a kernel cannot be run.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum DecodeError {
    #[error("there is no kernel in this module")]
    NoEntry,
    #[error("there is no kernel `{0}` in this module")]
    UnknownEntry(String),
    #[error("the module has several kernels, name one of them: {}", .0.join(", "))]
    ManyEntries(Vec<String>),
    #[error("line {}, column {}: {reason}", at.line, at.column)]
    Instruction { at: Position, reason: String },
    #[error("line {}, column {}: `{name}` is too large: {reason}", at.line, at.column)]
    TooLarge { at: Position, name: String, reason: String },
    #[error("function `{0}` calls itself, directly or through others; that is not executed")]
    Recursive(String),
    #[error("the kernel needs {0} registers of a warp, more than the {1} that are executed")]
    TooManyRegisters(usize, usize),
}

impl Program {
    /// Decodes a kernel: the one named, or the only one of the module.
    ///
    /// Fails, by name and place, on anything that is not executed.
    pub fn new(module: &Module, entry: Option<&str>) -> Result<Self, DecodeError> {
        let entry = choose(module, entry)?;
        let mut decoder = Decoder::new(module);
        decoder.kernel(entry)?;
        decoder.finish(entry)
    }
}

fn choose(module: &Module, entry: Option<&str>) -> Result<usize, DecodeError> {
    let kernels: Vec<usize> = (0..module.functions.len())
        .filter(|&at| module.functions[at].entry && module.functions[at].body.is_some())
        .collect();
    match (entry, kernels.as_slice()) {
        (Some(name), _) => {
            let found = kernels.iter().copied().find(|&at| module.functions[at].name == name);
            found.ok_or_else(|| DecodeError::UnknownEntry(name.to_owned()))
        }
        (None, []) => Err(DecodeError::NoEntry),
        (None, [only]) => Ok(*only),
        (None, many) => Err(DecodeError::ManyEntries(
            many.iter().map(|&at| module.functions[at].name.clone()).collect(),
        )),
    }
}

/// A branch whose target is known once its function is laid out.
struct Fixup {
    step: usize,
    label: LabelId,
}

struct Decoder<'m> {
    module: &'m Module,
    rows: Rows,
    storage: Storage,
    steps: Vec<Step>,
    origins: Vec<Origin>,
    /// Where each function that was laid out begins.
    starts: FxHashMap<usize, u32>,
    /// Calls to functions: the step, and the function.
    calls: Vec<(usize, usize)>,
    /// Functions with a body, by name.
    functions: FxHashMap<&'m str, usize>,
    communicates: bool,
}

/// The function whose instructions are being decoded.
struct Frame<'m> {
    index: usize,
    body: &'m Body,
    fixups: Vec<Fixup>,
}

impl<'m> Decoder<'m> {
    fn new(module: &'m Module) -> Self {
        Self {
            module,
            rows: Rows::default(),
            storage: Storage::default(),
            steps: Vec::new(),
            origins: Vec::new(),
            starts: FxHashMap::default(),
            calls: Vec::new(),
            functions: call::with_bodies(module),
            communicates: false,
        }
    }

    /// Lays out a kernel and all that it calls.
    fn kernel(&mut self, entry: usize) -> Result<(), DecodeError> {
        let reached = self.reached(entry)?;
        self.storage.enter(self.module, &reached)?;
        for index in reached {
            let Some(body) = &self.module.functions[index].body else { continue };
            self.rows.enter(index, body);
            self.starts.insert(index, self.steps.len() as u32);
            self.body(&mut Frame { index, body, fixups: Vec::new() })?;
        }
        Ok(())
    }

    fn body(&mut self, frame: &mut Frame<'m>) -> Result<(), DecodeError> {
        let mut first_steps = Vec::with_capacity(frame.body.instructions.len() + 1);
        for (number, instruction) in frame.body.instructions.iter().enumerate() {
            first_steps.push(self.steps.len() as u32);
            let origin = Origin { function: frame.index as u32, instruction: number as u32 };
            if matches!(instruction.op, Op::Call { .. }) {
                self.call(frame, instruction, origin)?;
            } else {
                self.instruction(frame, instruction, origin)?;
            }
        }
        // Falling off the end returns.
        first_steps.push(self.steps.len() as u32);
        let last = frame.body.instructions.len().saturating_sub(1) as u32;
        let origin = Origin { function: frame.index as u32, instruction: last };
        self.push(origin, None, Action::Return);
        self.fix(frame, &first_steps);
        Ok(())
    }

    fn fix(&mut self, frame: &Frame<'m>, first_steps: &[u32]) {
        let step_of = |label: LabelId| {
            let at = frame.body.labels.get(label.index()).map_or(0, |label| label.at as usize);
            first_steps.get(at).copied().unwrap_or(0)
        };
        for fixup in &frame.fixups {
            let action = &mut self.steps[fixup.step].action;
            if let Action::Branch { target, .. } = action {
                *target = step_of(fixup.label);
            } else if let Action::BranchIndexed { targets, .. } = action {
                // Targets hold label numbers until now.
                for target in targets.iter_mut() {
                    *target = step_of(LabelId(*target));
                }
            }
        }
    }

    fn instruction(
        &mut self,
        frame: &mut Frame<'m>,
        instruction: &'m Instruction,
        origin: Origin,
    ) -> Result<(), DecodeError> {
        let resolved = self.resolve(frame, instruction, origin)?;
        let guard = self.guard(frame, instruction)?;
        let action = self.action(frame, instruction, resolved)?;
        let labels = match (&action, instruction.operands.as_slice()) {
            (Action::Branch { .. }, [Operand::Label(label)]) => Some(*label),
            (Action::BranchIndexed { .. }, _) => Some(LabelId(0)),
            _ => None,
        };
        if let Some(label) = labels {
            frame.fixups.push(Fixup { step: self.steps.len(), label });
        }
        self.push(origin, guard, action);
        Ok(())
    }

    fn guard(
        &mut self,
        frame: &Frame<'m>,
        instruction: &Instruction,
    ) -> Result<Option<StepGuard>, DecodeError> {
        let Some(guard) = instruction.guard else { return Ok(None) };
        let slot = self.rows.register(frame.index, frame.body, guard.register)?;
        match slot {
            super::registers::Slot::Flag(flag) => {
                Ok(Some(StepGuard { flag, negated: guard.negated }))
            }
            super::registers::Slot::Word(_)
            | super::registers::Slot::Wide(_)
            | super::registers::Slot::Quad(_)
            | super::registers::Slot::Sink => {
                Err(refuse(instruction, "the guard is not a predicate register"))
            }
        }
    }

    fn push(&mut self, origin: Origin, guard: Option<StepGuard>, action: Action) {
        self.steps.push(Step { guard, action, negates: false });
        self.origins.push(origin);
    }

    fn finish(mut self, entry: usize) -> Result<Program, DecodeError> {
        for (step, function) in std::mem::take(&mut self.calls) {
            if let (Action::Call { target }, Some(start)) =
                (&mut self.steps[step].action, self.starts.get(&function))
            {
                *target = *start;
            }
        }
        let entry_function = &self.module.functions[entry];
        let (params, param_bytes) = storage::parameters(entry_function)?;
        let (template, specials, addresses) = self.rows.finish()?;
        Ok(Program {
            module: Arc::new(self.module.clone()),
            entry,
            steps: self.steps,
            origins: self.origins,
            template,
            specials,
            addresses,
            variables: self.storage.variables,
            params,
            param_bytes,
            static_shared: self.storage.shared_bytes.next_multiple_of(16),
            local_bytes: self.storage.local_bytes,
            communicates: self.communicates,
        })
    }
}

/// An instruction that is not executed, and why.
fn refuse(instruction: &Instruction, reason: impl Into<String>) -> DecodeError {
    DecodeError::Instruction { at: instruction.at, reason: reason.into() }
}
