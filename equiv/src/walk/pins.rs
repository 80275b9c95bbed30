//! Parts of the canonical tree, followed through a walk.
//!
//! # Idea
//! See `pins.rs` of the crate. A part is an atom like any other to the walk: moves, shuffles and shared memory
//! relocate it, and only a mark makes a new one.
//! # Invariants
//! - **N1** A part is made at a mark alone, and only of two parts that the canonical tree combines.
//! - **N2** Parts of two executions of a reduction never meet: the mark that opens an execution gives
//!   it a number, and parts of other numbers are other elements.
//! # Held by
//! N1: [`Walk::combined`], the one maker of larger parts. N2: [`Part::line`].

use bitstable_ptx::ir::{Instruction, Operand, RegisterId};
use rustc_hash::{FxHashMap, FxHashSet};

use super::{Stop, Truth, Walk};
use crate::{
    each::Each,
    graph::Node,
    pins::{
        Certificate,
        marks::{Axis, Marker, May, Spread, What},
        pattern::Reader,
    },
    signature::Place,
    term::{Atom, Body, Mixer},
    told::Stuck,
    value::{Value, parts},
};

/// Instructions of engines that work beside the threads, and of waiting for them.
const ENGINES: [&str; 8] = [
    "fence.proxy.",
    "wgmma.",
    "tcgen05.",
    "mbarrier.",
    "elect.sync",
    "cp.async.bulk.",
    "setmaxnreg.",
    "griddepcontrol.",
];

/// Keeps the names of parts apart from all others.
const SEED: u64 = 0x7069_6e73;

/// A mark, and the registers that its moves write.
pub(crate) struct Mark {
    pub marker: Marker,
    pub targets: Vec<RegisterId>,
}

/// So many neighbouring elements of one line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part {
    pub operand: usize,
    line: Line,
    pub from: u64,
    /// The logarithm of how many.
    height: u32,
    /// Bits of the value, where its register is wider; 0: it is not.
    pub narrow: u32,
}

/// Which elements are reduced to one: a position without its bits along the axis, in one execution
/// of one reduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Line {
    pin: u32,
    execution: u64,
    rest: u64,
}

/// Marks, and what is known of their reductions.
#[derive(Default)]
pub(crate) struct Pins {
    marks: FxHashMap<usize, Mark>,
    seen: FxHashSet<usize>,
    parts: FxHashMap<Body, Part>,
    reductions: FxHashMap<u32, Reduction>,
    /// Two parts met under one hash.
    pub collided: bool,
    /// The first fault: the reduction, what, and where.
    pub fault: Option<(u32, String, Place)>,
}

#[derive(Default)]
struct Reduction {
    axis: Axis,
    may: May,
    execution: u64,
    combines: u64,
    results: u64,
    pattern: Option<Pattern>,
}

/// What combines do: the names of what each makes of `L` and `R`, in words, and whose these were.
struct Pattern {
    names: Vec<Body>,
    words: Vec<String>,
    of: String,
}

impl Pins {
    /// Puts a mark at its last move.
    pub fn place(&mut self, last: usize, mark: Mark) -> Result<(), String> {
        let number = mark.marker.pin;
        if let What::Element { axis, may, .. } = &mark.marker.what {
            let fresh = || Reduction { axis: *axis, may: *may, ..Reduction::default() };
            let known = self.reductions.entry(number).or_insert_with(fresh);
            if (known.axis, known.may) != (*axis, *may) {
                return Err(format!("two shapes of reduction {number}"));
            }
        }
        self.marks.insert(last, mark);
        Ok(())
    }

    pub fn all_seen(&self) -> bool {
        self.seen.len() == self.marks.len()
    }

    pub fn certificates(&self, until: Option<&Stuck>) -> Vec<Certificate> {
        let certificate = |(pin, reduction): (&u32, &Reduction)| Certificate {
            pin: *pin,
            extent: 1 << reduction.axis.along,
            combines: reduction.combines,
            results: reduction.results,
            pattern: reduction.pattern.as_ref().map(|p| p.words.clone()).unwrap_or_default(),
            until: until.cloned(),
        };
        let mut all: Vec<Certificate> = self.reductions.iter().map(certificate).collect();
        all.sort_by_key(|certificate| certificate.pin);
        all
    }
}

impl Part {
    fn body(&self) -> Body {
        let Line { pin, execution, rest } = self.line;
        let mixer = Mixer::new(SEED).word(u64::from(pin)).word(execution).word(rest);
        mixer.word(self.operand as u64).word(self.from).word(u64::from(self.height)).finish()
    }

    /// Where the part begins that the canonical tree combines it with.
    fn partner(&self) -> Part {
        Part { from: self.from ^ 1 << self.height, ..*self }
    }
}

impl std::fmt::Display for Part {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.height {
            0 => write!(f, "element {}", self.from),
            height => write!(f, "elements {} to {}", self.from, self.from + (1 << height) - 1),
        }
    }
}

/// Why a value is not what it should be, or cannot be told.
enum Wrong {
    Fault(String),
    Unknown(String),
}

/// A value of one thread, and what becomes of it.
type Made = Result<Vec<Part>, Wrong>;

impl Walk<'_> {
    /// The instruction at `pc` was done: if it ends a mark, checks and replaces what was marked.
    pub(super) fn marked(&mut self, pc: usize) -> Result<(), Stop> {
        let Some(mut pins) = self.pins.take() else { return Ok(()) };
        let done = match pins.marks.remove(&pc) {
            None => Ok(()),
            Some(mark) => {
                pins.seen.insert(pc);
                let done = self.mark(&mut pins, &mark);
                pins.marks.insert(pc, mark);
                done
            }
        };
        self.pins = Some(pins);
        done
    }

    /// An instruction that the walk does not follow. Where marks are all that is asked for, those of
    /// the asynchronous engines are passed over: what they write to registers is not known, and what
    /// they write to memory is taken to be nothing that a reduction stored.
    pub(super) fn unfollowed(&mut self, instruction: &Instruction) -> Result<(), Stop> {
        let name = bitstable_ptx::syntax::print_op(&instruction.op);
        if self.pins.is_none() || !ENGINES.iter().any(|engine| name.starts_with(engine)) {
            return self.stop(format!("`{name}` is not followed"));
        }
        let waits = ["mbarrier.try_wait", "mbarrier.test_wait"].iter().any(|w| name.starts_with(w));
        match instruction.operands.first() {
            Some(Operand::Register(register)) => {
                // A wait that is over; one that is not is tried again.
                let value = if waits { Value::Bits(Each::All(1)) } else { Value::Undefined };
                self.registers[register.index()] = value;
            }
            Some(Operand::Vector(all)) => {
                for part in all {
                    if let Operand::Register(register) = part {
                        self.registers[register.index()] = Value::Undefined;
                    }
                }
            }
            Some(Operand::Pair(lane, elected)) => {
                let threads = self.threads;
                if let Operand::Register(register) = &**lane {
                    self.registers[register.index()] = Value::Bits(Each::All(0));
                }
                if let Operand::Register(register) = &**elected {
                    let first = Each::from_fn(threads, |thread| u64::from(thread % 32 == 0));
                    self.registers[register.index()] = Value::Bits(first);
                }
            }
            Some(_) | None => {}
        }
        Ok(())
    }

    fn mark(&mut self, pins: &mut Pins, mark: &Mark) -> Result<(), Stop> {
        let pin = mark.marker.pin;
        if !pins.reductions.contains_key(&pin) {
            return self.stop("a mark of a reduction that has no elements");
        }
        if let (What::Element { open: true, .. }, Some(reduction)) =
            (&mark.marker.what, pins.reductions.get_mut(&pin))
        {
            reduction.execution += 1;
        }
        let here = self.truths(self.path.as_ref()).map(|truth| truth != Truth::No);
        let operands = self.operands(mark);
        let mut known: FxHashMap<Vec<Body>, Vec<Part>> = FxHashMap::default();
        let first = (0..self.threads).find(|thread| here.at(*thread)).unwrap_or(0) / 32;
        let mut made: Vec<Option<Vec<Part>>> = Vec::with_capacity(self.threads);
        for thread in 0..self.threads {
            if !here.at(thread) {
                made.push(None);
                continue;
            }
            let bodies: Vec<Body> = operands.iter().map(|operand| operand.at(thread)).collect();
            let at = (thread % 32, thread / 32 - first);
            let parts = match &mark.marker.what {
                What::Element { place, .. } => element(pins, mark, place, at),
                What::Combine => match known.get(&bodies) {
                    Some(parts) => Ok(parts.clone()),
                    None => self.combined(pins, pin, (&bodies, &mark.marker.narrow)),
                },
                What::Result(place) => {
                    let to = (pin, place.position(at.0, at.1));
                    self.left(pins, to, (&bodies, &mark.marker.narrow))
                }
            };
            match parts {
                Ok(parts) => {
                    if mark.marker.what == What::Combine {
                        known.insert(bodies, parts.clone());
                    }
                    made.push(Some(parts));
                }
                Err(Wrong::Unknown(what)) => return self.stop(what),
                Err(Wrong::Fault(what)) => {
                    pins.fault = Some((pin, what.clone(), self.place()));
                    return self.stop(what);
                }
            }
        }
        self.replace(pins, mark, &made);
        Ok(())
    }

    /// The results of one thread, at a position.
    fn left(&self, pins: &mut Pins, to: (u32, u64), values: (&[Body], &[u32])) -> Made {
        let Some(graph) = &self.world.algebra.graph else {
            return Err(Wrong::Unknown("there is no graph".into()));
        };
        let Some(reduction) = pins.reductions.get_mut(&to.0) else { return Ok(Vec::new()) };
        reduction.results += 1;
        result(&Reader::new(graph, &self.world.labels, &pins.parts), reduction, to, values)
    }

    /// The names of what was moved, an operand each.
    fn operands(&mut self, mark: &Mark) -> Vec<Each<Body>> {
        let mut all = Vec::with_capacity(mark.targets.len());
        for (target, narrow) in mark.targets.iter().zip(&mark.marker.narrow) {
            let bytes = (self.body.registers[target.index()].ty.bits() / 8) as u8;
            let mut value = self.registers[target.index()].clone();
            let own = if *narrow == 0 { bytes } else { 1 };
            if own < bytes {
                value = value.piece(bytes, 0, own);
            }
            all.push(value.bodies(&mut self.world.algebra, own, self.threads));
        }
        all
    }

    /// Lets registers hold parts; what threads hold that are not here is nobody's.
    fn replace(&mut self, pins: &mut Pins, mark: &Mark, made: &[Option<Vec<Part>>]) {
        for (operand, (target, narrow)) in mark.targets.iter().zip(&mark.marker.narrow).enumerate()
        {
            let bytes = (self.body.registers[target.index()].ty.bits() / 8) as u8;
            let (threads, algebra) = (self.threads, &mut self.world.algebra);
            let atoms = Each::from_fn(threads, |thread| {
                let Some(part) = made[thread].as_ref().map(|parts| parts[operand]) else {
                    return Atom::UNDEFINED;
                };
                let body = part.body();
                match pins.parts.insert(body, part) {
                    None => {
                        algebra.named(body, || Node::Other { what: "part", args: Vec::new() });
                    }
                    Some(known) => pins.collided |= known != part,
                }
                Atom::whole(body)
            });
            self.registers[target.index()] = if *narrow == 0 {
                Value::Atoms(atoms, bytes)
            } else {
                parts(vec![Value::Atoms(atoms, 1), Value::Bits(Each::All(0))], 1)
            };
        }
    }

    /// What one combine made of one thread's parts.
    fn combined(&mut self, pins: &mut Pins, pin: u32, (bodies, narrow): (&[Body], &[u32])) -> Made {
        let (Some(graph), labels) = (&self.world.algebra.graph, &self.world.labels) else {
            return Err(Wrong::Unknown("there is no graph".into()));
        };
        let Some(reduction) = pins.reductions.get_mut(&pin) else {
            return Err(Wrong::Unknown("a combine of no reduction".into()));
        };
        let mut reader = Reader::new(graph, labels, &pins.parts);
        let found = reader.parts(bodies).map_err(Wrong::Unknown)?;
        let (low, high) = neighbours(&found, (pin, reduction.execution)).map_err(Wrong::Fault)?;
        reader.sides(low.from, high.from);
        let names: Vec<Body> = bodies
            .iter()
            .map(|b| reader.name(*b))
            .collect::<Result<_, _>>()
            .map_err(Wrong::Unknown)?;
        let of = format!("{low} and {high}");
        match &reduction.pattern {
            Some(pattern) if pattern.names == names => {}
            Some(pattern) => {
                return Err(Wrong::Fault(format!(
                    "combines {of} as {}, but {} as {}",
                    reader.words(bodies).join(" and "),
                    pattern.of,
                    pattern.words.join(" and "),
                )));
            }
            None => {
                reader.rounds_once(bodies, reduction.may).map_err(Wrong::Fault)?;
                let words = reader.words(bodies);
                reduction.pattern = Some(Pattern { names, words, of });
            }
        }
        reduction.combines += 1;
        let narrow = (0..).zip(narrow);
        Ok(narrow
            .map(|(operand, &narrow)| Part { operand, narrow, height: low.height + 1, ..low })
            .collect())
    }
}

/// The elements of one thread.
fn element(pins: &Pins, mark: &Mark, place: &Spread, (lane, warp): (usize, usize)) -> Made {
    let pin = mark.marker.pin;
    let Some(reduction) = pins.reductions.get(&pin) else { return Ok(Vec::new()) };
    if reduction.execution == 0 {
        return Err(Wrong::Unknown("an element before its reduction is begun".into()));
    }
    if warp >> place.warp.len() > 0 {
        return Err(Wrong::Unknown("more warps than the mark tells of".into()));
    }
    let (from, rest) = reduction.axis.split(place.position(lane, warp));
    let line = Line { pin, execution: reduction.execution, rest };
    let narrow = (0..).zip(&mark.marker.narrow);
    Ok(narrow.map(|(operand, &narrow)| Part { operand, line, from, height: 0, narrow }).collect())
}

/// Whether one thread's results are what they should be; they go on as they are.
fn result(
    reader: &Reader<'_>,
    reduction: &Reduction,
    (pin, rest): (u32, u64),
    (bodies, narrow): (&[Body], &[u32]),
) -> Made {
    let line = Line { pin, execution: reduction.execution, rest };
    let height = reduction.axis.along;
    let mut all = Vec::with_capacity(bodies.len());
    for (operand, (body, &narrow)) in bodies.iter().zip(narrow).enumerate() {
        if *body == Atom::UNDEFINED.body {
            return Err(Wrong::Unknown("a result that is not known".into()));
        }
        let wanted = Part { operand, line, from: 0, height, narrow };
        match reader.held(*body) {
            Some(part) if part == wanted => all.push(part),
            Some(part) => return Err(Wrong::Fault(misplaced(&part, &wanted))),
            None => {
                return Err(Wrong::Fault(format!(
                    "the result for {wanted} is not what their last combine made, but {}",
                    reader.words(&[*body]).concat()
                )));
            }
        }
    }
    Ok(all)
}

fn misplaced(part: &Part, wanted: &Part) -> String {
    if part.line.pin != wanted.line.pin || part.operand != wanted.operand {
        return format!("the result for {wanted} is of another reduction or operand");
    }
    if part.line.execution != wanted.line.execution {
        return format!("the result for {wanted} is that of an earlier execution");
    }
    if part.line.rest != wanted.line.rest {
        let (got, want) = (part.line.rest, wanted.line.rest);
        return format!("the result at row-major position {want} is that of position {got}");
    }
    format!("a result holds {part} where {wanted} are reduced")
}

/// The two parts that a combine is made of, lower first; or how they are not neighbours.
fn neighbours(found: &[Part], (pin, execution): (u32, u64)) -> Result<(Part, Part), String> {
    let mut distinct: Vec<Part> = Vec::new();
    for part in found {
        let known = distinct
            .iter()
            .any(|p| Part { operand: part.operand, narrow: part.narrow, ..*p } == *part);
        if !known {
            distinct.push(*part);
        }
    }
    distinct.sort_by_key(|part| (part.from, part.height, part.line.rest));
    let Some(first) = distinct.first() else {
        return Err("a combine takes in no element".into());
    };
    for part in &distinct {
        if part.line.pin != pin {
            return Err("a combine takes in elements of another reduction".into());
        }
        if part.line.execution != execution {
            return Err(format!("a combine takes in {part} of an earlier execution"));
        }
        if part.line.rest != first.line.rest {
            return Err(format!(
                "combines {first} at row-major position {} of the result with {part} at {}",
                first.line.rest, part.line.rest
            ));
        }
    }
    match distinct[..] {
        [low, high] if low.height == high.height && low.partner().from == high.from => {
            Ok((low, high))
        }
        [one] => Err(format!(
            "combines {one} with nothing else where the canonical tree combines it with {}",
            one.partner()
        )),
        [low, high] => Err(format!(
            "combines {low} with {high} where the canonical tree combines {low} with {}",
            low.partner()
        )),
        _ => {
            let all: Vec<String> = distinct.iter().map(Part::to_string).collect();
            Err(format!("combines {} at once, where a combine takes two parts", all.join(", ")))
        }
    }
}
