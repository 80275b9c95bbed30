//! Where in the user's source an operation comes from.
//!
//! # Idea
//! Triton inlines: a reduction's location is `callsite(standard.py at callsite(helper.py at
//! kernel.py))`. The user wants the innermost frame that is not Triton's own library.
//! # Not here
//! Locations of what we make: the builder copies the reduction's.

use std::fmt;

use melior::ir::Location;

use crate::text;

/// A file, a line and a column, as far as they are known.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Default, serde::Serialize)]
pub struct Place {
    /// The file.
    pub file: Option<String>,
    /// The line, from 1; 0 when unknown.
    pub line: usize,
    /// The column, from 1; 0 when unknown.
    pub col: usize,
}

/// What the path of a file of Triton's own library contains.
const LIBRARY: &str = "triton/language/";

impl Place {
    /// The innermost frame of `location` outside Triton's library, or the outermost one.
    pub fn of(location: Location<'_>) -> Place {
        let mut rest = vec![location];
        let mut place = Place::default();
        while let Some(location) = rest.pop() {
            if location.is_file_line_col_range() {
                place = Place {
                    file: Some(text::identifier(location.file_line_col_range_filename())),
                    line: location.file_line_col_range_start_line(),
                    col: location.file_line_col_range_start_column(),
                };
                if place.file.as_deref().is_some_and(|f| !f.contains(LIBRARY)) {
                    break;
                }
            } else if location.is_call_site() {
                rest.push(location.call_site_caller());
                rest.push(location.call_site_callee());
            } else if location.is_name() {
                rest.push(location.name_child_location());
            } else if location.is_fused() && location.fused_num_locations() > 0 {
                rest.push(location.fused_location(0));
            }
        }
        place
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}:{}:{}", self.line, self.col),
            None => f.write_str("an unknown place"),
        }
    }
}
