//! Module scope: directives, variables, functions.
//!
//! # Invariants
//! - **S1** A function that is declared and then defined is one function, where its definition
//!   stands.
//! - **S2** A module variable is declared before a body uses its name for something of its own:
//!   printing puts variables first, and N3 of `scope.rs` would fail.

use rustc_hash::{FxHashMap, FxHashSet};

use super::{
    ErrorKind, body,
    cursor::{At, Cursor, Result},
    declaration,
    lexer::Token,
};
use crate::ir::{Function, Linkage, Module, SourceFile, Space, Target, Variable};

/// What a name of the module is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Variable,
    /// Declared, and where in the list.
    Declared(usize),
    Defined,
}

struct ModuleParser<'a> {
    cursor: Cursor<'a>,
    module: Module,
    names: FxHashMap<String, Named>,
    /// Names that bodies have given.
    given: FxHashSet<String>,
    /// Declarations that a definition replaced.
    replaced: FxHashSet<usize>,
}

/// Parses a module.
pub(super) fn parse(text: &str) -> Result<Module> {
    let mut parser = ModuleParser {
        cursor: Cursor::new(text)?,
        module: Module {
            version: (0, 0),
            target: Target { sm: 0, suffix: None, options: Vec::new() },
            address_size: 32,
            variables: Vec::new(),
            functions: Vec::new(),
            files: Vec::new(),
            sections: Vec::new(),
        },
        names: FxHashMap::default(),
        given: FxHashSet::default(),
        replaced: FxHashSet::default(),
    };
    parser.version()?;
    parser.target()?;
    while parser.cursor.token() != Token::End {
        parser.item()?;
    }
    let mut at = 0..;
    let replaced = parser.replaced;
    parser.module.functions.retain(|_| at.next().is_none_or(|at| !replaced.contains(&at)));
    Ok(parser.module)
}

impl<'a> ModuleParser<'a> {
    /// `.version 8.7`
    fn version(&mut self) -> Result<()> {
        if !self.cursor.accept_word("version")? {
            return Err(self.cursor.unexpected("`.version`"));
        }
        let text = self.cursor.slice();
        let parts = text.split_once('.');
        let parts =
            parts.and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        self.module.version = parts.ok_or_else(|| self.cursor.unexpected("a version"))?;
        self.cursor.expect(Token::Decimal, "a version")?;
        Ok(())
    }

    /// `.target sm_90a, debug`
    fn target(&mut self) -> Result<()> {
        if !self.cursor.accept_word("target")? {
            return Err(self.cursor.unexpected("`.target`"));
        }
        let name = self.cursor.slice();
        let target = architecture(name).ok_or_else(|| self.cursor.unexpected("a target `sm_N`"))?;
        self.module.target = target;
        self.cursor.expect(Token::Name, "a target")?;
        while self.cursor.accept(Token::Comma)? {
            let option = self.cursor.expect(Token::Name, "an option of the target")?;
            self.module.target.options.push(option.to_owned());
        }
        Ok(())
    }

    fn item(&mut self) -> Result<()> {
        let word = match self.cursor.word() {
            Some(word) => word,
            None => return Err(self.cursor.unexpected("a directive")),
        };
        match word {
            "address_size" => {
                self.cursor.advance()?;
                let at = self.cursor.at();
                self.module.address_size = self.cursor.small("32 or 64")?;
                if !matches!(self.module.address_size, 32 | 64) {
                    let found = self.module.address_size.to_string();
                    let kind = ErrorKind::Unexpected { expected: "32 or 64", found };
                    return Err(self.cursor.error_at(at, kind));
                }
                Ok(())
            }
            "file" => self.file(),
            "section" => self.section(),
            "loc" => body::location(&mut self.cursor).map(drop),
            "pragma" => body::pragma(&mut self.cursor),
            _ => self.declaration(),
        }
    }

    /// `.file 1 "path", time, size`
    fn file(&mut self) -> Result<()> {
        self.cursor.advance()?;
        let number = self.cursor.small("the number of a file")?;
        let path = self.cursor.expect(Token::Text, "the path of a file")?;
        let path = path[1..path.len() - 1].to_owned();
        self.module.files.push(SourceFile { number, path });
        while self.cursor.accept(Token::Comma)? {
            self.cursor.integer("a time or a size")?;
        }
        Ok(())
    }

    /// `.section .debug_info { … }`, kept as text.
    fn section(&mut self) -> Result<()> {
        self.cursor.advance()?;
        let name = self.cursor.expect_word("the name of a section")?.to_owned();
        let text = self.cursor.braced()?;
        let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
        let text = lines.join("\n").trim_matches('\n').to_owned();
        self.module.sections.push((name, text));
        Ok(())
    }

    /// Linkage, then a variable or a function.
    fn declaration(&mut self) -> Result<()> {
        let mut linkage = Linkage::Internal;
        while let Some(said) = self.cursor.word().and_then(|word| word.parse::<Linkage>().ok()) {
            if linkage != Linkage::Internal {
                return Err(self.cursor.unexpected("a variable or a function"));
            }
            linkage = said;
            self.cursor.advance()?;
        }
        let word = self.cursor.word().unwrap_or_default();
        if let Some(space) = declaration::space(word).filter(|&space| space != Space::Param) {
            self.cursor.advance()?;
            self.variables(linkage, space)
        } else if word == "entry" || word == "func" {
            self.cursor.advance()?;
            self.function(linkage, word == "entry")
        } else if word.is_empty() {
            Err(self.cursor.unexpected("a variable or a function"))
        } else {
            Err(self.cursor.error(ErrorKind::UnknownDirective(format!(".{word}"))))
        }
    }

    fn variables(&mut self, linkage: Linkage, space: Space) -> Result<()> {
        let head = declaration::head(&mut self.cursor, linkage, space)?;
        loop {
            let at = self.cursor.at();
            let (name, variable) = declaration::variable(&mut self.cursor, &head)?;
            if self.names.insert(name.to_owned(), Named::Variable).is_some() {
                return Err(self.cursor.error_at(at, ErrorKind::Duplicate(name.to_owned())));
            }
            if self.given.contains(name) {
                let what = format!("`{name}`, whose name a function above uses for its own");
                return Err(self.cursor.error_at(at, ErrorKind::Unsupported(what)));
            }
            self.module.variables.push(variable);
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        self.cursor.expect(Token::Semicolon, "`;`").map(drop)
    }

    fn function(&mut self, linkage: Linkage, entry: bool) -> Result<()> {
        let mut names = Vec::new();
        let returns = self.parameters(&mut names)?;
        let at = self.cursor.at();
        let position = self.cursor.position();
        let name = self.cursor.expect(Token::Name, "the name of a function")?;
        let params = self.parameters(&mut names)?;
        let directives = self.directives()?;
        let declares = self.cursor.accept(Token::Semicolon)?;
        self.announce(name, at, declares)?;
        let mut body = None;
        if !declares {
            let known = &self.names;
            let module = |name: &str| known.contains_key(name);
            let (parsed, given) = body::parse(&mut self.cursor, &module, &names)?;
            self.given.extend(given);
            body = Some(parsed);
        }
        let name = name.to_owned();
        let at = position;
        let function = Function { name, entry, linkage, returns, params, directives, body, at };
        self.module.functions.push(function);
        Ok(())
    }

    /// A function's name is known from here on, in its own body as well.
    fn announce(&mut self, name: &str, at: At, declares: bool) -> Result<()> {
        let here = self.module.functions.len();
        let now = if declares { Named::Declared(here) } else { Named::Defined };
        match self.names.insert(name.to_owned(), now) {
            None => Ok(()),
            Some(Named::Declared(before)) => {
                self.replaced.insert(before);
                Ok(())
            }
            Some(Named::Defined | Named::Variable) => {
                Err(self.cursor.error_at(at, ErrorKind::Duplicate(name.to_owned())))
            }
        }
    }

    /// `(.param .b32 a, .param .b64 b)`, or nothing.
    fn parameters(&mut self, names: &mut Vec<(&'a str, At)>) -> Result<Vec<Variable>> {
        let mut parameters = Vec::new();
        if !self.cursor.accept(Token::OpenParen)? || self.cursor.accept(Token::CloseParen)? {
            return Ok(parameters);
        }
        loop {
            if !self.cursor.accept_word("param")? {
                return Err(self.cursor.unexpected("`.param`"));
            }
            let head = declaration::head(&mut self.cursor, Linkage::Internal, Space::Param)?;
            let at = self.cursor.at();
            let (name, parameter) = declaration::variable(&mut self.cursor, &head)?;
            if name != "_" {
                names.push((name, at));
            }
            parameters.push(parameter);
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        self.cursor.expect(Token::CloseParen, "`)`")?;
        Ok(parameters)
    }

    /// `.reqntid 128, 1, 1` and the like.
    fn directives(&mut self) -> Result<Vec<(String, Vec<u32>)>> {
        const KNOWN: &[&str] = &[
            "reqntid",
            "maxntid",
            "maxnreg",
            "minnctapersm",
            "maxnctapersm",
            "reqnctapercluster",
            "explicitcluster",
            "maxclusterrank",
            "blocksareclusters",
            "noreturn",
            "abi_preserve",
            "abi_preserve_control",
        ];
        let mut directives = Vec::new();
        while let Some(word) = self.cursor.word() {
            if word == "pragma" {
                body::pragma(&mut self.cursor)?;
                continue;
            }
            if !KNOWN.contains(&word) {
                return Err(self.cursor.error(ErrorKind::UnknownDirective(format!(".{word}"))));
            }
            self.cursor.advance()?;
            let mut numbers = Vec::new();
            while self.cursor.token() == Token::Number {
                numbers.push(self.cursor.small("a number")?);
                if !self.cursor.accept(Token::Comma)? {
                    break;
                }
            }
            directives.push((word.to_owned(), numbers));
        }
        Ok(directives)
    }
}

/// `sm_90a`.
fn architecture(name: &str) -> Option<Target> {
    let rest = name.strip_prefix("sm_")?;
    let suffix = rest.chars().last().filter(|&last| last == 'a' || last == 'f');
    let digits = rest.strip_suffix(['a', 'f']).unwrap_or(rest);
    Some(Target { sm: digits.parse().ok()?, suffix, options: Vec::new() })
}
