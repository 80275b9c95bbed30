"""Pinned reductions through the whole compiler: from kernels, from text, from many threads."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import triton
import triton.language as tl
from triton.bitstable.errors import ReductionOrderError

from compiling import GFX942, SM90, TARGETS, VENDORS, Pipeline, compile, name_of, pinned


@triton.jit
def row_sum(x, out, N: tl.constexpr, ORDER: tl.constexpr):
    rows = tl.arange(0, 16)
    tile = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out + rows, tl.sum(tile, 1, order=ORDER))


@triton.jit
def index(x, out):
    rows = tl.arange(0, 16)
    tile = tl.load(x + rows[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out + rows, tl.argmax(tile, 1, order="inner_tree"))


@triton.jit
def of_a_constant(x, out):
    tl.store(out, tl.sum(tl.full([256], 0.1, tl.float32), 0, order="inner_tree"))


def machine(compiled):
    return compiled.asm["ptx"] if "ptx" in compiled.asm else compiled.asm["amdgcn"]


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
@pytest.mark.parametrize("warps", [1, 4, 16])
def test_a_pinned_sum_compiles_and_reports_its_tree(target, warps):
    compiled = compile(row_sum, target, options={"num_warps": warps}, N=256, ORDER="inner_tree")
    (reduction,) = compiled.metadata.bitstable["reductions"]
    assert (reduction["axis"], reduction["extent"]) == (1, 256)
    assert re.fullmatch(r"[0-9a-f]{16,}", reduction["digest"])
    assert "bitstable.pin" not in compiled.asm["llir"]
    # The TTGIR that is kept is what a person can read: pinned, not yet lowered.
    assert pinned(compiled.asm["ttgir"]) == 1


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_an_unpinned_kernel_reports_nothing(target):
    assert not hasattr(compile(row_sum, target, N=256, ORDER=None).metadata, "bitstable")


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
@pytest.mark.parametrize("kernel", [index, of_a_constant], ids=lambda kernel: kernel.__name__)
def test_shields_that_moved_above_broadcasts_and_splats(target, kernel):
    # `triton-reorder-broadcast` moves elementwise operations, and so shields, to before them.
    assert len(compile(kernel, target).metadata.bitstable["reductions"]) == 1


def text_of(stage, target, order="inner_tree"):
    """A module as text from elsewhere has it: tagged, without shields."""
    pipeline = Pipeline(row_sum, target, N=256, ORDER=order)
    stages = {"ttir": ("ttir",), "ttgir": ("ttir", "ttgir")}[stage]
    lines = pipeline.run(*stages).text.splitlines(keepends=True)
    kept = []
    replaced = {}
    for line in lines:
        shield = re.match(r"\s*(%\w+) = tt\.extern_elementwise (%\w+) .*bitstable\.pin", line)
        if shield:
            replaced[shield[1]] = shield[2]
        else:
            kept.append(re.sub(r"%\w+", lambda m: replaced.get(m[0], m[0]), line))
    return "".join(kept)


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
@pytest.mark.parametrize("stage", ["ttir", "ttgir"])
def test_text_from_elsewhere_is_honoured(stage, target, tmp_path):
    path = tmp_path / f"kernel.{stage}"
    path.write_text(text_of(stage, target))
    assert "bitstable" not in path.read_text()
    compiled = triton.compile(str(path), target=target, options={"num_warps": 4})
    (reduction,) = compiled.metadata.bitstable["reductions"]
    from_kernel = compile(row_sum, target, N=256, ORDER="inner_tree").metadata.bitstable
    assert reduction["digest"] == from_kernel["reductions"][0]["digest"]


@pytest.mark.parametrize("order", ['"outer_tree"', "7 : i32", "true"])
def test_a_malformed_order_in_text_is_refused(order, tmp_path):
    path = tmp_path / "kernel.ttgir"
    path.write_text(
        text_of("ttgir", SM90).replace('tt.order = "inner_tree"', f"tt.order = {order}")
    )
    with pytest.raises(ReductionOrderError) as caught:
        triton.compile(str(path), target=SM90)
    assert not caught.value.bug


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_compile_threads(target):
    def one(number):
        extent = 64 << (number % 4)
        compiled = compile(row_sum, target, N=extent, ORDER="inner_tree" if number % 3 else None)
        return extent, number % 3, machine(compiled)

    jobs = list(range(24))
    with ThreadPoolExecutor(8) as pool:
        at_once = list(pool.map(one, jobs))
    assert at_once == [one(number) for number in jobs]


@pytest.mark.parametrize("target", [SM90, GFX942], ids=name_of)
def test_the_tree_is_a_function_of_the_extent(target):
    digests = {
        (
            extent,
            compile(
                row_sum, target, options={"num_warps": warps}, N=extent, ORDER="inner_tree"
            ).metadata.bitstable["reductions"][0]["digest"],
        )
        for extent in (64, 512)
        for warps in (1, 2, 8)
    }
    assert len(digests) == 2
