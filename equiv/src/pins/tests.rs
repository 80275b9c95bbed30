//! A warp whose threads hold four of eight elements each: what is certified, and what is not.

use super::{Proof, certify};

/// Sixteen rows of eight: bits 0 and 1 along the axis in registers, bit 2 in lane bit 0, rows in the
/// other lanes.
const KERNEL: &str = "
.version 8.3
.target sm_90
.address_size 64
.visible .entry rows(.param .u64 x, .param .u64 out)
.reqntid 32
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .f32 %f<64>;
  .reg .b64 %rd<8>;
  ld.param.u64 %rd1, [x];
  ld.param.u64 %rd2, [out];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 16;
  add.s64 %rd4, %rd1, %rd3;
  ld.global.f32 %f0, [%rd4];
  ld.global.f32 %f1, [%rd4+4];
  ld.global.f32 %f2, [%rd4+8];
  ld.global.f32 %f3, [%rd4+12];
  mov.b32 %f10, %f0; // bitstable.element pin=0 narrow=0 axis=0,3 may=none at=0 LANES open
  mov.b32 %f11, %f1; // bitstable.element pin=0 narrow=0 axis=0,3 may=none at=1 LANES
  mov.b32 %f12, %f2; // bitstable.element pin=0 narrow=0 axis=0,3 may=none at=2 LANES
  mov.b32 %f13, %f3; // bitstable.element pin=0 narrow=0 axis=0,3 may=none at=3 LANES
  OP %f20, %f10, %f11;
  mov.b32 %f21, %f20; // bitstable.combine pin=0 narrow=0
  OP %f22, %f12, %f13;
  mov.b32 %f23, %f22; // bitstable.combine pin=0 narrow=0
  OP %f30, %f21, %f23;
  mov.b32 %f31, %f30; // bitstable.combine pin=0 narrow=0
  shfl.sync.bfly.b32 %f40, %f31, 1, 31, -1;
  and.b32 %r2, %r1, 1;
  setp.ne.u32 %p1, %r2, 0;
  selp.f32 %f41, %f40, %f31, %p1;
  selp.f32 %f42, %f31, %f40, %p1;
  OP %f50, %f41, %f42;
  mov.b32 %f51, %f50; // bitstable.combine pin=0 narrow=0
  mov.b32 %f52, %f51; // bitstable.result pin=0 narrow=0 at=0 lane=0,1,2,4,8 warp=
  shr.u32 %r3, %r1, 1;
  mul.wide.u32 %rd5, %r3, 4;
  add.s64 %rd6, %rd2, %rd5;
  st.global.f32 [%rd6], %f52;
  ret;
}
";

fn kernel(op: &str) -> String {
    KERNEL.replace("LANES", "lane=4,8,10,20,40 warp=").replace("OP", op)
}

/// What is said of the kernel with one piece of its text replaced, once.
fn mutant(op: &str, from: &str, to: &str) -> Proof {
    let text = kernel(op);
    assert!(text.contains(from), "{from}");
    certify(&text.replacen(from, to, 1)).unwrap()
}

#[track_caller]
fn assert_refuted(proof: &Proof, said: &str) {
    match proof {
        Proof::Refuted(fault) => assert!(fault.what.contains(said), "{}", fault.what),
        Proof::Certified(_) | Proof::Unknown(_) => panic!("not refuted: {proof:?}"),
    }
}

#[test]
fn the_canonical_tree_is_certified_with_what_its_combines_do() {
    for (op, pattern) in [
        ("add.rn.f32", "add.rn.f32(L0, R0)"),
        ("sub.rn.f32", "add.rn.f32(-(R0), L0)"),
        ("mul.rn.f32", "mul.rn.f32(L0, R0)"),
        ("div.rn.f32", "div.rn.f32(L0, R0)"),
    ] {
        let Proof::Certified(all) = certify(&kernel(op)).unwrap() else { panic!("{op}") };
        let [certificate] = &all[..] else { panic!("{all:?}") };
        assert_eq!((certificate.pin, certificate.extent), (0, 8));
        // Seven combines for each of sixteen rows; a result in every thread.
        assert_eq!((certificate.combines, certificate.results), (16 * 7, 32), "{op}");
        assert_eq!(
            (&certificate.pattern[..], &certificate.until),
            (&[pattern.to_owned()][..], &None)
        );
    }
}

#[test]
fn a_wrong_shuffle_is_refuted() {
    // Lane 2 holds another row.
    let proof = mutant("add.rn.f32", "%f31, 1, 31", "%f31, 2, 31");
    assert_refuted(&proof, "combines elements 0 to 3 at row-major position");
    // Both sides are one's own.
    let proof = mutant("add.rn.f32", "%f31, 1, 31", "%f31, 0, 31");
    assert_refuted(&proof, "combines elements 0 to 3 with nothing else where");
}

#[test]
fn elements_of_another_tree_are_refuted() {
    let swapped = kernel("add.rn.f32").replace("%f20, %f10, %f11", "%f20, %f10, %f12");
    let proof = certify(&swapped).unwrap();
    let said = "combines element 0 with element 2 where the canonical tree combines element 0 with \
                element 1";
    assert_refuted(&proof, said);
    let Proof::Refuted(fault) = proof else { unreachable!("it is refuted") };
    assert_eq!((fault.pin, fault.at.line), (0, 26), "the mark after the combine");
}

#[test]
fn missing_and_repeated_elements_are_refuted() {
    let proof = mutant("add.rn.f32", "%f22, %f12, %f13", "%f22, %f12, %f12");
    assert_refuted(
        &proof,
        "combines element 2 with nothing else where the canonical tree combines",
    );
    let proof = mutant("add.rn.f32", "%f30, %f21, %f23", "%f30, %f21, %f13");
    assert_refuted(&proof, "combines elements 0 to 1 with element 3 where");
    let proof = mutant("add.rn.f32", "add.rn.f32 %f30, %f21, %f23", "add.rn.f32 %f30, %f1, %f2");
    assert_refuted(&proof, "a combine takes in no element");
    // A combine without a mark of its own is two at once.
    let proof = mutant(
        "add.rn.f32",
        "mov.b32 %f21, %f20; // bitstable.combine pin=0 narrow=0",
        "mov.b32 %f21, %f20;",
    );
    assert_refuted(&proof, "at once, where a combine takes two parts");
}

#[test]
fn the_lower_part_is_the_left_operand() {
    let proof = mutant("sub.rn.f32", "%f22, %f12, %f13", "%f22, %f13, %f12");
    assert_refuted(
        &proof,
        "as add.rn.f32(-(L0), R0), but element 0 and element 1 as add.rn.f32(-(R0), L0)",
    );
    let proof = mutant("div.rn.f32", "%f50, %f41, %f42", "%f50, %f31, %f40");
    assert_refuted(&proof, "combines elements 0 to 3 and elements 4 to 7 as div.rn.f32(R0, L0)");
    // An addition commutes.
    assert!(matches!(
        mutant("add.rn.f32", "%f50, %f41, %f42", "%f50, %f31, %f40"),
        Proof::Certified(_)
    ));
}

#[test]
fn roundings_that_are_not_written_are_refuted() {
    let proof = mutant("add.rn.f32", "add.rn.f32 %f20", "add.f32 %f20");
    assert_refuted(&proof, "a combine has a `add.rn.f32` whose rounding is not written");
    let proof = mutant("add.rn.f32", "add.rn.f32 %f50", "add.f32 %f50");
    assert_refuted(
        &proof,
        "combines elements 0 to 3 and elements 4 to 7 as open add.rn.f32(L0, R0)",
    );
    let proof = mutant("div.rn.f32", "div.rn.f32 %f20", "div.full.f32 %f20");
    assert_refuted(&proof, "is not IEEE");
    let proof = mutant("add.rn.f32", "add.rn.f32 %f20", "add.rn.ftz.f32 %f20");
    assert_refuted(&proof, "`.ftz` is not IEEE");
}

#[test]
fn contractions_are_refuted() {
    let text = kernel("add.rn.f32");
    let contracted =
        text.replace("add.rn.f32 %f20, %f10, %f11", "fma.rn.f32 %f20, %f10, %f10, %f11");
    assert_refuted(&certify(&contracted).unwrap(), "the product is contracted into the addition");
    // A leaf's product that goes around its mark is no element.
    let around = text.replace("add.rn.f32 %f20, %f10, %f11", "fma.rn.f32 %f20, %f0, %f0, %f11");
    assert_refuted(&certify(&around).unwrap(), "combines element 1 with nothing else");
    // The function's own are allowed.
    let all = ["%f20, %f10, %f11", "%f22, %f12, %f13", "%f30, %f21, %f23", "%f50, %f41, %f42"];
    let own = all.iter().fold(text.replace("may=none", "may=fma"), |text, operands| {
        let fused: Vec<&str> = operands.split(", ").collect();
        let (to, left, right) = (fused[0], fused[1], fused[2]);
        let new = format!("fma.rn.f32 {to}, {left}, {left}, {right}");
        text.replace(&format!("add.rn.f32 {operands}"), &new)
    });
    let Proof::Certified(all) = certify(&own).unwrap() else { panic!("{own}") };
    assert_eq!(all[0].pattern, ["fma.rn.f32(L0, L0, R0)"]);
}

#[test]
fn results_of_another_place_are_refuted() {
    let proof = mutant("add.rn.f32", "%f52, %f51", "%f52, %f31");
    assert_refuted(&proof, "a result holds elements 0 to 3 where elements 0 to 7 are reduced");
    let proof = mutant("add.rn.f32", "at=0 lane=0,1,2,4,8", "at=1 lane=0,1,2,4,8");
    assert_refuted(&proof, "the result at row-major position 1 is that of position 0");
    let proof =
        mutant("add.rn.f32", "mov.b32 %f52, %f51", "mul.f32 %f53, %f51, %f51; mov.b32 %f52, %f53");
    assert!(matches!(proof, Proof::Unknown(_)), "two instructions on a mark's line: {proof:?}");
    let before = "add.f32 %f53, %f51, %f0;\n  mov.b32 %f52, %f53";
    let proof = mutant("add.rn.f32", "mov.b32 %f52, %f51", before);
    assert_refuted(&proof, "is not what their last combine made, but open add.rn.f32(");
}

#[test]
fn elements_of_an_earlier_execution_are_refuted() {
    // A loop of two iterations, in which the lower half of the second is that of the first.
    let text = kernel("add.rn.f32");
    let begin =
        "  mov.u32 %r4, 0;\n  mov.b32 %f60, 0f00000000;\n$again:\n  ld.global.f32 %f0, [%rd4];";
    let end = "  mov.b32 %f60, %f31;\n  add.u32 %r4, %r4, 1;\n  setp.ne.u32 %p2, %r4, 2;\n  @%p2 bra $again;\n  ret;";
    let looped = text.replace("  ld.global.f32 %f0, [%rd4];", begin).replace("  ret;", end);
    let Proof::Certified(all) = certify(&looped).unwrap() else { panic!("{looped}") };
    assert_eq!((all[0].combines, all[0].results), (2 * 16 * 7, 2 * 32));
    let late = "selp.f32 %f45, %f60, %f31, %p2;\n  setp.ne.u32 %p3, %r4, 0;\n  selp.f32 %f31, %f60, %f31, %p3;\n  shfl.sync.bfly";
    let stale = looped.replace("shfl.sync.bfly", late);
    assert_refuted(&certify(&stale).unwrap(), "of an earlier execution");
}

#[test]
fn what_cannot_be_followed_is_no_certificate() {
    let proof =
        mutant("add.rn.f32", "mul.wide.u32 %rd3", "mov.u32 %r7, %smid;\n  mul.wide.u32 %rd3");
    assert!(matches!(proof, Proof::Unknown(_)), "{proof:?}");
    // After all marks, it does not matter to them; it is told.
    let text = kernel("add.rn.f32").replace("  ret;", "  trap;");
    let Proof::Certified(all) = certify(&text).unwrap() else { panic!("a trap at the end") };
    assert_eq!(all[0].until.as_ref().map(|stuck| stuck.what.as_str()), Some("a trap"));
}

#[test]
fn engines_beside_the_threads_are_passed_over() {
    let text = kernel("add.rn.f32").replace(
        "  ld.global.f32 %f0, [%rd4];",
        "  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0,%f1,%f2,%f3}, %rd1, %rd2, 0, 1, 1, 0, 0;\n  wgmma.wait_group.sync.aligned 0;",
    );
    let loads = ["[%rd4+4]", "[%rd4+8]", "[%rd4+12]"];
    let text: String = text
        .lines()
        .filter(|line| !loads.iter().any(|l| line.contains(l)))
        .map(|l| format!("{l}\n"))
        .collect();
    assert!(matches!(certify(&text).unwrap(), Proof::Certified(_)), "{:?}", certify(&text));
}

#[test]
fn narrow_values_are_known_without_what_is_above_them() {
    // Booleans, shuffled as words and masked on one side alone.
    let text = kernel("or.b16")
        .replace("%f", "%h")
        .replace(".reg .f32", ".reg .b16")
        .replace("ld.global.f32", "ld.global.u8")
        .replace("st.global.f32", "st.global.u8")
        .replace("narrow=0", "narrow=1")
        .replace("mov.b32", "mov.b16")
        .replace("selp.f32", "selp.b16")
        .replace(
            "shfl.sync.bfly.b32 %h40, %h31, 1, 31, -1;",
            "cvt.u32.u16 %r4, %h31;\n  and.b32 %r4, %r4, 255;\n  shfl.sync.bfly.b32 %r5, %r4, 1, 31, -1;\n  \
             cvt.u16.u32 %h40, %r5;\n  and.b16 %h40, %h40, 1;",
        );
    let Proof::Certified(all) = certify(&text).unwrap() else { panic!("{:?}", certify(&text)) };
    // The last is another term in each of two lanes.
    assert_eq!(all[0].combines, 16 * 8);
}

#[test]
fn comparisons_have_one_spelling() {
    // The larger of two, NaN on the right; each combine is spelled in another way.
    let text = kernel("add.rn.f32");
    let spelled = |text: String, operands: &str, compare: &str, choose: &str| {
        let [to, left, right] = operands.split(", ").collect::<Vec<_>>()[..] else {
            panic!("{operands}")
        };
        let new = format!("setp.{compare}.f32 %p3, L, R;\n  selp.f32 {to}, {choose}, %p3;");
        let new = new.replace('L', left).replace('R', right);
        text.replace(&format!("add.rn.f32 {operands};"), &new)
    };
    let text = spelled(text, "%f20, %f10, %f11", "gt", "L, R");
    let text = spelled(text, "%f22, %f12, %f13", "leu", "R, L");
    let wrong = spelled(text.clone(), "%f30, %f21, %f23", "le", "R, L");
    let text = spelled(text, "%f30, %f21, %f23", "gt", "L, R");
    let lt =
        |text: &str| text.replace("setp.gt.f32 %p3, %f21, %f23", "setp.lt.f32 %p3, %f23, %f21");
    let (text, wrong) = (lt(&spelled(text, "%f50, %f41, %f42", "gt", "L, R")), wrong);
    let Proof::Certified(all) = certify(&text).unwrap() else { panic!("{:?}", certify(&text)) };
    assert_eq!(all[0].pattern, ["select(setp.gt.f32(L0, R0), L0, R0)"]);
    // Not a NaN's way.
    assert_refuted(
        &certify(&wrong).unwrap(),
        "combines elements 0 to 1 and elements 2 to 3 as select(setp.le.f32",
    );
}
