"""bf16 as Triton's interpreter keeps it: 16-bit integers, the upper half of an f32's bits.

# Idea
Every bf16 is an f32, so widening is a shift, and one rounding leads back. What is computed exactly,
or in f32 with a sum, difference, product or quotient of two bf16 numbers, may be rounded a second
time: 24 bits are at least 2·8 + 2, so both roundings together are one.

# Invariants
- **N1** `widen` is exact, subnormals included; `narrow` rounds to nearest, ties to even, keeps
  subnormals, and overflows to infinity.
- **N2** A NaN stays one. Its payload is not promised.

# Held by
`tests/python/test_frontend_bf16.py`: all 2^16 bit patterns, and the emulated sm_90.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_QUIET = np.uint32(0x0040_0000)


def widen(bits: Any) -> Any:
    """The f32 values of 16-bit patterns."""
    wide = np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)
    return wide.view(np.float32)


def narrow(values: Any) -> Any:
    """The 16-bit patterns nearest to f32 values."""
    values = np.asarray(values, np.float32)
    bits = values.view(np.uint32)
    odd = (bits >> np.uint32(16)) & np.uint32(1)
    rounded = bits + (np.uint32(0x7FFF) + odd)  # no NaN: these stay below 2^32
    kept = np.where(np.isnan(values), bits | _QUIET, rounded)
    return (kept >> np.uint32(16)).astype(np.uint16)


def constant(value: float) -> Any:
    """The pattern that Triton compiles a literal to.

    It writes the literal down with six decimals, as an f32, and reads bf16 from that text: `1e-8`
    is zero there.
    """
    return narrow(np.float32(f"{np.float32(value):.6f}"))


def fused_multiply_add(x: Any, y: Any, z: Any) -> Any:
    """`x * y + z` of patterns, rounded once.

    The product is exact in f64. The sum is rounded to odd, to f64 and again to f32: so no rounding
    makes a tie that was none, and the last one is as if it were the only one.
    """
    product = widen(x).astype(np.float64) * widen(y)
    addend = widen(z).astype(np.float64)
    total = product + addend
    above = total - product
    lost = (product - (total - above)) + (addend - above)  # exact, where finite
    return narrow(_to_odd_f32(_to_odd(total, lost)))


def _to_odd(total: Any, lost: Any) -> Any:
    """The rounded `total` to odd, for a sum that is `total + lost`."""
    even = (total.view(np.uint64) & np.uint64(1)) == 0
    step = np.isfinite(total) & even & (lost != 0)
    return np.where(step, np.nextafter(total, np.where(lost > 0, np.inf, -np.inf)), total)


def _to_odd_f32(values: Any) -> Any:
    single = values.astype(np.float32)
    lost = values - single
    even = (single.view(np.uint32) & np.uint32(1)) == 0
    step = np.isfinite(single) & even & (lost != 0)
    toward = np.where(lost > 0, np.float32(np.inf), np.float32(-np.inf))
    return np.where(step, np.nextafter(single, toward), single)
