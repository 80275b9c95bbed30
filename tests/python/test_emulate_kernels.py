"""Kernels that run on emulated devices, from numpy arrays to numpy arrays."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.bitstable import EmulationError, emulate

import kernels
import oracle

TARGETS = ("cuda:80", "cuda:90", "cuda:100")
HERE = Path(__file__).parent


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    total = tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside)
    tl.store(out + at, total, mask=inside)


@triton.jit
def add_unmasked(x, out, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at) + 1)


@triton.jit
def softmax(x, out, row_stride, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * row_stride + at, mask=at < columns, other=-float("inf"))
    shifted = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, shifted / tl.sum(shifted, 0), mask=at < columns)


@triton.jit
def scale_pair(pair, factors, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(pair[0] + at) * factors[0] + tl.load(pair[1] + at) * factors[1])


@triton.jit
def transpose(x, out, stride_m, stride_n, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tl.store(out + n * M + m, tl.load(x + m * stride_m + n * stride_n))


@triton.jit
def widen(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(tl.float32) * 2)


@triton.jit
def everybody_writes(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def arrive(out, values, SEM: tl.constexpr):
    tl.atomic_add(out, tl.load(values + tl.program_id(0)), sem=SEM)


@triton.jit
def count_down(x, n):
    i = n
    while i > 0:
        i = tl.load(x) + i - 1
    tl.store(x, i)


@triton.jit
def said(x):
    tl.device_print("value", tl.load(x))


@pytest.mark.parametrize("target", TARGETS)
def test_vector_addition(target):
    rng = np.random.default_rng(1)
    x, y = rng.standard_normal((2, 1000)).astype(np.float32)
    out = np.zeros_like(x)
    with emulate(target) as e:
        compiled = add[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](
            x, y, out, x.size, BLOCK=256
        )
    assert out.tobytes() == (x + y).tobytes()
    assert e.reports == [] and e.runs == 1
    assert e.statistics["ctas"] == 4
    assert f".target sm_{target.removeprefix('cuda:')}" in compiled.asm["ptx"]


def test_softmax():
    x = np.random.default_rng(2).standard_normal((5, 200)).astype(np.float32)
    out = np.zeros((5, 100), np.float32)
    with emulate("cuda:90"):
        softmax[(5,)](x, out, 200, 100, BLOCK=128)
    rows = np.exp(x[:, :100] - x[:, :100].max(1, keepdims=True), dtype=np.float64)
    np.testing.assert_allclose(out, rows / rows.sum(1, keepdims=True), rtol=2e-6)


@pytest.mark.parametrize("target", TARGETS)
def test_a_pinned_sum_is_the_canonical_tree_at_every_warp_count(target):
    rng = np.random.default_rng(3)
    x = (rng.standard_normal((16, 64)) * 2.0 ** rng.integers(-20, 20, (16, 64))).astype(np.float32)
    for axis in (0, 1):
        expected = oracle.total(x, axis, "f32")
        for warps in (1, 4, 8):
            out = np.zeros(x.shape[1 - axis], np.float32)
            with emulate(target):
                kernels.sum_tile[(1,)](x, out, 16, 64, axis, "inner_tree", num_warps=warps)
            assert out.tobytes() == expected.tobytes(), (axis, warps)


def test_the_interpreter_and_an_emulated_program_give_the_same_bits(tmp_path):
    found = []
    for setting in ({"TRITON_INTERPRET": "1"}, {"TRITON_BITSTABLE_EMULATE": "cuda:90"}):
        file = tmp_path / f"{len(found)}.npz"
        subprocess.run(
            [sys.executable, "-W", "ignore", HERE / "emulated.py", file],
            env=os.environ | setting,
            check=True,
        )
        found.append(dict(np.load(file)))
    interpreted, emulated = found
    assert len(interpreted) == 11 and interpreted.keys() == emulated.keys()
    for name, values in interpreted.items():
        assert values.any() and values.tobytes() == emulated[name].tobytes(), name


def test_tuples_of_pointers_and_scalars():
    x, y = np.arange(32, dtype=np.float32), np.ones(32, np.float32)
    out = np.zeros(32, np.float32)
    with emulate("cuda:90"):
        scale_pair[(1,)]((x, y), (2.0, 0.5), out, BLOCK=32)
    assert np.array_equal(out, 2 * x + 0.5)


@pytest.mark.parametrize("name", ["plain", "every other", "backwards", "turned"])
def test_strided_arrays_by_pointer_and_strides(name):
    base = np.arange(32 * 64, dtype=np.float32).reshape(32, 64)
    x = {
        "plain": base[:16, :32],
        "every other": base[::2, ::2],
        "backwards": base[15::-1, 31::-1],
        "turned": base.T[:16, :32],
    }[name]
    out = np.zeros((32, 16), np.float32)
    with emulate("cuda:90"):
        transpose[(1,)](x, out, *(step // 4 for step in x.strides), M=16, N=32)
    assert np.array_equal(out, x.T)


def test_narrow_floats():
    halves = np.array([0.1, -2.5, 65504.0, 6e-8], np.float16)
    out = np.zeros(4, np.float32)
    with emulate("cuda:90"):
        widen[(1,)](halves, out, BLOCK=4)
        assert np.array_equal(out, halves.astype(np.float32) * 2)
        bits = np.array([0x3F80, 0xC020, 0x7F7F, 0x0001], np.uint16)
        widen[(1,)](emulate.view(bits, "bf16"), out, BLOCK=4)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    with np.errstate(over="ignore"):
        assert out.tobytes() == (wide * np.float32(2)).tobytes()


def test_an_access_out_of_bounds_is_an_error_that_names_the_argument():
    x, out = np.zeros(1000, np.float32), np.zeros(1024, np.float32)
    with emulate("cuda:90"), pytest.raises(EmulationError) as caught:
        add_unmasked[(4,)](x, out, BLOCK=256)
    (report,) = caught.value.reports
    assert report.kind == "out-of-bounds" and report.element.startswith("element 1000 of x, which")
    text = str(caught.value)
    line = add_unmasked.starting_line_number + 3
    assert f"{__file__}:{line}:" in text
    assert "tl.load(x + at) + 1" in text and "ld.global" in text and "CTA 3 thread" in text
    assert np.array_equal(out[:1000], np.ones(1000, np.float32))


def test_a_write_out_of_bounds_touches_nothing_of_the_host():
    memory = np.zeros(2048, np.float32)
    x, out = np.zeros(1024, np.float32), memory[:1000].copy()
    with emulate("cuda:90"), pytest.raises(EmulationError, match="element 1000 of out, which has"):
        add_unmasked[(4,)](x, out, BLOCK=256)
    assert out.all() and not memory.any()


def test_writing_a_read_only_array_is_an_error():
    x, out = np.zeros(256, np.float32), np.zeros(256, np.float32)
    out.flags.writeable = False
    with emulate("cuda:90"), pytest.raises(EmulationError, match="element 0 of out"):
        add_unmasked[(1,)](x, out, BLOCK=256)
    assert not out.any()


def test_a_race_between_programs_is_an_error():
    out = np.zeros(1, np.int32)
    with emulate("cuda:90"), pytest.raises(EmulationError, match="race") as caught:
        everybody_writes[(8,)](out)
    assert "element 0 of out" in str(caught.value)
    assert len(caught.value.reports[0].sites) == 2
    with emulate("cuda:90", races=False) as e:
        everybody_writes[(8,)](out)
    assert e.reports == []


def test_schedules_find_what_depends_on_the_order():
    out = np.zeros(1, np.int32)
    with (
        emulate("cuda:90", races=False, schedules=2),
        pytest.raises(EmulationError, match="depends on the schedule: element 0 of out"),
    ):
        everybody_writes[(8,)](out)


@triton.jit
def summed(x, out, BLOCK: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, BLOCK)), 0))


def test_replicated_stores_are_noted_and_strict_makes_errors_of_them():
    x, out = np.ones(128, np.float32), np.zeros(1, np.float32)
    with emulate("cuda:90") as e:
        summed[(1,)](x, out, BLOCK=128)
    assert out[0] == 128
    assert {(report.kind, report.severity) for report in e.reports} == {("same-bytes", "note")}
    # The kernel's line, not the one in Triton's library where the reduction is.
    assert {report.sites[0].line for report in e.reports} == {summed.starting_line_number + 2}
    with emulate("cuda:90", strict=True), pytest.raises(EmulationError, match="same-bytes"):
        summed[(1,)](x, out, BLOCK=128)


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
def test_float_sums_in_order_of_arrival_are_errors(sem):
    out = np.zeros(1, np.float32)
    with emulate("cuda:90"), pytest.raises(EmulationError, match=r"element 0 of out") as caught:
        arrive[(4,)](out, np.array([1e8, 1.0, -1e8, 1.0], np.float32), sem)
    assert [report.kind for report in caught.value.reports] == ["arrival-order"]


@pytest.mark.parametrize("sem", ["relaxed", "acq_rel"])
def test_sums_in_order_of_arrival_differ_by_schedule(sem):
    values = np.array([1e8, 1.0, -1e8, 1.0], np.float32)
    out = np.zeros(1, np.float32)
    with emulate("cuda:90", schedules=4), pytest.raises(EmulationError, match="schedule=reversed"):
        arrive[(4,)](out, values, sem)
    # The first schedule's result is kept.
    assert out[0] == 1.0


def test_a_kernel_without_end_reaches_the_step_limit():
    with emulate("cuda:90", step_limit=10_000), pytest.raises(EmulationError, match="step-limit"):
        count_down[(1,)](np.ones(1, np.int32), 5)


PATIENT = """
import signal, sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[1])
from test_emulate_kernels import count_down
from triton.bitstable import emulate
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job begins without
x = np.ones(1, np.int32)
with emulate("cuda:90", step_limit=1 << 60):
    count_down.warmup(x, 5, grid=(1,))
    threading.Timer(0.5, signal.raise_signal, [signal.SIGINT]).start()
    begun = time.monotonic()
    try:
        count_down[(1,)](x, 5)
    except KeyboardInterrupt:
        print("stopped", time.monotonic() - begun < 5, x[0])
"""


def test_an_interrupt_stops_a_kernel_without_end():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PATIENT, HERE],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "stopped True 1\n", done.stderr


def test_what_kernels_print_is_printed(capsys):
    with emulate("cuda:90"):
        said[(1,)](np.array([42], np.int32), num_warps=1)
    assert "value" in capsys.readouterr().out


def test_autotuning_gives_the_right_result_and_the_first_configuration():
    configs = [triton.Config({"BLOCK": b}, num_warps=w) for b, w in ((128, 4), (256, 2))]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["out"])(add)
    x, y = np.arange(500, dtype=np.float32), np.ones(500, np.float32)
    out = np.zeros_like(x)
    with emulate("cuda:90") as e:
        tuned[lambda meta: (triton.cdiv(500, meta["BLOCK"]),)](x, y, out, 500)
    assert np.array_equal(out, x + 1)
    assert tuned.best_config is configs[0] and e.runs == 3


@triton.heuristics({"BLOCK": lambda args: triton.next_power_of_2(args["x"].shape[0])})
@triton.jit
def negate(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, -tl.load(x + at))


def test_heuristics_see_arrays():
    x = np.arange(64, dtype=np.int32)
    out = np.zeros_like(x)
    with emulate("cuda:90"):
        negate[(1,)](x, out)
    assert np.array_equal(out, -x)


@triton.jit
def scratch(x, out, M: tl.constexpr, N: tl.constexpr):
    desc = tl.make_tensor_descriptor(x, [M, N], [N, 1], [M, N])
    tile = desc.load([0, 0])
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], tile)


def test_an_instruction_that_is_not_executed_is_refused_with_its_line():
    x = np.zeros((16, 32), np.float32)
    with emulate("cuda:90"), pytest.raises(EmulationError, match=r"PTX line \d+"):
        scratch[(1,)](x, np.zeros_like(x), 16, 32)
