//! What names mean in a body: block scopes, register ranges, unique names.
//!
//! # Idea
//! Assembly blocks open scopes in which names may be declared again. The IR has no scopes (M1), so
//! every register, variable and label gets a name of its own in the body: the one it has in the
//! text if it is free, otherwise with `$1`, `$2`, … behind it.
//! # Invariants
//! - **N1** A register enters the table when it is first used: `.reg .b32 %r<4000000000>` costs
//!   nothing, and registers that nothing uses are not in the table.
//! - **N2** Tables and maps grow with the text, never with a number in it.
//! - **N3** Names that printing gives back resolve to the same things: no two are equal, and none
//!   is a name of the module's.
//! # Not here
//! What may stand where (`operand.rs`, `check.rs`).

use rustc_hash::{FxHashMap, FxHashSet};

use super::ErrorKind;
use crate::ir::{Register, RegisterId, Scalar};

/// The most registers of one body.
const MOST_REGISTERS: usize = 4_000_000;
/// The deepest nesting of blocks.
const DEEPEST: usize = 64;

/// What a name of a body stands for.
#[derive(Clone, Debug)]
pub(super) enum Meaning {
    Register(RegisterId),
    /// A variable or a parameter, by its unique name.
    Variable(String),
}

enum Declared {
    /// Not used yet.
    Register(Scalar),
    Meaning(Meaning),
}

#[derive(Default)]
struct Block<'a> {
    names: FxHashMap<&'a str, Declared>,
    /// `%r<100>`: prefix, type and count.
    ranges: FxHashMap<&'a str, (Scalar, u64)>,
    /// Registers of ranges that are in use.
    used: FxHashMap<&'a str, RegisterId>,
}

/// The scopes that are open at one place of a body.
pub(super) struct Scopes<'a, 'm> {
    blocks: Vec<Block<'a>>,
    /// Names given in this body so far.
    taken: FxHashSet<String>,
    module: &'m dyn Fn(&str) -> bool,
    /// How often a name has been made unique, so that the next try starts there.
    copies: FxHashMap<String, u32>,
}

impl<'a, 'm> Scopes<'a, 'm> {
    /// `module` says which names the module has.
    pub fn new(module: &'m dyn Fn(&str) -> bool) -> Self {
        Self {
            blocks: vec![Block::default()],
            taken: FxHashSet::default(),
            module,
            copies: FxHashMap::default(),
        }
    }

    pub fn depth(&self) -> usize {
        self.blocks.len()
    }

    pub fn open(&mut self) -> Result<(), ErrorKind> {
        if self.blocks.len() >= DEEPEST {
            return Err(ErrorKind::TooLarge { what: "the depth of blocks", limit: DEEPEST as u64 });
        }
        self.blocks.push(Block::default());
        Ok(())
    }

    pub fn close(&mut self) {
        self.blocks.pop();
    }

    /// Names given in this body, in no order.
    pub fn into_names(self) -> FxHashSet<String> {
        self.taken
    }

    /// A name that nothing else in the body has.
    pub fn unique(&mut self, name: &str) -> String {
        let mut unique = name.to_owned();
        while self.taken.contains(&unique) || (self.module)(&unique) {
            let copy = self.copies.entry(name.to_owned()).or_insert(0);
            *copy += 1;
            unique = format!("{name}${copy}");
        }
        self.taken.insert(unique.clone());
        unique
    }

    fn innermost(&mut self) -> &mut Block<'a> {
        if self.blocks.is_empty() {
            self.blocks.push(Block::default());
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    fn declare(&mut self, name: &'a str, declared: Declared) -> Result<(), ErrorKind> {
        match self.innermost().names.insert(name, declared) {
            None => Ok(()),
            Some(_) => Err(ErrorKind::Duplicate(name.to_owned())),
        }
    }

    pub fn declare_register(&mut self, name: &'a str, ty: Scalar) -> Result<(), ErrorKind> {
        self.declare(name, Declared::Register(ty))
    }

    pub fn declare_range(
        &mut self,
        prefix: &'a str,
        ty: Scalar,
        count: u64,
    ) -> Result<(), ErrorKind> {
        match self.innermost().ranges.insert(prefix, (ty, count)) {
            None => Ok(()),
            Some(_) => Err(ErrorKind::Duplicate(format!("{prefix}<{count}>"))),
        }
    }

    /// Declares a variable; answers its unique name.
    pub fn declare_variable(&mut self, name: &'a str) -> Result<String, ErrorKind> {
        let unique = self.unique(name);
        self.declare(name, Declared::Meaning(Meaning::Variable(unique.clone())))?;
        Ok(unique)
    }

    /// Declares a parameter, which keeps its name.
    pub fn declare_parameter(&mut self, name: &'a str) -> Result<(), ErrorKind> {
        self.taken.insert(name.to_owned());
        self.declare(name, Declared::Meaning(Meaning::Variable(name.to_owned())))
    }

    /// What a name means here; a register enters the table when it is first seen.
    pub fn find(
        &mut self,
        name: &'a str,
        registers: &mut Vec<Register>,
    ) -> Result<Option<Meaning>, ErrorKind> {
        for at in (0..self.blocks.len()).rev() {
            let block = &self.blocks[at];
            let ty = match block.names.get(name) {
                Some(Declared::Meaning(meaning)) => return Ok(Some(meaning.clone())),
                Some(Declared::Register(ty)) => Some(*ty),
                None => {
                    if let Some(&id) = block.used.get(name) {
                        return Ok(Some(Meaning::Register(id)));
                    }
                    in_range(&block.ranges, name)
                }
            };
            let Some(ty) = ty else { continue };
            if registers.len() >= MOST_REGISTERS {
                let limit = MOST_REGISTERS as u64;
                return Err(ErrorKind::TooLarge { what: "the number of registers", limit });
            }
            let id = RegisterId(u32::try_from(registers.len()).unwrap_or(u32::MAX));
            registers.push(Register { name: self.unique(name), ty });
            let block = &mut self.blocks[at];
            if let Some(declared) = block.names.get_mut(name) {
                *declared = Declared::Meaning(Meaning::Register(id));
            } else {
                block.used.insert(name, id);
            }
            return Ok(Some(Meaning::Register(id)));
        }
        Ok(None)
    }
}

/// The type of a register of a range: `%r17` of `%r<100>`, `%r1<8>` being a range as well.
fn in_range(ranges: &FxHashMap<&str, (Scalar, u64)>, name: &str) -> Option<Scalar> {
    const MOST_DIGITS: usize = 20;
    let digits = name.bytes().rev().take_while(u8::is_ascii_digit).count().min(MOST_DIGITS);
    (1..=digits).find_map(|digits| {
        let (prefix, number) = name.split_at(name.len() - digits);
        let canonical = number == "0" || !number.starts_with('0');
        let &(ty, count) = ranges.get(prefix).filter(|_| canonical)?;
        (number.parse::<u64>().ok()? < count).then_some(ty)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scopes() -> Scopes<'static, 'static> {
        Scopes::new(&|name| name == "global_smem")
    }

    #[test]
    fn a_register_of_an_inner_block_gets_a_name_of_its_own() {
        let (mut scopes, mut registers) = (scopes(), Vec::new());
        scopes.declare_register("t", Scalar::B32).unwrap();
        scopes.find("t", &mut registers).unwrap();
        scopes.open().unwrap();
        scopes.declare_register("t", Scalar::B64).unwrap();
        scopes.find("t", &mut registers).unwrap();
        scopes.close();
        scopes.find("t", &mut registers).unwrap();
        let names: Vec<&str> = registers.iter().map(|register| register.name.as_str()).collect();
        assert_eq!(names, ["t", "t$1"]);
    }

    #[test]
    fn a_range_costs_nothing_and_ends_where_it_says() {
        let (mut scopes, mut registers) = (scopes(), Vec::new());
        scopes.declare_range("%r", Scalar::B32, 4_000_000_000).unwrap();
        for (name, there) in
            [("%r3999999999", true), ("%r4000000000", false), ("%r01", false), ("%r", false)]
        {
            let found = scopes.find(name, &mut registers).unwrap();
            assert_eq!(found.is_some(), there, "{name}");
        }
        assert_eq!(registers.len(), 1);
    }

    #[test]
    fn a_name_of_the_module_is_not_given_again() {
        let (mut scopes, mut registers) = (scopes(), Vec::new());
        scopes.declare_register("global_smem", Scalar::B32).unwrap();
        scopes.find("global_smem", &mut registers).unwrap();
        assert_eq!(registers[0].name, "global_smem$1");
    }

    #[test]
    fn twice_in_one_block_is_an_error() {
        let mut scopes = scopes();
        scopes.declare_register("t", Scalar::B32).unwrap();
        assert_eq!(
            scopes.declare_register("t", Scalar::B32),
            Err(ErrorKind::Duplicate("t".to_owned()))
        );
    }
}
