//! The records of a cell that several warps, or strong accesses, use; and what it releases.
//!
//! # Invariants
//! - **K1** `strong` has the last strong read and the last strong write of every thread and class,
//!   up to [`STRONG`] of them.
//! - **K2** Synchronisation follows the value: a weak write ends what the cell released, a strong
//!   write replaces it, an atomic adds to it.

use std::{collections::BTreeMap, sync::Arc};

use smallvec::SmallVec;

use super::{
    super::clock::{Epoch, Knowledge, Sight, join},
    Info, Record, Strength, Touch, morally_strong,
    page::{own_bit, unordered},
};
use crate::exec::registers::Mask;

/// Reads of other CTAs a cell keeps.
pub(super) const READERS_ELSEWHERE: usize = 8;
/// Strong accesses a cell keeps.
pub(super) const STRONG: usize = 1024;

/// Lanes of one warp that read at one clock.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reads {
    /// Epoch of lane 0.
    pub(super) key: Epoch,
    pub(super) mask: Mask,
    pub(super) info: Info,
}

impl Reads {
    fn first_unordered(&self, sight: &Sight, lane: usize) -> Option<Record> {
        let other = sight.unordered(self.key, self.mask, lane)?;
        Some(Record { epoch: self.key.lane(other), info: self.info })
    }
}

/// How an atomic's result depends on the order of arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::memory) enum Arrival {
    /// The final value does not: integer additions, minima, bit operations.
    Free,
    /// It does: float additions.
    Moves,
    /// It does, unless this value is stored: exchanges.
    Stores(u64),
    /// It may: a comparison decides.
    MayMove,
}

#[derive(Clone, Debug, Default)]
pub(in crate::memory) struct Crowd {
    /// The last weak write, or the flight.
    pub(super) write: Option<Record>,
    reads: SmallVec<[Reads; 4]>,
    strong: BTreeMap<u64, Record>,
    /// Class and CTA of all strong accesses, while they have one.
    uniform: Option<(u32, u32)>,
    /// The last atomics that [`Arrival::Moves`], [`Arrival::Stores`] and [`Arrival::MayMove`].
    moved: Option<Record>,
    stored: Option<(Record, u64)>,
    may_have_moved: Option<Record>,
    release: Option<Box<Release>>,
}

impl Crowd {
    pub(super) fn add_reads(&mut self, key: Epoch, mask: Mask, info: Info) {
        self.reads.push(Reads { key, mask, info });
    }

    /// The first reads, if weak reads are all there is.
    pub(super) fn only_reads(&self) -> Option<&Reads> {
        if self.write.is_some() || !self.strong.is_empty() {
            return None;
        }
        self.reads.first()
    }

    fn against_write(&self, sight: &Sight, lane: usize) -> Option<Record> {
        self.write.filter(|write| unordered(sight, *write, lane))
    }

    /// The first strong access that conflicts with `touch`, is unordered, and not morally strong
    /// with it.
    fn against_strong(&self, sight: &Sight, touch: &Touch) -> Option<Record> {
        let class = touch.info.class();
        if touch.info.strength() != Strength::Weak && self.uniform == Some((class, sight.cta)) {
            return None;
        }
        if touch.info.strength() == Strength::Gpu
            && self.uniform.is_some_and(|(others, _)| others == class)
        {
            return None;
        }
        self.strong.values().copied().find(|other| {
            (touch.info.writes() || other.info.writes())
                && !morally_strong(other.info, touch.info, other.epoch.cta() == sight.cta)
                && !sight.ordered(other.epoch, touch.lane)
        })
    }

    fn against_reads(&self, sight: &Sight, lane: usize) -> Option<Record> {
        self.reads.iter().find_map(|reads| reads.first_unordered(sight, lane))
    }

    /// A weak read; what it races with.
    pub(super) fn read(&mut self, sight: &Sight, touch: &Touch) -> Option<Record> {
        let found = self.against_write(sight, touch.lane).or_else(|| {
            if self.strong.is_empty() { None } else { self.against_strong(sight, touch) }
        });
        let key = sight.key(touch.lane);
        if let Some(reads) = self.reads.iter_mut().find(|reads| reads.key == key) {
            reads.mask |= 1 << touch.lane;
            return found;
        }
        self.reads.retain(|reads| {
            reads.mask &= !own_bit(sight, reads.key, touch.lane);
            reads.mask != 0 && sight.unordered(reads.key, reads.mask, touch.lane).is_some()
        });
        self.forget_elsewhere(sight.cta);
        self.add_reads(key, 1 << touch.lane, touch.info);
        found
    }

    fn forget_elsewhere(&mut self, cta: u32) {
        let elsewhere = |reads: &Reads| reads.key.cta() != cta;
        if self.reads.len() >= READERS_ELSEWHERE
            && self.reads.iter().filter(|reads| elsewhere(reads)).count() >= READERS_ELSEWHERE
            && let Some(oldest) = self.reads.iter().position(elsewhere)
        {
            self.reads.remove(oldest);
        }
    }

    /// What a weak write races with.
    pub(super) fn check_write(&self, sight: &Sight, touch: &Touch) -> Option<Record> {
        // Reads first: a write race may turn out to be of equal bytes.
        self.against_reads(sight, touch.lane)
            .or_else(|| self.against_strong(sight, touch))
            .or_else(|| self.against_write(sight, touch.lane))
    }

    /// A strong access; what it races with.
    pub(super) fn strong(&mut self, sight: &Sight, touch: &Touch) -> Option<Record> {
        let reads = if touch.info.writes() { self.against_reads(sight, touch.lane) } else { None };
        let found = reads
            .or_else(|| self.against_strong(sight, touch))
            .or_else(|| self.against_write(sight, touch.lane));
        let epoch = sight.key(touch.lane).lane(touch.lane);
        let class = touch.info.class();
        self.uniform = match self.uniform {
            None if self.strong.is_empty() => Some((class, sight.cta)),
            // CTAs may differ if only the device scope is in use: the class is then enough.
            Some((others, cta)) if others == class => {
                let device = touch.info.strength() == Strength::Gpu;
                (device || cta == sight.cta).then_some((others, cta))
            }
            None | Some(_) => None,
        };
        let key = epoch.who() << 8 | u64::from(touch.info.writes()) << 7 | u64::from(class);
        if self.strong.len() >= STRONG && !self.strong.contains_key(&key) {
            self.strong.retain(|_, other| !sight.ordered(other.epoch, touch.lane));
        }
        if self.strong.len() < STRONG || self.strong.contains_key(&key) {
            self.strong.insert(key, Record { epoch, info: touch.info });
        }
        found
    }

    /// An atomic arrives; the earlier one whose order with it moves the result.
    pub(in crate::memory) fn arrive(
        &mut self,
        sight: &Sight,
        touch: &Touch,
        arrival: Arrival,
    ) -> Option<Record> {
        let record = Record { epoch: sight.key(touch.lane).lane(touch.lane), info: touch.info };
        let unordered = |earlier: &Record| !sight.ordered(earlier.epoch, touch.lane);
        match arrival {
            Arrival::Free => None,
            Arrival::Moves => {
                let earlier = self.moved.replace(record).filter(unordered);
                earlier.or(self.stored.map(|(earlier, _)| earlier).filter(unordered))
            }
            Arrival::Stores(value) => {
                let earlier = self.stored.replace((record, value));
                let other = earlier.filter(|(_, before)| *before != value);
                let other = other.map(|(earlier, _)| earlier).filter(unordered);
                other.or(self.moved.filter(unordered))
            }
            Arrival::MayMove => {
                let earlier = self.may_have_moved.replace(record).filter(unordered);
                let stored = self.stored.map(|(earlier, _)| earlier).filter(unordered);
                earlier.or(self.moved.filter(unordered)).or(stored)
            }
        }
    }

    pub(in crate::memory) fn release(&mut self) -> &mut Release {
        self.release.get_or_insert_default()
    }

    pub(in crate::memory) fn released(&self) -> Option<&Release> {
        self.release.as_deref()
    }

    /// A strong write that releases nothing ends what was released.
    pub(in crate::memory) fn end_release(&mut self) {
        self.release = None;
    }
}

/// What the value in a cell releases to those who acquire it.
#[derive(Clone, Debug, Default)]
pub(in crate::memory) struct Release {
    /// Element size of the writes that carry it.
    class: u32,
    /// For acquirers at device scope.
    device: Option<Arc<Knowledge>>,
    /// For acquirers of one CTA, of any scope.
    ctas: BTreeMap<u32, Arc<Knowledge>>,
}

impl Release {
    /// Adds a release by a thread of `cta`, the narrowest scope of its pattern being `strength`.
    pub(in crate::memory) fn add(
        &mut self,
        cta: u32,
        strength: Strength,
        size: u32,
        knowledge: &Arc<Knowledge>,
    ) {
        self.class = size;
        if strength == Strength::Gpu {
            match &mut self.device {
                Some(device) => join(device, knowledge),
                None => self.device = Some(Arc::clone(knowledge)),
            }
        }
        match self.ctas.get_mut(&cta) {
            Some(known) => join(known, knowledge),
            None => {
                self.ctas.insert(cta, Arc::clone(knowledge));
            }
        }
    }

    /// What an acquirer of `cta` at device scope gets, and what one at CTA scope.
    pub(in crate::memory) fn offers(
        &self,
        cta: u32,
        size: u32,
    ) -> (Option<&Arc<Knowledge>>, Option<&Arc<Knowledge>>) {
        if size == self.class { (self.device.as_ref(), self.ctas.get(&cta)) } else { (None, None) }
    }
}
