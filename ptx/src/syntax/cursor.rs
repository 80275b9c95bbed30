//! The reading position in a text: the current token, one token of lookahead, lines and columns.
//!
//! # Invariants
//! - **C1** Tokens are made on demand: memory does not grow with the text.
//! - **C2** Every error carries the place of the token that showed it.

use logos::{Lexer, Logos};

use super::{
    ErrorKind, SyntaxError,
    lexer::Token::{self, *},
};
use crate::ir::Position;

pub(super) type Result<T, E = SyntaxError> = std::result::Result<T, E>;

/// The longest token but for literal text: names are hashed once a block.
const LONGEST: usize = 4096;

/// A token's place in the text.
#[derive(Clone, Copy, Debug)]
pub(super) struct At(pub usize);

pub(super) struct Cursor<'a> {
    text: &'a str,
    lexer: Lexer<'a, Token>,
    token: Token,
    start: usize,
    end: usize,
    /// Line of `start`, and the byte at which that line begins.
    line: usize,
    line_start: usize,
    /// The number of comments that begin or end inline assembly, up to here.
    marks: usize,
}

/// What LLVM writes around inline assembly.
const MARKS: [&str; 2] = ["// begin inline asm", "// end inline asm"];

impl<'a> Cursor<'a> {
    pub fn new(text: &'a str) -> Result<Self> {
        let lexer = Token::lexer(text);
        let mut cursor =
            Self { text, lexer, token: End, start: 0, end: 0, line: 1, line_start: 0, marks: 0 };
        cursor.advance()?;
        Ok(cursor)
    }

    /// The current token.
    pub fn token(&self) -> Token {
        self.token
    }

    /// The text of the current token.
    pub fn slice(&self) -> &'a str {
        &self.text[self.start..self.end]
    }

    pub fn at(&self) -> At {
        At(self.start)
    }

    pub fn position(&self) -> Position {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: narrow(self.line), column: narrow(self.start - self.line_start + 1) }
    }

    /// The inline assembly that the current token stands in: a number of its own, or none.
    pub fn assembly(&self) -> Option<usize> {
        (self.marks % 2 == 1).then_some(self.marks)
    }

    /// The token after the current one.
    pub fn peek(&self) -> Option<Token> {
        self.lexer.clone().next().and_then(std::result::Result::ok)
    }

    /// Moves on; answers the text of the token left behind.
    pub fn advance(&mut self) -> Result<&'a str> {
        let left = self.slice();
        let next = self.lexer.next();
        let span = self.lexer.span();
        let passed = &self.text[self.start..span.start];
        for (at, _) in passed.bytes().enumerate().filter(|&(_, byte)| byte == b'\n') {
            self.line += 1;
            self.line_start = self.start + at + 1;
        }
        self.marks += passed.lines().filter(|line| MARKS.contains(&line.trim())).count();
        (self.start, self.end) = (span.start, span.end);
        self.token = match next {
            None => End,
            Some(Ok(token)) => token,
            Some(Err(())) => {
                let shown: String = self.text[self.start..].chars().take(12).collect();
                let shown = shown.lines().next().unwrap_or_default().to_owned();
                return Err(self.error(ErrorKind::NotAToken(shown)));
            }
        };
        if self.end - self.start > LONGEST && self.token != Text {
            let limit = LONGEST as u64;
            return Err(self.error(ErrorKind::TooLarge { what: "a name or a number", limit }));
        }
        Ok(left)
    }

    /// An error at the current token.
    pub fn error(&self, kind: ErrorKind) -> SyntaxError {
        self.error_at(self.at(), kind)
    }

    pub fn error_at(&self, at: At, kind: ErrorKind) -> SyntaxError {
        SyntaxError::new(kind, self.text, at.0)
    }

    /// The error for a current token that is not what the grammar wants.
    pub fn unexpected(&self, expected: &'static str) -> SyntaxError {
        self.error(if self.token == End {
            ErrorKind::Truncated { expected }
        } else {
            ErrorKind::Unexpected { expected, found: shown(self.slice()) }
        })
    }

    pub fn accept(&mut self, token: Token) -> Result<bool> {
        let found = self.token == token;
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// Takes a token of one kind and answers its text.
    pub fn expect(&mut self, token: Token, expected: &'static str) -> Result<&'a str> {
        if self.token == token { self.advance() } else { Err(self.unexpected(expected)) }
    }

    /// Takes a dotted word if it is this one (given without the dot).
    pub fn accept_word(&mut self, word: &str) -> Result<bool> {
        let found = self.word() == Some(word);
        if found {
            self.advance()?;
        }
        Ok(found)
    }

    /// The current dotted word, without the dot.
    pub fn word(&self) -> Option<&'a str> {
        (self.token == Dotted).then(|| &self.slice()[1..])
    }

    /// Takes any dotted word and answers it without the dot.
    pub fn expect_word(&mut self, expected: &'static str) -> Result<&'a str> {
        Ok(&self.expect(Dotted, expected)?[1..])
    }

    /// Takes an unsigned integer.
    pub fn integer(&mut self, expected: &'static str) -> Result<u64> {
        if self.token != Number {
            return Err(self.unexpected(expected));
        }
        let value = integer(self.slice())
            .ok_or_else(|| self.error(ErrorKind::Number(shown(self.slice()))))?;
        self.advance()?;
        Ok(value)
    }

    /// Takes an unsigned integer of 32 bits.
    pub fn small(&mut self, expected: &'static str) -> Result<u32> {
        let at = self.at();
        let limit = u64::from(u32::MAX);
        u32::try_from(self.integer(expected)?)
            .map_err(|_| self.error_at(at, ErrorKind::TooLarge { what: "this number", limit }))
    }

    /// Takes everything between braces, nested ones included; answers the text inside.
    pub fn braced(&mut self) -> Result<&'a str> {
        self.expect(OpenBrace, "`{`")?;
        let from = self.start;
        let mut depth = 0_usize;
        loop {
            if self.token == End || (self.token == CloseBrace && depth == 0) {
                break;
            }
            depth += usize::from(self.token == OpenBrace);
            depth -= usize::from(self.token == CloseBrace);
            self.advance()?;
        }
        let inside = &self.text[from..self.start];
        self.expect(CloseBrace, "`}`")?;
        Ok(inside)
    }
}

/// What an error shows of a token.
pub(super) fn shown(slice: &str) -> String {
    const LONGEST: usize = 60;
    match slice.char_indices().nth(LONGEST) {
        None => format!("`{slice}`"),
        Some((cut, _)) => format!("`{}…`", &slice[..cut]),
    }
}

/// Decodes an integer literal: decimal, `0x`, `0b`, octal, each with an optional `U`.
pub(super) fn integer(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

#[cfg(test)]
mod tests {
    use super::integer;

    #[test]
    fn integers_of_every_base() {
        for (text, value) in [
            ("0", Some(0)),
            ("10", Some(10)),
            ("10U", Some(10)),
            ("0x1F", Some(31)),
            ("0X1fU", Some(31)),
            ("0b101", Some(5)),
            ("017", Some(15)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("08", None),
            ("0x", None),
            ("1x", None),
        ] {
            assert_eq!(integer(text), value, "{text}");
        }
    }
}
