//! The connected set: all that takes on another layout together with a reduction's operands.
//!
//! # Idea
//! From the operands the new layout flows along every operation that accepts it, up to loads and
//! down to stores. Where an operation wants the layout that it has, the set ends at a border, and a
//! conversion stands there. What is made for next to nothing (constants, ranges) is made twice.
//! # Invariants
//! - **K1** Every value has one new layout. Where two meet, there is no set.
//! - **K2** A thread holds no more of a value than before, or than it holds of the operands.
//! # Held by
//! K1: [`Growing::value`]. K2: [`Growing::fits`].
//! # Not here
//! What flows (`flow.rs`); whether the set is worth it (`price.rs`); the change (`apply.rs`).

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use melior::ir::{ValueLike, operation::OperationLike};

use super::{
    flow::{Flow, Link, Reached, infers, reduced},
    names::{Name, Named, Names},
};
use crate::{
    ir::{self, Op, Source, Val},
    place::Place,
};

/// Memory is read and written through these.
const ACCESSES: [&str; 4] = ["tt.load", "tt.store", "amdg.buffer_load", "amdg.buffer_store"];
/// Shared memory is read and written through these.
const SHARED: [&str; 3] = ["ttg.local_alloc", "ttg.local_load", "ttg.local_store"];

/// A value whose type changes.
pub struct Retyped<'c> {
    /// The value.
    pub value: Val<'c>,
    /// The layout that it has.
    pub from: Named,
    /// The layout that it gets.
    pub to: Name,
    /// Who goes on reading it in the layout that it had.
    pub stale: Vec<(Op<'c>, usize)>,
    /// Who reads it in the new one.
    pub users: usize,
}

/// A value that some read in another layout; its own stays.
pub struct Brought<'c> {
    /// The value.
    pub value: Val<'c>,
    /// The layout that it has.
    pub from: Named,
    /// The layout that they read.
    pub to: Name,
    /// Who.
    pub uses: Vec<(Op<'c>, usize)>,
    /// Whether the value is made again, rather than converted.
    pub copied: bool,
}

/// The connected set.
#[derive(Default)]
pub struct Component<'c> {
    /// What changes.
    pub retyped: Vec<Retyped<'c>>,
    /// What is converted or made again on the way in.
    pub brought: Vec<Brought<'c>>,
    /// Accesses of memory among the operations that were met.
    pub accesses: Vec<Op<'c>>,
    /// Accesses of shared memory.
    pub shared: Vec<Op<'c>>,
    /// Conversions that the module has.
    pub conversions: Vec<Op<'c>>,
    /// Reductions.
    pub reductions: Vec<Op<'c>>,
    /// What wants the layout that it has, in the order in which it was met.
    pub borders: Vec<Op<'c>>,
    values: BTreeMap<usize, usize>,
    uses: BTreeMap<(usize, usize), Name>,
}

impl Component<'_> {
    /// The new layout of `value`, if it changes.
    pub fn value(&self, value: Val<'_>) -> Option<&Name> {
        self.values.get(&key(value)).map(|&number| &self.retyped[number].to)
    }

    /// What changes of `value`.
    pub fn retyped(&self, value: Val<'_>) -> Option<&Retyped<'_>> {
        self.values.get(&key(value)).map(|&number| &self.retyped[number])
    }

    /// The new layout in which `op` reads its operand `number`, if it changes.
    pub fn operand(&self, op: Op<'_>, number: usize) -> Option<&Name> {
        let retyped = || {
            let retyped = self.retyped(*ir::operands(op).get(number)?)?;
            let stale =
                retyped.stale.iter().any(|(user, n)| *n == number && op_key(*user) == op_key(op));
            (!stale).then_some(&retyped.to)
        };
        self.uses.get(&(op_key(op), number)).or_else(retyped)
    }
}

/// Why there is no set.
#[derive(Clone, Debug)]
pub enum Split {
    /// A value would have two layouts.
    Meet(Place),
}

/// How far a layout flows.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// As far as it can.
    All,
    /// As far as it can, where the layout is the one that is there: to see what is connected.
    Survey,
    /// To the reduction alone.
    Reduction,
}

/// The set of values that change when the operands of `reduction` are named `name`.
pub fn grow<'c>(
    reduction: Op<'c>,
    name: &Name,
    reach: Reach,
    names: &Names,
) -> Result<Component<'c>, Split> {
    let flow = Flow { names };
    let operand = ir::operands(reduction).first().and_then(|&v| names.of(v));
    let layout = operand.and_then(|named| names.layout(&named.name, &named.shape));
    let operand_bits = layout.map_or(0, |layout| layout.register.len());
    let mut growing = Growing {
        flow,
        reach,
        operand_bits,
        found: Component::default(),
        seen: BTreeSet::new(),
        rest: VecDeque::new(),
    };
    growing.met(reduction);
    if let Link::Follows(all) = reduced(reduction, name) {
        growing.rest.extend(all);
    }
    while let Some((reached, name)) = growing.rest.pop_front() {
        match reached {
            Reached::Use(op, number) => growing.operand(op, number, name)?,
            Reached::Value(value) => growing.value(value, name)?,
        }
    }
    Ok(growing.found)
}

struct Growing<'a, 'c> {
    flow: Flow<'a>,
    reach: Reach,
    /// The logarithm of how many elements of the operands a thread holds.
    operand_bits: usize,
    found: Component<'c>,
    seen: BTreeSet<usize>,
    rest: VecDeque<(Reached<'c>, Name)>,
}

impl<'c> Growing<'_, 'c> {
    /// `op` reads its operand `number` as `name`: its producer follows, or something is put between.
    fn operand(&mut self, op: Op<'c>, number: usize, name: Name) -> Result<(), Split> {
        let value = ir::operands(op)[number];
        let Some(from) = self.flow.names.of(value) else { return Err(self.meet(value)) };
        if from.name == name && self.reach != Reach::Survey {
            return Ok(());
        }
        let link = match self.reach {
            Reach::Reduction => Link::Wants,
            Reach::All | Reach::Survey => self.checked(self.flow.producer(value, &name)),
        };
        match link {
            Link::Follows(_) | Link::Ends => self.value(value, name),
            Link::Copied => self.bring(value, from, (op, number), name, true),
            Link::Wants => {
                if let (Source::Result(made_by, _), Reach::All) = (ir::source(value), self.reach) {
                    self.border(made_by);
                }
                self.bring(value, from, (op, number), name, false)
            }
        }
    }

    fn bring(
        &mut self,
        value: Val<'c>,
        from: Named,
        (op, number): (Op<'c>, usize),
        to: Name,
        copied: bool,
    ) -> Result<(), Split> {
        if let Some(known) = self.found.uses.insert((op_key(op), number), to.clone()) {
            return if known == to { Ok(()) } else { Err(self.meet(value)) };
        }
        let same = |b: &&mut Brought<'c>| key(b.value) == key(value) && b.to == to;
        match self.found.brought.iter_mut().find(same) {
            Some(brought) => brought.uses.push((op, number)),
            None => {
                self.found.brought.push(Brought {
                    value,
                    from,
                    to,
                    uses: vec![(op, number)],
                    copied,
                });
            }
        }
        Ok(())
    }

    /// `value` takes on `name`: its producer's other values follow, and its users.
    fn value(&mut self, value: Val<'c>, name: Name) -> Result<(), Split> {
        if let Some(known) = self.found.value(value) {
            return if *known == name { Ok(()) } else { Err(self.meet(value)) };
        }
        let Some(from) = self.flow.names.of(value) else { return Err(self.meet(value)) };
        if from.name == name && self.reach != Reach::Survey {
            return Ok(());
        }
        if !self.fits(value, &name) {
            return Err(self.meet(value));
        }
        if let Source::Result(op, _) = ir::source(value) {
            self.met(op);
        }
        if self.reach != Reach::Reduction {
            let link = self.flow.producer(value, &name);
            if let (Link::Follows(all), source) = (link, ir::source(value)) {
                match source {
                    Source::Result(op, _) if infers(op) => self.follow_inferred(all),
                    _ => self.rest.extend(all),
                }
            }
        }
        let (mut stale, mut users) = (Vec::new(), 0);
        for (user, number) in ir::uses(value) {
            let link = self.checked(self.flow.user(user, number, &name));
            let link = match (self.reach, link) {
                (Reach::Reduction, Link::Follows(_)) => Link::Wants,
                (_, link) => link,
            };
            match link {
                Link::Wants => {
                    stale.push((user, number));
                    if self.reach == Reach::All {
                        self.border(user);
                    }
                    continue;
                }
                Link::Follows(all) if infers(user) => self.follow_inferred(all),
                Link::Follows(all) => self.rest.extend(all),
                Link::Ends | Link::Copied => {}
            }
            users += 1;
            self.met(user);
        }
        self.found.values.insert(key(value), self.found.retyped.len());
        self.found.retyped.push(Retyped { value, from, to: name, stale, users });
        Ok(())
    }

    /// These are next, but for those that have the same layout by another name already: names that
    /// are inferred come back from where they went.
    fn follow_inferred(&mut self, all: Vec<(Reached<'c>, Name)>) {
        let names = self.flow.names;
        for (reached, name) in all {
            let value = match reached {
                Reached::Use(op, number) => ir::operands(op)[number],
                Reached::Value(value) => value,
            };
            let known = || {
                let retyped = self.found.retyped(value)?;
                let shape = &retyped.from.shape;
                Some(names.layout(&retyped.to, shape)? == names.layout(&name, shape)?)
            };
            if known() != Some(true) {
                self.rest.push_back((reached, name));
            }
        }
    }

    /// A link to values that cannot hold the layout is none.
    fn checked(&self, link: Link<'c>) -> Link<'c> {
        let Link::Follows(all) = &link else { return link };
        let holds = |(reached, name): &(Reached<'c>, Name)| match reached {
            Reached::Use(op, number) => self.fits(ir::operands(*op)[*number], name),
            Reached::Value(value) => self.fits(*value, name),
        };
        if all.iter().all(holds) { link } else { Link::Wants }
    }

    /// Whether a thread holds no more of `value` than before, or than of the operands: of a row
    /// that is the same for all rows of a tile it may hold more, when it holds fewer rows.
    fn fits(&self, value: Val<'_>, name: &Name) -> bool {
        let Some(named) = self.flow.names.of(value) else { return false };
        let before = self.flow.names.layout(&named.name, &named.shape);
        let after = self.flow.names.layout(name, &named.shape);
        before.zip(after).is_some_and(|(before, after)| {
            let most = self.operand_bits.max(before.register.len());
            after.register.len() <= most && after.block == before.block
        })
    }

    fn met(&mut self, op: Op<'c>) {
        if !self.seen.insert(op_key(op)) {
            return;
        }
        let list = match ir::name(op) {
            name if ACCESSES.contains(&name) => &mut self.found.accesses,
            name if SHARED.contains(&name) => &mut self.found.shared,
            "ttg.convert_layout" => &mut self.found.conversions,
            "tt.reduce" => &mut self.found.reductions,
            _ => return,
        };
        list.push(op);
    }

    fn border(&mut self, op: Op<'c>) {
        if !self.found.borders.iter().any(|known| op_key(*known) == op_key(op)) {
            self.found.borders.push(op);
        }
    }

    fn meet(&self, value: Val<'c>) -> Split {
        Split::Meet(match ir::source(value) {
            Source::Result(op, _) => Place::of(op.location()),
            Source::Argument(block, _) => {
                ir::parent(block).map_or_else(Place::default, |op| Place::of(op.location()))
            }
        })
    }
}

fn key(value: Val<'_>) -> usize {
    value.to_raw().ptr as usize
}

/// What tells operations apart.
pub fn op_key(op: Op<'_>) -> usize {
    op.to_raw().ptr as usize
}
