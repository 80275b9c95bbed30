//! Two kernels compared in full: no hash decides.

use bitstable_ptx::{
    ir::{Function, Module},
    syntax::print_instruction,
};

use crate::{InputError, Launch, Obstacle, Place, partition::entry, signature};

/// What two kernels come to.
#[must_use]
#[derive(Debug)]
pub enum Verdict {
    Same,
    Different(Vec<Difference>),
    Unknown(Obstacle),
}

/// An output that two kernels compute otherwise.
#[derive(Debug)]
pub struct Difference {
    pub output: String,
    /// In either kernel.
    pub at: [Place; 2],
    pub text: String,
}

/// A kernel: its module, its name where there are several, and what is known of its launch.
pub type Kernel<'a> = (&'a Module, Option<&'a str>, &'a Launch);

/// Compares two kernels. As yet by their instructions: others are unknown.
///
/// # Errors
/// When one of them is no kernel that can be launched.
pub fn same(a: Kernel<'_>, b: Kernel<'_>) -> Result<Verdict, InputError> {
    for (module, name, launch) in [a, b] {
        signature(module, name, launch)?;
    }
    let (Some(f), Some(g)) = (entry(a.0, a.1), entry(b.0, b.1)) else {
        return Err(InputError::NoEntry);
    };
    if a.2 == b.2
        && f.directives == g.directives
        && a.0.variables == b.0.variables
        && text(f) == text(g)
    {
        return Ok(Verdict::Same);
    }
    let what = "instructions differ, and nothing compares them in full yet".to_owned();
    let place = Place { line: f.at.line, source: None };
    Ok(Verdict::Unknown(Obstacle { what, place }))
}

fn text(function: &Function) -> Option<(String, Vec<String>)> {
    let body = function.body.as_ref()?;
    let declared = format!("{:?} {:?} {:?}", function.params, body.variables, body.labels);
    Some((declared, body.instructions.iter().map(|it| print_instruction(body, it)).collect()))
}
