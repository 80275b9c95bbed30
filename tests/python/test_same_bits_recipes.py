"""What `docs/tuning.md` says, run. The checker is a fake, and so is Inductor."""

import importlib.util
import re
import sys
import types

import numpy as np
import pytest
import triton
from triton.bitstable import emulate

import fake_checker
from checkout import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "docs/tuning.md").read_text(), re.DOTALL)


def block(word):
    """The one block of code with this word in it."""
    (found,) = (each for each in BLOCKS if word in each)
    return found


@pytest.fixture
def checker(monkeypatch):
    return fake_checker.install(monkeypatch, lambda kernel: "one")


@pytest.fixture
def row_sum(tmp_path):
    """The guide's kernel; Triton reads its source from a file."""
    path = tmp_path / "guide.py"
    path.write_text(block("def row_sum"))
    spec = importlib.util.spec_from_file_location("guide", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.row_sum


def arguments():
    return np.ones((3, 1000), np.float32), np.zeros(3, np.float32)


def test_the_first_example(checker, row_sum):
    x, out = arguments()
    program = block("with emulate")
    exec(program, {"row_sum": row_sum, "rows": 3, "x": x, "out": out})
    assert list(out) == [1000] * 3
    assert row_sum.early_config_prune.kept == row_sum.configs
    exec(block("assert row_sum").strip(), {"row_sum": row_sum})


def test_what_was_kept_is_handed_to_another_autotuner(checker, row_sum):
    checker.label = lambda kernel: "num_warps: 1" in kernel["name"]
    x, out = arguments()
    names = {"triton": triton, "tuned": row_sum, "grid": (3,), "x": x, "out": out, "n": 1000}
    with emulate("cuda:90"):
        exec(block("chosen ="), names)
    assert names["chosen"].configs == row_sum.configs[:1]
    assert names["chosen"].fn is row_sum.fn


class Result:
    """A compile result of Inductor's."""

    def __init__(self, kernel, **config):
        self.kernel = kernel
        self.config = triton.Config(config)


def inductor(monkeypatch):
    """Modules with a `CachingAutotuner` that makes launchers as Inductor's does."""

    class CachingAutotuner:
        def _make_launchers(self):
            self.launchers = list(self.compile_results)

    names = ["torch", "torch._inductor", "torch._inductor.runtime"]
    names.append(names[-1] + ".triton_heuristics")
    for name in names:
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    sys.modules[names[-1]].CachingAutotuner = CachingAutotuner
    return CachingAutotuner


def test_inductor_makes_launchers_of_one_class(checker, row_sum, monkeypatch):
    x, out = arguments()
    with emulate("cuda:90"):
        kernels = [
            row_sum.fn[(3,)](x, out, 1000, BLOCK=1024, num_warps=warps) for warps in (1, 2, 4, 8)
        ]
    tuner = inductor(monkeypatch)
    exec(block("CachingAutotuner"), {})
    made = tuner()
    made.compile_results = [
        Result(kernels[0], XBLOCK=1, R0_BLOCK=64),
        Result(kernels[1], XBLOCK=1, R0_BLOCK=128),
        Result(kernels[2], XBLOCK=2, R0_BLOCK=64),
        Result(kernels[3], XBLOCK=1, R0_BLOCK=64),
    ]
    checker.label = lambda kernel: kernel["name"] == "kernel 1"
    first, _, _, last = made.compile_results
    made._make_launchers()
    # One is of another class, one is launched on another grid.
    assert made.launchers == [first, last]
    del checker.requests[:]
    made.compile_results = [first]
    made._make_launchers()
    assert made.launchers == [first] and not checker.requests


def test_a_kernel_without_ptx_is_not_compared(checker, row_sum, monkeypatch):
    class StaticallyLaunchedCudaKernel:
        pass

    tuner = inductor(monkeypatch)
    exec(block("CachingAutotuner"), {})
    made = tuner()
    made.compile_results = [Result(StaticallyLaunchedCudaKernel(), XBLOCK=1) for _ in range(2)]
    first = made.compile_results[0]
    made._make_launchers()
    assert made.launchers == [first] and not checker.requests
