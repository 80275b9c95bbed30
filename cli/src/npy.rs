//! NumPy's `.npy` files: arrays of our element types, in C order.
//!
//! # Idea
//! Magic, version, the length of a header, and the header: a Python dictionary of three keys. Types
//! that NumPy does not have (`bf16`, fp8) travel as unsigned integers of their width.
//! # Not here
//! Arrays in Fortran's order, big-endian and structured types: they are refused.

use crate::element::ElementType;

const MAGIC: &[u8] = b"\x93NUMPY";

/// NumPy's word for a type, after the byte order.
fn word(ty: ElementType) -> &'static str {
    match ty {
        ElementType::F16 => "f2",
        ElementType::F32 => "f4",
        ElementType::F64 => "f8",
        ElementType::I8 => "i1",
        ElementType::I16 => "i2",
        ElementType::I32 => "i4",
        ElementType::I64 => "i8",
        ElementType::U8 | ElementType::E4m3 | ElementType::E5m2 => "u1",
        ElementType::U16 | ElementType::Bf16 => "u2",
        ElementType::U32 => "u4",
        ElementType::U64 => "u8",
    }
}

/// The elements of an array of type `ty`.
pub fn read(content: &[u8], ty: ElementType) -> Result<Vec<u8>, String> {
    let broken = || "it is no .npy file".to_owned();
    let rest = content.strip_prefix(MAGIC).ok_or_else(broken)?;
    let (version, rest) = rest.split_at_checked(2).ok_or_else(broken)?;
    let width = if version[0] == 1 { 2 } else { 4 };
    let (length, rest) = rest.split_at_checked(width).ok_or_else(broken)?;
    let length = length.iter().rev().fold(0usize, |all, byte| all << 8 | usize::from(*byte));
    let (header, elements) = rest.split_at_checked(length).ok_or_else(broken)?;
    let header = std::str::from_utf8(header).map_err(|_| broken())?;
    let found = value(header, "descr").ok_or_else(broken)?;
    let found = found.trim_matches(['\'', '"']);
    let (order, kind) = found.split_at_checked(1).ok_or_else(broken)?;
    if kind != word(ty) || order == ">" {
        return Err(format!("it holds {found}, not {ty} (<{})", word(ty)));
    }
    let sizes =
        |shape: &str| shape.split(',').filter(|size| size.contains(char::is_numeric)).count();
    let one_axis = value(header, "shape").is_some_and(|shape| sizes(shape) < 2);
    if value(header, "fortran_order") != Some("False") && !one_axis {
        return Err("it is in Fortran's order".into());
    }
    Ok(elements.to_vec())
}

/// The text of a key's value in the header.
fn value<'a>(header: &'a str, key: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(&format!("'{key}':"))?;
    let rest = rest.trim_start();
    let end = if rest.starts_with('(') { rest.find(')')? + 1 } else { rest.find([',', '}'])? };
    Some(rest[..end].trim())
}

/// A one-dimensional array.
pub fn write(bytes: &[u8], ty: ElementType) -> Vec<u8> {
    let count = bytes.len() / ty.bytes();
    let order = if ty.bytes() == 1 { '|' } else { '<' };
    let descr = word(ty);
    let mut header =
        format!("{{'descr': '{order}{descr}', 'fortran_order': False, 'shape': ({count},), }}");
    // The elements begin at a multiple of 64 bytes, after a line end.
    while !(MAGIC.len() + 4 + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    let mut out = MAGIC.to_vec();
    out.extend([1, 0]);
    out.extend((header.len() as u16).to_le_bytes());
    out.extend(header.as_bytes());
    out.extend(bytes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let bytes: Vec<u8> = (0..64).collect();
        let file = write(&bytes, ElementType::F32);
        assert_eq!((file.len() - bytes.len()) % 64, 0);
        assert_eq!(read(&file, ElementType::F32), Ok(bytes));
        let refused = Err("it holds <f4, not f16 (<f2)".into());
        assert_eq!(read(&file, ElementType::F16), refused);
    }

    #[test]
    fn no_content_panics() {
        let file = write(&[1, 2, 3, 4], ElementType::I32);
        for cut in 0..file.len() - 4 {
            assert!(read(&file[..cut], ElementType::I32).is_err(), "{cut}");
        }
    }

    #[test]
    fn fortran_order_is_refused_where_it_matters() {
        let file = |shape: &str| {
            let header = format!("{{'descr': '<i4', 'fortran_order': True, 'shape': {shape}, }}");
            let mut out = MAGIC.to_vec();
            out.extend([1, 0, header.len() as u8, 0]);
            out.extend(header.as_bytes());
            out
        };
        assert!(read(&file("(2, 2)"), ElementType::I32).is_err());
        assert!(read(&file("(4,)"), ElementType::I32).is_ok());
    }
}
