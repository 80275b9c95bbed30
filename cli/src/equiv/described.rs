//! Kernels described in JSON: `--launches`, and requests from other programs.
//!
//! # Invariants
//! - **D1** What is not known is refused, not ignored: a misspelt fact must not be no fact.

use std::{collections::BTreeMap, path::PathBuf};

use serde::Deserialize;

use super::{
    facts::{Facts, Known},
    given::{Given, Kernels, Text},
};

/// A request; the answer is as `--json` gives it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    pub kernels: Vec<Described>,
    #[serde(default)]
    pub confirm: bool,
    /// Pairs of classes to explain.
    #[serde(default)]
    pub explain: usize,
    #[serde(default)]
    pub jobs: usize,
}

/// A kernel, and what is known of its launch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Described {
    name: Option<String>,
    file: Option<PathBuf>,
    ptx: Option<String>,
    group: Option<Group>,
    entry: Option<String>,
    grid: Option<Vec<u32>>,
    block: Option<Vec<u32>>,
    scalars: Option<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a group is a string or an integer")]
enum Group {
    Text(String),
    Number(i64),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "a scalar is a number, true, false, or a text such as \"f32:1e-5\"")]
enum Value {
    Text(String),
    Number(serde_json::Number),
    Flag(bool),
}

/// Adds kernels; what they leave out is as `entry` and `facts` say. An error is for people.
pub fn add(
    all: Vec<Described>,
    entry: Option<&str>,
    facts: &Facts,
    kernels: &mut Kernels,
) -> Result<(), String> {
    for (number, described) in all.into_iter().enumerate() {
        let wrong = |reason| format!("kernel {number}: {reason}");
        let (path_name, text) = match (described.file, described.ptx) {
            (Some(path), None) => (Some(path.display().to_string()), Text::File(path)),
            (None, Some(text)) => (None, Text::Here(text)),
            (Some(_), Some(_)) => return Err(wrong("it has a `file` and a `ptx`".into())),
            (None, None) => return Err(wrong("it has neither a `file` nor a `ptx`".into())),
        };
        let name = described.name.or(path_name);
        let size = |what, given: Option<Vec<u32>>| {
            given.map(|sizes| extent(what, &sizes).map_err(wrong)).transpose()
        };
        let own = Facts {
            grid: size("grid", described.grid)?.or(facts.grid),
            block: size("block", described.block)?.or(facts.block),
            scalars: described.scalars.map_or_else(|| facts.scalars.clone(), scalars),
        };
        let group = kernels.group(described.group.map(|group| match group {
            Group::Text(text) => text,
            Group::Number(number) => number.to_string(),
        }));
        kernels.all.push(Given {
            name: name.unwrap_or_else(|| format!("kernel {number}")),
            text,
            group,
            entry: described.entry.or_else(|| entry.map(str::to_owned)),
            facts: own,
        });
    }
    Ok(())
}

fn extent(what: &str, given: &[u32]) -> Result<[u32; 3], String> {
    if given.is_empty() || given.len() > 3 {
        return Err(format!("a {what} is one to three numbers, not {}", given.len()));
    }
    let mut sizes = [1; 3];
    sizes[..given.len()].copy_from_slice(given);
    Ok(sizes)
}

fn scalars(given: BTreeMap<String, Value>) -> Vec<Known> {
    let text = |value| match value {
        Value::Text(text) => text,
        Value::Number(number) => number.to_string(),
        Value::Flag(flag) => u8::from(flag).to_string(),
    };
    given.into_iter().map(|(parameter, value)| Known::new(&parameter, &text(value))).collect()
}
