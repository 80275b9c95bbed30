//! What an atomic update stores.
//!
//! # Idea
//! [`apply`] maps the old value and the operands to the new value; who reads the old one, and when,
//! is the memory's business. Packed types update element by element.
//! # Invariants
//! - **A1** `add` on floats rounds to nearest, ties to even.
//! - **A2** `atom.add.f32` on global memory flushes subnormal operands and results to zeros of
//!   their sign; on shared memory it keeps them. The manual says so of "current implementations".
//!   `f16` and `bf16` require `.noftz` and keep them; so does `f64`.
//! - **A3** `inc(r, s)` is 0 from `s` on, else `r + 1`; `dec(r, s)` is `s` at 0 and above `s`, else
//!   `r - 1`.
//! # Held by
//! `ptx/tests/num_int.rs` (integers), `ptx/tests/num_atomic.rs` (floats).
//! # Not here
//! `b128`; rounding of `red` through multimem.

use super::float::{BF16, F16, F32, F64, Float, Word};
use super::int;
use crate::ir::{Atomic, Class, FloatMode, IntBinary, Scalar, Space};

/// Whether [`apply`] is the meaning of `op` on `ty`.
pub fn supported(op: Atomic, ty: Scalar) -> bool {
    use Scalar::*;
    match op {
        Atomic::And | Atomic::Or | Atomic::Xor => matches!(ty, B32 | B64),
        Atomic::Exch => matches!(ty, B32 | B64 | U32 | U64 | S32 | S64 | F32 | F64),
        Atomic::Cas => matches!(ty, B16 | B32 | B64 | U32 | U64 | S32 | S64),
        Atomic::Add => {
            matches!(ty, U32 | S32 | U64 | S64 | F16 | F16x2 | BF16 | BF16x2 | F32 | F64)
        }
        Atomic::Min | Atomic::Max => {
            matches!(ty, U32 | S32 | U64 | S64 | F16 | F16x2 | BF16 | BF16x2)
        }
        Atomic::Inc | Atomic::Dec => ty == U32,
    }
}

/// The value stored, in the low `ty.bits()` bits. `operand` is `b`, and for `cas` the value that
/// `old` is compared with; `new` is `c`, read by `cas` alone.
///
/// An unsupported update leaves `old`.
#[inline]
pub fn apply(op: Atomic, ty: Scalar, space: Space, old: u64, operand: u64, new: u64) -> u64 {
    let lanes = ty.lanes();
    if lanes == 1 {
        return update(op, ty, space, old, operand, new);
    }
    let element = ty.element();
    let mut packed = 0;
    for lane in 0..lanes {
        let at = lane * element.bits();
        packed |= update(op, element, space, old >> at, operand >> at, new >> at) << at;
    }
    packed
}

#[inline]
fn update(op: Atomic, ty: Scalar, space: Space, old: u64, operand: u64, new: u64) -> u64 {
    let width = ty.bits();
    let cut = |bits: u64| bits & (u64::MAX >> (64 - width.min(64)));
    let integer = |op: IntBinary| int::binary(op, ty, false, old, operand);
    let (old, operand) = (cut(old), cut(operand));
    match op {
        Atomic::And => old & operand,
        Atomic::Or => old | operand,
        Atomic::Xor => old ^ operand,
        Atomic::Exch => operand,
        Atomic::Cas if old == operand => cut(new),
        Atomic::Cas => old,
        Atomic::Inc if old >= operand => 0,
        Atomic::Inc => old + 1,
        Atomic::Dec if old == 0 || old > operand => operand,
        Atomic::Dec => old - 1,
        Atomic::Add | Atomic::Min | Atomic::Max if ty.class() == Class::Float => {
            let mode = FloatMode {
                ftz: op == Atomic::Add && ty == Scalar::F32 && !is_shared(space),
                ..FloatMode::default()
            };
            float(op, ty, &mode, old, operand)
        }
        Atomic::Add => integer(IntBinary::Add),
        Atomic::Min => integer(IntBinary::Min),
        Atomic::Max => integer(IntBinary::Max),
    }
}

/// The caller resolves a generic address first; one left unresolved counts as global.
#[inline(always)]
fn is_shared(space: Space) -> bool {
    match space {
        Space::Shared | Space::SharedCluster => true,
        Space::Generic | Space::Global | Space::Local | Space::Param | Space::Const => false,
    }
}

#[inline]
fn float(op: Atomic, ty: Scalar, mode: &FloatMode, old: u64, operand: u64) -> u64 {
    if ty == Scalar::F16 {
        typed::<F16>(op, mode, old, operand)
    } else if ty == Scalar::BF16 {
        typed::<BF16>(op, mode, old, operand)
    } else if ty == Scalar::F32 {
        typed::<F32>(op, mode, old, operand)
    } else if ty == Scalar::F64 {
        typed::<F64>(op, mode, old, operand)
    } else {
        old
    }
}

#[inline]
fn typed<F: Float>(op: Atomic, mode: &FloatMode, old: u64, operand: u64) -> u64 {
    let (a, b) = (F::Bits::narrow(old), F::Bits::narrow(operand));
    match op {
        Atomic::Add => F::add(a, b, mode).wide(),
        Atomic::Min => F::min(a, b, mode).wide(),
        Atomic::Max => F::max(a, b, mode).wide(),
        Atomic::And
        | Atomic::Or
        | Atomic::Xor
        | Atomic::Inc
        | Atomic::Dec
        | Atomic::Exch
        | Atomic::Cas => old,
    }
}
