//! The text of a module: the inverse of parsing.
//!
//! # Invariants
//! - **P1** Parsing what is printed gives an equal module.
//! - **P2** What is printed is PTX: functions are declared before a body that calls them.

use std::fmt::{Display, Formatter, Result, Write};

use rustc_hash::FxHashSet;

use super::{opcode, special};
use crate::ir::{Body, Function, Instruction, Linkage, Module, Operand, Scalar, Target, Variable};

impl Display for Module {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        writeln!(f, ".version {}.{}", self.version.0, self.version.1)?;
        writeln!(f, ".target {}", self.target)?;
        writeln!(f, ".address_size {}", self.address_size)?;
        for variable in &self.variables {
            linkage(f, variable.linkage)?;
            writeln!(f, "{variable};")?;
        }
        let mut named = FxHashSet::default();
        for function in &self.functions {
            if named.contains(function.name.as_str()) {
                f.write_char('\n')?;
                signature(f, function)?;
                f.write_str(";\n")?;
            }
            named.extend(symbols(function));
        }
        for function in &self.functions {
            write!(f, "\n{function}")?;
        }
        for file in &self.files {
            writeln!(f, "\n.file {} \"{}\"", file.number, file.path)?;
        }
        for (name, text) in &self.sections {
            writeln!(f, "\n.section .{name}\n{{\n{text}\n}}")?;
        }
        Ok(())
    }
}

/// The names of the module that a body uses in its operands.
fn symbols(function: &Function) -> FxHashSet<&str> {
    let body = function.body.as_ref();
    let locals = body.iter().flat_map(|body| &body.variables);
    let own: FxHashSet<&str> = locals
        .chain(&function.params)
        .chain(&function.returns)
        .map(|variable| variable.name.as_str())
        .collect();
    let instructions = body.iter().flat_map(|body| &body.instructions);
    let operands = instructions.flat_map(|instruction| &instruction.operands);
    let mut symbols = FxHashSet::default();
    for operand in operands {
        if let Operand::Symbol { name, .. } = operand
            && !own.contains(name.as_str())
        {
            symbols.insert(name.as_str());
        }
    }
    symbols
}

impl Display for Target {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, "sm_{}", self.sm)?;
        if let Some(suffix) = self.suffix {
            f.write_char(suffix)?;
        }
        self.options.iter().try_for_each(|option| write!(f, ", {option}"))
    }
}

fn linkage(f: &mut Formatter<'_>, linkage: Linkage) -> Result {
    if linkage == Linkage::Internal { Ok(()) } else { write!(f, ".{linkage} ") }
}

/// A declaration without linkage and semicolon.
impl Display for Variable {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        write!(f, ".{}", self.space)?;
        if let Some(align) = self.align {
            write!(f, " .align {align}")?;
        }
        if self.vector > 1 {
            write!(f, " .v{}", self.vector)?;
        }
        write!(f, " .{}", self.ty)?;
        if let Some(pointer) = &self.pointer {
            write!(f, " {pointer}")?;
        }
        write!(f, " {}", self.name)?;
        match self.elements {
            None => {}
            Some(0) => f.write_str("[]")?,
            Some(elements) => write!(f, "[{elements}]")?,
        }
        if self.initial.is_empty() {
            return Ok(());
        }
        let values = self.initial.chunks(self.ty.bytes() as usize);
        let values = values.map(|bytes| initial(self.ty, bytes));
        let values: Vec<String> = values.collect();
        if self.elements.is_none() && values.len() == 1 {
            write!(f, " = {}", values[0])
        } else {
            write!(f, " = {{{}}}", values.join(", "))
        }
    }
}

/// One value of an initialiser, by its bits.
fn initial(ty: Scalar, bytes: &[u8]) -> String {
    let mut wide = [0; 8];
    for (to, from) in wide.iter_mut().zip(bytes) {
        *to = *from;
    }
    let bits = u64::from_le_bytes(wide);
    if ty == Scalar::F32 {
        format!("0f{bits:08X}")
    } else if ty == Scalar::F64 {
        format!("0d{bits:016X}")
    } else {
        bits.to_string()
    }
}

/// Everything before the body.
fn signature(f: &mut Formatter<'_>, function: &Function) -> Result {
    linkage(f, function.linkage)?;
    f.write_str(if function.entry { ".entry " } else { ".func " })?;
    if !function.returns.is_empty() {
        parameters(f, &function.returns)?;
        f.write_char(' ')?;
    }
    f.write_str(&function.name)?;
    parameters(f, &function.params)?;
    for (name, numbers) in &function.directives {
        let numbers: Vec<String> = numbers.iter().map(u32::to_string).collect();
        write!(f, "\n.{name} {}", numbers.join(", "))?;
    }
    Ok(())
}

fn parameters(f: &mut Formatter<'_>, parameters: &[Variable]) -> Result {
    f.write_char('(')?;
    for (at, parameter) in parameters.iter().enumerate() {
        write!(f, "{}\n\t{parameter}", if at == 0 { "" } else { "," })?;
    }
    f.write_str(if parameters.is_empty() { ")" } else { "\n)" })
}

impl Display for Function {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        signature(f, self)?;
        match &self.body {
            None => f.write_str(";\n"),
            Some(body) => write!(f, "\n{{\n{body}}}\n"),
        }
    }
}

impl Display for Body {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        const A_LINE: usize = 8;
        for same in self.registers.chunk_by(|one, next| one.ty == next.ty) {
            for line in same.chunks(A_LINE) {
                let names: Vec<&str> = line.iter().map(|one| one.name.as_str()).collect();
                writeln!(f, "\t.reg .{} {};", line[0].ty, names.join(", "))?;
            }
        }
        for variable in &self.variables {
            writeln!(f, "\t{variable};")?;
        }
        for table in &self.jump_tables {
            let names = table.targets.iter().map(|id| self.labels[id.index()].name.as_str());
            let names: Vec<&str> = names.collect();
            writeln!(f, "{}: .branchtargets {};", table.name, names.join(", "))?;
        }
        let mut labels = self.labels.iter().peekable();
        let mut source = None;
        for (at, instruction) in self.instructions.iter().enumerate() {
            while let Some(label) = labels.next_if(|label| label.at as usize <= at) {
                writeln!(f, "{}:", label.name)?;
            }
            if let Some(line) = instruction.source.filter(|&line| source != Some(line)) {
                source = Some(line);
                writeln!(f, "\t.loc {} {} {}", line.file, line.line, line.column)?;
            }
            f.write_char('\t')?;
            write_instruction(f, self, instruction)?;
            f.write_str(";\n")?;
        }
        labels.try_for_each(|label| writeln!(f, "{}:", label.name))
    }
}

/// An instruction's text, without its semicolon.
pub(super) fn instruction(body: &Body, instruction: &Instruction) -> String {
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = write_instruction(&mut text, body, instruction);
    text
}

fn write_instruction(f: &mut impl Write, body: &Body, instruction: &Instruction) -> Result {
    if let Some(guard) = instruction.guard {
        let not = if guard.negated { "!" } else { "" };
        write!(f, "@{not}{} ", body.registers[guard.register.index()].name)?;
    }
    f.write_str(&opcode::print(&instruction.op))?;
    let mut operands = Vec::new();
    for operand in &instruction.operands {
        // A call without returns or arguments has no parentheses for them.
        if !matches!(operand, Operand::List(list) if list.is_empty()) {
            operands.push(text_of(body, operand));
        }
    }
    if operands.is_empty() { Ok(()) } else { write!(f, " {}", operands.join(", ")) }
}

fn text_of(body: &Body, operand: &Operand) -> String {
    let all =
        |list: &[Operand]| list.iter().map(|one| text_of(body, one)).collect::<Vec<_>>().join(", ");
    match operand {
        Operand::Register(id) => body.registers[id.index()].name.clone(),
        Operand::Not(id) => format!("!{}", body.registers[id.index()].name),
        Operand::Special(special) => special::name(*special),
        Operand::Int(value) => (*value as i64).to_string(),
        Operand::Float32(bits) => format!("0f{bits:08X}"),
        Operand::Float64(bits) => format!("0d{bits:016X}"),
        Operand::Symbol { name, offset } => plus(name.clone(), *offset),
        Operand::Address { base, offset } => format!("[{}]", plus(text_of(body, base), *offset)),
        Operand::Vector(list) => format!("{{{}}}", all(list)),
        Operand::Pair(first, second) => {
            format!("{}|{}", text_of(body, first), text_of(body, second))
        }
        Operand::Sink => "_".to_owned(),
        Operand::Label(id) => body.labels[id.index()].name.clone(),
        Operand::Table(id) => body.jump_tables[id.index()].name.clone(),
        Operand::List(list) => format!("({})", all(list)),
        Operand::Bracket(list) => format!("[{}]", all(list)),
    }
}

/// `a+8`, `a+-8`: ptxas takes no other form of a negative offset.
fn plus(base: String, offset: i64) -> String {
    if offset == 0 { base } else { format!("{base}+{offset}") }
}
