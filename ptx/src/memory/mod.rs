//! The memory of a launch, and the watch over it.
//!
//! # Idea
//! [`GlobalMemory`] has the buffers that a program's launches share, [`CtaMemory`] the shared and
//! local memory of one CTA, and all that is needed to tell which of its accesses nothing orders: a
//! happens-before race detector after the PTX memory model. A whole warp accesses at once, so that
//! the price of the watch is one a warp.
//! # Invariants
//! - **M1** Whatever the addresses, an access ends: what is wrong becomes a finding, a faulting lane
//!   reads 0 and writes nothing.
//! - **M2** CTAs of a launch that does not synchronise may run on several threads at once, each
//!   with its own `CtaMemory` and one `GlobalMemory`.
//! # Not here
//! Which threads run when, and what instructions mean (`exec`). Shuffles carry no order: the
//! machine does not mention them here.

mod access;
mod atomic;
mod bytes;
mod clock;
mod copy;
mod global;
mod local;
mod mbarrier;
mod peek;
mod shadow;
mod shared;
pub mod space;
mod sync;
mod watch;

use rustc_hash::FxHashMap;

pub use self::{
    atomic::Update,
    copy::WarpCopy,
    global::GlobalMemory,
    mbarrier::{ArriveKind, Phase},
};
use self::{
    clock::Meeting, copy::Copies, local::Local, shadow::Strength, shared::Shared, watch::Watch,
};
use crate::{
    exec::registers::{LANES, Mask},
    ir::{Ordering, Space},
    report::Reports,
};

/// One memory instruction of a warp.
#[derive(Clone, Copy, Debug)]
pub struct WarpAccess<'a> {
    pub pc: u32,
    /// Lane `l` is thread `warp * 32 + l` of the CTA.
    pub warp: u32,
    pub mask: Mask,
    pub space: Space,
    pub ordering: Ordering,
    pub addresses: &'a [u64; LANES],
    /// Bytes of an element: 1, 2, 4 or 8.
    pub width: u32,
    /// Elements of a lane, one after another: a power of two up to 8. 128 bits are two of 8 bytes.
    pub count: u32,
}

impl WarpAccess<'_> {
    #[inline(always)]
    fn bytes(&self) -> u64 {
        u64::from(self.width * self.count)
    }

    fn strong(&self) -> bool {
        Strength::of(self.ordering) != Strength::Weak
    }
}

/// What is watched.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoryOptions {
    /// Look for races; without, only bounds, alignment and uninitialised bytes are checked.
    pub races: bool,
    /// Unordered writes of equal bytes are errors.
    pub strict: bool,
    /// Some instruction of the launch may order CTAs: an atomic, a fence, a strong access of
    /// global memory. Where none does, say so: the watch is then cheaper.
    pub synchronised: bool,
}

/// The memory of one resident CTA, and the watch over what its threads do to any memory.
#[derive(Debug)]
pub struct CtaMemory {
    watch: Watch,
    shared: Shared,
    local: Local,
    copies: Copies,
    mbarriers: FxHashMap<u32, mbarrier::Object>,
    /// By barrier number.
    meetings: FxHashMap<u32, Meeting>,
}

impl CtaMemory {
    /// `shared_bytes`, static and dynamic, begin at [`space::SHARED_BASE`]. A CTA has up to 1024
    /// threads.
    pub fn new(
        cta: u32,
        threads: u32,
        shared_bytes: u32,
        local_bytes_per_thread: u32,
        options: MemoryOptions,
    ) -> Self {
        Self {
            watch: Watch::new(cta, threads, options),
            shared: Shared::new(shared_bytes),
            local: Local::new(threads, local_bytes_per_thread),
            copies: Copies::new(threads),
            mbarriers: FxHashMap::default(),
            meetings: FxHashMap::default(),
        }
    }

    /// Threads exit: what they have in flight lands.
    pub fn finish(&mut self, warp: u32, mask: Mask) {
        self.cp_async_wait(warp, mask, None);
    }

    /// What was found so far; the machine adds its own findings.
    pub fn reports(&mut self) -> &mut Reports {
        &mut self.watch.reports
    }

    pub fn into_reports(self) -> Reports {
        self.watch.reports
    }
}
