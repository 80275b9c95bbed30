//! Small combine functions, and the operations that they become.

use melior::ir::operation::OperationLike;

use crate::{
    build::Builder,
    emit::combine::Combine,
    ir::{self, Op},
    refusal::{Refusal, Refused},
    session::Session,
    target::Target,
};

fn nvidia(capability: u32) -> Target {
    Target::Nvidia { capability }
}

fn amd() -> Target {
    Target::Amd { arch: "gfx942".into(), lanes: 64 }
}

/// A module with a reduction of one operand whose combine function is `body`, on `%a` and `%b`.
fn module(ty: &str, body: &str) -> String {
    format!(
        r#""builtin.module"() ({{
  %x, %y = "test.leaves"() : () -> ({ty}, {ty})
  %r = "tt.reduce"(%x) ({{
  ^bb0(%a: {ty}, %b: {ty}):
    {body}
  }}) : ({ty}) -> {ty}
}}) : () -> ()"#
    )
}

/// The operations in front of the reduction after one combine, those in regions indented.
fn emitted(target: &Target, ty: &str, body: &str) -> Result<Vec<String>, Refused> {
    let session = Session::new();
    let module = session.parse(&module(ty, body)).expect("the test's module parses");
    let operations = ir::walk(ir::root(&module));
    let find = |name: &str| -> Op<'_> {
        *operations.iter().find(|&&op| ir::name(op) == name).expect("the test's operation")
    };
    let (leaves, reduce) = (find("test.leaves"), find("tt.reduce"));
    let block = ir::blocks(reduce.regions().next().expect("one region"))[0];
    let combine = Combine::new(block, target)?;
    let leaves = ir::results(leaves);
    let b = Builder::before(&session, &reduce);
    let values = combine.apply(b, &leaves[..1], &leaves[1..]);
    assert_eq!(values.len(), 1);
    let outer = reduce.block().expect("it stands in a block");
    let mut names = Vec::new();
    for operation in ir::operations(outer) {
        if operation == reduce {
            break;
        }
        for inner in ir::walk(operation) {
            let indent = if inner == operation { "" } else { "  " };
            names.push(format!("{indent}{}", described(inner)));
        }
    }
    names.remove(0);
    Ok(names)
}

/// The name, and what an intrinsic or an assembly is.
fn described(operation: Op<'_>) -> String {
    let string = |name: &str| {
        operation.attribute(name).ok().and_then(crate::text::string).filter(|s| !s.is_empty())
    };
    let what = string("intrin").or_else(|| string("asm_string"));
    match what {
        Some(what) => what,
        None => ir::name(operation).to_owned(),
    }
}

fn one(target: &Target, ty: &str, op: &str) -> Vec<String> {
    let body = format!(
        r#"%s = "{op}"(%a, %b) : ({ty}, {ty}) -> {ty}
    "tt.reduce.return"(%s) : ({ty}) -> ()"#
    );
    emitted(target, ty, &body).expect("it is emitted")
}

fn refusal(target: &Target, ty: &str, body: &str) -> String {
    let body = format!("{body}\n    \"tt.reduce.return\"(%a) : ({ty}) -> ()");
    match emitted(target, ty, &body).map_err(|refused| refused.refusal) {
        Err(Refusal::CombineOp { op, why }) => format!("{op}: {why}"),
        other => panic!("not refused: {other:?}"),
    }
}

#[test]
fn arithmetic_rounds_once_on_nvidia() {
    assert_eq!(one(&nvidia(90), "f32", "arith.addf"), ["llvm.nvvm.add.rn.f"]);
    assert_eq!(one(&nvidia(90), "f64", "arith.mulf"), ["llvm.nvvm.mul.rn.d"]);
    assert_eq!(one(&nvidia(90), "f32", "arith.subf"), ["sub.rn.f32 $0, $1, $2;"]);
    assert_eq!(one(&nvidia(90), "f32", "arith.divf"), ["div.rn.f32 $0, $1, $2;"]);
    assert_eq!(one(&nvidia(90), "f16", "arith.addf"), ["add.rn.f16 $0, $1, $2;"]);
    assert_eq!(one(&nvidia(90), "bf16", "arith.mulf"), ["mul.rn.bf16 $0, $1, $2;"]);
    assert_eq!(
        one(&nvidia(80), "bf16", "arith.addf"),
        ["llvm.mlir.constant", "fma.rn.bf16 $0, $1, $2, $3;"]
    );
    let through_f32 = ["llvm.fpext", "llvm.fpext", "llvm.nvvm.add.rn.f", "llvm.fptrunc"];
    assert_eq!(one(&nvidia(75), "bf16", "arith.addf"), through_f32);
}

#[test]
fn arithmetic_rounds_once_on_amd() {
    const FADD: &str = "llvm.intr.experimental.constrained.fadd";
    for ty in ["f16", "f32", "f64"] {
        assert_eq!(one(&amd(), ty, "arith.addf"), [FADD]);
    }
    assert_eq!(
        one(&amd(), "bf16", "arith.addf"),
        ["llvm.fpext", "llvm.fpext", FADD, "llvm.fptrunc"]
    );
    // The division, and the fence, which is assembly without text.
    assert_eq!(one(&amd(), "f32", "arith.divf"), ["llvm.fdiv", "llvm.inline_asm"]);
}

#[test]
fn every_spelling_of_a_division_is_correctly_rounded() {
    for op in ["arith.divf", "tt.precise_divf", "tt.approx_divf"] {
        assert_eq!(one(&nvidia(90), "f32", op), ["div.rn.f32 $0, $1, $2;"]);
    }
}

#[test]
fn what_does_not_round_is_copied() {
    let names = ["arith.maxnumf", "arith.minimumf"];
    for name in names {
        assert_eq!(one(&nvidia(90), "f32", name), [name]);
        assert_eq!(one(&amd(), "bf16", name), [name]);
    }
    assert_eq!(one(&amd(), "i32", "arith.xori"), ["arith.xori"]);
}

/// An expansion may contain an addition that a leaf's product would be contracted with.
#[test]
fn approximations_take_fenced_operands() {
    let body = r#"%e = "math.exp"(%a) : (f32) -> f32
    %s = "arith.addf"(%e, %b) : (f32, f32) -> f32
    %t = "math.exp"(%s) : (f32) -> f32
    "tt.reduce.return"(%t) : (f32) -> ()"#;
    let emitted = emitted(&nvidia(90), "f32", body).expect("it is emitted");
    let (add, exp) = ("llvm.nvvm.add.rn.f", "math.exp");
    // The second one's operand was pinned, and is its own fence.
    assert_eq!(emitted, ["llvm.mlir.constant", add, exp, add, exp]);
}

#[test]
fn branches_are_copied_and_pinned_inside() {
    let body = r#"%c = "arith.cmpf"(%a, %b) {predicate = 2 : i64} : (f32, f32) -> i1
    %s = "scf.if"(%c) ({
      %d = "arith.subf"(%a, %b) : (f32, f32) -> f32
      "scf.yield"(%d) : (f32) -> ()
    }, {
      %m = "arith.mulf"(%a, %b) : (f32, f32) -> f32
      %e = "math.log"(%b) : (f32) -> f32
      %p = "arith.addf"(%m, %e) : (f32, f32) -> f32
      "scf.yield"(%p) : (f32) -> ()
    }) : (i1) -> f32
    "tt.reduce.return"(%s) : (f32) -> ()"#;
    let emitted = emitted(&nvidia(90), "f32", body).expect("it is emitted");
    assert_eq!(
        emitted,
        [
            "arith.cmpf",
            "scf.if",
            "  sub.rn.f32 $0, $1, $2;",
            "  scf.yield",
            "  llvm.nvvm.mul.rn.f",
            "  llvm.mlir.constant",
            "  llvm.nvvm.add.rn.f",
            "  math.log",
            "  llvm.nvvm.add.rn.f",
            "  scf.yield",
        ]
    );
}

#[test]
fn a_fused_multiply_add_stays_one_where_it_exists() {
    let body = |ty: &str| {
        format!(
            r#"%s = "math.fma"(%a, %b, %a) : ({ty}, {ty}, {ty}) -> {ty}
    "tt.reduce.return"(%s) : ({ty}) -> ()"#
        )
    };
    let on = |target: &Target, ty: &str| emitted(target, ty, &body(ty)).expect("it is emitted");
    assert_eq!(on(&nvidia(75), "f32"), ["fma.rn.f32 $0, $1, $2, $3;"]);
    assert_eq!(on(&nvidia(80), "bf16"), ["fma.rn.bf16 $0, $1, $2, $3;"]);
    assert_eq!(on(&amd(), "f16"), ["llvm.intr.experimental.constrained.fma"]);
    for target in [nvidia(75), amd()] {
        let refused = emitted(&target, "bf16", &body("bf16")).expect_err("two roundings");
        assert!(matches!(refused.refusal, Refusal::CombineOp { op, .. } if op == "math.fma"));
    }
}

/// One row for each reason.
#[test]
fn refusals() {
    let on_nvidia = |body: &str| refusal(&nvidia(90), "f32", body);
    let rows = [
        (r#"%s = "arith.remf"(%a, %b) : (f32, f32) -> f32"#, "arith.remf: its expansion rounds"),
        (r#"%s = "tt.call"(%a) : (f32) -> f32"#, "tt.call: a call that was not inlined"),
        (r#""tt.assert"(%c) : (i1) -> ()"#, "tt.assert: an effect"),
        (r#"%s = "test.new"(%a) : (f32) -> f32"#, "test.new: it is not known"),
        (
            r#"%s = "arith.addf"(%a, %b) {fastmath = #arith.fastmath<contract>} : (f32, f32) -> f32"#,
            "arith.addf: its fastmath flags",
        ),
        (
            r#"%s = "tt.fp_to_fp"(%a) : (f32) -> f8E5M2"#,
            "tt.fp_to_fp: 8-bit floats are not rounded alike",
        ),
        (
            r#"%s = "arith.truncf"(%a) {roundingmode = 3 : i32} : (f32) -> bf16"#,
            "arith.truncf: it does not round to nearest even",
        ),
        (
            r#"%i = "arith.fptosi"(%a) : (f32) -> i32
    %s = "arith.sitofp"(%i) : (i32) -> bf16"#,
            "arith.sitofp: an integer of more than 24 bits",
        ),
        (
            r#"%s = "tt.elementwise_inline_asm"(%a) {pure = false} : (f32) -> f32"#,
            "tt.elementwise_inline_asm: it may have effects",
        ),
        (
            r#"%s = "scf.if"(%c) ({
      %d = "tt.load"(%a) : (f32) -> f32
      "scf.yield"(%d) : (f32) -> ()
    }, {
      "scf.yield"(%a) : (f32) -> ()
    }) : (i1) -> f32"#,
            "tt.load: a memory access",
        ),
    ];
    for (body, expected) in rows {
        let body = format!("%c = \"arith.cmpf\"(%a, %b) : (f32, f32) -> i1\n    {body}");
        let found = on_nvidia(&body);
        assert!(found.starts_with(expected), "{found:?} should start with {expected:?}");
    }
}
