//! The memory of a launch, and the watch over it.

pub mod space;
