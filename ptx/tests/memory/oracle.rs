//! Compressed clocks and shadows against a detector that forgets nothing: full vector clocks, every
//! access of every byte kept.
//!
//! Until a byte's first race both must agree, access by access, whether there is one.

use std::collections::HashMap;

use bitstable_ptx::{
    ir::{Atomic, Ordering, Scalar, Scope, Space},
    memory::{CtaMemory, MemoryOptions, Update, WarpAccess},
};
use proptest::prelude::*;

use super::rig::{Rig, WEAK};

const CTAS: usize = 2;
/// Threads in use: lanes 0 and 1 of warps 0 and 1 of each CTA.
const IN_USE: [u32; 4] = [0, 1, 32, 33];
const THREADS: u32 = 64;
const BYTES: usize = 32;

/// Number of a thread among all in use.
type Id = usize;
type Clock = [u32; CTAS * IN_USE.len()];

fn id(cta: usize, thread: u32) -> Id {
    cta * IN_USE.len() + (thread / 32 * 2 + thread % 32) as usize
}

#[derive(Clone, Debug)]
enum Act {
    Read,
    Write,
    /// Integer addition.
    Atomic,
}

/// A step of a trace. `warp` is 0 or 1, `mask` 1, 2 or 3.
#[derive(Clone, Debug)]
enum Step {
    Access {
        cta: usize,
        warp: u32,
        mask: u32,
        space: Space,
        at: [u64; 2],
        width: u32,
        act: Act,
        ordering: Ordering,
    },
    Fence {
        cta: usize,
        warp: u32,
        mask: u32,
        ordering: Ordering,
    },
    WarpSync {
        cta: usize,
        warp: u32,
    },
    /// Of the threads in use, by bit: who waits, and who passes.
    Barrier {
        cta: usize,
        wait: u32,
        pass: u32,
    },
    /// A copy of 4 bytes to shared memory.
    Copy {
        cta: usize,
        thread: usize,
        to: u64,
    },
    Commit {
        cta: usize,
        thread: usize,
    },
    Wait {
        cta: usize,
        thread: usize,
        keep: Option<u32>,
    },
}

#[derive(Clone, Debug)]
struct Seen {
    by: Id,
    stamp: u32,
    writes: bool,
    scope: Option<Scope>,
    width: u32,
    flight: bool,
}

#[derive(Clone, Debug)]
struct Released {
    cta: usize,
    device: bool,
    clock: Clock,
}

#[derive(Clone, Debug, Default)]
struct Byte {
    seen: Vec<Seen>,
    dirty: bool,
    released: Option<Vec<Released>>,
}

#[derive(Clone, Debug, Default)]
struct Thread {
    clock: Clock,
    fence_cta: Option<Clock>,
    fence_device: Option<Clock>,
    seen_cta: Clock,
    seen_device: Clock,
    /// Group and destination byte.
    copies: Vec<(u32, u64)>,
    committed: u32,
}

fn join(mine: &mut Clock, theirs: &Clock) {
    mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = (*mine).max(*theirs));
}

fn wide(scope: Scope) -> bool {
    matches!(scope, Scope::Gpu | Scope::Sys)
}

fn scope(ordering: Ordering) -> Option<Scope> {
    match ordering {
        Ordering::Weak => None,
        Ordering::Volatile | Ordering::Mmio => Some(Scope::Sys),
        Ordering::Relaxed(scope)
        | Ordering::Acquire(scope)
        | Ordering::Release(scope)
        | Ordering::AcqRel(scope) => Some(scope),
    }
}

/// The detector that forgets nothing.
#[derive(Default)]
struct Naive {
    threads: Vec<Thread>,
    bytes: HashMap<(Option<usize>, u64), Byte>,
}

/// What an instruction's check said.
#[derive(Default, Debug)]
struct Verdict {
    /// A race on bytes that had none.
    race: bool,
    /// It met bytes that had one: no comparison then.
    dirty: bool,
}

impl Naive {
    fn new() -> Self {
        Self { threads: vec![Thread::default(); CTAS * IN_USE.len()], bytes: HashMap::new() }
    }

    fn tick(&mut self, by: Id) -> u32 {
        self.threads[by].clock[by] += 1;
        self.threads[by].clock[by]
    }

    #[expect(clippy::too_many_arguments, reason = "one access, spelled out")]
    fn access(
        &mut self,
        by: Id,
        space: Space,
        at: u64,
        width: u32,
        act: &Act,
        ordering: Ordering,
        verdict: &mut Verdict,
    ) {
        let cta = by / IN_USE.len();
        let home = (space == Space::Shared).then_some(cta);
        let strong = scope(ordering);
        let range = (at..at + u64::from(width)).map(|at| (home, at));
        if let (Some(scope), Act::Read | Act::Atomic) = (strong, act) {
            self.observe(by, range.clone(), scope, ordering);
        }
        let stamp = self.tick(by);
        let writes = !matches!(act, Act::Read);
        let seen = Seen { by, stamp, writes, scope: strong, width, flight: false };
        self.check(range.clone(), seen, verdict);
        if writes {
            self.publish(by, range, strong, act, ordering);
        }
    }

    fn observe(
        &mut self,
        by: Id,
        range: impl Iterator<Item = (Option<usize>, u64)> + Clone,
        scope: Scope,
        ordering: Ordering,
    ) {
        let cta = by / IN_USE.len();
        let all: Vec<_> =
            range.map(|key| self.bytes.get(&key).and_then(|byte| byte.released.clone())).collect();
        if all.iter().any(Option::is_none) {
            return;
        }
        let acquires = matches!(ordering, Ordering::Acquire(_) | Ordering::AcqRel(_));
        let thread = &mut self.threads[by];
        for released in all[0].iter().flatten() {
            let near = released.cta == cta;
            let far = released.device && wide(scope);
            if acquires && (near || far) {
                join(&mut thread.clock, &released.clock);
            } else if near {
                join(&mut thread.seen_cta, &released.clock);
            }
            if !acquires && far {
                join(&mut thread.seen_device, &released.clock);
            }
        }
    }

    fn check(
        &mut self,
        range: impl Iterator<Item = (Option<usize>, u64)>,
        new: Seen,
        verdict: &mut Verdict,
    ) {
        let clock = self.threads[new.by].clock;
        let mut raced = Vec::new();
        for key in range {
            let byte = self.bytes.entry(key).or_default();
            let races = byte.seen.iter().any(|old| races(old, &new, &clock));
            verdict.dirty |= byte.dirty;
            verdict.race |= races && !byte.dirty;
            if races {
                raced.push(key);
            }
            byte.seen.push(new.clone());
        }
        for key in raced {
            self.bytes.entry(key).or_default().dirty = true;
        }
    }

    fn publish(
        &mut self,
        by: Id,
        range: impl Iterator<Item = (Option<usize>, u64)>,
        strong: Option<Scope>,
        act: &Act,
        ordering: Ordering,
    ) {
        let cta = by / IN_USE.len();
        let thread = &self.threads[by];
        let mut new = Vec::new();
        if let Some(scope) = strong {
            if matches!(ordering, Ordering::Release(_) | Ordering::AcqRel(_)) {
                new.push(Released { cta, device: wide(scope), clock: thread.clock });
            }
            if let Some(clock) = thread.fence_cta {
                new.push(Released { cta, device: false, clock });
            }
            if let Some(clock) = thread.fence_device.filter(|_| wide(scope)) {
                new.push(Released { cta, device: true, clock });
            }
        }
        for key in range {
            let byte = self.bytes.entry(key).or_default();
            if !matches!(act, Act::Atomic) {
                byte.released = None;
            }
            if !new.is_empty() {
                byte.released.get_or_insert_default().extend(new.iter().cloned());
            }
        }
    }

    fn fence(&mut self, by: Id, ordering: Ordering) {
        let Some(scope) = scope(ordering) else { return };
        let thread = &mut self.threads[by];
        if !matches!(ordering, Ordering::Release(_)) {
            let seen = std::mem::take(&mut thread.seen_cta);
            join(&mut thread.clock, &seen);
            if wide(scope) {
                let seen = std::mem::take(&mut thread.seen_device);
                join(&mut thread.clock, &seen);
            }
        }
        if !matches!(ordering, Ordering::Acquire(_)) {
            thread.fence_cta = Some(thread.clock);
            if wide(scope) {
                thread.fence_device = Some(thread.clock);
            }
        }
    }

    fn meet(&mut self, arriving: &[Id], waiting: &[Id]) {
        let mut all = Clock::default();
        arriving.iter().for_each(|&by| join(&mut all, &self.threads[by].clock));
        waiting.iter().for_each(|&by| join(&mut self.threads[by].clock, &all));
    }

    fn take_off(&mut self, by: Id, to: u64, verdict: &mut Verdict) {
        let stamp = self.tick(by);
        let home = Some(by / IN_USE.len());
        let new = Seen { by, stamp, writes: true, scope: None, width: 4, flight: true };
        self.check((to..to + 4).map(|at| (home, at)), new, verdict);
        self.publish(by, (to..to + 4).map(|at| (home, at)), None, &Act::Write, WEAK);
        let group = self.threads[by].committed;
        self.threads[by].copies.push((group, to));
    }

    fn land(&mut self, by: Id, keep: Option<u32>) {
        let thread = &mut self.threads[by];
        let until = keep.map_or(u32::MAX, |keep| thread.committed.saturating_sub(keep));
        let copies = std::mem::take(&mut thread.copies);
        let (landing, flying) = copies.into_iter().partition(|(group, _)| *group < until);
        thread.copies = flying;
        let landing: Vec<(u32, u64)> = landing;
        for (_, to) in landing {
            let stamp = self.tick(by);
            for at in to..to + 4 {
                let byte = self.bytes.entry((Some(by / IN_USE.len()), at)).or_default();
                byte.seen.retain(|seen| !(seen.flight && seen.by == by));
                byte.seen.push(Seen {
                    by,
                    stamp,
                    writes: true,
                    scope: None,
                    width: 4,
                    flight: false,
                });
            }
        }
    }
}

/// Whether `new`, by a thread whose clock is `clock`, races with `old`.
fn races(old: &Seen, new: &Seen, clock: &Clock) -> bool {
    let near = old.by / IN_USE.len() == new.by / IN_USE.len();
    let morally_strong = old.width == new.width
        && match (old.scope, new.scope) {
            (Some(a), Some(b)) => near || (wide(a) && wide(b)),
            _ => false,
        };
    let ordered = clock[old.by] >= old.stamp && !old.flight;
    (old.writes || new.writes) && !morally_strong && !ordered
}

/// Runs a step on both; what the naive detector said, and whether ours found something.
fn step(rig: &mut Rig, naive: &mut Naive, number: usize, step: &Step) -> (Verdict, bool) {
    let mut verdict = Verdict::default();
    let before = rig.races_so_far();
    match *step {
        Step::Access { cta, warp, mask, space, at, width, ref act, ordering } => {
            for lane in (0..2).filter(|lane| mask >> lane & 1 != 0) {
                let by = id(cta, warp * 32 + lane);
                naive.access(by, space, at[lane as usize], width, act, ordering, &mut verdict);
            }
            run_access(rig, number, step);
        }
        Step::Fence { cta, warp, mask, ordering } => {
            for lane in (0..2).filter(|lane| mask >> lane & 1 != 0) {
                naive.fence(id(cta, warp * 32 + lane), ordering);
            }
            rig.ctas[cta].fence(warp, mask, ordering);
        }
        Step::WarpSync { cta, warp } => {
            let both = [id(cta, warp * 32), id(cta, warp * 32 + 1)];
            naive.meet(&both, &both);
            rig.ctas[cta].warp_sync(warp, 3);
        }
        Step::Barrier { cta, wait, pass } => barrier(rig, naive, cta, wait, pass & !wait),
        Step::Copy { cta, thread, to } => {
            naive.take_off(id(cta, IN_USE[thread]), to, &mut verdict);
            rig.copy((cta, IN_USE[thread]), to, 1024, 4, 4);
        }
        Step::Commit { cta, thread } => {
            naive.threads[id(cta, IN_USE[thread])].committed += 1;
            rig.commit((cta, IN_USE[thread]));
        }
        Step::Wait { cta, thread, keep } => {
            naive.land(id(cta, IN_USE[thread]), keep);
            rig.wait((cta, IN_USE[thread]), keep);
        }
    }
    (verdict, rig.races_so_far() > before)
}

fn run_access(rig: &mut Rig, number: usize, step: &Step) {
    let Step::Access { cta, warp, mask, space, at, width, ref act, ordering } = *step else {
        return;
    };
    let addresses =
        std::array::from_fn(|lane| rig.address(space, at.get(lane).copied().unwrap_or(0)));
    let access = WarpAccess {
        pc: number as u32,
        warp,
        mask,
        space,
        ordering,
        addresses: &addresses,
        width,
        count: 1,
    };
    let memory: &mut CtaMemory = &mut rig.ctas[cta];
    let values = [[number as u64; 32]];
    match act {
        Act::Read => memory.load(&rig.global, &access, &mut [[0; 32]]),
        Act::Write => memory.store(&rig.global, &access, &values),
        Act::Atomic => {
            let update = Update {
                op: Atomic::Add,
                ty: Scalar::U32,
                operands: &values,
                news: &[],
                result_used: false,
            };
            memory.atomic(&rig.global, &access, &update, &mut [[0; 32]]);
        }
    }
}

fn barrier(rig: &mut Rig, naive: &mut Naive, cta: usize, wait: u32, pass: u32) {
    let chosen = |set: u32| -> Vec<Id> {
        (0..4).filter(|bit| set >> bit & 1 != 0).map(|bit| id(cta, IN_USE[bit])).collect()
    };
    naive.meet(&chosen(wait | pass), &chosen(wait));
    let full = wait == 0xf;
    let mut waiting = Vec::new();
    for warp in 0..2 {
        let lanes = |set: u32| set >> (warp * 2) & 3;
        // A full barrier has the idle lanes too: that is the floor's path.
        let wait = if full { u32::MAX } else { lanes(wait) };
        rig.ctas[cta].barrier_arrive(3, warp, wait, false);
        rig.ctas[cta].barrier_arrive(3, warp, lanes(pass), true);
        waiting.push((warp, wait));
    }
    rig.ctas[cta].barrier_complete(3, &waiting);
}

fn compare(steps: &[Step], synchronised: bool) -> Result<u32, TestCaseError> {
    let options = MemoryOptions { races: true, strict: false, synchronised };
    let mut rig = Rig::with(CTAS, THREADS, options);
    let mut naive = Naive::new();
    let mut compared = 0;
    for (number, at) in steps.iter().enumerate() {
        let (verdict, found) = step(&mut rig, &mut naive, number, at);
        if verdict.race {
            prop_assert!(found, "step {number} races unseen: {at:?}");
        } else if !verdict.dirty {
            prop_assert!(!found, "step {number} does not race: {at:?}");
        }
        compared += u32::from(verdict.race || !verdict.dirty);
    }
    Ok(compared)
}

fn orderings() -> impl Strategy<Value = Ordering> {
    let scopes = prop_oneof![Just(Scope::Cta), Just(Scope::Gpu), Just(Scope::Gpu)];
    scopes.prop_flat_map(|scope| {
        prop_oneof![
            Just(Ordering::Relaxed(scope)),
            Just(Ordering::Acquire(scope)),
            Just(Ordering::Release(scope)),
            Just(Ordering::AcqRel(scope)),
        ]
    })
}

fn places(width: u32) -> impl Strategy<Value = [u64; 2]> {
    let slots = (BYTES as u64) / u64::from(width);
    // Few places, so that threads meet.
    [0..slots.min(4), 0..slots.min(4)].prop_map(move |at| at.map(|at| at * u64::from(width)))
}

fn weak() -> impl Strategy<Value = Step> {
    let act = prop_oneof![Just(Act::Read), Just(Act::Read), Just(Act::Write)];
    let width = prop_oneof![Just(1), Just(2), Just(4), Just(4), Just(4), Just(8)];
    (0..CTAS, 0..2u32, 1..4u32, any::<bool>(), width, act).prop_flat_map(
        |(cta, warp, mask, shared, width, act)| {
            let space = if shared { Space::Shared } else { Space::Global };
            places(width).prop_map(move |at| Step::Access {
                cta,
                warp,
                mask,
                space,
                at,
                width,
                act: act.clone(),
                ordering: WEAK,
            })
        },
    )
}

fn strong() -> impl Strategy<Value = Step> {
    let act = prop_oneof![Just(Act::Read), Just(Act::Write), Just(Act::Atomic)];
    (0..CTAS, 0..2u32, 1..4u32, any::<bool>(), orderings(), act, places(4)).prop_map(
        |(cta, warp, mask, shared, ordering, act, at)| {
            let space = if shared { Space::Shared } else { Space::Global };
            Step::Access { cta, warp, mask, space, at, width: 4, act, ordering }
        },
    )
}

fn local_order() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..CTAS, 0..2u32).prop_map(|(cta, warp)| Step::WarpSync { cta, warp }),
        (0..CTAS, 1..16u32, 0..16u32).prop_map(|(cta, wait, pass)| Step::Barrier {
            cta,
            wait,
            pass
        }),
        (0..CTAS).prop_map(|cta| Step::Barrier { cta, wait: 15, pass: 0 }),
    ]
}

fn copies() -> impl Strategy<Value = Step> {
    let thread = 0..IN_USE.len();
    prop_oneof![
        (0..CTAS, thread.clone(), 0..4u64).prop_map(|(cta, thread, to)| Step::Copy {
            cta,
            thread,
            to: to * 4
        }),
        (0..CTAS, thread.clone()).prop_map(|(cta, thread)| Step::Commit { cta, thread }),
        (0..CTAS, thread, prop::option::of(0..2u32)).prop_map(|(cta, thread, keep)| Step::Wait {
            cta,
            thread,
            keep
        }),
    ]
}

fn fences() -> impl Strategy<Value = Step> {
    (0..CTAS, 0..2u32, 1..4u32, orderings())
        .prop_filter("a fence orders", |(_, _, _, ordering)| {
            !matches!(ordering, Ordering::Relaxed(_))
        })
        .prop_map(|(cta, warp, mask, ordering)| Step::Fence { cta, warp, mask, ordering })
}

proptest! {

    #[test]
    fn weak_accesses_and_barriers(
        steps in prop::collection::vec(prop_oneof![3 => weak(), 2 => local_order()], 1..40),
        synchronised in any::<bool>(),
    ) {
        prop_assert!(compare(&steps, synchronised)? > 0);
    }

    #[test]
    fn every_kind_of_order(
        steps in prop::collection::vec(
            prop_oneof![2 => weak(), 4 => strong(), 2 => fences(), 1 => local_order()], 1..40),
    ) {
        prop_assert!(compare(&steps, true)? > 0);
    }

    #[test]
    fn copies_in_flight(
        steps in prop::collection::vec(
            prop_oneof![2 => weak(), 3 => copies(), 2 => local_order()], 1..40),
    ) {
        prop_assert!(compare(&steps, true)? > 0);
    }
}
