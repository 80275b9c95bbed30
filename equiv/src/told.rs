//! Places in a reader's words, kept after the module that they are places of is gone.

use bitstable_ptx::{
    exec::explain::Source,
    ir::{Body, Module},
};

use crate::{Difference, Obstacle, Place};

/// A [`Place`], with the path of its source.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Told {
    /// Of the PTX; 0 where it is about no line.
    pub line: u32,
    pub source: Option<Source>,
}

impl Told {
    pub(crate) fn new(place: &Place, module: &Module, body: Option<&Body>) -> Self {
        let source = place.source.map(|line| {
            let line = body.map_or(line, |body| module.users_line(body, line));
            let file = module.file(line.file).unwrap_or("?").to_owned();
            Source { file, line: line.line, column: line.column }
        });
        Self { line: place.line, source }
    }

    /// What a reader takes for one place: the source line, or else the line of PTX.
    pub(crate) fn line_key(&self) -> (Option<(&str, u32)>, u32) {
        match &self.source {
            Some(source) => (Some((&source.file, source.line)), 0),
            None => (None, self.line),
        }
    }
}

impl std::fmt::Display for Told {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.source, self.line) {
            (Some(source), line) => write!(f, "{source} (PTX line {line})"),
            (None, 0) => write!(f, "the whole kernel"),
            (None, line) => write!(f, "PTX line {line}"),
        }
    }
}

/// An [`Obstacle`], told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Stuck {
    pub what: String,
    pub at: Told,
}

impl Stuck {
    pub(crate) fn new(obstacle: Obstacle, module: &Module, body: Option<&Body>) -> Self {
        Self { at: Told::new(&obstacle.place, module, body), what: obstacle.what }
    }
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}, {}", self.what, self.at)
    }
}

/// A [`Difference`], told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unlike {
    pub output: String,
    /// In either kernel, where it has such a place.
    pub at: [Option<Told>; 2],
    pub text: String,
}

impl Unlike {
    pub(crate) fn new(found: Difference, bodies: [(&Module, Option<&Body>); 2]) -> Self {
        let [first, second]: [Option<Place>; 2] = found.at.map(Into::into);
        let told = |place: Option<Place>, (module, body): (&Module, Option<&Body>)| {
            place.map(|place| Told::new(&place, module, body))
        };
        let at = [told(first, bodies[0]), told(second, bodies[1])];
        Self { output: found.output, at, text: found.text }
    }
}
