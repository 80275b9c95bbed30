//! Litmus shapes over global memory: which executions race, by scope and by pattern.

use bitstable_ptx::ir::{
    Atomic, Ordering, Scalar,
    Scope::{Cta, Gpu, Sys},
    Space::Global,
};

use super::rig::{ACQUIRE, RELAXED, RELEASE, Rig, Thread, WEAK};

const DATA: u64 = 0;
const FLAG: u64 = 64;
const OTHER: u64 = 128;
const ADD: (Atomic, Scalar) = (Atomic::Add, Scalar::U32);

/// Message passing: data, flag; flag, data.
fn message(
    (writer, reader): (Thread, Thread),
    release: impl Fn(&mut Rig, Thread),
    acquire: impl Fn(&mut Rig, Thread),
) -> String {
    let mut rig = Rig::new(2, 64);
    rig.st(writer, Global, DATA, WEAK, 7);
    release(&mut rig, writer);
    acquire(&mut rig, reader);
    assert_eq!(rig.ld(reader, Global, DATA, WEAK), 7);
    rig.found()
}

fn store(ordering: Ordering) -> impl Fn(&mut Rig, Thread) {
    move |rig, thread| rig.st(thread, Global, FLAG, ordering, 1)
}
fn load(ordering: Ordering) -> impl Fn(&mut Rig, Thread) {
    move |rig, thread| assert_eq!(rig.ld(thread, Global, FLAG, ordering), 1)
}

const NEAR: (Thread, Thread) = ((0, 0), (0, 33));
const FAR: (Thread, Thread) = ((0, 0), (1, 0));

#[test]
fn a_release_and_an_acquire_pass_a_message() {
    for pair in [NEAR, FAR] {
        assert_eq!(message(pair, store(RELEASE), load(ACQUIRE)), "");
        assert_eq!(message(pair, store(Ordering::Release(Sys)), load(ACQUIRE)), "");
    }
}

#[test]
fn one_side_alone_passes_nothing() {
    for pair in [NEAR, FAR] {
        assert_eq!(message(pair, store(RELAXED), load(ACQUIRE)), "R");
        assert_eq!(message(pair, store(RELEASE), load(RELAXED)), "R");
        assert_eq!(message(pair, store(RELAXED), load(RELAXED)), "R");
    }
}

#[test]
fn a_weak_flag_races_itself() {
    assert_eq!(message(FAR, store(WEAK), load(WEAK)), "RR");
    assert_eq!(message(FAR, store(RELEASE), load(WEAK)), "RR");
}

#[test]
fn volatile_accesses_do_not_race_and_do_not_order() {
    assert_eq!(message(FAR, store(Ordering::Volatile), load(Ordering::Volatile)), "R");
}

#[test]
fn a_scope_must_reach_the_other() {
    let (release, acquire) = (Ordering::Release(Cta), Ordering::Acquire(Cta));
    assert_eq!(message(NEAR, store(release), load(acquire)), "");
    assert_eq!(message(NEAR, store(release), load(ACQUIRE)), "");
    // From another CTA the flag itself races too: it is not morally strong.
    assert_eq!(message(FAR, store(release), load(acquire)), "RR");
    assert_eq!(message(FAR, store(RELEASE), load(acquire)), "RR");
    assert_eq!(message(FAR, store(release), load(ACQUIRE)), "RR");
}

#[test]
fn fences_around_relaxed_accesses_pass_a_message() {
    let fenced = |scope| {
        move |rig: &mut Rig, thread| {
            rig.fence(thread, scope);
            rig.st(thread, Global, FLAG, RELAXED, 1);
        }
    };
    let then_fenced = |scope| {
        move |rig: &mut Rig, thread| {
            rig.ld(thread, Global, FLAG, RELAXED);
            rig.fence(thread, scope);
        }
    };
    assert_eq!(message(FAR, fenced(Gpu), then_fenced(Gpu)), "");
    assert_eq!(message(FAR, fenced(Gpu), load(ACQUIRE)), "");
    assert_eq!(message(FAR, store(RELEASE), then_fenced(Gpu)), "");
    // The narrower of fence and access is the pattern's scope.
    assert_eq!(message(FAR, fenced(Cta), then_fenced(Gpu)), "R");
    assert_eq!(message(FAR, fenced(Gpu), then_fenced(Cta)), "R");
    assert_eq!(message(NEAR, fenced(Cta), then_fenced(Cta)), "");
}

#[test]
fn a_fence_on_the_wrong_side_orders_nothing() {
    let late = |rig: &mut Rig, thread| {
        rig.st(thread, Global, FLAG, RELAXED, 1);
        rig.fence(thread, Gpu);
    };
    let early = |rig: &mut Rig, thread| {
        rig.fence(thread, Gpu);
        rig.ld(thread, Global, FLAG, RELAXED);
    };
    assert_eq!(message(FAR, late, load(ACQUIRE)), "R");
    assert_eq!(message(FAR, store(RELEASE), early), "R");
}

/// Two threads, each stores one place and reads the other's: relaxed, no race, whatever they see.
#[test]
fn store_buffering_races_only_where_it_is_weak() {
    for (ordering, found) in [(RELAXED, ""), (WEAK, "RR")] {
        let mut rig = Rig::new(2, 32);
        rig.st((0, 0), Global, DATA, ordering, 1);
        rig.st((1, 0), Global, OTHER, ordering, 1);
        rig.ld((0, 0), Global, OTHER, ordering);
        rig.ld((1, 0), Global, DATA, ordering);
        assert_eq!(rig.found(), found, "{ordering:?}");
    }
}

#[test]
fn fence_order_alone_is_an_accident() {
    let mut rig = Rig::new(2, 32);
    rig.st((0, 0), Global, DATA, WEAK, 1);
    rig.fence((0, 0), Gpu);
    rig.fence((1, 0), Gpu);
    rig.ld((1, 0), Global, DATA, WEAK);
    assert_eq!(rig.found(), "R");
}

#[test]
fn load_buffering_races_only_where_it_is_weak() {
    for (ordering, found) in [(RELAXED, ""), (WEAK, "RR")] {
        let mut rig = Rig::new(2, 32);
        rig.ld((0, 0), Global, DATA, ordering);
        rig.ld((1, 0), Global, OTHER, ordering);
        rig.st((0, 0), Global, OTHER, ordering, 1);
        rig.st((1, 0), Global, DATA, ordering, 1);
        assert_eq!(rig.found(), found, "{ordering:?}");
    }
}

/// Two writers, two readers in opposite order: acquiring one flag says nothing of the other's data.
#[test]
fn independent_reads_of_independent_writes() {
    let mut rig = Rig::new(4, 32);
    for (cta, data, flag) in [(0, DATA, FLAG), (1, OTHER, FLAG + 4)] {
        rig.st((cta, 0), Global, data, WEAK, 1);
        rig.st((cta, 0), Global, flag, RELEASE, 1);
    }
    rig.ld((2, 0), Global, FLAG, ACQUIRE);
    rig.ld((2, 0), Global, DATA, WEAK);
    rig.ld((3, 0), Global, FLAG + 4, ACQUIRE);
    rig.ld((3, 0), Global, OTHER, WEAK);
    assert_eq!(rig.races_so_far(), 0);
    rig.ld((3, 0), Global, DATA, WEAK);
    assert_eq!(rig.found(), "R");
}

#[test]
fn what_was_acquired_is_released_again() {
    let mut rig = Rig::new(3, 32);
    rig.st((0, 0), Global, DATA, WEAK, 1);
    rig.st((0, 0), Global, FLAG, RELEASE, 1);
    rig.ld((1, 0), Global, FLAG, ACQUIRE);
    rig.st((1, 0), Global, OTHER, RELEASE, 1);
    rig.ld((2, 0), Global, OTHER, ACQUIRE);
    rig.ld((2, 0), Global, DATA, WEAK);
    assert_eq!(rig.found(), "");
}

#[test]
fn atomics_keep_a_release_going_and_stores_end_it() {
    for (atomic, found) in [(true, ""), (false, "R")] {
        let mut rig = Rig::new(3, 32);
        rig.st((0, 0), Global, DATA, WEAK, 1);
        rig.st((0, 0), Global, FLAG, RELEASE, 1);
        if atomic {
            rig.atom((1, 0), Global, FLAG, RELAXED, ADD, 1, 0);
        } else {
            rig.st((1, 0), Global, FLAG, RELAXED, 2);
        }
        rig.ld((2, 0), Global, FLAG, ACQUIRE);
        rig.ld((2, 0), Global, DATA, WEAK);
        assert_eq!(rig.found(), found);
    }
}

/// The last of several CTAs to take a ticket sums what the others left.
#[test]
fn a_ticket_orders_the_last_arrival_after_all() {
    let ticket = |ordering| {
        let mut rig = Rig::new(3, 32);
        for cta in 0..3 {
            rig.st((cta, 0), Global, OTHER + 4 * cta as u64, WEAK, 5);
            assert_eq!(rig.atom((cta, 0), Global, FLAG, ordering, ADD, 1, 0), cta as u64);
        }
        (0..3).for_each(|cta| assert_eq!(rig.ld((2, 0), Global, OTHER + 4 * cta, WEAK), 5));
        rig.found()
    };
    assert_eq!(ticket(Ordering::AcqRel(Gpu)), "");
    // The last CTA's own word is its own; those of the two others race.
    assert_eq!(ticket(RELAXED), "RR");
    assert_eq!(ticket(RELEASE), "RR");
}

#[test]
fn a_lock_orders_its_sections() {
    for locked in [true, false] {
        let mut rig = Rig::new(3, 32);
        for cta in 0..3 {
            let ordering = if locked { ACQUIRE } else { RELAXED };
            let cas = (Atomic::Cas, Scalar::B32);
            assert_eq!(rig.atom((cta, 0), Global, FLAG, ordering, cas, 1, 0), 0);
            let sum = rig.ld((cta, 0), Global, DATA, WEAK);
            rig.st((cta, 0), Global, DATA, WEAK, sum + 1);
            rig.atom((cta, 0), Global, FLAG, RELEASE, (Atomic::Exch, Scalar::B32), 0, 0);
        }
        assert_eq!(rig.reports().errors() > 0, !locked);
    }
}

#[test]
fn atomics_of_a_narrow_scope_race_between_ctas() {
    for (scope, found) in [(Cta, "R"), (Gpu, ""), (Sys, "")] {
        let mut rig = Rig::new(2, 64);
        rig.atom((0, 0), Global, FLAG, Ordering::Relaxed(scope), ADD, 1, 0);
        rig.atom((0, 32), Global, FLAG, Ordering::Relaxed(scope), ADD, 1, 0);
        assert_eq!(rig.races_so_far(), 0);
        rig.atom((1, 0), Global, FLAG, Ordering::Relaxed(scope), ADD, 1, 0);
        assert_eq!(rig.found(), found);
    }
}

#[test]
fn strong_accesses_must_overlap_completely() {
    let mut rig = Rig::new(2, 32);
    rig.st_wide((0, 0), Global, FLAG, RELAXED, 8, 1);
    rig.st_wide((1, 0), Global, FLAG + 4, RELAXED, 4, 1);
    assert_eq!(rig.found(), "R");
}

#[test]
fn a_strong_access_does_not_speak_for_an_earlier_weak_one() {
    let mut rig = Rig::new(2, 32);
    rig.st((0, 0), Global, FLAG, WEAK, 0);
    rig.st((0, 0), Global, FLAG, RELAXED, 1);
    rig.ld((1, 0), Global, FLAG, RELAXED);
    assert_eq!(rig.found(), "R");
}

#[test]
fn ctas_race_in_a_launch_that_does_not_synchronise() {
    use bitstable_ptx::memory::MemoryOptions;
    let options = MemoryOptions { races: true, strict: false, synchronised: false };
    let run = |script: &dyn Fn(&mut Rig)| {
        let mut rig = Rig::with(3, 32, options);
        script(&mut rig);
        rig.found()
    };
    let read = |rig: &mut Rig, cta| assert!(rig.ld((cta, 0), Global, DATA, WEAK) < 2);
    // Read by many, written by one of them: the reader of another CTA is remembered.
    for writer in 0..3 {
        let found = run(&|rig| {
            (0..3).for_each(|cta| read(rig, cta));
            rig.st((writer, 0), Global, DATA, WEAK, 1);
        });
        assert_eq!(found, "R", "{writer}");
    }
    assert_eq!(run(&|rig| (0..3).for_each(|cta| read(rig, cta))), "");
    let written_first = run(&|rig| {
        rig.st((0, 0), Global, DATA, WEAK, 1);
        read(rig, 0);
        read(rig, 1);
    });
    assert_eq!(written_first, "R");
    let own = run(&|rig| {
        read(rig, 0);
        rig.st((0, 0), Global, DATA, WEAK, 1);
    });
    assert_eq!(own, "");
}

#[test]
fn workers_at_once_find_races_between_ctas() {
    use bitstable_ptx::memory::{CtaMemory, GlobalMemory, MemoryOptions, WarpAccess};
    let options = MemoryOptions { races: true, strict: true, synchronised: false };
    for (shared_row, racing) in [(true, true), (false, false)] {
        let mut global = GlobalMemory::default();
        let base = global.add_owned(&[0; 8 * 128], 128, "out");
        let found: Vec<bool> = std::thread::scope(|scope| {
            let global = &global;
            let workers: Vec<_> = (0..8u32)
                .map(|cta| {
                    scope.spawn(move || {
                        let mut memory = CtaMemory::new(cta, 32, 0, 0, options);
                        let row = if shared_row { 0 } else { u64::from(cta) * 128 };
                        let addresses = std::array::from_fn(|lane| base + row + lane as u64 * 4);
                        let access = WarpAccess {
                            pc: 0,
                            warp: 0,
                            mask: u32::MAX,
                            space: Global,
                            ordering: WEAK,
                            addresses: &addresses,
                            width: 4,
                            count: 1,
                        };
                        memory.store(global, &access, &[[u64::from(cta); 32]]);
                        !memory.into_reports().is_empty()
                    })
                })
                .collect();
            workers.into_iter().map(|worker| worker.join().unwrap()).collect()
        });
        // Whoever comes first finds nothing, everybody else does.
        assert_eq!(found.iter().filter(|found| **found).count(), if racing { 7 } else { 0 });
    }
}

#[test]
fn a_launch_starts_with_clean_shadows_and_the_bytes_left_before() {
    let mut rig = Rig::new(1, 32);
    rig.st((0, 0), Global, DATA, WEAK, 3);
    let mut next = Rig::new(1, 32);
    std::mem::swap(&mut next.global, &mut rig.global);
    next.base = rig.base;
    next.global.begin_launch();
    assert_eq!(next.ld((0, 7), Global, DATA, WEAK), 3);
    assert_eq!(next.found(), "");
}
