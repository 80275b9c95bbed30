//! What buffers and scalars hold: element types, their numbers as text, and their bytes.
//!
//! # Invariants
//! - **T1** A number that an element type does not have is refused, never wrapped; a float is
//!   rounded once, to nearest.
//! - **T2** [`ElementType::show`] gives a text that [`ElementType::read`] takes back to the same
//!   bits, payloads of NaNs apart.

use bitstable_ptx::ir::Scalar;
use half::{bf16, f16};

/// The type of an element, as the command line names it.
#[derive(
    Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::Display, strum::EnumIter,
)]
#[strum(serialize_all = "lowercase")]
#[rustfmt::skip]
pub enum ElementType {
    F16, Bf16, F32, F64,
    /// An fp8 of four exponent bits; its numbers are given as bytes.
    E4m3,
    /// An fp8 of five exponent bits; its numbers are given as bytes.
    E5m2,
    I8, I16, I32, I64,
    U8, U16, U32, U64,
}

/// Names of all types, for messages.
pub const NAMES: &str = "f16 bf16 f32 f64 e4m3 e5m2 i8 i16 i32 i64 u8 u16 u32 u64";

impl ElementType {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::I8 | Self::U8 | Self::E4m3 | Self::E5m2 => 1,
            Self::F16 | Self::Bf16 | Self::I16 | Self::U16 => 2,
            Self::F32 | Self::I32 | Self::U32 => 4,
            Self::F64 | Self::I64 | Self::U64 => 8,
        }
    }

    /// As the executor names it.
    pub fn scalar(self) -> Scalar {
        match self {
            Self::F16 => Scalar::F16,
            Self::Bf16 => Scalar::BF16,
            Self::F32 => Scalar::F32,
            Self::F64 => Scalar::F64,
            Self::E4m3 => Scalar::E4m3,
            Self::E5m2 => Scalar::E5m2,
            Self::I8 => Scalar::S8,
            Self::I16 => Scalar::S16,
            Self::I32 => Scalar::S32,
            Self::I64 => Scalar::S64,
            Self::U8 => Scalar::U8,
            Self::U16 => Scalar::U16,
            Self::U32 => Scalar::U32,
            Self::U64 => Scalar::U64,
        }
    }

    /// Its elements are numbers with a fraction: leaves of a dependence tree, by default.
    pub fn is_float(self) -> bool {
        self.rounds() || matches!(self, Self::E4m3 | Self::E5m2)
    }

    /// Numbers with a fraction that are written as such.
    fn rounds(self) -> bool {
        matches!(self, Self::F16 | Self::Bf16 | Self::F32 | Self::F64)
    }

    fn signed(self) -> bool {
        matches!(self, Self::I8 | Self::I16 | Self::I32 | Self::I64)
    }

    fn mask(self) -> u64 {
        u64::MAX >> (64 - 8 * self.bytes())
    }

    /// The bits of a number as text: decimal, or `0x` and the bits themselves.
    pub fn read(self, text: &str) -> Result<u64, String> {
        if let Some(digits) = text.strip_prefix("0x") {
            let bits = u64::from_str_radix(digits, 16).ok().filter(|bits| bits & !self.mask() == 0);
            return bits
                .ok_or_else(|| format!("{text} is no pattern of {} bits", 8 * self.bytes()));
        }
        let wrong = || format!("`{text}` is no {self}");
        if self.rounds() {
            return match self {
                Self::F32 => text.parse::<f32>().map(|value| u64::from(value.to_bits())),
                _ => text.parse().map(|value| self.round(value)),
            }
            .map_err(|_| wrong());
        }
        let value: i128 = text.parse().map_err(|_| wrong())?;
        let width = 8 * self.bytes();
        let (least, past) = if self.signed() {
            (-(1i128 << (width - 1)), 1 << (width - 1))
        } else {
            (0, 1 << width)
        };
        if !(least..past).contains(&value) {
            return Err(format!("{value} is outside {self}: {least} to {}", past - 1));
        }
        Ok(value as u64 & self.mask())
    }

    /// The bits of a number, rounded to nearest; integers are cut to their width.
    pub fn round(self, value: f64) -> u64 {
        match self {
            Self::F16 => u64::from(f16::from_f64(value).to_bits()),
            Self::Bf16 => u64::from(bf16::from_f64(value).to_bits()),
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F64 => value.to_bits(),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => (value as i64) as u64 & self.mask(),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 | Self::E4m3 | Self::E5m2 => {
                value as u64 & self.mask()
            }
        }
    }

    /// The bits of an integer: floats are rounded, integers and bytes cut to their width.
    pub fn integer(self, value: u64) -> u64 {
        match self {
            Self::F32 => u64::from((value as f32).to_bits()),
            Self::F16 | Self::Bf16 | Self::F64 => self.round(value as f64),
            _ => value & self.mask(),
        }
    }

    /// A number as a reader would write it: the shortest text with these bits.
    pub fn show(self, bits: u64) -> String {
        match self {
            Self::F16 => float(&f16::from_bits(bits as u16)),
            Self::Bf16 => float(&bf16::from_bits(bits as u16)),
            Self::F32 => float(&f32::from_bits(bits as u32)),
            Self::F64 => float(&f64::from_bits(bits)),
            Self::E4m3 | Self::E5m2 => format!("{bits:#04x}"),
            Self::U8 | Self::U16 | Self::U32 | Self::U64 => bits.to_string(),
            Self::I8 | Self::I16 | Self::I32 | Self::I64 => {
                let unused = 64 - 8 * self.bytes();
                (((bits << unused) as i64) >> unused).to_string()
            }
        }
    }

    /// The bits of element `index` of a buffer, 0 outside.
    pub fn at(self, bytes: &[u8], index: usize) -> u64 {
        let width = self.bytes();
        let element = bytes.get(index * width..(index + 1) * width).unwrap_or_default();
        element.iter().rev().fold(0, |bits, byte| bits << 8 | u64::from(*byte))
    }

    /// Appends an element to a buffer.
    pub fn push(self, out: &mut Vec<u8>, bits: u64) {
        out.extend_from_slice(&bits.to_le_bytes()[..self.bytes()]);
    }
}

fn float(value: &impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use strum::IntoEnumIterator;

    use super::*;

    #[test]
    fn names_are_those_that_parse() {
        let all: Vec<String> = ElementType::iter().map(|ty| ty.to_string()).collect();
        assert_eq!(all.join(" "), NAMES);
        assert!(NAMES.split(' ').all(|name| name.parse::<ElementType>().is_ok()));
    }

    #[test]
    fn what_is_shown_reads_back() {
        for ty in ElementType::iter() {
            for k in 0..400u64 {
                let bits = k.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (64 - 8 * ty.bytes());
                let text = ty.show(bits);
                if text != "NaN" {
                    assert_eq!(ty.read(&text), Ok(bits), "{ty} {text}");
                }
            }
        }
    }

    #[test]
    fn numbers_outside_a_type_are_refused() {
        assert_eq!(ElementType::I8.read("-128"), Ok(0x80));
        assert_eq!(ElementType::I8.read("128"), Err("128 is outside i8: -128 to 127".into()));
        assert_eq!(ElementType::U64.read("18446744073709551615"), Ok(u64::MAX));
        assert!(ElementType::U64.read("18446744073709551616").is_err());
        assert_eq!(ElementType::F16.read("0x3c00"), Ok(0x3c00));
        assert!(ElementType::F16.read("0x13c00").is_err());
        assert!(ElementType::I32.read("1.5").is_err());
    }
}
