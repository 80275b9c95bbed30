"""Compiled PTX, executed: every pinned kernel returns the canonical tree's bits on every layout.

One test is one kernel, shape and type at one warp count, built with and without aligned pointers
and fusion. Draws are seeded; the seed stands in every failure.
"""

from dataclasses import dataclass

import numpy as np
import pytest

import kernels
import oracle
from bits import WARPS, Build, Launch, compile_ptx, describe
from compiling import SM80, SM100

SEED = 20240229
# (aligned, fusion); at few warps large tiles are built with the first two alone.
VARIANTS = ((True, True), (False, False), (False, True), (True, False))
PINNED = "inner_tree"
CONFIRMED = set()


@dataclass(frozen=True)
class Case:
    """A kernel, its constants, and the oracle for its output."""

    name: str
    kernel: object
    constants: dict
    shapes: tuple
    expected: object
    dtype: str = "f32"
    out_dtype: str = ""
    scalars: tuple = ()
    draw: object = oracle.draw
    extent: int = 0  # leaves of each output's tree, where it is a plain sum

    def launch(self, seed: int = SEED, draw=None):
        """Inputs and what they must give."""
        rng = np.random.default_rng(seed)
        inputs = tuple((draw or self.draw)(rng, shape, self.dtype) for shape in self.shapes)
        out_dtype = self.out_dtype or self.dtype
        expected = np.ravel(self.expected(*inputs))
        launch = Launch(inputs, self.dtype, expected.size, out_dtype, self.scalars)
        return launch, expected.astype(oracle.DTYPES[out_dtype])

    def compile(self, build: Build, order=PINNED):
        """The kernel for one build."""
        names = [n for n in self.kernel.arg_names if n not in self.constants and n != "ORDER"]
        types = self.launch()[0].types(names)
        return compile_ptx(self.kernel, types, build, **self.constants, ORDER=order)


def tile(kernel, m, n, axis, expected, inputs=1, **more):
    """A case on M x N tiles."""
    side = "rows" if axis == 1 else "columns"
    dtype = more.get("dtype", "f32")
    return Case(
        f"{kernel.__name__}-{m}x{n}-{side}-{dtype}", kernel, {"M": m, "N": n, "AXIS": axis},
        ((m, n),) * inputs, expected, **more,
    )  # fmt: skip


def tile_sum(m, n, axis, dtype="f32", **more):
    """Row or column sums."""
    out = {"i8": "i32", "i16": "i32"}.get(dtype, dtype)
    wide = oracle.DTYPES[out]
    expected = lambda x: oracle.total(x.astype(wide), axis, dtype)  # noqa: E731
    extent = (m, n)[axis] if dtype[0] != "i" else 0
    return tile(
        kernels.sum_tile, m, n, axis, expected, dtype=dtype, out_dtype=out, extent=extent, **more
    )


def vector_sum(n, dtype="f32"):
    """A 1-D sum to a scalar."""
    expected = lambda x: oracle.total(x, 0, dtype)  # noqa: E731
    return Case(
        f"sum_vector-{n}-{dtype}", kernels.sum_vector, {"N": n}, ((n,),), expected, dtype,
        extent=n if dtype[0] != "i" else 0,
    )  # fmt: skip


def padded_sum(live, n):
    """Live elements masked into a bigger tile."""

    def expected(x):
        return oracle.total(np.concatenate([x, np.zeros(n - live, x.dtype)]), 0, "f32")

    return Case(
        f"sum_padded-{live}in{n}", kernels.sum_padded, {"N": n}, ((live,),), expected,
        scalars=(live,), extent=n,
    )  # fmt: skip


def products(m, n, axis, dtype="f32"):
    """Sums of products."""

    def expected(x, y):
        return oracle.total(oracle.product(x, y, dtype), axis, dtype)

    return tile(
        kernels.sum_products, m, n, axis, expected, inputs=2, dtype=dtype, extent=(m, n)[axis]
    )


def small_integers(rng, shape, dtype):
    """Few distinct values: many ties."""
    return rng.integers(-3, 4, shape).astype(oracle.DTYPES[dtype])


def argmax(m, n, axis, dtype="f32"):
    """The lowest index of the maximum."""
    expected = lambda x: np.argmax(x, axis).astype(np.int32)  # noqa: E731
    return tile(
        kernels.argmax_tile, m, n, axis, expected, dtype=dtype, out_dtype="i32", draw=small_integers
    )


def moderate(rng, shape, dtype):
    """Values near one, for combines that multiply."""
    return (rng.standard_normal(shape) + 0.75).astype(oracle.DTYPES[dtype])


def welford(m, n, axis, dtype="f32"):
    """Mean, second moment, weight."""
    expected = lambda x: np.concatenate(oracle.welford(x, axis))  # noqa: E731
    return tile(kernels.welford_tile, m, n, axis, expected, dtype=dtype, draw=moderate)


def halving(m, n, axis, dtype="f32"):
    """A combine that does not commute."""
    expected = lambda x: oracle.halving(x, axis)  # noqa: E731
    return tile(kernels.halve_tile, m, n, axis, expected, dtype=dtype)


def composition(m, n, axis):
    """A tuple reduction that does not commute."""
    expected = lambda x, y: np.concatenate(oracle.composition(x, y, axis))  # noqa: E731
    return tile(kernels.compose_tile, m, n, axis, expected, inputs=2, draw=moderate)


def middle(a, b, c, dtype="f32"):
    """The middle axis of a rank-3 tile."""
    expected = lambda x: oracle.total(x, 1, dtype)  # noqa: E731
    return Case(
        f"sum_middle-{a}x{b}x{c}-{dtype}", kernels.sum_middle, {"A": a, "B": b, "C": c},
        ((a, b, c),), expected, dtype, extent=b,
    )  # fmt: skip


def everything(m, n, dtype="f32", kernel=kernels.sum_all):
    """All elements, in row-major order."""
    expected = lambda x: oracle.total(x.ravel(), 0, dtype)  # noqa: E731
    return Case(
        f"{kernel.__name__}-{m}x{n}-{dtype}", kernel, {"M": m, "N": n}, ((m, n),), expected, dtype,
        extent=m * n,
    )  # fmt: skip


TILES = ((4, 1024), (16, 256), (1, 4096), (128, 32), (64, 128))
CASES = [
    vector_sum(1024),
    padded_sum(608, 1024),
    *(tile_sum(m, n, axis) for m, n in TILES for axis in (1, 0)),
    middle(4, 32, 16),
    middle(16, 8, 32),
    everything(16, 64),
    everything(64, 128),
    everything(16, 64, kernel=kernels.sum_reshaped),
    products(16, 256, 1),
    products(128, 32, 0),
    argmax(4, 1024, 1),
    argmax(128, 32, 0),
    welford(16, 256, 1),
    welford(128, 32, 0),
    halving(4, 1024, 1),
    halving(128, 32, 0),
    halving(128, 32, 1),
    composition(16, 256, 1),
    composition(128, 32, 0),
]
TYPED = [
    *(vector_sum(1024, dtype) for dtype in ("f64", "f16", "bf16", "i64", "i32")),
    *(tile_sum(16, 256, 1, dtype) for dtype in ("f64", "f16", "bf16", "i64", "i8", "i16")),
    *(tile_sum(128, 32, 0, dtype) for dtype in ("f64", "f16", "bf16", "i64")),
    *(products(16, 256, 1, dtype) for dtype in ("f64", "f16", "bf16")),
    *(products(128, 32, 0, dtype) for dtype in ("f16", "bf16")),
    everything(16, 64, "bf16"),
    middle(4, 32, 16, "f16"),
    argmax(4, 1024, 1, "i32"),
    argmax(16, 256, 1, "bf16"),
    welford(16, 256, 1, "f64"),
    halving(16, 256, 1, "f64"),
]


def by_name(cases):
    """Parametrises over cases."""
    return pytest.mark.parametrize("case", cases, ids=[case.name for case in cases])


def check(case, build, draw=None, seed=SEED):
    """Compiles, executes and compares one build; returns the compiled kernel."""
    compiled = case.compile(build)
    run = (hash(compiled.ptx), case.name, build.aligned, draw, seed)
    if run not in CONFIRMED:  # fusion often changes nothing in a pinned kernel's text
        launch, expected = case.launch(seed, draw)
        got = launch.run(compiled, build)
        if not oracle.same_bits(got, expected).all():
            pytest.fail(f"{case.name} ({build}, seed {seed}): {describe(got, expected)}")
        CONFIRMED.add(run)
    return compiled


@by_name(CASES)
@pytest.mark.parametrize("warps", WARPS)
def test_bits(case, warps):
    for aligned, fusion in VARIANTS:
        check(case, Build(warps, aligned, fusion))


@by_name(TYPED)
@pytest.mark.parametrize("warps", WARPS)
def test_bits_of_other_types(case, warps):
    for aligned, fusion in ((True, True), (False, False)):
        check(case, Build(warps, aligned, fusion))


@pytest.mark.slow  # the 1-warp kernels have 8192 registers a thread: a minute each in Triton
@by_name([tile_sum(32, 8192, 1), tile_sum(32, 8192, 0)])
@pytest.mark.parametrize("warps", WARPS)
def test_bits_of_large_tiles(case, warps):
    """Thousands of registers a thread at few warps: two builds there, all at eight or more."""
    for aligned, fusion in VARIANTS if warps >= 8 else VARIANTS[:2]:
        check(case, Build(warps, aligned, fusion))


ON_TARGETS = [
    vector_sum(1024), tile_sum(16, 256, 1), tile_sum(128, 32, 0), products(16, 256, 1),
    products(128, 32, 0), everything(16, 64), middle(4, 32, 16), welford(16, 256, 1),
    halving(128, 32, 0), argmax(4, 1024, 1),
    *(tile_sum(16, 256, 1, dtype) for dtype in ("f64", "f16", "bf16")),
    *(products(16, 256, 1, dtype) for dtype in ("f16", "bf16")),
]  # fmt: skip


@by_name(ON_TARGETS)
@pytest.mark.parametrize("target", (SM80, SM100), ids=("sm80", "sm100"))
def test_bits_on_other_targets(case, target):
    for warps in (1, 4, 16):
        check(case, Build(warps, True, True, target))
    check(case, Build(4, False, False, target))


SUMS = [
    vector_sum(1024), tile_sum(16, 256, 1), tile_sum(128, 32, 0), tile_sum(16, 256, 1, "f64"),
    tile_sum(16, 256, 1, "f16"), tile_sum(16, 256, 1, "bf16"),
]  # fmt: skip


@by_name(SUMS)
@pytest.mark.parametrize("warps", (1, 4, 32))
def test_subnormals_zeros_infinities_and_nans(case, warps):
    for seed in range(3):
        check(case, Build(warps), oracle.specials, seed)


@pytest.mark.parametrize("warps", (1, 4, 32))
def test_padding_does_not_move_the_bits(warps):
    """608 live elements give one result in tiles of 1024, 2048 and 4096."""
    results = set()
    for extent in (1024, 2048, 4096):
        case = padded_sum(608, extent)
        launch, _ = case.launch()
        results.add(launch.run(case.compile(Build(warps)), Build(warps)).tobytes())
    assert len(results) == 1


@by_name([vector_sum(1024), tile_sum(16, 256, 1), tile_sum(128, 32, 0), everything(16, 64)])
def test_without_an_order_the_bits_move(case):
    """The negative control: the same test with `order=None` finds more than one bit class."""
    launch, expected = case.launch()
    classes = set()
    for warps in WARPS:
        build = Build(warps)
        classes.add(launch.run(case.compile(build, order=None), build).tobytes())
    assert len(classes) > 1
    assert classes != {expected.tobytes()}
