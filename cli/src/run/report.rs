//! What `bitstable run` answers, as a value. Its JSON is documented in `docs/command.md`.

use bitstable_ptx::exec::{explain::Explained, launch::Statistics, schedule::Schedule};
use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::launch::{Buffer, Launch, Ran};

#[derive(Serialize)]
pub struct Report {
    pub command: &'static str,
    /// Of this document's form.
    pub version: u32,
    pub file: String,
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    pub runs: Vec<RunReport>,
    pub buffers: Vec<BufferReport>,
    /// Whether all runs left the same bytes; absent for one run.
    pub schedules_agree: Option<bool>,
    pub difference: Option<Difference>,
    pub exit: u8,
}

/// One run.
#[derive(Serialize)]
pub struct RunReport {
    pub schedule: String,
    /// Occurrences of findings that are errors.
    pub errors: u64,
    pub findings: Vec<Explained>,
    /// Occurrences of further kinds, which are not listed.
    pub findings_left_out: u64,
    pub statistics: Statistics,
    pub printed: Vec<String>,
}

/// A buffer after the first run.
#[derive(Serialize)]
pub struct BufferReport {
    pub name: String,
    /// Number of the kernel's parameter.
    pub parameter: u32,
    #[serde(rename = "type")]
    pub ty: String,
    pub count: usize,
    /// Elements that are not what they were before.
    pub changed: usize,
    pub sha256: Option<String>,
    /// The first elements, as many as were asked for.
    pub values: Option<Vec<String>>,
}

/// The first element in which two runs differ.
#[derive(Serialize)]
pub struct Difference {
    pub buffer: String,
    pub element: usize,
    /// Elements of this buffer that differ.
    pub count: usize,
    pub schedules: [String; 2],
    pub values: [String; 2],
}

impl Report {
    pub fn new(launch: &Launch, first: RunReport) -> Self {
        let request = &launch.request;
        Self {
            command: "run",
            version: 1,
            file: launch.kernel.path.clone(),
            kernel: launch.kernel.program.name().to_owned(),
            grid: request.grid,
            block: request.block,
            shared: request.dynamic_shared,
            runs: vec![first],
            buffers: Vec::new(),
            schedules_agree: None,
            difference: None,
            exit: 0,
        }
    }

    pub fn fine(&self) -> bool {
        self.difference.is_none() && self.runs.iter().all(|run| run.errors == 0)
    }
}

impl RunReport {
    pub fn new(schedule: Schedule, ran: &Ran) -> Self {
        Self {
            schedule: schedule.to_string(),
            errors: ran.outcome.reports.errors(),
            findings: ran.findings.clone(),
            findings_left_out: ran.outcome.reports.left_out(),
            statistics: ran.outcome.statistics,
            printed: ran.outcome.printed.clone(),
        }
    }
}

impl BufferReport {
    pub fn new(buffer: &Buffer, after: &[u8], printed: Option<usize>, digest: bool) -> Self {
        let (ty, width) = (buffer.ty, buffer.ty.bytes());
        let elements = buffer.bytes.chunks(width).zip(after.chunks(width));
        Self {
            name: buffer.name.clone(),
            parameter: buffer.number,
            ty: ty.to_string(),
            count: buffer.count,
            changed: elements.filter(|(before, after)| before != after).count(),
            sha256: digest.then(|| hexadecimal(&Sha256::digest(after))),
            values: printed.map(|most| (0..most).map(|at| ty.show(ty.at(after, at))).collect()),
        }
    }
}

impl Difference {
    /// Compares two runs, buffer by buffer.
    pub fn find(launch: &Launch, schedules: [Schedule; 2], runs: [&Ran; 2]) -> Option<Self> {
        let [a, b] = runs.map(|run| &run.contents);
        launch.buffers.iter().zip(a.iter().zip(b)).find_map(|(buffer, (a, b))| {
            let (ty, width) = (buffer.ty, buffer.ty.bytes());
            let elements = a.chunks(width).zip(b.chunks(width)).enumerate();
            let mut differing = elements.filter(|(_, (a, b))| a != b).map(|(at, _)| at);
            let element = differing.next()?;
            Some(Self {
                buffer: buffer.name.clone(),
                element,
                count: 1 + differing.count(),
                schedules: schedules.map(|schedule| schedule.to_string()),
                values: [a, b].map(|bytes| ty.show(ty.at(bytes, element))),
            })
        })
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
