//! Pipelines of asynchronous copies, right and wrong.

use bitstable_ptx::ir::Space::{Global, Shared};

use super::rig::{Rig, WEAK};

/// A pipeline of 4 steps over `stages` buffers: thread 0 copies, thread 40 reads.
fn pipeline(stages: u64, keep: u32, barriers: (bool, bool)) -> String {
    let mut rig = Rig::new(1, 64);
    for step in 0..4 {
        rig.st((0, 0), Global, step * 16, WEAK, step + 1);
    }
    let issue = |rig: &mut Rig, step: u64| {
        if step < 4 {
            rig.copy((0, 0), step % stages * 16, step * 16, 16, 16);
        }
        rig.commit((0, 0));
    };
    (0..stages - 1).for_each(|step| issue(&mut rig, step));
    for step in 0..4 {
        rig.wait((0, 0), Some(keep));
        if barriers.0 {
            rig.barrier(0, 64);
        }
        issue(&mut rig, step + stages - 1);
        let value = rig.ld((0, 40), Shared, step % stages * 16, WEAK);
        if stages > 1 && barriers == (true, false) && keep == stages as u32 - 2 {
            assert_eq!(value, step + 1);
        }
        if barriers.1 {
            rig.barrier(0, 64);
        }
    }
    rig.found().replace('U', "")
}

#[test]
fn a_pipeline_that_waits_and_meets_is_clean() {
    assert_eq!(pipeline(2, 0, (true, false)), "");
    assert_eq!(pipeline(3, 1, (true, false)), "");
    assert_eq!(pipeline(4, 2, (true, true)), "");
}

#[test]
fn waiting_for_too_few_groups_races() {
    assert!(pipeline(2, 1, (true, false)).contains('R'));
    assert!(pipeline(3, 2, (true, false)).contains('R'));
}

#[test]
fn a_pipeline_without_its_barrier_races() {
    assert!(pipeline(2, 0, (false, false)).contains('R'));
    // One stage too few for a single barrier: the next copy meets the readers of this step.
    assert!(pipeline(1, 0, (true, false)).contains('R'));
}

#[test]
fn a_destination_in_flight_is_nobodys() {
    let mut rig = Rig::new(1, 64);
    rig.copy((0, 0), 0, 0, 16, 16);
    rig.commit((0, 0));
    rig.barrier(0, 64);
    for thread in [0, 40] {
        let before = rig.races_so_far();
        rig.ld((0, thread), Shared, 4, WEAK);
        assert_eq!(rig.races_so_far(), before + 1, "thread {thread}");
    }
    rig.wait((0, 0), None);
    rig.barrier(0, 64);
    let before = rig.races_so_far();
    rig.ld((0, 40), Shared, 4, WEAK);
    assert_eq!(rig.races_so_far(), before);
}

#[test]
fn data_is_read_at_issue_and_lands_at_the_wait() {
    let mut rig = Rig::new(1, 32);
    rig.st((0, 0), Global, 0, WEAK, 5);
    rig.copy((0, 0), 0, 0, 4, 4);
    rig.st((0, 0), Global, 0, WEAK, 6);
    rig.commit((0, 0));
    rig.copy((0, 0), 16, 0, 4, 4);
    rig.wait((0, 0), Some(0));
    assert_eq!(rig.ld((0, 0), Shared, 0, WEAK), 5);
    // The second copy is in no committed group: only a wait for all, or the end, covers it.
    rig.ctas[0].finish(0, 1);
    assert_eq!(rig.ld((0, 0), Shared, 16, WEAK), 6);
    assert_eq!(rig.found(), "");
}

#[test]
fn the_rest_of_a_short_source_is_zeros() {
    let mut rig = Rig::new(1, 32);
    (0..4).for_each(|word| rig.st((0, 0), Global, word * 4, WEAK, 0x0101_0101));
    // The source ends with the buffer: what is not read cannot fault.
    rig.st((0, 0), Global, super::rig::BYTES - 4, WEAK, 0x0202_0202);
    rig.copy((0, 0), 0, 0, 16, 6);
    rig.copy((0, 0), 16, super::rig::BYTES - 4, 16, 4);
    rig.copy((0, 0), 32, super::rig::BYTES + 100, 16, 0);
    rig.wait((0, 0), None);
    let words: Vec<_> = (0..12).map(|word| rig.ld((0, 0), Shared, word * 4, WEAK)).collect();
    assert_eq!(words, [0x0101_0101, 0x0101, 0, 0, 0x0202_0202, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(rig.found(), "");
}
