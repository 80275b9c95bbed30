"""Executed: what Triton's own passes would do to a reduction, they do not do to a pinned one.

`test_frontend_disturb.py` looks at the compiler's output; here the compiled PTX runs. Stock 3.9
turns the outer product into a matrix product, lets reshapes follow the layout, and moves in-loop
reductions out of their loop, wrongly where the update is not an addition.
"""

import numpy as np
import pytest

import kernels
import oracle
from bits import Build, Launch, compile_ptx, describe
from compiling import SM80, SM90, SM100
from test_bits import PINNED, SEED, by_name, check, everything

TARGETS = pytest.mark.parametrize("target", (SM80, SM90, SM100), ids=("sm80", "sm90", "sm100"))
WARPS = pytest.mark.parametrize("warps", (1, 4, 8, 32))


def confirm(kernel, launch, expected, build, **constants):
    """Compiles, runs and compares one launch."""
    names = [name for name in kernel.arg_names if name not in constants]
    compiled = compile_ptx(kernel, launch.types(names), build, **constants)
    got = launch.run(compiled, build)
    expected = np.ravel(expected).astype(got.dtype)
    assert oracle.same_bits(got, expected).all(), f"{build}: {describe(got, expected)}"
    return compiled


def drawn(*shapes, dtype="f32"):
    rng = np.random.default_rng(SEED)
    return tuple(oracle.draw(rng, shape, dtype) for shape in shapes)


@TARGETS
@WARPS
@pytest.mark.parametrize("dtype", ("f32", "f16", "bf16"))
def test_outer_product_stays_a_reduction(target, warps, dtype):
    x, y = drawn((16, 32), (32, 16), dtype=dtype)
    outer = oracle.product(x[:, :, None], y[None, :, :], dtype)
    expected = oracle.total(outer, 1, dtype)
    launch = Launch((x, y), dtype, 256, dtype)
    constants = {"M": 16, "K": 32, "N": 16, "ORDER": PINNED}
    compiled = confirm(
        kernels.sum_outer, launch, expected, Build(warps, target=target), **constants
    )
    assert "mma" not in compiled.ptx


@TARGETS
@by_name([everything(16, 64, kernel=kernel) for kernel in (kernels.sum_all, kernels.sum_reshaped)])
@WARPS
def test_reshapes_keep_row_major_order(target, case, warps):
    check(case, Build(warps, target=target))


@TARGETS
@WARPS
@pytest.mark.parametrize("steps", (0, 1, 3))
def test_loop_that_subtracts(target, warps, steps):
    (x,) = drawn((3, 1024))
    expected = np.float32(0)
    for row in x[:steps]:
        expected = expected - oracle.total(row, 0, "f32")
    launch = Launch((x,), "f32", 1, "f32", (steps,))
    constants = {"N": 1024, "ORDER": PINNED}
    confirm(kernels.loop_subtract, launch, expected, Build(warps, target=target), **constants)


@TARGETS
@WARPS
def test_loop_that_scales(target, warps):
    (x,) = drawn((3, 4, 256))
    expected = np.zeros(4, np.float32)
    for step in x:
        expected = expected * np.float32(0.5) + oracle.total(step, 1, "f32")
    launch = Launch((x,), "f32", 4, "f32", (3,))
    constants = {"M": 4, "N": 256, "ORDER": PINNED}
    confirm(kernels.loop_decay, launch, expected, Build(warps, target=target), **constants)


@TARGETS
@WARPS
@pytest.mark.parametrize("flag", (0, 1))
def test_branch(target, warps, flag):
    (x,) = drawn((1024,))
    leaves = x if flag else -x * np.float32(3)
    launch = Launch((x,), "f32", 1, "f32", (flag,))
    constants = {"N": 1024, "ORDER": PINNED}
    expected = oracle.total(leaves, 0, "f32")
    confirm(kernels.branch_sum, launch, expected, Build(warps, target=target), **constants)


@pytest.mark.parametrize("pinned", (0, 1))
def test_an_order_does_not_leak_between_calls_of_equal_type(pinned):
    """The pinned half is canonical; the other keeps the bits it has without any pin."""
    (x,) = drawn((2, 1024))
    launch, free_bits = Launch((x,), "f32", 2, "f32"), set()
    canonical = [oracle.total(row, 0, "f32") for row in x]
    orders = [None, None]
    orders[pinned] = PINNED

    def outputs(build, first, second):
        types = launch.types(["x", "out"])
        constants = {"N": 1024, "FIRST": first, "SECOND": second}
        return launch.run(compile_ptx(kernels.two_orders, types, build, **constants), build)

    for warps in (1, 4, 8, 32):
        build = Build(warps)
        mixed, free = outputs(build, *orders), outputs(build, None, None)
        assert mixed[pinned].tobytes() == canonical[pinned].tobytes()
        assert mixed[1 - pinned].tobytes() == free[1 - pinned].tobytes()
        free_bits.add(free[1 - pinned].tobytes())
    assert free_bits != {canonical[1 - pinned].tobytes()}
