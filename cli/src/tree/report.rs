//! What `bitstable tree` answers, as a value. Its JSON is documented in `docs/command.md`.

use std::rc::Rc;

use bitstable_ptx::{
    exec::explain::Explained,
    report::Severity,
    symbol::{Digest, Digests, Verdict, explain, print::outline},
};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{
    judge::{Judge, Judgement, Standing},
    trace::{Output, Trace},
};
use crate::arguments::TreeOptions;

#[derive(Serialize)]
pub struct Report {
    pub command: &'static str,
    /// Of this document's form.
    pub version: u32,
    pub files: Vec<FileReport>,
    /// Whether all files have the same trees; absent for one file.
    pub same: Option<bool>,
    pub difference: Option<super::compare::Difference>,
    pub exit: u8,
}

/// One kernel's trees.
#[derive(Serialize)]
pub struct FileReport {
    pub file: String,
    pub kernel: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub shared: u32,
    /// Only those that are errors: such a run proves nothing.
    pub errors: Vec<Explained>,
    /// Source lines where control or an address depends on an input: trees hold for this path.
    pub depends: Vec<String>,
    /// Outputs that have a tree.
    pub outputs: usize,
    /// Elements asked for that no input reached.
    pub numbers: usize,
    /// Of all outputs together; absent where a value could not be followed.
    pub digest: Option<String>,
    pub groups: Vec<Group>,
    #[serde(skip)]
    pub describe: String,
}

/// Outputs whose reductions differ only in where their leaves begin.
#[derive(Serialize)]
pub struct Group {
    /// `out[0..4]`.
    pub elements: Vec<String>,
    pub count: usize,
    pub verdict: Standing,
    /// The verdict in words; names are those of the first element.
    pub explanation: String,
    pub first: String,
    pub combine: Option<String>,
    /// Some join's rounding is not written, so that ptxas may contract it with a product.
    pub contractible: bool,
    pub reductions: usize,
    pub leaves: usize,
    pub depth: u32,
    /// Of the first element's tree, blind to the order of operands that commute.
    pub digest: Option<String>,
    /// The same, not blind.
    pub ordered: Option<String>,
    /// The first element's tree, when it was asked for.
    pub tree: Option<String>,
}

impl Report {
    pub fn new(first: FileReport) -> Self {
        let exit = u8::from(!first.fine());
        let files = vec![first];
        Self { command: "tree", version: 1, files, same: None, difference: None, exit }
    }

    /// Compares the first kernel with the others, which takes over the status.
    pub fn compare(&mut self, first: &Trace, others: &[Trace]) {
        if others.is_empty() {
            return;
        }
        self.difference = super::compare::Difference::find(first, others);
        self.same = Some(self.difference.is_none());
        let errors = self.files.iter().any(|file| !file.errors.is_empty());
        self.exit = u8::from(self.difference.is_some() || errors);
    }
}

impl FileReport {
    pub fn new(trace: &Trace, options: &TreeOptions) -> Self {
        let graph = trace.symbols.graph();
        let mut digests = Digests::default();
        let kinds = kinds(trace, options.extent);
        let groups = kinds.iter().map(|kind| Group::new(trace, kind, options, &mut digests));
        let groups = groups.collect();
        let buffers = &trace.launch.buffers;
        let all: Vec<_> = trace
            .outputs
            .iter()
            .map(|output| {
                let buffer = &buffers[output.buffer];
                (buffer.number, (output.element * buffer.ty.bytes()) as u64, output.node)
            })
            .collect();
        let errors = trace.ran.findings.iter().filter(|found| found.severity == Severity::Error);
        let request = &trace.launch.request;
        Self {
            file: trace.launch.kernel.path.clone(),
            kernel: trace.launch.kernel.program.name().to_owned(),
            grid: request.grid,
            block: request.block,
            shared: request.dynamic_shared,
            errors: errors.cloned().collect(),
            depends: depends(trace),
            outputs: trace.outputs.len(),
            numbers: trace.numbers,
            digest: digests.of_outputs(graph, &all).map(|digest| digest.to_string()),
            groups,
            describe: trace.launch.describe(),
        }
    }

    /// Every output was judged, and nothing is amiss.
    pub fn fine(&self) -> bool {
        let good = |group: &Group| match group.verdict {
            Standing::Canonical | Standing::AnyOrder | Standing::NoReduction => true,
            Standing::Departs | Standing::Unknown => false,
        };
        self.errors.is_empty() && self.outputs > 0 && self.groups.iter().all(good)
    }
}

/// Where the path depends on an input.
fn depends(trace: &Trace) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for decision in trace.symbols.decisions() {
        let line = trace.naming().source(decision.at.pc);
        let line = line.unwrap_or_else(|| "a line that is not known".into());
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    lines
}

/// Outputs of one kind.
struct Kind {
    judgement: Judgement,
    outputs: Vec<Output>,
}

/// Outputs by the shapes of their reductions, in the order of their first elements.
fn kinds(trace: &Trace, extent: Option<u64>) -> Vec<Kind> {
    let mut judge = Judge::new(trace.symbols.graph(), extent);
    let mut places = FxHashMap::default();
    let mut kinds: Vec<Kind> = Vec::new();
    for output in &trace.outputs {
        let judgement = judge.judge(output.node);
        let at = *places.entry(Rc::clone(&judgement.kind)).or_insert(kinds.len());
        if at == kinds.len() {
            kinds.push(Kind { judgement, outputs: Vec::new() });
        }
        kinds[at].outputs.push(*output);
    }
    kinds
}

impl Group {
    fn new(trace: &Trace, kind: &Kind, options: &TreeOptions, digests: &mut Digests) -> Self {
        let (graph, first) = (trace.symbols.graph(), kind.outputs[0]);
        let judgement = &kind.judgement;
        let analysis = &judgement.shown.analysis;
        let combine = analysis.tree.combine.map(|label| graph.label(label).name());
        let digest: Option<Digest> = digests.of(graph, first.node);
        let explanation = match judgement.standing {
            Standing::NoReduction => "no reduction".into(),
            Standing::AnyOrder => {
                format!("any order: {} gives the same bits", combine.as_deref().unwrap_or("it"))
            }
            Standing::Canonical | Standing::Departs | Standing::Unknown => {
                trace.naming().with(|names| explain(graph, analysis, names))
            }
        };
        let tree = options
            .print
            .map(|most| trace.naming().with(|names| outline(graph, first.node, names, most)));
        Self {
            elements: ranges(trace, &kind.outputs),
            count: kind.outputs.len(),
            verdict: judgement.standing,
            explanation,
            first: trace.name(&first),
            combine,
            contractible: matches!(
                &analysis.verdict,
                Verdict::Canonical(found) if found.contractible
            ),
            reductions: judgement.reductions,
            leaves: analysis.tree.leaves().len(),
            depth: analysis.tree.depth(),
            digest: digest.map(|digest| digest.to_string()),
            ordered: digest.map(|digest| format!("{:032x}", digest.ordered)),
            tree,
        }
    }
}

/// Runs of neighbouring elements: `out[3]`, `out[4..8]`.
fn ranges(trace: &Trace, outputs: &[Output]) -> Vec<String> {
    let mut runs: Vec<(usize, usize, usize)> = Vec::new();
    for output in outputs {
        match runs.last_mut() {
            Some((buffer, _, end)) if *buffer == output.buffer && *end == output.element => {
                *end += 1
            }
            _ => runs.push((output.buffer, output.element, output.element + 1)),
        }
    }
    let name = |(buffer, start, end): (usize, usize, usize)| {
        let buffer = &trace.launch.buffers[buffer].name;
        if end == start + 1 {
            format!("{buffer}[{start}]")
        } else {
            format!("{buffer}[{start}..{end}]")
        }
    };
    runs.into_iter().map(name).collect()
}
