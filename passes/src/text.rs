//! Reading what MLIR holds: attributes, identifiers and strings as Rust values.
//!
//! melior's `StringRef::as_str` panics on the empty string and drops a trailing NUL, so strings are
//! read here.

use std::ffi::c_void;

use melior::ir::{Attribute, AttributeLike, Identifier, Type, TypeLike};
use mlir_sys::{
    MlirStringRef, mlirAttributeGetType, mlirAttributeIsABool, mlirAttributeIsADenseI32Array,
    mlirAttributeIsAInteger, mlirAttributeIsAString, mlirAttributePrint, mlirBoolAttrGetValue,
    mlirDenseArrayGetNumElements, mlirDenseI32ArrayGetElement, mlirIdentifierStr,
    mlirIntegerAttrGetValueInt, mlirIntegerTypeGetWidth, mlirStringAttrGetValue,
    mlirTypeIsAInteger, mlirTypePrint,
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
    unsafe {
        mlirAttributeIsAString(raw)
            .then(|| String::from_utf8_lossy(bytes(mlirStringAttrGetValue(raw))).into_owned())
    }
}

/// An identifier such as a file's name; bytes that are not UTF-8 are replaced.
pub fn identifier(identifier: Identifier<'_>) -> String {
    // SAFETY: an identifier is valid as long as its context.
    String::from_utf8_lossy(unsafe { bytes(mlirIdentifierStr(identifier.to_raw())) }).into_owned()
}

/// An identifier such as the name of an operation, if it is UTF-8. Triton has no others.
pub fn borrowed(identifier: Identifier<'_>) -> &str {
    // SAFETY: an identifier is valid as long as its context.
    str::from_utf8(unsafe { bytes(mlirIdentifierStr(identifier.to_raw())) }).unwrap_or("?")
}

/// An attribute's text.
pub fn printed(attribute: Attribute<'_>) -> String {
    // SAFETY: the attribute is valid and the callback is made for its data.
    collect(|data| unsafe { mlirAttributePrint(attribute.to_raw(), Some(append), data) })
}

/// A type's text.
pub fn printed_type(ty: Type<'_>) -> String {
    // SAFETY: the type is valid and the callback is made for its data.
    collect(|data| unsafe { mlirTypePrint(ty.to_raw(), Some(append), data) })
}

/// What `print` writes; bytes that are not UTF-8 are replaced.
fn collect(print: impl FnOnce(*mut c_void)) -> String {
    let mut bytes: Vec<u8> = Vec::new();
    print((&raw mut bytes).cast());
    String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
}

/// Appends what MLIR prints.
///
/// # Safety
/// `data` must point at a `Vec<u8>` that nobody else uses; `string` must be valid.
pub unsafe extern "C" fn append(string: MlirStringRef, data: *mut c_void) {
    // SAFETY: the caller's.
    unsafe { (*data.cast::<Vec<u8>>()).extend_from_slice(bytes(string)) }
}

/// # Safety
/// `string` must be valid for `'a`.
unsafe fn bytes<'a>(string: MlirStringRef) -> &'a [u8] {
    if string.length == 0 {
        return &[];
    }
    // SAFETY: not empty, so `data` points at `length` bytes.
    unsafe { std::slice::from_raw_parts(string.data.cast::<u8>(), string.length) }
}

/// An element of an array of 32-bit integers.
pub fn i32_at(attribute: Attribute<'_>, index: usize) -> Option<i32> {
    let raw = attribute.to_raw();
    // SAFETY: `raw` is a valid attribute of the kind asked for, and `index` is in it.
    unsafe {
        let in_range = mlirAttributeIsADenseI32Array(raw)
            && (index as isize) < mlirDenseArrayGetNumElements(raw);
        in_range.then(|| mlirDenseI32ArrayGetElement(raw, index as isize))
    }
}
