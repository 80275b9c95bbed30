//! `bitstable equiv`: which kernels are proved to return the same bits?
//!
//! # Idea
//! Kernels come from a command line or, from another program, in a JSON request; the same partition
//! answers both. What is proved is `bitstable-equiv`'s; here are names, facts and words.
//! # Invariants
//! - **E1** The status is 0 only if every kernel was walked and each group is one class: a kernel
//!   without an answer is never a pass, and neither is an empty list.
//! - **E2** An error of one kernel takes no answer from the others; the status is then 2.

mod described;
mod explain;
pub(crate) mod facts;
mod given;
mod report;
mod text;

use bitstable_equiv::partition::{Assurance, Watch, Work, partition};
use indicatif::{ProgressBar, ProgressStyle};

use crate::{Exit, arguments::EquivOptions, failure::Failure, streams::Streams};
use described::Request;
use facts::Facts;
use given::Kernels;
use report::Report;

/// The stack of a worker: address space only, until it is touched.
const STACK: usize = 64 << 20;

/// How to go about it.
struct Manner {
    assurance: Assurance,
    /// Pairs of classes to explain.
    explained: usize,
    /// 0: one for each core.
    jobs: usize,
}

/// The command.
pub(crate) fn command(options: &EquivOptions, streams: &mut Streams<'_>) -> Result<Exit, Failure> {
    let kernels = Kernels::of_command(options)?;
    let manner = Manner {
        assurance: if options.confirm { Assurance::Exact } else { Assurance::Digest },
        explained: options.explain.unwrap_or(0),
        jobs: options.jobs,
    };
    let progress = Progress::new(streams.live);
    let report = decide(&kernels, &manner, &progress).map_err(|reason| Failure::Option {
        option: "--jobs",
        given: options.jobs.to_string(),
        reason,
    })?;
    progress.bar.finish_and_clear();
    if options.json {
        streams.json(&report)?;
    } else {
        text::write(&report, options.all, streams)?;
    }
    Ok(report.exit())
}

/// Answers a request in JSON, with JSON; both are documented in `docs/equiv.md`.
///
/// # Errors
/// When the request is not understood; the error is for people.
pub fn answer(request: &str) -> Result<String, String> {
    let request: Request = serde_json::from_str(request).map_err(|error| error.to_string())?;
    let mut kernels = Kernels::default();
    described::add(request.kernels, None, &Facts::default(), &mut kernels)?;
    if kernels.all.is_empty() {
        return Err(Failure::NoKernels.to_string());
    }
    let manner = Manner {
        assurance: if request.confirm { Assurance::Exact } else { Assurance::Digest },
        explained: request.explain,
        jobs: request.jobs,
    };
    let report = decide(&kernels, &manner, &())?;
    serde_json::to_string(&report).map_err(|error| error.to_string())
}

/// An error is about the workers.
fn decide(kernels: &Kernels, manner: &Manner, watch: &impl Watch) -> Result<Report, String> {
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(manner.jobs)
        .stack_size(STACK)
        .thread_name(|number| format!("equiv {number}"))
        .build()
        .map_err(|error| format!("no threads to work on: {error}"))?;
    Ok(pool.install(|| {
        let found = partition(&kernels.all, manner.assurance, watch);
        let explained = explain::explain(kernels, &found, manner.explained, watch);
        Report::new(kernels, &found, &explained)
    }))
}

/// A bar on the error stream, where somebody watches.
struct Progress {
    bar: ProgressBar,
}

impl Progress {
    fn new(live: bool) -> Self {
        let bar = if live { ProgressBar::new(0) } else { ProgressBar::hidden() };
        Self {
            bar: match ProgressStyle::with_template("{msg} {bar:32} {pos}/{len}, {eta} left") {
                Ok(style) => bar.with_style(style),
                Err(_) => bar,
            },
        }
    }
}

impl Watch for Progress {
    fn begin(&self, work: Work, steps: usize) {
        self.bar.reset();
        self.bar.set_length(steps as u64);
        self.bar.set_message(match work {
            Work::Walk => "kernels",
            Work::Confirm => "confirmed",
            Work::Compare => "compared",
        });
    }

    fn step(&self) {
        self.bar.inc(1);
    }
}
