//! What was done to every byte, as far as a later access may race with it.
//!
//! # Idea
//! FastTrack, by granules: a page holds one cell for every granule of 1 to 16 bytes, with the last
//! write and the last reads, each an epoch. A page begins with the granule of its first access and
//! splits its cells when a smaller one comes, so a cell's records always speak for all its bytes.
//! The lanes of a warp that read a cell at one clock are one record with a mask. Reads of several
//! warps, and everything strong, go to a [`Crowd`] beside the cell.
//!
//! A weak access races with every unordered conflicting one, so the last weak write and the last
//! weak reads are enough. A strong access races only with those it is not morally strong with, so a
//! later strong access of a thread does not speak for its earlier weak one: they are kept apart.
//! # Invariants
//! - **W1** Until the first race on a byte is found, an access races with some earlier access of
//!   the byte exactly if it races with one that is kept.
//! - **W2** All accesses of a cell cover the cell.
//! # Held by
//! `tests/memory/oracle.rs`, W1 against a detector that forgets nothing.
//! # Bounds
//! Of a cell in global memory that CTAs of a synchronising launch read, the last
//! [`crowd::READERS_ELSEWHERE`] reads of *other* CTAs are kept, and of strong accesses those of
//! [`crowd::STRONG`] threads: beyond, races may go unseen, but none is invented.

mod crowd;
mod page;

pub(super) use crowd::{Arrival, Crowd, Release};
pub(super) use page::{PAGE_BITS, PAGE_BYTES, Page};

use super::clock::Epoch;
use crate::{
    exec::registers::{LANES, Mask},
    ir::{Ordering, Scope},
    report::AccessKind,
};

/// What an access does, as a record keeps it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Act {
    Read = 0,
    Write = 1,
    Atomic = 2,
    /// The write of an asynchronous copy that nobody has waited for: ordered before nothing.
    Flight = 3,
}

/// How strong an access is: which others it may be morally strong with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Strength {
    Weak = 0,
    /// CTA scope, or cluster scope: clusters have one CTA.
    Cta = 1,
    /// Device or system scope.
    Gpu = 2,
}

impl Strength {
    pub(super) fn of_scope(scope: Scope) -> Self {
        match scope {
            Scope::Cta | Scope::Cluster => Self::Cta,
            Scope::Gpu | Scope::Sys => Self::Gpu,
        }
    }

    pub(super) fn of(ordering: Ordering) -> Self {
        match ordering {
            Ordering::Weak => Self::Weak,
            Ordering::Volatile | Ordering::Mmio => Self::Gpu,
            Ordering::Relaxed(scope)
            | Ordering::Acquire(scope)
            | Ordering::Release(scope)
            | Ordering::AcqRel(scope) => Self::of_scope(scope),
        }
    }
}

/// An access but for its epoch: step, act, strength and element size, packed. Steps count modulo
/// 2^24.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Info(u32);

impl Info {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn new(pc: u32, act: Act, strength: Strength, width: u32) -> Self {
        let size = width.trailing_zeros() & 7;
        Self(pc << 8 | (act as u32) << 6 | (strength as u32) << 4 | size)
    }
    pub(super) fn pc(self) -> u32 {
        self.0 >> 8
    }
    #[inline(always)]
    pub(super) fn act(self) -> Act {
        match self.0 >> 6 & 3 {
            0 => Act::Read,
            1 => Act::Write,
            2 => Act::Atomic,
            _ => Act::Flight,
        }
    }
    pub(super) fn strength(self) -> Strength {
        match self.0 >> 4 & 3 {
            0 => Strength::Weak,
            1 => Strength::Cta,
            _ => Strength::Gpu,
        }
    }
    /// Strength and size: accesses of one class overlap completely where they overlap.
    pub(super) fn class(self) -> u32 {
        self.0 & 0x3f
    }
    pub(super) fn kind(self) -> AccessKind {
        match self.act() {
            Act::Read => AccessKind::Read,
            Act::Write | Act::Flight => AccessKind::Write,
            Act::Atomic => AccessKind::Atomic,
        }
    }
    pub(super) fn writes(self) -> bool {
        self.act() != Act::Read
    }
}

/// Whether two overlapping accesses are morally strong: both strong, with scopes that include each
/// other, and overlapping completely.
pub(super) fn morally_strong(a: Info, b: Info, same_cta: bool) -> bool {
    let (s, t) = (a.strength(), b.strength());
    let inclusive = if same_cta {
        s != Strength::Weak && t != Strength::Weak
    } else {
        s == Strength::Gpu && t == Strength::Gpu
    };
    inclusive && a.class() & 7 == b.class() & 7
}

/// A thread's access as a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Record {
    pub(super) epoch: Epoch,
    pub(super) info: Info,
}

/// An earlier access of a cell that the present one races with.
#[derive(Clone, Copy, Debug)]
pub(super) struct Conflict {
    pub(super) earlier: Record,
    /// Of the present access.
    pub(super) lane: usize,
    /// The present access writes the bytes that are there.
    pub(super) same: bool,
    /// The cell, from the page's first byte.
    pub(super) offset: u32,
    pub(super) bytes: u32,
}

/// A weak access of a warp.
#[derive(Clone, Copy)]
pub(super) struct Touches<'a> {
    pub(super) addresses: &'a [u64; LANES],
    /// Bytes of a lane.
    pub(super) bytes: u32,
    pub(super) info: Info,
}

impl Touches<'_> {
    /// One lane of it.
    #[inline(always)]
    pub(super) fn lane(&self, lane: usize) -> Touch {
        let offset = (self.addresses[lane] & (PAGE_BYTES - 1)) as u32;
        Touch { lane, offset, bytes: self.bytes, info: self.info }
    }

    /// The lanes of `mask` in the page of the first of them.
    #[inline(always)]
    pub(super) fn one_page(&self, mask: Mask) -> Mask {
        let page = self.addresses[mask.trailing_zeros() as usize % LANES] >> PAGE_BITS;
        let mut here = 0;
        for (lane, address) in self.addresses.iter().enumerate() {
            here |= Mask::from(address >> PAGE_BITS == page) << lane;
        }
        here & mask
    }
}

/// An access of one lane, as the shadow sees it.
#[derive(Clone, Copy)]
pub(super) struct Touch {
    pub(super) lane: usize,
    /// From the page's first byte.
    pub(super) offset: u32,
    pub(super) bytes: u32,
    pub(super) info: Info,
}
