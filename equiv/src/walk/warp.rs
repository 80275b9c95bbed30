//! What lanes of a warp tell each other: shuffles move, votes and `redux` combine.
//!
//! # Invariants
//! - **X1** A lane that reads one that is not here reads nothing: the value is undefined.
//! - **X2** The arithmetic of source lanes is the PTX manual's, table by table.

use bitstable_ptx::ir::{FloatBinary, FloatMode, Instruction, IntBinary, Op, Redux, Shuffle, Vote};
use smallvec::SmallVec;

use super::{Stop, Truth, Walk};
use crate::{
    each::Each,
    term::{Atom, Body},
    value::Value,
};

impl<'m> Walk<'m> {
    pub(super) fn shuffle(
        &mut self,
        instruction: &'m Instruction,
        mode: Shuffle,
    ) -> Result<(), Stop> {
        let decoded = self.decoded(instruction)?;
        let value = self.source(instruction, 0)?;
        let (lane, clamp) = (self.source(instruction, 1)?, self.source(instruction, 2)?);
        let (Value::Bits(lane), Value::Bits(clamp)) = (lane, clamp) else {
            return self.stop("a shuffle whose source lane is no number");
        };
        let under = self.under(instruction);
        let guard = self.own_guard(instruction);
        let here = self.known(under.as_ref(), "a shuffle")?;
        self.members(instruction, 3, &here)?;
        let threads = self.threads;
        let found: Vec<(usize, bool)> = (0..threads)
            .map(|thread| {
                let (lane, fits) = source_lane(mode, thread, lane.at(thread), clamp.at(thread));
                (thread / 32 * 32 + lane, fits)
            })
            .collect();
        let absent =
            (0..threads).any(|t| here.at(t) && !(found[t].0 < threads && here.at(found[t].0)));
        let source = |thread: usize| found[thread].0.min(threads - 1);
        let moved = value.permuted(threads, &source);
        let moved = if absent {
            let flags = Each::from_fn(threads, |t| found[t].0 < threads && here.at(found[t].0));
            moved.chosen(&Value::Undefined, &flags, &mut self.world.algebra, 4)
        } else {
            moved
        };
        let target = |number: usize| {
            decoded.targets.get(number).and_then(|targets| targets.first()).copied().flatten()
        };
        self.write(target(0), moved, guard.as_ref());
        let fits = Value::Bits(Each::from_fn(threads, |thread| u64::from(found[thread].1)));
        self.write(target(1), fits, guard.as_ref());
        Ok(())
    }

    /// The lanes that an instruction names have to be those that are here.
    fn members(
        &mut self,
        instruction: &Instruction,
        number: usize,
        here: &Each<bool>,
    ) -> Result<(), Stop> {
        let Value::Bits(named) = self.source(instruction, number)? else {
            return self.stop("members of a warp that are no number");
        };
        for start in (0..self.threads).step_by(32) {
            let lanes = start..(start + 32).min(self.threads);
            let present = lanes.clone().filter(|lane| here.at(*lane));
            let present = present.fold(0u64, |mask, lane| mask | 1 << (lane % 32));
            let exist = u64::MAX >> (64 - lanes.len());
            if !lanes.into_iter().all(|t| !here.at(t) || named.at(t) & exist == present) {
                return self.stop("members of a warp that are not those that are here");
            }
        }
        Ok(())
    }

    /// Predicates that are numbers; others are no vote that is followed.
    pub(super) fn vote(&mut self, instruction: &'m Instruction, mode: Vote) -> Result<(), Stop> {
        let decoded = self.decoded(instruction)?;
        let asked = self.source(instruction, 0)?;
        let under = self.under(instruction);
        let guard = self.own_guard(instruction);
        let here = self.known(under.as_ref(), "a vote")?;
        self.members(instruction, 1, &here)?;
        let Value::Bits(asked) = asked else {
            return self.stop("a vote on a condition that is not known");
        };
        let threads = self.threads;
        let answer = |thread: usize| {
            let lanes = thread / 32 * 32..(thread / 32 * 32 + 32).min(threads);
            let holds = |lane: &usize| here.at(*lane) && asked.at(*lane) & 1 == 1;
            let present = lanes.clone().filter(|lane| here.at(*lane)).count();
            let count = lanes.clone().filter(holds).count();
            match mode {
                Vote::All => u64::from(count == present),
                Vote::Any => u64::from(count > 0),
                Vote::Uni => u64::from(count == present || count == 0),
                Vote::Ballot => lanes.filter(holds).fold(0, |bits, lane| bits | 1 << (lane % 32)),
            }
        };
        let value = Value::Bits(Each::from_fn(threads, answer));
        let target = decoded.targets.first().and_then(|targets| targets.first()).copied().flatten();
        self.write(target, value, guard.as_ref());
        Ok(())
    }

    /// `redux.sync`: the multiset of the warp's values, or the float minimum or maximum of them.
    pub(super) fn redux(&mut self, instruction: &'m Instruction) -> Result<(), Stop> {
        let Op::Redux { op, ty, abs, nan } = instruction.op else { return self.stop("no redux") };
        let decoded = self.decoded(instruction)?;
        let value = self.source(instruction, 0)?;
        let members = self.source(instruction, 1)?;
        let under = self.under(instruction);
        let guard = self.own_guard(instruction);
        let here = self.known(under.as_ref(), "a reduction over a warp")?;
        let all = matches!(&members, Value::Bits(bits) if bits.all(|bits| bits as u32 == u32::MAX));
        if !all || abs || !here.all(|here| here) || !self.threads.is_multiple_of(32) {
            return self.stop("a reduction over part of a warp");
        }
        let float = ty.class() == bitstable_ptx::ir::Class::Float;
        let integer = |op| Op::IntBinary { op, ty, sat: false };
        let extreme =
            |op| Op::FloatBinary { op, ty, mode: FloatMode { nan, ..FloatMode::default() } };
        let pair = match op {
            Redux::Min if float => extreme(FloatBinary::Min),
            Redux::Max if float => extreme(FloatBinary::Max),
            Redux::Add => integer(IntBinary::Add),
            Redux::Min => integer(IntBinary::Min),
            Redux::Max => integer(IntBinary::Max),
            Redux::And => integer(IntBinary::And),
            Redux::Or => integer(IntBinary::Or),
            Redux::Xor => integer(IntBinary::Xor),
        };
        let id = self.world.labels.of(&crate::label::unsigned(&pair), ty, self.module.target.sm);
        let label = self.world.labels.get(id).clone();
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        let atoms = value.atoms(algebra, 4, threads);
        let totals: SmallVec<[Atom; 32]> = (0..threads / 32)
            .map(|warp| {
                // In pairs, as shuffles do: what is equal on both sides counts once where it may.
                let mut row: Vec<Atom> = (0..32).map(|lane| atoms.at(warp * 32 + lane)).collect();
                while row.len() > 1 {
                    row =
                        row.chunks(2).map(|two| algebra.join(&label, two[0], two[1], 4)).collect();
                }
                row[0]
            })
            .collect();
        let value = Value::Atoms(Each::from_fn(threads, |thread| totals[thread / 32]), 4);
        let target = decoded.targets.first().and_then(|targets| targets.first()).copied().flatten();
        self.write(target, value, guard.as_ref());
        Ok(())
    }

    /// Whether all threads are here, as collective instructions demand.
    pub(super) fn all_here(&mut self, instruction: &Instruction, what: &str) -> Result<(), Stop> {
        let under = self.under(instruction);
        let whole = self.threads.is_multiple_of(32);
        if whole && self.truths(under.as_ref()).all(|truth| truth == Truth::Yes) {
            return Ok(());
        }
        self.stop(format!("{what} by part of a warp"))
    }

    /// Names of a 32-bit value's parts of `unit` bytes, thread by thread.
    pub(super) fn part_bodies(&mut self, value: &Value, unit: u8) -> SmallVec<[Each<Body>; 4]> {
        let threads = self.threads;
        let algebra = &mut self.world.algebra;
        value.split(4, unit).iter().map(|part| part.bodies(algebra, unit, threads)).collect()
    }
}

/// Source lane and whether it is in range.
fn source_lane(mode: Shuffle, thread: usize, by: u64, clamp: u64) -> (usize, bool) {
    let (lane, by) = ((thread % 32) as i64, (by & 31) as i64);
    let (clamp, segment) = ((clamp & 31) as i64, (clamp >> 8 & 31) as i64);
    let most = lane & segment | clamp & !segment & 31;
    let least = lane & segment;
    let (source, fits) = match mode {
        Shuffle::Up => (lane - by, lane - by >= most),
        Shuffle::Down => (lane + by, lane + by <= most),
        Shuffle::Bfly => (lane ^ by, lane ^ by <= most),
        Shuffle::Idx => {
            let source = least | by & !segment & 31;
            (source, source <= most)
        }
    };
    (if fits { source } else { lane } as usize, fits)
}
