//! Operands of instructions, and what their names mean.

use super::{
    ErrorKind,
    body::BodyParser,
    cursor::Result,
    lexer::Token,
    literal::{self, Literal},
    scope::Meaning,
    special,
};
use crate::ir::{Operand, RegisterId};

/// Vectors and brackets stand in brackets, no deeper.
const DEEPEST: usize = 2;

impl<'a> BodyParser<'a, '_, '_> {
    /// Operands up to the semicolon, which stays.
    pub(super) fn operands(&mut self) -> Result<Vec<Operand>> {
        if self.cursor.token() == Token::Semicolon {
            return Ok(Vec::new());
        }
        self.places.clear();
        let mut operands = Vec::new();
        loop {
            self.places.push(self.cursor.at());
            operands.push(self.operand(DEEPEST)?);
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        if self.cursor.token() != Token::Semicolon {
            return Err(self.cursor.unexpected("`,` or `;`"));
        }
        Ok(operands)
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Operand>> {
        let mut operands = vec![self.operand(depth)?];
        while self.cursor.accept(Token::Comma)? {
            operands.push(self.operand(depth)?);
        }
        Ok(operands)
    }

    fn operand(&mut self, depth: usize) -> Result<Operand> {
        let token = self.cursor.token();
        if literal::begins(token) {
            return Ok(of_literal(literal::read(self.cursor)?));
        }
        if depth > 0 && self.cursor.accept(Token::OpenBrace)? {
            let elements = self.list(0)?;
            self.cursor.expect(Token::CloseBrace, "`}`")?;
            return Ok(Operand::Vector(elements));
        }
        if depth > 0 && self.cursor.accept(Token::OpenBracket)? {
            return self.bracket(depth - 1);
        }
        if self.cursor.accept(Token::Not)? {
            return Ok(Operand::Not(self.register()?));
        }
        let first = self.named("an operand")?;
        if self.cursor.accept(Token::Bar)? {
            let second = self.named("the second destination")?;
            return Ok(Operand::Pair(Box::new(first), Box::new(second)));
        }
        if let Operand::Symbol { name, .. } = first {
            let offset = self.offset()?;
            return Ok(Operand::Symbol { name, offset });
        }
        Ok(first)
    }

    /// The rest of `[base+offset]`, or of `[a, {b, c}]`.
    fn bracket(&mut self, depth: usize) -> Result<Operand> {
        let start = self.cursor.at();
        let base = if literal::begins(self.cursor.token()) {
            of_literal(literal::read(self.cursor)?)
        } else {
            self.named("an address")?
        };
        if !matches!(base, Operand::Register(_) | Operand::Symbol { .. } | Operand::Int(_)) {
            let found = "another operand".to_owned();
            let expected = "a register, a symbol or an integer in brackets";
            return Err(self.cursor.error_at(start, ErrorKind::Unexpected { expected, found }));
        }
        let at = self.cursor.at();
        let offset = self.offset()?;
        if self.cursor.accept(Token::Comma)? {
            if offset != 0 {
                let what = "an offset beside coordinates".to_owned();
                return Err(self.cursor.error_at(at, ErrorKind::Unsupported(what)));
            }
            let mut elements = vec![base];
            elements.extend(self.list(depth)?);
            self.cursor.expect(Token::CloseBracket, "`]`")?;
            return Ok(Operand::Bracket(elements));
        }
        self.cursor.expect(Token::CloseBracket, "`]`")?;
        Ok(Operand::Address { base: Box::new(base), offset })
    }

    /// `+8`, `+-8`, `-8`, or nothing.
    fn offset(&mut self) -> Result<i64> {
        let mut offset = 0_i64;
        while matches!(self.cursor.token(), Token::Plus | Token::Minus) {
            let at = self.cursor.at();
            let part = match literal::read(self.cursor)? {
                Literal::Int(value) => Some(value as i64),
                Literal::Float32(_) | Literal::Float64(_) => None,
            };
            let sum = part.and_then(|part| offset.checked_add(part));
            let wrong = || ErrorKind::Number("this offset".to_owned());
            offset = sum.ok_or_else(|| self.cursor.error_at(at, wrong()))?;
        }
        Ok(offset)
    }

    /// A register by name, as a guard or behind `!`.
    pub(super) fn register(&mut self) -> Result<RegisterId> {
        let at = self.cursor.at();
        let name = self.cursor.slice();
        if let Operand::Register(id) = self.named("a register")? {
            Ok(id)
        } else {
            Err(self.cursor.error_at(at, ErrorKind::Guard(name.to_owned())))
        }
    }

    /// What a name means; a symbol has no offset yet.
    fn named(&mut self, expected: &'static str) -> Result<Operand> {
        let at = self.cursor.at();
        let name = self.cursor.expect(Token::Name, expected)?;
        if name == "_" {
            return Ok(Operand::Sink);
        }
        let found = self.scopes.find(name, &mut self.body.registers);
        match found.map_err(|kind| self.cursor.error_at(at, kind))? {
            Some(Meaning::Register(id)) => return Ok(Operand::Register(id)),
            Some(Meaning::Variable(name)) => return Ok(Operand::Symbol { name, offset: 0 }),
            None => {}
        }
        if (self.module)(name) {
            return Ok(Operand::Symbol { name: name.to_owned(), offset: 0 });
        }
        if name == "WARP_SZ" {
            return Ok(Operand::Int(32));
        }
        if let Some(special) = special::plain(name) {
            return Ok(Operand::Special(special));
        }
        if let Some(special) = special::with_axis(name, self.cursor.word()) {
            let Some(special) = special else {
                let missing = format!("{name}.{}", self.cursor.word().unwrap_or("x"));
                return Err(self.cursor.error_at(at, ErrorKind::Undeclared(missing)));
            };
            self.cursor.advance()?;
            return Ok(Operand::Special(special));
        }
        Err(self.cursor.error_at(at, ErrorKind::Undeclared(name.to_owned())))
    }

    /// The operands of a call, always three: returns, function, arguments.
    pub(super) fn call_operands(&mut self) -> Result<Vec<Operand>> {
        let mut returns = Vec::new();
        if self.cursor.token() == Token::OpenParen {
            returns = self.arguments()?;
            self.cursor.expect(Token::Comma, "`,`")?;
        }
        let at = self.cursor.at();
        let function = self.named("the function to call")?;
        if !matches!(function, Operand::Symbol { .. }) {
            let what = "a call through a register".to_owned();
            return Err(self.cursor.error_at(at, ErrorKind::Unsupported(what)));
        }
        let mut arguments = Vec::new();
        if self.cursor.accept(Token::Comma)? {
            arguments = self.arguments()?;
        }
        Ok(vec![Operand::List(returns), function, Operand::List(arguments)])
    }

    fn arguments(&mut self) -> Result<Vec<Operand>> {
        self.cursor.expect(Token::OpenParen, "`(`")?;
        if self.cursor.accept(Token::CloseParen)? {
            return Ok(Vec::new());
        }
        let list = self.list(0)?;
        self.cursor.expect(Token::CloseParen, "`)`")?;
        Ok(list)
    }
}

fn of_literal(literal: Literal) -> Operand {
    match literal {
        Literal::Int(value) => Operand::Int(value),
        Literal::Float32(bits) => Operand::Float32(bits),
        Literal::Float64(bits) => Operand::Float64(bits),
    }
}
