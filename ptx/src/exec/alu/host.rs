//! The same lane function for a plain processor and for a better one.
//!
//! # Idea
//! The crate is built for any x86-64, whose vectors have four lanes of 32 bits. A [`Kernel`] is
//! compiled again for AVX2 and FMA, and [`compile`] hands out that copy where the processor has
//! both. Only speed differs: neither feature lets LLVM contract or reorder what Rust wrote.
//! # Invariants
//! - **H1** The copy for AVX2 and FMA is handed out only after the processor was asked.
//! # Held by
//! H1: [`compile_as`] alone names it. Equal results: `ptx/tests/alu/float.rs` runs on what is there.

use crate::exec::{
    lane::{LaneFn, Operands},
    registers::{Mask, Registers},
};

/// A lane function as a type. Its `run` must be `#[inline(always)]`, to be compiled for its caller.
pub(super) trait Kernel {
    fn run(registers: &mut Registers, operands: &Operands, mask: Mask);
}

/// The lane function for the processor that this runs on.
pub(super) fn compile<K: Kernel>() -> LaneFn {
    compile_as::<K, K>()
}

/// As [`compile`], where the better processor has another way to the same results.
pub(super) fn compile_as<K: Kernel, Better: Kernel>() -> LaneFn {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        return on_avx2::<Better>;
    }
    on_any::<K>
}

/// The lane function for any processor, where speed is not worth a second copy.
pub(super) fn plain<K: Kernel>() -> LaneFn {
    on_any::<K>
}

fn on_any<K: Kernel>(registers: &mut Registers, operands: &Operands, mask: Mask) {
    K::run(registers, operands, mask);
}

#[cfg(target_arch = "x86_64")]
fn on_avx2<K: Kernel>(registers: &mut Registers, operands: &Operands, mask: Mask) {
    #[target_feature(enable = "avx2,fma")]
    fn copy<K: Kernel>(registers: &mut Registers, operands: &Operands, mask: Mask) {
        K::run(registers, operands, mask);
    }
    // SAFETY: `compile_as` returns this function only where the processor has both features.
    unsafe { copy::<K>(registers, operands, mask) }
}
