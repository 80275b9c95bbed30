//! `bitstable run`: launch a kernel, and say what was found and what its buffers hold.
//!
//! # Idea
//! One run under the schedule asked for, or several under different ones, each in fresh memory. A
//! kernel whose bytes depend on the schedule is caught by comparing every run with the first.
//! # Invariants
//! - **R1** Values, digests and files are those of the first run.
//! - **R2** The status is 1 exactly when a run has an error among its findings, or two runs differ.

mod report;
mod text;

use bitstable_ptx::exec::schedule::Schedule;
use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    Exit,
    arguments::{RunOptions, Save},
    failure::Failure,
    kernel::Kernel,
    launch::{Launch, Ran},
    npy,
    streams::Streams,
};
use report::{BufferReport, Difference, Report, RunReport};

/// The command.
pub fn command(options: &RunOptions, streams: &mut Streams<'_>) -> Result<Exit, Failure> {
    let given = &options.launch;
    let kernel = Kernel::read(&given.kernel, given.entry.as_deref(), given.triton.as_deref())?;
    let mut launch = Launch::new(kernel, given)?;
    if launch.shared_unknown {
        streams.note(UNSIZED)?;
    }
    let shown = Shown::new(options, &launch)?;
    let (report, first) = runs(&mut launch, options, &shown, streams)?;
    for (buffer, save) in shown.saved.iter().zip(&options.save) {
        write(save, &launch, *buffer, &first)?;
    }
    if given.json {
        streams.json(&report)?;
    } else {
        text::write(&report, &launch, options.digest, streams.out)?;
    }
    Ok(if report.fine() { Exit::Fine } else { Exit::Found })
}

/// What is said when nothing says how large dynamic shared memory is.
pub const UNSIZED: &str = "the kernel has dynamic shared memory, whose size the PTX does not say; \
                           0 bytes are assumed (--shared BYTES, or --triton KERNEL.json)";

/// Which buffers are printed and saved, by their places.
struct Shown {
    /// Elements to print of each buffer.
    printed: Vec<Option<usize>>,
    saved: Vec<usize>,
}

impl Shown {
    /// Fails before anything runs when a name is wrong.
    fn new(options: &RunOptions, launch: &Launch) -> Result<Self, Failure> {
        let mut printed = vec![None; launch.buffers.len()];
        for wanted in &options.print {
            let at = launch.buffer(&wanted.name)?;
            let count = launch.buffers[at].count;
            printed[at] = Some(wanted.number.unwrap_or(count).min(count));
        }
        let saved = options.save.iter().map(|save| launch.buffer(&save.name));
        Ok(Self { printed, saved: saved.collect::<Result<_, _>>()? })
    }
}

/// The schedules to run under.
fn schedules(options: &RunOptions) -> Vec<Schedule> {
    let Some(count) = options.schedules else { return vec![options.launch.schedule] };
    let random = (0..u64::from(count).saturating_sub(2)).map(Schedule::Random);
    [Schedule::Forward, Schedule::Reversed].into_iter().chain(random).collect()
}

fn runs(
    launch: &mut Launch,
    options: &RunOptions,
    shown: &Shown,
    streams: &Streams<'_>,
) -> Result<(Report, Ran), Failure> {
    let schedules = schedules(options);
    let digests = options.digest || options.launch.json;
    let progress = progress(schedules.len(), streams.live);
    let first = launch.run(schedules[0], |_, _| None)?;
    progress.inc(1);
    let mut report = Report::new(launch, RunReport::new(schedules[0], &first));
    for (at, buffer) in launch.buffers.iter().enumerate() {
        let contents = &first.contents[at];
        report.buffers.push(BufferReport::new(buffer, contents, shown.printed[at], digests));
    }
    for &schedule in &schedules[1..] {
        progress.set_message(schedule.to_string());
        let run = launch.run(schedule, |_, _| None)?;
        progress.inc(1);
        report.runs.push(RunReport::new(schedule, &run));
        if report.difference.is_none() {
            report.difference = Difference::find(launch, [schedules[0], schedule], [&first, &run]);
        }
    }
    progress.finish_and_clear();
    if schedules.len() > 1 {
        report.schedules_agree = Some(report.difference.is_none());
    }
    report.exit = u8::from(!report.fine());
    Ok((report, first))
}

fn progress(runs: usize, live: bool) -> ProgressBar {
    if !live || runs < 2 {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(runs as u64);
    match ProgressStyle::with_template("{bar:32} {pos}/{len} schedules, {eta} left  {msg}") {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

fn write(save: &Save, launch: &Launch, buffer: usize, run: &Ran) -> Result<(), Failure> {
    let contents = &run.contents[buffer];
    let array = save.file.extension().is_some_and(|end| end == "npy");
    let array = array.then(|| npy::write(contents, launch.buffers[buffer].ty));
    std::fs::write(&save.file, array.as_deref().unwrap_or(contents)).map_err(|error| {
        Failure::Read { path: save.file.display().to_string(), reason: error.to_string() }
    })
}
