"""IEEE arithmetic on bit patterns: every operation rounds once, to nearest even.

# Idea
A register holds bits; an operation decodes, computes and encodes. f32 and f64 use numpy's own
arithmetic, which is IEEE with subnormals. f16 and bf16 compute exactly or in a format at least
2p + 2 bits wide, where a second rounding is innocuous. `fma` sums the exact product and the addend
in f64 *rounded to odd*, so that the one rounding that follows is the right one.

# Invariants
- **F1** A NaN result is NVIDIA's canonical one, whatever the operands' payloads.
- **F2** Subnormals are kept, unless the caller asks for `flush`.

# Held by
`tests/python/test_ptx_exec.py`, against exact fractions.
"""

from collections.abc import Callable
from fractions import Fraction

import numpy as np

from .errors import UnknownPtx

Bits = np.ndarray

WIDTH = {"f64": 64, "f32": 32, "f16": 16, "bf16": 16}
UNSIGNED = {8: np.uint8, 16: np.uint16, 32: np.uint32, 64: np.uint64}
NAN = {"f64": 0x7FFFFFFFFFFFFFFF, "f32": 0x7FFFFFFF, "f16": 0x7FFF, "bf16": 0x7FFF}
_NATIVE = {"f64": np.float64, "f32": np.float32, "f16": np.float16}


def decode(bits: Bits, kind: str) -> np.ndarray:
    """The values of bit patterns; bf16 arrives as f32, which holds it exactly."""
    if kind == "bf16":
        return (bits.astype(np.uint32) << np.uint32(16)).view(np.float32)
    return np.ascontiguousarray(bits).view(_NATIVE[kind])


def _round_f32_to_bf16(value: np.ndarray) -> Bits:
    bits = value.view(np.uint32)
    carry = ((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF)
    return ((bits + carry) >> np.uint32(16)).astype(np.uint16)


def _odd(rounded: np.ndarray, error: np.ndarray) -> np.ndarray:
    """Of the two neighbours of an inexact sum, the one whose last bit is set."""
    last = rounded.view(UNSIGNED[rounded.dtype.itemsize * 8]) & 1
    toward = np.where(error > 0, np.inf, -np.inf).astype(rounded.dtype)
    return np.where((error != 0) & (last == 0), np.nextafter(rounded, toward), rounded)


def encode(value: np.ndarray, kind: str) -> Bits:
    """Rounds f64 (or the kind's own format) once to `kind`."""
    width = UNSIGNED[WIDTH[kind]]
    if kind == "bf16":
        if value.dtype == np.float64:
            narrow = value.astype(np.float32)
            # The error's sign is all that matters, and it survives an infinite `narrow`.
            sign = np.sign(np.where(np.isfinite(value), value, 0) - narrow.astype(np.float64))
            value = np.where(np.isfinite(value), _odd(narrow, np.nan_to_num(sign)), narrow)
        bits = _round_f32_to_bf16(np.ascontiguousarray(value, np.float32))
    else:
        bits = np.ascontiguousarray(value.astype(_NATIVE[kind])).view(width)
    return np.where(np.isnan(value), width(NAN[kind]), bits)


def flush(bits: Bits, kind: str) -> Bits:
    """`.ftz`: subnormals become zeros of their sign."""
    if kind != "f32":
        raise UnknownPtx(f".ftz on {kind}")
    small = (bits & np.uint32(0x7F800000)) == 0
    return np.where(small, bits & np.uint32(0x80000000), bits)


def _two_sum(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    total = a + b
    part = total - a
    return total, (a - (total - part)) + (b - part)


def _fma_exact(a: float, b: float, c: float) -> float:
    if not (np.isfinite(a) and np.isfinite(b) and np.isfinite(c)):
        return a * b + c if np.isfinite(a * b) or not (np.isfinite(a) and np.isfinite(b)) else c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if a == 0 or b == 0 else 0.0
    try:
        return float(exact)
    except OverflowError:
        return float("inf") if exact > 0 else float("-inf")


def fma(a: Bits, b: Bits, c: Bits, kind: str) -> Bits:
    """`a * b + c` with one rounding."""
    x, y, z = (decode(bits, kind) for bits in (a, b, c))
    if kind == "f64":
        rows = zip(x.tolist(), y.tolist(), z.tolist(), strict=True)
        return encode(np.array([_fma_exact(*row) for row in rows], np.float64), kind)
    product = x.astype(np.float64) * y.astype(np.float64)
    total, error = _two_sum(product, z.astype(np.float64))
    return encode(np.where(np.isfinite(total), _odd(total, np.nan_to_num(error)), total), kind)


_BINARY: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
}


def binary(op: str, a: Bits, b: Bits, kind: str) -> Bits:
    """add, sub, mul or div. numpy's f16 computes in f32, where two roundings equal one."""
    return encode(_BINARY[op](decode(a, kind), decode(b, kind)), kind)


def sqrt(a: Bits, kind: str) -> Bits:
    """Square root, correctly rounded."""
    return encode(np.sqrt(decode(a, kind)), kind)


def sign_bit(kind: str) -> int:
    """The sign's bit mask."""
    return 1 << (WIDTH[kind] - 1)


def negate(a: Bits, kind: str) -> Bits:
    """Flips the sign, of a NaN as well."""
    return a ^ a.dtype.type(sign_bit(kind))


def absolute(a: Bits, kind: str) -> Bits:
    """Clears the sign."""
    return a & a.dtype.type(sign_bit(kind) - 1)


def extremum(op: str, a: Bits, b: Bits, kind: str, propagate_nan: bool) -> Bits:
    """min or max as PTX has them: -0 < +0; one NaN yields the other operand unless propagated."""
    x, y = decode(a, kind), decode(b, kind)
    negative = (a & a.dtype.type(sign_bit(kind))) != 0
    first = np.where(x == y, negative, x < y)
    if op == "max":
        first = ~first
    result = np.where(first, a, b)
    nan_x, nan_y = np.isnan(x), np.isnan(y)
    nan = a.dtype.type(NAN[kind])
    if propagate_nan:
        return np.where(nan_x | nan_y, nan, result)
    result = np.where(nan_x, b, np.where(nan_y, a, result))
    return np.where(nan_x & nan_y, nan, result)


def compare(op: str, a: Bits, b: Bits, kind: str) -> np.ndarray:
    """A setp comparison: `lt` is false on NaN, `ltu` is true."""
    x, y = decode(a, kind), decode(b, kind)
    unordered = np.isnan(x) | np.isnan(y)
    table = {
        "eq": x == y, "ne": x != y, "lt": x < y, "le": x <= y, "gt": x > y, "ge": x >= y,
        "num": ~unordered, "nan": unordered,
    }  # fmt: skip
    if op in ("equ", "neu", "ltu", "leu", "gtu", "geu"):
        return table[op[:-1]] | unordered
    return table[op] & ~unordered if op != "nan" else unordered


def convert(a: Bits, source: str, target: str) -> Bits:
    """Float to float, rounded to nearest even where it narrows."""
    value = decode(a, source)
    if target == "bf16" and source == "f32":
        return encode(value, target)
    return encode(value.astype(np.float64), target)


def from_integer(value: np.ndarray, kind: str) -> Bits:
    """Integer to float in one rounding. Up to 32 bits pass through f64 exactly."""
    if value.dtype.itemsize <= 4:
        return encode(value.astype(np.float64), kind)
    if kind in ("f32", "f64"):
        return encode(value.astype(_NATIVE[kind]), kind)
    raise UnknownPtx(f"64-bit integer to {kind}")
