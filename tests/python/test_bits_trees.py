"""Dependence trees of compiled PTX: not one draw, but which operations made each output.

A canonical tree is canonical for every input. Its digest is blind to operand order where an
operation commutes, and must not depend on warps, pointers, fusion or target.
"""

from dataclasses import replace

import pytest

from bits import WARPS, Build
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
BUILDS = [
    *(Build(warps) for warps in WARPS),
    Build(8, False, False),
    *(Build(4, True, True, target) for target in (SM80, SM100)),
]


@by_name(SUMS)
def test_trees(case):
    """Every build yields the canonical tree and one digest; nothing in it may be contracted."""
    kernels = [case.compile(build) for build in BUILDS]
    trees = case.launch()[0].trees(kernels, case.extent)
    for build, tree in zip(BUILDS, trees, strict=True):
        assert tree.canonical, f"{case.name} ({build}): {tree.why}"
        assert not tree.contractible, f"{case.name} ({build})"
    (digest,) = {tree.digest for tree in trees}
    assert digest


def test_an_addition_that_may_be_contracted_is_told():
    """The control: canonical all the same, but ptxas may fuse a product into it."""
    case = products(16, 256, 1)
    compiled = case.compile(Build())
    assert "add.rn.f32" in compiled.ptx
    loose = replace(compiled, ptx=compiled.ptx.replace("add.rn.f32", "add.f32"))
    (tree,) = case.launch()[0].trees([loose], case.extent)
    assert tree.canonical, tree.why
    assert tree.contractible


@by_name([vector_sum(1024), tile_sum(16, 256, 1), tile_sum(128, 32, 0)])
def test_without_an_order_trees_are_not_canonical(case):
    """The negative control: stock's trees are told from the canonical one, and from each other."""
    kernels = [case.compile(Build(warps), order=None) for warps in (1, 4, 32)]
    trees = case.launch()[0].trees(kernels, case.extent)
    assert not any(tree.canonical for tree in trees)
    digests = {tree.digest for tree in trees}
    assert None not in digests
    assert len(digests) > 1


@pytest.mark.parametrize("warps", (1, 4))
def test_fused_products_are_no_canonical_tree(warps):
    """With fusion on, stock folds the products of a column sum into fused operations."""
    case = products(128, 32, 0)
    compiled = case.compile(Build(warps), order=None)
    assert "fma.rn.f32" in compiled.ptx
    (tree,) = case.launch()[0].trees([compiled], case.extent)
    assert not tree.canonical
    assert "fma" in tree.why
