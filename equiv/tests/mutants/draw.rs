//! Inputs that show in which order a kernel adds, and whether it flushes, rounds or contracts.

use super::{
    case::{Buffer, Element, Fill},
    random::Random,
};

/// Kinds of draws, in the order in which they are taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Exponents over as many binades as the mantissa has bits.
    Wide,
    /// One large magnitude of either sign, small numbers between.
    Cancelling,
    Normals,
    Subnormals,
    /// Normals, rarely an infinity.
    Specials,
    /// The two largest binades.
    Huge,
}

pub const KINDS: [Kind; 6] =
    [Kind::Wide, Kind::Cancelling, Kind::Normals, Kind::Subnormals, Kind::Specials, Kind::Huge];

/// What a buffer holds on draw number `draw`.
pub fn contents(buffer: &Buffer, number: usize, draw: usize, seed: u64) -> Vec<u8> {
    let kind = KINDS[draw % KINDS.len()];
    let mix = (number as u64) << 32 | draw as u64;
    let mut random = Random::new(seed ^ mix.wrapping_mul(0xd6e8_feb8_6659_fd93));
    let bytes = buffer.element.bits() as usize / 8;
    let mut all = Vec::with_capacity(buffer.bytes());
    for _ in 0..buffer.count {
        let bits = match (buffer.fill, buffer.element) {
            (Fill::Zero, _) => 0,
            (Fill::Range(low, high), _) => low + random.below((high - low).max(1) as usize) as u64,
            (Fill::Drawn, Element::Integer(_)) => random.next(),
            (Fill::Drawn, Element::Float(exponent, mantissa)) => {
                float(kind, exponent, mantissa, &mut random)
            }
            (Fill::Drawn, Element::E4m3) => float(kind, 4, 3, &mut random) & 0xbf,
        };
        all.extend_from_slice(&bits.to_le_bytes()[..bytes]);
    }
    all
}

fn float(kind: Kind, exponent: u32, mantissa: u32, random: &mut Random) -> u64 {
    let (bias, most) = ((1 << (exponent - 1)) - 1, (1 << exponent) - 1);
    let spread = (mantissa as usize).min(bias as usize - 2).max(1);
    let fraction = random.next() & ((1 << mantissa) - 1);
    let sign = (random.next() & 1) << (exponent + mantissa);
    let make = |power: usize, fraction: u64| sign | (power as u64) << mantissa | fraction;
    let normal = |random: &mut Random| bias as usize - 2 + random.below(5);
    match kind {
        Kind::Wide => make(bias as usize - spread / 2 + random.below(spread), fraction),
        Kind::Cancelling if random.chance(4) => make(bias as usize + spread, 0),
        Kind::Cancelling => make(bias as usize - 1 + random.below(3), fraction),
        Kind::Normals => make(normal(random), fraction),
        Kind::Subnormals => make(random.below(2), fraction),
        Kind::Specials if random.chance(40) => make(most as usize, 0),
        Kind::Specials => make(normal(random), fraction),
        Kind::Huge => make(most as usize - 1 - random.below(2), fraction),
    }
}

/// Every NaN made one: nobody promises its sign and payload.
pub fn canonical(element: Element, bytes: &mut [u8]) {
    let (exponent, mantissa) = match element {
        Element::Float(exponent, mantissa) => (exponent, mantissa),
        Element::E4m3 => {
            bytes.iter_mut().filter(|byte| **byte & 0x7f == 0x7f).for_each(|byte| *byte = 0x7f);
            return;
        }
        Element::Integer(_) => return,
    };
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let magnitude = (1u64 << (exponent + mantissa)) - 1;
    for chunk in bytes.chunks_exact_mut(element.bits() as usize / 8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        if u64::from_le_bytes(word) & magnitude > infinity {
            let nan = infinity | 1 << (mantissa - 1);
            chunk.copy_from_slice(&nan.to_le_bytes()[..chunk.len()]);
        }
    }
}
