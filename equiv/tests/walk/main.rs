//! The walk on small kernels: what is the same, what is not, and what is not understood.

mod arithmetic;
mod kernels;
mod loops;
mod memory;
mod races;
mod relocation;
