//! What the executor does not run is refused when a kernel is decoded, by name, with its place.

use bitstable_ptx::{exec::Program, syntax};

/// Decodes a kernel whose body is `declarations` and, on line 8, one instruction.
fn refusal(declarations: &str, instruction: &str) -> String {
    let text = format!(
        ".version 8.8\n.target sm_100a\n.address_size 64\n.visible .entry k(.param .u64 p)\n{{\n\
         .reg .pred %p<3>; .reg .b32 %r<9>; .reg .b64 %rd<5>; .reg .b128 %rq<3>;\n{declarations}\n\
         {instruction}\nret;\n}}\n"
    );
    let module = syntax::parse(&text).unwrap_or_else(|error| panic!("{instruction}\n{error}"));
    Program::new(&module, None).expect_err(instruction).to_string()
}

#[test]
fn what_is_not_executed_is_named_with_its_line() {
    let refused = [
        ("wgmma.fence.sync.aligned;", "wgmma.fence"),
        ("wgmma.wait_group.sync.aligned 0;", "wgmma.wait_group"),
        ("tcgen05.fence::before_thread_sync;", "tcgen05.fence"),
        ("cp.async.bulk.commit_group;", "cp.async.bulk"),
        ("cp.async.bulk.wait_group.read 0;", "cp.async.bulk"),
        ("barrier.cluster.arrive.aligned;", "barrier.cluster"),
        ("mapa.shared::cluster.u32 %r1, %r2, %r3;", "mapa"),
        ("getctarank.shared::cluster.u32 %r1, %r2;", "getctarank"),
        ("ld.shared::cluster.b32 %r1, [%r2];", "shared::cluster"),
        ("atom.global.exch.b128 %rq1, [%rd1], %rq2;", "atom.exch.b128"),
        ("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r1, %r2}, [%r3];", "ldmatrix.m16n16"),
        ("mov.b64 %rd1, p;", "kernel parameter `p`"),
    ];
    for (instruction, name) in refused {
        let said = refusal("", instruction);
        assert!(said.starts_with("line 8, column 1: "), "{instruction}: {said}");
        assert!(said.contains(name) && said.contains("not executed"), "{instruction}: {said}");
    }
}

#[test]
fn a_call_that_leaves_the_module_is_named() {
    let text = ".version 8.8\n.target sm_90\n.address_size 64\n.extern .func elsewhere\n();\n\
                .visible .entry k()\n{\ncall.uni elsewhere, ();\nret;\n}\n";
    let module = syntax::parse(text).unwrap();
    let said = Program::new(&module, None).unwrap_err().to_string();
    assert!(said.contains("line 8") && said.contains("`elsewhere` is not executed"), "{said}");
}
