//! The walk: one entry function, all threads of one CTA, in step.
//!
//! # Idea
//! Every instruction is done once for all threads. What the launch says or the thread's number
//! decides is a number, so control is mostly known; a branch that threads do not take alike, or
//! that depends on what is not known, is walked both ways up to where the ways meet
//! ([`Flow::joins`]), and registers are chosen there.
//! # Invariants
//! - **W1** The walk is that of every launch that agrees with the facts given, if the kernel has no
//!   data race; accesses that race in a CTA end it (`shared.rs`).
//! - **W2** What is not understood ends the walk with an [`Obstacle`]; nothing is guessed.
//! - **W3** The walk ends: there is a budget of thread instructions.
//! # Held by
//! W1: `tests/` against the executor. W2: every `match` over opcodes is exhaustive. W3:
//! [`Walk::spend`].

mod arith;
mod bytes;
mod control;
mod data;
mod decode;
mod global;
mod integer;
mod matrix;
mod operands;
pub(crate) mod pins;
mod predicate;
mod recurrence;
mod shared;
mod warp;

use std::rc::Rc;

use bitstable_ptx::ir::{Body, Function, Instruction, Module, Op};
use rustc_hash::FxHashMap;

use crate::{
    each::Each,
    flow::Flow,
    label::Labels,
    launch::Launch,
    outputs::Outputs,
    signature::{Obstacle, Place},
    term::{Algebra, Atom, Body as Name},
    value::Value,
};
use decode::Decoded;
use shared::{Copies, Shared};

/// Thread instructions of one walk, and of one CTA; see [`cost`].
const BUDGET: u64 = 1 << 33;
// A build without optimisation is much slower.
const CTA_BUDGET: u64 = if cfg!(debug_assertions) { 1 << 23 } else { 1 << 27 };
/// Branches within branches.
const DEEPEST: u32 = 128;

/// What all walks of one comparison share.
#[derive(Debug, Default)]
pub struct World {
    pub algebra: Algebra,
    pub labels: Labels,
}

/// The end of a walk that could not go on.
pub(crate) type Stop = Box<Obstacle>;

/// A CTA whose threads are walked together.
pub(crate) struct Walk<'m> {
    module: &'m Module,
    body: &'m Body,
    flow: Rc<Flow>,
    launch: &'m Launch,
    world: &'m mut World,
    threads: usize,
    block: [u32; 3],
    /// The CTA's number where the grid is known.
    cta: Option<[u32; 3]>,
    registers: Vec<Value>,
    /// Which threads are here; `None`: all of them.
    path: Option<Value>,
    /// The condition under which the CTA is here at all, where it is not known.
    when: Option<Atom>,
    /// The iterations, of loops around, that are walked for all.
    iterations: Vec<Name>,
    /// The block whose branch ends an iteration that is walked for all.
    latch: Option<usize>,
    /// Parameters that may be pointers, and their numbers.
    pointers: FxHashMap<Name, u32>,
    truth: [Atom; 2],
    decoded: Vec<Option<Rc<Decoded>>>,
    variables: FxHashMap<&'m str, Variable>,
    shared: Shared,
    copies: Copies,
    pub(crate) outputs: Outputs,
    pub(crate) contractions: Vec<Place>,
    /// Marks to check on the way.
    pub(crate) pins: Option<Box<pins::Pins>>,
    spent: u64,
    spent_here: u64,
    depth: u32,
    /// The instruction that is being done.
    pc: usize,
}

/// Where a named variable is.
#[derive(Clone, Copy, Debug)]
enum Variable {
    /// A kernel parameter, by number.
    Parameter(u32),
    /// Shared memory, by address.
    Shared(u64),
    /// A module's constant table, by its number.
    Module(usize),
}

impl<'m> Walk<'m> {
    pub fn new(
        module: &'m Module,
        function: &'m Function,
        body: &'m Body,
        flow: Rc<Flow>,
        (launch, block): (&'m Launch, [u32; 3]),
        world: &'m mut World,
    ) -> Self {
        let truth = [world.algebra.truth(false), world.algebra.truth(true)];
        let threads = block.iter().product::<u32>() as usize;
        Self {
            module,
            body,
            flow,
            launch,
            world,
            threads,
            block,
            cta: None,
            registers: vec![Value::Undefined; body.registers.len()],
            path: None,
            when: None,
            iterations: Vec::new(),
            latch: None,
            pointers: FxHashMap::default(),
            truth,
            decoded: vec![None; body.instructions.len()],
            variables: variables(module, function, body),
            shared: Shared::new(threads),
            copies: Copies::default(),
            outputs: Outputs::default(),
            contractions: Vec::new(),
            pins: None,
            spent: 0,
            spent_here: 0,
            depth: 0,
            pc: 0,
        }
    }

    /// Walks one CTA; without a grid, any.
    pub fn run(&mut self, cta: Option<[u32; 3]>) -> Result<(), Stop> {
        self.cta = cta;
        self.spent_here = 0;
        self.registers.fill(Value::Undefined);
        self.path = None;
        self.when = None;
        self.iterations.clear();
        self.latch = None;
        self.shared = Shared::new(self.threads);
        self.copies = Copies::default();
        let exit = self.flow.exit();
        self.region(0, exit)?;
        self.outputs.finish_cta().map_err(|place| {
            let what = "two CTAs store different values to one address".into();
            Box::new(Obstacle { what, place })
        })
    }

    /// Instructions of a block, the branch at its end excluded.
    fn straight(&mut self, start: usize, end: usize) -> Result<(), Stop> {
        for pc in start..end {
            self.pc = pc;
            let instruction = &self.body.instructions[pc];
            self.spend(cost(&instruction.op))?;
            if let Some(graph) = &mut self.world.algebra.graph {
                graph.maker.pc = pc as u32;
            }
            self.step(instruction)?;
            self.marked(pc)?;
        }
        Ok(())
    }

    fn spend(&mut self, cost: u64) -> Result<(), Stop> {
        self.spent += cost * self.threads as u64;
        self.spent_here += cost * self.threads as u64;
        if self.spent > BUDGET || self.spent_here > CTA_BUDGET {
            return self.stop("the kernel runs for longer than is followed");
        }
        Ok(())
    }

    /// Ends the walk at this instruction.
    fn stop<T>(&self, what: impl Into<String>) -> Result<T, Stop> {
        Err(Box::new(Obstacle { what: what.into(), place: self.place() }))
    }

    fn place(&self) -> Place {
        place(&self.body.instructions[self.pc])
    }

    fn step(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        match &instruction.op {
            Op::Mov { .. }
            | Op::Cvta { .. }
            | Op::Selp { .. }
            | Op::Slct { .. }
            | Op::Prmt { .. }
            | Op::Cvt { .. }
            | Op::CvtPack { .. }
            | Op::IntUnary { .. }
            | Op::IntBinary { .. }
            | Op::Mad { .. }
            | Op::Mad24 { .. }
            | Op::Sad { .. }
            | Op::Bfe { .. }
            | Op::Bfi { .. }
            | Op::Bfind { .. }
            | Op::Bmsk { .. }
            | Op::Szext { .. }
            | Op::Fns
            | Op::Lop3
            | Op::Shf { .. }
            | Op::Dp4a { .. }
            | Op::Dp2a { .. }
            | Op::Setp { .. }
            | Op::Set { .. }
            | Op::Testp { .. }
            | Op::FloatUnary { .. }
            | Op::FloatBinary { .. }
            | Op::FloatTernary { .. }
            | Op::Fma { .. }
            | Op::FmaMixed { .. } => self.lane(instruction),
            Op::Ld { .. } => self.load(instruction),
            Op::St { .. } => self.store(instruction),
            Op::Atom { .. } => self.atomic(instruction),
            Op::CpAsync { .. } => self.copy(instruction),
            Op::CpAsyncCommit => {
                self.copies.commit();
                Ok(())
            }
            Op::CpAsyncWait { all } => self.copy_wait(instruction, *all),
            Op::Ldmatrix { .. } => self.ldmatrix(instruction),
            Op::Stmatrix { .. } => self.stmatrix(instruction),
            Op::Movmatrix => self.movmatrix(instruction),
            Op::Mma { .. } => self.mma(instruction),
            Op::Shfl { mode } => self.shuffle(instruction, *mode),
            Op::Vote { mode } => self.vote(instruction, *mode),
            Op::Redux { .. } => self.redux(instruction),
            Op::BarWarp => self.warp_barrier(instruction),
            Op::Bar { kind, .. } => self.barrier(instruction, *kind),
            // Orders accesses, which the walk does in order anyway; races are found elsewhere.
            Op::Fence { proxy: None, .. } => Ok(()),
            Op::Hint { .. } | Op::Nop { .. } | Op::Nanosleep => Ok(()),
            Op::Createpolicy { .. } => self.policy(instruction),
            Op::Isspacep { .. }
            | Op::Mapa { .. }
            | Op::Getctarank { .. }
            | Op::AddCarry { .. }
            | Op::SubCarry { .. }
            | Op::MadCarry { .. }
            | Op::CpAsyncMbarrierArrive { .. }
            | Op::Match { .. }
            | Op::Activemask
            | Op::Elect
            | Op::Fence { .. }
            | Op::BarCluster { .. }
            | Op::Mbarrier { .. }
            | Op::Call { .. }
            | Op::Brkpt
            | Op::Opaque { .. } => self.unfollowed(instruction),
            Op::Bra { .. } | Op::BrxIdx { .. } | Op::Ret { .. } | Op::Exit | Op::Trap => {
                self.stop("a branch inside a block")
            }
        }
    }

    /// The guard of an instruction and the path it is on.
    fn under(&mut self, instruction: &Instruction) -> Option<Value> {
        let guard = instruction.guard.map(|guard| {
            let value = self.registers[guard.register.index()].clone();
            if guard.negated { self.negated(&value) } else { value }
        });
        match (guard, self.path.clone()) {
            (None, path) => path,
            (guard, None) => guard,
            (Some(guard), Some(path)) => Some(self.both(&path, &guard)),
        }
    }

    /// Whether threads do something under a predicate.
    fn truths(&self, under: Option<&Value>) -> Each<Truth> {
        match under {
            None => Each::All(Truth::Yes),
            Some(Value::Bits(bits)) => {
                bits.map(|bit| if bit & 1 == 1 { Truth::Yes } else { Truth::No })
            }
            Some(Value::Atoms(atoms, _)) => atoms.map(|atom| {
                if atom == self.truth[1] {
                    Truth::Yes
                } else if atom == self.truth[0] {
                    Truth::No
                } else {
                    Truth::If(atom)
                }
            }),
            Some(Value::Undefined | Value::Linear(_) | Value::Parts(..)) => {
                Each::All(Truth::If(Atom::UNDEFINED))
            }
        }
    }
}

/// Whether a thread does something.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Truth {
    No,
    Yes,
    If(Atom),
}

/// What walking an instruction takes, of what a simple one takes: roughly, for the budget.
fn cost(op: &Op) -> u64 {
    if matches!(op, Op::Mma { .. }) {
        128
    } else if matches!(op, Op::Ldmatrix { .. } | Op::Stmatrix { .. } | Op::CpAsync { .. }) {
        32
    } else if matches!(op, Op::Ld { .. } | Op::St { .. } | Op::Atom { .. }) {
        8
    } else {
        1
    }
}

pub(crate) fn place(instruction: &Instruction) -> Place {
    Place { line: instruction.at.line, source: instruction.source }
}

/// Names of parameters, shared memory and constant tables.
fn variables<'m>(
    module: &'m Module,
    function: &'m Function,
    body: &'m Body,
) -> FxHashMap<&'m str, Variable> {
    use bitstable_ptx::ir::Space;
    let mut found = FxHashMap::default();
    // Not 0: no address of a variable is null.
    let mut next = 1024u64;
    let mut dynamic = Vec::new();
    for (number, variable) in module.variables.iter().chain(&body.variables).enumerate() {
        if variable.space == Space::Shared {
            let align = u64::from(variable.align.unwrap_or(16).max(16));
            let bytes = u64::from(variable.ty.bytes())
                * u64::from(variable.vector)
                * variable.elements.unwrap_or(1);
            if variable.elements == Some(0) {
                dynamic.push(variable.name.as_str());
                continue;
            }
            next = next.next_multiple_of(align);
            found.insert(variable.name.as_str(), Variable::Shared(next));
            next = next.saturating_add(bytes);
        } else if number < module.variables.len() {
            found.insert(variable.name.as_str(), Variable::Module(number));
        }
    }
    // Dynamic shared memory follows what has a size, and all its names are one place.
    let after = next.next_multiple_of(1024);
    found.extend(dynamic.into_iter().map(|name| (name, Variable::Shared(after))));
    for (number, parameter) in function.params.iter().enumerate() {
        found.insert(parameter.name.as_str(), Variable::Parameter(number as u32));
    }
    found
}
