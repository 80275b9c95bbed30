"""What changes the code changes the key: on disk, and in the process."""

import os

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.compiler import make_backend
from triton.runtime import cache as triton_cache
from triton.runtime import driver

from compiling import SM90, compile, pinned, source


@triton.jit
def kernel(x, out):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, 128)), 0))


@pytest.fixture
def compilations(tmp_path):
    """A private cache on disk, and a list of what was really compiled."""
    compiled = []

    def listen(*, src, metadata, metadata_group, times, cache_hit):
        if not cache_hit:
            compiled.append(metadata["strict_reduction_ordering"])

    with knobs.cache.scope(), knobs.compilation.scope(), knobs.language.scope():
        knobs.cache.dir = str(tmp_path)
        knobs.compilation.always_compile = False
        knobs.compilation.listener = listen
        yield compiled


def test_the_knob_is_part_of_the_key_on_disk(compilations):
    for strict in (False, True, False, True):
        knobs.language.strict_reduction_ordering = strict
        text = compile(kernel, SM90).asm["ttgir"]
        assert pinned(text) == int(strict)
    assert compilations == [False, True]


def test_the_variable_is_part_of_the_key_on_disk(compilations):
    for value in ("0", "1", "0", "1"):
        os.environ["TRITON_STRICT_REDUCTION_ORDERING"] = value
        compile(kernel, SM90)
    assert compilations == [False, True]


def test_orders_are_part_of_the_key(compilations):
    @triton.jit
    def ordered(x, out, ORDER: tl.constexpr):
        tl.store(out, tl.sum(tl.load(x + tl.arange(0, 128)), 0, order=ORDER))

    for order in (None, "inner_tree", None, "inner_tree"):
        assert pinned(compile(ordered, SM90, ORDER=order).asm["ttgir"]) == int(order is not None)
    assert len(compilations) == 2


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


def test_the_knob_is_part_of_the_key_in_the_process(compilations, no_device):
    argument = triton.MockTensor(tl.float32)
    kernels = []
    for strict in (False, True, False, True):
        knobs.language.strict_reduction_ordering = strict
        kernels.append(kernel.warmup(argument, argument, grid=(1,)))
    first, second, third, fourth = kernels
    assert first is third
    assert second is fourth
    assert [pinned(k.asm["ttgir"]) for k in kernels] == [0, 1, 0, 1]
    assert compilations == [False, True]


def test_a_launch_option_pins_one_launch(compilations, no_device):
    argument = triton.MockTensor(tl.float32)
    strict = kernel.warmup(argument, argument, grid=(1,), strict_reduction_ordering=True)
    assert pinned(strict.asm["ttgir"]) == 1
    assert pinned(kernel.warmup(argument, argument, grid=(1,)).asm["ttgir"]) == 0


def key():
    backend = make_backend(SM90)
    options = backend.parse_options({})
    return triton_cache.get_cache_key(source(kernel), backend, options, {})


@pytest.fixture
def fresh_key():
    triton_cache.triton_key.cache_clear()
    yield
    triton_cache.triton_key.cache_clear()


def test_our_version_is_part_of_the_key(monkeypatch, fresh_key):
    before = key()
    assert "+bitstable." in before
    monkeypatch.setattr(triton_cache, "__version__", "3.9.0+bitstable.99")
    triton_cache.triton_key.cache_clear()
    assert key() != before


def test_our_files_are_part_of_the_key(monkeypatch, fresh_key):
    # A rebuilt library of the same version must not find the old one's kernels.
    before = key()
    monkeypatch.setattr(triton_cache, "bitstable_hashes", lambda: ["another build"])
    triton_cache.triton_key.cache_clear()
    assert key() != before


def test_the_version_recompiles(compilations, monkeypatch, fresh_key):
    compile(kernel, SM90)
    monkeypatch.setattr(triton_cache, "__version__", "3.9.0+bitstable.99")
    triton_cache.triton_key.cache_clear()
    compile(kernel, SM90)
    compile(kernel, SM90)
    assert len(compilations) == 2
