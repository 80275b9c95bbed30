//! What is refused, and how the refusal reads. `INSTA_UPDATE=always cargo test` blesses changes.

use std::fmt::Write;

use bitstable_ptx::syntax::parse;

/// A kernel with registers of every width around one wrong statement.
fn around(statement: &str) -> String {
    format!(
        ".version 8.7\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 a)\n{{\n\
         \t.reg .pred %p<4>; .reg .b16 %rs<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n\
         \t.reg .f32 %f<4>; .reg .s32 %s<4>;\n\t{statement}\n\tret;\n}}\n"
    )
}

fn messages<'a>(texts: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut all = String::new();
    for (shown, text) in texts {
        match parse(&text) {
            Ok(_) => panic!("not refused: {shown}"),
            Err(error) => writeln!(all, "{shown}\n{error}\n").unwrap(),
        }
    }
    all
}

#[test]
fn statements() {
    let wrong = [
        // Opcodes and modifiers.
        "frobnicate.b32 %r1, %r2;",
        "add.s32.foo %r1, %r2, %r3;",
        "add.sat.f64.rn.rz %rd1, %rd2, %rd3;",
        "fma.f32 %f1, %f2, %f3, %f1;",
        "add.pred %p1, %p2, %p3;",
        "shfl.bfly.b32 %r1, %r2, 1, 31, -1;",
        "ld.global.acquire.weak.b32 %r1, [%rd1];",
        "mma.sync.aligned.m16n8k99.row.col.f32.f16.f16.f32 {%r1}, {%r2}, {%r3}, {%r4};",
        "wgmma.unheard_of.sync.aligned;",
        // Operands.
        "add.s32 %r1, %r2;",
        "add.s32 %r1, %r2, %r3, %r4;",
        "add.s32 %r1, %r2, %rd3;",
        "add.f32 %s1, %f2, %f3;",
        "add.s32 %r1, %r2, 1.5;",
        "add.s32 5, %r2, %r3;",
        "ld.global.b64 %r1, [%rd1];",
        "ld.global.b32 %r1, %rd1;",
        "ld.global.v4.b32 {%r1, %r2}, [%rd1];",
        "mov.b64 %rd1, {%r1, %rs1};",
        "setp.lt.s32 %r1, %r2, %r3;",
        "lop3.b32 %r1, %r2, %r3, %r4, %r5;",
        "@%r1 ret;",
        "mov.b32 %r1, !%p9;",
        "mov.u32 %r1, %tid.w;",
        // Names.
        "mov.b32 %r1, %r8;",
        "mov.b32 %r1, nowhere;",
        ".reg .b32 again; .reg .b64 again;",
        ".shared .b8 again[4]; .reg .b64 again;",
        "here: here: ret;",
        "bra nowhere;",
        "{ inner: } bra inner;",
        "brx.idx %r1, nowhere;",
        "call nowhere, ();",
        "call %rd1, ();",
        // Tokens, numbers, sizes.
        "mov.b32 %r1, 0xZZ;",
        "mov.b32 %r1, 18446744073709551616;",
        "mov.b32 %r1 %r2;",
        "mov.b32 %r1, ?;",
        "mov.b32 %r1, %r2",
        "ld.global.b32 %r1, [%rd1+9223372036854775807+1];",
        ".shared .b8 huge[1152921504606846976];",
        ".shared .b64 huge[4294967296][4294967296];",
        ".reg .b33 %x;",
        ".unheard_of 3;",
        "proto: .callprototype _ ();",
    ];
    insta::assert_snapshot!(messages(wrong.map(|statement| (statement, around(statement)))));
}

#[test]
fn modules() {
    let head = ".version 8.7\n.target sm_80\n.address_size 64\n";
    let wrong = [
        "",
        ".version 8\n",
        ".version 8.7\n.target compute_80\n",
        ".version 8.7\n.target sm_80\n.address_size 16\n",
        "HEAD .visible .entry k(",
        "HEAD .visible .entry k() { ret;",
        "HEAD .visible .entry k() { ret; } }",
        "HEAD .visible .entry k() { ret; } .visible .entry k() { ret; }",
        "HEAD .visible .entry k(.param .u64 a, .param .u64 a) { ret; }",
        "HEAD .visible .entry k() .unheard_of 3 { ret; }",
        "HEAD .visible .visible .entry k() { ret; }",
        "HEAD .global .align 3 .b8 x[4];",
        "HEAD .global .b8 x[2] = {1, 2, 3};",
        "HEAD .global .b8 x[2] = {1, 256};",
        "HEAD .global .u64 x = k;",
        "HEAD .global .f32 x = 1;",
        "HEAD .global .pred x;",
        "HEAD .visible .entry k() { .reg .b32 x; mov.b32 x, 1; ret; } .global .b8 x;",
        "HEAD .section .debug_info { .b8 1",
        "HEAD .file 1 \"a.py",
        "HEAD .alias a, b;",
    ];
    insta::assert_snapshot!(messages(wrong.map(|text| (text, text.replace("HEAD", head)))));
}

#[test]
fn a_long_line_gives_a_short_message() {
    let text = around(&format!("/* {0} */ frobnicate; /* {0} */", "x".repeat(100_000)));
    let error = parse(&text).unwrap_err();
    assert!(error.to_string().len() < 500, "{} bytes", error.to_string().len());
    assert!(error.to_string().contains("frobnicate"));
}

#[test]
fn columns_count_bytes_and_lines_count_from_one() {
    let error = parse("\n\n  .nonsense").unwrap_err();
    assert_eq!((error.at.line, error.at.column), (3, 3));
}
