//! A PTX file, decoded; and what Triton's metadata says about it.

use std::{
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

use bitstable_ptx::{
    exec::program::Program,
    ir::{Module, Space},
    syntax::parse,
};
use serde::Deserialize;

use crate::failure::{self, Failure};

/// A kernel that can be launched.
pub struct Kernel {
    /// As the user named the file; `<stdin>` for standard input.
    pub path: String,
    pub program: Program,
    pub metadata: Option<Metadata>,
}

/// What we use of the JSON that Triton writes beside the PTX.
#[derive(Deserialize, Debug)]
pub struct Metadata {
    pub num_warps: u32,
    #[serde(default = "Metadata::lanes")]
    pub warp_size: u32,
    #[serde(default)]
    pub shared: u32,
    /// Bytes of scratch memory a CTA.
    #[serde(default)]
    pub global_scratch_size: u32,
}

impl Metadata {
    fn lanes() -> u32 {
        32
    }
}

/// Bytes of a file that are read: more is no PTX.
const MOST_TEXT: u64 = 1 << 28;

impl Kernel {
    /// Reads and decodes a file, and its metadata when it is given or lies beside it.
    pub fn read(path: &Path, entry: Option<&str>, triton: Option<&Path>) -> Result<Self, Failure> {
        let (path_shown, text) = text(path)?;
        let module = parse(&text)
            .map_err(|error| Failure::Syntax { path: path_shown.clone(), error: error.into() })?;
        let program = Program::new(&module, entry)
            .map_err(|error| failure::decode(&path_shown, &text, error))?;
        let metadata = match triton {
            Some(given) => Some(metadata(given)?),
            // What lies there by chance may be anything.
            None => beside(path).and_then(|found| metadata(&found).ok()),
        };
        Ok(Self { path: path_shown, program, metadata })
    }

    pub fn module(&self) -> &Module {
        self.program.module()
    }

    /// Threads of a CTA, if the PTX or the metadata says so. Specialised warps are only in the PTX.
    pub fn block(&self) -> Option<[u32; 3]> {
        let told = || self.metadata.as_ref().map(|told| [told.num_warps * told.warp_size, 1, 1]);
        self.program.required_threads().or_else(told)
    }

    /// It has shared memory whose size only the launch says.
    pub fn sized_at_launch(&self) -> bool {
        let variables = &self.module().variables;
        variables.iter().any(|v| v.space == Space::Shared && v.elements == Some(0))
    }
}

fn beside(path: &Path) -> Option<PathBuf> {
    let found = path.with_extension("json");
    (path.as_os_str() != "-" && found.is_file()).then_some(found)
}

fn text(path: &Path) -> Result<(String, String), Failure> {
    let stdin = path.as_os_str() == "-";
    let shown = if stdin { "<stdin>".to_owned() } else { path.display().to_string() };
    match read_text(path) {
        Ok(text) => Ok((shown, text)),
        Err(error) => Err(Failure::Read { path: shown, reason: error.to_string() }),
    }
}

/// The text of a PTX file; of standard input for `-`.
pub fn read_text(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::new();
    if path.as_os_str() == "-" {
        io::stdin().lock().take(MOST_TEXT).read_to_end(&mut bytes)?;
    } else {
        File::open(path)?.take(MOST_TEXT).read_to_end(&mut bytes)?;
    }
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        let reason = format!("byte {at} is not UTF-8: no PTX text");
        io::Error::new(io::ErrorKind::InvalidData, reason)
    })
}

fn metadata(path: &Path) -> Result<Metadata, Failure> {
    let shown = path.display().to_string();
    let failure = |reason| Failure::Metadata { path: shown.clone(), reason };
    let text = std::fs::read_to_string(path).map_err(|error| failure(error.to_string()))?;
    let found: Metadata = serde_json::from_str(&text)
        .map_err(|error| failure(format!("it is no metadata of Triton: {error}")))?;
    if found.num_warps.checked_mul(found.warp_size).is_none() {
        return Err(failure("its warps have too many threads".into()));
    }
    Ok(found)
}
