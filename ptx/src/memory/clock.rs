//! Who knows of whose accesses: vector clocks, compressed.
//!
//! # Idea
//! Every thread has a clock; an access is stamped with its thread and that clock, an [`Epoch`]. A
//! thread's [`Knowledge`] says, for every other thread, up to which clock the other's accesses
//! happen before its own next one. Clocks are drawn from one counter a CTA, so that one number, the
//! floor, can speak for all its threads: after a full barrier it is all a thread needs, and all
//! threads share one `Knowledge`. Threads that know more of one another than the floor have a row
//! beside it; what a thread knows of other CTAs is sparse and shared.
//! # Invariants
//! - **C1** A thread's own clock only grows, and grows past every clock it has released.
//! - **C2** `knows(t, c)` holds only if every access of `t` with a clock up to `c` happens before
//!   the knower's next access.
//! - **C3** The row of a [`View`] is nowhere below its floor.
//! # Held by
//! `tests/memory/oracle.rs`, which compares with full vector clocks on random programs.
//! # Not here
//! Which instruction releases or acquires (`sync.rs`); what epochs are kept (`shadow/`).

use std::sync::Arc;

use crate::exec::registers::{LANES, Mask, lanes};

const CLOCK_BITS: u32 = 30;
const THREAD_BITS: u32 = 10;
const CTA_MASK: u32 = 0xff_ffff;
/// After so many releases in one CTA clocks stand still, and later races may go unseen.
const LAST_CLOCK: u32 = (1 << CLOCK_BITS) - 1;

/// A thread of the grid and a clock of it. CTAs count modulo 2^24.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(super) struct Epoch(u64);

impl Epoch {
    /// Before everything: clocks begin at 1.
    pub(super) const NONE: Self = Self(0);

    #[inline(always)]
    pub(super) fn new(cta: u32, thread: u32, clock: u32) -> Self {
        let thread = u64::from(thread & ((1 << THREAD_BITS) - 1));
        Self(
            u64::from(cta & CTA_MASK) << (CLOCK_BITS + THREAD_BITS)
                | thread << CLOCK_BITS
                | u64::from(clock),
        )
    }
    #[inline(always)]
    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }
    #[inline(always)]
    pub(super) fn cta(self) -> u32 {
        (self.0 >> (CLOCK_BITS + THREAD_BITS)) as u32
    }
    #[inline(always)]
    pub(super) fn thread(self) -> u32 {
        (self.0 >> CLOCK_BITS) as u32 & ((1 << THREAD_BITS) - 1)
    }
    #[inline(always)]
    pub(super) fn clock(self) -> u32 {
        self.0 as u32 & LAST_CLOCK
    }
    /// CTA and thread, without the clock.
    pub(super) fn who(self) -> u64 {
        self.0 >> CLOCK_BITS
    }
    /// The same clock of the thread `lane` back.
    pub(super) fn back(self, lane: u32) -> Self {
        Self(self.0 - (u64::from(lane) << CLOCK_BITS))
    }
    /// The same clock of the thread `lane` further on.
    #[inline(always)]
    pub(super) fn lane(self, lane: usize) -> Self {
        Self(self.0 + ((lane as u64) << CLOCK_BITS))
    }
}

/// What is known of the threads of one CTA.
#[derive(Clone, Debug, Default)]
struct View {
    floor: u32,
    /// One clock a thread where some are above the floor.
    row: Option<Box<[u32]>>,
}

impl View {
    #[inline]
    fn at(&self, thread: u32) -> u32 {
        match &self.row {
            Some(row) => row.get(thread as usize).copied().unwrap_or(self.floor),
            None => self.floor,
        }
    }

    fn row(&mut self, threads: u32) -> &mut [u32] {
        let floor = self.floor;
        self.row.get_or_insert_with(|| vec![floor; threads as usize].into_boxed_slice())
    }

    fn join(&mut self, other: &View) {
        self.floor = self.floor.max(other.floor);
        match (&mut self.row, &other.row) {
            (None, None) => {}
            (Some(mine), None) => mine.iter_mut().for_each(|mine| *mine = self.floor.max(*mine)),
            (Some(mine), Some(theirs)) => {
                for (mine, theirs) in mine.iter_mut().zip(theirs) {
                    *mine = self.floor.max(*mine).max(*theirs);
                }
            }
            (None, Some(theirs)) => {
                self.row = Some(theirs.iter().map(|theirs| self.floor.max(*theirs)).collect());
            }
        }
    }

    /// Whether joining `other` would change nothing.
    fn covers(&self, other: &View) -> bool {
        self.floor >= other.floor
            && match &other.row {
                None => true,
                Some(row) => {
                    row.iter().enumerate().all(|(thread, clock)| self.at(thread as u32) >= *clock)
                }
            }
    }
}

/// What a thread knows, but for its own clock.
#[derive(Clone, Debug)]
pub(super) struct Knowledge {
    cta: u32,
    home: Arc<View>,
    /// Of other CTAs, sorted.
    others: Arc<Vec<(u32, Arc<View>)>>,
}

impl Knowledge {
    fn new(cta: u32) -> Self {
        Self { cta, home: Arc::default(), others: Arc::default() }
    }

    fn of(&self, cta: u32) -> Option<&Arc<View>> {
        if cta == self.cta {
            return Some(&self.home);
        }
        let at = self.others.binary_search_by_key(&cta, |(cta, _)| *cta).ok()?;
        Some(&self.others[at].1)
    }

    fn knows(&self, epoch: Epoch) -> bool {
        self.of(epoch.cta()).is_some_and(|view| view.at(epoch.thread()) >= epoch.clock())
    }

    fn join(&mut self, other: &Knowledge) {
        if !(self.cta == other.cta && Arc::ptr_eq(&self.home, &other.home)) {
            self.join_view(other.cta, &other.home);
        }
        if Arc::ptr_eq(&self.others, &other.others) {
            return;
        }
        if self.others.is_empty() && self.cta == other.cta {
            self.others = Arc::clone(&other.others);
            return;
        }
        for (cta, view) in other.others.iter() {
            self.join_view(*cta, view);
        }
    }

    fn join_view(&mut self, cta: u32, view: &Arc<View>) {
        if cta == self.cta {
            join_views(&mut self.home, view);
            return;
        }
        match self.others.binary_search_by_key(&cta, |(cta, _)| *cta) {
            Ok(at) => {
                if !self.others[at].1.covers(view) {
                    join_views(&mut Arc::make_mut(&mut self.others)[at].1, view);
                }
            }
            Err(at) => Arc::make_mut(&mut self.others).insert(at, (cta, Arc::clone(view))),
        }
    }
}

fn join_views(mine: &mut Arc<View>, theirs: &Arc<View>) {
    if Arc::ptr_eq(mine, theirs) || mine.covers(theirs) {
        return;
    }
    if theirs.covers(mine) {
        *mine = Arc::clone(theirs);
        return;
    }
    Arc::make_mut(mine).join(theirs);
}

/// `mine` with `theirs`; the same allocation where that is one of them.
pub(super) fn join(mine: &mut Arc<Knowledge>, theirs: &Arc<Knowledge>) {
    if !Arc::ptr_eq(mine, theirs) {
        Arc::make_mut(mine).join(theirs);
    }
}

/// What a thread had done and known at one moment.
#[derive(Clone, Debug)]
pub(super) struct Snapshot {
    base: Arc<Knowledge>,
    thread: u32,
    clock: u32,
    threads: u32,
}

impl Snapshot {
    pub(super) fn knowledge(&self) -> Arc<Knowledge> {
        let mut knowledge = Knowledge::clone(&self.base);
        let row = Arc::make_mut(&mut knowledge.home).row(self.threads);
        if let Some(mine) = row.get_mut(self.thread as usize) {
            *mine = self.clock.max(*mine);
        }
        Arc::new(knowledge)
    }
}

#[derive(Clone, Debug)]
enum Bases {
    All(Arc<Knowledge>),
    Each(Box<[Arc<Knowledge>; LANES]>),
}

/// The clocks of one warp.
#[derive(Clone, Debug)]
struct WarpClock {
    own: [u32; LANES],
    bases: Bases,
}

impl WarpClock {
    #[inline]
    fn base(&self, lane: usize) -> &Arc<Knowledge> {
        match &self.bases {
            Bases::All(base) => base,
            Bases::Each(bases) => &bases[lane],
        }
    }

    fn set_base(&mut self, mask: Mask, base: &Arc<Knowledge>) {
        if mask == Mask::MAX {
            self.bases = Bases::All(Arc::clone(base));
            return;
        }
        for lane in lanes(mask) {
            self.each()[lane] = Arc::clone(base);
        }
    }

    fn each(&mut self) -> &mut [Arc<Knowledge>; LANES] {
        if let Bases::All(base) = &self.bases {
            self.bases = Bases::Each(Box::new(std::array::from_fn(|_| Arc::clone(base))));
        }
        match &mut self.bases {
            Bases::Each(bases) => bases,
            Bases::All(_) => unreachable!("replaced just above"),
        }
    }
}

/// The clocks of a CTA.
#[derive(Debug)]
pub(super) struct Clocks {
    cta: u32,
    threads: u32,
    /// The largest clock any thread has.
    tick: u32,
    warps: Vec<WarpClock>,
}

impl Clocks {
    pub(super) fn new(cta: u32, threads: u32) -> Self {
        let base = Arc::new(Knowledge::new(cta & CTA_MASK));
        let warp = WarpClock { own: [1; LANES], bases: Bases::All(base) };
        Self {
            cta: cta & CTA_MASK,
            threads,
            tick: 1,
            warps: vec![warp; threads.div_ceil(LANES as u32) as usize],
        }
    }

    /// What `warp` sees, for a warp access.
    #[inline]
    pub(super) fn sight(&self, warp: u32) -> Sight<'_> {
        let clock = &self.warps[warp as usize];
        let floor = match &clock.bases {
            Bases::All(base) => base.home.floor,
            Bases::Each(_) => 0,
        };
        Sight { cta: self.cta, warp, floor, clock }
    }

    pub(super) fn cta(&self) -> u32 {
        self.cta
    }

    pub(super) fn snapshot(&self, warp: u32, lane: usize) -> Snapshot {
        let clock = &self.warps[warp as usize];
        Snapshot {
            base: Arc::clone(clock.base(lane)),
            thread: warp * LANES as u32 + lane as u32,
            clock: clock.own[lane],
            threads: self.threads,
        }
    }

    /// `lane` learns what `knowledge` says.
    pub(super) fn acquire(&mut self, warp: u32, lane: usize, knowledge: &Arc<Knowledge>) {
        join_if_news(&mut self.warps[warp as usize], lane, knowledge);
    }

    /// Ends the epoch of the lanes of `mask`, which have released.
    pub(super) fn advance(&mut self, warp: u32, mask: Mask) {
        let tick = self.next_tick();
        let own = &mut self.warps[warp as usize].own;
        lanes(mask).for_each(|lane| own[lane] = tick);
    }

    fn next_tick(&mut self) -> u32 {
        self.tick = (self.tick + 1).min(LAST_CLOCK);
        self.tick
    }

    /// The lanes of `mask` meet: each learns what the others did.
    pub(super) fn meet(&mut self, warp: u32, mask: Mask) {
        let mut meeting = Meeting::default();
        self.arrive(&mut meeting, warp, mask);
        self.leave(meeting, &[(warp, mask)]);
    }

    /// Adds what the lanes of `mask` have done to a meeting.
    pub(super) fn arrive(&self, meeting: &mut Meeting, warp: u32, mask: Mask) {
        let clock = &self.warps[warp as usize];
        match &clock.bases {
            Bases::All(base) => meeting.bring(base),
            Bases::Each(bases) => lanes(mask).for_each(|lane| meeting.bring(&bases[lane])),
        }
        let Some(joined) = &mut meeting.joined else { return };
        let row = Arc::make_mut(&mut joined.home).row(self.threads);
        let row = row.get_mut(warp as usize * LANES..).unwrap_or_default();
        for (lane, (mine, own)) in row.iter_mut().zip(&clock.own).enumerate() {
            if mask >> lane & 1 != 0 {
                *mine = (*mine).max(*own);
            }
        }
    }

    /// Ends a meeting: the `waiting` lanes, which have done nothing since they arrived, learn all
    /// that was brought to it.
    pub(super) fn leave(&mut self, meeting: Meeting, waiting: &[(u32, Mask)]) {
        let Some(mut joined) = meeting.joined else { return };
        let present: u32 = waiting.iter().map(|(_, mask)| mask.count_ones()).sum();
        if present >= self.threads {
            joined.home = Arc::new(View { floor: self.tick, row: None });
        }
        let base = Arc::new(joined);
        let tick = self.next_tick();
        for &(warp, mask) in waiting {
            // Lanes past the last thread never run; with them a full warp shares one base.
            let mask = if mask == self.full(warp) { Mask::MAX } else { mask };
            let clock = &mut self.warps[warp as usize];
            lanes(mask).for_each(|lane| clock.own[lane] = tick);
            clock.set_base(mask, &base);
        }
    }

    fn full(&self, warp: u32) -> Mask {
        let present = self.threads - warp * LANES as u32;
        if present >= LANES as u32 { Mask::MAX } else { (1 << present) - 1 }
    }
}

fn join_if_news(clock: &mut WarpClock, lane: usize, knowledge: &Arc<Knowledge>) {
    if !Arc::ptr_eq(clock.base(lane), knowledge) {
        join(&mut clock.each()[lane], knowledge);
    }
}

/// Threads that meet at a barrier: what they bring.
#[derive(Clone, Debug, Default)]
pub(super) struct Meeting {
    joined: Option<Knowledge>,
    /// The base joined last: threads that share it bring nothing new.
    last: Option<Arc<Knowledge>>,
}

impl Meeting {
    fn bring(&mut self, base: &Arc<Knowledge>) {
        if self.last.as_ref().is_some_and(|last| Arc::ptr_eq(last, base)) {
            return;
        }
        match &mut self.joined {
            Some(joined) => joined.join(base),
            None => self.joined = Some(Knowledge::clone(base)),
        }
        self.last = Some(Arc::clone(base));
    }

    /// What was brought so far.
    pub(super) fn knowledge(&self) -> Option<Arc<Knowledge>> {
        self.joined.clone().map(Arc::new)
    }
}

/// What the lanes of a warp know at an access.
#[derive(Clone, Copy)]
pub(super) struct Sight<'a> {
    pub(super) cta: u32,
    pub(super) warp: u32,
    floor: u32,
    clock: &'a WarpClock,
}

impl Sight<'_> {
    /// The epoch of lane 0, were its clock that of `lane`.
    #[inline(always)]
    pub(super) fn key(&self, lane: usize) -> Epoch {
        Epoch::new(self.cta, self.warp * LANES as u32, self.clock.own[lane])
    }

    /// Whether `epoch` is below the floor: before whatever any lane does next.
    #[inline(always)]
    pub(super) fn settled(&self, epoch: Epoch) -> bool {
        epoch.cta() == self.cta && epoch.clock() <= self.floor
    }

    /// Whether `epoch` happens before the next access of `lane`.
    #[inline(always)]
    pub(super) fn ordered(&self, epoch: Epoch, lane: usize) -> bool {
        self.settled(epoch) || self.ordered_slow(epoch, lane)
    }

    #[inline]
    fn ordered_slow(&self, epoch: Epoch, lane: usize) -> bool {
        (epoch.cta() == self.cta && epoch.thread() == self.warp * LANES as u32 + lane as u32)
            || self.clock.base(lane).knows(epoch)
    }

    /// The first lane of `mask` whose epoch, `key` moved there, `lane` does not know of.
    #[inline(always)]
    pub(super) fn unordered(&self, key: Epoch, mask: Mask, lane: usize) -> Option<usize> {
        if self.settled(key) {
            return None;
        }
        lanes(mask).find(|&other| !self.ordered_slow(key.lane(other), lane))
    }
}
