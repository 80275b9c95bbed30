//! Shared memory at branches that are not known.
//!
//! # Idea
//! Only one way is taken. So the second way finds what was there before the first; behind both,
//! what either stored is not known, and what either did is ordered before nothing that comes next
//! until there is a barrier.

use super::{Cell, Entry, Moment, PAGE, Party, Shared};
use crate::term::Atom;

/// Shared memory before a branch.
pub(in crate::walk) struct Fork {
    before: Shared,
    first: Option<Shared>,
}

impl Shared {
    /// Before a branch that is not known.
    pub fn fork(&mut self) -> Fork {
        self.entries();
        Fork { before: self.clone(), first: None }
    }

    /// Before the second way: what the first did is not done.
    pub fn rewind(&mut self, fork: &mut Fork) {
        fork.first = Some(std::mem::replace(self, fork.before.clone()));
    }

    /// Behind the branch.
    pub fn joined(&mut self, fork: &Fork) {
        let Shared { entries, cta, warps, .. } = &fork.before;
        let known = entries.len();
        self.forget(known);
        if let Some(first) = &fork.first {
            self.meet(first, known);
        }
        self.cta = *cta;
        self.warps.clone_from(warps);
        for entry in &mut self.entries {
            entry.written = entry.written.at_most(*cta, entry.writer.warp_of(warps));
            entry.read = entry.read.at_most(*cta, entry.reader.warp_of(warps));
        }
    }

    /// Adds what the first way did: its stores are of values that are not known, by anybody.
    fn meet(&mut self, first: &Shared, known: usize) {
        let now = Moment { cta: u32::MAX, warp: u32::MAX };
        for (own, other) in self.entries.iter_mut().zip(&first.entries).take(known) {
            if own.read != other.read || own.reader != other.reader {
                (own.reader, own.read) = (Party::Several, now);
            }
            if own.written != other.written || own.writer != other.writer {
                (own.writer, own.written) = (Party::Several, now);
            }
        }
        self.entries.push(Entry {
            cell: Cell::Atom(Atom::UNDEFINED),
            bytes: 1,
            writer: Party::Several,
            written: now,
            reader: Party::Several,
            read: now,
        });
        let unknown = self.entries.len() as u32;
        for (page, bytes) in first.pages.iter().enumerate() {
            let Some(bytes) = bytes else { continue };
            for (at, byte) in bytes.iter().enumerate() {
                if byte.entry as usize > known {
                    self.set((page * PAGE + at) as u64, super::Byte { entry: unknown, at: 0 });
                }
            }
        }
    }
}

impl Moment {
    fn at_most(self, cta: u32, warp: u32) -> Self {
        Self { cta: self.cta.min(cta), warp: self.warp.min(warp) }
    }
}

impl Party {
    /// The barriers of its warp that were over.
    fn warp_of(self, warps: &[u32]) -> u32 {
        let warp = match self {
            Party::Thread(thread) => thread / 32,
            Party::Warp(warp) => warp,
            Party::Nobody | Party::Several => return 0,
        };
        warps.get(warp as usize).copied().unwrap_or(0)
    }
}
