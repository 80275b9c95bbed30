//! A module: declarations, functions, instructions.
//!
//! # Invariants
//! - **M1** Block scopes of the text are gone: every register of a body has one name and one id.
//! - **M2** Ids index the tables of their own body or module and are in range.

use std::collections::BTreeMap;

use super::{
    op::Op,
    types::{Scalar, Space, Special},
};

macro_rules! index {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
        pub struct $name(pub u32);
        impl $name {
            /// As an index into the table it belongs to.
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
    )*};
}
index! {
    /// Of [`Body::registers`].
    RegisterId;
    /// Of [`Body::labels`].
    LabelId;
    /// Of [`Body::jump_tables`].
    TableId;
}

/// Line and column in the PTX text, from 1; (0, 0) where there is no text. Never compared: two
/// modules are equal when they mean the same.
#[derive(Clone, Copy, Debug, Default)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}
impl PartialEq for Position {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Position {}

/// A line of the user's source, from `.loc`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct SourceLine {
    /// Number of a [`SourceFile`].
    pub file: u32,
    pub line: u32,
    pub column: u32,
}

/// Where each inlined line was inlined: `inlined_at` of `.loc`. As with [`Position`], never compared
/// and not printed.
#[derive(Clone, Debug, Default)]
pub struct Inlined(pub BTreeMap<SourceLine, SourceLine>);
impl PartialEq for Inlined {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}
impl Eq for Inlined {}

impl Inlined {
    /// A line and the lines it was inlined at, innermost first.
    pub fn frames(&self, line: SourceLine) -> impl Iterator<Item = SourceLine> {
        // Hostile text may say that a line was inlined at itself.
        std::iter::successors(Some(line), |at| self.0.get(at).copied()).take(64)
    }
}

/// A `.file` directive.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SourceFile {
    pub number: u32,
    pub path: String,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Module {
    /// `.version 8.7` is (8, 7).
    pub version: (u32, u32),
    pub target: Target,
    pub address_size: u32,
    /// Module-scope variables: `global_smem`, constant tables, string literals.
    pub variables: Vec<Variable>,
    pub functions: Vec<Function>,
    pub files: Vec<SourceFile>,
    /// `.section` blocks, name and body as written (debug information).
    pub sections: Vec<(String, String)>,
}

/// `.target sm_90a, debug`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Target {
    pub sm: u32,
    /// `a` or `f`.
    pub suffix: Option<char>,
    pub options: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, strum::EnumString, strum::Display)]
#[strum(serialize_all = "lowercase")]
pub enum Linkage {
    #[strum(disabled)]
    Internal,
    Visible,
    Extern,
    Weak,
    Common,
}

/// A variable or a parameter.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Variable {
    pub name: String,
    pub linkage: Linkage,
    pub space: Space,
    pub ty: Scalar,
    /// Elements in one value, for `.v2`, `.v4`; 1 otherwise.
    pub vector: u8,
    /// `None`: a scalar. `Some(0)`: `[]`, size given at launch.
    pub elements: Option<u64>,
    /// Explicit `.align`, in bytes.
    pub align: Option<u32>,
    /// Bytes of the initialiser; empty: none.
    pub initial: Vec<u8>,
    /// `.ptr .global .align 1` and the like, as written, of a kernel parameter.
    pub pointer: Option<String>,
    pub at: Position,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Function {
    pub name: String,
    /// `.entry`; otherwise `.func`.
    pub entry: bool,
    pub linkage: Linkage,
    pub returns: Vec<Variable>,
    pub params: Vec<Variable>,
    /// `.reqntid 128`, `.maxnreg 64`, …: name without the dot, and numbers.
    pub directives: Vec<(String, Vec<u32>)>,
    /// `None` for a declaration.
    pub body: Option<Body>,
    pub at: Position,
}

#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Body {
    pub registers: Vec<Register>,
    /// `.local`, `.shared` and `.param` variables, of any scope inside; names are unique.
    pub variables: Vec<Variable>,
    pub labels: Vec<Label>,
    /// `.branchtargets` and `.calltargets`.
    pub jump_tables: Vec<JumpTable>,
    pub inlined: Inlined,
    pub instructions: Vec<Instruction>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Register {
    /// With its `%`, unique in the body.
    pub name: String,
    pub ty: Scalar,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Label {
    pub name: String,
    /// Number of the instruction it stands before; may be the number of instructions.
    pub at: u32,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct JumpTable {
    pub name: String,
    pub targets: Vec<LabelId>,
}

/// `@%p` or `@!%p`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Guard {
    pub register: RegisterId,
    pub negated: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Instruction {
    pub guard: Option<Guard>,
    pub op: Op,
    pub operands: Vec<Operand>,
    pub at: Position,
    pub source: Option<SourceLine>,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operand {
    Register(RegisterId),
    /// `!%p`, where an operand may be negated.
    Not(RegisterId),
    Special(Special),
    /// An integer literal: its value modulo 2^64 (two's complement when negative).
    Int(u64),
    /// `0fXXXXXXXX`.
    Float32(u32),
    /// `0dXXXXXXXXXXXXXXXX`, and decimal literals.
    Float64(u64),
    /// A variable, a parameter or a function, by name, plus bytes.
    Symbol {
        name: String,
        offset: i64,
    },
    /// `[base+offset]`; the base is a register, a symbol or an integer.
    Address {
        base: Box<Operand>,
        offset: i64,
    },
    /// `{a, b, …}`.
    Vector(Vec<Operand>),
    /// `d|p`.
    Pair(Box<Operand>, Box<Operand>),
    /// `_`.
    Sink,
    Label(LabelId),
    Table(TableId),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
    /// Bracketed operands of opaque families: `[a, {b, c}]`.
    Bracket(Vec<Operand>),
}

impl Module {
    /// The path of a numbered file.
    pub fn file(&self, number: u32) -> Option<&str> {
        let file = self.files.iter().find(|file| file.number == number)?;
        Some(&file.path)
    }

    /// Finds a function by name.
    pub fn function(&self, name: &str) -> Option<&Function> {
        self.functions.iter().find(|function| function.name == name)
    }

    /// Out of the frames of Triton's own library: what happens in a `tl.sum` is shown at the kernel's
    /// `tl.sum`. Where every frame is the library's, the innermost stays.
    pub fn users_line(&self, body: &Body, line: SourceLine) -> SourceLine {
        let library = |at: &SourceLine| {
            self.file(at.file).is_some_and(|path| path.contains("triton/language/"))
        };
        body.inlined.frames(line).find(|at| !library(at)).unwrap_or(line)
    }
}

impl Function {
    /// The numbers of a directive such as `reqntid`.
    pub fn directive(&self, name: &str) -> Option<&[u32]> {
        self.directives.iter().find(|(key, _)| key == name).map(|(_, numbers)| numbers.as_slice())
    }
}
