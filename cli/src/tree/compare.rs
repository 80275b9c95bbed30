//! Whether two kernels, run on the same arguments, made the same trees.

use bitstable_ptx::symbol::{Digests, explain};
use rustc_hash::FxHashMap;
use serde::Serialize;

use super::{
    judge::Judge,
    trace::{Output, Trace},
};

/// The first output with other trees in another kernel.
#[derive(Serialize)]
pub struct Difference {
    pub output: String,
    pub files: [String; 2],
    /// What each kernel's tree is, in words.
    pub explanations: [String; 2],
    /// Outputs of the first file whose trees differ, or are missing in the other; and those that
    /// only the other has.
    pub count: usize,
}

impl Difference {
    /// The first file is compared with each of the others, up to the first that differs.
    pub fn find(first: &Trace, others: &[Trace]) -> Option<Self> {
        others.iter().find_map(|other| Self::between(first, other))
    }

    fn between(a: &Trace, b: &Trace) -> Option<Self> {
        let key = |trace: &Trace, output: &Output| {
            (trace.launch.buffers[output.buffer].number, output.element)
        };
        let theirs: FxHashMap<_, &Output> =
            b.outputs.iter().map(|output| (key(b, output), output)).collect();
        let ours: FxHashMap<_, &Output> =
            a.outputs.iter().map(|output| (key(a, output), output)).collect();
        let (mut mine, mut other) = (Digests::default(), Digests::default());
        let mut differing = Vec::new();
        for output in &a.outputs {
            let match_ = theirs.get(&key(a, output)).copied();
            let digest = mine.of(a.symbols.graph(), output.node);
            let same = match_.is_some_and(|theirs| {
                // What could not be followed is never the same.
                digest.is_some()
                    && digest.map(|d| d.tree)
                        == other.of(b.symbols.graph(), theirs.node).map(|d| d.tree)
            });
            if !same {
                differing.push((a.name(output), Some(output), match_));
            }
        }
        for output in b.outputs.iter().filter(|output| !ours.contains_key(&key(b, output))) {
            differing.push((b.name(output), None, Some(output)));
        }
        let count = differing.len();
        let (output, here, there) = differing.into_iter().next()?;
        let files = [a, b].map(|trace| trace.launch.kernel.path.clone());
        Some(Self { output, files, explanations: [words(a, here), words(b, there)], count })
    }
}

fn words(trace: &Trace, output: Option<&Output>) -> String {
    let Some(output) = output else { return "not written".into() };
    let graph = trace.symbols.graph();
    let shown = Judge::new(graph, None).judge(output.node).shown;
    let said = trace.naming().with(|names| explain(graph, &shown.analysis, names));
    format!("{said}; depth {}", shown.analysis.tree.depth())
}
