"""The code at the end of the pipeline: nothing is contracted, and no pass on the way lost a pin.

Executed bits are `test_bits*.py`; here are the targets and pipelines that those do not run: AMD,
SASS, matrix products, software pipelining, warp specialisation, Gluon.
"""

import re

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

import kernels
from compiling import GFX942, GFX1201, SM80, SM90, SM100, TARGETS, VENDORS, compile, name_of

NVIDIA = (SM80, SM90, SM100)
AMD = (GFX942, GFX1201)
TYPES = ("fp32", "fp16", "bf16", "fp64")
FUSED_AMD = re.compile(r"\bv_(?:pk_|dual_)?(?:fma|fmac|mad|mac)\w*f(?:16|32|64)\w*.*")
# The only fused instructions are additions and products in disguise: a factor of one, or -0 added.
FUSED_PTX = re.compile(r"^\s*fma\.rn\S*\s+(.*);", re.MULTILINE)
ONES = {"0f3F800000", "0x3F80", "0x3C00", "0xBF80", "0x3F803F80", "1.0"}
ZEROS = {"0x8000", "0f80000000", "0x80008000"}


def report(kernel):
    """The plans of a compiled kernel's reductions."""
    return kernel.metadata.bitstable["reductions"]


def row_dot(target, dtype, order, fusion=True):
    """`sum(x * y)` by row: products that a fused multiply-add would like to swallow."""
    return compile(
        kernels.sum_products,
        target,
        f"x:{dtype} y:{dtype} out:{dtype}",
        options={"enable_fp_fusion": fusion},
        M=16,
        N=256,
        AXIS=1,
        ORDER=order,
    )


def constants_of(ptx):
    """What each register that is set from a constant holds, in hexadecimal."""
    moves = re.findall(r"mov\.b(16|32)\s+(%\w+), (-?(?:0x)?[0-9A-Fa-f]+);", ptx)
    return {
        register: f"0x{int(value, 0) & (1 << int(width)) - 1:04X}"
        for width, register, value in moves
    }


def fused_in_ptx(ptx):
    """Fused instructions that are neither an addition nor a product."""
    known = constants_of(ptx)
    fused = []
    for operands in FUSED_PTX.findall(ptx):
        _, a, b, c = (word.strip() for word in operands.split(","))
        a, b, c = (known.get(word, word) for word in (a, b, c))
        if not ({a, b} & ONES or c in ZEROS):
            fused.append(operands)
    return fused


@pytest.mark.parametrize("target", NVIDIA, ids=name_of)
@pytest.mark.parametrize("dtype", TYPES)
def test_no_product_is_contracted_on_nvidia(target, dtype):
    kernel = row_dot(target, dtype, "inner_tree")
    assert fused_in_ptx(kernel.asm["ptx"]) == []
    if dtype in ("fp32", "fp64"):
        assert not re.search(r"\b[FD]FMA\b", kernel.asm["sass"])


@pytest.mark.parametrize("target", AMD, ids=name_of)
@pytest.mark.parametrize("dtype", TYPES)
def test_no_product_is_contracted_on_amd(target, dtype):
    assert FUSED_AMD.findall(row_dot(target, dtype, "inner_tree").asm["amdgcn"]) == []


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_control_an_unordered_product_is_contracted(target):
    kernel = row_dot(target, "fp32", None)
    if "ptx" in kernel.asm:
        assert fused_in_ptx(kernel.asm["ptx"])
    else:
        assert FUSED_AMD.findall(kernel.asm["amdgcn"])


@triton.jit
def row_sums_of_product(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows, columns, inner = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    a = tl.load(x + rows[:, None] * K + inner[None, :])
    b = tl.load(y + inner[:, None] * N + columns[None, :])
    tl.store(out + rows, tl.sum(tl.dot(a, b), axis=1, order="inner_tree"))


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_the_result_of_a_matrix_product_is_folded(target):
    kernel = compile(row_sums_of_product, target, "x:fp16 y:fp16 out:fp32", M=64, N=128, K=64)
    (reduction,) = report(kernel)
    assert reduction["extent"] == 128
    assert reduction["digest"]


@triton.jit
def sums_over_tiles(x, out, steps, M: tl.constexpr, N: tl.constexpr, SPECIAL: tl.constexpr):
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros([M], tl.float32)
    for step in tl.range(steps, warp_specialize=SPECIAL):
        tile = tl.load(x + (step * M + rows)[:, None] * N + columns[None, :])
        total += tl.sum(tile, axis=1, order="inner_tree")
    tl.store(out + rows, total)


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
@pytest.mark.parametrize("stages", (1, 2, 4))
@pytest.mark.parametrize("special", (False, True))
def test_pipelined_and_specialised_loops_keep_the_pin(target, stages, special):
    kernel = compile(
        sums_over_tiles,
        target,
        "x:fp32 out:fp32 steps:i32",
        options={"num_stages": stages},
        M=32,
        N=128,
        SPECIAL=special,
    )
    assert {reduction["extent"] for reduction in report(kernel)} == {128}


@triton.jit
def _total(values, ORDER: tl.constexpr):
    return tl.sum(values, axis=0, order=ORDER)


@triton.jit
def calls_a_function_twice(x, out):
    values = tl.load(x + tl.arange(0, 256))
    tl.store(out, _total(values, "inner_tree"))
    tl.store(out + 1, _total(values, None))


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_an_inlined_function_is_pinned_where_it_says_so(target):
    kernel = compile(calls_a_function_twice, target)
    assert len(report(kernel)) == 1
    assert kernel.asm["ttgir"].count('"tt.reduce"') == 2


@gluon.jit
def gluon_row_sum(x, out, lanes: gl.constexpr, warps: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [1, lanes], [1, warps], [1, 0])
    at = gl.arange(0, 1024, layout=gl.SliceLayout(0, layout))[None, :]
    total = gl.sum(gl.load(x + at), axis=1)
    gl.store(out + gl.arange(0, 1, layout=gl.SliceLayout(1, layout)), total)


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_gluon_under_the_strict_knob(target):
    signature = {"x": "*fp32", "out": "*fp32", "lanes": "constexpr", "warps": "constexpr"}
    constants = {"lanes": target.warp_size, "warps": 4}
    with knobs.language.scope():
        knobs.language.strict_reduction_ordering = True
        source = GluonASTSource(gluon_row_sum, signature, constants)
        kernel = triton.compile(source, target=target, options={"num_warps": 4})
    (reduction,) = report(kernel)
    assert reduction["extent"] == 1024
