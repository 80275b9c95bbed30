//! `bitstable tree`: in which order was each output added up, and is that the canonical order?
//!
//! # Idea
//! One run carries expressions beside the bits. Outputs whose reductions differ only in where
//! their leaves begin are one group, which is judged once. Several kernels, run on the same arguments,
//! are compared output by output.
//! # Invariants
//! - **T1** The status is 0 only if every output asked for is judged, and every reduction below it
//!   is canonical; with `--compare`, only if every tree is the same in all kernels. An unknown is
//!   never a pass.
//! - **T2** A run with errors among its findings proves nothing: the status is then 1.

mod compare;
mod judge;
mod report;
mod shape;
mod text;
mod trace;

use std::path::Path;

use bitstable_ptx::symbol::svg::{Drawing, draw};

use crate::{
    Exit, arguments::TreeOptions, failure::Failure, kernel::Kernel, launch::Launch, run::UNSIZED,
    streams::Streams,
};
use judge::Judge;
use report::{FileReport, Report};
use trace::Trace;

/// Leaves that a drawing has room for.
const DRAWN: usize = 256;

/// The command.
pub fn command(options: &TreeOptions, streams: &mut Streams<'_>) -> Result<Exit, Failure> {
    let given = &options.launch;
    let first = trace(&given.kernel, given.triton.as_deref(), options, streams)?;
    let others = options.compare.iter().map(|path| trace(path, None, options, streams));
    let others = others.collect::<Result<Vec<Trace>, Failure>>()?;
    let mut report = Report::new(FileReport::new(&first, options));
    for other in &others {
        report.files.push(FileReport::new(other, options));
    }
    report.compare(&first, &others);
    if let Some(file) = &options.svg {
        save(file, &drawing(&first, options))?;
    }
    if given.json {
        streams.json(&report)?;
    } else {
        text::write(&report, options, streams.out)?;
    }
    Ok(if report.exit == 0 { Exit::Fine } else { Exit::Found })
}

fn trace(
    path: &Path,
    triton: Option<&Path>,
    options: &TreeOptions,
    streams: &mut Streams<'_>,
) -> Result<Trace, Failure> {
    let kernel = Kernel::read(path, options.launch.entry.as_deref(), triton)?;
    let launch = Launch::new(kernel, &options.launch)?;
    if launch.shared_unknown {
        streams.note(UNSIZED)?;
    }
    Trace::of(launch, options)
}

/// The tree of the first output asked for: where it departs, if it does.
fn drawing(trace: &Trace, options: &TreeOptions) -> String {
    let Some(output) = trace.outputs.first() else { return String::new() };
    let graph = trace.symbols.graph();
    let shown = Judge::new(graph, options.extent).judge(output.node).shown;
    trace.naming().with(|names| {
        draw(
            graph,
            &shown.analysis,
            &Drawing {
                kernel: trace.launch.kernel.program.name(),
                output: &trace.name(output),
                names,
                most: DRAWN,
            },
        )
    })
}

fn save(file: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(file, text).map_err(|error| Failure::Read {
        path: file.display().to_string(),
        reason: error.to_string(),
    })
}
