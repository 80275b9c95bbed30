//! The memory of a launch and its race detector, at their own API.

mod rig;

mod copies;
mod faults;
mod litmus;
mod oracle;
mod orders;
mod shared;
mod speed;
