//! Memory as the host looks at it: unwatched, for messages, prints and symbols.

use super::{
    CtaMemory, GlobalMemory,
    space::{SHARED_BASE, resolve},
};
use crate::{exec::registers::LANES, ir::Space};

impl CtaMemory {
    /// The bytes at a generic address as a thread sees them; false where some are in no memory.
    pub fn peek(
        &self,
        global: &GlobalMemory,
        warp: u32,
        lane: usize,
        address: u64,
        out: &mut [u8],
    ) -> bool {
        let (space, address) = resolve(Space::Generic, address);
        match space {
            Space::Shared | Space::SharedCluster => {
                let at = address.wrapping_sub(u64::from(SHARED_BASE));
                let inside = at
                    .checked_add(out.len() as u64)
                    .is_some_and(|end| end <= u64::from(self.shared.size));
                if inside {
                    for (at, byte) in (at as u32..).zip(out.iter_mut()) {
                        *byte = self.shared.bytes.peek(at, 1) as u8;
                    }
                }
                inside
            }
            Space::Local => {
                self.local_read(warp, lane, address as u32, out);
                true
            }
            Space::Generic | Space::Global | Space::Param | Space::Const => {
                let Ok(buffer) = global.find(address, out.len() as u64) else { return false };
                let buffer = global.buffer(buffer);
                for (at, byte) in (address..).zip(out.iter_mut()) {
                    *byte = buffer.peek(at, 1) as u8;
                }
                true
            }
        }
    }

    /// Bytes of a thread's local memory; zeros where it was never written, or outside.
    pub fn local_read(&self, warp: u32, lane: usize, offset: u32, out: &mut [u8]) {
        out.fill(0);
        let thread = warp as usize * LANES + lane;
        let Some(Some(bytes)) = self.local.threads.get(thread) else { return };
        for (at, byte) in (offset..).zip(out.iter_mut()) {
            *byte = bytes.peek(at, 1) as u8;
        }
    }

    /// Writes a thread's local memory; nothing outside.
    pub fn local_write(&mut self, warp: u32, lane: usize, offset: u32, data: &[u8]) {
        let bytes = self.local.thread(warp, lane);
        for (at, byte) in (offset..).zip(data) {
            bytes.poke(at, 1, u64::from(*byte));
        }
    }
}

impl GlobalMemory {
    /// The buffer an address is in, by name, and the byte's number there.
    pub fn name_at(&self, address: u64) -> Option<(&str, u64)> {
        let buffer = self.buffer(self.find(address, 1).ok()?);
        Some((&buffer.name, address - buffer.base))
    }

    /// Forgets the buffer that begins at `address`; bytes of ours stay until [`Self::clear`].
    pub fn remove(&mut self, address: u64) {
        self.buffers.retain(|buffer| buffer.base != address);
    }
}
