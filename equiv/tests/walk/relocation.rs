//! Shuffles and shared memory move values; what is computed stays what it is.

use crate::kernels::{assert_differ, assert_same, kernel, obstacle};

/// 32 elements a warp, added neighbours first.
const BUTTERFLY: &str = "ld.global.f32 %f0, [%x];
 shfl.sync.bfly.b32 %f1, %f0, 1, 31, -1; add.rn.f32 %f2, %f0, %f1;
 shfl.sync.bfly.b32 %f3, %f2, 2, 31, -1; add.rn.f32 %f4, %f2, %f3;";

/// The same four elements, through shared memory, by one thread each.
const SHARED: &str = "ld.global.f32 %f0, [%x];
 mov.u32 %r0, smem; add.u32 %r1, %r0, %b4; st.shared.f32 [%r1], %f0; bar.sync 0;
 and.b32 %r2, %b4, 112; add.u32 %r3, %r0, %r2;
 ld.shared.v4.f32 {%f5, %f6, %f7, %f8}, [%r3];
 add.rn.f32 %f9, %f5, %f6; add.rn.f32 %f10, %f7, %f8; add.rn.f32 %f4, %f9, %f10;";

fn stored(lines: &str) -> bitstable_ptx::ir::Module {
    kernel(32, &format!("{lines}\n st.global.f32 [%o], %f4;"))
}

#[test]
fn one_tree_by_lanes_and_through_memory() {
    assert_same(&stored(BUTTERFLY), &stored(SHARED));
}

#[test]
fn another_mask_is_another_tree() {
    let other = BUTTERFLY.replace(", 2, 31", ", 4, 31");
    assert_differ(&stored(BUTTERFLY), &stored(&other));
    let swapped = BUTTERFLY
        .replace(", 1, 31", ", 9, 31")
        .replace(", 2, 31", ", 1, 31")
        .replace(", 9, 31", ", 2, 31");
    let told = assert_differ(&stored(BUTTERFLY), &stored(&swapped));
    assert!(told.contains("load32"), "{told}");
}

#[test]
fn every_kind_of_shuffle_reads_the_lane_it_says() {
    let of = |shuffle: &str| {
        kernel(32, &format!("ld.global.f32 %f0, [%x]; {shuffle} st.global.f32 [%o], %f1;"))
    };
    let shifted = of("shfl.sync.idx.b32 %f1, %f0, 5, 31, -1;");
    let direct =
        kernel(32, "ld.param.u64 %d0, [x]; ld.global.f32 %f1, [%d0+20]; st.global.f32 [%o], %f1;");
    assert_same(&shifted, &direct);
    // Down by 1: the last lane keeps its own.
    let down = of("shfl.sync.down.b32 %f1, %f0, 1, 31, -1;");
    let read = kernel(
        32,
        "setp.lt.u32 %p0, %t, 31; selp.u32 %r0, 4, 0, %p0; cvt.u64.u32 %d0, %r0;
         add.s64 %d1, %x, %d0; ld.global.f32 %f1, [%d1]; st.global.f32 [%o], %f1;",
    );
    assert_same(&down, &read);
    assert_differ(&down, &of("shfl.sync.up.b32 %f1, %f0, 1, 0, -1;"));
}

#[test]
fn halves_of_a_double_come_together_again() {
    let whole = kernel(
        32,
        "ld.param.u64 %d0, [x]; mul.wide.u32 %d1, %t, 8; add.s64 %d2, %d0, %d1;
         ld.global.f64 %d3, [%d2]; xor.b32 %r9, %t, 1; mul.wide.u32 %d4, %r9, 8;
         add.s64 %d5, %d0, %d4; ld.global.f64 %d6, [%d5]; add.rn.f64 %d7, %d3, %d6;
         ld.param.u64 %d8, [out]; add.s64 %d9, %d8, %d1; st.global.f64 [%d9], %d7;",
    );
    let halves = kernel(
        32,
        "ld.param.u64 %d0, [x]; mul.wide.u32 %d1, %t, 8; add.s64 %d2, %d0, %d1;
         ld.global.f64 %d3, [%d2]; mov.b64 {%r0, %r1}, %d3;
         shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; shfl.sync.bfly.b32 %r3, %r1, 1, 31, -1;
         mov.b64 %d6, {%r2, %r3}; add.rn.f64 %d7, %d3, %d6;
         ld.param.u64 %d8, [out]; add.s64 %d9, %d8, %d1; st.global.f64 [%d9], %d7;",
    );
    assert_same(&whole, &halves);
    let crossed = kernel(
        32,
        "ld.param.u64 %d0, [x]; mul.wide.u32 %d1, %t, 8; add.s64 %d2, %d0, %d1;
         ld.global.f64 %d3, [%d2]; mov.b64 {%r0, %r1}, %d3;
         shfl.sync.bfly.b32 %r2, %r0, 1, 31, -1; shfl.sync.bfly.b32 %r3, %r1, 2, 31, -1;
         mov.b64 %d6, {%r2, %r3}; add.rn.f64 %d7, %d3, %d6;
         ld.param.u64 %d8, [out]; add.s64 %d9, %d8, %d1; st.global.f64 [%d9], %d7;",
    );
    assert_differ(&whole, &crossed);
}

#[test]
fn packed_halves_are_two_values() {
    let packed = kernel(
        32,
        "ld.global.b32 %r0, [%x]; ld.global.b32 %r1, [%y]; add.rn.f16x2 %r2, %r0, %r1;
         st.global.b32 [%o], %r2;",
    );
    let apart = kernel(
        32,
        "ld.global.b32 %r0, [%x]; ld.global.b16 %h2, [%y]; ld.global.b16 %h3, [%y+2];
         mov.b32 {%h0, %h1}, %r0; add.rn.f16 %h4, %h0, %h2; add.rn.f16 %h5, %h1, %h3;
         st.global.v2.b16 [%o], {%h4, %h5};",
    );
    assert_same(&packed, &apart);
    let shifted = kernel(
        32,
        "ld.global.b32 %r0, [%x]; ld.global.b32 %r1, [%y]; shr.u32 %r2, %r0, 16;
         cvt.u16.u32 %h1, %r2; cvt.u16.u32 %h0, %r0; mov.b32 {%h2, %h3}, %r1;
         add.rn.f16 %h4, %h0, %h2; add.rn.f16 %h5, %h1, %h3; mov.b32 %r3, {%h4, %h5};
         st.global.b32 [%o], %r3;",
    );
    assert_same(&packed, &shifted);
    let exchanged = kernel(
        32,
        "ld.global.b32 %r0, [%x]; ld.global.b32 %r1, [%y]; prmt.b32 %r3, %r0, 0, 4146;
         add.rn.f16x2 %r2, %r3, %r1; st.global.b32 [%o], %r2;",
    );
    assert_differ(&packed, &exchanged);
}

#[test]
fn a_lane_that_is_not_there_gives_nothing() {
    let part = kernel(
        32,
        "ld.global.f32 %f0, [%x]; setp.lt.u32 %p0, %t, 16;
         @%p0 shfl.sync.idx.b32 %f1, %f0, 20, 31, 65535; @!%p0 mov.f32 %f1, %f0;
         st.global.f32 [%o], %f1;",
    );
    assert!(obstacle(&part).contains("never written"));
}
