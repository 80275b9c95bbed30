//! Kernels on the PTX executor: load, launch, unload.
//!
//! # Idea
//! A kernel is parsed and decoded once and has a number from then on; a launch is a JSON request, a
//! block of parameters, and the addresses of buffers that the caller owns. What the executor finds
//! is no failure of the call: it is in the reply's text.
//! # Who owns, who fails
//! The caller's buffers are read and written during [`bitstable_ptx_launch`] and at no other time.
//! A kernel that is unloaded while a launch of it runs lives until that launch has ended.
//! # Limits
//! After a fault of ours (status 2) other host threads of the launch may still run for a moment.

mod findings;
mod request;

use std::{
    collections::BTreeMap,
    ffi::c_char,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use bitstable_passes::{place::Place, report::Diagnostics};
use bitstable_ptx::{
    exec::{self, LaunchRequest, Program},
    memory::GlobalMemory,
    syntax,
};
use serde::Serialize;

use self::request::{Launch, Load};
use crate::{
    Answer, Reply, Status,
    guard::{self, Outcome},
    json, not_utf8, refused, text,
};

/// Kernels that are loaded, by number.
static KERNELS: Mutex<BTreeMap<u64, Arc<Program>>> = Mutex::new(BTreeMap::new());
static NEXT: AtomicU64 = AtomicU64::new(1);

/// The text of the reply to [`bitstable_ptx_load`].
#[derive(Serialize)]
struct Loaded<'a> {
    handle: u64,
    params: Vec<Param<'a>>,
    param_bytes: u32,
}

#[derive(Serialize)]
struct Param<'a> {
    name: &'a str,
    offset: u32,
    bytes: u32,
}

/// Parses and decodes the kernel of a PTX text. `options` is `{"entry": name}`, or `{}` where there
/// is one kernel. The reply's text has the kernel's `handle` and its `params`.
///
/// # Safety
/// `ptx` and `options` must point at as many bytes as their lengths say; `out` must be valid for
/// writing, and what it held is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_ptx_load(
    ptx: *const c_char,
    ptx_len: usize,
    options: *const c_char,
    options_len: usize,
    out: *mut Reply,
) {
    // SAFETY: the caller's.
    let inputs = unsafe { (text(ptx, ptx_len), text(options, options_len)) };
    let answer = match inputs {
        (Some(ptx), Some(options)) => guarded((ptx.to_owned(), options.to_owned()), load),
        (None, _) => not_utf8("the PTX"),
        (_, None) => not_utf8("the options"),
    };
    // SAFETY: the caller's.
    unsafe { answer.send(out) }
}

/// Runs a launch of a loaded kernel to its end. `request` is a [`Launch`]; `params` is the block of
/// its parameters, each at the offset that loading told. The launch stops soon after `cancel`,
/// which may be null, becomes 1.
///
/// # Safety
/// As for [`bitstable_ptx_load`]; every buffer of the request must be valid until this returns,
/// for writing where it says so, and nobody else may access it meanwhile; so must `cancel`, which
/// another thread may set from 0 to 1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn bitstable_ptx_launch(
    handle: u64,
    request: *const c_char,
    request_len: usize,
    params: *const u8,
    params_len: usize,
    cancel: *const u8,
    out: *mut Reply,
) {
    // SAFETY: the caller's.
    let request = unsafe { text(request, request_len) }.map(str::to_owned);
    let params = if params_len == 0 || params.is_null() {
        Vec::new()
    } else {
        // SAFETY: the caller's.
        unsafe { std::slice::from_raw_parts(params, params_len) }.to_vec()
    };
    // SAFETY: the caller's; the bytes 0 and 1 are what a `bool` may hold.
    let cancel: Option<&'static AtomicBool> = unsafe { cancel.cast::<AtomicBool>().as_ref() };
    let program = lock().get(&handle).map(Arc::clone);
    let answer = match (program, request) {
        (Some(program), Some(request)) => {
            guarded((program, request, params, cancel), |(program, request, params, cancel)| {
                // SAFETY: the caller vouches for the request's buffers.
                unsafe { launch(&program, &request, params, cancel) }
            })
        }
        (None, _) => refused(format!("no kernel is loaded as {handle}"), None),
        (_, None) => not_utf8("the request"),
    };
    // SAFETY: the caller's.
    unsafe { answer.send(out) }
}

/// Forgets a kernel; a number that is none is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn bitstable_ptx_unload(handle: u64) {
    let program = lock().remove(&handle);
    drop(program); // after the lock is free
}

fn lock() -> std::sync::MutexGuard<'static, BTreeMap<u64, Arc<Program>>> {
    KERNELS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs `work` where its faults are answers.
fn guarded<I: Send + 'static>(inputs: I, work: fn(I) -> Answer) -> Answer {
    match guard::run(move || work(inputs)) {
        Outcome::Done(answer) => answer,
        Outcome::Failed(how) => {
            Answer::failed(Status::Bug, &Diagnostics::fault(how, Place::default()))
        }
    }
}

fn done(value: &impl Serialize) -> Answer {
    Answer { status: Status::Done, text: json(value), report: String::new() }
}

fn load((ptx, options): (String, String)) -> Answer {
    let options: Load = match serde_json::from_str(&options) {
        Ok(options) => options,
        Err(error) => return refused(format!("the options: {error}"), None),
    };
    let program =
        syntax::parse(&ptx).map_err(|error| format!("PTX line {error}")).and_then(|module| {
            Program::new(&module, options.entry.as_deref()).map_err(|error| format!("PTX {error}"))
        });
    let program = match program {
        Ok(program) => Arc::new(program),
        Err(message) => {
            return refused(message, Some("docs/emulation.md says what is not executed"));
        }
    };
    let handle = NEXT.fetch_add(1, Ordering::Relaxed);
    lock().insert(handle, Arc::clone(&program));
    let params = program.params().iter();
    done(&Loaded {
        handle,
        params: params.map(|p| Param { name: &p.name, offset: p.offset, bytes: p.bytes }).collect(),
        param_bytes: program.param_bytes(),
    })
}

/// # Safety
/// The request's buffers must be as [`bitstable_ptx_launch`] says.
unsafe fn launch(
    program: &Program,
    request: &str,
    params: Vec<u8>,
    cancel: Option<&AtomicBool>,
) -> Answer {
    let asked: Launch = match serde_json::from_str(request) {
        Ok(asked) => asked,
        Err(error) => return refused(format!("the request: {error}"), None),
    };
    let options = match asked.options.read(program.module().target.sm) {
        Ok(options) => options,
        Err(message) => return refused(message, None),
    };
    let mut memory = GlobalMemory::default();
    for buffer in &asked.buffers {
        let start = buffer.address as *mut u8;
        // SAFETY: the caller's.
        unsafe { memory.add_host(start, buffer.bytes, buffer.writable, &buffer.name) }
    }
    let request = LaunchRequest {
        grid: asked.grid,
        block: asked.block,
        dynamic_shared: asked.dynamic_shared,
        params,
        options,
    };
    match exec::run(program, &request, &mut memory, None, cancel) {
        Ok(outcome) => done(&findings::told(program, &memory, &outcome)),
        Err(error) => refused(error.to_string(), None),
    }
}

#[cfg(test)]
mod tests;
