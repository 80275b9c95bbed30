//! Shared memory: barriers of every kind, granules, replicated stores.

use bitstable_ptx::{
    ir::{Ordering, Scope, Space::Shared},
    memory::{ArriveKind, Phase, WarpAccess, space::SHARED_BASE},
};

use super::rig::{Rig, WEAK};

/// Runs a first access by thread 0, an order, and a second by thread 40.
fn pair(write: (bool, bool), order: impl Fn(&mut Rig)) -> String {
    let mut rig = Rig::new(1, 64);
    rig.st((0, 0), Shared, 0, WEAK, 1);
    rig.barrier(0, 64);
    for (thread, write) in [(0, write.0), (40, write.1)] {
        if write {
            rig.st((0, thread), Shared, 0, WEAK, u64::from(thread) + 2);
        } else {
            rig.ld((0, thread), Shared, 0, WEAK);
        }
        if thread == 0 {
            order(&mut rig);
        }
    }
    rig.found()
}

#[test]
fn a_barrier_orders_every_pair_of_accesses() {
    for write in [(true, true), (true, false), (false, true)] {
        assert_eq!(pair(write, |_| {}), "R", "{write:?}");
        assert_eq!(pair(write, |rig| rig.barrier(0, 64)), "", "{write:?}");
    }
    assert_eq!(pair((false, false), |_| {}), "");
}

#[test]
fn a_barrier_without_one_of_the_two_orders_nothing() {
    let half = |warp| {
        move |rig: &mut Rig| {
            rig.ctas[0].barrier_arrive(1, warp, u32::MAX, false);
            rig.ctas[0].barrier_complete(1, &[(warp, u32::MAX)]);
        }
    };
    assert_eq!(pair((true, false), half(0)), "R");
    assert_eq!(pair((true, false), half(1)), "R");
}

#[test]
fn a_named_barrier_orders_its_warps_only() {
    let mut rig = Rig::new(1, 96);
    rig.st_warp(0, 0, u32::MAX, Shared, |lane| lane * 4, |lane| lane);
    for warp in [0, 1] {
        rig.ctas[0].barrier_arrive(5, warp, u32::MAX, false);
    }
    rig.ctas[0].barrier_complete(5, &[(0, u32::MAX), (1, u32::MAX)]);
    rig.ld_warp(0, 1, u32::MAX, Shared, |lane| 124 - lane * 4);
    assert_eq!(rig.races_so_far(), 0);
    rig.ld_warp(0, 2, u32::MAX, Shared, |lane| lane * 4);
    assert_eq!(rig.races_so_far(), 32);
    assert_eq!(rig.found(), "R");
}

/// A producer arrives and goes on; the consumer waits. What the producer does after is not ordered.
#[test]
fn who_passes_a_barrier_releases_and_does_not_acquire() {
    let mut rig = Rig::new(1, 64);
    rig.st((0, 0), Shared, 0, WEAK, 1);
    rig.ld((0, 32), Shared, 8, WEAK);
    rig.ctas[0].barrier_arrive(1, 0, u32::MAX, true);
    rig.st((0, 0), Shared, 4, WEAK, 1);
    rig.ctas[0].barrier_arrive(1, 1, u32::MAX, false);
    rig.ctas[0].barrier_complete(1, &[(1, u32::MAX)]);
    rig.ld((0, 32), Shared, 0, WEAK);
    assert_eq!(rig.races_so_far(), 0);
    rig.ld((0, 32), Shared, 4, WEAK);
    assert_eq!(rig.races_so_far(), 1);
    rig.st((0, 0), Shared, 8, WEAK, 1);
    assert_eq!(rig.races_so_far(), 2);
}

#[test]
fn a_warp_barrier_orders_its_lanes_only() {
    let mut rig = Rig::new(1, 64);
    rig.st((0, 0), Shared, 0, WEAK, 1);
    rig.ctas[0].warp_sync(0, 0x3);
    rig.ld((0, 1), Shared, 0, WEAK);
    assert_eq!(rig.races_so_far(), 0);
    rig.ld((0, 2), Shared, 0, WEAK);
    assert_eq!(rig.races_so_far(), 1);
    // A warp in step is not synchronised: nothing but a barrier orders lanes.
    rig.st_warp(0, 1, u32::MAX, Shared, |lane| 256 + lane * 4, |lane| lane);
    rig.ld_warp(0, 1, u32::MAX, Shared, |lane| 256 + (lane ^ 1) * 4);
    assert_eq!(rig.races_so_far(), 33);
}

#[test]
fn neighbouring_bytes_do_not_race() {
    for width in [1, 2] {
        let mut rig = Rig::new(1, 64);
        // The page begins with 4-byte granules and must split.
        rig.ld((0, 0), Shared, 64, WEAK);
        for thread in 0..4 {
            let at = u64::from(thread * width);
            rig.st_wide((0, thread * 8), Shared, at, WEAK, width, 0xff);
        }
        assert_eq!(rig.found(), "U");
    }
}

#[test]
fn split_granules_remember_what_was_done_to_the_whole() {
    for (second, found) in [(0, "R"), (1, "R"), (3, "R"), (4, ""), (7, "")] {
        let mut rig = Rig::new(1, 64);
        rig.st_wide((0, 0), Shared, 8, WEAK, 4, 0x0101_0101);
        rig.st_wide((0, 40), Shared, 8 + second, WEAK, 1, 2);
        assert_eq!(rig.found(), found, "{second}");
    }
    // And a crowd of readers with it.
    let mut rig = Rig::new(1, 128);
    rig.st((0, 0), Shared, 0, WEAK, 0);
    rig.barrier(0, 128);
    for thread in [5, 40, 70, 100] {
        rig.ld((0, thread), Shared, 0, WEAK);
    }
    rig.st_wide((0, 5), Shared, 3, WEAK, 1, 2);
    assert_eq!(rig.found(), "R");
}

#[test]
fn replicated_stores_are_noted_and_different_ones_race() {
    let mut rig = Rig::new(1, 64);
    rig.st_warp(0, 0, u32::MAX, Shared, |lane| lane % 16 * 4, |lane| lane % 16);
    rig.st_warp(0, 1, u32::MAX, Shared, |lane| lane % 16 * 4, |lane| lane % 16);
    let reports = rig.reports();
    let counts: Vec<_> = reports.iter().map(|report| report.count).collect();
    assert_eq!(counts, [16, 16, 16]);
    assert_eq!(reports.errors(), 0);

    let mut rig = Rig::new(1, 64);
    rig.st_warp(0, 0, u32::MAX, Shared, |lane| lane % 16 * 4, |lane| lane);
    assert_eq!(rig.found(), "R");
}

#[test]
fn a_replicated_store_that_someone_read_is_a_race() {
    let mut rig = Rig::new(1, 96);
    rig.st((0, 0), Shared, 0, WEAK, 1);
    rig.barrier(0, 96);
    rig.ld((0, 64), Shared, 0, WEAK);
    rig.st((0, 32), Shared, 0, WEAK, 1);
    assert_eq!(rig.found(), "R");
}

fn object(addresses: &[u64; 32], warp: u32, mask: u32) -> WarpAccess<'_> {
    WarpAccess {
        pc: 1000 + warp,
        warp,
        mask,
        space: Shared,
        ordering: Ordering::Release(Scope::Cta),
        addresses,
        width: 8,
        count: 1,
    }
}

#[test]
fn an_mbarrier_orders_by_phases() {
    let at = [u64::from(SHARED_BASE) + 512; 32];
    let mut rig = Rig::new(1, 96);
    rig.ctas[0].mbarrier_init(&object(&at, 0, 1), &[2; 32]);
    rig.barrier(0, 96);
    let mut states = [0; 32];
    for phase in 0..3 {
        let wait = |rig: &mut Rig| {
            rig.ctas[0].mbarrier_wait(&object(&at, 2, 1), Phase::Parity(&[phase & 1; 32]))
        };
        for thread in [0, 32] {
            assert_eq!(wait(&mut rig), 0, "phase {phase}");
            rig.st((0, thread), Shared, phase * 8 + u64::from(thread / 8), WEAK, 1);
            let arriving = object(&at, thread / 32, 1);
            rig.ctas[0].mbarrier_arrive(
                &arriving,
                &[1; 32],
                None,
                ArriveKind::default(),
                &mut states,
            );
        }
        let by_state =
            rig.ctas[0].mbarrier_wait(&object(&at, 2, 2), Phase::State(&[states[0]; 32]));
        assert_eq!((wait(&mut rig), by_state), (1, 2));
        for skip in [0, 4] {
            rig.ld((0, 64), Shared, phase * 8 + skip, WEAK);
        }
        assert_eq!(rig.races_so_far(), 0);
    }
    rig.ld((0, 66), Shared, 0, WEAK);
    assert_eq!(rig.races_so_far(), 1, "a lane that did not wait");
}

#[test]
fn an_mbarrier_waits_for_its_transactions() {
    let at = [u64::from(SHARED_BASE); 32];
    let mut rig = Rig::new(1, 64);
    let memory = &mut rig.ctas[0];
    memory.mbarrier_init(&object(&at, 0, 1), &[1; 32]);
    let mut states = [0; 32];
    let one = object(&at, 0, 1);
    memory.mbarrier_arrive(&one, &[1; 32], Some(&[128; 32]), ArriveKind::default(), &mut states);
    assert_eq!(memory.mbarrier_wait(&one, Phase::Parity(&[0; 32])), 0);
    memory.mbarrier_transactions(&one, &[128; 32], true);
    assert_eq!(memory.mbarrier_wait(&one, Phase::Parity(&[0; 32])), 1);
    assert_eq!(memory.mbarrier_wait(&one, Phase::State(&states)), 1);
    assert_eq!(rig.found(), "");
}

#[test]
fn an_mbarrier_used_before_or_without_its_initialisation_is_found() {
    let at = [u64::from(SHARED_BASE); 32];
    let mut rig = Rig::new(1, 64);
    let mut states = [0; 32];
    let other = object(&at, 1, 1);
    rig.ctas[0].mbarrier_arrive(&other, &[1; 32], None, ArriveKind::default(), &mut states);
    rig.ctas[0].mbarrier_init(&object(&at, 0, 1), &[1; 32]);
    rig.ctas[0].mbarrier_arrive(&other, &[1; 32], None, ArriveKind::default(), &mut states);
    assert_eq!(rig.found(), "?R");
}
