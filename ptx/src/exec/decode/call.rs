//! Calls: copies in, a jump, copies out; and the two functions of the CUDA runtime.

use rustc_hash::FxHashMap;

use super::{DecodeError, Decoder, Frame, refuse, storage::Place};
use crate::{
    exec::{
        program::{Action, Address, ExternalCall, Origin, StepGuard, Transfer},
        registers::Slot,
    },
    ir::{Instruction, Module, Op, Operand, Ordering, Scalar, Space, Variable},
};

/// The function a call names.
pub(super) fn callee(instruction: &Instruction) -> Option<&str> {
    if !matches!(instruction.op, Op::Call { .. }) {
        return None;
    }
    instruction.operands.iter().find_map(|operand| {
        if let Operand::Symbol { name, .. } = operand { Some(name.as_str()) } else { None }
    })
}

/// One direction of a copy between local variables or registers.
struct Move {
    from: Endpoint,
    to: Endpoint,
    bytes: u32,
}

#[derive(Clone, Copy)]
enum Endpoint {
    Local(u32),
    Row(Slot),
}

/// The functions of a module that have a body, by name.
pub(super) fn with_bodies(module: &Module) -> FxHashMap<&str, usize> {
    let functions = module.functions.iter().enumerate();
    let with_body = functions.filter(|(_, function)| function.body.is_some());
    with_body.map(|(at, function)| (function.name.as_str(), at)).collect()
}

impl<'m> Decoder<'m> {
    /// The functions that a kernel reaches by calls, itself first.
    ///
    /// Refuses call cycles: every function has one place for its parameters and registers.
    pub(super) fn reached(&self, entry: usize) -> Result<Vec<usize>, DecodeError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Visit {
            Never,
            Open,
            Done,
        }
        let called = |index: usize| -> Vec<usize> {
            let body = self.module.functions[index].body.iter();
            let names = body.flat_map(|body| &body.instructions).filter_map(callee);
            names.filter_map(|name| self.functions.get(name).copied()).collect()
        };
        let mut visits = vec![Visit::Never; self.module.functions.len()];
        visits[entry] = Visit::Open;
        let (mut reached, mut path) = (vec![entry], vec![(entry, called(entry))]);
        while let Some((index, rest)) = path.last_mut() {
            let Some(next) = rest.pop() else {
                visits[*index] = Visit::Done;
                path.pop();
                continue;
            };
            match visits[next] {
                Visit::Done => {}
                Visit::Open => {
                    return Err(DecodeError::Recursive(self.module.functions[next].name.clone()));
                }
                Visit::Never => {
                    visits[next] = Visit::Open;
                    reached.push(next);
                    path.push((next, called(next)));
                }
            }
        }
        Ok(reached)
    }

    /// Decodes a call: to a function that is laid out here, or out of the program.
    pub(super) fn call(
        &mut self,
        frame: &mut Frame<'m>,
        instruction: &'m Instruction,
        origin: Origin,
    ) -> Result<(), DecodeError> {
        let guard = self.guard(frame, instruction)?;
        let Some(name) = callee(instruction) else {
            return Err(refuse(instruction, "a call through a register is not executed"));
        };
        let (returns, arguments) = lists(instruction);
        let Some(&target) = self.functions.get(name) else {
            let external = self.external(frame, instruction, name, returns, arguments)?;
            self.push(origin, guard, Action::External(Box::new(external)));
            return Ok(());
        };
        let function = &self.module.functions[target];
        if function.entry {
            return Err(refuse(instruction, "a kernel cannot be called"));
        }
        if arguments.len() != function.params.len() || returns.len() != function.returns.len() {
            return Err(refuse(instruction, format!("`{name}` takes other operands")));
        }
        for (operand, param) in arguments.iter().zip(&function.params) {
            let from = self.endpoint(frame, instruction, operand, param)?;
            let to = self.parameter(target, param, instruction)?;
            self.copy(origin, guard, &Move { from, to, bytes: bytes_of(param) })?;
        }
        self.calls.push((self.steps.len(), target));
        self.push(origin, guard, Action::Call { target: 0 });
        for (operand, result) in returns.iter().zip(&function.returns) {
            let from = self.parameter(target, result, instruction)?;
            let to = self.endpoint(frame, instruction, operand, result)?;
            self.copy(origin, guard, &Move { from, to, bytes: bytes_of(result) })?;
        }
        Ok(())
    }

    fn parameter(
        &self,
        function: usize,
        variable: &Variable,
        instruction: &Instruction,
    ) -> Result<Endpoint, DecodeError> {
        self.local(function, instruction, &variable.name).map(Endpoint::Local)
    }

    /// Where a `.param` variable of a function is in local memory.
    fn local(
        &self,
        function: usize,
        instruction: &Instruction,
        name: &str,
    ) -> Result<u32, DecodeError> {
        if let Some(Place::Local(at)) = self.storage.find(function, name) {
            Ok(at)
        } else {
            Err(refuse(instruction, format!("`{name}` is not a .param variable")))
        }
    }

    /// Where an operand of a call is: a `.param` variable, a register or a literal.
    fn endpoint(
        &mut self,
        frame: &Frame<'m>,
        instruction: &Instruction,
        operand: &Operand,
        variable: &Variable,
    ) -> Result<Endpoint, DecodeError> {
        if let Operand::Symbol { name, offset: 0 } = operand {
            self.local(frame.index, instruction, name).map(Endpoint::Local)
        } else if let Operand::Register(id) = operand {
            Ok(Endpoint::Row(self.rows.register(frame.index, frame.body, *id)?))
        } else if let Operand::Int(value) = operand {
            Ok(Endpoint::Row(self.rows.constant(variable.ty, *value)?))
        } else {
            Err(refuse(instruction, "this operand of a call is not understood"))
        }
    }

    fn copy(
        &mut self,
        origin: Origin,
        guard: Option<StepGuard>,
        step: &Move,
    ) -> Result<(), DecodeError> {
        let mut done = 0;
        while done < step.bytes {
            let width = [8, 4, 2, 1].into_iter().find(|w| done + w <= step.bytes).unwrap_or(1);
            let aligned = |endpoint: Endpoint| match endpoint {
                Endpoint::Local(at) => 1 << (at + done).trailing_zeros().min(3),
                Endpoint::Row(_) => 8,
            };
            let width: u32 = width.min(aligned(step.from)).min(aligned(step.to));
            let ty = [Scalar::B8, Scalar::B16, Scalar::B32, Scalar::B64][width.ilog2() as usize];
            let row = match (step.from, step.to) {
                (Endpoint::Row(slot), _) | (_, Endpoint::Row(slot)) => slot,
                (Endpoint::Local(_), Endpoint::Local(_)) => self.rows.fresh(ty.bits(), 0)?,
            };
            let transfer = |at: u32| Transfer {
                space: Space::Local,
                ordering: Ordering::Weak,
                ty,
                address: Address { base: Slot::Sink, offset: i64::from(at + done) },
                data: std::iter::once(row).collect(),
                declared: 0,
            };
            if let Endpoint::Local(at) = step.from {
                self.push(origin, guard, Action::Load(transfer(at)));
            }
            if let Endpoint::Local(at) = step.to {
                self.push(origin, guard, Action::Store(transfer(at)));
            }
            done += width;
        }
        Ok(())
    }

    /// `vprintf` and `__assertfail`: what device code may call outside its module.
    fn external(
        &self,
        frame: &Frame<'m>,
        instruction: &Instruction,
        name: &str,
        returns: &[Operand],
        arguments: &[Operand],
    ) -> Result<ExternalCall, DecodeError> {
        let local = |operand: &Operand| {
            if let Operand::Symbol { name, .. } = operand {
                self.local(frame.index, instruction, name)
            } else {
                Err(refuse(instruction, "this operand of a call is not understood"))
            }
        };
        match (name, arguments) {
            ("vprintf", [format, values]) => Ok(ExternalCall::Print {
                format: local(format)?,
                arguments: local(values)?,
                result: returns.first().map(local).transpose()?,
            }),
            ("__assertfail", [message, file, line, function, _]) => Ok(ExternalCall::AssertFail {
                message: local(message)?,
                file: local(file)?,
                line: local(line)?,
                function: local(function)?,
            }),
            _ => Err(refuse(instruction, format!("`{name}` is not executed: it has no body"))),
        }
    }
}

/// Return and argument operands of a call.
fn lists(instruction: &Instruction) -> (&[Operand], &[Operand]) {
    let named = instruction
        .operands
        .iter()
        .position(|operand| matches!(operand, Operand::Symbol { .. }))
        .unwrap_or(0);
    let of = |position: Option<usize>| {
        let operand = position.and_then(|at| instruction.operands.get(at));
        if let Some(Operand::List(items)) = operand { items.as_slice() } else { &[] }
    };
    (of(named.checked_sub(1)), of(Some(named + 1)))
}

fn bytes_of(variable: &Variable) -> u32 {
    let elements = variable.elements.unwrap_or(1).min(1 << 16) as u32;
    variable.ty.bytes() * u32::from(variable.vector.max(1)) * elements
}
