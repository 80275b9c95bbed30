//! What is known of the launches that a proof is about.

use std::collections::BTreeMap;

/// Facts about a launch. A proof holds for every launch that agrees with them; the fewer, the more
/// launches.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Launch {
    /// CTAs in x, y, z. `None`: any; a CTA's number is then a symbol.
    pub grid: Option<[u32; 3]>,
    /// Threads of a CTA. `None`: what `.reqntid` says.
    pub block: Option<[u32; 3]>,
    /// Bits of scalar parameters, by their number from 0. Others are symbols.
    pub scalars: BTreeMap<u32, u64>,
}
