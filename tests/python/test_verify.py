"""Certificates: a reduction's own PTX folds the canonical tree, on every target and warp count.

No kernel runs here: `triton.bitstable.certificates` tells what the library proved of the PTX.
"""

import linecache

import pytest
import triton
import triton.language as tl
from triton.bitstable import certificates
from triton.bitstable.report import _SASS_INSTRUCTION as _INSTRUCTION

import kernels
from compiling import GFX942, SM80, SM90, SM100, compile, name_of

NVIDIA = (SM80, SM90, SM100)
WARPS = (1, 2, 4, 8, 16)
PINNED = {"ORDER": "inner_tree"}
ADD = "add.rn.f32(L0, R0)"


def certified(kernel, target, pointers="x:fp32 out:fp32", warps=4, **constants):
    """The certificates of a kernel that is compiled with verification."""
    options = {"num_warps": warps, "bitstable_verify": True}
    return certificates(compile(kernel, target, pointers, options, **constants))


@pytest.mark.parametrize("warps", WARPS)
@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
@pytest.mark.parametrize("axis", [0, 1], ids=["columns", "rows"])
def test_sums_are_certified(target, warps, axis):
    (certificate,) = certified(
        kernels.sum_tile, target, warps=warps, M=32, N=64, AXIS=axis, **PINNED
    )
    assert certificate.extent == (32, 64)[axis]
    # No combine of the 32 x 64 elements is missing; those of one term count once.
    assert certificate.combines >= 32 * 64 - 32 * 64 // certificate.extent
    assert certificate.results >= 32 * warps
    assert (certificate.pattern, certificate.until) == ((ADD,), None)
    assert certificate.file == kernels.__file__
    assert "tl.sum" in linecache.getline(certificate.file, certificate.line)


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
@pytest.mark.parametrize("element", ["fp16", "bf16", "fp64"])
def test_every_format_is_certified(target, element):
    pointers = f"x:{element} out:{element}"
    for axis in (0, 1):
        (certificate,) = certified(
            kernels.sum_tile, target, pointers, M=16, N=64, AXIS=axis, **PINNED
        )
        assert certificate.pattern == (f"add.rn.{element.replace('fp', 'f')}(L0, R0)",)


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
def test_other_shapes_are_certified(target):
    middle = certified(kernels.sum_middle, target, A=4, B=16, C=8, **PINNED)
    flat = certified(kernels.sum_all, target, M=16, N=32, **PINNED)
    reshaped = certified(kernels.sum_reshaped, target, M=16, N=32, **PINNED)
    large = certified(kernels.sum_tile, target, warps=1, M=32, N=128, AXIS=1, **PINNED)
    extents = [found.extent for (found,) in (middle, flat, reshaped, large)]
    assert extents == [16, 512, 512, 128]


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
@pytest.mark.parametrize("warps", [1, 4, 16])
def test_combines_of_every_kind_are_certified(target, warps):
    tile = {"M": 16, "N": 32, "AXIS": 1, **PINNED}
    (index,) = certified(kernels.argmax_tile, target, warps=warps, **tile)
    assert len(index.pattern) == 2, "a value and an index"
    assert all("select(" in pattern for pattern in index.pattern)
    (moments,) = certified(kernels.welford_tile, target, warps=warps, **tile)
    assert len(moments.pattern) == 3
    assert "div.rn.f32(R2, add.rn.f32(L2, R2))" in moments.pattern[0]
    assert not any("fma" in pattern or "open" in pattern for pattern in moments.pattern)
    (halves,) = certified(kernels.halve_tile, target, warps=warps, **tile)
    (pattern,) = halves.pattern
    # The lower part is halved, never the upper.
    assert pattern.startswith("add.rn.f32(mul.rn.f32(") and pattern.endswith("L0), R0)"), pattern
    pointers = "x:fp32 y:fp32 out:fp32"
    (maps,) = certified(kernels.compose_tile, target, pointers, warps=warps, **tile)
    assert maps.pattern[0] == "mul.rn.f32(L0, R0)"


@triton.jit
def _both(sum_a, any_a, sum_b, any_b):
    return sum_a + sum_b, any_a | any_b


@triton.jit
def any_positive(x, out):
    tile = tl.load(x + tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :])
    total, some = tl.reduce((tile, tile > 0), 1, _both, order="inner_tree")
    tl.store(out + tl.arange(0, 8), tl.where(some, total, 0.0))


@triton.jit
def _fused(a, b):
    return tl.fma(a, a, b)


@triton.jit
def fused(x, out):
    tile = tl.load(x + tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out + tl.arange(0, 8), tl.reduce(tile, 1, _fused, order="inner_tree"))


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
def test_values_narrower_than_a_register_are_certified(target):
    (certificate,) = certified(any_positive, target)
    assert certificate.pattern[0] == ADD
    assert "or." in certificate.pattern[1]


def test_a_functions_own_fma_is_certified():
    (certificate,) = certified(fused, SM90)
    assert certificate.pattern == ("fma.rn.f32(L0, L0, R0)",)


@triton.jit
def softmax(x, out, n, N: tl.constexpr):
    at = tl.arange(0, N)
    row = tl.load(x + tl.program_id(0) * n + at, mask=at < n, other=-float("inf"))
    powers = tl.exp(row - tl.max(row, 0, order="inner_tree"))
    total = tl.sum(powers, 0, order="inner_tree")
    tl.store(out + tl.program_id(0) * n + at, powers / total, mask=at < n)


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
@pytest.mark.parametrize("warps", WARPS)
def test_softmax_is_certified(target, warps):
    # The maximum has no order to certify.
    (certificate,) = certified(softmax, target, "x:fp32 out:fp32 n:i32", warps, N=512)
    assert (certificate.extent, certificate.pattern) == (512, (ADD,))


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
def test_loops_of_any_number_of_iterations_are_certified(target):
    pointers = "x:fp32 out:fp32 steps:i32"
    (decay,) = certified(kernels.loop_decay, target, pointers, M=8, N=32, **PINNED)
    assert (decay.extent, decay.pattern) == (32, (ADD,))
    (difference,) = certified(kernels.loop_subtract, target, pointers, N=128, **PINNED)
    assert difference.extent == 128


@triton.jit
def sum_of_dot(a, b, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    left = tl.load(a + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    right = tl.load(b + tl.arange(0, K)[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + tl.arange(0, M), tl.sum(tl.dot(left, right), 1, order="inner_tree"))


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
def test_sums_beside_the_matrix_engines_are_certified(target):
    compiled = compile(
        sum_of_dot,
        target,
        "a:fp16 b:fp16 out:fp32",
        {"bitstable_verify": True},
        M=128,
        K=32,
        N=32,
    )
    engine = {80: "mma.sync", 90: "wgmma.mma_async", 100: "tcgen05.mma"}[target.arch]
    assert engine in compiled.asm["ptx"]
    (certificate,) = certificates(compiled)
    assert (certificate.extent, certificate.pattern) == (32, (ADD,))


def test_products_stay_out_of_the_sum():
    pointers = "x:fp32 y:fp32 out:fp32"
    (certificate,) = certified(kernels.sum_products, SM90, pointers, M=16, N=64, AXIS=1, **PINNED)
    assert certificate.pattern == (ADD,)


def machine_code(compiled):
    lines = compiled.asm["sass"].splitlines()
    return [line for line in lines if _INSTRUCTION.match(line) and "NOP" not in line]


def test_without_verification_there_are_no_marks():
    arguments = {"M": 16, "N": 64, "AXIS": 1, **PINNED}
    plain = compile(kernels.sum_tile, SM90, **arguments)
    assert certificates(plain) == []
    assert "bitstable." not in plain.asm["ptx"]
    marked = compile(kernels.sum_tile, SM90, options={"bitstable_verify": True}, **arguments)
    assert marked.asm["ptx"].count("// bitstable.result") > 0
    # A mark is no instruction of the machine.
    plain, marked = (machine_code(compiled) for compiled in (plain, marked))
    assert abs(len(marked) - len(plain)) <= 0.1 * len(plain), (len(plain), len(marked))
    for opcode in ("SHFL", "BAR", "FADD", "LDS", "STS"):
        counts = [sum(opcode in line for line in code) for code in (plain, marked)]
        assert counts[0] == counts[1], opcode


def test_an_unpinned_kernel_has_none():
    arguments = {"M": 16, "N": 64, "AXIS": 1, "ORDER": None}
    assert certified(kernels.sum_tile, SM90, **arguments) == []


def test_amd_is_not_checked_and_says_so():
    from triton.bitstable import verify

    verify._warn_once.cache_clear()
    with pytest.warns(UserWarning, match="machine code for hip is not checked"):
        found = certified(kernels.sum_tile, GFX942, M=16, N=64, AXIS=1, **PINNED)
    assert found == []
