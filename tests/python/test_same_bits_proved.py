"""`same_bits` with the real checker, end to end and without a GPU."""

import os
import re
import subprocess
import sys

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.bitstable import SameBitsError, _native, emulate, same_bits
from triton.bitstable.errors import EquivalenceError

ROWS, LENGTH = 4, 1000


@triton.jit
def row_sum(x, out, n, BLOCK: tl.constexpr, ORDER: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * n + at, mask=at < n, other=0.0)
    tl.store(out + row, tl.sum(values, axis=0, order=ORDER))


@triton.jit
def looped_sum(x, out, n, BLOCK: tl.constexpr, ORDER: tl.constexpr):
    tl.static_assert(BLOCK < 1024, "the tile is too wide")
    row = tl.program_id(0)
    total = 0.0
    for begin in range(0, n, BLOCK):
        at = begin + tl.arange(0, BLOCK)
        values = tl.load(x + row * n + at, mask=at < n, other=0.0)
        total += tl.sum(values, axis=0, order=ORDER)
    tl.store(out + row, total)


@triton.jit
def rows_sum(x, out, n, M: tl.constexpr, BLOCK: tl.constexpr, ORDER: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    at = tl.arange(0, BLOCK)
    tile = tl.load(x + rows[:, None] * n + at[None, :], mask=(at < n)[None, :], other=0.0)
    tl.store(out + rows, tl.sum(tile, axis=1, order=ORDER))


def tune(kernel, configs, **options):
    prune = {"early_config_prune": same_bits(**options)}
    return triton.autotune(configs, key=["n"], prune_configs_by=prune)(kernel)


def draw():
    """Sums of these show their order."""
    random = np.random.default_rng(2024)
    exponents = random.integers(-12, 12, (ROWS, LENGTH))
    return (random.standard_normal((ROWS, LENGTH)) * 2.0**exponents).astype(np.float32)


def run(kernel, order, grid=(ROWS,), n=LENGTH):
    x, out = draw(), np.zeros(ROWS, np.float32)
    with emulate("cuda:90"):
        kernel[grid](x, out, n, ORDER=order)
    return out


def bits_of(kernel, config, order, grid=(ROWS,)):
    """What one configuration returns, on its own."""
    x, out = draw(), np.zeros(ROWS, np.float32)
    with emulate("cuda:90"):
        kernel[grid](x, out, LENGTH, ORDER=order, **config.all_kwargs())
    return out.tobytes()


WARPS = [triton.Config({"BLOCK": 1024}, num_warps=warps) for warps in (1, 2, 4, 8)]


def test_a_pinned_sum_keeps_every_configuration():
    configs = [
        triton.Config({"BLOCK": 1024}, num_warps=warps, num_stages=stages)
        for warps in (1, 2, 4, 8, 16)
        for stages in (2, 3)
    ]
    kernel = tune(row_sum, configs)
    out = run(kernel, "inner_tree")
    assert kernel.early_config_prune.kept == configs
    assert len(kernel.configs_timings) == len(configs)
    assert {bits_of(row_sum, each, "inner_tree") for each in configs} == {out.tobytes()}


def test_a_wider_tile_is_kept_only_where_it_is_proved():
    configs = [
        triton.Config({"BLOCK": block}, num_warps=w) for block in (1024, 2048) for w in (2, 4)
    ]
    kernel = tune(row_sum, configs)
    out = run(kernel, None)
    assert configs[0] in kernel.early_config_prune.kept
    for each in kernel.early_config_prune.kept:
        assert bits_of(row_sum, each, None) == out.tobytes()
    assert len({bits_of(row_sum, each, None) for each in configs}) > 1
    run(kernel := tune(row_sum, configs), "inner_tree")
    assert kernel.early_config_prune.kept[:2] == configs[:2]


def test_an_unordered_sum_keeps_the_reference_s_class():
    kernel = tune(row_sum, WARPS)
    out = run(kernel, None)
    kept = kernel.early_config_prune.kept
    bits = [bits_of(row_sum, each, None) for each in WARPS]
    assert out.tobytes() == bits[0]
    assert len(set(bits)) > 1  # the draw does show the order
    assert WARPS[0] in kept
    assert {bits[WARPS.index(each)] for each in kept} == {bits[0]}
    assert len(kept) < len(WARPS)


@pytest.mark.parametrize("reference", WARPS[1:], ids=lambda config: f"{config.num_warps} warps")
def test_another_reference_has_its_own_bits(reference):
    kernel = tune(row_sum, WARPS, reference=reference)
    out = run(kernel, None)
    assert out.tobytes() == bits_of(row_sum, reference, None)
    assert reference in kernel.early_config_prune.kept


def test_tiles_of_a_loop_are_dropped_where_they_move_the_bits():
    configs = [triton.Config({"BLOCK": size}) for size in (128, 256, 512)]
    configs += [triton.Config({"BLOCK": 128}, num_warps=8), triton.Config({"BLOCK": 1024})]
    kernel = tune(looped_sum, configs)
    out = run(kernel, "inner_tree")
    bits = [bits_of(looped_sum, each, "inner_tree") for each in configs[:4]]
    assert len({*bits[:3]}) > 1 and bits[3] == bits[0] == out.tobytes()
    kept = kernel.early_config_prune.kept
    assert {bits[configs.index(each)] for each in kept} == {bits[0]}
    assert configs[1] not in kept and configs[2] not in kept
    assert "too wide" in kernel.early_config_prune.selection.judged[4].reason


def test_the_reference_s_tile_may_be_missing_from_the_list():
    configs = [triton.Config({"BLOCK": size}) for size in (128, 512)]
    absent = triton.Config({"BLOCK": 256})
    kernel = tune(looped_sum, configs, reference=absent)
    assert run(kernel, "inner_tree").tobytes() == bits_of(looped_sum, absent, "inner_tree")
    assert kernel.best_config == absent


def test_a_compiled_pinned_sum_is_the_standard_of_pinned_ones_alone():
    x, out = draw(), np.zeros(ROWS, np.float32)
    with emulate("cuda:90"):
        compiled = row_sum[(ROWS,)](x, out, LENGTH, BLOCK=1024, ORDER="inner_tree", num_warps=4)
    kernel = tune(row_sum, WARPS, reference=compiled)
    assert run(kernel, "inner_tree").tobytes() == out.tobytes()
    assert kernel.early_config_prune.kept == WARPS
    with pytest.raises(SameBitsError, match="no configuration is proved") as caught:
        run(tune(row_sum, WARPS, reference=compiled), None)
    assert "not proved the same" in str(caught.value)


def test_rows_of_a_cta_may_vary_where_the_grid_follows_from_the_key():
    configs = [triton.Config({"M": m, "BLOCK": 1024}) for m in (1, 2, 4)]

    def grid(meta):
        return (ROWS // meta["M"],)

    told = tune(rows_sum, configs, grid="launch")
    out = run(told, "inner_tree", grid)
    assert told.early_config_prune.kept == configs
    assert {bits_of(rows_sum, each, "inner_tree", grid) for each in configs} == {out.tobytes()}
    untold = tune(rows_sum, configs)
    run(untold, "inner_tree", grid)
    assert untold.early_config_prune.kept == configs[:1]
    assert "launched on 2×1×1 CTAs" in untold.early_config_prune.selection.judged[1].reason


def test_the_classes_are_printed_with_what_differs(monkeypatch, capsys):
    monkeypatch.setattr(knobs.autotuning, "print", True)
    run(tune(row_sum, WARPS), None)
    said = capsys.readouterr().out
    assert re.search(r"same_bits: row_sum: \d of 4 configurations kept, \d class", said)
    assert f"  class 1, the reference's:\n    {WARPS[0]}: kept" in said
    assert re.search(r"class 2, dropped: not proved the same: \S", said)
    assert "other bits" not in said  # the checker says what


def test_a_whole_program_is_tuned_under_the_environment_variable(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    environment = os.environ | {
        "TRITON_BITSTABLE_EMULATE": "cuda:80",
        "TRITON_PRINT_AUTOTUNING": "1",
    }
    done = subprocess.run(
        [sys.executable, str(program)], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "same_bits: total: 3 of 3 configurations kept, 1 class" in done.stdout


def test_a_request_that_is_not_understood_is_an_error():
    with pytest.raises(EquivalenceError, match="cannot compare kernels"):
        _native.library().equiv({"kernel": []})


PROGRAM = """
import numpy as np
import triton
import triton.language as tl
from triton.bitstable import same_bits


@triton.autotune(
    configs=[triton.Config({}, num_warps=warps) for warps in (1, 4, 8)],
    key=["n"],
    prune_configs_by={"early_config_prune": same_bits()},
)
@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["n"])})
@triton.jit
def total(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out, tl.sum(values, axis=0, order="inner_tree"))


x, out = np.arange(500, dtype=np.float32), np.zeros(1, np.float32)
total[(1,)](x, out, 500)
assert out[0] == x.sum()
"""
