//! What the tests of `num` share: a generator of operands that meet each other, and formats as
//! `rustc_apfloat` has them.

#![allow(dead_code, reason = "each test binary uses its part")]

/// SplitMix64: a sequence per seed, the same everywhere.
pub struct Rng(u64);

impl Rng {
    /// Prints the seed, which the harness shows when the test fails. `BITSTABLE_SEED` replaces it.
    pub fn new(seed: u64) -> Self {
        let seed =
            std::env::var("BITSTABLE_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(seed);
        println!("BITSTABLE_SEED={seed}");
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A pattern of a format: uniform, special, near one, or with few bits in its fraction, so that
    /// ties, cancellations and subnormal results all come up.
    pub fn pattern(&mut self, exponent: u32, fraction: u32) -> u64 {
        let width = 1 + exponent + fraction;
        let mask = u64::MAX >> (64 - width);
        let sign = self.next() & (1 << (width - 1));
        let top = (1u64 << exponent) - 1;
        let few = {
            let bits = (self.next() & self.next() & self.next()) >> (64 - fraction);
            let low = self.below(4);
            if self.below(2) == 0 { bits } else { (bits & !3) | low & ((1 << fraction) - 1) }
        };
        let bias = top / 2;
        let field = match self.below(6) {
            0 => self.below(3),
            1 => top - self.below(3),
            2 => bias / 2 + self.below(4),
            3 => bias + bias / 2 - self.below(4),
            _ => bias - 2 + self.below(5),
        };
        match self.below(8) {
            0 | 1 => self.next() & mask,
            2 => sign | (field << fraction),
            3 => sign | (field << fraction) | ((1 << fraction) - 1 - self.below(2)),
            4 | 5 => sign | (field << fraction) | few,
            _ => sign | (field << fraction) | (self.next() >> (64 - fraction)),
        }
    }
}
