//! Threads run in step here and in no order on hardware: what is not ordered is not understood.

use crate::kernels::{assert_same, digest, kernel, obstacle};

fn exchange(between: &str, after: &str) -> bitstable_ptx::ir::Module {
    kernel(
        64,
        &format!(
            "ld.global.f32 %f0, [%x]; mov.u32 %r0, smem; add.u32 %r1, %r0, %b4;
             st.shared.f32 [%r1], %f0; {between} xor.b32 %r2, %b4, 4; add.u32 %r3, %r0, %r2;
             ld.shared.f32 %f1, [%r3]; {after} st.global.f32 [%o], %f1;"
        ),
    )
}

#[test]
fn a_load_needs_a_barrier_behind_the_store() {
    assert!(obstacle(&exchange("", "")).contains("races with a store"));
    let cta = exchange("bar.sync 0;", "");
    // The neighbour is in the same warp: its barrier is enough.
    assert_same(&cta, &exchange("bar.warp.sync -1;", ""));
    let across = |barrier: &str| {
        kernel(
            64,
            &format!(
                "ld.global.f32 %f0, [%x]; mov.u32 %r0, smem; add.u32 %r1, %r0, %b4;
                 st.shared.f32 [%r1], %f0; {barrier} xor.b32 %r2, %b4, 128;
                 add.u32 %r3, %r0, %r2; ld.shared.f32 %f1, [%r3]; st.global.f32 [%o], %f1;"
            ),
        )
    };
    digest(&across("bar.sync 0;"));
    assert!(obstacle(&across("bar.warp.sync -1;")).contains("races with a store"));
}

#[test]
fn a_store_needs_a_barrier_behind_the_loads() {
    let again = "st.shared.f32 [%r1], %f1;";
    assert!(obstacle(&exchange("bar.sync 0;", again)).contains("races with a load"));
    digest(&exchange("bar.sync 0;", &format!("bar.sync 0; {again}")));
}

#[test]
fn threads_that_store_one_value_to_one_place_do_not_race() {
    let of = |value: &str| {
        kernel(
            64,
            &format!(
                "ld.param.u64 %d0, [x]; ld.global.f32 %f0, [%d0]; ld.global.f32 %f3, [%x];
                 mov.u32 %r0, smem; st.shared.f32 [%r0], {value}; bar.sync 0;
                 ld.shared.f32 %f1, [%r0]; st.global.f32 [%o], %f1;"
            ),
        )
    };
    digest(&of("%f0"));
    assert!(obstacle(&of("%f3")).contains("two stores to shared memory"));
}

#[test]
fn a_copy_is_there_when_it_was_waited_for() {
    let of = |wait: &str| {
        kernel(
            64,
            &format!(
                "mov.u32 %r0, smem; add.u32 %r1, %r0, %b4;
                 cp.async.ca.shared.global [%r1], [%x], 4; cp.async.commit_group; {wait}
                 xor.b32 %r2, %b4, 128; add.u32 %r3, %r0, %r2; ld.shared.f32 %f1, [%r3];
                 st.global.f32 [%o], %f1;"
            ),
        )
    };
    let direct = kernel(
        64,
        "ld.param.u64 %d0, [x]; xor.b32 %r2, %b4, 128; cvt.u64.u32 %d1, %r2;
         add.s64 %d2, %d0, %d1; ld.global.f32 %f1, [%d2]; st.global.f32 [%o], %f1;",
    );
    assert_same(&of("cp.async.wait_group 0; bar.sync 0;"), &direct);
    assert!(obstacle(&of("bar.sync 0; cp.async.wait_group 0;")).contains("races"));
    assert!(obstacle(&of("cp.async.wait_group 1; bar.sync 0;")).contains("copy"));
}

#[test]
fn two_threads_that_leave_different_values_are_not_understood() {
    let racing =
        kernel(64, "ld.global.f32 %f0, [%x]; ld.param.u64 %d0, [out]; st.global.f32 [%d0], %f0;");
    assert!(obstacle(&racing).contains("different values"));
}

#[test]
fn a_barrier_is_for_all_threads() {
    let part = kernel(64, "setp.lt.u32 %p0, %t, 32; @%p0 bar.sync 0; st.global.u32 [%o], %t;");
    assert!(obstacle(&part).contains("not all threads"));
}

#[test]
fn nothing_may_meet_a_copy_that_is_under_way() {
    let copied = |after: &str| {
        kernel(
            32,
            &format!(
                "mov.u32 %r0, smem; add.u32 %r1, %r0, %b4;
                 cp.async.ca.shared.global [%r1], [%x], 4; cp.async.commit_group;
                 {after}
                 st.shared.b32 [%r1], %t; ld.shared.b32 %r2, [%r1]; st.global.b32 [%o], %r2;"
            ),
        )
    };
    digest(&copied("cp.async.wait_group 0;"));
    assert!(obstacle(&copied("cp.async.wait_group 1;")).contains("copy"));
    assert!(obstacle(&copied("bar.sync 0;")).contains("copy"));
    let again = "cp.async.ca.shared.global [%r1], [%y], 4; cp.async.wait_all;";
    assert!(obstacle(&copied(again)).contains("copy"));
    let larger = "cp.async.ca.shared.global [%r1+512], [%y], 4, 8; cp.async.wait_all;";
    assert!(obstacle(&copied(larger)).contains("copy"));
}

#[test]
fn a_barrier_is_one_of_sixteen_and_the_same_for_all() {
    digest(&exchange("bar.sync 15;", ""));
    assert!(obstacle(&exchange("bar.sync 16;", "")).contains("barrier"));
    let apart = "and.b32 %r9, %t, 1; bar.sync %r9;";
    assert!(obstacle(&exchange(apart, "")).contains("barrier"));
}

#[test]
fn a_shuffle_names_the_lanes_that_take_part() {
    let named = |members: &str| {
        kernel(
            32,
            &format!(
                "ld.global.b32 %r0, [%x]; shfl.sync.bfly.b32 %r1, %r0, 1, 31, {members};
                 st.global.b32 [%o], %r1;"
            ),
        )
    };
    digest(&named("-1"));
    assert!(obstacle(&named("16")).contains("members"));
    assert!(obstacle(&named("%r0")).contains("members"));
}

#[test]
fn a_loop_that_stores_again_and_again_takes_no_more_memory() {
    let times = |count: u32| {
        kernel(
            32,
            &format!(
                "mov.u32 %r0, smem; add.u32 %r1, %r0, %b4; mov.u32 %r2, 0;
                 again: cvt.rn.f32.u32 %f0, %r2; st.shared.f32 [%r1], %f0; add.u32 %r2, %r2, 1;
                 setp.lt.u32 %p0, %r2, {count}; @%p0 bra again;
                 ld.shared.f32 %f1, [%r1]; st.global.f32 [%o], %f1;"
            ),
        )
    };
    assert_same(&times(5000), &kernel(32, "st.global.f32 [%o], 0f459c3800;"));
    let endless = "again: bra again;";
    assert!(obstacle(&kernel(1024, endless)).contains("longer than is followed"));
}
