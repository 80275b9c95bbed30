//! What a kernel leaves behind: one value an address.
//!
//! # Invariants
//! - **O1** Two threads that write one address write one value, or a barrier is between them.
//! - **O2** The digest depends on the set of outputs, not on who wrote them or when.
//! # Held by
//! O1: [`Outputs::write`]. O2: a sum of hashes.

use std::collections::{BTreeSet, hash_map::Entry};

use rustc_hash::{FxHashMap, FxHashSet};

use crate::{
    signature::Place,
    term::{Atom, Body, Mixer, seed},
};

/// A linear part, and a number of bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Address {
    pub base: Body,
    pub offset: i64,
}

/// A value that is stored when a condition holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Output {
    pub value: Body,
    /// The condition's name.
    pub when: Body,
    pub condition: Atom,
    pub bytes: u8,
    pub thread: u32,
    /// What was there before is part of it.
    pub layered: bool,
}

/// An output as it stands at the end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Written {
    pub output: Output,
    pub place: Place,
    order: u32,
}

impl Written {
    /// Whether both leave the same behind.
    pub fn same_as(&self, other: &Self) -> bool {
        let (a, b) = (self.output, other.output);
        (a.value, a.when, a.bytes) == (b.value, b.when, b.bytes)
    }
}

#[derive(Debug, Default)]
pub struct Outputs {
    here: FxHashMap<Address, Written>,
    /// Of CTAs that were walked before this one.
    pub all: FxHashMap<Address, Written>,
    bases: FxHashSet<Body>,
    /// Numbers of the pointers that were stored through; `None`: one that is not known.
    pointers: FxHashSet<Option<u32>>,
    /// The same, of all CTAs.
    written: BTreeSet<Option<u32>>,
    updates: Body,
    count: u64,
}

/// Outputs as they were.
#[derive(Clone, Debug)]
pub struct Snapshot {
    here: FxHashMap<Address, Written>,
    updates: Body,
    count: u64,
}

impl Outputs {
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { here: self.here.clone(), updates: self.updates, count: self.count }
    }

    pub fn restore(&mut self, snapshot: Snapshot) {
        (self.here, self.updates, self.count) = (snapshot.here, snapshot.updates, snapshot.count);
    }

    /// A store through a pointer.
    pub fn through(&mut self, pointer: Option<u32>) {
        self.pointers.insert(pointer);
        self.written.insert(pointer);
    }

    /// Whether a load through a pointer may meet a store.
    pub fn may_alias(&self, pointer: Option<u32>) -> bool {
        match pointer {
            None => !self.pointers.is_empty(),
            Some(_) => self.pointers.contains(&pointer) || self.pointers.contains(&None),
        }
    }

    /// Numbers of all pointers that were stored through, where all are known.
    pub fn writes(&self) -> Option<BTreeSet<u32>> {
        self.written.iter().copied().collect()
    }

    /// Whether all stores had addresses of one linear part, this one.
    pub fn only_base(&self, base: Body) -> bool {
        self.bases.len() == 1 && self.bases.contains(&base)
    }

    pub fn is_empty(&self) -> bool {
        self.here.is_empty()
    }

    /// What this CTA stored at an address.
    pub fn at(&self, address: Address) -> Option<Output> {
        self.here.get(&address).map(|written| written.output)
    }

    /// Stores a value; what it must not meet is an error.
    pub fn write(
        &mut self,
        address: Address,
        output: Output,
        order: u32,
        place: &Place,
    ) -> Result<(), &'static str> {
        self.bases.insert(address.base);
        let fresh = Written { output, place: place.clone(), order };
        let Some(old) = self.here.get(&address) else {
            self.here.insert(address, fresh);
            return Ok(());
        };
        let same = old.output.value == output.value
            && old.output.when == output.when
            && old.output.bytes == output.bytes;
        if same {
            return Ok(());
        }
        if output.layered {
            self.here.insert(address, fresh);
            return Ok(());
        }
        if old.output.thread != output.thread && old.order == order {
            return Err("two threads store different values to one address");
        }
        if old.output.when != output.when || old.output.bytes != output.bytes {
            return Err("two stores to one address under different conditions");
        }
        self.here.insert(address, fresh);
        Ok(())
    }

    /// An update that commutes with all of its kind.
    pub fn update(&mut self, address: Address, name: Body, output: Output) {
        self.bases.insert(address.base);
        let hashed = hashed(address, output);
        self.updates = self.updates.plus(Mixer::new(seed::OUTPUT).body(name).body(hashed).finish());
        self.count += 1;
    }

    /// Whether bytes at an address may have been written: the same linear part and bytes that meet.
    pub fn may_hold(&self, address: Address, bytes: u8) -> bool {
        if !self.bases.contains(&address.base) {
            return false;
        }
        (-15..i64::from(bytes)).any(|step| {
            let near = Address { offset: address.offset + step, ..address };
            self.here.get(&near).is_some_and(|written| step + i64::from(written.output.bytes) > 0)
        })
    }

    /// Keeps a CTA's outputs; the place of one that another CTA writes otherwise is an error.
    pub fn finish_cta(&mut self) -> Result<(), Place> {
        self.bases.clear();
        self.pointers.clear();
        let mut here: Vec<(Address, Written)> = self.here.drain().collect();
        here.sort_unstable_by_key(|(address, _)| *address);
        for (address, written) in here {
            match self.all.entry(address) {
                Entry::Occupied(known) if !known.get().same_as(&written) => {
                    return Err(written.place);
                }
                Entry::Occupied(_) => {}
                Entry::Vacant(place) => {
                    place.insert(written);
                }
            }
        }
        Ok(())
    }

    /// The outputs in the order of their addresses.
    pub fn sorted(&self) -> Vec<(Address, &Written)> {
        let mut all: Vec<_> =
            self.all.iter().map(|(address, written)| (*address, written)).collect();
        all.sort_unstable_by_key(|(address, _)| *address);
        all
    }

    /// The name of all updates, and their number.
    pub fn updates(&self) -> (Body, u64) {
        (self.updates, self.count)
    }

    /// The name of all outputs.
    pub fn digest(&self) -> Body {
        #[expect(clippy::iter_over_hash_type, reason = "a sum does not depend on the order")]
        let sum = {
            let mut sum = self.updates;
            for (address, written) in &self.all {
                sum = sum.plus(hashed(*address, written.output));
            }
            sum
        };
        let count = self.all.len() as u64;
        Mixer::new(seed::OUTPUT).body(sum).word(count).word(self.count).finish()
    }
}

fn hashed(address: Address, output: Output) -> Body {
    Mixer::new(seed::OUTPUT)
        .body(address.base)
        .word(address.offset as u64)
        .word(u64::from(output.bytes))
        .body(output.value)
        .body(output.when)
        .finish()
}
