"""A pin that is lost on the way is an error, never another order."""

import re

import pytest
import triton
import triton.language as tl
from triton.bitstable import _native, stages
from triton.bitstable.errors import ReductionOrderError

from compiling import ORDER, SM90, VENDORS, Pipeline, name_of


@triton.jit
def kernel(x, out):
    rows = tl.arange(0, 16)
    tile = tl.load(x + rows[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out + rows, tl.sum(tile, 1, order="inner_tree"))


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_a_deleted_tag_is_noticed(target, tmp_path):
    path = tmp_path / "kernel.ttgir"
    written = Pipeline(kernel, target).run("ttir", "ttgir").text
    assert ORDER in written
    path.write_text(re.sub(r" \{tt\.order = \"inner_tree\"\}", "", written))
    with pytest.raises(ReductionOrderError, match="order"):
        triton.compile(str(path), target=target)


def test_a_shield_that_survives_our_pass_is_noticed(monkeypatch):
    # A library that changes nothing: what a lost rewrite would look like.
    class Idle:
        def rewrite(self, module, pipeline):
            return module, {"reductions": []}

    monkeypatch.setattr(_native, "library", Idle)
    pipeline = Pipeline(kernel, SM90).run("ttir", "ttgir")
    stages.install(pipeline.stages)
    with pytest.raises(ReductionOrderError, match="please report") as caught:
        pipeline.run("llir")
    assert caught.value.bug
