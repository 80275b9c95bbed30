//! The body of a function: statements, blocks, labels.
//!
//! # Invariants
//! - **B1** Blocks nest to a fixed depth, and parsing never recurses on them.
//! - **B2** What a body gives up is without effect: `.pragma`, and the function names of `.loc`.

use rustc_hash::FxHashSet;

use super::{
    ErrorKind, check,
    cursor::{At, Cursor, Result, shown},
    declaration,
    labels::{Labels, Site},
    lexer::Token,
    opcode,
    scope::Scopes,
};
use crate::ir::{
    Body, FloatBinary, Guard, Instruction, LabelId, Linkage, Op, Operand, Scalar, SourceLine,
    TableId, Variable,
};

pub(super) struct BodyParser<'a, 'c, 'm> {
    pub(super) cursor: &'c mut Cursor<'a>,
    pub(super) scopes: Scopes<'a, 'm>,
    pub(super) module: &'m dyn Fn(&str) -> bool,
    pub(super) body: Body,
    labels: Labels<'a>,
    source: Option<SourceLine>,
    /// The inline assembly that has had its `.loc`.
    located: Option<usize>,
    /// Where the operands of the current instruction stand.
    pub(super) places: Vec<At>,
}

/// Parses a body, braces included; answers it with every name that it gives.
pub(super) fn parse<'a>(
    cursor: &mut Cursor<'a>,
    module: &dyn Fn(&str) -> bool,
    parameters: &[(&'a str, At)],
) -> Result<(Body, FxHashSet<String>)> {
    let mut parser = BodyParser {
        cursor,
        scopes: Scopes::new(module),
        module,
        body: Body::default(),
        labels: Labels::default(),
        source: None,
        located: None,
        places: Vec::new(),
    };
    for &(name, at) in parameters {
        let declared = parser.scopes.declare_parameter(name);
        declared.map_err(|kind| parser.cursor.error_at(at, kind))?;
    }
    parser.run()?;
    let names = parser.scopes.into_names();
    Ok((parser.body, names))
}

impl<'a> BodyParser<'a, '_, '_> {
    fn run(&mut self) -> Result<()> {
        self.open()?;
        while self.scopes.depth() > 1 {
            let token = self.cursor.token();
            if token == Token::OpenBrace {
                self.open()?;
            } else if token == Token::CloseBrace {
                self.close()?;
            } else if token == Token::Dotted {
                self.directive()?;
            } else if token == Token::Semicolon {
                self.cursor.advance()?;
            } else if token == Token::Name && self.cursor.peek() == Some(Token::Colon) {
                self.label()?;
            } else if token == Token::Name || token == Token::At {
                self.instruction()?;
            } else {
                return Err(self.cursor.unexpected("a statement"));
            }
        }
        Ok(())
    }

    fn open(&mut self) -> Result<()> {
        let opened = self.scopes.open();
        opened.map_err(|kind| self.cursor.error(kind))?;
        self.labels.open();
        self.cursor.expect(Token::OpenBrace, "`{`")?;
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        self.scopes.close();
        let closed = self.labels.close(&mut self.body);
        closed.map_err(|(at, kind)| self.cursor.error_at(at, kind))?;
        self.cursor.expect(Token::CloseBrace, "`}`")?;
        Ok(())
    }

    fn directive(&mut self) -> Result<()> {
        let word = self.cursor.word().unwrap_or_default();
        if let Some(space) = declaration::space(word) {
            self.cursor.advance()?;
            return self.variables(space);
        }
        match word {
            "reg" => self.registers(),
            "loc" => self.location(),
            "pragma" => pragma(self.cursor),
            _ => Err(self.cursor.error(ErrorKind::UnknownDirective(format!(".{word}")))),
        }
    }

    /// The line that the instructions behind it come from.
    ///
    /// LLVM writes a `.loc` for each line of an inline assembly, counting up from the line where the
    /// assembly stands: only the first of them is a line of the user's.
    fn location(&mut self) -> Result<()> {
        let assembly = self.cursor.assembly();
        let (line, caller) = location(self.cursor)?;
        if assembly.is_none() || assembly != self.located {
            self.source = Some(line);
            self.body.inlined.0.extend(caller.map(|caller| (line, caller)));
        }
        self.located = assembly;
        Ok(())
    }

    /// `.reg .b32 %r<5>, t;`
    fn registers(&mut self) -> Result<()> {
        self.cursor.advance()?;
        let at = self.cursor.at();
        let word = self.cursor.expect_word("the type of a register")?;
        let ty: Scalar = word.parse().map_err(|_| {
            let found = shown(word);
            self.cursor.error_at(at, ErrorKind::Unexpected { expected: "a type", found })
        })?;
        loop {
            let at = self.cursor.at();
            let name = self.cursor.expect(Token::Name, "the name of a register")?;
            let declared = if self.cursor.accept(Token::Less)? {
                let count = self.cursor.integer("the number of registers")?;
                self.cursor.expect(Token::Greater, "`>`")?;
                self.scopes.declare_range(name, ty, count)
            } else {
                self.scopes.declare_register(name, ty)
            };
            declared.map_err(|kind| self.cursor.error_at(at, kind))?;
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        self.end()
    }

    /// `.shared .align 4 .b8 tile[128];`
    fn variables(&mut self, space: crate::ir::Space) -> Result<()> {
        let head = declaration::head(self.cursor, Linkage::Internal, space)?;
        loop {
            let at = self.cursor.at();
            let (name, variable) = declaration::variable(self.cursor, &head)?;
            let unique = self.scopes.declare_variable(name);
            let name = unique.map_err(|kind| self.cursor.error_at(at, kind))?;
            self.body.variables.push(Variable { name, ..variable });
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        self.end()
    }

    /// A label, a jump table, or a prototype.
    fn label(&mut self) -> Result<()> {
        let at = self.cursor.at();
        let name = self.cursor.advance()?;
        self.cursor.expect(Token::Colon, "`:`")?;
        let unique = self.scopes.unique(name);
        if self.cursor.accept_word("branchtargets")? {
            let table = self.labels.table(name, unique, &mut self.body);
            table.map_err(|kind| self.cursor.error_at(at, kind))?;
            return self.targets();
        }
        if let Some(word @ ("callprototype" | "calltargets")) = self.cursor.word() {
            let what = format!("`.{word}`: calls through registers");
            return Err(self.cursor.error(ErrorKind::Unsupported(what)));
        }
        let stood = self.labels.stand(name, unique, &mut self.body);
        stood.map_err(|kind| self.cursor.error_at(at, kind))
    }

    /// The entries of the newest jump table.
    fn targets(&mut self) -> Result<()> {
        let table = self.body.jump_tables.len() - 1;
        loop {
            let at = self.cursor.at();
            let name = self.cursor.expect(Token::Name, "a label")?;
            let targets = &mut self.body.jump_tables[table].targets;
            self.labels.want(name, at, Site::Entry { table, entry: targets.len() });
            targets.push(LabelId(0));
            if !self.cursor.accept(Token::Comma)? {
                break;
            }
        }
        self.end()
    }

    fn instruction(&mut self) -> Result<()> {
        let guard = self.guard()?;
        let at = self.cursor.at();
        let position = self.cursor.position();
        let mut op = self.operation()?;
        self.places.clear();
        let mut operands = if matches!(op, Op::Bra { .. }) {
            vec![self.target()?]
        } else if matches!(op, Op::BrxIdx { .. }) {
            self.switch()?
        } else if matches!(op, Op::Call { .. }) {
            self.call_operands()?
        } else {
            self.operands()?
        };
        if let Op::FloatBinary { op: which @ (FloatBinary::Min | FloatBinary::Max), ty, mode } = op
            && operands.len() == 4
        {
            op = Op::FloatTernary { op: which, ty, mode };
        }
        check::settle(&op, &mut operands, &self.body.registers).map_err(|kind| {
            let place =
                if let ErrorKind::Operand { number, .. } = kind { number - 1 } else { usize::MAX };
            self.cursor.error_at(self.places.get(place).copied().unwrap_or(at), kind)
        })?;
        self.end()?;
        let source = self.source;
        self.body.instructions.push(Instruction { guard, op, operands, at: position, source });
        Ok(())
    }

    /// An opcode with its modifiers.
    fn operation(&mut self) -> Result<Op> {
        let mut at = self.cursor.at();
        let opcode = self.cursor.expect(Token::Name, "an opcode")?;
        let (mut words, mut places) = (Vec::new(), Vec::new());
        while let Some(word) = self.cursor.word() {
            words.push(word);
            places.push(self.cursor.at());
            self.cursor.advance()?;
        }
        opcode::read(opcode, &words).map_err(|kind| {
            if let ErrorKind::UnknownModifier { modifier, .. } = &kind {
                let place = words.iter().position(|word| word == modifier);
                at = place.map_or(at, |place| places[place]);
            }
            self.cursor.error_at(at, kind)
        })
    }

    fn guard(&mut self) -> Result<Option<Guard>> {
        if !self.cursor.accept(Token::At)? {
            return Ok(None);
        }
        let negated = self.cursor.accept(Token::Not)?;
        let at = self.cursor.at();
        let name = self.cursor.slice();
        let register = self.register()?;
        if self.body.registers[register.index()].ty == Scalar::Pred {
            Ok(Some(Guard { register, negated }))
        } else {
            Err(self.cursor.error_at(at, ErrorKind::Guard(name.to_owned())))
        }
    }

    /// The label that a branch names; which one it is is known when the block closes.
    fn target(&mut self) -> Result<Operand> {
        let at = self.cursor.at();
        let name = self.cursor.expect(Token::Name, "a label")?;
        let instruction = self.body.instructions.len();
        self.labels.want(name, at, Site::Branch { instruction, operand: 0 });
        Ok(Operand::Label(LabelId(0)))
    }

    /// The index and the table of `brx.idx`.
    fn switch(&mut self) -> Result<Vec<Operand>> {
        let index = Operand::Register(self.register()?);
        self.cursor.expect(Token::Comma, "`,`")?;
        let at = self.cursor.at();
        let name = self.cursor.expect(Token::Name, "a list of branch targets")?;
        let instruction = self.body.instructions.len();
        self.labels.want(name, at, Site::Switch { instruction, operand: 1 });
        Ok(vec![index, Operand::Table(TableId(0))])
    }

    fn end(&mut self) -> Result<()> {
        self.cursor.expect(Token::Semicolon, "`;`").map(drop)
    }
}

/// `.loc 1 20 5, function_name $L__info_string0, inlined_at 1 30 7`: the line, and its caller.
pub(super) fn location(cursor: &mut Cursor<'_>) -> Result<(SourceLine, Option<SourceLine>)> {
    cursor.advance()?;
    let line = source_line(cursor)?;
    let mut caller = None;
    while cursor.accept(Token::Comma)? {
        match cursor.expect(Token::Name, "`function_name` or `inlined_at`")? {
            "function_name" => {
                cursor.expect(Token::Name, "the label of a name")?;
                if cursor.accept(Token::Plus)? {
                    cursor.small("an offset")?;
                }
            }
            "inlined_at" => caller = Some(source_line(cursor)?),
            _ => return Err(cursor.unexpected("`function_name` or `inlined_at`")),
        }
    }
    Ok((line, caller))
}

fn source_line(cursor: &mut Cursor<'_>) -> Result<SourceLine> {
    let file = cursor.small("the number of a file")?;
    let line = cursor.small("a line")?;
    let column = cursor.small("a column")?;
    Ok(SourceLine { file, line, column })
}

/// `.pragma "nounroll";`
pub(super) fn pragma(cursor: &mut Cursor<'_>) -> Result<()> {
    cursor.advance()?;
    loop {
        cursor.expect(Token::Text, "the text of a pragma")?;
        if !cursor.accept(Token::Comma)? {
            break;
        }
    }
    cursor.expect(Token::Semicolon, "`;`").map(drop)
}
