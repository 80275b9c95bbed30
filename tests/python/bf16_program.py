"""bf16 reductions, run in a process of their own on the interpreter or on an emulated device.

`python bf16_program.py FILE SEED` writes the bits of every reduction of `FOLDS` over each axis of
each draw. Under `TRITON_INTERPRET=1` the arrays are dressed as tensors.
"""

import os
import sys

import numpy as np
import triton
import triton.language as tl
from triton.bitstable import emulate

import oracle
from interpreted import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SHAPE = M, N = 8, 32


@triton.jit
def differing(a, b):
    return a * 0.75 - b


@triton.jit
def multiplying(a, b):
    return a * b


@triton.jit
def literal(a, b):
    return a * 0.1 + b * 1e-8 + 1.00390625


@triton.jit
def composing(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def widening(a, b):
    return (a.to(tl.float32) * 0.3 + b.to(tl.float32)).to(tl.bfloat16)


@triton.jit
def dividing(a, b):
    return (a / (tl.abs(b) + 1.0)).to(tl.bfloat16)


@triton.jit
def branching(a, b):
    r = -b
    if a > b:
        r = a - b
    return r


@triton.jit
def choosing(a, b):
    return tl.where((a <= b) & (a != 0.0), a + b, b)


@triton.jit
def greatest(a, b):
    return tl.maximum(a, b)


@triton.jit
def least_or_nan(a, b):
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def clamping(a, b):
    return tl.clamp(a, -0.0, 2.0) + b


@triton.jit
def fusing(a, b):
    return tl.fma(a, b, b)


@triton.jit
def halving(a, b):
    return (a.to(tl.float16) + b.to(tl.float16)).to(tl.bfloat16)


@triton.jit
def toggling(a, b):
    bits = a.to(tl.int16, bitcast=True) ^ b.to(tl.int16, bitcast=True)
    return bits.to(tl.bfloat16, bitcast=True)


@triton.jit
def fold(x, y, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, WHICH: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    v = tl.load(x + at)
    if WHICH == "sum":
        r = tl.sum(v, AXIS, order="inner_tree")
    elif WHICH == "wide sum":
        r = tl.sum(v, AXIS, dtype=tl.float32, order="inner_tree")
    elif WHICH == "product":
        r = tl.reduce(v, AXIS, multiplying, order="inner_tree")
    elif WHICH == "max":
        r = tl.max(v, AXIS, order="inner_tree")
    elif WHICH == "min":
        r = tl.min(v, AXIS, order="inner_tree")
    elif WHICH == "argmax":
        r = tl.argmax(v, AXIS, order="inner_tree")
    elif WHICH == "argmin":
        r = tl.argmin(v, AXIS, order="inner_tree")
    elif WHICH == "differing":
        r = tl.reduce(v, AXIS, differing, order="inner_tree")
    elif WHICH == "literal":
        r = tl.reduce(v, AXIS, literal, order="inner_tree")
    elif WHICH == "composing":
        pair = tl.reduce((v, tl.load(y + at)), AXIS, composing, order="inner_tree")
        r = pair[0].to(tl.float32) + pair[1].to(tl.float32)
    elif WHICH == "widening":
        r = tl.reduce(v, AXIS, widening, order="inner_tree")
    elif WHICH == "dividing":
        r = tl.reduce(v, AXIS, dividing, order="inner_tree")
    elif WHICH == "branching":
        r = tl.reduce(v, AXIS, branching, order="inner_tree")
    elif WHICH == "choosing":
        r = tl.reduce(v, AXIS, choosing, order="inner_tree")
    elif WHICH == "greatest":
        r = tl.reduce(v, AXIS, greatest, order="inner_tree")
    elif WHICH == "least or nan":
        r = tl.reduce(v, AXIS, least_or_nan, order="inner_tree")
    elif WHICH == "clamping":
        r = tl.reduce(v, AXIS, clamping, order="inner_tree")
    elif WHICH == "fusing":
        r = tl.reduce(v, AXIS, fusing, order="inner_tree")
    elif WHICH == "halving":
        r = tl.reduce(v, AXIS, halving, order="inner_tree")
    elif WHICH == "toggling":
        r = tl.reduce(v, AXIS, toggling, order="inner_tree")
    elif WHICH == "casts":
        wide = tl.load(y + at).to(tl.float32) * 1.1
        r = tl.sum(wide.to(tl.bfloat16), AXIS, order="inner_tree")
    K: tl.constexpr = N if AXIS == 0 else M
    tl.store(out + tl.arange(0, K), r)


# What a result is stored as.
FOLDS = {
    **{"sum": "bf16", "wide sum": "f32", "product": "bf16", "max": "f32", "min": "f32"},
    **{"argmax": "i32", "argmin": "i32", "differing": "bf16", "literal": "bf16"},
    **{"composing": "f32", "widening": "bf16", "dividing": "bf16", "branching": "bf16"},
    **{"choosing": "bf16", "greatest": "bf16", "least or nan": "bf16", "clamping": "bf16"},
    **{"fusing": "bf16", "halving": "bf16", "toggling": "bf16", "casts": "bf16"},
}
SIGNALLING_NAN = np.uint16(0x7F81)
STORED = {"bf16": np.uint16, "f32": np.float32, "i32": np.int32}


def patterns(values):
    """The 16-bit patterns of f32 values that bf16 can hold."""
    return (np.ascontiguousarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def draws(seed):
    """Pairs of tiles: plain, small and special values, any bits, and few values with many ties."""
    rng = np.random.default_rng(seed)

    def specials():
        # Plenty of what is rare in a draw of whole rows.
        values = oracle.specials(rng, SHAPE, "bf16")
        odd = np.float32([np.inf, -np.inf, np.nan, 0.0, -0.0])
        values = np.where(rng.random(SHAPE) < 0.02, rng.choice(odd, SHAPE), values)
        return np.where(rng.random(SHAPE) < 0.01, SIGNALLING_NAN, patterns(values))

    zeros = np.float32([0.0, -0.0])
    return {
        "plain": tuple(patterns(oracle.draw(rng, SHAPE, "bf16")) for _ in range(2)),
        "special": tuple(specials() for _ in range(2)),
        "bits": tuple(rng.integers(0, 1 << 16, SHAPE).astype(np.uint16) for _ in range(2)),
        "finite": tuple(
            rng.integers(0, 1 << 16, SHAPE).astype(np.uint16) & 0xBFFF for _ in range(2)
        ),
        "zeros": tuple(patterns(rng.choice(zeros, SHAPE)) for _ in range(2)),
        "ties": tuple(patterns(rng.integers(-3, 4, SHAPE).astype(np.float32)) for _ in range(2)),
    }


def _dressed(array):
    if INTERPRETED:
        return Tensor(array, tl.bfloat16 if array.dtype == np.uint16 else None)
    return emulate.view(array, "bf16") if array.dtype == np.uint16 else array


def main(file, seed):
    results = {}
    for name, (x, y) in draws(int(seed)).items():
        for which, stored in FOLDS.items():
            for axis in (0, 1):
                out = np.zeros(SHAPE[1 - axis], STORED[stored])
                fold[(1,)](*map(_dressed, (x, y, out)), M, N, axis, which)
                results[f"{name}, {which}, {axis}"] = out
    np.savez(file, **results)


if __name__ == "__main__":
    main(*sys.argv[1:])
