//! Loops whose number of iterations is not known.
//!
//! # Idea
//! A loop is what one iteration makes of the last. The first iteration is walked as it is; then the
//! registers that iterations hand on are either linear in the number of the iteration, or get
//! *colours*: names for "what this held before", first by what it holds now, then, round by round,
//! by what an iteration makes of colours, until no round tells more of them apart. Two loops whose
//! colours, and what becomes of each, are the same sets, and which go on under one condition, are
//! bisimilar: they return the same.
//! # Invariants
//! - **R1** The final colours are stable: equal colours become equal colours.
//! - **R2** Every result is named with the whole map from colours to colours and the condition, so
//!   equal results are of bisimilar loops.
//! - **R3** What an iteration finds in shared memory that another iteration stored is undefined.
//! # Source
//! Partition refinement, as for the equivalence of automata (Hopcroft, 1971).
//! # Not here
//! Loops with a second exit, and copies in flight from one iteration to the next, end the walk.

use std::rc::Rc;

use rustc_hash::FxHashSet;

use super::{Stop, Truth, Walk, control::register_bytes};
use crate::{
    each::Each,
    graph::Node,
    linear::Linear,
    live::{Registers, live_in, written},
    term::{Atom, Body, Mixer, seed},
    value::{Value, parts},
};

/// Rounds of refinement; more than there are chains of registers in a kernel.
const MOST_ROUNDS: usize = 24;

/// A loop: the block it begins with, the block that goes back to it, and all its blocks.
struct Cycle {
    header: usize,
    latch: usize,
    back_is_taken: bool,
    blocks: Vec<usize>,
}

/// What one iteration hands on to the next in a register.
enum Carried {
    /// A number that grows by a step.
    Steps { from: Rc<Linear>, step: Linear },
    /// Data, in parts of so many bytes, with the colours of each.
    Coloured { unit: u8, colours: Vec<Each<Body>> },
}

struct State {
    register: usize,
    carried: Carried,
    before: Value,
}

impl<'m> Walk<'m> {
    /// Walks on from the end of a first iteration, when whether there is another is not known;
    /// registers are then those behind the loop.
    pub(super) fn recurrence(&mut self, latch: usize, header: usize) -> Result<(), Stop> {
        let cycle = self.cycle(latch, header)?;
        if self.copies.in_flight() {
            return self.stop("copies in flight from one iteration to the next");
        }
        let changed = written(self.body, &self.flow, &cycle.blocks);
        let live = live_in(self.body, &self.flow);
        let iteration = self.world.algebra.symbol(&format!("iteration {}", self.iterations.len()));
        let mut states = self.states(&changed, &live[header], iteration)?;
        let mut mark = self.shared.entries();
        self.iterations.push(iteration);
        let kept = self.outputs.snapshot();
        let mut told = 0;
        for round in 0.. {
            if round > MOST_ROUNDS {
                return self.stop("a loop whose registers are not told apart");
            }
            self.outputs.restore(kept.clone());
            let goes = self.iteration(&cycle, &states, iteration)?;
            self.shared.forget(mark);
            mark = mark.min(self.shared.entries());
            let fits = self.refit(&mut states)?;
            if !fits {
                told = 0;
                continue;
            }
            let next = self.next_colours(&states);
            let count = distinct(&next).len();
            if count == told && round > 1 {
                let summary = self.summary(&states, &next, goes);
                self.iterated(&cycle, &states, iteration, summary, kept)?;
                self.iterations.pop();
                self.leave(&states, &next, &changed, summary);
                return Ok(());
            }
            told = count;
            recolour(&mut states, next);
        }
        self.stop("a loop without an end")
    }

    fn cycle(&self, latch: usize, header: usize) -> Result<Cycle, Stop> {
        let mut blocks = vec![header];
        let mut open = vec![latch];
        while let Some(block) = open.pop() {
            if blocks.contains(&block) {
                continue;
            }
            blocks.push(block);
            let before = self.flow.blocks.iter().enumerate();
            open.extend(before.filter(|(_, b)| b.next.contains(&block)).map(|(at, _)| at));
        }
        for block in &blocks {
            let leaves = self.flow.blocks[*block].next.iter().any(|next| !blocks.contains(next));
            if leaves && *block != latch {
                return self.stop("a loop of an unknown number of iterations with a second exit");
            }
        }
        let back_is_taken = self.flow.blocks[latch].next.first() == Some(&header);
        Ok(Cycle { header, latch, back_is_taken, blocks })
    }

    /// First guesses: numbers step, data have the colours of what they are now.
    fn states(
        &mut self,
        changed: &Registers,
        live: &Registers,
        iteration: Body,
    ) -> Result<Vec<State>, Stop> {
        let mut states = Vec::new();
        for register in 0..self.registers.len() {
            if !changed.contains(register) || !live.contains(register) {
                continue;
            }
            let before = self.registers[register].clone();
            let bits = self.body.registers[register].ty.bits();
            let carried = match &before {
                Value::Bits(_) | Value::Linear(_) if bits >= 32 => match before.linear(bits) {
                    // The step is found by the first round, which starts from a symbol.
                    Some(from) => Carried::Steps { from, step: Linear::symbol(iteration) },
                    None => self.coloured(&before, register_bytes(bits), register_bytes(bits)),
                },
                Value::Undefined => {
                    return self.stop("a loop that reads a register nobody wrote");
                }
                Value::Bits(_) | Value::Linear(_) | Value::Atoms(..) | Value::Parts(..) => {
                    let bytes = register_bytes(bits);
                    let unit = if let Value::Parts(_, size) = &before { *size } else { bytes };
                    self.coloured(&before, bytes, unit)
                }
            };
            states.push(State { register, carried, before });
        }
        Ok(states)
    }

    fn coloured(&mut self, before: &Value, bytes: u8, unit: u8) -> Carried {
        let colours = self
            .bodies_by(before, bytes, unit)
            .into_iter()
            .map(|bodies| bodies.map(|body| Mixer::new(seed::LOOP).body(body).finish()))
            .collect();
        Carried::Coloured { unit, colours }
    }

    fn bodies_by(&mut self, value: &Value, bytes: u8, unit: u8) -> Vec<Each<Body>> {
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        value.split(bytes, unit).iter().map(|v| v.bodies(algebra, unit, threads)).collect()
    }

    /// Walks one iteration from what is guessed; whether it goes on.
    fn iteration(
        &mut self,
        cycle: &Cycle,
        states: &[State],
        iteration: Body,
    ) -> Result<Atom, Stop> {
        for state in states {
            let bits = self.body.registers[state.register].ty.bits();
            let value = match &state.carried {
                Carried::Steps { from, step } => self.stepped(from, step, iteration, bits)?,
                Carried::Coloured { unit, colours } => {
                    let each = colours.iter().map(|bodies| {
                        let atoms = bodies.map(Atom::whole);
                        for thread in 0..if atoms.uniform().is_some() { 1 } else { self.threads } {
                            let body = bodies.at(thread);
                            self.world.algebra.named(body, || Node::Other {
                                what: "what an iteration before left",
                                args: Vec::new(),
                            });
                        }
                        Value::Atoms(atoms, *unit)
                    });
                    parts(each.collect(), *unit)
                }
            };
            self.registers[state.register] = value;
        }
        let outer = self.latch.replace(cycle.latch);
        let ran = self.region(cycle.header, usize::MAX);
        self.latch = outer;
        ran?;
        if self.copies.in_flight() {
            return self.stop("copies in flight from one iteration to the next");
        }
        self.pc = self.flow.blocks[cycle.latch].end - 1;
        let instruction = &self.body.instructions[self.pc];
        let goes = self.guard(instruction);
        let goes = if cycle.back_is_taken { goes } else { self.negated(&goes) };
        match self.alike(&goes) {
            Some(Truth::If(atom)) if !atom.is_undefined() => Ok(atom),
            Some(Truth::Yes) => Ok(self.truth[1]),
            Some(Truth::No) => Ok(self.truth[0]),
            Some(Truth::If(_)) | None => {
                self.stop("a loop that threads leave at different iterations")
            }
        }
    }

    fn stepped(
        &self,
        from: &Linear,
        step: &Linear,
        iteration: Body,
        bits: u32,
    ) -> Result<Value, Stop> {
        let total = Linear::symbol(iteration);
        // A step that is the symbol itself is not known yet: the register is a symbol.
        let moved = step.product(&total).and_then(|part| from.combine(&part, 1));
        match moved {
            Some(form) => Ok(Value::of_linear(form, bits)),
            None => self.stop("a loop whose steps are too many"),
        }
    }

    /// Corrects guesses by what an iteration made of them; whether none was wrong.
    fn refit(&mut self, states: &mut [State]) -> Result<bool, Stop> {
        let mut fits = true;
        for state in states {
            let ty = self.body.registers[state.register].ty;
            let (bits, bytes) = (ty.bits(), register_bytes(ty.bits()));
            let after = self.registers[state.register].clone();
            match &state.carried {
                Carried::Steps { from, step } => {
                    let iteration = self.iterations[self.iterations.len() - 1];
                    let now = self.stepped(from, step, iteration, bits)?;
                    let moved =
                        now.linear(bits).and_then(|now| after.linear(bits)?.combine(&now, -1));
                    let free = |form: &Linear| {
                        form.terms().iter().all(|(names, _)| !names.contains(&iteration))
                    };
                    match moved {
                        Some(moved) if moved.same_as(step) => {}
                        Some(moved) if free(&moved) && !state.was_refitted() => {
                            state.carried = Carried::Steps { from: from.clone(), step: moved };
                            fits = false;
                        }
                        Some(_) | None => {
                            let before = state.before.clone();
                            state.carried = self.coloured(&before, bytes, bytes);
                            fits = false;
                        }
                    }
                }
                Carried::Coloured { unit, .. } => {
                    if let Value::Parts(_, size) = &after
                        && size < unit
                    {
                        let before = state.before.clone();
                        state.carried = self.coloured(&before, bytes, *size);
                        fits = false;
                    }
                }
            }
        }
        Ok(fits)
    }

    /// What becomes of each colour.
    fn next_colours(&mut self, states: &[State]) -> Vec<Vec<Each<Body>>> {
        let mut all = Vec::with_capacity(states.len());
        for state in states {
            let Carried::Coloured { unit, colours } = &state.carried else {
                all.push(Vec::new());
                continue;
            };
            let bytes = register_bytes(self.body.registers[state.register].ty.bits());
            let after = self.registers[state.register].clone();
            let bodies = self.bodies_by(&after, bytes, *unit);
            let next = colours.iter().zip(&bodies).map(|(colour, body)| {
                colour.zip(body, |colour, body| {
                    if body == Atom::UNDEFINED.body {
                        return body;
                    }
                    Mixer::new(seed::LOOP).body(colour).body(body).finish()
                })
            });
            all.push(next.collect());
        }
        all
    }

    /// The loop's name: its condition, and what becomes of each colour.
    fn summary(&mut self, states: &[State], next: &[Vec<Each<Body>>], goes: Atom) -> Body {
        let goes = self.world.algebra.whole(goes, 0);
        let mut pairs = FxHashSet::default();
        for (state, next) in states.iter().zip(next) {
            let Carried::Coloured { colours, .. } = &state.carried else { continue };
            for (colour, next) in colours.iter().zip(next) {
                for thread in 0..self.threads {
                    pairs.insert((colour.at(thread), next.at(thread)));
                }
            }
        }
        let mut all: Vec<(Body, Body)> = pairs.into_iter().collect();
        all.sort_unstable();
        let mixer = Mixer::new(seed::LOOP).body(goes).word(all.len() as u64);
        let body = all.iter().fold(mixer, |m, (from, to)| m.body(*from).body(*to)).finish();
        self.world.algebra.named(body, || Node::Other {
            what: "loop",
            args: std::iter::once(goes).chain(all.into_iter().map(|(_, to)| to)).collect(),
        })
    }

    /// The iteration whose stores are kept.
    fn iterated(
        &mut self,
        cycle: &Cycle,
        states: &[State],
        iteration: Body,
        summary: Body,
        kept: crate::outputs::Snapshot,
    ) -> Result<(), Stop> {
        self.outputs.restore(kept);
        let outer = self.when;
        let inside = self.derived("an iteration of", summary, summary);
        self.when = Some(match outer {
            None => inside,
            Some(outer) => self.conjoined(outer, inside),
        });
        let ran = self.iteration(cycle, states, iteration);
        self.when = outer;
        ran.map(|_| ())
    }

    /// Registers behind the loop.
    fn leave(
        &mut self,
        states: &[State],
        next: &[Vec<Each<Body>>],
        changed: &Registers,
        summary: Body,
    ) {
        let count = self.derived("iterations of", summary, summary).body;
        for register in 0..self.registers.len() {
            if !changed.contains(register) {
                continue;
            }
            let bits = self.body.registers[register].ty.bits();
            let at = states.iter().position(|state| state.register == register);
            let value = match at.map(|at| (&states[at].carried, &next[at])) {
                Some((Carried::Steps { from, step }, _)) => {
                    self.stepped(from, step, count, bits).unwrap_or(Value::Undefined)
                }
                Some((Carried::Coloured { unit, .. }, next)) => {
                    let each = next.iter().map(|colours| {
                        let atoms = colours.map(|colour| self.result("left by", summary, colour));
                        Value::Atoms(atoms, *unit)
                    });
                    parts(each.collect(), *unit)
                }
                None => self.last_of(register, bits, summary),
            };
            self.registers[register] = value;
        }
    }

    /// What the last iteration left in a register that iterations do not hand on.
    fn last_of(&mut self, register: usize, bits: u32, summary: Body) -> Value {
        let value = self.registers[register].clone();
        if matches!(value, Value::Bits(_) | Value::Undefined) {
            return value;
        }
        let bytes = register_bytes(bits);
        let unit = if let Value::Parts(_, size) = &value { *size } else { bytes };
        let all = self.bodies_by(&value, bytes, unit);
        let each = all
            .into_iter()
            .map(|bodies| {
                Value::Atoms(bodies.map(|body| self.result("last of", summary, body)), unit)
            })
            .collect();
        parts(each, unit)
    }

    fn result(&mut self, what: &'static str, summary: Body, body: Body) -> Atom {
        if body == Atom::UNDEFINED.body {
            return Atom::UNDEFINED;
        }
        self.derived(what, summary, body)
    }

    fn derived(&mut self, what: &'static str, summary: Body, body: Body) -> Atom {
        let mixer = Mixer::new(seed::LOOP).bytes(what.as_bytes()).body(summary).body(body);
        let args = vec![summary, body];
        Atom::whole(self.world.algebra.named(mixer.finish(), || Node::Other { what, args }))
    }
}

impl State {
    /// Its step was found before: another one is no step.
    fn was_refitted(&self) -> bool {
        match &self.carried {
            Carried::Steps { step, .. } => step.is_uniform() && step.as_number().is_some(),
            Carried::Coloured { .. } => true,
        }
    }
}

fn distinct(colours: &[Vec<Each<Body>>]) -> FxHashSet<Body> {
    let mut all = FxHashSet::default();
    for each in colours.iter().flatten() {
        match each {
            Each::All(body) => {
                all.insert(*body);
            }
            Each::By(bodies) => all.extend(bodies.iter().copied()),
        }
    }
    all
}

fn recolour(states: &mut [State], next: Vec<Vec<Each<Body>>>) {
    for (state, next) in states.iter_mut().zip(next) {
        if let Carried::Coloured { colours, .. } = &mut state.carried {
            *colours = next;
        }
    }
}
