"""A kernel without a pinned reduction compiles to exactly what stock Triton makes of it."""

import json
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.bitstable import _native, stages

import stock
from compiling import TARGETS, compile, name_of

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stock")
    path = stock.unpack(folder / "site")
    results = []
    for name, where in (("theirs", path), ("ours", None)):
        output = folder / f"{name}.json"
        cache = {"TRITON_CACHE_DIR": str(folder / name)}
        stock.run(HERE / "unpinned.py", output, path=where, **cache)
        results.append(json.loads(output.read_text()))
    return results


def test_the_comparison_is_between_two_tritons(both):
    theirs, ours = both
    assert theirs.pop("version") == "3.9.0"
    assert ours.pop("version") == triton.__version__ != "3.9.0"


def test_machine_code_is_stocks_to_the_byte(both):
    theirs, ours = ({k: v for k, v in each.items() if k != "version"} for each in both)
    assert theirs.keys() == ours.keys()
    assert len(theirs) == 45
    differing = [name for name in theirs if theirs[name] != ours[name]]
    assert not differing


@triton.jit
def unpinned(x, out):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, 256)), 0))


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_an_unpinned_kernel_takes_no_detour(target, monkeypatch):
    def never(*_):
        raise AssertionError("the native library was asked")

    monkeypatch.setattr(_native, "library", never)
    monkeypatch.setattr(stages, "rewrite", never)
    compile(unpinned, target, options={"num_warps": 2})
