"""What `same_bits` takes from a launch: arguments, grids, heuristics, hooks; of a fake checker."""

import os
import struct
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.bitstable import SameBitsError, emulate, same_bits
from triton.bitstable.tuning import proved_same
from triton.bitstable.tuning.facts import Facts, grid_of, scalar_bits

import fake_checker


@triton.jit
def scalars(out, i, big, f, half: "fp16", b, none, pair, word, LEFT: tl.constexpr):  # noqa: F821
    tl.store(out, i + big + f + half + b + pair[1] + LEFT)


@triton.jit
def tiles(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)


@triton.jit
def split(x, out, n, parts, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n) * parts, mask=at < n)


@pytest.fixture
def checker(monkeypatch):
    return fake_checker.install(monkeypatch, lambda kernel: "one")


def tune(kernel, configs, key=(), grid="any", reference=None, **options):
    prune = {"early_config_prune": same_bits(reference, grid=grid)}
    return triton.autotune(configs, key=list(key), prune_configs_by=prune, **options)(kernel)


def launch(kernel, grid, *arguments, **options):
    with emulate("cuda:90"):
        kernel[grid](*arguments, **options)
    return kernel


WARPS = [triton.Config({}, num_warps=1), triton.Config({}, num_warps=2)]


def scalars_told(checker, key, **changed):
    given = {"i": -5, "big": 2**40, "f": 0.1, "half": 1.5, "b": True, "none": None}
    given |= {"pair": (np.zeros(1, np.float32), 7), "word": 3} | changed
    launch(tune(scalars, WARPS, key), (1,), np.zeros(1, np.float32), **given, LEFT=2)
    told = [kernel.get("scalars") for kernel in checker.kernels]
    assert told[0] == told[1]
    return told[0]


def test_scalars_of_the_key_are_facts_by_their_number_in_the_ptx(checker):
    key = ["i", "big", "f", "half", "b", "word"]
    assert scalars_told(checker, key) == {
        "1": hex(2**32 - 5),
        "2": hex(2**40),
        "3": hex(struct.unpack("<I", struct.pack("<f", 0.1))[0]),
        "4": "0x3e00",
        "5": "0x1",
        "8": "0x3",  # after a pointer and a number from the pair; None takes no parameter
    }
    parameters = checker.kernels[0]["ptx"].split(")")[0].count(".param")
    assert parameters == 9 + 2  # and Triton's two scratch pointers


def test_scalars_that_are_not_in_the_key_are_no_facts(checker):
    assert scalars_told(checker, []) is None
    assert scalars_told(checker, ["f"]) == {"3": scalar_bits("fp32", 0.1)}


def test_zeros_of_either_sign_share_a_key_and_so_are_no_fact(checker):
    assert scalars_told(checker, ["f", "word"], f=0.0) == {"8": "0x3"}
    assert {(0.0,): "tuned"}[(-0.0,)] == "tuned"  # as the autotuner's cache has it


def test_a_scalar_that_is_compiled_in_is_no_parameter(checker):
    assert scalars_told(checker, ["i", "word"], i=1) == {"7": "0x3"}


@pytest.mark.parametrize(
    ("kind", "value", "bits"),
    [
        ("i32", -1, "0xffffffff"),
        ("u64", 2**64 - 1, hex(2**64 - 1)),
        ("i8", -128, "0x80"),
        ("i1", True, "0x1"),
        ("u1", False, "0x0"),
        ("fp64", -0.0, hex(1 << 63)),
        ("fp32", 1e300, "0x7f800000"),  # as the launcher passes it
        ("fp16", 65504.0, "0x7bff"),
        ("bf16", 1.0 + 2**-8, "0x3f80"),
        ("fp16", 1e6, None),  # which the launcher refuses
        ("*fp32", 16, None),
        ("i32", "five", None),
        ("nvTmaDesc", 5, None),
    ],
)
def test_the_bits_of_a_scalar(kind, value, bits):
    assert scalar_bits(kind, value) == bits


def test_numbers_after_a_descriptor_are_not_known():
    signature = {"a": "i32", "d": "tensordesc<fp16[64,64]>", "n": "i32"}
    facts = Facts.of(signature, {"a": 4, "d": object(), "n": 5}, {"a", "n"})
    assert facts.scalars == ((0, "0x4"),)
    assert len(facts.parameters) == 3


def test_a_grid_is_counted_as_triton_counts_it():
    assert grid_of((3,), {}) == (3, 1, 1)
    assert grid_of(lambda bound: (bound["n"], 2, np.int64(4)), {"n": 5}) == (5, 2, 4)
    assert grid_of(None, {}) is None


BLOCKS = [triton.Config({"BLOCK": size}, num_warps=1) for size in (32, 64)]


def blocks(checker, grid):
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    kernel = tune(tiles, BLOCKS, ["n"], grid)
    launch(kernel, lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),), x, out, 100)
    assert (out == 2).all()
    return kernel.early_config_prune.selection


def test_grids_of_other_sizes_are_not_compared_by_the_cta(checker):
    selection = blocks(checker, "any")
    assert selection.kept == [0]
    assert "launched on 2×1×1 CTAs, the reference on 4×1×1 CTAs" in selection.judged[1].reason
    assert "grid" not in checker.kernels[0]


def test_grids_that_follow_from_the_key_are_facts(checker):
    assert blocks(checker, "launch").kept == [0, 1]
    assert [kernel["grid"] for kernel in checker.kernels] == [[4, 1, 1], [2, 1, 1]]


def test_one_buffer_passed_twice_is_not_what_is_proved(checker):
    configs = [BLOCKS[0], BLOCKS[0], triton.Config({"BLOCK": 32}, num_warps=2)]
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    kernel = launch(tune(tiles, configs, ["n"], restore_value=["x"]), (1,), x, x, 32)
    assert (x == 2).all()
    selection = kernel.early_config_prune.selection
    assert selection.kept == [0, 1]  # equal texts are the same even so
    assert selection.judged[2].reason.startswith("x and out are one buffer")
    kernel = launch(tune(tiles, configs, ["n"]), (1,), x, out, 32)
    assert kernel.early_config_prune.selection.kept == [0, 1, 2]


@triton.jit
def added(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    total = tl.load(x + at, mask=live) + tl.load(y + at, mask=live)
    tl.store(out + at, total, mask=live)


@pytest.mark.parametrize(("writes", "kept"), [([2], [0, 1]), ([1, 2], [0]), (None, [0])])
def test_buffers_that_are_only_read_may_be_one(checker, writes, kept):
    checker.extra["one"] = {} if writes is None else {"writes": writes}
    configs = [triton.Config({"BLOCK": 32}, num_warps=warps) for warps in (1, 2)]
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    kernel = launch(tune(added, configs, ["n"]), (1,), x, x, out, 32)
    assert (out == 2).all()
    assert kernel.early_config_prune.selection.kept == kept


def test_what_a_configuration_passes_at_run_time_is_a_fact(checker):
    configs = [triton.Config({"parts": parts, "BLOCK": 32}) for parts in (2, 3)]
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    launch(tune(split, configs), (1,), x, out, 32)
    # `n` is not in the key, and `parts` is told for each.
    assert [kernel["scalars"] for kernel in checker.kernels] == [{"3": "0x2"}, {"3": "0x3"}]


def test_other_facts_are_not_equal_where_a_kernel_is_not_followed(checker):
    checker.extra["one"] = {"obstacle": {"what": "text alone", "line": 1, "source": None}}
    configs = [triton.Config({"parts": parts, "BLOCK": 32}) for parts in (2, 3)]
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    kernel = launch(tune(split, configs), (1,), x, out, 32)
    assert checker.kernels[0]["ptx"] == checker.kernels[1]["ptx"]
    assert kernel.early_config_prune.selection.kept == [0]


def test_another_grid_is_not_equal_where_a_kernel_is_not_followed(checker):
    checker.extra["one"] = {"obstacle": {"what": "text alone", "line": 1, "source": None}}

    @triton.heuristics({"BLOCK": lambda args: 32})
    @triton.jit
    def equal(x, out, n, BLOCK: tl.constexpr):
        at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

    x, out = np.ones(64, np.float32), np.zeros(64, np.float32)
    kernel = tune(equal, [WARPS[0], WARPS[0]], ["n"], "launch")
    sizes = iter([2, 3, 2])
    launch(kernel, lambda meta: (next(sizes),), x, out, 64)
    assert [each["grid"][0] for each in checker.kernels] == [2, 3]
    assert kernel.early_config_prune.selection.kept == [0]


def test_heuristics_are_asked_for_each_configuration(checker):
    @triton.heuristics({"parts": lambda args: 128 // args["BLOCK"]})
    @triton.jit
    def halves(x, out, n, parts, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) * parts, mask=at < n)

    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    launch(tune(halves, BLOCKS), (1,), x, out, 32)
    assert [kernel["scalars"] for kernel in checker.kernels] == [{"3": "0x4"}, {"3": "0x2"}]


def test_a_heuristic_may_choose_a_constant(checker):
    @triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
    @triton.jit
    def whole(x, out, n, BLOCK: tl.constexpr):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at, mask=at < n) + 1, mask=at < n)

    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    kernel = launch(tune(whole, WARPS, ["n"]), (1,), x, out, 100)
    assert kernel.early_config_prune.selection.kept == [0, 1]
    assert (out == 2).all()


def test_arguments_may_have_names_and_defaults(checker):
    @triton.jit
    def named(x, out, n=7, BLOCK: tl.constexpr = 32):
        at = tl.arange(0, BLOCK)
        tl.store(out + at, tl.load(x + at) + n)

    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    launch(tune(named, WARPS, ["n"]), (1,), x, out=out)
    assert (out == 8).all()
    assert checker.kernels[0]["scalars"] == {"2": "0x7"}


def test_hooks_run_before_a_configuration_is_compiled(checker):
    seen = []

    def hook(args):
        seen.append((args["BLOCK"], args["n"], args["num_warps"]))

    configs = [triton.Config({"BLOCK": size}, num_warps=1, pre_hook=hook) for size in (32, 64)]
    checker.label = lambda kernel: kernel["name"]
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    launch(tune(tiles, configs, ["n"]), (4,), x, out, 100)
    assert seen == [(32, 100, 1), (64, 100, 1), (32, 100, 1)]  # two compiled, one launched


def test_an_autotuner_s_own_hooks_come_in_pairs(checker):
    seen = []

    def before(args, reset_only=False):
        seen.append(("before", args["BLOCK"], reset_only))

    def after(args, exception):
        seen.append(("after", args["BLOCK"], exception))

    checker.label = lambda kernel: kernel["name"]
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    launch(tune(tiles, BLOCKS, ["n"], pre_hook=before, post_hook=after), (4,), x, out, 100)
    expected = [(w, size, e) for size in (32, 64) for w, e in (("before", False), ("after", None))]
    assert seen == expected


def test_buffers_are_left_alone_while_configurations_are_compared(checker):
    checker.label = lambda kernel: kernel["name"]
    x, out = np.ones(100, np.float32), np.full(100, 5, np.float32)
    kernel = tune(tiles, BLOCKS, ["n"], reset_to_zero=["out"])
    launch(kernel, (1,), x, out, 100)
    assert list(out[30:34]) == [2, 2, 5, 5]  # one CTA of 32, and no clearing


def test_a_hook_s_failure_is_the_caller_s(checker):
    def hook(args):
        raise KeyError("descriptor")

    configs = [triton.Config({"BLOCK": 32}, pre_hook=hook), BLOCKS[1]]
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    with pytest.raises(KeyError, match="descriptor"):
        launch(tune(tiles, configs, ["n"]), (4,), x, out, 100)


def test_a_warm_up_may_give_types_for_tensors(checker):
    class dtype:
        def __str__(self):
            return "torch.float32"

    dtype.__module__ = "torch"
    with emulate("cuda:90"):
        kernels = tune(tiles, BLOCKS, ["n"]).warmup(dtype(), dtype(), 100, grid=(1,))
    assert len(kernels) == 2 == len(checker.kernels)


def test_a_missing_argument_is_named(checker):
    with pytest.raises(SameBitsError, match="missing 1 required positional argument: 'n'"):
        launch(tune(tiles, BLOCKS), (1,), np.ones(32, np.float32), np.ones(32, np.float32))


def test_overridden_machine_code_is_not_compared(checker, monkeypatch, tmp_path):
    other = tmp_path / "other.cubin"
    other.write_text("")
    configs = [BLOCKS[0], triton.Config({"BLOCK": 32}, num_warps=1, ir_override=str(other))]
    monkeypatch.setattr(triton.compiler.compiler, "parse", lambda name, ext, context: "")
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    kernel = launch(tune(tiles, configs, ["n"]), (1,), x, out, 32)
    assert kernel.early_config_prune.selection.kept == [0]
    assert "other.cubin" in kernel.early_config_prune.selection.judged[1].reason


def test_overridden_ptx_is_what_is_compared(checker, monkeypatch, tmp_path):
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    with emulate("cuda:90"):
        compiled = tiles[(1,)](x, out, 32, BLOCK=32, num_warps=1)
    other = tmp_path / "other.ptx"
    other.write_text(compiled.asm["ptx"] + "// by hand\n")
    configs = [BLOCKS[0], triton.Config({"BLOCK": 32}, num_warps=1, ir_override=str(other))]
    kernel = launch(tune(tiles, configs, ["n"]), (1,), x, out, 32)
    assert kernel.early_config_prune.selection.kept == [0, 1]
    by_hand = [kernel["ptx"].endswith("// by hand\n") for kernel in checker.kernels]
    assert by_hand == [False, True]


def test_without_ptx_in_the_cache_the_knob_is_named(checker, monkeypatch, tmp_path):
    monkeypatch.setattr(knobs.compilation, "store_binary_only", True)
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    tiles.device_caches.clear()
    x, out = np.ones(32, np.float32), np.zeros(32, np.float32)
    with pytest.raises(SameBitsError, match="TRITON_STORE_BINARY_ONLY keeps no PTX"):
        launch(tune(tiles, BLOCKS, ["n"]), (1,), x, out, 32)
    tiles.device_caches.clear()


def test_kernels_of_another_tuner_are_compared_as_they_are(checker):
    x, out = np.ones(100, np.float32), np.zeros(100, np.float32)
    with emulate("cuda:90"):
        made = [tiles[(1,)](x, out, 100, BLOCK=32, num_warps=warps) for warps in (1, 2, 4)]
    checker.label = lambda kernel: kernel["name"] != "kernel 1"
    assert proved_same(made) == [0, 2]
    assert proved_same(made, 1) == [1]
    assert proved_same(made, grids=[(1,), (1,), (2,)]) == [0]
    with pytest.raises(ValueError, match="3 kernels, but 1 grids"):
        proved_same(made, grids=[(1,)])


INTERPRETED = """
import numpy as np, triton, triton.language as tl
from triton.bitstable import same_bits
from interpreted import Tensor

@triton.jit
def tiles(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)

configs = [triton.Config({"BLOCK": size}) for size in (32, 64)]
prune = {"early_config_prune": same_bits(triton.Config({"BLOCK": 64}))}
kernel = triton.autotune(configs, key=[], prune_configs_by=prune)(tiles)
out = np.zeros(64, np.float32)
kernel[(1,)](Tensor(np.ones(64, np.float32)), Tensor(out))
assert (out == 2).all()
print(kernel.best_config.kwargs)
"""


def test_the_interpreter_runs_the_reference(tmp_path):
    program = tmp_path / "program.py"  # Triton reads a kernel's source from its file
    program.write_text(INTERPRETED)
    here = os.path.dirname(os.path.abspath(__file__))
    paths = os.pathsep.join([here, os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"TRITON_INTERPRET": "1", "PYTHONPATH": paths}
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{'BLOCK': 64}"
