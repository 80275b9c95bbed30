//! What parses: the corpus of Triton's PTX, and PTX as people write it.

use std::{fs, path::PathBuf};

use bitstable_ptx::{
    ir::{Instruction, Linkage, Module, Op, Operand, Scalar, Space, Special},
    syntax::{parse, print, print_instruction},
};

fn corpus() -> Vec<(String, String)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/corpus");
    let mut files: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .collect();
    files.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read_to_string(path).unwrap())
    };
    files.into_iter().map(read).collect()
}

fn parsed(text: &str) -> Module {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// A module with one kernel around `body`.
fn kernel(body: &str) -> Module {
    let head = ".version 8.7\n.target sm_90a\n.address_size 64\n";
    parsed(&format!("{head}.visible .entry k(.param .u64 a)\n{{\n{body}\n}}\n"))
}

fn instructions(module: &Module) -> &[Instruction] {
    &module.functions.last().unwrap().body.as_ref().unwrap().instructions
}

/// The text of each instruction, as printed.
fn texts(module: &Module) -> Vec<String> {
    let body = module.functions.last().unwrap().body.as_ref().unwrap();
    body.instructions.iter().map(|one| print_instruction(body, one)).collect()
}

#[test]
fn the_corpus_parses_and_prints_to_the_same() {
    let files = corpus();
    assert!(files.len() >= 12, "only {} files", files.len());
    for (name, text) in files {
        let module = parse(&text).unwrap_or_else(|error| panic!("{name}:{error}"));
        let printed = print(&module);
        let again = parse(&printed).unwrap_or_else(|error| panic!("{name}, printed:{error}"));
        assert_eq!(again, module, "{name}");
        assert!(instructions(&module).len() > 10, "{name}");
    }
}

#[test]
fn every_instruction_of_the_corpus_is_there() {
    for (name, text) in corpus() {
        let code = text.split("\t.section").next().unwrap();
        // A statement is what ends with a semicolon and does not begin with a directive.
        let statements = code
            .lines()
            .map(|line| line.split("//").next().unwrap().trim())
            .flat_map(|line| line.split_inclusive(';'))
            .filter(|part| part.ends_with(';'))
            .map(|part| part.trim().trim_start_matches(['{', ' ', '\t']))
            .filter(|part| part.len() > 1 && !part.starts_with('.') && !part.starts_with("$L__"))
            .count();
        let module = parsed(&text);
        let bodies = module.functions.iter().filter_map(|function| function.body.as_ref());
        let found: usize = bodies.map(|body| body.instructions.len()).sum();
        assert_eq!(found, statements, "{name}");
    }
}

#[test]
fn module_directives() {
    let module = parsed(
        ".version 8.7\n.target sm_90a, debug\n.address_size 64\n\
         .extern .shared .align 16 .b8 global_smem[];\n\
         .global .align 1 .b8 text[3] = {104, 105, 0};\n\
         .const .f32 half = 0f3F000000;\n\
         .visible .entry k(.param .u64 .ptr .global .align 1 a, .param .align 8 .b8 b[16])\n\
         .reqntid 128, 1, 1\n.maxnreg 64\n.explicitcluster\n{ ret; }\n\
         .file 1 \"a.py\"\n.section .debug_str\n{\n.b8 1 // {\n}\n",
    );
    assert_eq!(module.version, (8, 7));
    assert_eq!((module.target.sm, module.target.suffix), (90, Some('a')));
    assert_eq!(module.target.options, ["debug"]);
    assert_eq!(module.address_size, 64);
    let [smem, text, half] = &module.variables[..] else { panic!("{:?}", module.variables) };
    assert_eq!((smem.linkage, smem.space), (Linkage::Extern, Space::Shared));
    assert_eq!((smem.elements, smem.align), (Some(0), Some(16)));
    assert_eq!((text.elements, text.initial.as_slice()), (Some(3), b"hi\0".as_slice()));
    assert_eq!((half.elements, half.initial.as_slice()), (None, [0, 0, 0, 0x3F].as_slice()));
    let k = module.function("k").unwrap();
    assert_eq!(k.params[0].pointer.as_deref(), Some(".ptr .global .align 1"));
    assert_eq!((k.params[1].ty, k.params[1].elements), (Scalar::B8, Some(16)));
    assert_eq!(k.directive("reqntid"), Some([128, 1, 1].as_slice()));
    assert_eq!(k.directive("maxnreg"), Some([64].as_slice()));
    assert_eq!(k.directive("explicitcluster"), Some([].as_slice()));
    assert_eq!(module.files[0].path, "a.py");
    assert_eq!(module.sections, [("debug_str".to_owned(), ".b8 1 // {".to_owned())]);
    assert_eq!(parsed(&print(&module)), module);
}

#[test]
fn numbers_of_every_form() {
    let module = kernel(
        ".reg .b64 %rd<2>; .reg .f64 %fd<2>; .reg .f32 %f<2>;\n\
         mov.b64 %rd1, 0x1F; mov.b64 %rd1, 0b101; mov.b64 %rd1, 017U; mov.b64 %rd1, -1;\n\
         mov.b64 %rd1, 18446744073709551615; mov.f32 %f1, 0f3F800000; mov.f64 %fd1, 1.5e2;\n\
         mov.f64 %fd1, -0d3FF0000000000000; ret;",
    );
    let values: Vec<&Operand> =
        instructions(&module).iter().filter_map(|one| one.operands.get(1)).collect();
    assert_eq!(
        values,
        [
            &Operand::Int(31),
            &Operand::Int(5),
            &Operand::Int(15),
            &Operand::Int(u64::MAX),
            &Operand::Int(u64::MAX),
            &Operand::Float32(1.0_f32.to_bits()),
            &Operand::Float64(150.0_f64.to_bits()),
            &Operand::Float64((-1.0_f64).to_bits()),
        ]
    );
}

#[test]
fn operands_of_every_form() {
    let module = kernel(
        ".reg .pred p, q; .reg .b16 %rs<3>; .reg .b32 r, s; .reg .b64 %rd<2>;\n\
         .shared .align 4 .b8 tile[128];\n\
         mov.b32 r, {%rs1, %rs2}; mov.b32 {_, %rs1}, r; setp.lt.s32 p|q, r, 3;\n\
         shfl.sync.bfly.b32 r|p, s, 1, 31, -1; ld.shared.b32 r, [tile+16]; ld.global.u32 { r }, [ %rd1 + -8 ];\n\
         mov.u32 r, tile; mov.u32 r, %tid.y; @!p add.s32 r, r, WARP_SZ; vote.sync.any.pred q, !p, -1;\n\
         ld.param.u64 %rd1, [a]; ret;",
    );
    assert_eq!(
        texts(&module),
        [
            "mov.b32 r, {%rs1, %rs2}",
            "mov.b32 {_, %rs1}, r",
            "setp.lt.s32 p|q, r, 3",
            "shfl.sync.bfly.b32 r|p, s, 1, 31, -1",
            "ld.shared.b32 r, [tile+16]",
            "ld.global.u32 r, [%rd1+-8]",
            "mov.u32 r, tile",
            "mov.u32 r, %tid.y",
            "@!p add.s32 r, r, 32",
            "vote.sync.any.pred q, !p, -1",
            "ld.param.u64 %rd1, [a]",
            "ret",
        ]
    );
    assert_eq!(instructions(&module)[7].operands[1], Operand::Special(Special::Tid(1)));
    assert_eq!(parsed(&print(&module)), module);
}

#[test]
fn blocks_have_their_own_names() {
    // Two assembly blocks with the same register and the same label, the second nested; the label
    // is used before it stands.
    let module = kernel(
        ".reg .b32 t; .reg .pred p;\n\
         mov.u32 t, 1;\n\
         { .reg .pred t; wait: setp.eq.u32 t, 1, 1; @!t bra wait; }\n\
         { .reg .b64 t; bra wait; { .reg .b16 t; mov.b16 t, 2; } mov.b64 t, 3; wait: }\n\
         mov.u32 t, 4; ret;",
    );
    assert_eq!(
        texts(&module),
        [
            "mov.u32 t, 1",
            "setp.eq.u32 t$1, 1, 1",
            "@!t$1 bra wait",
            "bra wait$1",
            "mov.b16 t$2, 2",
            "mov.b64 t$3, 3",
            "mov.u32 t, 4",
            "ret",
        ]
    );
    assert_eq!(parsed(&print(&module)), module);
}

#[test]
fn a_jump_table_names_labels_before_they_stand() {
    let module = kernel(
        ".reg .b32 %r<2>;\n JT: .branchtargets L0, L1;\n mov.u32 %r1, %ctaid.x;\n\
         brx.idx %r1, JT;\n L0: ret;\n L1: trap;",
    );
    let body = module.functions[0].body.as_ref().unwrap();
    let targets = body.jump_tables[0].targets.iter();
    let targets: Vec<u32> = targets.map(|id| body.labels[id.index()].at).collect();
    assert_eq!(targets, [2, 3]);
    assert!(matches!(body.instructions[1].operands[1], Operand::Table(_)));
    assert_eq!(parsed(&print(&module)), module);
}

#[test]
fn a_function_declared_and_defined_is_one() {
    let module = parsed(
        ".version 8.7\n.target sm_80\n.address_size 64\n\
         .extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n\
         .func (.param .b32 r) double(.param .b32 x);\n\
         .visible .entry k()\n{ .reg .b32 %r<3>; { .param .b32 in; .param .b32 out;\n\
         st.param.b32 [in], %r1; call.uni (out), double, (in); ld.param.b32 %r2, [out]; } ret; }\n\
         .func (.param .b32 r) double(.param .b32 x)\n\
         { .reg .b32 %r<2>; ld.param.b32 %r1, [x]; add.s32 %r1, %r1, %r1;\n\
         st.param.b32 [r], %r1; ret; }\n",
    );
    let names: Vec<(&str, bool)> = module
        .functions
        .iter()
        .map(|function| (function.name.as_str(), function.body.is_some()))
        .collect();
    assert_eq!(names, [("vprintf", false), ("k", true), ("double", true)]);
    let k = module.function("k").unwrap().body.as_ref().unwrap();
    let call = &k.instructions[1];
    assert_eq!(call.op, Op::Call { uni: true });
    let symbol = |name: &str| Operand::Symbol { name: name.to_owned(), offset: 0 };
    assert_eq!(
        call.operands,
        [Operand::List(vec![symbol("out")]), symbol("double"), Operand::List(vec![symbol("in")])]
    );
    let printed = print(&module);
    assert_eq!(parsed(&printed), module);
    assert_eq!(printed.matches("double(").count(), 2, "declared before it is called:\n{printed}");
}

#[test]
fn positions_and_source_lines() {
    let module = parsed(
        ".version 8.7\n.target sm_80\n.visible .entry k()\n{\n\t.reg .pred %p<2>;\n\
         \tret;\n\t.loc 1 20 5, function_name $L__info0, inlined_at 1 30 7\n\t@%p1 trap;\n}\n",
    );
    let [first, second] = instructions(&module) else { panic!() };
    assert_eq!((first.at.line, first.at.column, first.source), (6, 2, None));
    assert_eq!((second.at.line, second.at.column), (8, 7));
    let source = second.source.unwrap();
    assert_eq!((source.file, source.line, source.column), (1, 20, 5));
}

/// LLVM counts lines up inside inline assembly; only the first is the user's.
#[test]
fn instructions_of_inline_assembly_have_its_line() {
    let module = kernel(
        "\t.reg .b32 %r<2>;\n\t.loc 1 31 9\n\tmov.b32 %r0, 0;\n\t.loc 1 32 24\n\
         \t// begin inline asm\n\t.loc 1 32 24 // k.py:32:24\n\tmov.b32 %r0, 1;\n\
         \t.loc 1 33 24\n\tmov.b32 %r1, 2;\n\t// end inline asm\n\
         \t// begin inline asm\n\t.loc 1 35 24\n\tmov.b32 %r0, 1;\n\t// end inline asm\n\
         \t.loc 1 40 5\n\tret;",
    );
    let lines = instructions(&module).iter().map(|one| one.source.unwrap().line);
    assert_eq!(lines.collect::<Vec<_>>(), [31, 32, 32, 35, 40]);
    let printed = parsed(&print(&module));
    assert_eq!(printed, module);
}

/// A kernel in the manner of CUDA authors: comments, names without `%`, typed registers.
#[test]
fn ptx_written_by_hand() {
    let module = parsed(
        r#"
        /* sums a tile */ .version 8.0
        .target sm_80
        .address_size 64
        .visible .entry sum(.param .u64 input, .param .u64 output, .param .u32 n)
        .maxntid 256, 1, 1 .minnctapersm 2
        {
            .reg .f32 %f<5>, total; .reg .u32 tid, count; .reg .pred inside;
            .reg .u64 at, from; .reg .s32 left;
            .shared .align 4 .f32 tile[256];
            ld.param.u64 from, [input]; // the pointer
            cvta.to.global.u64 from, from;
            mov.u32 tid, %tid.x;
            ld.param.u32 count, [n];
            setp.lt.u32 inside, tid, count;
            mul.wide.u32 at, tid, 4;
            add.u64 from, from, at;
            mov.f32 %f1, 0f00000000;
            @inside ld.global.ca.f32 %f1, [from];
            st.shared.f32 [tile], %f1;
            bar.sync 0;
            ld.shared.v4.f32 {%f1, %f2, %f3, %f4}, [tile+0x10];
            fma.rn.ftz.f32 total, %f1, %f2, %f3;
            mad.lo.s32 left, tid, 3, left;
            .pragma "nounroll";
        again:
            sub.s32 left, left, 1;
            setp.gt.s32 inside, left, 0;
            @inside bra.uni again;
            ld.param.u64 at, [output];
            red.global.add.f32 [at], total;
            membar.gl;
            ret;
        }
        "#,
    );
    assert_eq!(instructions(&module).len(), 21);
    assert_eq!(parsed(&print(&module)), module);
}

#[test]
fn families_that_nothing_executes_are_kept() {
    let module = kernel(
        ".reg .b32 %r<9>; .reg .b64 %rd<4>; .reg .pred %p<2>;\n\
         wgmma.fence.sync.aligned;\n\
         cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r2, %r3}], [%r4];\n\
         @%p1 tcgen05.mma.cta_group::1.kind::f16 [ %r1 + 0 ], %rd1, %rd2, %r3, %p1;\n\
         fence.proxy.async.shared::cta;\n\
         mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 \
         {%r1, %r2}, {%r3}, {%r4}, {%r5}, %r6, {0, 1}, %r7, {0, 1};\n ret;",
    );
    let ops: Vec<&Op> = instructions(&module).iter().map(|one| &one.op).collect();
    for at in [0, 1, 2, 4] {
        assert!(matches!(ops[at], Op::Opaque { .. }), "{:?}", ops[at]);
    }
    assert!(matches!(ops[3], Op::Fence { proxy: Some(_), .. }));
    assert!(matches!(instructions(&module)[1].operands[1], Operand::Bracket(_)));
    assert_eq!(parsed(&print(&module)), module);
}
