//! The machine: decoded programs, warps, CTAs, launches.

pub mod alu;
pub mod lane;
pub mod registers;
