//! Arithmetic on bit patterns: what each PTX instruction computes.
//!
//! # Idea
//! Functions from patterns to patterns, without machine or state, so that they can be called in a
//! loop over lanes and tested alone. Results are the same on every host.

pub mod approx;
pub mod atomic;
pub mod convert;
pub mod exact;
pub mod float;
pub mod int;
pub mod mma;
pub mod narrow;
