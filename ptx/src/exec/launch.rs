//! A launch: a program, a grid, memory; and what came of it.
//!
//! # Idea
//! CTAs that cannot speak to each other (no atomics, no ordered accesses outside shared memory) run
//! in parallel, each alone: whatever order they run in, a correct kernel gives the same bytes, and
//! an incorrect one races, which the memory sees. CTAs that can speak run on one thread, in turns
//! that the schedule decides, so that a run can be repeated.
//! # Invariants
//! - **L1** Memory is bounded by the buffers, their shadows, and the resident CTAs.
//! - **L2** A launch leaves global memory to the next one.

use std::{
    collections::VecDeque,
    sync::atomic::{AtomicBool, Ordering as Atomically},
};

use rayon::prelude::*;

use super::{
    cta::{Counts, Cta, Turn},
    program::Program,
    random::Random,
    registers::{LANES, Registers},
    schedule::Schedule,
};
use crate::{
    memory::{GlobalMemory, MemoryOptions},
    num::mma::MmaModel,
    report::Reports,
    symbol::{Limit, Symbols},
};

/// Threads a CTA may have.
const MOST_THREADS: u64 = 1024;
/// CTAs a launch may have.
const MOST_CTAS: u64 = 1 << 31;
/// CTAs that are resident together, at most, when they may wait for each other, and their registers.
const MOST_RESIDENT: u64 = 256;
const MOST_RESIDENT_BYTES: u64 = 4 << 30;
/// Bytes of shared memory that a CTA may have.
const MOST_SHARED: u64 = 1 << 20;
/// Bytes of registers that a CTA may need.
const MOST_REGISTER_BYTES: u64 = 2 << 30;
/// Bytes of local memory that the threads of a CTA may have.
const MOST_LOCAL_BYTES: u64 = 1 << 28;

/// How a launch is run.
#[derive(Clone, Debug)]
pub struct RunOptions {
    pub schedule: Schedule,
    /// Watch for data races.
    pub races: bool,
    /// Notes about replicated stores are errors.
    pub strict: bool,
    /// Warp steps that one CTA may run.
    pub step_limit: u64,
    /// Host threads; 0: as rayon decides.
    pub jobs: usize,
    /// What `mma.sync` computes.
    pub mma: MmaModel,
    /// Streaming multiprocessors that `%nsmid` tells of.
    pub multiprocessors: u32,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self {
            schedule: Schedule::Forward,
            races: true,
            strict: false,
            step_limit: 1 << 28,
            jobs: 0,
            mma: MmaModel::Exact,
            multiprocessors: 132,
        }
    }
}

/// What to launch, besides the program and memory.
#[derive(Clone, Debug)]
pub struct LaunchRequest {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Bytes of `.extern .shared` memory.
    pub dynamic_shared: u32,
    /// The parameter block; each parameter at its [`Param::offset`](super::program::Param).
    pub params: Vec<u8>,
    pub options: RunOptions,
}

/// Why a launch did not begin.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("a CTA of {0:?} threads: between 1 and {MOST_THREADS} are possible")]
    Threads([u32; 3]),
    #[error("the kernel was compiled for CTAs of {required:?} threads, not {given:?}")]
    RequiredThreads { required: [u32; 3], given: [u32; 3] },
    #[error("a grid of {0:?} CTAs: between 1 and {MOST_CTAS} are possible")]
    Grid([u32; 3]),
    #[error("the parameter block has {given} bytes, the kernel takes {expected}")]
    Params { given: usize, expected: u32 },
    #[error("{bytes} bytes of shared memory, more than the {most} that are executed")]
    Shared { bytes: u64, most: u64 },
    #[error("the registers of a CTA take {bytes} bytes, more than the {most} that are executed")]
    Registers { bytes: u64, most: u64 },
    #[error(
        "the local memory of a CTA takes {bytes} bytes, more than the {most} that are executed"
    )]
    Local { bytes: u64, most: u64 },
    #[error("the host gives no threads: {0}")]
    Host(String),
}

/// What a launch counted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug, serde::Serialize)]
pub struct Statistics {
    pub ctas: u64,
    /// Instructions that warps ran.
    pub warp_instructions: u64,
    /// Instructions that threads ran: guards and masks counted out.
    pub thread_instructions: u64,
    /// Registers of a warp, in bytes.
    pub register_bytes: u64,
}

/// What came of a launch. Memory holds its results.
#[derive(Debug)]
pub struct Outcome {
    pub reports: Reports,
    pub statistics: Statistics,
    /// Lines that the kernel printed, in the schedule's order.
    pub printed: Vec<String>,
    /// The expressions, where the launch was given some to carry.
    pub symbols: Option<Symbols>,
    /// The expressions grew too many, and the launch did not finish.
    pub symbol_limit: Option<Limit>,
    /// The host asked to stop, and the launch did not finish.
    pub cancelled: bool,
}

/// What all CTAs of a launch share.
pub(crate) struct Context<'a> {
    pub request: &'a LaunchRequest,
    pub memory: &'a GlobalMemory,
    pub template: Registers,
    pub memory_options: MemoryOptions,
    pub schedule: Schedule,
    pub cancel: Option<&'a AtomicBool>,
}

impl Context<'_> {
    pub fn threads(&self) -> u32 {
        self.request.block.iter().product()
    }

    /// Coordinates of a CTA in the grid.
    pub fn coordinates(&self, index: u32) -> [u32; 3] {
        let [x, y, _] = self.request.grid;
        [index % x, index / x % y, index / x / y]
    }

    pub fn multiprocessors(&self) -> u32 {
        self.request.options.multiprocessors.max(1)
    }

    pub fn cancelled(&self) -> bool {
        self.cancel.is_some_and(|flag| flag.load(Atomically::Relaxed))
    }

    /// The generator of a CTA's own choices.
    pub fn random(&self, index: u32) -> Random {
        let seed = if let Schedule::Random(seed) = self.schedule { seed } else { 0 };
        let mut mix = Random::new(seed ^ u64::from(index).wrapping_mul(0xd6e8_feb8_6659_fd93));
        Random::new(mix.next())
    }
}

/// Runs a launch to its end. Findings are in the outcome; memory holds the results.
///
/// `symbols` makes the run carry expressions beside the bits; it then runs on one host thread.
pub fn run(
    program: &Program,
    request: &LaunchRequest,
    memory: &mut GlobalMemory,
    symbols: Option<Symbols>,
    cancel: Option<&AtomicBool>,
) -> Result<Outcome, LaunchError> {
    check(program, request)?;
    memory.begin_launch();
    let variables: Vec<u64> = program
        .variables
        .iter()
        .map(|v| memory.add_owned(&v.bytes, u64::from(v.align), &v.name))
        .collect();
    let mut template = program.template.clone();
    for address in &program.addresses {
        let value = variables[address.variable].wrapping_add_signed(address.offset);
        for lane in 0..LANES {
            template.set_lane(address.slot, lane, value);
        }
    }
    let context = Context {
        request,
        memory,
        template,
        memory_options: MemoryOptions {
            races: request.options.races,
            strict: request.options.strict,
            synchronised: program.communicates,
        },
        schedule: request.options.schedule,
        cancel,
    };
    let count = request.grid.iter().product();
    let results = if symbols.is_some() || program.communicates {
        in_turns(program, &context, count, symbols)
    } else {
        in_parallel(program, &context, count)?
    };
    let outcome = results.finish(program, &context);
    for address in variables {
        memory.remove(address);
    }
    Ok(outcome)
}

fn check(program: &Program, request: &LaunchRequest) -> Result<(), LaunchError> {
    let product = |sizes: [u32; 3]| sizes.iter().map(|&size| u128::from(size)).product::<u128>();
    let threads = product(request.block);
    if threads == 0 || threads > u128::from(MOST_THREADS) {
        return Err(LaunchError::Threads(request.block));
    }
    let given = request.block;
    if let Some(required) = program.required_threads()
        && product(required) != threads
    {
        return Err(LaunchError::RequiredThreads { required, given });
    }
    if let Some(required) = program.maximum_threads()
        && product(required) < threads
    {
        return Err(LaunchError::RequiredThreads { required, given });
    }
    let ctas = product(request.grid);
    if ctas == 0 || ctas > u128::from(MOST_CTAS) {
        return Err(LaunchError::Grid(request.grid));
    }
    if request.params.len() != program.param_bytes as usize {
        let given = request.params.len();
        return Err(LaunchError::Params { given, expected: program.param_bytes });
    }
    let (bytes, most) =
        (u64::from(program.static_shared) + u64::from(request.dynamic_shared), MOST_SHARED);
    if bytes > most {
        return Err(LaunchError::Shared { bytes, most });
    }
    let warps = (threads as u64).div_ceil(LANES as u64);
    let bytes = warps * register_bytes(&program.template);
    if bytes > MOST_REGISTER_BYTES {
        return Err(LaunchError::Registers { bytes, most: MOST_REGISTER_BYTES });
    }
    let bytes = threads as u64 * u64::from(program.local_bytes);
    if bytes > MOST_LOCAL_BYTES {
        return Err(LaunchError::Local { bytes, most: MOST_LOCAL_BYTES });
    }
    Ok(())
}

/// Bytes of one warp's registers.
fn register_bytes(registers: &Registers) -> u64 {
    let (words, wides) = (registers.words.len(), registers.wides.len());
    (LANES * (4 * words + 8 * wides) + 4 * registers.flags.len()) as u64
}

/// What CTAs left, in the order of their numbers.
#[derive(Default)]
struct Results {
    counts: Counts,
    reports: Option<Reports>,
    printed: Vec<String>,
    symbols: Option<Symbols>,
    limit: Option<Limit>,
}

impl Results {
    fn add(&mut self, cta: Cta<'_>) {
        self.counts.warp_steps += cta.counts.warp_steps;
        self.counts.thread_steps += cta.counts.thread_steps;
        self.printed.extend(cta.printed);
        self.limit = self.limit.or(cta.limit);
        let reported = cta.memory.into_reports();
        match &mut self.reports {
            Some(reports) => reports.merge(reported),
            None => self.reports = Some(reported),
        }
    }

    fn merge(mut self, other: Results) -> Results {
        self.counts.warp_steps += other.counts.warp_steps;
        self.counts.thread_steps += other.counts.thread_steps;
        self.printed.extend(other.printed);
        self.reports = match (self.reports, other.reports) {
            (Some(mut mine), Some(theirs)) => {
                mine.merge(theirs);
                Some(mine)
            }
            (mine, theirs) => mine.or(theirs),
        };
        self
    }

    fn finish(self, program: &Program, context: &Context<'_>) -> Outcome {
        let strict = context.request.options.strict;
        Outcome {
            reports: self.reports.unwrap_or_else(|| Reports::new(strict)),
            statistics: Statistics {
                ctas: context.request.grid.iter().map(|&n| u64::from(n)).product(),
                warp_instructions: self.counts.warp_steps,
                thread_instructions: self.counts.thread_steps,
                register_bytes: register_bytes(&program.template),
            },
            printed: self.printed,
            symbols: self.symbols,
            symbol_limit: self.limit,
            cancelled: context.cancelled(),
        }
    }
}

/// CTAs that do not speak to each other, on all host threads.
fn in_parallel(
    program: &Program,
    context: &Context<'_>,
    count: u32,
) -> Result<Results, LaunchError> {
    let one = |index: u32| {
        let index = match context.schedule {
            Schedule::Forward | Schedule::Random(_) => index,
            Schedule::Reversed => count - 1 - index,
        };
        let mut results = Results::default();
        if !context.cancelled() {
            let mut cta = Cta::new(program, context, index, None);
            while cta.turn(u64::MAX) == Turn::Yielded {}
            results.add(cta);
        }
        results
    };
    let jobs = context.request.options.jobs;
    if jobs == 1 || count == 1 {
        return Ok((0..count).map(one).fold(Results::default(), Results::merge));
    }
    let all = || (0..count).into_par_iter().map(one).reduce(Results::default, Results::merge);
    if jobs == 0 {
        return Ok(all());
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(jobs)
        .build()
        .map_err(|error| LaunchError::Host(error.to_string()))?;
    Ok(pool.install(all))
}

/// CTAs that may speak to each other, on one host thread.
///
/// A CTA that uses up its turn may be waiting for one that has not begun: one more is admitted.
fn in_turns(
    program: &Program,
    context: &Context<'_>,
    count: u32,
    mut symbols: Option<Symbols>,
) -> Results {
    let mut random = context.random(u32::MAX);
    let mut waiting: VecDeque<u32> = match context.schedule {
        Schedule::Forward => (0..count).collect(),
        Schedule::Reversed => (0..count).rev().collect(),
        Schedule::Random(_) => {
            let mut order: Vec<u32> = (0..count).collect();
            random.shuffle(&mut order);
            order.into()
        }
    };
    let traced = symbols.is_some();
    let at_first = if traced {
        1
    } else if matches!(context.schedule, Schedule::Random(_)) {
        16
    } else {
        1
    };
    let bytes = register_bytes(&program.template) * u64::from(context.threads()).div_ceil(32);
    let most = (MOST_RESIDENT_BYTES / bytes.max(1)).clamp(1, MOST_RESIDENT) as usize;
    let mut resident: VecDeque<Cta<'_>> = VecDeque::new();
    let mut results = Results::default();
    while !context.cancelled() {
        while resident.len() < at_first.min(most)
            && let Some(index) = waiting.pop_front()
        {
            resident.push_back(Cta::new(program, context, index, symbols.take()));
        }
        if resident.is_empty() {
            break;
        }
        let chosen = match context.schedule {
            Schedule::Forward | Schedule::Reversed => 0,
            Schedule::Random(_) => random.below(resident.len() as u64) as usize,
        };
        let Some(mut cta) = resident.remove(chosen) else { break };
        let turn = cta.turn(context.schedule.cta_quantum(&mut random));
        match turn {
            Turn::Finished => {
                symbols = cta.symbols.take();
                if let Some(symbols) = &mut symbols {
                    symbols.retire(cta.index);
                }
                results.add(cta);
            }
            Turn::Yielded => {
                resident.push_back(cta);
                if resident.len() < most
                    && !traced
                    && let Some(index) = waiting.pop_front()
                {
                    resident.push_back(Cta::new(program, context, index, None));
                }
            }
        }
    }
    for mut cta in resident {
        symbols = symbols.or(cta.symbols.take());
        results.add(cta);
    }
    results.symbols = symbols;
    results
}
