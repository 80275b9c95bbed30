//! Passes over the text of a Triton module: text in, text out.
//!
//! - [`rewrite`]: the one entry.
//! - [`site`], [`combine_kind`], [`element_order`]: what a pinned reduction is; what is refused.
//! - [`reduce_layout`]: cheaper layouts for the operands of pinned reductions.
//! - [`emit`]: from a plan of `bitstable-lowering` to operations, made with [`build`].
//! - [`refusal`], [`report`], [`place`]: what is said to the user.
//!
//! MLIR is used through its generic form only: no Triton dialect is registered, so every operation
//! and type of Triton is opaque here and goes back out as it came in.

mod aliases;
pub mod build;
mod combine_kind;
mod element;
mod element_order;
mod emit;
pub mod ir;
mod pin_reduce;
mod pipeline;
pub mod place;
mod reduce_layout;
pub mod refusal;
pub mod report;
mod session;
mod shield;
mod site;
pub mod target;
mod text;

use pipeline::{Crash, Pass};
use refusal::Failure;
use report::Report;
use session::Session;

/// A module after the passes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Rewritten {
    /// The module, in generic form with locations.
    pub text: String,
    /// What was done.
    pub report: Report,
}

/// Runs `pipeline` over the module `text`, which is in generic form without aliases.
///
/// # Errors
/// A [`Failure`] that says whose fault it is. The module is then not rewritten at all.
pub fn rewrite(text: &str, pipeline: &str) -> Result<Rewritten, Failure> {
    let passes = pipeline::parse(pipeline)?;
    let session = Session::new();
    let module = session.parse(text)?;
    let bug = |bug| Failure::Bug(bug, place::Place::default());
    let mut report = Report::default();
    for pass in passes {
        let root = ir::root(&module);
        match pass {
            Pass::PinReduce { remarks, marking } => {
                pin_reduce::run(&session, root, (remarks, marking), &mut report)?;
            }
            Pass::ReduceLayout(limits) => {
                reduce_layout::run(&session, root, limits, &mut report);
            }
            Pass::ShieldReduce => {
                shield::run(&session, root).map_err(Failure::Refused)?;
            }
            Pass::CrashTest(crash) => go_wrong(crash),
        }
        session.verify(&module).map_err(bug)?;
    }
    let text = session::print(&module).map_err(bug)?;
    Ok(Rewritten { text, report })
}

/// The test aid: goes wrong as asked, so that the library's guard can be tested.
fn go_wrong(crash: Crash) {
    match crash {
        Crash::Panic => panic!("crash-test"),
        Crash::Abort => std::process::abort(),
        // SAFETY: none. The access is invalid, which is the point; it is reached only through
        // `crash-test{kind=segv}`.
        Crash::Segv => unsafe {
            std::ptr::write_volatile(std::ptr::without_provenance_mut(8), 1u8)
        },
        Crash::Overflow => {
            std::hint::black_box(overflow(0));
        }
    }
}

#[expect(unconditional_recursion, reason = "the stack must overflow")]
fn overflow(depth: u64) -> u64 {
    let frame = std::hint::black_box([depth; 64]);
    overflow(depth + 1) + frame[0]
}
