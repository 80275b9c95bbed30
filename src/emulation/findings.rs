//! What a launch found, as JSON.

use bitstable_ptx::{
    exec::{Outcome, Program, Statistics, explain::Explained},
    ir::Space,
    memory::GlobalMemory,
    report::{Finding, Severity},
};
use serde::Serialize;

/// The text of the reply to a launch.
#[derive(Serialize)]
pub struct Told<'a> {
    findings: Vec<Found>,
    /// How many findings are not listed, there being so many.
    left_out: u64,
    /// How many of those are errors.
    errors_left_out: u64,
    statistics: Statistics,
    printed: &'a [String],
    cancelled: bool,
}

#[derive(Serialize)]
struct Found {
    kind: &'static str,
    severity: Severity,
    message: String,
    count: u64,
    help: Option<&'static str>,
    /// Where in global memory, if it is about that.
    address: Option<u64>,
    sites: Vec<Site>,
}

#[derive(Serialize)]
struct Site {
    role: &'static str,
    cta: u32,
    thread: u32,
    ptx_line: u32,
    instruction: String,
    file: Option<String>,
    line: u32,
    col: u32,
}

/// Everything that is told of a launch.
pub fn told<'a>(program: &Program, memory: &GlobalMemory, outcome: &'a Outcome) -> Told<'a> {
    let explained = program.explain(&outcome.reports, memory);
    let addresses = outcome.reports.iter().map(|report| global_address(&report.finding));
    let findings = explained.into_iter().zip(addresses);
    let errors = outcome.reports.iter().filter(|report| report.severity == Severity::Error);
    let listed_errors: u64 = errors.map(|report| report.count).sum();
    Told {
        findings: findings.map(|(each, address)| found(each, address)).collect(),
        left_out: outcome.reports.left_out(),
        errors_left_out: outcome.reports.errors() - listed_errors,
        statistics: outcome.statistics,
        printed: &outcome.printed,
        cancelled: outcome.cancelled,
    }
}

fn found(explained: Explained, address: Option<u64>) -> Found {
    let Explained { kind, severity, message, count, places, help } = explained;
    let sites = places.into_iter().map(|place| Site {
        role: place.role,
        cta: place.thread.cta,
        thread: place.thread.thread,
        ptx_line: place.ptx_line,
        instruction: place.instruction,
        line: place.source.as_ref().map_or(0, |source| source.line),
        col: place.source.as_ref().map_or(0, |source| source.column),
        file: place.source.map(|source| source.file),
    });
    Found { kind, severity, message, count, help, address, sites: sites.collect() }
}

fn global_address(finding: &Finding) -> Option<u64> {
    let global = |space: &Space| matches!(space, Space::Global | Space::Generic);
    match finding {
        Finding::Race { space, address, .. }
        | Finding::SameBytes { space, address, .. }
        | Finding::ArrivalOrder { space, address, .. }
        | Finding::OutOfBounds { space, address, .. }
        | Finding::Misaligned { space, address, .. }
        | Finding::Uninitialised { space, address, .. } => global(space).then_some(*address),
        Finding::ReadOnly { address, .. } => Some(*address),
        Finding::BarrierStuck { .. }
        | Finding::BarrierDiverged { .. }
        | Finding::MembersDisagree { .. }
        | Finding::LaneAbsent { .. }
        | Finding::StepLimit { .. }
        | Finding::Trap { .. }
        | Finding::BadOperand { .. } => None,
    }
}
