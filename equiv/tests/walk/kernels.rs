//! Kernels from a few lines of PTX.

use bitstable_equiv::{Digest, Launch, Signature, Verdict, same, signature};
use bitstable_ptx::{ir::Module, syntax::parse};

/// A kernel of `threads` threads with parameters `x`, `y`, `out` (pointers) and `n` (`.u32`), and
/// 1024 bytes of shared memory, `smem`. The lines find tid in `%t`, 4 tid in `%b4`, and the
/// addresses of element tid in `%x`, `%y` and `%o`.
pub fn kernel(threads: u32, lines: &str) -> Module {
    let text = format!(
        ".version 8.7
.target sm_80
.address_size 64
.shared .align 16 .b8 smem[1024];
.visible .entry k(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
.reqntid {threads}
{{
 .reg .pred %p<16>;
 .reg .b16 %h<32>;
 .reg .b32 %r<64>;
 .reg .b32 %t;
 .reg .b32 %b4;
 .reg .b32 %n;
 .reg .f32 %f<64>;
 .reg .b64 %d<16>;
 .reg .b64 %x;
 .reg .b64 %y;
 .reg .b64 %o;
 ld.param.u64 %x, [x];
 ld.param.u64 %y, [y];
 ld.param.u64 %o, [out];
 ld.param.u32 %n, [n];
 mov.u32 %t, %tid.x;
 shl.b32 %b4, %t, 2;
 mul.wide.u32 %d15, %t, 4;
 add.s64 %x, %x, %d15;
 add.s64 %y, %y, %d15;
 add.s64 %o, %o, %d15;
{lines}
 ret;
}}
"
    );
    parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

pub fn signed(module: &Module) -> Signature {
    signature(module, None, &Launch::default()).expect("a kernel")
}

/// The digest of a kernel that is understood.
pub fn digest(module: &Module) -> Digest {
    let signature = signed(module);
    assert_eq!(signature.obstacle, None);
    signature.digest
}

/// Why a kernel is not understood.
pub fn obstacle(module: &Module) -> String {
    signed(module).obstacle.expect("an obstacle").what
}

/// Asserts it of digests and of terms.
#[track_caller]
pub fn assert_same(a: &Module, b: &Module) {
    assert_eq!(digest(a), digest(b));
    let launch = Launch::default();
    let verdict = same((a, None, &launch), (b, None, &launch)).expect("kernels");
    assert_eq!(verdict, Verdict::Same);
}

/// Asserts it of digests and of terms, and returns what is told of the first difference.
#[track_caller]
pub fn assert_differ(a: &Module, b: &Module) -> String {
    assert_ne!(digest(a), digest(b));
    let launch = Launch::default();
    let verdict = same((a, None, &launch), (b, None, &launch)).expect("kernels");
    let Verdict::Different(found) = verdict else { panic!("{verdict:?}") };
    found.first().expect("a difference").text.clone()
}
