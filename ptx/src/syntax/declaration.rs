//! Declarations of variables and parameters, at module scope and in bodies.
//!
//! # Invariants
//! - **D1** A declaration costs memory by its text, not by the sizes it names: an initialiser keeps
//!   the bytes that are written, and the rest of the variable is zero.

use super::{
    ErrorKind,
    cursor::{At, Cursor, Result},
    lexer::Token,
    literal::{self, Literal},
};
use crate::ir::{Class, Linkage, Scalar, Space, Variable};

/// The largest variable, in bytes.
const MOST_BYTES: u64 = 1 << 30;

/// What all names of one declaration share.
pub(super) struct Head {
    pub linkage: Linkage,
    pub space: Space,
    align: Option<u32>,
    vector: u8,
    ty: Scalar,
    pointer: Option<String>,
}

/// The space that a declaration begins with.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        "global" => Space::Global,
        "shared" => Space::Shared,
        "local" => Space::Local,
        "param" => Space::Param,
        "const" => Space::Const,
        _ => return None,
    })
}

/// Everything between the space and the first name.
pub(super) fn head(cursor: &mut Cursor<'_>, linkage: Linkage, space: Space) -> Result<Head> {
    let mut head = Head { linkage, space, align: None, vector: 1, ty: Scalar::B8, pointer: None };
    let mut typed = false;
    while let Some(word) = cursor.word() {
        if word == "align" && head.pointer.is_none() {
            cursor.advance()?;
            head.align = Some(alignment(cursor)?);
        } else if word == "ptr" && typed {
            head.pointer = Some(pointer(cursor)?);
        } else if let Some(vector @ ("v2" | "v4" | "v8")) = Some(word).filter(|_| !typed) {
            head.vector = vector.as_bytes()[1] - b'0';
            cursor.advance()?;
        } else if let (false, Ok(ty)) = (typed, word.parse()) {
            head.ty = ty;
            typed = true;
            cursor.advance()?;
        } else {
            return Err(cursor.error(ErrorKind::UnknownDirective(format!(".{word}"))));
        }
    }
    if !typed || matches!(head.ty, Scalar::Pred) {
        return Err(cursor.unexpected("the type of a variable"));
    }
    Ok(head)
}

fn alignment(cursor: &mut Cursor<'_>) -> Result<u32> {
    let at = cursor.at();
    let align = cursor.small("an alignment")?;
    if align.is_power_of_two() {
        Ok(align)
    } else {
        let found = align.to_string();
        Err(cursor.error_at(at, ErrorKind::Unexpected { expected: "a power of two", found }))
    }
}

/// `.ptr .global .align 1`, kept as text.
fn pointer(cursor: &mut Cursor<'_>) -> Result<String> {
    cursor.advance()?;
    let mut text = ".ptr".to_owned();
    while let Some(word) = cursor.word() {
        if space(word).is_none() && word != "align" {
            return Err(cursor.error(ErrorKind::UnknownDirective(format!(".{word}"))));
        }
        cursor.advance()?;
        text.push_str(" .");
        text.push_str(word);
        if word == "align" {
            text.push(' ');
            text.push_str(&alignment(cursor)?.to_string());
        }
    }
    Ok(text)
}

/// A name with its dimensions and initialiser.
pub(super) fn variable<'a>(cursor: &mut Cursor<'a>, head: &Head) -> Result<(&'a str, Variable)> {
    let at = cursor.at();
    let position = cursor.position();
    let name = cursor.expect(Token::Name, "the name of a variable")?;
    let dimensions = dimensions(cursor)?;
    let mut elements = extent(&dimensions);
    let mut initial = Vec::new();
    if cursor.accept(Token::Equals)? {
        initial = initialiser(cursor, head.ty, dimensions.len())?;
        let width = (head.ty.bytes() * u32::from(head.vector)) as usize;
        let written = (initial.len() / width.max(1)) as u64;
        if elements == Some(Some(0)) {
            elements = Some(Some(written));
        } else if elements.is_some_and(|elements| elements.unwrap_or(1) < written) {
            let limit = elements.flatten().unwrap_or(1);
            return Err(cursor.error_at(at, ErrorKind::TooLarge { what: "the initialiser", limit }));
        }
    }
    let width = u64::from(head.ty.bytes()) * u64::from(head.vector);
    let bytes = elements.and_then(|elements| elements.unwrap_or(1).checked_mul(width));
    if bytes.is_none_or(|bytes| bytes > MOST_BYTES) {
        let kind = ErrorKind::TooLarge { what: "this variable", limit: MOST_BYTES };
        return Err(cursor.error_at(at, kind));
    }
    let variable = Variable {
        name: name.to_owned(),
        linkage: head.linkage,
        space: head.space,
        ty: head.ty,
        vector: head.vector,
        elements: elements.flatten(),
        align: head.align,
        initial,
        pointer: head.pointer.clone(),
        at: position,
    };
    Ok((name, variable))
}

/// `[4][8]`; `[]` counts 0.
fn dimensions(cursor: &mut Cursor<'_>) -> Result<Vec<u64>> {
    let mut dimensions = Vec::new();
    while cursor.accept(Token::OpenBracket)? {
        let open = cursor.token() == Token::CloseBracket;
        dimensions.push(if open { 0 } else { cursor.integer("the size of an array")? });
        cursor.expect(Token::CloseBracket, "`]`")?;
    }
    Ok(dimensions)
}

/// The number of elements: inner `None` for a scalar, outer `None` on overflow.
fn extent(dimensions: &[u64]) -> Option<Option<u64>> {
    if dimensions.is_empty() {
        return Some(None);
    }
    dimensions.iter().try_fold(1_u64, |all, &size| all.checked_mul(size)).map(Some)
}

/// `5` or `{1, 2, 3}`, as bytes.
fn initialiser(cursor: &mut Cursor<'_>, ty: Scalar, dimensions: usize) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    if dimensions > 1 {
        let what = "the initialiser of an array of several dimensions".to_owned();
        return Err(cursor.error(ErrorKind::Unsupported(what)));
    }
    if !cursor.accept(Token::OpenBrace)? {
        element(cursor, ty, &mut bytes)?;
        return Ok(bytes);
    }
    loop {
        element(cursor, ty, &mut bytes)?;
        if !cursor.accept(Token::Comma)? {
            break;
        }
    }
    cursor.expect(Token::CloseBrace, "`}`")?;
    Ok(bytes)
}

fn element(cursor: &mut Cursor<'_>, ty: Scalar, bytes: &mut Vec<u8>) -> Result<()> {
    let at = cursor.at();
    if cursor.token() == Token::Name {
        let what = format!("the address of `{}` in an initialiser", cursor.slice());
        return Err(cursor.error(ErrorKind::Unsupported(what)));
    }
    let bits = value(literal::read(cursor)?, ty).ok_or_else(|| misfit(cursor, at, ty))?;
    let width = ty.bytes() as usize;
    bytes.extend_from_slice(&bits.to_le_bytes()[..width]);
    Ok(())
}

fn misfit(cursor: &Cursor<'_>, at: At, ty: Scalar) -> super::SyntaxError {
    let found = format!("one that is no .{ty}");
    cursor.error_at(at, ErrorKind::Unexpected { expected: "a value of the variable's type", found })
}

/// The bits of a literal in a variable of a type.
fn value(literal: Literal, ty: Scalar) -> Option<u128> {
    let width = ty.bits();
    match literal {
        // What an integer means as a float is not said; zero is zero.
        Literal::Int(value) if value != 0 && ty.class() == Class::Float => None,
        Literal::Int(value) if width >= 64 => Some(u128::from(value)),
        Literal::Int(value) => {
            // Either reading of the sign fits: 255 and -1 are both values of .s8 and .u8.
            let negative = (value as i64) < 0 && (value as i64) >= -(1_i64 << (width - 1));
            let fits = value < 1 << width || negative;
            fits.then_some(u128::from(value) & ((1 << width) - 1))
        }
        Literal::Float32(bits) if width == 32 => Some(u128::from(bits)),
        Literal::Float64(bits) if width == 64 => Some(u128::from(bits)),
        // A decimal literal is read as f64; an f32 variable takes its nearest value.
        Literal::Float64(bits) if ty == Scalar::F32 => {
            Some(u128::from((f64::from_bits(bits) as f32).to_bits()))
        }
        Literal::Float32(_) | Literal::Float64(_) => None,
    }
}
