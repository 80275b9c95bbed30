//! Which threads are ours, and how their callers learn what became of them.
//!
//! # Invariants
//! - **X1** Whatever the signal handler calls here is async-signal-safe: atomics and the `futex`
//!   system call, no lock, no allocation, no thread-local.
//! # Held by
//! X1: the handler calls [`find`], [`Slot::end`] and nothing else.

use std::{
    sync::Arc,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering},
};

/// How a call ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The work returned or panicked.
    Returned,
    /// No place was left in the table.
    Crowded,
    /// A signal ended it.
    Signal(i32),
}

/// A word that the caller waits on: 0 while the work runs.
#[derive(Debug)]
pub struct Slot {
    state: AtomicU32,
}

const RUNNING: u32 = 0;
const RETURNED: u32 = 1;
const CROWDED: u32 = 2;
const SIGNALS: u32 = 100;

impl Slot {
    /// For work that is about to run.
    pub fn new() -> Slot {
        Slot { state: AtomicU32::new(RUNNING) }
    }

    /// Tells the caller. Async-signal-safe.
    pub fn end(&self, ending: Ending) {
        let state = match ending {
            Ending::Returned => RETURNED,
            Ending::Crowded => CROWDED,
            Ending::Signal(number) => SIGNALS + number.unsigned_abs(),
        };
        self.state.store(state, Ordering::Release);
        // SAFETY: the address is valid; waking wakes whoever waits there, or nobody.
        unsafe {
            let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, self.state.as_ptr(), operation, 1);
        }
    }

    /// Waits for the end.
    pub fn wait(&self) -> Ending {
        loop {
            match self.state.load(Ordering::Acquire) {
                RUNNING => {}
                RETURNED => return Ending::Returned,
                CROWDED => return Ending::Crowded,
                state => return Ending::Signal((state - SIGNALS) as i32),
            }
            let forever = std::ptr::null::<libc::timespec>();
            // SAFETY: the address is valid; a spurious return goes round the loop.
            unsafe {
                let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
                libc::syscall(libc::SYS_futex, self.state.as_ptr(), operation, RUNNING, forever);
            }
        }
    }
}

/// More calls at once than a machine has use for.
const MOST: usize = 1024;

struct Entry {
    /// The thread's `pthread_self`, or 0.
    thread: AtomicUsize,
    slot: AtomicPtr<Slot>,
}

static TABLE: [Entry; MOST] =
    [const { Entry { thread: AtomicUsize::new(0), slot: AtomicPtr::new(std::ptr::null_mut()) } };
        MOST];

/// The slot of the calling thread, if it is ours. Async-signal-safe.
pub fn find() -> Option<&'static Slot> {
    let me = this_thread();
    let entry = TABLE.iter().find(|e| e.thread.load(Ordering::Acquire) == me)?;
    // SAFETY: the entry is this thread's own: `Registered` set the slot before the thread's name,
    // keeps the slot alive, and clears the entry on this same thread.
    unsafe { entry.slot.load(Ordering::Acquire).as_ref() }
}

fn this_thread() -> usize {
    // SAFETY: always allowed; the value is nonzero on Linux.
    unsafe { libc::pthread_self() as usize }
}

/// The calling thread is in the table until this is dropped.
///
/// A thread that is parked never drops it, so its place is lost; so is its stack.
pub struct Registered {
    entry: &'static Entry,
    _slot: Arc<Slot>,
}

impl Registered {
    /// Takes a place in the table, if one is free.
    pub fn new(slot: &Arc<Slot>) -> Option<Registered> {
        let taken = std::ptr::dangling_mut::<Slot>();
        let free = |entry: &&'static Entry| {
            let (null, order) = (std::ptr::null_mut(), Ordering::AcqRel);
            entry.slot.compare_exchange(null, taken, order, Ordering::Relaxed).is_ok()
        };
        let entry = TABLE.iter().find(free)?;
        entry.slot.store(Arc::as_ptr(slot).cast_mut(), Ordering::Release);
        entry.thread.store(this_thread(), Ordering::Release);
        Some(Registered { entry, _slot: Arc::clone(slot) })
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.entry.thread.store(0, Ordering::Release);
        self.entry.slot.store(std::ptr::null_mut(), Ordering::Release);
    }
}
