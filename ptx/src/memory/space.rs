//! Where a generic address points.
//!
//! # Idea
//! A global address is the host's address of the byte. Shared and local memory stand in windows at
//! the top of the address space, where no host buffer can be: the low half of a generic address
//! there is the address in its space.
//! # Invariants
//! - **S1** `generic` and `resolve` are inverse on every address of a space.
//! - **S2** Shared memory begins at [`SHARED_BASE`], so that address 0 is valid in no space that
//!   a null pointer may be meant for.

use crate::ir::Space;

/// Generic address of shared address 0.
pub const SHARED_WINDOW: u64 = 0xff00_0000_0000_0000;
/// Generic address of local address 0, of every thread its own.
pub const LOCAL_WINDOW: u64 = 0xfe00_0000_0000_0000;
/// Bytes of either window.
pub const WINDOW_BYTES: u64 = 1 << 32;
/// First shared address in use.
pub const SHARED_BASE: u32 = 0x400;

/// The space that `address`, an address of `space`, lies in, and the address there.
#[inline(always)]
pub fn resolve(space: Space, address: u64) -> (Space, u64) {
    match space {
        Space::Generic => {
            if address < LOCAL_WINDOW {
                (Space::Global, address)
            } else if address.wrapping_sub(SHARED_WINDOW) < WINDOW_BYTES {
                (Space::Shared, address - SHARED_WINDOW)
            } else if address - LOCAL_WINDOW < WINDOW_BYTES {
                (Space::Local, address - LOCAL_WINDOW)
            } else {
                (Space::Global, address)
            }
        }
        // A cluster of one CTA: its shared window is the CTA's.
        Space::Shared | Space::SharedCluster => (Space::Shared, address),
        Space::Global | Space::Local | Space::Param | Space::Const => (space, address),
    }
}

/// The generic address of `address` in `space`; parameters and constants have global addresses.
#[inline(always)]
pub fn generic(space: Space, address: u64) -> u64 {
    match space {
        Space::Shared | Space::SharedCluster => SHARED_WINDOW.wrapping_add(address),
        Space::Local => LOCAL_WINDOW.wrapping_add(address),
        Space::Generic | Space::Global | Space::Param | Space::Const => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_resolve_and_return() {
        for (space, address) in [
            (Space::Shared, 0x400),
            (Space::Shared, WINDOW_BYTES - 1),
            (Space::Local, 0),
            (Space::Local, WINDOW_BYTES - 1),
            (Space::Global, 0),
            (Space::Global, 0x7fff_ffff_ffff),
        ] {
            assert_eq!(resolve(Space::Generic, generic(space, address)), (space, address));
        }
        // Past a window's end nothing is: the address stays global and faults there.
        assert_eq!(resolve(Space::Generic, SHARED_WINDOW + WINDOW_BYTES).0, Space::Global);
        assert_eq!(resolve(Space::Generic, LOCAL_WINDOW + WINDOW_BYTES).0, Space::Global);
    }
}
