//! `bitstable tree`'s answer for a terminal.

use std::io::{self, Write};

use super::{
    judge::Standing,
    report::{FileReport, Group, Report},
};
use crate::{arguments::TreeOptions, streams::counted};

/// Groups shown without `--all`.
const SHOWN: usize = 16;
/// Runs of elements named in one line.
const RUNS: usize = 4;

/// Writes the whole answer.
pub fn write(report: &Report, options: &TreeOptions, out: &mut dyn Write) -> io::Result<()> {
    for file in &report.files {
        self::file(file, options, out)?;
    }
    let Some(difference) = &report.difference else {
        return match report.same {
            Some(_) => writeln!(out, "the trees are the same"),
            None => Ok(()),
        };
    };
    writeln!(out, "the trees are not the same: {} differ", counted(difference.count, "output"))?;
    writeln!(out, "{}, the first of them:", difference.output)?;
    for (file, words) in difference.files.iter().zip(&difference.explanations) {
        writeln!(out, "  {file}: {words}")?;
    }
    Ok(())
}

fn file(file: &FileReport, options: &TreeOptions, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "{}", file.describe)?;
    for finding in &file.errors {
        writeln!(out, "{finding}")?;
    }
    let most = if options.all { usize::MAX } else { SHOWN };
    for group in file.groups.iter().take(most) {
        self::group(group, out)?;
    }
    if file.groups.len() > most {
        writeln!(out, "… and {} more kinds of outputs (--all)", file.groups.len() - most)?;
    }
    if file.numbers > 0 {
        writeln!(out, "{} that no input reached", counted(file.numbers, "element"))?;
    }
    if !file.depends.is_empty() {
        let lines = file.depends.iter().take(RUNS).map(String::as_str).collect::<Vec<_>>();
        writeln!(
            out,
            "inputs decide control or addresses at {}: the trees hold for this run's path",
            lines.join(", ")
        )?;
    }
    summary(file, out)
}

fn group(group: &Group, out: &mut dyn Write) -> io::Result<()> {
    let mut named = group.elements.iter().take(RUNS).cloned().collect::<Vec<_>>().join(", ");
    if group.elements.len() > RUNS {
        named.push_str(", …");
    }
    writeln!(out, "{named}: {}", counted(group.count, "output"))?;
    writeln!(out, "  {}", group.explanation)?;
    if group.verdict != Standing::NoReduction {
        let of = match group.reductions {
            0 | 1 => String::new(),
            many => format!("; one of {many} reductions"),
        };
        writeln!(out, "  {}, depth {}{of}", counted(group.leaves, "leaf"), group.depth)?;
    }
    let digest = group.digest.as_deref().unwrap_or("none: a value could not be followed");
    writeln!(out, "  digest of {}: {digest}", group.first)?;
    for line in group.tree.iter().flat_map(|tree| tree.lines()) {
        writeln!(out, "    {line}")?;
    }
    Ok(())
}

/// Counts of outputs by verdict, and the digest of all.
fn summary(file: &FileReport, out: &mut dyn Write) -> io::Result<()> {
    let kinds = [
        (Standing::Canonical, "canonical"),
        (Standing::Departs, "not canonical"),
        (Standing::Unknown, "unknown"),
        (Standing::AnyOrder, "whose order does not matter"),
        (Standing::NoReduction, "without a reduction"),
    ];
    let counts: Vec<String> = kinds
        .into_iter()
        .map(|(kind, word)| {
            let of_kind = file.groups.iter().filter(|group| group.verdict == kind);
            (of_kind.map(|group| group.count).sum::<usize>(), word)
        })
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let counts = if counts.is_empty() { "none".into() } else { counts.join(", ") };
    write!(out, "outputs: {counts}")?;
    match &file.digest {
        Some(digest) => writeln!(out, "; digest of all: {digest}"),
        None => writeln!(out),
    }
}
