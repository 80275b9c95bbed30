//! The command line.

use std::{path::PathBuf, str::FromStr};

use bitstable_ptx::{
    exec::schedule::Schedule,
    num::mma::{Core, MmaModel},
};
use clap::{Args, Parser, Subcommand};

use crate::{argument::Argument, equiv::facts::Known, help};

/// Run a Triton kernel's PTX on the CPU, exact to the bit, and judge its reductions.
#[derive(Parser, Debug)]
#[command(name = "bitstable", version, about, after_help = help::COMMAND, term_width = 96)]
pub struct CommandLine {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    Run(RunOptions),
    Tree(TreeOptions),
    Equiv(EquivOptions),
    /// Compile Triton kernels in many configurations and compare their bits (needs Python)
    #[command(disable_help_flag = true)]
    Bits {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
        rest: Vec<std::ffi::OsString>,
    },
}

/// Launch a kernel on a CPU: findings, statistics, and what its buffers hold afterwards
#[derive(Args, Debug)]
#[command(after_long_help = help::RUN, after_help = help::MORE)]
pub struct RunOptions {
    #[command(flatten)]
    pub launch: LaunchOptions,

    /// Run under N schedules (forward, reversed, then random ones) and compare the bytes
    #[arg(long, value_name = "N", conflicts_with = "schedule",
          value_parser = clap::value_parser!(u32).range(2..=100_000))]
    pub schedules: Option<u32>,

    /// Print a buffer's first N elements (all, without N); may be repeated
    #[arg(long, value_name = "NAME[:N]", help_heading = "Output")]
    pub print: Vec<Selection>,

    /// Write a buffer to a file: raw bytes, or an array when it ends in .npy; may be repeated
    #[arg(long, value_name = "NAME=FILE", help_heading = "Output")]
    pub save: Vec<Save>,

    /// Print the SHA-256 of every buffer, to compare with bytes from elsewhere
    #[arg(long, help_heading = "Output")]
    pub digest: bool,
}

/// Trace in which order each output element was added up, and judge it
#[derive(Args, Debug)]
#[command(after_long_help = help::TREE, after_help = help::MORE)]
pub struct TreeOptions {
    #[command(flatten)]
    pub launch: LaunchOptions,

    /// A buffer whose elements are leaves [default: all buffers of floats]; may be repeated
    #[arg(long, value_name = "NAME", help_heading = "Trees")]
    pub leaves: Vec<String>,

    /// An output to judge [default: every element that was written]; may be repeated
    #[arg(long, value_name = "NAME[:ELEMENT]", help_heading = "Trees")]
    pub output: Vec<Selection>,

    /// Elements of the reduced axis, padding included: what a whole tree must cover
    #[arg(long, value_name = "N", help_heading = "Trees")]
    pub extent: Option<u64>,

    /// Another PTX file, run with the same arguments: are its trees the same? May be repeated
    #[arg(long, value_name = "KERNEL.ptx", help_heading = "Trees")]
    pub compare: Vec<PathBuf>,

    /// Most expression nodes that are kept
    #[arg(long, value_name = "N", default_value_t = 8 << 20, help_heading = "Trees")]
    pub nodes: usize,

    /// Print a tree of each kind of output, of at most LINES lines [default: 64]
    #[arg(long, value_name = "LINES", num_args = 0..=1, require_equals = true,
          default_missing_value = "64", help_heading = "Output")]
    pub print: Option<usize>,

    /// Draw the tree of the first output asked for
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub svg: Option<PathBuf>,

    /// Show all kinds of outputs, not only the first 16
    #[arg(long, help_heading = "Output")]
    pub all: bool,
}

/// Prove, without running them, which kernels return the same bits
#[derive(Args, Debug)]
#[command(after_long_help = help::EQUIV, after_help = help::MORE)]
pub struct EquivOptions {
    /// PTX files; - for standard input
    #[arg(value_name = "KERNEL.ptx")]
    pub kernels: Vec<PathBuf>,

    /// A list of PTX files, one a line; - for standard input
    #[arg(long, value_name = "LIST")]
    pub files_from: Option<PathBuf>,

    /// A JSON array of kernels, each with what is known of its launch; - for standard input
    #[arg(long, value_name = "FILE.json")]
    pub launches: Option<PathBuf>,

    /// The kernel's name [default: the only one of the file]
    #[arg(long, value_name = "NAME", help_heading = "What is known of the launch")]
    pub entry: Option<String>,

    /// CTAs [default: any number]
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "What is known of the launch")]
    pub grid: Option<Extent>,

    /// Threads of a CTA [default: what the PTX says]
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "What is known of the launch")]
    pub block: Option<Extent>,

    /// The value of a scalar parameter, by number from 0 or name; may be repeated
    #[arg(long, value_name = "N=VALUE", help_heading = "What is known of the launch")]
    pub scalar: Vec<Known>,

    /// Compare every kernel in full with the first of its class, not by its signature alone
    #[arg(long, help_heading = "Execution")]
    pub confirm: bool,

    /// Host threads; 0: as many as there are cores
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Execution")]
    pub jobs: usize,

    /// Show where kernels of different classes differ, for at most PAIRS of classes [default: 8]
    #[arg(long, value_name = "PAIRS", num_args = 0..=1, require_equals = true,
          default_missing_value = "8", help_heading = "Output")]
    pub explain: Option<usize>,

    /// Show all classes and files, not only the first
    #[arg(long, help_heading = "Output")]
    pub all: bool,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// What to launch, and how.
#[derive(Args, Debug)]
pub struct LaunchOptions {
    /// The PTX file; - for standard input
    #[arg(value_name = "KERNEL.ptx")]
    pub kernel: PathBuf,

    /// Kernel arguments, in order: [NAME=]TYPE[:COUNT]=VALUE
    #[arg(value_name = "ARG", value_parser = argument)]
    pub arguments: Vec<Argument>,

    /// CTAs
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    pub grid: Extent,

    /// Threads of a CTA [default: what the PTX or its metadata says]
    #[arg(long, value_name = "X[,Y[,Z]]", help_heading = "Launch")]
    pub block: Option<Extent>,

    /// Bytes of dynamic shared memory [default: what the metadata says, or 0]
    #[arg(long, value_name = "BYTES", help_heading = "Launch")]
    pub shared: Option<u32>,

    /// The kernel's name [default: the only one of the file]
    #[arg(long, value_name = "NAME", help_heading = "Launch")]
    pub entry: Option<String>,

    /// Triton's metadata [default: KERNEL.json beside KERNEL.ptx, if there]
    #[arg(long, value_name = "KERNEL.json", help_heading = "Launch")]
    pub triton: Option<PathBuf>,

    /// Order of CTAs and warps: forward, reversed or random:SEED
    #[arg(long, value_name = "ORDER", default_value = "forward", help_heading = "Execution")]
    pub schedule: Schedule,

    /// Unordered writes of equal bytes are errors too, and atomics whose order matters
    #[arg(long, help_heading = "Execution")]
    pub strict: bool,

    /// Do not look for data races (faster)
    #[arg(long, help_heading = "Execution")]
    pub no_races: bool,

    /// Instructions that the warps of one CTA may run
    #[arg(long, value_name = "N", default_value_t = 1 << 28, help_heading = "Execution")]
    pub step_limit: u64,

    /// Host threads; 0: as many as there are cores
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = "Execution")]
    pub jobs: usize,

    /// Matrix products: exact, sequential, hardware (of the PTX's target) or sm_NN
    #[arg(long, value_name = "MODEL", default_value = "exact", help_heading = "Execution")]
    pub mma: Mma,

    /// Print one JSON document instead of text
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// `X[,Y[,Z]]`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Extent(pub [u32; 3]);

impl FromStr for Extent {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut sizes = [1; 3];
        let mut parts = text.split(',');
        for (size, part) in sizes.iter_mut().zip(parts.by_ref()) {
            *size = part.trim().parse().map_err(|_| format!("`{part}` is no size"))?;
        }
        if parts.next().is_some() {
            return Err("there are at most three sizes, X,Y,Z".into());
        }
        Ok(Self(sizes))
    }
}

/// `NAME[:NUMBER]`: a buffer, and how many elements of it, or which.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Selection {
    pub name: String,
    pub number: Option<usize>,
}

impl FromStr for Selection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some((name, number)) = text.split_once(':') else {
            return Ok(Self { name: text.into(), number: None });
        };
        let number = number.parse().map_err(|_| format!("`{number}` is no number of elements"))?;
        Ok(Self { name: name.into(), number: Some(number) })
    }
}

/// `NAME=FILE`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Save {
    pub name: String,
    pub file: PathBuf,
}

impl FromStr for Save {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once('=') {
            Some((name, file)) if !file.is_empty() => {
                Ok(Self { name: name.into(), file: file.into() })
            }
            _ => Err("a buffer and a file are wanted: out=out.npy".into()),
        }
    }
}

/// What matrix instructions compute.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mma {
    Model(MmaModel),
    /// That of the target that the PTX names.
    OfTarget,
}

impl FromStr for Mma {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "hardware" {
            return Ok(Self::OfTarget);
        }
        text.parse().map(Self::Model).map_err(|error| format!("{error}, or hardware"))
    }
}

impl Mma {
    /// The model for a module of this target; `None` where no hardware's is known.
    pub fn model(self, sm: u32) -> Option<MmaModel> {
        match self {
            Self::Model(model) => Some(model),
            Self::OfTarget => Core::of_sm(sm).map(MmaModel::Hardware),
        }
    }
}

/// clap shows the value itself, so the message is the reason alone.
fn argument(text: &str) -> Result<Argument, String> {
    text.parse().map_err(|failure: crate::failure::Failure| failure.reason())
}
