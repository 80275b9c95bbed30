//! Loops: unrolled where the number of iterations is known, recurrences where not.

use bitstable_equiv::{Launch, signature};

use crate::kernels::{assert_differ, assert_same, digest, kernel, obstacle};

/// `sum += x[i]` for rows of 32, `first` rows in, over a bound.
fn summed(bound: &str, body: &str) -> bitstable_ptx::ir::Module {
    kernel(
        32,
        &format!(
            "mov.f32 %f1, 0f00000000; mov.u32 %r0, 0; mov.u64 %d0, %x;
$again: {body}
 add.s64 %d0, %d0, 128; add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, {bound}; @%p0 bra $again;
 st.global.f32 [%o], %f1;"
        ),
    )
}

const ADD: &str = "ld.global.f32 %f0, [%d0]; add.rn.f32 %f1, %f1, %f0;";

#[test]
fn a_known_loop_is_its_iterations() {
    let flat = kernel(
        32,
        "ld.global.f32 %f0, [%x]; ld.global.f32 %f2, [%x+128]; ld.global.f32 %f3, [%x+256];
         add.rn.f32 %f4, %f0, 0f00000000; add.rn.f32 %f5, %f4, %f2; add.rn.f32 %f6, %f5, %f3;
         st.global.f32 [%o], %f6;",
    );
    assert_same(&summed("3", ADD), &flat);
    assert_differ(&summed("4", ADD), &flat);
}

#[test]
fn an_unknown_loop_is_what_an_iteration_does() {
    let loop_ = summed("%n", ADD);
    let indexed = kernel(
        32,
        "mov.f32 %f5, 0f00000000; mov.u32 %r7, 0; ld.param.u64 %d3, [x];
$top: shl.b32 %r2, %r7, 5; or.b32 %r3, %r2, %t; mad.wide.s32 %d4, %r3, 4, %d3;
 ld.global.f32 %f9, [%d4]; add.s32 %r7, %r7, 1; add.rn.f32 %f5, %f9, %f5;
 setp.ge.s32 %p3, %r7, %n; @!%p3 bra $top;
 st.global.f32 [%o], %f5;",
    );
    assert_same(&loop_, &indexed);
    for other in [
        "ld.global.f32 %f0, [%d0]; sub.rn.f32 %f1, %f1, %f0;",
        "ld.global.f32 %f0, [%d0]; add.rn.f32 %f1, %f0, %f0;",
        "ld.global.f32 %f0, [%d0+4]; add.rn.f32 %f1, %f1, %f0;",
    ] {
        assert_differ(&loop_, &summed("%n", other));
    }
    assert_differ(&loop_, &summed("7", ADD));
}

/// A fact of the launch turns an unknown loop into a known one.
#[test]
fn a_bound_that_is_known_unrolls() {
    let launch = Launch { scalars: [(3, 3)].into(), ..Launch::default() };
    let unknown = signature(&summed("%n", ADD), None, &launch).expect("a kernel");
    assert_eq!(unknown.obstacle, None);
    let known = signature(&summed("3", ADD), None, &launch).expect("a kernel");
    assert_eq!(unknown.digest, known.digest);
}

/// Both begin with zero: what they hold next tells the two registers apart, not where they begin.
#[test]
fn registers_that_begin_alike_are_told_apart() {
    let of = |first: &str, second: &str| {
        kernel(
            32,
            &format!(
                "mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.u32 %r0, 0;
$again: ld.global.f32 %f3, [%x]; ld.global.f32 %f4, [%y];
 add.rn.f32 %f5, {first}, %f3; add.rn.f32 %f6, {second}, %f4; mov.f32 %f1, %f5; mov.f32 %f2, %f6;
 add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, %n; @%p0 bra $again;
 st.global.f32 [%o], %f1; st.global.f32 [%o+128], %f2;"
            ),
        )
    };
    let straight = of("%f1", "%f2");
    assert_same(&straight, &straight.clone());
    assert_differ(&straight, &of("%f2", "%f1"));
    assert_differ(&straight, &of("%f1", "%f1"));
}

/// Three registers in a ring: it takes rounds until all of them are told apart.
#[test]
fn a_ring_of_registers_is_told_apart() {
    let of = |first: &str, second: &str, third: &str| {
        kernel(
            32,
            &format!(
                "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.u32 %r0, 0;
$again: ld.global.f32 %f4, [%x]; mov.f32 %f5, {first}; mov.f32 %f6, {second};
 add.rn.f32 %f7, {third}, %f4; mov.f32 %f1, %f5; mov.f32 %f2, %f6; mov.f32 %f3, %f7;
 add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, %n; @%p0 bra $again;
 st.global.f32 [%o], %f1;"
            ),
        )
    };
    let ring = of("%f2", "%f3", "%f1");
    assert_differ(&ring, &of("%f2", "%f1", "%f1"));
    assert_differ(&ring, &of("%f2", "%f3", "%f3"));
    assert_differ(&ring, &of("%f3", "%f3", "%f1"));
}

#[test]
fn shared_memory_of_an_iteration_is_its_own() {
    let of = |first: &str, last: &str| {
        summed(
            "%n",
            &format!(
                "ld.global.f32 %f0, [%d0]; mov.u32 %r4, smem; add.u32 %r5, %r4, %b4; {first}
                 st.shared.f32 [%r5], %f0; bar.sync 0; xor.b32 %r6, %b4, 4; add.u32 %r6, %r4, %r6;
                 ld.shared.f32 %f2, [%r6]; add.rn.f32 %f1, %f1, %f2; {last}"
            ),
        )
    };
    let guarded = of("bar.sync 0;", "");
    assert_same(&guarded, &of("", "bar.sync 0;"));
    // Without a second barrier an iteration stores while another still loads.
    assert!(obstacle(&of("", "")).contains("races"));
    // What only an earlier iteration stored is not known.
    let stale = summed(
        "%n",
        "ld.global.f32 %f0, [%d0]; mov.u32 %r4, smem; add.u32 %r5, %r4, %b4; setp.eq.u32 %p5, %r0, 0;
         @%p5 st.shared.f32 [%r5], %f0; ld.shared.f32 %f2, [%r5]; add.rn.f32 %f1, %f1, %f2;",
    );
    assert!(!obstacle(&stale).is_empty());
}

#[test]
fn stores_of_many_iterations_need_places_of_their_own() {
    let one = summed(
        "%n",
        "ld.global.f32 %f0, [%d0]; add.rn.f32 %f1, %f1, %f0; st.global.f32 [%o], %f1;",
    );
    assert!(obstacle(&one).contains("many iterations"));
    let of = |value: &str| {
        kernel(
            32,
            &format!(
                "mov.f32 %f1, 0f00000000; mov.u32 %r0, 0; mov.u64 %d0, %x; mov.u64 %d1, %o;
$again: ld.global.f32 %f0, [%d0]; add.rn.f32 %f1, %f1, %f0; st.global.f32 [%d1], {value};
 add.s64 %d0, %d0, 128; add.s64 %d1, %d1, 128; add.s32 %r0, %r0, 1;
 setp.lt.s32 %p0, %r0, %n; @%p0 bra $again;"
            ),
        )
    };
    let running = of("%f1");
    assert_same(&running, &running.clone());
    assert_differ(&running, &of("%f0"));
}

#[test]
fn loops_within_loops() {
    let of = |inner: &str| {
        kernel(
            32,
            &format!(
                "mov.f32 %f1, 0f00000000; mov.u32 %r0, 0; mov.u64 %d0, %x;
$outer: mov.u32 %r1, 0; mov.f32 %f2, 0f00000000;
$inner: ld.global.f32 %f0, [%d0]; {inner} add.s64 %d0, %d0, 128; add.s32 %r1, %r1, 1;
 setp.lt.s32 %p1, %r1, %n; @%p1 bra $inner;
 add.rn.f32 %f1, %f1, %f2; add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, %n; @%p0 bra $outer;
 st.global.f32 [%o], %f1;"
            ),
        )
    };
    let nested = of("add.rn.f32 %f2, %f2, %f0;");
    assert_same(&nested, &of("add.rn.f32 %f2, %f0, %f2;"));
    assert_differ(&nested, &of("mul.rn.f32 %f2, %f2, %f0;"));
    digest(&nested);
}

#[test]
fn a_second_exit_is_not_followed() {
    let module = kernel(
        32,
        "mov.f32 %f1, 0f00000000; mov.u32 %r0, 0; ld.param.u32 %r9, [x];
$again: ld.global.f32 %f0, [%x]; setp.eq.s32 %p1, %r0, %n; @%p1 bra $end;
 add.rn.f32 %f1, %f1, %f0; add.s32 %r0, %r0, 1; setp.lt.s32 %p0, %r0, %r9; @%p0 bra $again;
$end: st.global.f32 [%o], %f1;",
    );
    assert!(obstacle(&module).contains("second exit"));
}

/// What one iteration leaves in shared memory for the next is not known, and stays so behind a
/// branch round the loop.
#[test]
fn what_iterations_hand_on_in_memory_is_not_known_behind_a_branch() {
    let kernel = crate::kernels::kernel(
        32,
        "mov.f32 %f3, 0f00000000; setp.lt.s32 %p0, %n, 1; @%p0 bra END;
         mov.u32 %r0, smem; add.u32 %r1, %r0, %b4; mov.u32 %r2, 0;
         ld.global.f32 %f0, [%x]; st.shared.f32 [%r1], %f0;
         AGAIN: ld.shared.f32 %f1, [%r1]; add.rn.f32 %f3, %f3, %f1;
         mul.rn.f32 %f2, %f1, %f0; st.shared.f32 [%r1], %f2;
         add.u32 %r2, %r2, 1; setp.lt.s32 %p1, %r2, %n; @%p1 bra AGAIN;
         END: st.global.f32 [%o], %f3;",
    );
    assert!(crate::kernels::obstacle(&kernel).contains("never written"));
}
