//! Literals: integers of every base, floats by their bits or in decimal, signs.

use super::{
    ErrorKind,
    cursor::{Cursor, Result, integer, shown},
    lexer::Token,
};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Literal {
    /// Modulo 2^64.
    Int(u64),
    Float32(u32),
    Float64(u64),
}

impl Literal {
    fn negated(self) -> Self {
        match self {
            Self::Int(value) => Self::Int(value.wrapping_neg()),
            Self::Float32(bits) => Self::Float32(bits ^ 1 << 31),
            Self::Float64(bits) => Self::Float64(bits ^ 1 << 63),
        }
    }
}

/// Whether a literal begins at this token.
pub(super) fn begins(token: Token) -> bool {
    matches!(token, Token::Minus | Token::Plus | Token::Number | Token::Decimal)
}

/// Takes a literal with its signs.
pub(super) fn read(cursor: &mut Cursor<'_>) -> Result<Literal> {
    let mut negative = false;
    while cursor.token() == Token::Minus || cursor.token() == Token::Plus {
        negative ^= cursor.token() == Token::Minus;
        cursor.advance()?;
    }
    let text = cursor.slice();
    let literal = if cursor.token() == Token::Number {
        bits(text).or_else(|| integer(text).map(Literal::Int))
    } else if cursor.token() == Token::Decimal {
        text.parse().ok().map(|value: f64| Literal::Float64(value.to_bits()))
    } else {
        return Err(cursor.unexpected("a number"));
    };
    let literal = literal.ok_or_else(|| cursor.error(ErrorKind::Number(shown(text))))?;
    cursor.advance()?;
    Ok(if negative { literal.negated() } else { literal })
}

/// `0f` with 8 or `0d` with 16 hexadecimal digits.
fn bits(text: &str) -> Option<Literal> {
    let digits = text.get(2..)?;
    match (text.as_bytes(), digits.len()) {
        ([b'0', b'f' | b'F', ..], 8) => u32::from_str_radix(digits, 16).ok().map(Literal::Float32),
        ([b'0', b'd' | b'D', ..], 16) => u64::from_str_radix(digits, 16).ok().map(Literal::Float64),
        _ => None,
    }
}
