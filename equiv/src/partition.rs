//! Many kernels into classes of proved equal bits.
//!
//! # Idea
//! A worker reads a kernel's text, walks it, and keeps what the walk came to. Kernels of one group and
//! one digest are a class. A digest is a hash: on demand, every class is confirmed by comparing its
//! kernels in full with its first.
//! # Invariants
//! - **P1** The answer is a function of the kernels and their order: neither the number of workers nor
//!   who is done first enters it.
//! - **P2** A worker holds the text and the module of one kernel, of two while it compares them.
//! - **P3** Equal texts with equal entries and facts are walked once, and are one class in a group.
//! - **P4** Kernels of one class take parameters of the same sizes, so that the same arguments can be
//!   passed to them; those that could not be followed have equal launches too.
//! - **P5** A kernel that cannot be read, parsed or walked is an error of its own: it neither joins a
//!   class nor takes an answer from others.
//! # Held by
//! P1 and P3: the order in which [`classes`] goes through the kernels. P4: [`name`]. P5: [`load`] and
//! [`guarded`].
//! # Not here
//! What makes two digests equal (`signature.rs`); where files are, and how an answer is told.

use std::{
    borrow::Cow,
    collections::BTreeSet,
    hash::Hash,
    io,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, OnceLock, PoisonError},
};

use bitstable_ptx::{
    ir::{Function, Module},
    syntax::{SyntaxError, parse},
};
use rayon::prelude::*;
use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use crate::{
    Digest, InputError, Launch, Signature, Verdict, same, signature,
    told::{Stuck, Told, Unlike},
};

/// A kernel among others: where its text is, and what is known of its launch.
pub trait Kernel: Sync {
    /// The facts of a launch, before the parameters' names and types are known.
    type Facts: Eq + Hash + Sync;
    /// Only kernels of one group are compared.
    fn group(&self) -> u32;
    /// Its PTX; asked for by a worker, and again by one that confirms.
    fn text(&self) -> io::Result<Cow<'_, str>>;
    /// The function to walk, where there are several.
    fn entry(&self) -> Option<&str>;
    /// What [`Kernel::launch`] depends on, the module apart.
    fn facts(&self) -> &Self::Facts;
    /// The facts in the terms of a module; an error is for people.
    fn launch(&self, module: &Module) -> Result<Launch, String>;
}

/// How a class is made sure of.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Assurance {
    /// Equal digests.
    Digest,
    /// Every kernel was compared in full with the first of its class.
    Exact,
}

/// Somebody who follows the work; called from any worker.
pub trait Watch: Sync {
    /// So many steps of a kind begin.
    fn begin(&self, work: Work, steps: usize);
    /// One of them is done.
    fn step(&self);
}

/// Nobody does.
impl Watch for () {
    fn begin(&self, _: Work, _: usize) {}
    fn step(&self) {}
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Work {
    Walk,
    Confirm,
    /// Not ours: of who shows differences.
    Compare,
}

/// Kernels, by their numbers in the order given, in classes.
#[derive(Debug)]
pub struct Partition {
    /// In order of their first members.
    pub classes: Vec<Class>,
    pub errors: Vec<(usize, Arc<Fault>)>,
    /// Kernels that were taken out of a class, each in one of its own.
    pub unconfirmed: Vec<Unconfirmed>,
}

/// Kernels that return the same bits.
#[derive(Debug)]
pub struct Class {
    pub group: u32,
    pub digest: Digest,
    /// In order; never none.
    pub members: Vec<usize>,
    /// Why its kernel could not be followed: its members are of one text.
    pub obstacle: Option<Stuck>,
    /// Where ptxas may fuse a product with the sum that takes it, one place for each source line of
    /// any member.
    pub contractions: Vec<Told>,
    /// Numbers of the parameters that its kernels write through; `None`: not known.
    pub writes: Option<BTreeSet<u32>>,
}

/// A kernel of a class's digest that was not found the same as the class's first.
#[derive(Debug)]
pub struct Unconfirmed {
    pub kernel: usize,
    pub against: usize,
    pub doubt: Doubt,
}

/// Why two kernels are not confirmed to be the same.
#[derive(Debug, thiserror::Error)]
pub enum Doubt {
    #[error("the digests are equal and the kernels are not: {}", .0.first().map_or("", |first| first.text.as_str()))]
    Different(Vec<Unlike>),
    #[error("it could not be followed: {0}")]
    Unknown(Stuck),
    #[error("{0}")]
    Fault(Arc<Fault>),
}

/// Why there is no answer for a kernel.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    #[error("{0}")]
    Read(io::Error),
    #[error("PTX line {0}")]
    Syntax(SyntaxError),
    #[error("{0}")]
    Launch(String),
    #[error("{0}")]
    Input(InputError),
    #[error("bitstable failed, please report it: {0}")]
    Bug(String),
}

/// What two kernels come to, compared in full.
#[derive(Debug)]
pub enum Comparison {
    Same,
    Different(Vec<Unlike>),
    Unknown(Stuck),
}

/// What is kept of a walk.
struct Walked {
    digest: Digest,
    obstacle: Option<Stuck>,
    contractions: Vec<Told>,
    writes: Option<BTreeSet<u32>>,
}

/// One for all kernels of equal text, entry and facts.
type Cell = OnceLock<Result<Walked, Arc<Fault>>>;
type Known<'a, K> = FxHashMap<([u8; 32], Option<&'a str>, &'a <K as Kernel>::Facts), Arc<Cell>>;

/// Puts kernels into classes, on the workers of the current thread pool.
pub fn partition<K: Kernel>(kernels: &[K], assurance: Assurance, watch: &impl Watch) -> Partition {
    partition_by(kernels, assurance, watch, compare)
}

/// `exactly` is [`compare`], but for tests: equal digests of different kernels are not to be had.
fn partition_by<K: Kernel>(
    kernels: &[K],
    assurance: Assurance,
    watch: &impl Watch,
    exactly: impl Fn(&K, &K) -> Result<Comparison, Fault> + Sync,
) -> Partition {
    watch.begin(Work::Walk, kernels.len());
    let known: Mutex<Known<'_, K>> = Mutex::default();
    let walked: Vec<Arc<Cell>> = kernels
        .par_iter()
        .with_max_len(1)
        .map(|kernel| {
            let cell = walk(kernel, &known);
            watch.step();
            cell
        })
        .collect();
    drop(known);
    let twins = twins(kernels, &walked);
    let mut partition = classes(kernels, &walked, &twins);
    if assurance == Assurance::Exact {
        let exactly = |[a, b]: [usize; 2]| exactly(&kernels[a], &kernels[b]);
        confirm(&walked, &twins, &mut partition, watch, exactly);
    }
    partition
}

/// For each kernel, the first of its group with the same text, entry and facts.
fn twins<K: Kernel>(kernels: &[K], walked: &[Arc<Cell>]) -> Vec<usize> {
    let mut first: FxHashMap<(u32, *const Cell), usize> = FxHashMap::default();
    let pairs = kernels.iter().zip(walked).enumerate();
    pairs
        .map(|(number, (kernel, cell))| {
            *first.entry((kernel.group(), Arc::as_ptr(cell))).or_insert(number)
        })
        .collect()
}

fn walk<'a, K: Kernel>(kernel: &'a K, known: &Mutex<Known<'a, K>>) -> Arc<Cell> {
    let failed = |fault| Arc::new(Cell::from(Err(Arc::new(fault))));
    let text = match kernel.text() {
        Ok(text) => text,
        Err(error) => return failed(Fault::Read(error)),
    };
    let key = (Sha256::digest(text.as_bytes()).into(), kernel.entry(), kernel.facts());
    let cell = {
        let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(known.entry(key).or_default())
    };
    cell.get_or_init(|| {
        guarded(|| {
            let (module, launch) = load(kernel, &text)?;
            let found = signature(&module, kernel.entry(), &launch).map_err(Fault::Input)?;
            let function = entry(&module, kernel.entry());
            let body = function.and_then(|function| function.body.as_ref());
            let places = found.contractions.iter().map(|place| Told::new(place, &module, body));
            Ok(Walked {
                digest: name(&found, function, &launch),
                contractions: one_a_line(places.collect()),
                writes: found.writes,
                obstacle: found.obstacle.map(|obstacle| Stuck::new(obstacle, &module, body)),
            })
        })
        .map_err(Arc::new)
    });
    cell
}

/// A name for what a kernel returns and for what it is given.
fn name(found: &Signature, function: Option<&Function>, launch: &Launch) -> Digest {
    let params = function.map(|function| function.params.as_slice()).unwrap_or_default();
    let sizes: Vec<_> =
        params.iter().map(|param| (param.ty.bytes(), param.vector, param.elements)).collect();
    // What is not followed may do anything with its launch.
    let launch = found.obstacle.as_ref().map(|_| (launch, function.map(|f| &f.directives)));
    let mut hash = Sha256::new();
    hash.update(found.digest.0.to_le_bytes());
    hash.update(format!("{sizes:?} {launch:?}"));
    let mut digest = [0; 16];
    digest.copy_from_slice(&hash.finalize()[..16]);
    Digest(u128::from_le_bytes(digest))
}

/// The module of a text, and the facts in its terms.
fn load<K: Kernel>(kernel: &K, text: &str) -> Result<(Module, Launch), Fault> {
    let module = parse(text).map_err(Fault::Syntax)?;
    let launch = kernel.launch(&module).map_err(Fault::Launch)?;
    Ok((module, launch))
}

/// A panic of ours about one kernel must not take the answer from thousands.
fn guarded<T>(work: impl FnOnce() -> Result<T, Fault>) -> Result<T, Fault> {
    panic::catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| {
        let said = payload.downcast_ref::<&str>().map(|said| (*said).to_owned());
        let said = said.or_else(|| payload.downcast_ref::<String>().cloned());
        Err(Fault::Bug(said.unwrap_or_else(|| "it panicked".into())))
    })
}

/// The function that is walked: the one of this name, or the only one.
pub fn entry<'a>(module: &'a Module, name: Option<&str>) -> Option<&'a Function> {
    let mut entries = module.functions.iter().filter(|function| {
        function.entry && function.body.is_some() && name.is_none_or(|name| function.name == name)
    });
    let first = entries.next()?;
    entries.next().is_none().then_some(first)
}

/// The first place of each source line; where no line is known, of each line of PTX.
fn one_a_line(mut places: Vec<Told>) -> Vec<Told> {
    places.sort_by(|a, b| a.line_key().cmp(&b.line_key()).then(a.cmp(b)));
    places.dedup_by(|later, first| later.line_key() == first.line_key());
    places.sort();
    places
}

/// Goes through the kernels in order: classes and members come out in it.
fn classes<K: Kernel>(kernels: &[K], walked: &[Arc<Cell>], twins: &[usize]) -> Partition {
    let mut partition =
        Partition { classes: Vec::new(), errors: Vec::new(), unconfirmed: Vec::new() };
    let mut places: FxHashMap<(u32, Digest), usize> = FxHashMap::default();
    for (number, (kernel, cell)) in kernels.iter().zip(walked).enumerate() {
        let found = match cell.get() {
            Some(Ok(found)) => found,
            Some(Err(fault)) => {
                partition.errors.push((number, Arc::clone(fault)));
                continue;
            }
            None => continue, // every worker is done
        };
        let group = kernel.group();
        let place = *places.entry((group, found.digest)).or_insert_with(|| {
            partition.classes.push(Class::new(group, found));
            partition.classes.len() - 1
        });
        let class = &mut partition.classes[place];
        class.members.push(number);
        if twins[number] == number {
            class.contractions.extend(found.contractions.iter().cloned());
        }
    }
    for class in &mut partition.classes {
        class.contractions = one_a_line(std::mem::take(&mut class.contractions));
    }
    partition
}

impl Class {
    fn new(group: u32, found: &Walked) -> Self {
        Self {
            group,
            digest: found.digest,
            members: Vec::new(),
            obstacle: found.obstacle.clone(),
            contractions: Vec::new(),
            writes: found.writes.clone(),
        }
    }
}

/// Compares every kernel in full with the first of its class, and takes out those that are not
/// found the same.
fn confirm(
    walked: &[Arc<Cell>],
    twins: &[usize],
    partition: &mut Partition,
    watch: &impl Watch,
    exactly: impl Fn([usize; 2]) -> Result<Comparison, Fault> + Sync,
) {
    let pairs: Vec<(usize, usize)> = partition
        .classes
        .iter()
        .flat_map(|class| class.members.iter().map(|&member| (class.members[0], member)))
        .filter(|&(first, member)| member != first && twins[member] == member)
        .collect();
    watch.begin(Work::Confirm, pairs.len());
    let doubts: Vec<Option<Doubt>> = pairs
        .par_iter()
        .with_max_len(1)
        .map(|&(first, member)| {
            let doubt = match exactly([first, member]) {
                Ok(Comparison::Same) => None,
                Ok(Comparison::Different(unlike)) => Some(Doubt::Different(unlike)),
                Ok(Comparison::Unknown(stuck)) => Some(Doubt::Unknown(stuck)),
                Err(fault) => Some(Doubt::Fault(Arc::new(fault))),
            };
            watch.step();
            doubt
        })
        .collect();
    for ((against, kernel), doubt) in pairs.into_iter().zip(doubts) {
        let Some(doubt) = doubt else { continue };
        if let Some(Ok(found)) = walked[kernel].get() {
            take_out(found, twins, partition, [kernel, against]);
        }
        partition.unconfirmed.push(Unconfirmed { kernel, against, doubt });
    }
    partition.classes.sort_by_key(|class| class.members[0]);
    partition.unconfirmed.sort_by_key(|found| found.kernel);
}

/// Makes a class of a kernel and its twins, out of the one that `against` leads.
fn take_out(
    found: &Walked,
    twins: &[usize],
    partition: &mut Partition,
    [kernel, against]: [usize; 2],
) {
    let from = partition.classes.iter_mut().find(|class| class.members[0] == against);
    let Some(from) = from else { return };
    let mut class = Class::new(from.group, found);
    class.contractions.clone_from(&found.contractions);
    let (own, others) = from.members.iter().partition(|&&member| twins[member] == kernel);
    (class.members, from.members) = (own, others);
    partition.classes.push(class);
}

/// Compares two kernels in full, whatever their digests say.
///
/// # Errors
/// When one of them cannot be read, parsed or walked.
pub fn compare<K: Kernel>(a: &K, b: &K) -> Result<Comparison, Fault> {
    let loaded = |kernel: &K| load(kernel, &kernel.text().map_err(Fault::Read)?);
    guarded(|| {
        let ((a_module, a_launch), (b_module, b_launch)) = (loaded(a)?, loaded(b)?);
        let verdict = same((&a_module, a.entry(), &a_launch), (&b_module, b.entry(), &b_launch));
        let bodies = [(&a_module, a.entry()), (&b_module, b.entry())]
            .map(|(module, name)| (module, entry(module, name).and_then(|f| f.body.as_ref())));
        Ok(match verdict.map_err(Fault::Input)? {
            Verdict::Same => Comparison::Same,
            Verdict::Different(found) => Comparison::Different(
                found.into_iter().map(|difference| Unlike::new(difference, bodies)).collect(),
            ),
            Verdict::Unknown(obstacle) => {
                // The verdict does not say which of the two it is in.
                let first = signature(&a_module, a.entry(), &a_launch).map_err(Fault::Input)?;
                let side = usize::from(first.obstacle.as_ref() != Some(&obstacle));
                let (module, body) = bodies[side];
                Comparison::Unknown(Stuck::new(obstacle, module, body))
            }
        })
    })
}

#[cfg(test)]
mod tests;
