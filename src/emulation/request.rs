//! What a caller asks for, as JSON.
//!
//! # Invariants
//! - **Q1** What is not known is refused, not ignored: a misspelt option must not be a default.

use bitstable_ptx::{
    exec::{RunOptions, Schedule},
    num::mma::{Core, MmaModel},
};
use serde::Deserialize;

/// Options of loading.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Load {
    /// The kernel's name; none where the text has one kernel.
    pub entry: Option<String>,
}

/// A launch.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    pub grid: [u32; 3],
    pub block: [u32; 3],
    #[serde(default)]
    pub dynamic_shared: u32,
    pub buffers: Vec<Buffer>,
    #[serde(default)]
    pub options: Options,
}

/// Memory of the caller that the kernel may reach. Its device address is its address.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffer {
    pub name: String,
    pub address: u64,
    pub bytes: usize,
    pub writable: bool,
}

/// How to run; what is left out is as [`RunOptions::default`] has it, and `mma` is `hardware`.
#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
pub struct Options {
    pub schedule: Option<String>,
    pub races: Option<bool>,
    pub strict: Option<bool>,
    pub step_limit: Option<u64>,
    pub jobs: Option<usize>,
    pub mma: Option<String>,
    pub multiprocessors: Option<u32>,
}

impl Options {
    /// As the executor takes them, for a kernel compiled for `sm`.
    pub fn read(&self, sm: u32) -> Result<RunOptions, String> {
        let plain = RunOptions::default();
        let schedule: Schedule = match &self.schedule {
            Some(text) => text.parse()?,
            None => plain.schedule,
        };
        Ok(RunOptions {
            schedule,
            races: self.races.unwrap_or(plain.races),
            strict: self.strict.unwrap_or(plain.strict),
            step_limit: self.step_limit.unwrap_or(plain.step_limit),
            jobs: self.jobs.unwrap_or(plain.jobs),
            mma: model(self.mma.as_deref().unwrap_or("hardware"), sm)?,
            multiprocessors: self.multiprocessors.unwrap_or(plain.multiprocessors),
        })
    }
}

fn model(name: &str, sm: u32) -> Result<MmaModel, String> {
    match name {
        "exact" => Ok(MmaModel::Exact),
        "sequential" => Ok(MmaModel::Sequential),
        "hardware" => Core::of_sm(sm).map(MmaModel::Hardware).ok_or_else(|| {
            format!(
                "how sm_{sm} rounds matrix products is not known: choose mma exact or sequential"
            )
        }),
        _ => Err(format!("no such mma: {name} (hardware, exact or sequential)")),
    }
}
