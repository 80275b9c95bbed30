//! The machine: decoded programs, warps, CTAs, launches.
//!
//! # Idea
//! [`decode`] turns the typed IR into a [`Program`] once; [`launch::run`] runs it over a grid. A
//! warp's lanes run together while they agree ([`warp`]); what they learn from outside comes
//! through memory, barriers and warp-wide instructions, and each of those is matched and watched.

pub mod alu;
mod barrier;
mod cta;
mod data;
pub mod decode;
pub mod explain;
mod format;
pub mod lane;
pub mod launch;
mod matrix;
mod members;
pub mod mma;
pub mod program;
mod random;
pub mod registers;
pub mod schedule;
mod step;
mod trace;
mod warp;

pub use decode::DecodeError;
pub use launch::{LaunchError, LaunchRequest, Outcome, RunOptions, Statistics, run};
pub use program::{Param, Program};
pub use schedule::Schedule;
