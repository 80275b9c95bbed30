//! The boundary as a C caller sees it, and what must not get past it.

use std::{ffi::CStr, fs, mem::MaybeUninit, path::PathBuf, thread};

use super::*;

fn kernel(name: &str) -> String {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("passes/tests/data");
    fs::read_to_string(data.join(name)).expect("the kernel is there")
}

/// One call through the C functions: status, text, report.
fn call(module: &[u8], pipeline: &[u8]) -> (u32, String, serde_json::Value) {
    let mut reply = MaybeUninit::<Reply>::uninit();
    // SAFETY: the buffers are what their lengths say; the reply is filled before it is read, and
    // its buffers are copied before they are freed.
    unsafe {
        let (m, p) = (module.as_ptr().cast(), pipeline.as_ptr().cast());
        bitstable_rewrite(m, module.len(), p, pipeline.len(), reply.as_mut_ptr());
        let mut reply = reply.assume_init();
        let read = |data, len| text(data, len).expect("a reply is UTF-8").to_owned();
        let answer = (read(reply.text, reply.text_len), read(reply.report, reply.report_len));
        let status = reply.status;
        bitstable_free(&mut reply);
        bitstable_free(&mut reply);
        assert!(reply.text.is_null() && reply.report.is_null());
        let report = serde_json::from_str(&answer.1).expect("a report is JSON");
        (status, answer.0, report)
    }
}

fn first_message(report: &serde_json::Value) -> &str {
    report["diagnostics"][0]["message"].as_str().expect("a diagnostic has a message")
}

#[test]
fn the_version_is_the_workspace_s() {
    // SAFETY: the string is static and ends in a NUL.
    let version = unsafe { CStr::from_ptr(bitstable_version()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
}

#[test]
fn rewritten() {
    let (status, text, report) = call(kernel("rowsum_sm90.mlir").as_bytes(), b"pin-reduce");
    assert_eq!(status, 0);
    assert!(text.contains("nvvm.shfl.sync") && !text.contains("tt.reduce"));
    assert_eq!(report["reductions"][0]["file"], "kernel.py");
    assert_eq!(report["reductions"][0]["line"], 92);
}

#[test]
fn refused() {
    let (status, text, report) = call(b"nonsense", b"pin-reduce");
    assert_eq!((status, text.as_str()), (1, ""));
    assert!(first_message(&report).starts_with("the module does not parse"));
    assert_eq!(report["diagnostics"][0]["file"], serde_json::Value::Null);
    let (status, _, report) = call(b"", b"fold");
    assert_eq!(status, 1);
    assert!(first_message(&report).contains("there is no pass fold; the choices are"));
    let (status, _, report) = call(b"\xff\xfe", b"pin-reduce");
    assert_eq!((status, first_message(&report)), (1, "the module is not UTF-8"));
    assert_eq!(call(b"", b"").0, 1);
}

#[test]
fn an_empty_module_is_one() {
    assert_eq!(call(b"", b"pin-reduce").0, 0);
}

#[test]
fn our_own_faults_are_replies() {
    for (kind, said) in [
        ("panic", "panic: "),
        ("abort", "crashed with SIGABRT"),
        ("segv", "crashed with SIGSEGV"),
        ("overflow", "crashed with SIGSEGV"),
    ] {
        let (status, text, report) = call(b"", format!("crash-test{{kind={kind}}}").as_bytes());
        assert_eq!((status, text.as_str()), (2, ""));
        assert!(first_message(&report).contains(said), "{report}");
        let help = report["diagnostics"][0]["help"].as_str();
        assert!(help.is_some_and(|h| h.contains("please report")), "{report}");
        assert_eq!(call(b"", b"pin-reduce").0, 0);
    }
}

/// Whatever the text, there is an answer; what is cut off or mixed up is the input's fault.
#[test]
fn damaged_kernels() {
    let kernel = kernel("argmax_sm90.mlir");
    let mut random: u64 = 1;
    let mut below = |n: usize| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (random >> 33) as usize % n
    };
    for _ in 0..150 {
        let mut bytes = kernel.clone().into_bytes();
        for _ in 0..=below(3) {
            let (from, to, len) = (below(bytes.len()), below(bytes.len()), below(60));
            let piece = bytes[from..bytes.len().min(from + len)].to_vec();
            let end = bytes.len().min(to + below(60));
            bytes.splice(to..end, piece);
        }
        let (status, ..) = call(&bytes, b"shield-reduce,pin-reduce");
        assert!(status <= 1, "{}", String::from_utf8_lossy(&bytes));
    }
}

/// The deepest nesting that is read fits the stack many times over.
#[test]
fn deep_nesting() {
    let nested = |depth: usize| {
        let (open, close) = ("\"a.b\"() ({\n".repeat(depth), "}) : () -> ()\n".repeat(depth));
        format!("\"builtin.module\"() ({{\n{open}{close}}}) : () -> ()")
    };
    assert_eq!(call(nested(490).as_bytes(), b"pin-reduce").0, 0);
    assert_eq!(call(nested(100_000).as_bytes(), b"pin-reduce").0, 1);
    let array = format!(
        "\"builtin.module\"() ({{\n^bb0:\n}}) {{a.b = {}{}}} : () -> ()",
        "[".repeat(900),
        "]".repeat(900)
    );
    assert_eq!(call(array.as_bytes(), b"pin-reduce").0, 0);
}

#[test]
fn calls_at_once_agree() {
    let kernel = kernel("welford_gfx942.mlir");
    let expected = call(kernel.as_bytes(), b"pin-reduce").1;
    thread::scope(|scope| {
        let work = || (0..5).all(|_| call(kernel.as_bytes(), b"pin-reduce").1 == expected);
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(work)).collect();
        assert!(threads.into_iter().all(|t| t.join().is_ok_and(|same| same)));
    });
}
