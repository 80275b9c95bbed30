"""Random tiles: rank, extents, axis, type, warps, alignment; each executed against the oracle.

A tile is loaded flat and reshaped, so its layout is whatever Triton infers for the reshape: linear
layouts, broadcasts, axes split over registers, lanes and warps in any way.
`BITSTABLE_RANDOM_SEED` and `BITSTABLE_RANDOM_CASES` choose other draws.
"""

import os

import numpy as np
import pytest
import triton
import triton.language as tl

import oracle
from bits import Build, Launch, compile_ptx, describe
from compiling import SM80, SM90, SM100

SEED = int(os.environ.get("BITSTABLE_RANDOM_SEED", "20261130"))
CASES = int(os.environ.get("BITSTABLE_RANDOM_CASES", "60"))


@triton.jit
def sum_reshaped_tile(
    x,
    out,
    TOTAL: tl.constexpr,
    SHAPE: tl.constexpr,
    AXIS: tl.constexpr,
    KEPT: tl.constexpr,
    ORDER: tl.constexpr,
):
    """One axis of a tile of any rank."""
    flat = tl.load(x + tl.arange(0, TOTAL))
    total = tl.sum(tl.reshape(flat, SHAPE), axis=AXIS, order=ORDER)
    if KEPT == 1:
        tl.store(out + tl.arange(0, 1), tl.reshape(total, [1]))
    else:
        tl.store(out + tl.arange(0, KEPT), tl.reshape(total, [KEPT]))


def draw(number):
    """The shape, axis, type and build of case `number`."""
    rng = np.random.default_rng((SEED, number))
    rank = int(rng.integers(2, 5))
    bits = rng.multinomial(int(rng.integers(1, 13)), np.full(rank, 1 / rank))
    shape = tuple(int(1 << b) for b in bits)
    axis = int(rng.integers(rank))
    dtype = str(rng.choice(["f32", "f32", "f16", "bf16", "f64"]))
    build = Build(
        warps=int(1 << rng.integers(0, 5)),
        aligned=bool(rng.integers(2)),
        fusion=bool(rng.integers(2)),
        target=(SM90, SM90, SM80, SM100)[rng.integers(4)],
    )
    return rng, shape, axis, dtype, build


@pytest.mark.parametrize("number", range(CASES))
def test_random_tile(number):
    rng, shape, axis, dtype, build = draw(number)
    total = int(np.prod(shape))
    x = oracle.draw(rng, shape, dtype)
    expected = np.ravel(oracle.total(x, axis, dtype))
    launch = Launch((x,), dtype, expected.size, dtype)
    compiled = compile_ptx(
        sum_reshaped_tile, launch.types(["x", "out"]), build, TOTAL=total, SHAPE=shape, AXIS=axis,
        KEPT=expected.size, ORDER="inner_tree",
    )  # fmt: skip
    got = launch.run(compiled, build)
    what = f"seed {SEED}, case {number}: {shape} axis {axis} {dtype}, {build}"
    assert oracle.same_bits(got, expected).all(), f"{what}: {describe(got, expected)}"
