//! Lane instructions, run over rows and compared lane by lane with what they should compute.

mod compare;
mod convert;
mod float;
mod integer;
mod machine;
mod moves;
mod signature;
mod table;
