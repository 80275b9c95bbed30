//! Bytes that only one CTA sees, and which of them were ever written.
//!
//! # Invariants
//! - **B1** A byte's bit in `written` is set by the first write and never cleared.

/// Zeroed bytes, with a bit for each that was written.
#[derive(Clone, Debug)]
pub(super) struct Bytes {
    bytes: Vec<u8>,
    written: Vec<u64>,
}

impl Bytes {
    pub(super) fn new(size: u32) -> Self {
        let words = (size as usize).div_ceil(64);
        Self { bytes: vec![0; words * 64], written: vec![0; words] }
    }

    /// Reads `width` bytes at `at`, a multiple of `width`; 0 outside.
    #[inline(always)]
    pub(super) fn peek(&self, at: u32, width: u32) -> u64 {
        self.slice(at, width).map_or(0, |bytes| {
            let mut value = [0; 8];
            // Constant sizes: each arm is one load.
            match width {
                1 => value[..1].copy_from_slice(bytes),
                2 => value[..2].copy_from_slice(bytes),
                4 => value[..4].copy_from_slice(bytes),
                _ => value[..8].copy_from_slice(bytes),
            }
            u64::from_le_bytes(value)
        })
    }

    #[inline(always)]
    fn slice(&self, at: u32, width: u32) -> Option<&[u8]> {
        self.bytes.get(at as usize..at as usize + width as usize)
    }

    /// Writes the low `width` bytes of `value` at `at`, a multiple of `width`.
    #[inline(always)]
    pub(super) fn poke(&mut self, at: u32, width: u32, value: u64) {
        let (from, to) = (at as usize, at as usize + width as usize);
        let Some(bytes) = self.bytes.get_mut(from..to) else { return };
        let value = value.to_le_bytes();
        match width {
            1 => bytes.copy_from_slice(&value[..1]),
            2 => bytes.copy_from_slice(&value[..2]),
            4 => bytes.copy_from_slice(&value[..4]),
            _ => bytes.copy_from_slice(&value[..8]),
        }
        if let Some(word) = self.written.get_mut(from / 64) {
            *word |= bits(at, width);
        }
    }

    /// Whether all of `bytes` bytes at `at`, a multiple of that number, were written.
    #[inline(always)]
    pub(super) fn written(&self, at: u32, bytes: u32) -> bool {
        let wanted = bits(at, bytes);
        self.written.get(at as usize / 64).is_some_and(|word| word & wanted == wanted)
    }
}

/// The bits of up to 64 bytes that lie in one word.
#[inline(always)]
fn bits(at: u32, bytes: u32) -> u64 {
    (u64::MAX >> (64 - bytes.clamp(1, 64))) << (at % 64)
}
