//! Accesses that are wrong by themselves.

use bitstable_ptx::{
    ir::{
        Atomic, Scalar,
        Space::{self, Generic, Global, Local, Shared},
    },
    memory::{
        GlobalMemory, WarpAccess,
        space::{LOCAL_WINDOW, SHARED_BASE, generic},
    },
    report::Finding,
};

use super::rig::{BYTES, RELAXED, Rig, WEAK};

fn raw(rig: &mut Rig, space: Space, address: u64, width: u32, count: u32) -> [u64; 8] {
    let addresses = [address; 32];
    let access = WarpAccess {
        pc: 0,
        warp: 0,
        mask: 1,
        space,
        ordering: WEAK,
        addresses: &addresses,
        width,
        count,
    };
    let mut rows = [[9; 32]; 8];
    rig.ctas[0].load(&rig.global, &access, &mut rows[..count as usize]);
    rows.map(|row| row[0])
}

/// The space and address of an access, in a rig.
type Case = fn(&Rig) -> (Space, u64);

#[test]
fn out_of_bounds_is_reported_and_reads_zero() {
    let cases: [(&str, Case); 8] = [
        ("null", |_| (Global, 0)),
        ("null, generic", |_| (Generic, 0)),
        ("past the end", |rig| (Global, rig.base + BYTES)),
        ("before the beginning", |rig| (Global, rig.base - 4)),
        ("shared, below", |_| (Shared, 0)),
        ("shared, past", |_| (Shared, u64::from(SHARED_BASE) + BYTES)),
        ("local, past", |_| (Local, 64)),
        ("far up", |_| (Generic, u64::MAX - 3)),
    ];
    for (name, case) in cases {
        let mut rig = Rig::new(1, 32);
        let (space, address) = case(&rig);
        assert_eq!(raw(&mut rig, space, address, 4, 1)[0], 0, "{name}");
        assert_eq!(rig.found(), "B", "{name}");
    }
    // An access that begins inside and ends outside.
    let mut rig = Rig::new(1, 32);
    let address = rig.base + BYTES - 8;
    assert_eq!(raw(&mut rig, Global, address, 4, 2)[..2], [0, 0]);
    assert_eq!(rig.races_so_far(), 0);
    let address = rig.base + BYTES;
    raw(&mut rig, Global, address, 4, 4);
    let reports = rig.reports();
    let Some(Finding::OutOfBounds { reason, .. }) = reports.iter().next().map(|r| &r.finding)
    else {
        panic!("{reports:?}");
    };
    assert_eq!(reason, "15 bytes past the end of x of 4096 bytes");
}

#[test]
fn a_vector_is_aligned_to_all_of_it() {
    for (skip, count, found) in [(0, 4, ""), (8, 4, "A"), (8, 2, ""), (4, 2, "A"), (2, 1, "A")] {
        let mut rig = Rig::new(1, 32);
        let address = rig.base + skip;
        raw(&mut rig, Global, address, 4, count);
        assert_eq!(rig.found(), found, "{skip} {count}");
    }
}

#[test]
fn faulting_lanes_do_nothing_and_the_others_go_on() {
    let mut rig = Rig::new(1, 32);
    // Lanes 0..16 lie inside the last 64 bytes, the others past them.
    rig.st_warp(0, 0, u32::MAX, Global, |lane| BYTES - 64 + lane * 4, |lane| lane + 1);
    let read = rig.ld_warp(0, 0, u32::MAX, Global, |lane| BYTES - 64 + lane * 4);
    let expected: [u64; 32] =
        std::array::from_fn(|lane| if lane < 16 { lane as u64 + 1 } else { 0 });
    assert_eq!(read, expected);
    let counts: Vec<_> = rig.reports().iter().map(|report| report.count).collect();
    assert_eq!(counts, [16, 16]);
}

#[test]
fn bytes_never_written_are_found_in_shared_and_local_memory() {
    for space in [Shared, Local] {
        let mut rig = Rig::new(1, 32);
        let base = generic(space, if space == Local { 0 } else { u64::from(SHARED_BASE) });
        let addresses = [base; 32];
        let access = WarpAccess {
            pc: 0,
            warp: 0,
            mask: 1,
            space: Generic,
            ordering: WEAK,
            addresses: &addresses,
            width: 2,
            count: 1,
        };
        rig.ctas[0].store(&rig.global, &access, &[[0xabcd; 32]]);
        assert_eq!(raw(&mut rig, Generic, base, 2, 1)[0], 0xabcd);
        assert!(rig.ctas[0].reports().is_empty());
        assert_eq!(raw(&mut rig, Generic, base, 4, 1)[0], 0xabcd);
        assert_eq!(rig.found(), "U");
    }
}

#[test]
fn local_memory_is_each_threads_own() {
    let mut rig = Rig::new(1, 64);
    let addresses = [LOCAL_WINDOW + 8; 32];
    for warp in 0..2 {
        let access = WarpAccess {
            pc: 0,
            warp,
            mask: u32::MAX,
            space: Generic,
            ordering: WEAK,
            addresses: &addresses,
            width: 4,
            count: 1,
        };
        let values = [std::array::from_fn(|lane| lane as u64 + 100 * u64::from(warp))];
        rig.ctas[0].store(&rig.global, &access, &values);
        let mut rows = [[0; 32]];
        rig.ctas[0].load(&rig.global, &access, &mut rows);
        assert_eq!(rows, values);
    }
    assert_eq!(rig.found(), "");
}

#[test]
fn one_access_may_reach_three_spaces() {
    let mut rig = Rig::new(1, 32);
    let base = rig.base;
    let addresses = std::array::from_fn(|lane| match lane % 3 {
        0 => base + lane as u64 * 4,
        1 => generic(Shared, u64::from(SHARED_BASE) + lane as u64 * 4),
        _ => generic(Local, lane as u64 % 2 * 4),
    });
    let access = WarpAccess {
        pc: 0,
        warp: 0,
        mask: 0x7fff_ffff,
        space: Generic,
        ordering: WEAK,
        addresses: &addresses,
        width: 4,
        count: 1,
    };
    let values = [std::array::from_fn(|lane| lane as u64)];
    rig.ctas[0].store(&rig.global, &access, &values);
    let mut rows = [[77; 32]];
    rig.ctas[0].load(&rig.global, &access, &mut rows);
    assert_eq!(rows[0][..31], values[0][..31]);
    assert_eq!(rows[0][31], 77, "a lane outside the mask keeps its column");
    assert_eq!(rig.found(), "");
}

#[test]
fn a_read_only_buffer_is_not_written() {
    let mut bytes = vec![1u32, 2, 3, 4];
    let mut rig = Rig::new(1, 32);
    // SAFETY: `bytes` outlives the rig's use of it and nobody else has it meanwhile.
    unsafe { rig.global.add_host(bytes.as_mut_ptr().cast(), 16, false, "weights") };
    rig.base = bytes.as_ptr() as u64;
    assert_eq!(rig.ld((0, 0), Global, 4, WEAK), 2);
    rig.st((0, 0), Global, 4, WEAK, 9);
    let add = (Atomic::Add, Scalar::U32);
    assert_eq!(rig.atom((0, 0), Global, 8, RELAXED, add, 1, 0), 0);
    assert_eq!(rig.found(), "WW");
    assert_eq!(bytes, [1, 2, 3, 4]);
}

#[test]
fn views_that_overlap_are_one_buffer() {
    let mut bytes = vec![0u64; 8];
    let start: *mut u8 = bytes.as_mut_ptr().cast();
    let mut global = GlobalMemory::default();
    // SAFETY: `bytes` lives to the end of the test, and the views lie inside it.
    unsafe {
        global.add_host(start.add(16), 16, false, "middle");
        global.add_host(start, 24, true, "front");
        global.add_host(start.add(24), 40, true, "back");
    }
    assert_eq!(global.bytes(start as u64).map(|bytes| bytes.len()), Some(64));
    assert_eq!(global.bytes(start as u64 + 60).map(|bytes| bytes.len()), Some(4));
    assert_eq!(global.bytes(start as u64 + 64), None);
}
