"""The strict knob: every reduction that does not state an order is pinned."""

import os
import subprocess
import sys

import pytest
import triton
import triton.language as tl
from triton import knobs

from compiling import VENDORS, front_end, name_of, pinned

VARIABLE = "TRITON_STRICT_REDUCTION_ORDERING"


@triton.jit
def kernel(x, out):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(out + 0, tl.sum(v, 0))
    tl.store(out + 1, tl.sum(v, 0, order="inner_tree"))
    tl.store(out + 2, tl.sum(v, 0, reduction_ordering=tl.ReductionOrdering.UNORDERED))
    tl.store(out + 3, tl.sum(v, 0, order=None))


@triton.jit
def library(x, out):
    v = tl.load(x + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :])
    v = tl.sort(tl.softmax(v))
    tl.store(out + tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :], v)


@pytest.fixture(autouse=True)
def restore():
    with knobs.language.scope():
        yield


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_knob_set_after_import(target):
    assert pinned(front_end(kernel, target)) == 1
    knobs.language.strict_reduction_ordering = True
    # The call without an order and the one with None share a function: two pinned functions.
    assert pinned(front_end(kernel, target)) == 2
    knobs.language.strict_reduction_ordering = False
    assert pinned(front_end(kernel, target)) == 1


def test_variable_set_after_import():
    os.environ[VARIABLE] = "1"
    assert pinned(front_end(kernel)) == 2
    os.environ[VARIABLE] = "0"
    assert pinned(front_end(kernel)) == 1


def test_variable_set_before_import():
    probe = "from triton import knobs; print(knobs.language.strict_reduction_ordering)"
    environment = {**os.environ, VARIABLE: "1"}
    done = subprocess.run(
        [sys.executable, "-c", probe], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "True"


def test_a_compile_option_beats_the_knob():
    options = {"strict_reduction_ordering": True}
    assert pinned(front_end(kernel, options=options)) == 2
    knobs.language.strict_reduction_ordering = True
    assert pinned(front_end(kernel, options={"strict_reduction_ordering": False})) == 1


def test_reductions_inside_the_library_are_pinned_too():
    assert pinned(front_end(library)) == 0
    knobs.language.strict_reduction_ordering = True
    text = front_end(library)
    assert pinned(text) == text.count('"tt.reduce"') > 0
