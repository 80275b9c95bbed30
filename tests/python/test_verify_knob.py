"""Whether a kernel is verified is part of every cache key, and can be said in four ways."""

import os

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.bitstable import certificates
from triton.runtime import driver

from compiling import SM90, compile


@triton.jit
def kernel(x, out):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, 128)), 0, order="inner_tree"))


@pytest.fixture
def compilations(tmp_path):
    """A private cache on disk, and a list of what was really compiled."""
    compiled = []

    def listen(*, src, metadata, metadata_group, times, cache_hit):
        if not cache_hit:
            compiled.append(metadata["bitstable_verify"])

    with knobs.cache.scope(), knobs.compilation.scope(), knobs.language.scope():
        knobs.cache.dir = str(tmp_path)
        knobs.compilation.always_compile = False
        knobs.compilation.listener = listen
        yield compiled


def test_it_is_part_of_the_key_on_disk(compilations):
    for verified in (False, True, False, True):
        knobs.language.bitstable_verify = verified
        # A certificate is kept with the kernel that it is about.
        assert len(certificates(compile(kernel, SM90))) == int(verified)
    assert compilations == [False, True]


def test_the_variable_is_the_knob(compilations):
    for value in ("0", "1", "0", "1"):
        os.environ["TRITON_BITSTABLE_VERIFY"] = value
        compile(kernel, SM90)
    assert compilations == [False, True]


class _Driver:
    """A driver for compiling alone: it answers what is asked before a launch."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return SM90


@pytest.fixture
def no_device():
    before = driver._active
    driver.set_active(_Driver())
    yield
    driver._active = before


def test_it_is_part_of_the_key_in_the_process(compilations, no_device):
    argument = triton.MockTensor(tl.float32)
    found = []
    for verified in (False, True, False, True):
        knobs.language.bitstable_verify = verified
        found.append(kernel.warmup(argument, argument, grid=(1,)))
    assert found[0] is found[2]
    assert found[1] is found[3]
    assert [len(certificates(k)) for k in found] == [0, 1, 0, 1]


def test_one_launch_can_ask_for_it(compilations, no_device):
    argument = triton.MockTensor(tl.float32)
    verified = kernel.warmup(argument, argument, grid=(1,), bitstable_verify=True)
    assert len(certificates(verified)) == 1
    assert certificates(kernel.warmup(argument, argument, grid=(1,))) == []
