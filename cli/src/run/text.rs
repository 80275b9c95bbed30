//! `bitstable run`'s answer for a terminal.

use std::io::{self, Write};

use bitstable_ptx::{exec::explain::Explained, report::Severity};

use super::report::{BufferReport, Report, RunReport};
use crate::{launch::Launch, streams::counted};

/// Elements on one line.
const COLUMNS: usize = 8;

/// Writes the whole answer.
pub fn write(
    report: &Report,
    launch: &Launch,
    digests: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    writeln!(out, "{}", launch.describe())?;
    for line in report.runs.iter().take(1).flat_map(|run| &run.printed) {
        writeln!(out, "  {line}")?;
    }
    findings(&report.runs, out)?;
    if let Some(run) = report.runs.first() {
        let counts = run.statistics;
        writeln!(
            out,
            "{}, {}, {}",
            counted(counts.ctas, "CTA"),
            counted(counts.warp_instructions, "warp instruction"),
            counted(counts.thread_instructions, "thread instruction")
        )?;
    }
    schedules(report, out)?;
    let width = report.buffers.iter().map(|buffer| buffer.name.len()).max().unwrap_or(0);
    for buffer in &report.buffers {
        self::buffer(buffer, width, digests, out)?;
    }
    Ok(())
}

/// All of the first run's, and of the others what is new.
fn findings(runs: &[RunReport], out: &mut dyn Write) -> io::Result<()> {
    let mut known: Vec<Vec<(&str, u32)>> = Vec::new();
    let mut errors = 0;
    for (number, run) in runs.iter().enumerate() {
        for finding in &run.findings {
            let kind = kind(finding);
            if known.contains(&kind) {
                continue;
            }
            known.push(kind);
            errors += usize::from(finding.severity == Severity::Error);
            writeln!(out, "{finding}")?;
            if number > 0 {
                writeln!(out, "  under schedule {}", run.schedule)?;
            }
        }
        if run.findings_left_out > 0 {
            writeln!(out, "  and {} more, of further kinds", run.findings_left_out)?;
        }
    }
    match (known.len(), errors) {
        (0, _) => writeln!(out, "no findings"),
        (all, errors) => {
            let notes = counted(all - errors, "note");
            writeln!(out, "findings: {}, {notes}", counted(errors, "error"))
        }
    }
}

/// What happened, and at which lines: the thread may differ from one schedule to the next.
fn kind(finding: &Explained) -> Vec<(&str, u32)> {
    let mut lines: Vec<u32> = finding.places.iter().map(|place| place.ptx_line).collect();
    lines.sort_unstable();
    lines.insert(0, 0);
    lines.into_iter().map(|line| (finding.kind, line)).collect()
}

fn schedules(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let Some(difference) = &report.difference else {
        return match report.schedules_agree {
            Some(_) => writeln!(out, "{} schedules, the same bytes under all", report.runs.len()),
            None => Ok(()),
        };
    };
    let ([first, other], [a, b]) = (&difference.schedules, &difference.values);
    writeln!(
        out,
        "the bytes depend on the schedule: {}[{}] is {a} under {first} and {b} under {other}; \
         {} of its elements differ",
        difference.buffer, difference.element, difference.count
    )
}

fn buffer(
    buffer: &BufferReport,
    width: usize,
    digests: bool,
    out: &mut dyn Write,
) -> io::Result<()> {
    let changed = match buffer.changed {
        0 => "unchanged".into(),
        some => format!("{some} of {} elements changed", buffer.count),
    };
    let shape = format!("{}:{}", buffer.ty, buffer.count);
    writeln!(out, "{:width$}  {shape:<12}  {changed}", buffer.name)?;
    if let (true, Some(digest)) = (digests, &buffer.sha256) {
        writeln!(out, "{:width$}  sha256 {digest}", "")?;
    }
    for (line, values) in buffer.values.iter().flat_map(|all| all.chunks(COLUMNS)).enumerate() {
        writeln!(out, "{:width$}  [{}] {}", "", line * COLUMNS, values.join(" "))?;
    }
    Ok(())
}
