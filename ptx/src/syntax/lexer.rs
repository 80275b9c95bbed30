//! Tokens of PTX. A number is one token whatever its base; it is decoded where it is used.

use logos::Logos;

#[derive(Logos, Clone, Copy, PartialEq, Eq, Debug)]
#[logos(skip r"[ \t\r\n\f]+")]
#[logos(skip(r"//[^\n]*", allow_greedy = true))]
#[logos(skip r"/\*([^*]|\*+[^*/])*\*+/")]
pub(super) enum Token {
    /// A name: register, label, symbol, opcode.
    #[regex(r"[a-zA-Z_$%][a-zA-Z0-9_$]*")]
    Name,
    /// A dotted word: directive, modifier, component of a special register.
    #[regex(r"\.[a-zA-Z0-9_$]+(::[a-zA-Z0-9_]+)*")]
    Dotted,
    /// An integer of any base, or the bits of a float (`0f…`, `0d…`).
    #[regex(r"[0-9][0-9a-zA-Z]*")]
    Number,
    /// A decimal float, or a version.
    #[regex(r"[0-9]+\.[0-9]+([eE][+-]?[0-9]+)?")]
    #[regex(r"[0-9]+[eE][+-][0-9]+")]
    Decimal,
    #[regex(r#""([^"\\\n]|\\[^\n])*""#)]
    Text,
    #[token("{")]
    OpenBrace,
    #[token("}")]
    CloseBrace,
    #[token("(")]
    OpenParen,
    #[token(")")]
    CloseParen,
    #[token("[")]
    OpenBracket,
    #[token("]")]
    CloseBracket,
    #[token("<")]
    Less,
    #[token(">")]
    Greater,
    #[token(",")]
    Comma,
    #[token(";")]
    Semicolon,
    #[token(":")]
    Colon,
    #[token("@")]
    At,
    #[token("!")]
    Not,
    #[token("|")]
    Bar,
    #[token("+")]
    Plus,
    #[token("-")]
    Minus,
    #[token("=")]
    Equals,
    /// The end of the text.
    End,
}
