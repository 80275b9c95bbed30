//! The signals of a thread that went wrong.
//!
//! # Invariants
//! - **Y1** While a call runs, the five signals of [`FATAL`] have our handler; after the last one
//!   they have again what they had, unless somebody replaced ours meanwhile.
//! - **Y2** On a thread that is not ours the handler passes the signal on to what it replaced.
//! # Held by
//! Y1: [`Installed`]. Y2: [`handler`].

use std::{
    cell::UnsafeCell,
    ffi::{c_int, c_void},
    mem::MaybeUninit,
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU32, Ordering},
    },
};

use super::slots::{self, Ending};

/// What a failed assertion, `abort` or a fault raises.
const FATAL: [(c_int, &str); 5] = [
    (libc::SIGABRT, "SIGABRT"),
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
];

/// What to tell the user of a call that a signal ended.
pub fn describe(number: i32) -> String {
    let name = FATAL.iter().find(|(n, _)| *n == number).map_or("a signal", |(_, name)| name);
    format!("the rewrite crashed with {name}")
}

/// The handlers that ours replaced.
struct Before(UnsafeCell<[MaybeUninit<libc::sigaction>; FATAL.len()]>);

// SAFETY: written under `RUNNING` while no handler of ours is installed, read by the handler only
// while it is.
unsafe impl Sync for Before {}

static BEFORE: Before = Before(UnsafeCell::new([MaybeUninit::uninit(); FATAL.len()]));

/// How many calls run.
static RUNNING: Mutex<usize> = Mutex::new(0);

/// How often the handler passed a signal on. Handlers that pass signals to each other end here.
static PASSED_ON: AtomicU32 = AtomicU32::new(0);
const MOST_PASSED_ON: u32 = 16;

/// Our handlers are installed while one of these lives.
pub struct Installed(());

impl Installed {
    /// Installs the handlers, unless another call has.
    pub fn new() -> Installed {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        if *running == 0 {
            PASSED_ON.store(0, Ordering::Relaxed);
            for (i, (number, _)) in FATAL.into_iter().enumerate() {
                // SAFETY: `RUNNING` is held and no handler of ours is installed for `number`, so
                // nobody reads the entry. It is filled before ours can run.
                unsafe {
                    let before = &mut (*BEFORE.0.get())[i];
                    libc::sigaction(number, ptr::null(), before.as_mut_ptr());
                    libc::sigaction(number, &ours(), before.as_mut_ptr());
                }
            }
        }
        *running += 1;
        Installed(())
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        *running -= 1;
        if *running > 0 {
            return;
        }
        for (i, (number, _)) in FATAL.into_iter().enumerate() {
            // SAFETY: the entry was filled when ours was installed.
            unsafe {
                let mut now = MaybeUninit::<libc::sigaction>::zeroed();
                libc::sigaction(number, ptr::null(), now.as_mut_ptr());
                if now.assume_init().sa_sigaction == ours().sa_sigaction {
                    libc::sigaction(number, (*BEFORE.0.get())[i].as_ptr(), ptr::null_mut());
                }
            }
        }
    }
}

fn ours() -> libc::sigaction {
    // SAFETY: all-zero bytes are a valid `sigaction`; the mask is then filled in place.
    unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_sigaction = handler as *const () as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        libc::sigemptyset(&mut action.sa_mask);
        action
    }
}

/// Parks a thread of ours, after telling its caller; passes other threads' signals on.
extern "C" fn handler(number: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    if let Some(slot) = slots::find() {
        slot.end(Ending::Signal(number));
        loop {
            // SAFETY: always allowed. Signals that end the process still do.
            unsafe { libc::pause() };
        }
    }
    let entry = FATAL.iter().position(|(n, _)| *n == number);
    let before = entry.map(|i| {
        // SAFETY: filled before this handler was installed.
        unsafe { (*BEFORE.0.get())[i].assume_init() }
    });
    match before {
        Some(before) if PASSED_ON.fetch_add(1, Ordering::Relaxed) < MOST_PASSED_ON => {
            // SAFETY: what the host installed, called as it asked to be.
            unsafe { pass_on(before, number, info, context) }
        }
        _ => die(number),
    }
}

/// # Safety
/// `before` must be what `sigaction` said of `number`.
unsafe fn pass_on(
    before: libc::sigaction,
    number: c_int,
    info: *mut libc::siginfo_t,
    context: *mut c_void,
) {
    match before.sa_sigaction {
        libc::SIG_DFL => die(number),
        libc::SIG_IGN => {}
        function if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: with `SA_SIGINFO` the handler has this type.
            let function = unsafe {
                std::mem::transmute::<usize, extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void)>(
                    function,
                )
            };
            function(number, info, context);
        }
        function => {
            // SAFETY: without `SA_SIGINFO` the handler has this type.
            let function = unsafe { std::mem::transmute::<usize, extern "C" fn(c_int)>(function) };
            function(number);
        }
    }
}

/// Ends the process as the signal does by default.
fn die(number: c_int) {
    // SAFETY: async-signal-safe. The signal is blocked while its handler runs; it takes effect
    // when the handler returns.
    unsafe {
        libc::signal(number, libc::SIG_DFL);
        libc::raise(number);
    }
}

/// A second stack for the handler, for when the first is exhausted.
pub struct AlternateStack(*mut c_void);

const ALTERNATE: usize = 64 << 10;

/// Prepares a thread of ours: a stack for the handler, and no signals but the fatal ones.
pub fn prepare_thread() -> AlternateStack {
    // SAFETY: a fresh mapping becomes this thread's alternate stack. It is unmapped only after it
    // is disabled, and never on a thread that is parked on it.
    unsafe {
        let mut mask = MaybeUninit::<libc::sigset_t>::uninit();
        libc::sigfillset(mask.as_mut_ptr());
        for (number, _) in FATAL {
            libc::sigdelset(mask.as_mut_ptr(), number);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, mask.as_ptr(), ptr::null_mut());
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let memory = libc::mmap(ptr::null_mut(), ALTERNATE, protection, flags, -1, 0);
        if memory != libc::MAP_FAILED {
            let stack = libc::stack_t { ss_sp: memory, ss_flags: 0, ss_size: ALTERNATE };
            libc::sigaltstack(&stack, ptr::null_mut());
        }
        AlternateStack(memory)
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        if self.0 != libc::MAP_FAILED {
            let (ss_sp, ss_flags) = (ptr::null_mut(), libc::SS_DISABLE);
            // SAFETY: the thread runs on its own stack, so the other may go.
            unsafe {
                libc::sigaltstack(&libc::stack_t { ss_sp, ss_flags, ss_size: 0 }, ptr::null_mut());
                libc::munmap(self.0, ALTERNATE);
            }
        }
    }
}
