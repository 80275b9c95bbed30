//! `bitstable equiv`'s answer for a terminal.

use std::io::{self, Write};

use super::report::{ClassReport, Difference, Report};
use crate::streams::{Streams, counted};

/// Classes shown without `--all`.
const CLASSES: usize = 32;
/// Files of a class shown without `--all`.
const FILES: usize = 16;
/// Places named in one line.
const PLACES: usize = 4;

/// Writes the whole answer; errors go to the error stream.
pub fn write(report: &Report, all: bool, streams: &mut Streams<'_>) -> io::Result<()> {
    let out = &mut *streams.out;
    summary(report, out)?;
    let (classes, files) = if all { (usize::MAX, usize::MAX) } else { (CLASSES, FILES) };
    for (number, class) in report.classes.iter().enumerate().take(classes) {
        self::class(number + 1, class, files, out)?;
    }
    if report.classes.len() > classes {
        writeln!(out, "… and {} more classes (--all)", report.classes.len() - classes)?;
    }
    for found in &report.unconfirmed {
        let (file, against) = (&found.file, &found.against_file);
        writeln!(out, "not confirmed: {file} has the signature of {against}: {}", found.reason)?;
    }
    for difference in &report.differences {
        self::difference(difference, out)?;
    }
    for error in &report.errors {
        match &error.syntax {
            Some(syntax) => writeln!(streams.err, "error: {}:{syntax}", error.file)?,
            None => writeln!(streams.err, "error: {}: {}", error.file, error.error)?,
        }
    }
    Ok(())
}

fn summary(report: &Report, out: &mut dyn Write) -> io::Result<()> {
    let kernels: usize = report.classes.iter().map(|class| class.kernels.len()).sum();
    let verdict = if report.same { "the same" } else { "not proved the same" };
    write!(out, "{verdict}: {}, ", counted(kernels, "kernel"))?;
    match report.classes.len() {
        1 => write!(out, "1 class")?,
        many => write!(out, "{many} classes")?,
    }
    if report.groups > 0 {
        write!(out, " in {}", counted(report.groups, "group"))?;
    }
    if !report.errors.is_empty() {
        write!(out, ", {}", counted(report.errors.len(), "error"))?;
    }
    writeln!(out)
}

fn class(number: usize, class: &ClassReport, most: usize, out: &mut dyn Write) -> io::Result<()> {
    let count = counted(class.kernels.len(), "kernel");
    write!(out, "class {number}  {}  {count}", class.signature)?;
    match &class.group {
        Some(group) => writeln!(out, " of group {group}")?,
        None => writeln!(out)?,
    }
    for file in class.files.iter().take(most) {
        writeln!(out, "  {file}")?;
    }
    if class.files.len() > most {
        writeln!(out, "  … and {} more (--all)", class.files.len() - most)?;
    }
    if let Some(obstacle) = &class.obstacle {
        writeln!(out, "  not followed, and so the same as its own text alone:")?;
        writeln!(out, "    {}, {}", obstacle.what, obstacle.at)?;
    }
    if class.kernels.len() > 1 && !class.contractions.is_empty() {
        let places = class.contractions.iter().take(PLACES).map(ToString::to_string);
        let mut places = places.collect::<Vec<_>>().join(", ");
        if class.contractions.len() > PLACES {
            places.push_str(", …");
        }
        writeln!(out, "  note: ptxas may fuse a product with the sum that takes it, at {places}:")?;
        writeln!(out, "    the same in every kernel only if it does so in all of them")?;
    }
    Ok(())
}

fn difference(pair: &Difference, out: &mut dyn Write) -> io::Result<()> {
    let ([a, b], [first, other]) = (pair.classes.map(|number| number + 1), &pair.files);
    writeln!(out, "classes {a} and {b}:")?;
    writeln!(out, "  first: {first}\n  second: {other}")?;
    match (pair.verdict, &pair.reason) {
        ("same", _) => {
            writeln!(out, "  the same, compared in full, though their signatures differ")?;
        }
        (_, Some(reason)) => writeln!(out, "  cannot be told: {reason}")?,
        _ => {}
    }
    for output in &pair.outputs {
        writeln!(out, "  {}: {}", output.output, output.text)?;
        for (which, at) in ["first", "second"].into_iter().zip(&output.at) {
            if let Some(at) = at {
                writeln!(out, "    {which} at {at}")?;
            }
        }
    }
    Ok(())
}
