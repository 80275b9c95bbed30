//! Running a rewrite so that nothing which goes wrong in it reaches the host's process.
//!
//! # Idea
//! Each call has a thread of its own, with a stack that hostile nesting does not exhaust. A panic
//! is caught. An abort or a fault inside MLIR raises a signal on that thread; our handler tells the
//! caller and parks the thread for ever: its stack and what it held are leaked, the process lives.
//! # Invariants
//! - **W1** The handlers act on our threads alone. On every other thread they do what the host's
//!   own handlers, which they replaced, would have done.
//! - **W2** The handlers are there only while a call runs ([`signals`]).
//! - **W3** A thread of ours takes no other signal, so the host's run where they always did.
//! # Limits
//! A fault while the allocator's lock is held leaves it held. The allocator keeps one arena a
//! thread where it can, so the host seldom waits for it.

mod signals;
mod slots;

use std::{
    any::Any,
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::{Arc, Mutex, Once, PoisonError},
    thread,
};

use slots::{Ending, Slot};

/// How a call ended.
pub enum Outcome<T> {
    /// It returned.
    Done(T),
    /// It did not; why.
    Failed(String),
}

/// The stack of a thread of ours. Address space only, until it is touched.
const STACK: usize = 64 << 20;

thread_local! {
    /// On our threads: what a panic said. `None` on the host's.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Runs `work` on a thread of its own and waits for it, whatever becomes of it.
pub fn run<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Outcome<T> {
    quiet_panics();
    let installed = signals::Installed::new();
    let slot = Arc::new(Slot::new());
    let result = Arc::new(Mutex::new(None));
    let spawned = {
        let (slot, result) = (Arc::clone(&slot), Arc::clone(&result));
        thread::Builder::new().name("bitstable".into()).stack_size(STACK).spawn(move || {
            let Some(registered) = slots::Registered::new(&slot) else {
                return slot.end(Ending::Crowded);
            };
            let stack = signals::prepare_thread();
            let outcome = caught(work);
            *result.lock().unwrap_or_else(PoisonError::into_inner) = Some(outcome);
            drop(stack);
            drop(registered);
            slot.end(Ending::Returned);
        })
    };
    let thread = match spawned {
        Ok(thread) => thread,
        Err(error) => return Outcome::Failed(format!("no thread to work on: {error}")),
    };
    let ending = slot.wait();
    let outcome = match ending {
        Ending::Returned => {
            // Nothing is left to go wrong on it; a thread that is parked is never joined.
            let _ = thread.join();
            let taken = result.lock().unwrap_or_else(PoisonError::into_inner).take();
            match taken {
                Some(Ok(value)) => Outcome::Done(value),
                Some(Err(message)) => Outcome::Failed(format!("panic: {message}")),
                None => Outcome::Failed("the work was lost".into()),
            }
        }
        Ending::Crowded => Outcome::Failed("too many calls at once".into()),
        Ending::Signal(number) => Outcome::Failed(signals::describe(number)),
    };
    drop(installed);
    outcome
}

fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    PANIC.with_borrow_mut(|p| *p = Some(String::new()));
    panic::catch_unwind(AssertUnwindSafe(work)).map_err(|payload| {
        let said = PANIC.with_borrow_mut(|p| p.take().unwrap_or_default());
        if said.is_empty() { message(payload.as_ref()) } else { said }
    })
}

fn message(payload: &(dyn Any + Send)) -> String {
    let text = payload.downcast_ref::<&str>().map(|s| (*s).to_owned());
    text.or_else(|| payload.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// Keeps what a panic on our threads says, instead of printing it.
fn quiet_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let ours = PANIC.try_with(|kept| {
                let mut kept = kept.try_borrow_mut().ok()?;
                kept.as_mut().map(|text| *text = info.to_string())
            });
            if !matches!(ours, Ok(Some(()))) {
                before(info);
            }
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure<T>(outcome: Outcome<T>) -> String {
        match outcome {
            Outcome::Done(_) => panic!("it returned"),
            Outcome::Failed(how) => how,
        }
    }

    #[test]
    fn a_value_comes_back() {
        assert!(matches!(run(|| 42), Outcome::Done(42)));
    }

    #[test]
    fn a_panic_is_told() {
        let how = failure(run(|| panic!("of {}", "ours")));
        assert!(how.contains("of ours") && how.contains("guard.rs"), "{how}");
    }

    #[test]
    fn an_abort_is_told_and_the_next_call_works() {
        for _ in 0..3 {
            let how = failure(run(|| std::process::abort()));
            assert!(how.contains("SIGABRT"), "{how}");
            assert!(matches!(run(|| 1), Outcome::Done(1)));
        }
    }

    #[test]
    fn calls_at_once_do_not_meet() {
        let threads: Vec<_> = (0..16)
            .map(|i| {
                thread::spawn(move || match i % 4 {
                    0 => assert!(failure(run(|| std::process::abort())).contains("SIGABRT")),
                    1 => assert!(failure(run(move || -> () { panic!("{i}") })).contains("panic")),
                    _ => assert!(matches!(run(move || i), Outcome::Done(j) if j == i)),
                })
            })
            .collect();
        assert!(threads.into_iter().all(|t| t.join().is_ok()));
    }
}
