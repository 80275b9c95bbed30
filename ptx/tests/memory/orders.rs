//! Atomics whose order of arrival moves the result.

use bitstable_ptx::{
    ir::{Atomic, Ordering, Scalar, Scope, Space::Global},
    report::{Finding, Severity},
};

use super::rig::{RELAXED, Rig};

/// How many findings two threads' updates give, all of them of arrival order.
fn twice(op: (Atomic, Scalar), operands: [u64; 2], ordered: bool) -> usize {
    let mut rig = Rig::new(2, 32);
    rig.atom((0, 0), Global, 0, RELAXED, op, operands[0], 0);
    if ordered {
        rig.atom(
            (0, 0),
            Global,
            64,
            Ordering::Release(Scope::Gpu),
            (Atomic::Add, Scalar::U32),
            1,
            0,
        );
        rig.atom(
            (1, 0),
            Global,
            64,
            Ordering::Acquire(Scope::Gpu),
            (Atomic::Add, Scalar::U32),
            1,
            0,
        );
    }
    rig.atom((1, 0), Global, 0, RELAXED, op, operands[1], 0);
    let reports = rig.reports();
    let arrival = |finding: &Finding| matches!(finding, Finding::ArrivalOrder { .. });
    assert!(reports.iter().all(|report| arrival(&report.finding)), "{reports:?}");
    reports.len()
}

#[test]
fn float_sums_depend_on_it_and_integers_do_not() {
    let float = [1.5f32.to_bits().into(), 2.5f32.to_bits().into()];
    assert_eq!(twice((Atomic::Add, Scalar::F32), float, false), 1);
    assert_eq!(twice((Atomic::Add, Scalar::F16x2), float, false), 1);
    assert_eq!(twice((Atomic::Add, Scalar::F32), float, true), 0);
    for op in [Atomic::Add, Atomic::Min, Atomic::Max] {
        assert_eq!(twice((op, Scalar::U32), [3, 4], false), 0, "{op}");
    }
    for op in [Atomic::And, Atomic::Or, Atomic::Xor] {
        assert_eq!(twice((op, Scalar::B32), [3, 4], false), 0, "{op}");
    }
}

#[test]
fn exchanges_depend_on_it_unless_they_store_the_same() {
    assert_eq!(twice((Atomic::Exch, Scalar::B32), [3, 4], false), 1);
    assert_eq!(twice((Atomic::Exch, Scalar::B32), [3, 3], false), 0);
}

#[test]
fn comparing_exchanges_are_a_note_even_when_strict() {
    use bitstable_ptx::memory::MemoryOptions;
    let options = MemoryOptions { races: true, strict: true, synchronised: true };
    for (op, severity) in [(Atomic::Cas, Severity::Note), (Atomic::Exch, Severity::Error)] {
        let mut rig = Rig::with(2, 32, options);
        rig.atom((0, 0), Global, 0, RELAXED, (op, Scalar::B32), 1, 0);
        rig.atom((1, 0), Global, 0, RELAXED, (op, Scalar::B32), 2, 1);
        let severities: Vec<_> =
            rig.ctas[1].reports().iter().map(|report| report.severity).collect();
        assert_eq!(severities, [severity], "{op}");
    }
}

#[test]
fn lanes_of_one_warp_arrive_in_their_order() {
    let mut rig = Rig::new(1, 32);
    let one = 1.0f32.to_bits().into();
    for lane in 0..32 {
        rig.atom((0, lane), Global, 0, RELAXED, (Atomic::Add, Scalar::F32), one, 0);
    }
    assert_eq!(
        rig.atom((0, 0), Global, 0, RELAXED, (Atomic::Add, Scalar::F32), one, 0),
        32.0f32.to_bits().into()
    );
    assert_eq!(rig.races_so_far(), 0);
    let counts: u64 = rig.reports().iter().map(|report| report.count).sum();
    assert_eq!(counts, 32, "every arrival after the first");
}

/// An update that acquires from the one before it is ordered by having come later, and by nothing
/// else.
#[test]
fn acquiring_from_the_update_before_does_not_settle_the_order() {
    let mut rig = Rig::new(2, 32);
    let ordering = Ordering::AcqRel(Scope::Gpu);
    for (cta, value) in [(0, 1.5f32), (1, 2.5)] {
        rig.atom(
            (cta, 0),
            Global,
            0,
            ordering,
            (Atomic::Add, Scalar::F32),
            value.to_bits().into(),
            0,
        );
    }
    let reports = rig.reports();
    let found = reports.iter().map(|report| (&report.finding, report.severity));
    assert!(
        matches!(found.collect::<Vec<_>>()[..], [(Finding::ArrivalOrder { .. }, Severity::Error)]),
        "{reports:?}"
    );
}
