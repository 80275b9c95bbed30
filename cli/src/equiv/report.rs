//! What `bitstable equiv` answers, as a value. Its JSON is documented in `docs/equiv.md`.

use std::collections::BTreeSet;

use bitstable_equiv::{
    Stuck, Told, Unlike,
    partition::{Class, Comparison, Fault, Partition, Unconfirmed},
};
use bitstable_ptx::{exec::explain::Source, syntax::SyntaxError};
use serde::Serialize;

use super::{explain::Explained, given::Kernels};
use crate::Exit;

#[derive(Serialize)]
pub struct Report {
    pub command: &'static str,
    /// Of this document's form.
    pub schema: u32,
    /// Each group is one class, and there are no errors.
    pub same: bool,
    pub classes: Vec<ClassReport>,
    pub errors: Vec<ErrorReport>,
    pub unconfirmed: Vec<UnconfirmedReport>,
    pub differences: Vec<Difference>,
    pub exit: u8,
    /// Groups that were named.
    #[serde(skip)]
    pub groups: usize,
}

#[derive(Serialize)]
pub struct ClassReport {
    pub signature: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub files: Vec<String>,
    /// Their numbers, in the order given.
    pub kernels: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub obstacle: Option<ObstacleReport>,
    pub contractions: Vec<PlaceReport>,
    /// Numbers of the parameters that are written through, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub writes: Option<BTreeSet<u32>>,
}

#[derive(Serialize)]
pub struct ObstacleReport {
    pub what: String,
    #[serde(flatten)]
    pub at: PlaceReport,
}

/// A line of PTX, and of the kernel's source where the PTX tells it.
#[derive(Serialize)]
pub struct PlaceReport {
    pub line: u32,
    pub source: Option<Source>,
}

#[derive(Serialize)]
pub struct ErrorReport {
    pub kernel: usize,
    pub file: String,
    pub error: String,
    #[serde(skip)]
    pub syntax: Option<SyntaxError>,
}

#[derive(Serialize)]
pub struct UnconfirmedReport {
    pub kernel: usize,
    pub file: String,
    /// The class's first kernel.
    pub against: usize,
    pub reason: String,
    #[serde(skip)]
    pub against_file: String,
}

/// Two classes of a group.
#[derive(Serialize)]
pub struct Difference {
    pub classes: [usize; 2],
    pub kernels: [usize; 2],
    pub verdict: &'static str,
    /// Why it is unknown.
    pub reason: Option<String>,
    pub outputs: Vec<OutputReport>,
    #[serde(skip)]
    pub files: [String; 2],
}

/// An output that two kernels compute otherwise.
#[derive(Serialize)]
pub struct OutputReport {
    pub output: String,
    /// In either kernel, where it has such a place.
    pub at: [Option<PlaceReport>; 2],
    pub text: String,
}

impl Report {
    pub fn new(kernels: &Kernels, found: &Partition, explained: &[Explained]) -> Self {
        let name = |number: usize| kernels.all[number].name.clone();
        let errors: Vec<ErrorReport> = found
            .errors
            .iter()
            .map(|(number, fault)| ErrorReport {
                kernel: *number,
                file: name(*number),
                error: fault.to_string(),
                syntax: match &**fault {
                    Fault::Syntax(error) => Some(error.clone()),
                    Fault::Read(_) | Fault::Launch(_) | Fault::Input(_) | Fault::Bug(_) => None,
                },
            })
            .collect();
        let mut classes_of = vec![0; kernels.groups.len()];
        for class in &found.classes {
            classes_of[class.group as usize] += 1;
        }
        let one_each = classes_of.iter().all(|&count| count <= 1);
        let same = one_each && errors.is_empty();
        let exit = match (errors.is_empty(), same) {
            (false, _) => Exit::Error,
            (true, true) => Exit::Fine,
            (true, false) => Exit::Found,
        };
        Self {
            command: "equiv",
            schema: 1,
            same,
            classes: found.classes.iter().map(|class| ClassReport::new(kernels, class)).collect(),
            errors,
            unconfirmed: found
                .unconfirmed
                .iter()
                .map(|Unconfirmed { kernel, against, doubt }| UnconfirmedReport {
                    kernel: *kernel,
                    file: name(*kernel),
                    against: *against,
                    against_file: name(*against),
                    reason: doubt.to_string(),
                })
                .collect(),
            differences: explained.iter().map(|pair| Difference::new(kernels, pair)).collect(),
            exit: exit as u8,
            groups: kernels.groups.iter().flatten().count(),
        }
    }

    pub fn exit(&self) -> Exit {
        match self.exit {
            0 => Exit::Fine,
            1 => Exit::Found,
            _ => Exit::Error,
        }
    }
}

impl ClassReport {
    fn new(kernels: &Kernels, class: &Class) -> Self {
        Self {
            signature: class.digest.to_string(),
            group: kernels.groups[class.group as usize].clone(),
            files: class.members.iter().map(|&member| kernels.all[member].name.clone()).collect(),
            kernels: class.members.clone(),
            obstacle: class.obstacle.as_ref().map(ObstacleReport::new),
            contractions: class.contractions.iter().map(PlaceReport::new).collect(),
            writes: class.writes.clone(),
        }
    }
}

impl ObstacleReport {
    fn new(stuck: &Stuck) -> Self {
        Self { what: stuck.what.clone(), at: PlaceReport::new(&stuck.at) }
    }
}

impl PlaceReport {
    fn new(told: &Told) -> Self {
        Self { line: told.line, source: told.source.clone() }
    }
}

impl Difference {
    fn new(kernels: &Kernels, pair: &Explained) -> Self {
        let (verdict, reason, outputs): (_, _, &[Unlike]) = match &pair.comparison {
            Ok(Comparison::Same) => ("same", None, &[]),
            Ok(Comparison::Different(outputs)) => ("different", None, outputs),
            Ok(Comparison::Unknown(stuck)) => ("unknown", Some(stuck.to_string()), &[]),
            Err(fault) => ("unknown", Some(fault.to_string()), &[]),
        };
        Self {
            classes: pair.classes,
            kernels: pair.kernels,
            verdict,
            reason,
            outputs: outputs.iter().map(OutputReport::new).collect(),
            files: pair.kernels.map(|number| kernels.all[number].name.clone()),
        }
    }
}

impl OutputReport {
    fn new(unlike: &Unlike) -> Self {
        Self {
            output: unlike.output.clone(),
            at: [0, 1].map(|side: usize| unlike.at[side].as_ref().map(PlaceReport::new)),
            text: unlike.text.clone(),
        }
    }
}

impl std::fmt::Display for PlaceReport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        Told { line: self.line, source: self.source.clone() }.fmt(f)
    }
}
