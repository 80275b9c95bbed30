//! Which operations are one operation.

use crate::kernels::{assert_differ, assert_same, digest, kernel, obstacle, signed};

fn of(lines: &str) -> bitstable_ptx::ir::Module {
    let lines = format!(
        "ld.global.f32 %f0, [%x];\n ld.global.f32 %f1, [%y];\n ld.global.f32 %f2, [%x+512];\n\
         {lines}\n st.global.f32 [%o], %f9;"
    );
    kernel(32, &lines)
}

#[test]
fn addition_commutes_and_does_not_associate() {
    let ab = of("add.rn.f32 %f9, %f0, %f1;");
    assert_same(&ab, &of("add.rn.f32 %f9, %f1, %f0;"));
    let left = of("add.rn.f32 %f3, %f0, %f1; add.rn.f32 %f9, %f3, %f2;");
    let right = of("add.rn.f32 %f3, %f1, %f2; add.rn.f32 %f9, %f0, %f3;");
    let told = assert_differ(&left, &right);
    assert!(told.contains("add.rn.f32"), "{told}");
}

#[test]
fn roundings_and_flushing_are_told_apart() {
    let all = ["add.rn.f32", "add.rz.f32", "add.rp.f32", "add.rn.ftz.f32", "mul.rn.f32"];
    let digests = all.map(|op| digest(&of(&format!("{op} %f9, %f0, %f1;"))));
    for (at, one) in digests.iter().enumerate() {
        assert!(!digests[..at].contains(one), "{}", all[at]);
    }
}

#[test]
fn a_sum_that_ptxas_may_fuse_is_another_and_is_told() {
    let open = of("mul.f32 %f3, %f0, %f1; add.f32 %f9, %f3, %f2;");
    let written = of("mul.rn.f32 %f3, %f0, %f1; add.rn.f32 %f9, %f3, %f2;");
    let half = of("mul.f32 %f3, %f0, %f1; add.rn.f32 %f9, %f3, %f2;");
    assert_differ(&open, &written);
    // Nothing is fused into an addition whose rounding is written.
    assert_same(&half, &written);
    assert_eq!(signed(&open).contractions.len(), 1);
    assert_eq!(signed(&written).contractions, []);
    let negative = of("mul.f32 %f3, %f0, 0fBF000000; add.f32 %f9, %f3, %f2;");
    assert_eq!(signed(&negative).contractions.len(), 1);
    let fused = of("fma.rn.f32 %f9, %f0, %f1, %f2;");
    assert_differ(&fused, &open);
    assert_differ(&fused, &written);
}

#[test]
fn only_one_factor_has_a_sign() {
    let minus = of("neg.f32 %f3, %f0; fma.rn.f32 %f9, %f3, %f1, %f2;");
    assert_same(&minus, &of("neg.f32 %f3, %f1; fma.rn.f32 %f9, %f0, %f3, %f2;"));
    assert_differ(&minus, &of("neg.f32 %f3, %f2; fma.rn.f32 %f9, %f0, %f1, %f3;"));
    let scaled = of("fma.rn.f32 %f9, %f0, 0fBF000000, %f2;");
    assert_same(&scaled, &of("neg.f32 %f3, %f0; fma.rn.f32 %f9, %f3, 0f3F000000, %f2;"));
    let difference = of("sub.rn.f32 %f9, %f0, %f1;");
    assert_same(&difference, &of("neg.f32 %f3, %f1; add.rn.f32 %f9, %f0, %f3;"));
    assert_differ(&difference, &of("sub.rn.f32 %f9, %f1, %f0;"));
    // Of NaNs the product has one sign, and its negative the other.
    let product = of("neg.f32 %f3, %f0; mul.rn.f32 %f9, %f3, %f1;");
    assert_same(&product, &of("neg.f32 %f3, %f1; mul.rn.f32 %f9, %f0, %f3;"));
    assert_differ(&product, &of("mul.rn.f32 %f3, %f0, %f1; neg.f32 %f9, %f3;"));
    // Rounding up is not the negative of rounding up.
    let up = of("neg.f32 %f3, %f0; mul.rp.f32 %f9, %f3, %f1;");
    assert_differ(&up, &of("mul.rp.f32 %f3, %f0, %f1; neg.f32 %f9, %f3;"));
}

#[test]
fn fused_operations_may_be_plain_ones() {
    // Of a NaN the sum has other bits.
    let plain = of("mov.f32 %f9, %f0;");
    assert_differ(&plain, &of("add.rn.f32 %f9, %f0, 0f80000000;"));
    let sum = of("add.rn.f32 %f9, %f0, %f1;");
    assert_same(&sum, &of("fma.rn.f32 %f9, %f0, 0f3F800000, %f1;"));
    let product = of("mul.rn.f32 %f9, %f0, %f1;");
    assert_same(&product, &of("fma.rn.f32 %f9, %f0, %f1, 0f80000000;"));
    assert_differ(&product, &of("fma.rn.f32 %f9, %f0, %f1, 0f00000000;"));
}

/// A maximum is one of its operands, in whatever order; but of subnormals flushed, another.
#[test]
fn maxima_associate_and_sums_do_not() {
    let left = of("max.f32 %f3, %f0, %f1; max.f32 %f9, %f3, %f2;");
    assert_same(&left, &of("max.f32 %f3, %f2, %f1; max.f32 %f9, %f3, %f0;"));
    assert_same(&left, &of("max.f32 %f3, %f0, %f1; max.f32 %f4, %f3, %f2; max.f32 %f9, %f4, %f4;"));
    assert_differ(&left, &of("max.NaN.f32 %f3, %f0, %f1; max.NaN.f32 %f9, %f3, %f2;"));
    let flushed = of("max.ftz.f32 %f9, %f0, %f0;");
    assert_differ(&flushed, &of("mov.f32 %f9, %f0;"));
}

#[test]
fn integers_add_in_any_order() {
    let of = |lines: &str| {
        kernel(
            32,
            &format!(
                "ld.global.u32 %r0, [%x]; ld.global.u32 %r1, [%y]; ld.global.u32 %r2, [%x+512];\n\
                 {lines}\n st.global.u32 [%o], %r9;"
            ),
        )
    };
    let left = of("add.u32 %r3, %r0, %r1; add.s32 %r9, %r3, %r2;");
    assert_same(&left, &of("add.u32 %r3, %r2, %r1; add.u32 %r9, %r0, %r3;"));
    assert_same(&left, &of("add.u32 %r3, %r2, %r1; add.u32 %r4, %r0, 0; add.u32 %r9, %r4, %r3;"));
    assert_differ(&left, &of("add.u32 %r3, %r0, %r1; add.u32 %r9, %r3, %r1;"));
    assert_differ(&left, &of("sub.u32 %r3, %r0, %r1; add.u32 %r9, %r3, %r2;"));
    assert_differ(&of("min.s32 %r9, %r0, %r1;"), &of("min.u32 %r9, %r0, %r1;"));
}

#[test]
fn choices_are_kept_with_their_conditions() {
    let of = |cmp: &str, arms: &str| {
        of(&format!("setp.{cmp}.f32 %p0, %f0, %f1; selp.f32 %f9, {arms}, %p0;"))
    };
    let more = of("gt", "%f0, %f1");
    assert_differ(&more, &of("gt", "%f1, %f0"));
    assert_differ(&more, &of("ge", "%f0, %f1"));
    let negated = super::arithmetic::of(
        "setp.gt.f32 %p0, %f0, %f1; not.pred %p1, %p0; selp.f32 %f9, %f1, %f0, %p1;",
    );
    assert_same(&more, &negated);
}

/// Approximations are promised by one architecture.
#[test]
fn approximations_are_named_with_their_architecture() {
    let module = of("ex2.approx.f32 %f9, %f0;");
    let mut other = module.clone();
    other.target.sm = 90;
    assert_ne!(digest(&module), digest(&other));
    let (exact, mut elsewhere) = (of("sqrt.rn.f32 %f9, %f0;"), of("sqrt.rn.f32 %f9, %f0;"));
    elsewhere.target.sm = 90;
    assert_eq!(digest(&exact), digest(&elsewhere));
}

#[test]
fn a_choice_does_not_define_what_nobody_wrote() {
    let chosen = |arm: &str| {
        kernel(
            32,
            &format!(
                "ld.global.f32 %f0, [%x]; setp.gt.f32 %p0, %f0, 0f00000000;
                 add.rn.f32 %f2, %f9, %f0; selp.f32 %f1, {arm}, %f0, %p0;
                 st.global.f32 [%o], %f1;"
            ),
        )
    };
    assert!(obstacle(&chosen("%f9")).contains("never written"));
    assert!(obstacle(&chosen("%f2")).contains("never written"));
}
