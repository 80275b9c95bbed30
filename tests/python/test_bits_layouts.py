"""The layout rewrite moves no bits, and never costs a compilation."""

import pytest
from triton.bitstable import stages
from triton.bitstable.errors import ReductionOrderError

import kernels
import oracle
from bits import Build, describe
from compiling import SM90
from compiling import compile as compile_all
from test_bits import tile, tile_sum

CASES = [
    tile_sum(64, 128, 0),
    tile_sum(16, 256, 0, "f16"),
    tile_sum(4, 1024, 1),
    tile_sum(1, 4096, 1),
    tile(
        kernels.sum_products, 128, 64, 0,
        lambda x, y: oracle.total(oracle.product(x, y, "f32"), 0, "f32"), inputs=2,
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
@pytest.mark.parametrize("warps", (1, 4, 8))
def test_bits_with_and_without_the_rewrite(case, warps, monkeypatch):
    launch, expected = case.launch()
    build = Build(warps=warps)
    with_rewrite = case.compile(build)
    monkeypatch.setattr(stages, "PIPELINE", "pin-reduce")
    without = case.compile(build)
    assert oracle.same_bits(launch.run(without, build), expected).all()
    got = launch.run(with_rewrite, build)
    assert oracle.same_bits(got, expected).all(), describe(got, expected)


def test_the_rewrite_changes_the_layout():
    """The comparison above would be idle if both compilations were the same."""
    case, build = CASES[0], Build(warps=4)
    with_rewrite = case.compile(build).ptx
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stages, "PIPELINE", "pin-reduce")
        assert case.compile(build).ptx != with_rewrite


def test_a_module_that_triton_does_not_read_is_compiled_without_the_rewrite(monkeypatch):
    tried = []
    rewrite = stages.rewrite

    def unreadable(module, pipeline, scan=None):
        tried.append(pipeline)
        if pipeline == stages.PIPELINE:
            raise ReductionOrderError([stages._UNREADABLE], bug=True)
        return rewrite(module, pipeline, scan)

    monkeypatch.setattr(stages, "rewrite", unreadable)
    monkeypatch.setenv("TRITON_ALWAYS_COMPILE", "1")
    kernel = compile_all(kernels.sum_tile, SM90, M=64, N=128, AXIS=0, ORDER="inner_tree")
    assert tried == [stages.PIPELINE, "pin-reduce"]
    assert "add.rn.f32" in kernel.asm["ptx"]
