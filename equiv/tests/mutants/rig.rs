//! Runs kernels of one case on the executor, always on the same addresses.
//!
//! # Invariants
//! - **R1** A launch begins with fresh buffers at addresses that stay, with memory between them that
//!   nothing may touch: an address that gets into the data is the same in every run.

use std::hash::{DefaultHasher, Hash, Hasher};

use bitstable_ptx::{
    exec::{LaunchRequest, Program, RunOptions, run},
    ir::Module,
    memory::GlobalMemory,
    report::Severity,
};

use super::{case::Case, draw};

const GUARD: usize = 1 << 14;

/// What was seen of a kernel.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Seen {
    /// A digest of the bytes of all buffers after all draws.
    Bytes(u64),
    /// Kinds of errors on the first draw that had some.
    Errors(Vec<&'static str>),
}

pub struct Rig<'c> {
    case: &'c Case,
    arena: Vec<u128>,
    /// Bytes into the arena, of each buffer.
    places: Vec<usize>,
    /// By draw and buffer.
    contents: Vec<Vec<Vec<u8>>>,
    steps: u64,
}

impl<'c> Rig<'c> {
    pub fn new(case: &'c Case, draws: usize, seed: u64) -> Self {
        let total: usize = case.buffers.iter().map(|b| b.bytes() + 2 * GUARD).sum();
        let arena = vec![0u128; (total + 4 * GUARD) / 16];
        let base = arena.as_ptr() as usize;
        let mut at = GUARD + base.wrapping_neg() % GUARD;
        let mut places = Vec::new();
        for buffer in &case.buffers {
            places.push(at);
            at = (at + buffer.bytes()).next_multiple_of(256) + GUARD;
        }
        let contents = (0..draws)
            .map(|draw| {
                let buffers = case.buffers.iter().enumerate();
                buffers.map(|(at, buffer)| draw::contents(buffer, at, draw, seed)).collect()
            })
            .collect();
        Self { case, arena, places, contents, steps: 1 << 22 }
    }

    /// Runs a kernel on all draws; `None` where it is none that can be launched.
    pub fn run(&mut self, module: &Module) -> Option<Seen> {
        let program = Program::new(module, None).ok()?;
        let base = self.arena.as_mut_ptr().cast::<u8>();
        let mut params = vec![0; program.param_bytes() as usize];
        let mut places = self.places.iter();
        let scratch = program.params().len().saturating_sub(2);
        for (number, param) in program.params().iter().enumerate() {
            let value = match self.case.scalars.get(&(number as u32)) {
                Some(bits) => *bits,
                None if number >= scratch => 0,
                None => base as u64 + *places.next()? as u64,
            };
            let place = params.get_mut(param.offset as usize..)?;
            let bytes = (param.bytes as usize).min(8).min(place.len());
            place[..bytes].copy_from_slice(&value.to_le_bytes()[..bytes]);
        }
        let mut hasher = DefaultHasher::new();
        for draw in 0..self.contents.len() {
            let mut memory = GlobalMemory::default();
            for (number, place) in self.places.iter().enumerate() {
                let bytes = &self.contents[draw][number];
                // SAFETY: places lie in the arena, which outlives the memory.
                let start = unsafe { base.add(*place) };
                // SAFETY: the arena has so many bytes there, and only this thread knows it.
                unsafe { start.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
                // SAFETY: as above; nobody else touches the bytes while the launch runs.
                unsafe { memory.add_host(start, bytes.len(), true, "buffer") };
            }
            let request = LaunchRequest {
                grid: self.case.grid,
                block: program.required_threads().unwrap_or([self.case.threads, 1, 1]),
                dynamic_shared: self.case.shared,
                params: params.clone(),
                options: RunOptions {
                    races: draw == 0,
                    jobs: 1,
                    step_limit: self.steps,
                    ..RunOptions::default()
                },
            };
            let outcome = run(&program, &request, &mut memory, None, None).ok()?;
            if outcome.reports.errors() > 0 {
                let errors = outcome.reports.iter().filter(|r| r.severity == Severity::Error);
                let mut kinds: Vec<&'static str> = errors.map(|r| kind(&r.finding)).collect();
                kinds.sort_unstable();
                kinds.dedup();
                return Some(Seen::Errors(kinds));
            }
            for (place, buffer) in self.places.iter().zip(&self.case.buffers) {
                let mut bytes = memory.bytes(base as u64 + *place as u64).unwrap_or_default();
                draw::canonical(buffer.element, &mut bytes);
                bytes.hash(&mut hasher);
            }
            // A kernel that runs much longer than the first one does not end.
            if self.steps == 1 << 22 {
                self.steps = (outcome.statistics.warp_instructions * 4 + 1000).min(1 << 21);
            }
        }
        Some(Seen::Bytes(hasher.finish()))
    }
}

fn kind(finding: &bitstable_ptx::report::Finding) -> &'static str {
    use bitstable_ptx::report::Finding::*;
    match finding {
        Race { .. } => "race",
        SameBytes { .. } => "same bytes",
        ArrivalOrder { .. } => "arrival order",
        OutOfBounds { .. } => "out of bounds",
        Misaligned { .. } => "misaligned",
        Uninitialised { .. } => "uninitialised",
        ReadOnly { .. } => "read only",
        BarrierStuck { .. } => "barrier stuck",
        BarrierDiverged { .. } => "barrier diverged",
        MembersDisagree { .. } => "members disagree",
        LaneAbsent { .. } => "lane absent",
        StepLimit { .. } => "step limit",
        Trap { .. } => "trap",
        BadOperand { .. } => "bad operand",
    }
}
