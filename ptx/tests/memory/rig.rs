//! A few CTAs over one global buffer, driven thread by thread.

use bitstable_ptx::{
    ir::{Atomic, Ordering, Scalar, Scope, Space},
    memory::{
        CtaMemory, GlobalMemory, MemoryOptions, Update, WarpAccess, WarpCopy, space::SHARED_BASE,
    },
    report::{Finding, Report, Reports},
};

pub const WEAK: Ordering = Ordering::Weak;
pub const RELAXED: Ordering = Ordering::Relaxed(Scope::Gpu);
pub const ACQUIRE: Ordering = Ordering::Acquire(Scope::Gpu);
pub const RELEASE: Ordering = Ordering::Release(Scope::Gpu);

/// Bytes of the global buffer and of each CTA's shared memory.
pub const BYTES: u64 = 4096;

pub struct Rig {
    pub global: GlobalMemory,
    /// Address of the global buffer.
    pub base: u64,
    pub ctas: Vec<CtaMemory>,
    pc: u32,
}

/// A thread: CTA and number in it.
pub type Thread = (usize, u32);

impl Rig {
    pub fn new(ctas: usize, threads: u32) -> Self {
        Self::with(ctas, threads, MemoryOptions { races: true, strict: false, synchronised: true })
    }

    pub fn with(ctas: usize, threads: u32, options: MemoryOptions) -> Self {
        let mut global = GlobalMemory::default();
        let base = global.add_owned(&vec![0; BYTES as usize], 1024, "x");
        let ctas = (0..ctas as u32)
            .map(|cta| CtaMemory::new(cta, threads, BYTES as u32, 64, options))
            .collect();
        Self { global, base, ctas, pc: 0 }
    }

    /// The address of byte `at` of the buffer or of shared memory.
    pub fn address(&self, space: Space, at: u64) -> u64 {
        match space {
            Space::Shared => u64::from(SHARED_BASE) + at,
            _ => self.base + at,
        }
    }

    fn pc(&mut self) -> u32 {
        self.pc += 1;
        self.pc
    }

    pub fn ld(&mut self, thread: Thread, space: Space, at: u64, ordering: Ordering) -> u64 {
        self.ld_wide(thread, space, at, ordering, 4)
    }

    pub fn ld_wide(
        &mut self,
        (cta, thread): Thread,
        space: Space,
        at: u64,
        ordering: Ordering,
        width: u32,
    ) -> u64 {
        let addresses = [self.address(space, at); 32];
        let mut rows = [[0; 32]];
        let access = access(self.pc(), thread, space, ordering, &addresses, width);
        self.ctas[cta].load(&self.global, &access, &mut rows);
        rows[0][thread as usize % 32]
    }

    pub fn st(&mut self, thread: Thread, space: Space, at: u64, ordering: Ordering, value: u64) {
        self.st_wide(thread, space, at, ordering, 4, value);
    }

    pub fn st_wide(
        &mut self,
        (cta, thread): Thread,
        space: Space,
        at: u64,
        ordering: Ordering,
        width: u32,
        value: u64,
    ) {
        let addresses = [self.address(space, at); 32];
        let access = access(self.pc(), thread, space, ordering, &addresses, width);
        self.ctas[cta].store(&self.global, &access, &[[value; 32]]);
    }

    /// A warp's store of 4 bytes a lane, lane `l` at byte `at(l)`.
    pub fn st_warp(
        &mut self,
        cta: usize,
        warp: u32,
        mask: u32,
        space: Space,
        at: impl Fn(u64) -> u64,
        value: impl Fn(u64) -> u64,
    ) {
        let addresses = std::array::from_fn(|lane| self.address(space, at(lane as u64)));
        let one = access(self.pc(), warp * 32, space, WEAK, &addresses, 4);
        let rows = [std::array::from_fn(|lane| value(lane as u64))];
        self.ctas[cta].store(&self.global, &WarpAccess { mask, ..one }, &rows);
    }

    pub fn ld_warp(
        &mut self,
        cta: usize,
        warp: u32,
        mask: u32,
        space: Space,
        at: impl Fn(u64) -> u64,
    ) -> [u64; 32] {
        let addresses = std::array::from_fn(|lane| self.address(space, at(lane as u64)));
        let one = access(self.pc(), warp * 32, space, WEAK, &addresses, 4);
        let mut rows = [[0; 32]];
        self.ctas[cta].load(&self.global, &WarpAccess { mask, ..one }, &mut rows);
        rows[0]
    }

    #[expect(clippy::too_many_arguments, reason = "one instruction, spelled out")]
    pub fn atom(
        &mut self,
        (cta, thread): Thread,
        space: Space,
        at: u64,
        ordering: Ordering,
        (op, ty): (Atomic, Scalar),
        operand: u64,
        compare: u64,
    ) -> u64 {
        let addresses = [self.address(space, at); 32];
        let access = access(self.pc(), thread, space, ordering, &addresses, ty.bytes());
        let (operands, news) = match op {
            Atomic::Cas => ([[compare; 32]], vec![[operand; 32]]),
            _ => ([[operand; 32]], Vec::new()),
        };
        let update = Update { op, ty, operands: &operands, news: &news, result_used: true };
        let mut old = [[0; 32]];
        self.ctas[cta].atomic(&self.global, &access, &update, &mut old);
        old[0][thread as usize % 32]
    }

    pub fn fence(&mut self, (cta, thread): Thread, scope: Scope) {
        self.ctas[cta].fence(thread / 32, 1 << (thread % 32), Ordering::AcqRel(scope));
    }

    /// A full barrier of `threads` threads.
    pub fn barrier(&mut self, cta: usize, threads: u32) {
        let warps: Vec<_> = (0..threads.div_ceil(32))
            .map(|warp| (warp, u32::MAX >> (32 - (threads - warp * 32).min(32))))
            .collect();
        for &(warp, mask) in &warps {
            self.ctas[cta].barrier_arrive(0, warp, mask, false);
        }
        self.ctas[cta].barrier_complete(0, &warps);
    }

    /// Copies `bytes` bytes from global byte `from` to shared byte `to`.
    pub fn copy(&mut self, (cta, thread): Thread, to: u64, from: u64, bytes: u32, source: u32) {
        let copy = WarpCopy {
            pc: self.pc(),
            warp: thread / 32,
            mask: 1 << (thread % 32),
            to: &[u64::from(SHARED_BASE) + to; 32],
            from: &[self.base + from; 32],
            space: Space::Global,
            bytes,
            source_bytes: &[source; 32],
        };
        self.ctas[cta].cp_async(&self.global, &copy);
    }

    pub fn commit(&mut self, (cta, thread): Thread) {
        self.ctas[cta].cp_async_commit(thread / 32, 1 << (thread % 32));
    }

    pub fn wait(&mut self, (cta, thread): Thread, keep: Option<u32>) {
        self.ctas[cta].cp_async_wait(thread / 32, 1 << (thread % 32), keep);
    }

    /// All reports, CTA by CTA.
    pub fn reports(self) -> Reports {
        let mut all = Reports::new(false);
        self.ctas.into_iter().for_each(|cta| all.merge(cta.into_reports()));
        all
    }

    /// One letter a report: `R`ace, `S`ame bytes, arrival `O`rder, out of `B`ounds, misaligned
    /// `A`ddress, `U`ninitialised, `W`rite of read-only, `?` otherwise.
    pub fn found(self) -> String {
        self.reports().iter().map(letter).collect()
    }

    /// Occurrences of races and same-byte writes so far.
    pub fn races_so_far(&mut self) -> u64 {
        let ctas = self.ctas.iter_mut();
        ctas.flat_map(|cta| cta.reports().iter())
            .filter(|report| matches!(letter(report), 'R' | 'S'))
            .map(|report| report.count)
            .sum()
    }
}

fn access(
    pc: u32,
    thread: u32,
    space: Space,
    ordering: Ordering,
    addresses: &[u64; 32],
    width: u32,
) -> WarpAccess<'_> {
    let (warp, mask) = (thread / 32, 1 << (thread % 32));
    WarpAccess { pc, warp, mask, space, ordering, addresses, width, count: 1 }
}

fn letter(report: &Report) -> char {
    match report.finding {
        Finding::Race { .. } => 'R',
        Finding::SameBytes { .. } => 'S',
        Finding::ArrivalOrder { .. } => 'O',
        Finding::OutOfBounds { .. } => 'B',
        Finding::Misaligned { .. } => 'A',
        Finding::Uninitialised { .. } => 'U',
        Finding::ReadOnly { .. } => 'W',
        _ => '?',
    }
}
