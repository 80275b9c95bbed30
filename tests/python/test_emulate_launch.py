"""Launches as the native library is asked for them: parameters, buffers, hooks, refusals."""

import signal
import struct
import threading
import time

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.bitstable import EmulationError, _native, emulate
from triton.compiler.errors import CompilationError
from triton.runtime.errors import OutOfResources
from triton.tools.tensor_descriptor import TensorDescriptor

from fake_executor import Recorder


@pytest.fixture
def recorder(monkeypatch):
    made = Recorder()
    monkeypatch.setattr(_native, "_loaded", made)
    return made


@pytest.fixture(autouse=True)
def nothing_is_kept():
    for kernel in KERNELS:
        kernel.device_caches.clear()


@triton.jit
def scalars(out, i, j, f, b, B: tl.constexpr):
    tl.store(out + tl.arange(0, B), (i + j) * f + b)


@triton.jit
def tuples(pair, n, nothing):
    if nothing is None:
        tl.store(pair[1], tl.load(pair[0]) + n)


@triton.jit
def annotated(out, h: tl.float16, bf: tl.bfloat16, d: tl.float64, small: tl.int8):
    tl.store(out, h.to(tl.float64) + bf.to(tl.float64) + d + small)


@triton.jit
def large(x, out, M: tl.constexpr, N: tl.constexpr):
    m, n = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    tile = tl.load(x + m * N + n)
    tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], tl.trans(tile))


@triton.jit
def described(desc, out):
    tl.store(out + tl.arange(0, 16), desc.load([0]))


KERNELS = (scalars, tuples, annotated, large, described)


def unpack(request, kinds):
    """The parameter block's values; pointers as (buffer's name, offset)."""

    def named(value):
        for buffer in request["buffers"]:
            if buffer["address"] <= value < buffer["address"] + buffer["bytes"]:
                return buffer["name"], value - buffer["address"]
        return value

    return [named(value) for value in struct.unpack("<" + kinds, request["params"])]


def test_parameters_are_packed_as_the_ptx_declares_them(recorder):
    out = np.zeros(64, np.float32)
    with emulate("cuda:90"):
        scalars[(2, 3)](out[4:], 16, 2**40, 0.5, True, B=32, num_warps=2)
    (request,) = recorder.launches
    assert unpack(request, "Qi4xqf?3xQQ") == [("out", 16), 16, 2**40, 0.5, True, 0, 0]
    assert request["grid"] == (2, 3, 1) and request["block"] == [64, 1, 1]
    assert request["options"]["schedule"] == "forward" and "jobs" not in request["options"]


def test_values_that_triton_specialises_on_are_no_parameters(recorder):
    out = np.zeros(32, np.float32)
    with emulate("cuda:90"):
        scalars[(1,)](out, 1, 3, 0.5, False, B=32)
    assert unpack(recorder.launches[0], "Qif?7xQQ")[:4] == [("out", 0), 3, 0.5, False]


def test_tuples_none_and_numpy_scalars(recorder):
    x, y = np.zeros(4, np.int32), np.zeros(4, np.int32)
    with emulate("cuda:90"):
        tuples[(1,)]((x, y), np.int64(7), None)
    (request,) = recorder.launches
    assert unpack(request, "QQi4xQQ")[:3] == [("pair[0]", 0), ("pair[1]", 0), 7]


def test_annotated_scalars_are_narrowed_as_tritons_launcher_does(recorder):
    with emulate("cuda:90"):
        annotated[(1,)](np.zeros(1), 1.5, 1.0 + 2.0**-7 + 2.0**-9, 0.1, -3)
    (request,) = recorder.launches
    kinds = "QeHxxxxdb7xQQ"
    values = list(struct.unpack("<" + kinds, request["params"]))
    assert values[1:5] == [1.5, 0x3F81, 0.1, -3]


def test_a_value_that_does_not_fit_is_refused_by_name(recorder):
    with (
        emulate("cuda:90"),
        pytest.raises(EmulationError, match="argument small: 300 cannot be passed as i8"),
    ):
        annotated[(1,)](np.zeros(1), 1.5, 1.0, 0.1, 300)
    assert recorder.launches == []


def test_writes_come_back_and_padding_around_views_stays(recorder):
    def during(request, params, cancel):
        (buffer,) = (b for b in request["buffers"] if b["name"] == "out")
        address = struct.unpack_from("<Q", params)[0]
        assert address - buffer["address"] == 8
        memory = (np.ctypeslib.ctypes.c_float * 2).from_address(address)
        memory[0], memory[1] = 5.0, 6.0

    recorder.during = during
    out = np.arange(6, dtype=np.float32)
    with emulate("cuda:90"):
        scalars[(1,)](out[2:], 3, 4, 0.5, False, B=32)
    assert out.tolist() == [0, 1, 5, 6, 4, 5]


@pytest.mark.parametrize("grid", [(0,), (4, 0), (1, 1, 0)])
def test_an_empty_grid_runs_nothing(recorder, grid):
    with emulate("cuda:90"):
        scalars[grid](np.zeros(32, np.float32), 3, 4, 0.5, False, B=32)
    assert recorder.launches == []


@pytest.mark.parametrize(("grid", "said"), [((2**31,), "axis x"), ((1, 65536), "axis y is 65536")])
def test_a_grid_that_no_device_takes_is_refused(recorder, grid, said):
    with emulate("cuda:90"), pytest.raises(EmulationError, match=said):
        scalars[grid](np.zeros(32, np.float32), 3, 4, 0.5, False, B=32)


def test_grid_functions_see_arguments_and_constants(recorder):
    seen = {}

    def grid(meta):
        seen.update(shape=meta["out"].shape, B=meta["B"])
        return (triton.cdiv(meta["out"].shape[0], meta["B"]),)

    with emulate("cuda:90"):
        scalars[grid](np.zeros(96, np.float32), 3, 4, 0.5, False, B=32)
    assert seen == {"shape": (96,), "B": 32}
    assert recorder.launches[0]["grid"] == (3, 1, 1)


def test_hooks_run_around_a_launch(recorder):
    order = []
    recorder.during = lambda *_: order.append("run")

    def enter(metadata):
        order.append(("enter", metadata.get()["name"]))

    def leave(metadata):
        order.append("exit")

    knobs.runtime.launch_enter_hook.add(enter)
    knobs.runtime.launch_exit_hook.add(leave)
    try:
        with emulate("cuda:90"):
            for _ in range(2):
                scalars[(1,)](np.zeros(32, np.float32), 3, 4, 0.5, False, B=32)
    finally:
        knobs.runtime.launch_enter_hook.remove(enter)
        knobs.runtime.launch_exit_hook.remove(leave)
    assert order == [("enter", "scalars"), "run", "exit"] * 2
    assert recorder.loaded == ["scalars"]  # once


def test_warmup_compiles_and_runs_nothing(recorder):
    with emulate("cuda:90"):
        compiled = scalars.warmup(np.zeros(32, np.float32), 3, 4, 0.5, False, B=32, grid=(1,))
        assert ".entry scalars" in compiled.asm["ptx"]
        assert recorder.launches == []
        compiled[(1, 1, 1)](np.zeros(32, np.float32), 3, 4, 0.5, False, 32)
    assert len(recorder.launches) == 1


def test_targets_do_not_share_kernels(recorder):
    out = np.zeros(32, np.float32)
    ptx = []
    for arch in (80, 90, 100):
        with emulate(f"cuda:{arch}"):
            ptx.append(scalars[(1,)](out, 3, 4, 0.5, False, B=32).asm["ptx"])
    assert [f".target sm_{arch}" in text for arch, text in zip((80, 90, 100), ptx)] == [True] * 3


def test_shared_memory_is_limited_as_on_the_device(recorder):
    x = np.zeros((256, 128), np.float32)
    with emulate("cuda:90"):
        large[(1,)](x, np.zeros_like(x), 256, 128, num_warps=8)
    assert recorder.launches[0]["dynamic_shared"] > 99 * 1024
    with emulate("cuda:86"), pytest.raises(OutOfResources, match="shared memory"):
        large[(1,)](x, np.zeros_like(x), 256, 128, num_warps=8)


def test_clusters_are_refused(recorder):
    with emulate("cuda:90"), pytest.raises(EmulationError, match="scalars: num_ctas=2"):
        scalars[(1,)](np.zeros(32, np.float32), 3, 4, 0.5, False, B=32, num_ctas=2)


def test_cooperative_grids_are_refused(recorder):
    with emulate("cuda:90"), pytest.raises(EmulationError, match="launch_cooperative_grid=True"):
        scalars[(1,)](
            np.zeros(32, np.float32), 3, 4, 0.5, False, B=32, launch_cooperative_grid=True
        )


def test_descriptors_made_on_the_host_are_refused(recorder):
    x = emulate.view(np.zeros(64, np.float32), "fp32")
    descriptor = TensorDescriptor(x, [64], [1], [16])
    with emulate("cuda:90"), pytest.raises(EmulationError, match="argument desc: tensor desc"):
        described[(1,)](descriptor, np.zeros(16, np.float32))


def test_arrays_of_no_element_type_are_refused_before_compiling(recorder):
    with emulate("cuda:90"), pytest.raises(EmulationError, match="argument out: an array of compl"):
        scalars[(1,)](np.zeros(3, complex), 3, 4, 0.5, False, B=32)
    assert recorder.loaded == []


def test_compilation_errors_are_tritons(recorder):
    with emulate("cuda:90"), pytest.raises(CompilationError):
        scalars[(1,)](np.zeros(32, np.float32), 3, 4, 0.5, False, B=33)


def finding(**fields):
    site = {"cta": 1, "thread": 2, "ptx_line": 30, "instruction": "st.global.b32 [%rd1], %r1"}
    entry = {"severity": "error", "kind": "out-of-bounds", "message": "a write of 4 bytes"}
    return entry | {"sites": [site | {"file": __file__, "line": 1, "col": 5}]} | fields


def test_errors_are_raised_when_the_launch_is_over(recorder):
    def during(request, params, cancel):
        address = request["buffers"][0]["address"]
        (np.ctypeslib.ctypes.c_float).from_address(address).value = 5.0
        recorder.findings = [
            finding(address=address + 4 * 32, count=3),
            finding(severity="note", kind="same-bytes", message="the same bytes twice"),
        ]

    recorder.during = during
    out = np.zeros(32, np.float32)
    with emulate("cuda:90") as e, pytest.raises(EmulationError) as caught:
        scalars[(1,)](out, 3, 4, 0.5, False, B=32)
    assert out[0] == 5.0
    assert str(caught.value).splitlines() == [
        "kernel scalars: 1 error",
        f"{__file__}:1:5: error: a write of 4 bytes [out-of-bounds]",
        '    """Launches as the native library is asked for them: parameters, buffers, hooks, '
        'refusals."""',
        "        ^",
        "  note: at element 32 of out, which has 32 of fp32",
        f"  note: CTA 1 thread 2, {__file__}:1:5, PTX line 30: st.global.b32 [%rd1], %r1",
        "  note: 3 times; this is the first",
    ]
    assert [report.kind for report in caught.value.reports] == ["out-of-bounds", "same-bytes"]
    assert [report.kind for report in e.reports] == ["out-of-bounds", "same-bytes"]


def test_notes_are_kept_once_and_counted(recorder):
    recorder.findings = [finding(severity="note", kind="same-bytes")]
    with emulate("cuda:90") as e:
        for _ in range(3):
            scalars[(1,)](np.zeros(32, np.float32), 3, 4, 0.5, False, B=32)
    (report,) = e.reports
    assert report.count == 3 and not report.is_error and e.runs == 3


def test_schedules_are_compared_and_the_first_one_counts(recorder):
    def during(request, params, cancel):
        buffer = request["buffers"][0]
        memory = (np.ctypeslib.ctypes.c_float * 32).from_address(buffer["address"])
        assert memory[0] == 0.0  # each run begins with the caller's values
        memory[0] = 1.0
        memory[7] = 2.0 if request["options"]["schedule"] == "random:1" else 3.0

    recorder.during = during
    out = np.zeros(32, np.float32)
    with (
        emulate("cuda:90", schedules=3, schedule="reversed") as e,
        pytest.raises(EmulationError, match="element 7 of out") as caught,
    ):
        scalars[(1,)](out, 3, 4, 0.5, False, B=32)
    assert e.runs == 3
    assert [r["options"]["schedule"] for r in recorder.launches] == [
        "reversed",
        "forward",
        "random:1",
    ]
    assert "with schedule=random:1" in str(caught.value)
    assert out[0] == 1.0 and out[7] == 3.0


@pytest.fixture
def interruptible():
    """Ctrl-C as a terminal has it: a job in the background is started with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_stops_the_run_and_changes_nothing(recorder, interruptible):
    ended = threading.Event()

    def during(request, params, cancel):
        address = request["buffers"][0]["address"]
        (np.ctypeslib.ctypes.c_float).from_address(address).value = 5.0
        signal.raise_signal(signal.SIGINT)
        deadline = time.monotonic() + 10
        while not cancel.value and time.monotonic() < deadline:
            time.sleep(0.001)
        ended.set()

    recorder.during = during
    out = np.zeros(32, np.float32)
    begun = time.monotonic()
    with emulate("cuda:90"), pytest.raises(KeyboardInterrupt):
        scalars[(1,)](out, 3, 4, 0.5, False, B=32)
    assert ended.is_set() and time.monotonic() - begun < 5
    assert not out.any()


def test_other_threads_launch_where_they_are(recorder):
    out = np.zeros(32, np.float32)

    def launch():
        scalars[(1,)](out, 3, 4, 0.5, False, B=32)

    with emulate("cuda:90"):
        thread = threading.Thread(target=launch)
        thread.start()
        thread.join()
    assert recorder.launches[0]["thread"] is thread


def test_autotuning_runs_each_configuration_once_and_takes_the_first(recorder, tmp_path):
    configs = [triton.Config({"B": b}, num_warps=2) for b in (64, 32, 128)]
    tuned = triton.autotune(configs, key=["i"], reset_to_zero=["out"], cache_results=True)(scalars)
    out = np.ones(128, np.float32)
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        with emulate("cuda:90"):
            tuned[lambda meta: (128 // meta["B"],)](out, 3, 4, 0.5, False)
        assert not list(tmp_path.rglob("*.autotune.json"))
    assert tuned.best_config is configs[0]
    assert [launch["grid"][0] for launch in recorder.launches] == [2, 4, 1, 2]
    assert not out.any()


def test_tritons_own_benchmark_comes_to_an_end(recorder):
    calls = []
    with emulate("cuda:90"):
        cost = triton.testing.do_bench(lambda: calls.append(1))
    assert cost == 1000.0 and len(calls) < 12
