//! The kernels to compare, as the command line names them.
//!
//! # Invariants
//! - **G1** Files are read when they are asked for, by who asks; standard input at once, and by one.

use std::{
    borrow::Cow,
    ffi::OsString,
    fs::File,
    io::{self, Read},
    os::unix::ffi::OsStringExt,
    path::{Path, PathBuf},
};

use bitstable_equiv::{Launch, partition::Kernel};
use bitstable_ptx::ir::Module;
use rustc_hash::FxHashMap;

use super::{
    described::{self, Described},
    facts::Facts,
};
use crate::{arguments::EquivOptions, failure::Failure, kernel::read_text};

/// A kernel to compare.
pub struct Given {
    /// What the answer calls it.
    pub name: String,
    pub text: Text,
    /// Of [`Kernels::groups`].
    pub group: u32,
    pub entry: Option<String>,
    pub facts: Facts,
}

pub enum Text {
    File(PathBuf),
    Here(String),
}

/// All of them, in order.
#[derive(Default)]
pub struct Kernels {
    pub all: Vec<Given>,
    /// Names of groups; the one of kernels without a group has none.
    pub groups: Vec<Option<String>>,
    numbers: FxHashMap<Option<String>, u32>,
}

impl Kernel for Given {
    type Facts = Facts;

    fn group(&self) -> u32 {
        self.group
    }

    fn text(&self) -> io::Result<Cow<'_, str>> {
        match &self.text {
            Text::File(path) => read_text(path).map(Cow::Owned),
            Text::Here(text) => Ok(Cow::Borrowed(text)),
        }
    }

    fn entry(&self) -> Option<&str> {
        self.entry.as_deref()
    }

    fn facts(&self) -> &Facts {
        &self.facts
    }

    fn launch(&self, module: &Module) -> Result<Launch, String> {
        self.facts.launch(module, self.entry())
    }
}

impl Kernels {
    /// The number of a group.
    pub fn group(&mut self, name: Option<String>) -> u32 {
        let next = self.groups.len() as u32;
        let number = *self.numbers.entry(name.clone()).or_insert(next);
        if number == next {
            self.groups.push(name);
        }
        number
    }

    /// What a command line names.
    pub fn of_command(options: &EquivOptions) -> Result<Self, Failure> {
        only_one_reads_stdin(options)?;
        let facts = Facts {
            grid: options.grid.map(|extent| extent.0),
            block: options.block.map(|extent| extent.0),
            scalars: options.scalar.clone(),
        };
        let mut kernels = Self::default();
        let listed = options.files_from.as_deref().map(list).transpose()?.unwrap_or_default();
        for path in options.kernels.iter().cloned().chain(listed) {
            let (name, text) = if stdin(&path) {
                let text = read_text(&path).map_err(|error| failure(&path, &error))?;
                ("<stdin>".into(), Text::Here(text))
            } else {
                (path.display().to_string(), Text::File(path))
            };
            let (group, entry) = (kernels.group(None), options.entry.clone());
            kernels.all.push(Given { name, text, group, entry, facts: facts.clone() });
        }
        if let Some(path) = &options.launches {
            let wrong = |reason| Failure::Option {
                option: "--launches",
                given: path.display().to_string(),
                reason,
            };
            let bytes = bytes(path).map_err(|error| failure(path, &error))?;
            let all: Vec<Described> =
                serde_json::from_slice(&bytes).map_err(|error| wrong(error.to_string()))?;
            described::add(all, options.entry.as_deref(), &facts, &mut kernels).map_err(wrong)?;
        }
        if kernels.all.is_empty() { Err(Failure::NoKernels) } else { Ok(kernels) }
    }
}

fn stdin(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn only_one_reads_stdin(options: &EquivOptions) -> Result<(), Failure> {
    let lists = [&options.files_from, &options.launches].into_iter().flatten();
    let readers = options.kernels.iter().chain(lists).filter(|path| stdin(path)).count();
    if readers > 1 {
        let reason = format!("standard input can be read once, not {readers} times");
        return Err(Failure::Option { option: "-", given: "for standard input".into(), reason });
    }
    Ok(())
}

/// Paths, one a line.
fn list(path: &Path) -> Result<Vec<PathBuf>, Failure> {
    let bytes = bytes(path).map_err(|error| failure(path, &error))?;
    let lines = bytes.split(|&byte| byte == b'\n');
    let lines = lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let lines = lines.filter(|line| !line.is_empty());
    Ok(lines.map(|line| OsString::from_vec(line.to_vec()).into()).collect())
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if stdin(path) {
        io::stdin().lock().read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn failure(path: &Path, error: &io::Error) -> Failure {
    let path = if stdin(path) { "<stdin>".into() } else { path.display().to_string() };
    Failure::Read { path, reason: error.to_string() }
}
