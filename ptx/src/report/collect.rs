//! Findings, collected: each kind once, counted.
//!
//! # Invariants
//! - **F2** What is kept, and its order, depend on the order of findings alone; several CTAs'
//!   reports are merged in the order of the CTAs.
//! - **F3** At most [`KEPT`] kinds are kept. Past them only counts go on.

use rustc_hash::FxHashMap;

use super::{AccessKind, Finding, Severity};
use crate::ir::Space;

/// Kinds of findings kept.
pub const KEPT: usize = 200;

/// A finding, and how often it came.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Report {
    /// Its first occurrence.
    pub finding: Finding,
    pub severity: Severity,
    pub count: u64,
}

/// All findings of a launch, or of a part of one.
#[derive(Clone, Debug, Default)]
pub struct Reports {
    strict: bool,
    kept: Vec<Report>,
    places: FxHashMap<Kind, usize>,
    left_out: u64,
    errors_left_out: u64,
}

/// What makes two findings one report: what happened, at which instructions, and in which space.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Kind {
    finding: std::mem::Discriminant<Finding>,
    pc: u32,
    other: Option<u32>,
    space: Option<Space>,
    access: Option<(AccessKind, AccessKind)>,
}

impl Reports {
    /// `strict`: findings that are notes otherwise are errors, but for a comparing exchange's.
    pub fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Adds a finding, with the severity of its kind.
    pub fn add(&mut self, finding: Finding) {
        let severity = finding.severity(self.strict);
        self.add_as(finding, severity);
    }

    /// Adds a finding that is a note, strict or not.
    pub fn note(&mut self, finding: Finding) {
        self.add_as(finding, Severity::Note);
    }

    fn add_as(&mut self, finding: Finding, severity: Severity) {
        self.insert(Report { finding, severity, count: 1 });
    }

    fn insert(&mut self, report: Report) {
        let kind = kind(&report.finding);
        if let Some(&place) = self.places.get(&kind) {
            let known = &mut self.kept[place];
            known.count += report.count;
            known.severity = known.severity.max(report.severity);
        } else if self.kept.len() < KEPT {
            self.places.insert(kind, self.kept.len());
            self.kept.push(report);
        } else {
            self.left_out += report.count;
            if report.severity == Severity::Error {
                self.errors_left_out += report.count;
            }
        }
    }

    /// Adds the reports of another CTA, or of a later launch.
    pub fn merge(&mut self, other: Reports) {
        self.left_out += other.left_out;
        self.errors_left_out += other.errors_left_out;
        for report in other.kept {
            self.insert(report);
        }
    }

    /// In the order in which their kinds first came.
    pub fn iter(&self) -> impl Iterator<Item = &Report> {
        self.kept.iter()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Kinds kept.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    /// Findings of kinds that were not kept.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// Findings that are errors, every occurrence counted.
    pub fn errors(&self) -> u64 {
        let errors = self.kept.iter().filter(|report| report.severity == Severity::Error);
        errors.map(|report| report.count).sum::<u64>() + self.errors_left_out
    }
}

impl Finding {
    /// How bad findings of this kind are.
    pub fn severity(&self, strict: bool) -> Severity {
        match self {
            Finding::SameBytes { .. } if !strict => Severity::Note,
            Finding::SameBytes { .. }
            | Finding::ArrivalOrder { .. }
            | Finding::Race { .. }
            | Finding::OutOfBounds { .. }
            | Finding::Misaligned { .. }
            | Finding::Uninitialised { .. }
            | Finding::ReadOnly { .. }
            | Finding::BarrierStuck { .. }
            | Finding::BarrierDiverged { .. }
            | Finding::MembersDisagree { .. }
            | Finding::LaneAbsent { .. }
            | Finding::StepLimit { .. }
            | Finding::Trap { .. }
            | Finding::BadOperand { .. } => Severity::Error,
        }
    }
}

fn kind(finding: &Finding) -> Kind {
    let (pc, other) = match finding {
        Finding::Race { earlier, later, .. } => (later.0.pc, Some(earlier.0.pc)),
        Finding::SameBytes { earlier, later, .. }
        | Finding::ArrivalOrder { earlier, later, .. } => (later.pc, Some(earlier.pc)),
        Finding::BarrierStuck { at, missing: other, .. }
        | Finding::BarrierDiverged { at, other }
        | Finding::MembersDisagree { at, other, .. } => (at.pc, other.map(|other| other.pc)),
        Finding::OutOfBounds { at, .. }
        | Finding::Misaligned { at, .. }
        | Finding::Uninitialised { at, .. }
        | Finding::ReadOnly { at, .. }
        | Finding::LaneAbsent { at, .. }
        | Finding::StepLimit { at, .. }
        | Finding::Trap { at, .. }
        | Finding::BadOperand { at, .. } => (at.pc, None),
    };
    let (space, access) = if let Finding::Race { space, earlier, later, .. } = finding {
        (Some(*space), Some((earlier.1, later.1)))
    } else {
        (None, None)
    };
    Kind { finding: std::mem::discriminant(finding), pc, other, space, access }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Site, Thread};

    fn site(pc: u32) -> Site {
        Site { pc, thread: Thread { cta: 0, thread: pc } }
    }
    fn same_bytes(pc: u32, earlier: u32) -> Finding {
        let (earlier, later) = (site(earlier), site(pc));
        Finding::SameBytes { space: Space::Shared, address: 0, bytes: 4, earlier, later }
    }

    #[test]
    fn a_kind_is_one_report_with_a_count() {
        let mut reports = Reports::new(false);
        reports.add(same_bytes(1, 2));
        reports.add(same_bytes(1, 3));
        reports.add(same_bytes(1, 2));
        let counts: Vec<_> = reports.iter().map(|report| report.count).collect();
        assert_eq!(counts, [2, 1]);
        assert_eq!(reports.errors(), 0);
    }

    #[test]
    fn strict_makes_notes_errors_and_merging_adds() {
        let mut reports = Reports::new(true);
        reports.add(same_bytes(1, 2));
        reports.note(same_bytes(5, 2));
        let mut other = Reports::new(true);
        other.add(same_bytes(7, 2));
        other.add(same_bytes(1, 2));
        reports.merge(other);
        let pcs: Vec<_> = reports.iter().map(|report| kind(&report.finding).pc).collect();
        assert_eq!(pcs, [1, 5, 7]);
        assert_eq!(reports.errors(), 3);
    }

    #[test]
    fn past_the_cap_only_counts_go_on() {
        let mut reports = Reports::new(true);
        for pc in 0..KEPT as u32 + 10 {
            reports.add(same_bytes(pc, 0));
        }
        assert_eq!((reports.len(), reports.left_out(), reports.errors()), (KEPT, 10, 210));
    }
}
