//! Addresses, masks, and memory that the kernel writes itself.

use std::collections::BTreeMap;

use bitstable_equiv::{Launch, signature};

use crate::kernels::{assert_differ, assert_same, digest, kernel, obstacle};

#[test]
fn one_address_in_several_spellings() {
    let plain = kernel(
        128,
        "mov.u32 %r0, %ctaid.x; mad.lo.s32 %r1, %r0, 128, %t; ld.param.u64 %d0, [x];
         mad.wide.s32 %d1, %r1, 4, %d0; ld.global.f32 %f0, [%d1]; st.global.f32 [%o], %f0;",
    );
    let masked = kernel(
        128,
        "mov.u32 %r0, %ctaid.x; shl.b32 %r1, %r0, 7; and.b32 %r2, %t, 127; or.b32 %r3, %r1, %r2;
         ld.param.u64 %d0, [x]; cvt.s64.s32 %d1, %r3; shl.b64 %d2, %d1, 2; add.s64 %d3, %d0, %d2;
         ld.global.f32 %f0, [%d3]; st.global.f32 [%o], %f0;",
    );
    assert_same(&plain, &masked);
    let beside = kernel(
        128,
        "mov.u32 %r0, %ctaid.x; mad.lo.s32 %r1, %r0, 128, %t; ld.param.u64 %d0, [x];
         mad.wide.s32 %d1, %r1, 4, %d0; ld.global.f32 %f0, [%d1+4]; st.global.f32 [%o], %f0;",
    );
    let told = assert_differ(&plain, &beside);
    assert!(told.contains("ctaid.0 + 4]"), "{told}");
}

#[test]
fn wide_and_narrow_accesses_are_one() {
    let wide = kernel(
        32,
        "ld.param.u64 %d0, [x]; ld.param.u64 %d1, [out]; mul.wide.u32 %d2, %t, 16;
         add.s64 %d3, %d0, %d2; add.s64 %d4, %d1, %d2;
         ld.global.v4.b32 {%r0, %r1, %r2, %r3}, [%d3]; st.global.v4.b32 [%d4], {%r0, %r1, %r2, %r3};",
    );
    let narrow = kernel(128, "ld.global.b32 %r0, [%x]; st.global.b32 [%o], %r0;");
    assert_same(&wide, &narrow);
}

#[test]
fn masks_are_part_of_the_outputs() {
    let of = |guard: &str| {
        kernel(
            32,
            &format!(
                "ld.global.f32 %f0, [%x]; setp.lt.s32 %p0, %t, %n; setp.gt.s32 %p1, %n, %t;
                 setp.le.s32 %p2, %t, %n; setp.ge.s32 %p3, %t, %n; {guard} st.global.f32 [%o], %f0;"
            ),
        )
    };
    let below = of("@%p0");
    assert_same(&below, &of("@%p1"));
    assert_same(&below, &of("@!%p3"));
    assert_differ(&below, &of("@%p2"));
    assert_differ(&below, &of(""));
}

#[test]
fn a_scalar_that_is_known_decides() {
    let masked = kernel(
        32,
        "ld.global.f32 %f0, [%x]; setp.lt.s32 %p0, %t, %n; @%p0 st.global.f32 [%o], %f0;",
    );
    let plain = kernel(32, "ld.global.f32 %f0, [%x]; st.global.f32 [%o], %f0;");
    let of = |module, n| {
        let launch = Launch { scalars: BTreeMap::from([(3, n)]), ..Launch::default() };
        signature(module, None, &launch).expect("a kernel").digest
    };
    assert_eq!(of(&masked, 32), of(&plain, 32));
    assert_ne!(of(&masked, 31), of(&plain, 31));
    assert_ne!(digest(&masked), digest(&plain));
}

#[test]
fn a_branch_that_is_not_known_is_a_choice() {
    let branch = kernel(
        32,
        "ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%y]; setp.lt.s32 %p0, %n, 5;
         @%p0 bra $less; add.rn.f32 %f2, %f0, %f1; bra $end;
$less: mul.rn.f32 %f2, %f0, %f1;
$end: st.global.f32 [%o], %f2;",
    );
    let choice = kernel(
        32,
        "ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%y]; setp.lt.s32 %p0, %n, 5;
         add.rn.f32 %f2, %f0, %f1; mul.rn.f32 %f3, %f0, %f1; selp.f32 %f4, %f3, %f2, %p0;
         st.global.f32 [%o], %f4;",
    );
    assert_same(&branch, &choice);
    let other = kernel(
        32,
        "ld.global.f32 %f0, [%x]; ld.global.f32 %f1, [%y]; setp.lt.s32 %p0, %n, 6;
         add.rn.f32 %f2, %f0, %f1; mul.rn.f32 %f3, %f0, %f1; selp.f32 %f4, %f3, %f2, %p0;
         st.global.f32 [%o], %f4;",
    );
    assert_differ(&branch, &other);
}

#[test]
fn stores_of_both_ways_are_one_output() {
    let stores = |first: &str, second: &str| {
        kernel(
            32,
            &format!(
                "ld.global.f32 %f3, [%x]; ld.global.f32 %f4, [%y];
                 add.rn.f32 %f0, %f3, %f4; mul.rn.f32 %f1, %f3, %f4; setp.lt.s32 %p0, %n, 5;
                 setp.lt.s32 %p1, %n, 9; {first} st.global.f32 [%o], %f0; {second} st.global.f32 [%o], %f1;"
            ),
        )
    };
    let of = |lines: &str| {
        kernel(
            32,
            &format!(
                "ld.global.f32 %f3, [%x]; ld.global.f32 %f4, [%y];
                 add.rn.f32 %f0, %f3, %f4; mul.rn.f32 %f1, %f3, %f4; setp.lt.s32 %p0, %n, 5;
                 {lines} st.global.f32 [%o], %f2;"
            ),
        )
    };
    let chosen = of("selp.f32 %f2, %f0, %f1, %p0;");
    assert_same(&stores("@%p0", "@!%p0"), &chosen);
    assert_same(&stores("@!%p0", "@%p0"), &of("selp.f32 %f2, %f1, %f0, %p0;"));
    assert_same(&stores("", "@!%p0"), &chosen);
    assert_same(&stores("@%p0", ""), &of("mov.f32 %f2, %f1;"));
    assert_differ(&stores("@%p0", "@!%p1"), &chosen);
    assert_differ(&stores("@%p0", "@%p1"), &stores("@%p1", "@%p0"));
}

#[test]
fn threads_may_part_and_meet() {
    let parted = kernel(
        64,
        "ld.global.f32 %f0, [%x]; setp.lt.u32 %p0, %t, 32; @%p0 bra $low;
         neg.f32 %f0, %f0;
$low: st.global.f32 [%o], %f0;",
    );
    let chosen = kernel(
        64,
        "ld.global.f32 %f0, [%x]; setp.lt.u32 %p0, %t, 32; neg.f32 %f1, %f0;
         selp.f32 %f2, %f0, %f1, %p0; st.global.f32 [%o], %f2;",
    );
    assert_same(&parted, &chosen);
}

#[test]
fn memory_that_was_written_is_not_read_as_it_was() {
    let again = kernel(
        32,
        "ld.global.f32 %f0, [%x]; st.global.f32 [%x], %f0; ld.global.f32 %f1, [%x];
         st.global.f32 [%o], %f1;",
    );
    assert!(obstacle(&again).contains("may have written"));
    // Another buffer is another buffer.
    digest(&kernel(
        32,
        "ld.global.f32 %f0, [%x]; st.global.f32 [%o], %f0; ld.global.f32 %f1, [%y];
         st.global.f32 [%o+128], %f1;",
    ));
    let unknown = kernel(
        32,
        "ld.global.f32 %f0, [%x]; st.global.f32 [%o], %f0; ld.global.u32 %r0, [%y];
         mul.wide.u32 %d0, %r0, 4; ld.param.u64 %d1, [out]; add.s64 %d2, %d1, %d0;
         ld.global.f32 %f1, [%d2]; st.global.f32 [%o+128], %f1;",
    );
    assert!(obstacle(&unknown).contains("may have written"));
}

#[test]
fn what_was_never_written_is_no_output() {
    let module = kernel(32, "st.global.f32 [%o], %f7;");
    assert!(obstacle(&module).contains("never written"));
    let unset = kernel(32, "mov.u32 %r0, smem; ld.shared.f32 %f0, [%r0]; st.global.f32 [%o], %f0;");
    assert!(obstacle(&unset).contains("never written"));
}

#[test]
fn atomics_count_where_their_order_does_not() {
    let of = |op: &str| {
        kernel(32, &format!("ld.global.b32 %r0, [%x]; ld.param.u64 %d0, [out]; {op} [%d0], %r0;"))
    };
    let sum = digest(&of("red.global.add.u32"));
    assert_ne!(sum, digest(&of("red.global.max.u32")));
    assert!(obstacle(&of("red.global.add.f32")).contains("order of threads"));
}

/// Both ways exchange through one place; only one of them is taken.
#[test]
fn ways_of_a_branch_do_not_race_with_each_other() {
    let of = |behind: &str, last: &str| {
        kernel(
            64,
            &format!(
                "ld.global.f32 %f0, [%x]; mov.u32 %r0, smem; add.u32 %r1, %r0, %b4;
                 xor.b32 %r2, %b4, 128; add.u32 %r3, %r0, %r2; setp.lt.s32 %p0, %n, 5;
                 @%p0 bra $less; st.shared.f32 [%r1], %f0; bar.sync 0; ld.shared.f32 %f2, [%r3];
                 bra $end;
$less: neg.f32 %f1, %f0; st.shared.f32 [%r1], %f1; bar.sync 0; ld.shared.f32 %f2, [%r3];
$end: {behind} {last} st.global.f32 [%o], %f2;"
            ),
        )
    };
    digest(&of("", ""));
    digest(&of("bar.sync 0;", "st.shared.f32 [%r1], %f2;"));
    // What either way loaded may be stored over, and what either stored is not known.
    assert!(obstacle(&of("", "st.shared.f32 [%r1], %f2;")).contains("race"));
    assert!(obstacle(&of("bar.sync 0;", "ld.shared.f32 %f2, [%r1];")).contains("never written"));
}
