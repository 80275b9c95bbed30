//! Labels and jump tables of a body, which may be named before they stand in the text.
//!
//! # Invariants
//! - **L1** A name means the label of the innermost enclosing block that has one, wherever in that
//!   block it stands; it is settled when the block closes.
//! - **L2** Labels are numbered in the order in which they stand.

use rustc_hash::FxHashMap;

use super::{ErrorKind, cursor::At};
use crate::ir::{Body, JumpTable, Label, LabelId, Operand, TableId};

/// Where a label or a table is named.
#[derive(Clone, Copy)]
pub(super) enum Site {
    /// An operand of an instruction that is a label.
    Branch { instruction: usize, operand: usize },
    /// An operand of an instruction that is a table.
    Switch { instruction: usize, operand: usize },
    /// An entry of a table.
    Entry { table: usize, entry: usize },
}

struct Wanted<'a> {
    name: &'a str,
    at: At,
    site: Site,
}

#[derive(Default)]
struct Block<'a> {
    labels: FxHashMap<&'a str, LabelId>,
    tables: FxHashMap<&'a str, TableId>,
    wanted: Vec<Wanted<'a>>,
}

/// The labels of the blocks that are open.
#[derive(Default)]
pub(super) struct Labels<'a> {
    blocks: Vec<Block<'a>>,
}

impl<'a> Labels<'a> {
    pub fn open(&mut self) {
        self.blocks.push(Block::default());
    }

    fn innermost(&mut self) -> &mut Block<'a> {
        if self.blocks.is_empty() {
            self.open();
        }
        let last = self.blocks.len() - 1;
        &mut self.blocks[last]
    }

    /// A label stands here, before the next instruction.
    pub fn stand(
        &mut self,
        name: &'a str,
        unique: String,
        body: &mut Body,
    ) -> Result<(), ErrorKind> {
        let id = LabelId(number(body.labels.len()));
        body.labels.push(Label { name: unique, at: number(body.instructions.len()) });
        match self.innermost().labels.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(ErrorKind::Duplicate(name.to_owned())),
        }
    }

    /// A jump table of this name; its entries are named apart.
    pub fn table(
        &mut self,
        name: &'a str,
        unique: String,
        body: &mut Body,
    ) -> Result<(), ErrorKind> {
        let id = TableId(number(body.jump_tables.len()));
        body.jump_tables.push(JumpTable { name: unique, targets: Vec::new() });
        match self.innermost().tables.insert(name, id) {
            None => Ok(()),
            Some(_) => Err(ErrorKind::Duplicate(name.to_owned())),
        }
    }

    pub fn want(&mut self, name: &'a str, at: At, site: Site) {
        self.innermost().wanted.push(Wanted { name, at, site });
    }

    /// Settles the innermost block; an error is a name that no block has.
    pub fn close(&mut self, body: &mut Body) -> Result<(), (At, ErrorKind)> {
        let Some(block) = self.blocks.pop() else { return Ok(()) };
        for wanted in block.wanted {
            let found = match wanted.site {
                Site::Switch { .. } => block.tables.get(wanted.name).map(|id| id.0),
                Site::Branch { .. } | Site::Entry { .. } => {
                    block.labels.get(wanted.name).map(|id| id.0)
                }
            };
            if let Some(found) = found {
                settle(wanted.site, found, body);
            } else if let Some(outer) = self.blocks.last_mut() {
                outer.wanted.push(wanted);
            } else {
                return Err((wanted.at, ErrorKind::UnknownLabel(wanted.name.to_owned())));
            }
        }
        Ok(())
    }
}

fn settle(site: Site, id: u32, body: &mut Body) {
    match site {
        Site::Entry { table, entry } => body.jump_tables[table].targets[entry] = LabelId(id),
        Site::Branch { instruction, operand } => {
            body.instructions[instruction].operands[operand] = Operand::Label(LabelId(id));
        }
        Site::Switch { instruction, operand } => {
            body.instructions[instruction].operands[operand] = Operand::Table(TableId(id));
        }
    }
}

/// Counts of things in a text fit 32 bits: the text is smaller than that.
fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}
