"""Emulations: what they put in place, how it comes back, and how one is asked for."""

import asyncio
import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.bitstable import EmulationError, _native, emulate
from triton.bitstable.emulation.devices import DEVICES
from triton.bitstable.emulation.options import Options, parse
from triton.compiler.compiler import CompiledKernel
from triton.runtime import driver
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import JITFunction, KernelInterface

from fake_executor import Recorder


@triton.jit
def copy_first(x, out):
    tl.store(out, tl.load(x))


def state():
    return (
        driver._active,
        KernelInterface.__getitem__,
        JITFunction.run,
        Autotuner.check_disk_cache,
        knobs.runtime.add_stages_inspection_hook,
    )


@pytest.fixture
def recorder(monkeypatch):
    made = Recorder()
    monkeypatch.setattr(_native, "_loaded", made)
    return made


@pytest.fixture(autouse=True)
def all_is_put_back():
    before = state()
    yield
    assert state() == before
    assert emulate.current() is None


def test_a_context_is_the_target_and_ends():
    with emulate("cuda:90") as e:
        assert emulate.current() is e
        assert driver.active is e.driver
        assert driver.active.get_current_target() == GPUTarget("cuda", 90, 32)
        assert driver.active.is_active()
    assert emulate.current() is None


def test_contexts_nest_and_exceptions_end_them():
    class Planned(Exception):
        pass

    with emulate("cuda:80") as outer:
        with pytest.raises(Planned), emulate("cuda:100") as inner:
            assert driver.active is inner.driver
            raise Planned
        assert driver.active is outer.driver
        with outer:  # again, inside itself
            assert driver.active is outer.driver
        assert emulate.current() is outer


def test_the_driver_that_was_active_comes_back():
    class Other:
        pass

    other = Other()
    before = driver._active
    driver.set_active(other)
    try:
        with emulate("cuda:90"):
            assert driver.active is not other
        assert driver.active is other
    finally:
        driver.set_active(before)


def test_a_decorated_function_is_emulated_each_time():
    @emulate("cuda:89")
    def arch():
        return driver.active.get_current_target().arch

    assert [arch(), arch()] == [89, 89]
    assert emulate.current() is None


def test_coroutines_are_not_decorated_in_vain():
    async def later():
        return 1

    with pytest.raises(TypeError, match="with emulate"):
        emulate("cuda:90")(later)
    assert asyncio.run(later()) == 1


def test_threads_share_an_emulation_and_end_in_any_order():
    begun, go = threading.Event(), threading.Event()

    def other():
        with emulate("cuda:80"):
            begun.set()
            go.wait(10)

    thread = threading.Thread(target=other)
    with emulate("cuda:90") as mine:
        thread.start()
        assert begun.wait(10)
        assert driver.active.get_current_target().arch == 80
    # Mine has ended first; the other one's is still there.
    assert emulate.current() is not mine
    assert driver.active.get_current_target().arch == 80
    go.set()
    thread.join()


def test_a_user_s_stage_hook_still_runs_and_comes_back(recorder, fresh_cache):
    seen = []

    def hook(backend=None, stages=None, options=None, language=None, capability=None):
        if stages is None:
            return "mine", "mine"
        seen.append(sorted(stages))
        return None

    knobs.runtime.add_stages_inspection_hook = hook
    try:
        with emulate("cuda:90"):
            copy_first[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32))
        assert knobs.runtime.add_stages_inspection_hook is hook
    finally:
        knobs.runtime.add_stages_inspection_hook = None
    assert seen == [["cubin", "llir", "ptx", "ttgir", "ttir"]]


def test_a_hook_set_inside_is_left_alone(recorder, fresh_cache):
    def hook(*stages):
        return None if stages else ("other", "other")

    with emulate("cuda:90"):
        ours = knobs.runtime.add_stages_inspection_hook
        knobs.runtime.add_stages_inspection_hook = hook
        # Machine code is made; its PTX is found beside it.
        copy_first[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32))
    assert ours is not hook
    assert knobs.runtime.add_stages_inspection_hook is hook
    knobs.runtime.add_stages_inspection_hook = None
    assert len(recorder.launches) == 1


@pytest.fixture
def fresh_cache(tmp_path):
    copy_first.device_caches.clear()
    with knobs.cache.scope():
        knobs.cache.dir = str(tmp_path)
        yield
    copy_first.device_caches.clear()


def test_kernels_die_quietly_after_their_emulation(recorder, fresh_cache, capfd):
    with emulate("cuda:90"):
        kernel = copy_first[(1,)](np.zeros(4, np.float32), np.zeros(4, np.float32))
        assert isinstance(kernel, CompiledKernel)
    copy_first.device_caches.clear()
    del kernel
    gc.collect()
    assert recorder.unloaded == [1]
    assert "ignored" not in capfd.readouterr().err


def test_a_kernel_that_outlives_its_emulation_says_what_it_needs(recorder, fresh_cache):
    x = np.zeros(4, np.float32)
    with emulate("cuda:90") as e:
        kernel = copy_first[(1,)](x, x)
    assert e.runs == 1
    with pytest.raises(EmulationError, match="launch it inside"):
        kernel[(1, 1, 1)](x, x, stream=0)
    with emulate("cuda:90") as later:
        kernel[(1, 1, 1)](x, x)
    assert (e.runs, later.runs) == (1, 1)


@pytest.mark.parametrize(
    ("target", "arch"),
    [("cuda:90", 90), ("sm_80", 80), ("sm_90a", 90), (GPUTarget("cuda", 100, 32), 100)],
)
def test_targets(target, arch):
    assert emulate(target).device.arch == arch


@pytest.mark.parametrize(
    "target", ["cuda:91", "cuda", "gfx942", "", 90, GPUTarget("hip", "gfx942", 64), None]
)
def test_targets_that_are_none(target):
    with pytest.raises(EmulationError, match="; the choices are cuda:80, cuda:86, "):
        emulate(target)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"schedule": "sideways"}, "schedule='sideways' must be one of: forward, reversed"),
        ({"schedule": "random:"}, "random:SEED"),
        ({"schedules": 0}, "schedules=0 must be one of: a number, at least 1"),
        ({"jobs": True}, "jobs=True"),
        ({"step_limit": -1}, "step_limit=-1"),
        ({"races": 1}, "races=1 must be one of: True or False"),
        ({"mma": "fast"}, "hardware, exact, sequential"),
        ({"colour": "red"}, "no such option: colour; the choices are jobs, mma"),
    ],
)
def test_options_that_are_none(options, said):
    with pytest.raises(EmulationError, match=said):
        emulate("cuda:90", **options)


def test_schedules_begin_with_the_chosen_one_and_are_distinct():
    assert Options().orders() == ["forward"]
    orders = Options(schedule="random:2", schedules=5).orders()
    assert orders == ["random:2", "forward", "reversed", "random:1", "random:3"]
    assert Options(schedule="reversed", schedules=2).orders() == ["reversed", "forward"]


def test_the_environment_s_spelling():
    assert parse("cuda:90") == ("cuda:90", {})
    assert parse("cuda:90, schedule=random:7,races=no,jobs=2") == (
        "cuda:90",
        {"schedule": "random:7", "races": False, "jobs": 2},
    )
    with pytest.raises(EmulationError, match="no such option: 'fast'"):
        parse("cuda:90,fast")
    with pytest.raises(EmulationError, match="'jobs=many': the value must be a number"):
        parse("cuda:90,jobs=many")
    with pytest.raises(EmulationError, match="'races=maybe': the value must be yes or no"):
        parse("cuda:90,races=maybe")


PROGRAM = """
import triton
from triton.bitstable import emulate
from triton.runtime import driver
print(driver.active.get_current_target(), emulate.current().options.schedule)
with emulate("cuda:80"):
    print(driver.active.get_current_target().arch)
driver.reset_active()
print(driver.active.get_current_target().arch)
"""


def run_with(setting, program=PROGRAM):
    environment = os.environ | {"TRITON_BITSTABLE_EMULATE": setting}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_whole_program_is_emulated_by_the_environment():
    done = run_with("cuda:90,schedule=reversed")
    assert done.stderr == ""
    assert done.stdout.split("\n") == [
        "GPUTarget(backend='cuda', arch=90, warp_size=32) reversed",
        "80",
        "90",
        "",
    ]


def test_a_wrong_setting_fails_at_import():
    done = run_with("cuda:91")
    assert done.returncode == 1
    assert (
        "EmulationError: TRITON_BITSTABLE_EMULATE=cuda:91: emulate: no such target" in done.stderr
    )


def test_importing_the_package_imports_no_emulation():
    program = "import triton, sys; print([m for m in sys.modules if 'emulation' in m])"
    assert run_with("", program).stdout == "[]\n"


@pytest.mark.parametrize("arch", DEVICES)
def test_devices_answer_what_programs_ask(arch):
    with emulate(f"cuda:{arch}"):
        device = driver.active.get_current_device()
        properties = driver.active.utils.get_device_properties(device)
        assert properties["warpSize"] == 32
        assert properties["multiprocessor_count"] > 0
        # What a block may have beyond the 48 KiB that all devices give.
        assert 48 * 1024 < properties["max_shared_mem"] <= 227 * 1024
        assert driver.active.get_device_capability(device) == divmod(arch, 10)
        assert driver.active.map_python_to_cpp_type("*fp32") == "CUdeviceptr"
        interface = driver.active.get_device_interface()
        interface.synchronize()
        assert interface.current_device() == device
        driver.active.clear_cache(driver.active.get_empty_cache_for_benchmark())
        with pytest.raises(EmulationError, match="fill_tma_descriptor_tiled is not emulated"):
            driver.active.utils.fill_tma_descriptor_tiled(0)
