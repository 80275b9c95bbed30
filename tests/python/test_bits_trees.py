"""Dependence trees of compiled PTX: not one draw, but which operations made each output.

A canonical tree is canonical for every input. Its digest is blind to operand order where an
operation commutes, and must not depend on warps, pointers, fusion or target.
"""

import pytest

from bits import WARPS, Build, ptx_exec
from compiling import SM80, SM100
from test_bits import (
    by_name,
    everything,
    middle,
    padded_sum,
    products,
    tile_sum,
    vector_sum,
)

SUMS = [
    vector_sum(1024), padded_sum(608, 1024), tile_sum(4, 1024, 1), tile_sum(16, 256, 1),
    tile_sum(128, 32, 0), tile_sum(64, 128, 0), middle(4, 32, 16), everything(16, 64),
    products(16, 256, 1), products(128, 32, 0),
    *(tile_sum(16, 256, 1, dtype) for dtype in ("f64", "f16", "bf16")),
    *(products(16, 256, 1, dtype) for dtype in ("f16", "bf16")),
]  # fmt: skip
TARGETS = (SM80, SM100)


@by_name(SUMS)
def test_trees(case):
    """Every build yields the canonical tree and one digest; nothing in it may be contracted."""
    builds = [Build(warps) for warps in WARPS]
    builds += [Build(8, False, False), *(Build(4, True, True, target) for target in TARGETS)]
    digests = set()
    for build in builds:
        compiled, (launch, _) = case.compile(build), case.launch()
        tree = launch.tree(compiled, build, case.extent)
        assert tree.canonical, f"{case.name} ({build}): {tree.why}"
        assert not ptx_exec.contractions(compiled.ptx), f"{case.name} ({build})"
        digests.add(tree.digest)
    assert len(digests) == 1


@by_name([vector_sum(1024), tile_sum(16, 256, 1), tile_sum(128, 32, 0)])
def test_without_an_order_trees_are_not_canonical(case):
    """The negative control: stock's trees are told from the canonical one, and from each other."""
    trees = set()
    for warps in (1, 4, 32):
        build = Build(warps)
        trees.add(case.launch()[0].tree(case.compile(build, order=None), build, case.extent))
    assert not any(tree.canonical for tree in trees)
    assert len({tree.digest for tree in trees}) > 1


@pytest.mark.parametrize("warps", (1, 4))
def test_fused_products_are_no_canonical_tree(warps):
    """With fusion on, stock folds the products of a column sum into fused operations."""
    case, build = products(128, 32, 0), Build(warps)
    compiled, (launch, _) = case.compile(build, order=None), case.launch()
    assert "fma.rn.f32" in compiled.ptx
    assert not launch.tree(compiled, build, case.extent).canonical
