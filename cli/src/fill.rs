//! What a buffer holds before the launch.
//!
//! # Idea
//! | text | elements |
//! |---|---|
//! | `0`, `-1.5`, `zero`, `0x7fc0` | all the same; after `0x`, the bits themselves |
//! | `1,2,3,4` | as listed |
//! | `iota` | 0, 1, 2, … |
//! | `random:SEED` | floats in [-1, 1); integers of any value |
//! | `random:SEED:LO..HI` | in [LO, HI) |
//! | `LO..HI` | the same, from seed 0 |
//! | `@FILE` | the file's bytes, or the array of a `.npy` file |
//! # Invariants
//! - **F1** Random elements are a function of seed, type, range and position: draw `k` of
//!   SplitMix64 from the seed makes element `k`, on every platform.
//! - **F2** A buffer has as many elements as was said, or is refused.

use std::path::{Path, PathBuf};

use crate::{element::ElementType, npy};

/// Where a buffer's elements come from.
#[derive(Clone, PartialEq, Debug)]
pub enum Fill {
    Zero,
    /// One number for all elements.
    Same(u64),
    List(Vec<u64>),
    Iota,
    Random {
        seed: u64,
        range: Range,
    },
    File(PathBuf),
}

/// Between which numbers random elements lie.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Range {
    /// Any bits: integers without a range.
    Bits,
    Floats {
        lo: f64,
        hi: f64,
    },
    /// `lo` and what is added to it at most.
    Integers {
        lo: i128,
        span: u64,
    },
}

impl Fill {
    /// Reads the text after `COUNT=`.
    pub fn parse(ty: ElementType, count: usize, text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Self::File(PathBuf::from(path)));
        }
        match text {
            "iota" => return Ok(Self::Iota),
            "zero" => return Ok(Self::Zero),
            _ => {}
        }
        if let Some(rest) = text.strip_prefix("random:") {
            let (seed, range) = rest.split_once(':').map_or((rest, None), |(s, r)| (s, Some(r)));
            let seed = seed.parse().map_err(|_| format!("`{seed}` is no seed"))?;
            return Ok(Self::Random { seed, range: self::range(ty, range)? });
        }
        if text.contains("..") {
            return Ok(Self::Random { seed: 0, range: self::range(ty, Some(text))? });
        }
        if !text.contains(',') {
            return ty.read(text).map(Self::Same).map_err(|reason| {
                format!("{reason} (a buffer is a number, a list, iota, random:SEED or @FILE)")
            });
        }
        let numbers =
            text.split(',').map(|one| ty.read(one.trim())).collect::<Result<Vec<_>, _>>()?;
        if numbers.len() != count {
            return Err(format!("{} numbers for {count} elements", numbers.len()));
        }
        Ok(Self::List(numbers))
    }

    /// The bytes of a buffer.
    pub fn bytes(&self, ty: ElementType, count: usize) -> Result<Vec<u8>, String> {
        let size = count * ty.bytes();
        let mut out = Vec::new();
        out.try_reserve_exact(size).map_err(|_| format!("no memory for {size} bytes"))?;
        match self {
            Self::Zero => out.resize(size, 0),
            Self::Same(bits) => (0..count).for_each(|_| ty.push(&mut out, *bits)),
            Self::List(numbers) => numbers.iter().for_each(|bits| ty.push(&mut out, *bits)),
            Self::Iota => (0..count).for_each(|at| ty.push(&mut out, ty.integer(at as u64))),
            Self::Random { seed, range } => {
                let mut draws = SplitMix(*seed);
                (0..count).for_each(|_| ty.push(&mut out, range.element(ty, draws.draw())));
            }
            Self::File(path) => out = file(path, ty, count)?,
        }
        Ok(out)
    }
}

fn range(ty: ElementType, text: Option<&str>) -> Result<Range, String> {
    let floats = ty.is_float() && ty.read("0.5").is_ok();
    let Some(text) = text else {
        return Ok(if floats { Range::Floats { lo: -1.0, hi: 1.0 } } else { Range::Bits });
    };
    let wrong = || format!("`{text}` is no range LO..HI of {ty}");
    let (lo, hi) = text.split_once("..").ok_or_else(wrong)?;
    if floats {
        let (lo, hi): (f64, f64) = lo.parse().ok().zip(hi.parse().ok()).ok_or_else(wrong)?;
        let fits = lo < hi && (hi - lo).is_finite();
        return if fits { Ok(Range::Floats { lo, hi }) } else { Err(wrong()) };
    }
    ty.read(lo)?;
    let (lo, hi): (i128, i128) = lo.parse().ok().zip(hi.parse().ok()).ok_or_else(wrong)?;
    ty.read(&(hi - 1).to_string())?;
    if lo >= hi {
        return Err(wrong());
    }
    Ok(Range::Integers { lo, span: (hi - 1 - lo) as u64 })
}

impl Range {
    /// The element that a draw gives.
    fn element(self, ty: ElementType, draw: u64) -> u64 {
        match self {
            Range::Bits => ty.integer(draw >> (64 - 8 * ty.bytes())),
            Range::Floats { lo, hi } => {
                let unit = (draw >> 11) as f64 / (1u64 << 53) as f64;
                ty.round(lo + unit * (hi - lo))
            }
            Range::Integers { lo, span } => {
                let step = (u128::from(draw) * (u128::from(span) + 1)) >> 64;
                ty.integer((lo + step as i128) as u64)
            }
        }
    }
}

/// The generator of Steele, Lea and Flood: 64 bits of state, one addition and a mix a draw.
struct SplitMix(u64);

impl SplitMix {
    fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }
}

fn file(path: &Path, ty: ElementType, count: usize) -> Result<Vec<u8>, String> {
    let name = path.display();
    let content = std::fs::read(path).map_err(|error| format!("{name}: {error}"))?;
    let bytes = if path.extension().is_some_and(|end| end == "npy") {
        npy::read(&content, ty).map_err(|reason| format!("{name}: {reason}"))?
    } else {
        content
    };
    if bytes.len() != count * ty.bytes() {
        let (given, wanted) = (bytes.len(), count * ty.bytes());
        return Err(format!("{name} holds {given} bytes; {count} elements of {ty} are {wanted}"));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn elements(ty: ElementType, count: usize, text: &str) -> Vec<String> {
        let bytes = Fill::parse(ty, count, text).and_then(|fill| fill.bytes(ty, count));
        let bytes = bytes.unwrap_or_else(|reason| panic!("{reason}"));
        (0..count).map(|at| ty.show(ty.at(&bytes, at))).collect()
    }

    #[test]
    fn fills_are_what_they_say() {
        assert_eq!(elements(ElementType::F32, 3, "iota"), ["0.0", "1.0", "2.0"]);
        assert_eq!(elements(ElementType::I8, 3, "-1"), ["-1", "-1", "-1"]);
        assert_eq!(elements(ElementType::Bf16, 2, "1,0x7f80"), ["1.0", "inf"]);
    }

    /// The published SplitMix64 gives these first draws for the seed 1234567.
    #[test]
    fn the_generator_is_splitmix64() {
        let mut draws = SplitMix(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| draws.draw()).collect();
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn random_elements_lie_in_their_range() {
        let floats = elements(ElementType::F32, 256, "random:7");
        assert!(floats.iter().all(|x| x.parse::<f32>().is_ok_and(|x| (-1.0..=1.0).contains(&x))));
        let integers = elements(ElementType::I32, 256, "random:7:-3..4");
        assert!((-3..4).all(|wanted: i32| integers.contains(&wanted.to_string())));
        assert!(integers.iter().all(|x| x.parse().is_ok_and(|x: i32| (-3..4).contains(&x))));
        assert_ne!(floats, elements(ElementType::F32, 256, "random:8"));
    }

    #[test]
    fn bad_fills_are_refused() {
        let refused = |ty, text| Fill::parse(ty, 4, text).is_err();
        assert!(refused(ElementType::F32, "random:x"));
        assert!(refused(ElementType::F32, "random:1:2..1"));
        assert!(refused(ElementType::U8, "random:1:0..257"));
        assert!(refused(ElementType::U8, "random:1:-1..3"));
        assert!(!refused(ElementType::U8, "random:1:0..256"));
        assert!(refused(ElementType::F32, ""));
    }
}
