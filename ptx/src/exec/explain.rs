//! Findings in a reader's words: which kernel line, which PTX line, which buffer and element.
//!
//! # Idea
//! A finding holds numbers; the program knows what they mean. The result is plain data, for a
//! terminal, for JSON and for an exception alike.

use serde::Serialize;

use super::program::Program;
use crate::{
    ir::Space,
    memory::GlobalMemory,
    report::{Finding, Report, Reports, Severity, Site, Thread},
    syntax::print_instruction,
};

/// A finding, explained.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Explained {
    /// A word for the kind: `race`, `out-of-bounds`, ….
    pub kind: &'static str,
    pub severity: Severity,
    /// What is wrong, in a sentence.
    pub message: String,
    /// How often it came.
    pub count: u64,
    /// The instructions it is about, the later one of two first.
    pub places: Vec<Where>,
    /// What to do.
    pub help: Option<&'static str>,
}

/// An instruction, and the thread that ran it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Where {
    /// What the instruction did there.
    pub role: &'static str,
    pub thread: Thread,
    pub ptx_line: u32,
    /// The instruction as PTX; empty at the kernel's end.
    pub instruction: String,
    /// The kernel's line, where `.loc` tells it.
    pub source: Option<Source>,
}

/// A line of the user's source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
pub struct Source {
    pub file: String,
    pub line: u32,
    pub column: u32,
}

impl std::fmt::Display for Source {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

impl std::fmt::Display for Explained {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let severity = match self.severity {
            Severity::Note => "note",
            Severity::Error => "error",
        };
        write!(f, "{severity}: {}: {}", self.kind, self.message)?;
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        for place in &self.places {
            write!(f, "\n  {}: {}", place.role, place.thread)?;
            if let Some(source) = &place.source {
                write!(f, ", {source}")?;
            }
            if place.ptx_line > 0 {
                write!(f, ", PTX line {}: {}", place.ptx_line, place.instruction)?;
            }
        }
        if let Some(help) = self.help {
            write!(f, "\n  help: {help}")?;
        }
        Ok(())
    }
}

impl Program {
    /// Explains every report, in order.
    pub fn explain(&self, reports: &Reports, memory: &GlobalMemory) -> Vec<Explained> {
        reports.iter().map(|report| self.explain_one(report, memory)).collect()
    }

    fn explain_one(&self, report: &Report, memory: &GlobalMemory) -> Explained {
        let Words { kind, message, places, help } = self.words(&report.finding, memory);
        let places = places.into_iter().map(|(role, site)| self.place(role, site)).collect();
        let (severity, count) = (report.severity, report.count);
        Explained { kind, severity, message, count, places, help }
    }

    /// An instruction as a reader finds it.
    pub fn place(&self, role: &'static str, site: Site) -> Where {
        let found = self.instruction(site.pc);
        let body = self
            .origins
            .get(site.pc as usize)
            .and_then(|origin| self.module.functions.get(origin.function as usize)?.body.as_ref());
        let instruction = match (found, body) {
            (Some(found), Some(body)) => print_instruction(body, found),
            _ => String::new(),
        };
        let source = found.and_then(|found| found.source).zip(body).map(|(line, body)| {
            let line = self.module.users_line(body, line);
            let file = self.module.file(line.file).unwrap_or("?").to_owned();
            Source { file, line: line.line, column: line.column }
        });
        let ptx_line = found.map_or(0, |found| found.at.line);
        Where { role, thread: site.thread, ptx_line, instruction, source }
    }

    fn words(&self, finding: &Finding, memory: &GlobalMemory) -> Words {
        let at = |space: Space, address: u64| locate(memory, space, address);
        match finding {
            Finding::Race { space, address, bytes, earlier, later } => Words::new(
                "race",
                format!(
                    "nothing orders a {} and a {} of {bytes} bytes at {}",
                    word(earlier.1),
                    word(later.1),
                    at(*space, *address)
                ),
            )
            .place(word(later.1), later.0)
            .place(word(earlier.1), earlier.0)
            .help("a barrier between them, or a release and an acquire, would order them"),
            Finding::SameBytes { space, address, bytes, earlier, later } => Words::new(
                "same-bytes",
                format!(
                    "two unordered writes of the same {bytes} bytes at {}",
                    at(*space, *address)
                ),
            )
            .place("write", *later)
            .place("write", *earlier),
            Finding::ArrivalOrder { space, address, earlier, later } => Words::new(
                "arrival-order",
                format!(
                    "the result depends on the arrival order of atomics at {}",
                    at(*space, *address)
                ),
            )
            .place("atomic", *later)
            .place("atomic", *earlier)
            .help("add integers, or store partial results and reduce them in one order"),
            Finding::OutOfBounds { space, address, bytes, kind, at: site, reason } => Words::new(
                "out-of-bounds",
                format!("a {} of {bytes} bytes at {}: {reason}", word(*kind), at(*space, *address)),
            )
            .place(word(*kind), *site)
            .help("mask the access, or pass a larger buffer"),
            Finding::Misaligned { space, address, alignment, kind, at: site } => Words::new(
                "misaligned",
                format!(
                    "a {} at {}, which is not a multiple of {alignment}",
                    word(*kind),
                    at(*space, *address)
                ),
            )
            .place(word(*kind), *site),
            Finding::Uninitialised { space, address, bytes, at: site } => Words::new(
                "uninitialised",
                format!(
                    "a read of {bytes} bytes at {}, of which some were never written",
                    at(*space, *address)
                ),
            )
            .place("read", *site),
            Finding::ReadOnly { address, at: site } => Words::new(
                "read-only",
                format!("a write to read-only memory at {}", at(Space::Global, *address)),
            )
            .place("write", *site),
            Finding::BarrierStuck { .. }
            | Finding::BarrierDiverged { .. }
            | Finding::MembersDisagree { .. }
            | Finding::LaneAbsent { .. }
            | Finding::StepLimit { .. }
            | Finding::Trap { .. }
            | Finding::BadOperand { .. } => self.control_words(finding),
        }
    }

    /// Findings about control: barriers, members, limits.
    fn control_words(&self, finding: &Finding) -> Words {
        match finding {
            Finding::BarrierStuck { id, arrived, expected, at, missing } => Words::new(
                "barrier-not-reached",
                format!("barrier {id} waits for ever: {arrived} of {expected} threads are there"),
            )
            .place("waits", *at)
            .maybe(self.elsewhere(*missing), *missing),
            Finding::BarrierDiverged { at, other } => Words::new(
                "barrier-diverged",
                "lanes of one warp do not reach an aligned barrier together".to_owned(),
            )
            .place("waits", *at)
            .maybe(self.elsewhere(*other), *other)
            .help("move the barrier out of divergent control flow"),
            Finding::MembersDisagree { members, present, at, other } => Words::new(
                "members-disagree",
                format!("members {members:#010x} are named, {present:#010x} are there"),
            )
            .place("runs", *at)
            .maybe(self.elsewhere(*other), *other),
            Finding::LaneAbsent { lane, at } => Words::new(
                "lane-absent",
                format!("a shuffle reads lane {lane}, which does not take part"),
            )
            .place("reads", *at),
            Finding::StepLimit { limit, at } => Words::new(
                "step-limit",
                format!("a CTA ran {limit} instructions of its warps and did not end"),
            )
            .place("is at", *at)
            .help("raise the step limit, if the kernel is that long"),
            Finding::Trap { at, message } => {
                let message = message.clone().unwrap_or_else(|| "trap".to_owned());
                Words::new("trap", message).place("traps", *at)
            }
            Finding::BadOperand { at, message } => {
                Words::new("bad-operand", message.clone()).place("runs", *at)
            }
            Finding::Race { .. }
            | Finding::SameBytes { .. }
            | Finding::ArrivalOrder { .. }
            | Finding::OutOfBounds { .. }
            | Finding::Misaligned { .. }
            | Finding::Uninitialised { .. }
            | Finding::ReadOnly { .. } => Words::new("memory", String::new()),
        }
    }

    fn elsewhere(&self, site: Option<Site>) -> &'static str {
        match site {
            Some(site) if site.pc as usize >= self.len() => "has exited",
            _ => "is at",
        }
    }
}

/// The parts of an explanation.
struct Words {
    kind: &'static str,
    message: String,
    places: Vec<(&'static str, Site)>,
    help: Option<&'static str>,
}

impl Words {
    fn new(kind: &'static str, message: String) -> Self {
        Self { kind, message, places: Vec::new(), help: None }
    }

    fn place(mut self, role: &'static str, site: Site) -> Self {
        self.places.push((role, site));
        self
    }

    fn maybe(self, role: &'static str, site: Option<Site>) -> Self {
        match site {
            Some(site) => self.place(role, site),
            None => self,
        }
    }

    fn help(mut self, help: &'static str) -> Self {
        self.help = Some(help);
        self
    }
}

fn word(kind: crate::report::AccessKind) -> &'static str {
    match kind {
        crate::report::AccessKind::Read => "read",
        crate::report::AccessKind::Write => "write",
        crate::report::AccessKind::Atomic => "atomic",
    }
}

/// An address as a reader knows it: a byte of a named buffer, or of a space.
fn locate(memory: &GlobalMemory, space: Space, address: u64) -> String {
    if !matches!(space, Space::Global | Space::Generic | Space::Const) {
        return format!("{space} address {address:#x}");
    }
    match memory.name_at(address) {
        Some((name, offset)) => format!("byte {offset} of `{name}`"),
        None => format!("global address {address:#x}"),
    }
}
