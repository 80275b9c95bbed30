//! The `bitstable` command: PTX files in; findings, bits and trees out.
//!
//! # Idea
//! A kernel author has a PTX file and a question: what does it compute, to the bit, in which order
//! does it add, and do others return the same bits? `bitstable run` answers the first, `bitstable
//! tree` the second, `bitstable equiv` the third, on a CPU. The
//! binary and the Python wheel's console script are the same function, [`console`].
//! # Invariants
//! - **C1** The exit status is [`Exit`]: 0 fine, 1 an answer the user must look at, 2 no answer.
//! - **C2** Results go to the output, everything about the process of getting them to the error
//!   stream. With `--json` the output is one JSON document, or nothing when there is no answer.
//! - **C3** No input makes it panic: each is an error that says what was wrong with it, and where.
//! - **C4** Text and JSON are two views of one value; neither computes anything.
//! # Held by
//! C1 to C3: `tests/`. C4: `text` modules take the value that is serialised.
//! # Not here
//! `bitstable bits`, which compiles kernels and so is Python's.

mod argument;
mod arguments;
mod element;
pub mod equiv;
mod failure;
mod fill;
mod help;
mod kernel;
mod launch;
mod npy;
mod run;
mod streams;
mod tree;

use std::{
    ffi::OsString,
    io::{self, IsTerminal, Write},
};

use clap::Parser;

use arguments::{Command, CommandLine};
use failure::Failure;
use streams::Streams;

/// How a command ended.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
#[repr(u8)]
pub enum Exit {
    /// All is as it should be.
    Fine = 0,
    /// There are findings, a tree is not canonical, results depend on the schedule, or kernels are
    /// not proved the same.
    Found = 1,
    /// The command line or an input is wrong; there is no answer, or none about that input.
    Error = 2,
}

/// Runs a command line (the program's name first), and returns its exit status.
pub fn main(
    args: impl IntoIterator<Item = OsString>,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    run(args, &mut Streams { out, err, live: false })
}

/// [`main`] on the process's own streams, with a progress bar where somebody watches.
pub fn console(args: impl IntoIterator<Item = OsString>) -> u8 {
    let (mut out, mut err) = (io::BufWriter::new(io::stdout()), io::stderr());
    let live = err.is_terminal();
    run(args, &mut Streams { out: &mut out, err: &mut err, live })
}

fn run(args: impl IntoIterator<Item = OsString>, streams: &mut Streams<'_>) -> u8 {
    let ended = match CommandLine::try_parse_from(args) {
        Ok(line) => dispatch(line.command, streams),
        Err(error) => usage(&error, streams),
    };
    let ended = ended.and_then(|exit| {
        streams.out.flush()?;
        Ok(exit)
    });
    let exit = match ended {
        Ok(exit) => exit,
        // Who reads the output has seen enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => Exit::Fine,
        Err(failure) => {
            // If the error stream fails there is nobody left to tell.
            let _ = failure.render(streams.err);
            Exit::Error
        }
    };
    let _ = streams.err.flush();
    exit as u8
}

fn dispatch(command: Command, streams: &mut Streams<'_>) -> Result<Exit, Failure> {
    match command {
        Command::Run(options) => run::command(&options, streams),
        Command::Tree(options) => tree::command(&options, streams),
        Command::Equiv(options) => equiv::command(&options, streams),
        Command::Bits { .. } => Err(Failure::NeedsPython("bits")),
    }
}

/// `--help` and `--version` are answers; everything else that clap says is an error.
fn usage(error: &clap::Error, streams: &mut Streams<'_>) -> Result<Exit, Failure> {
    let text = error.render().to_string();
    if error.use_stderr() {
        streams.err.write_all(text.as_bytes())?;
        return Ok(Exit::Error);
    }
    streams.out.write_all(text.as_bytes())?;
    Ok(Exit::Fine)
}
