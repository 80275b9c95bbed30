//! PTX on a CPU: parser, typed IR, and an executor that is exact to the bit.
//!
//! # Idea
//! A kernel that Triton compiled is run as the PTX memory model says it may: threads are
//! deterministic small-step machines, and everything a thread learns from outside comes through
//! events that are matched and watched.

#![deny(clippy::wildcard_enum_match_arm)]

pub mod exec;
pub mod fuzz;
pub mod ir;
pub mod memory;
pub mod num;
pub mod report;
pub mod symbol;
pub mod syntax;
