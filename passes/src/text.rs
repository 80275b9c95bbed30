//! Reading what MLIR holds: attributes, identifiers and strings as Rust values.
//!
//! melior's `StringRef::as_str` panics on the empty string and drops a trailing NUL, so strings are
//! read here.

use melior::ir::{Attribute, AttributeLike, Identifier};
use mlir_sys::{
    MlirStringRef, mlirAttributeGetType, mlirAttributeIsABool, mlirAttributeIsAInteger,
    mlirAttributeIsAString, mlirBoolAttrGetValue, mlirIdentifierStr, mlirIntegerAttrGetValueInt,
    mlirIntegerTypeGetWidth, mlirStringAttrGetValue, mlirTypeIsAInteger,
};

/// The value of an integer attribute of a signless type of at most 64 bits.
pub fn integer(attribute: Attribute<'_>) -> Option<i64> {
    let raw = attribute.to_raw();
    // SAFETY: `raw` is a valid attribute; each accessor is called on the kind it is for, and
    // `getInt` wants a signless (or index) type of at most 64 bits.
    unsafe {
        if !mlirAttributeIsAInteger(raw) {
            return None;
        }
        let ty = mlirAttributeGetType(raw);
        let fits = mlirTypeIsAInteger(ty)
            && mlirIntegerTypeGetWidth(ty) <= 64
            && mlir_sys::mlirIntegerTypeIsSignless(ty);
        fits.then(|| mlirIntegerAttrGetValueInt(raw))
    }
}

/// The value of a boolean attribute.
pub fn boolean(attribute: Attribute<'_>) -> Option<bool> {
    let raw = attribute.to_raw();
    // SAFETY: `raw` is a valid attribute, read as a boolean only if it is one.
    unsafe { mlirAttributeIsABool(raw).then(|| mlirBoolAttrGetValue(raw)) }
}

/// The value of a string attribute; bytes that are not UTF-8 are replaced.
pub fn string(attribute: Attribute<'_>) -> Option<String> {
    let raw = attribute.to_raw();
    // SAFETY: `raw` is a valid attribute, read as a string only if it is one.
    unsafe { mlirAttributeIsAString(raw).then(|| owned(mlirStringAttrGetValue(raw))) }
}

/// An identifier such as the name of an operation; bytes that are not UTF-8 are replaced.
pub fn identifier(identifier: Identifier<'_>) -> String {
    // SAFETY: an identifier is valid as long as its context.
    unsafe { owned(mlirIdentifierStr(identifier.to_raw())) }
}

/// Copies MLIR's string.
///
/// # Safety
///
/// `string` must be valid.
unsafe fn owned(string: MlirStringRef) -> String {
    if string.length == 0 {
        return String::new();
    }
    // SAFETY: not empty, so `data` points at `length` bytes.
    let bytes = unsafe { std::slice::from_raw_parts(string.data.cast::<u8>(), string.length) };
    String::from_utf8_lossy(bytes).into_owned()
}
