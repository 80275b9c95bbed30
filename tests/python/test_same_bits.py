"""`same_bits` as an autotuner's pruner: what is compiled, what is asked, what is kept.

The checker is a fake here, so that every answer it may give is tried; `test_same_bits_proved.py`
asks the real one.
"""

import re

import numpy as np
import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.backends.compiler import GPUTarget
from triton.bitstable import SameBitsError, emulate, same_bits
from triton.bitstable.emulation.driver import EmulatedDriver
from triton.runtime._async_compile import AsyncCompileMode

import fake_checker
from fake_checker import Fails


@triton.jit
def add_up(x, out, n, scale, N: tl.constexpr):
    tl.static_assert(N < 512, "too wide a tile")
    at = tl.arange(0, N)
    values = tl.load(x + at, mask=at < n, other=0.0)
    tl.store(out + tl.program_id(0), tl.sum(values, axis=0) * scale)


def config(warps, N=64, **options):
    return triton.Config({"N": N}, num_warps=warps, **options)


def tuned(configs, kernel=add_up, key=("n",), reference=None, grid="any", after=None, **options):
    prune = {"early_config_prune": same_bits(reference, grid=grid, after=after)}
    return triton.autotune(configs, key=list(key), prune_configs_by=prune, **options)(kernel)


def run(kernel, n=50, scale=1.0, grid=(2,), **options):
    x, out = np.ones(64, np.float32), np.zeros(2, np.float32)
    with emulate("cuda:90"):
        kernel[grid](x, out, n, scale, **options)
    assert list(out) == [n * scale] * 2
    return kernel


def warps_of(kernel):
    """How a fake tells configurations apart."""
    return re.search(r"num_warps: (\d+)", kernel["name"])[1]


def timed(kernel):
    return [each.num_warps for each in kernel.configs_timings]


@pytest.fixture
def checker(monkeypatch):
    return fake_checker.install(monkeypatch, lambda kernel: "one")


@pytest.fixture
def shown(monkeypatch):
    monkeypatch.setattr(knobs.autotuning, "print", True)


FOUR = [config(1), config(2), config(4), config(8)]


def test_the_first_configuration_s_class_is_timed_and_nothing_else(checker):
    checker.label = lambda kernel: warps_of(kernel) in "14"
    kernel = run(tuned(FOUR))
    assert timed(kernel) == [1, 4]
    assert kernel.best_config == config(1)
    assert kernel.early_config_prune.selection.classes == [[0, 2], [1, 3]]


def test_a_reference_from_the_list_decides_instead(checker):
    checker.label = lambda kernel: warps_of(kernel) in "14"
    assert timed(run(tuned(FOUR, reference=config(8)))) == [2, 8]


def test_a_reference_that_is_not_in_the_list_is_timed_too(checker):
    checker.label = lambda kernel: warps_of(kernel) in "18"
    kernel = run(tuned(FOUR[:3], reference=config(8)))
    assert timed(kernel) == [8, 1]
    assert kernel.early_config_prune.kept == [config(8), config(1)]
    checker.label = warps_of
    kernel = run(tuned(FOUR[:3], reference=config(16)))
    assert kernel.best_config.num_warps == 16  # alone, so that nothing is timed


def test_a_compiled_reference_is_compared_and_not_timed(checker):
    compiled = run_alone(4)
    checker.label = lambda kernel: "compiled" in kernel["name"] or warps_of(kernel) in "28"
    kernel = run(tuned(FOUR, reference=compiled))
    assert timed(kernel) == [2, 8]
    assert checker.kernels[0]["ptx"] == compiled.asm["ptx"]
    # What is known of the launch is known of the reference.
    assert checker.kernels[0]["scalars"] == {"2": hex(50)} == checker.kernels[1]["scalars"]


def run_alone(warps, kernel=add_up, n=50):
    x, out = np.ones(64, np.float32), np.zeros(2, np.float32)
    with emulate("cuda:90"):
        return kernel[(2,)](x, out, n, 1.0, N=64, num_warps=warps)


def test_a_compiled_reference_that_nothing_equals_is_an_error_that_says_what_differs(checker):
    compiled = run_alone(4)
    checker.label = lambda kernel: "compiled" in kernel["name"]
    with pytest.raises(SameBitsError, match="no configuration is proved") as caught:
        run(tuned(FOUR, reference=compiled))
    assert "a[0] is computed otherwise" in str(caught.value)


def test_a_reference_for_other_arguments_is_not_compared(checker):
    compiled = run_alone(4, n=1)  # 1 is compiled in: one parameter less
    with pytest.raises(SameBitsError, match=r"its parameters are \(x: \*fp32, out: \*fp32, n: i32"):
        run(tuned(FOUR, reference=compiled))


def test_a_reference_for_another_target_is_not_compared(checker):
    x, out = np.ones(64, np.float32), np.zeros(2, np.float32)
    with emulate("cuda:80"):
        compiled = add_up[(2,)](x, out, 50, 1.0, N=64)
    with pytest.raises(SameBitsError, match="it is for cuda:90, the reference for cuda:80"):
        run(tuned(FOUR, reference=compiled))


@pytest.mark.parametrize("reference", [8, "first", lambda: None])
def test_what_is_no_reference_is_refused_at_once(reference):
    with pytest.raises(TypeError, match=r"reference must be None, a triton\.Config or a comp"):
        same_bits(reference)


def test_what_is_no_grid_is_refused_at_once():
    with pytest.raises(ValueError, match="grid must be one of"):
        same_bits(grid=(1,))


def test_what_does_not_compile_is_dropped_with_its_reason(checker, shown, capsys):
    kernel = run(tuned([config(1), config(2, N=512), config(4)]))
    assert timed(kernel) == [1, 4]
    assert [each["name"][:9] for each in checker.kernels] == ["N: 64, nu"] * 2
    said = capsys.readouterr().out
    assert re.search(r"in no class, dropped: does not compile: .*too wide a tile\n    N: 512", said)


def test_equal_configurations_that_do_not_compile_all_have_the_reason(checker):
    kernel = run(tuned([config(1), config(2, N=512), config(2, N=512), config(4)]))
    reasons = [each.reason for each in kernel.early_config_prune.selection.judged]
    assert reasons[0] == reasons[3] == ""
    assert "too wide" in reasons[1] and reasons[1] == reasons[2]


def test_a_reference_that_does_not_compile_is_an_error(checker):
    with pytest.raises(SameBitsError, match=r"the reference, N: 512.*too wide.*name another one"):
        run(tuned([config(1, N=512), config(2)]))


def test_the_classes_are_printed(checker, shown, capsys):
    checker.label = lambda kernel: warps_of(kernel) in "14"
    run(tuned(FOUR))
    said = capsys.readouterr().out
    assert "same_bits: add_up: 2 of 4 configurations kept, 2 classes" in said
    assert f"reference: {config(1)}" in said
    assert f"  class 1, the reference's:\n    {config(1)}: kept\n    {config(4)}: kept\n" in said
    expected = f"  class 2, dropped: not proved the same: {checker.difference}\n    {config(2)}\n"
    assert expected in said
    assert checker.requests[0]["explain"] == 3


def test_places_are_told_with_what_differs(checker, shown, capsys):
    checker.label = warps_of
    source = {"file": "/home/user/sum.py", "line": 14, "column": 3}
    at = [{"line": 88, "source": source}, {"line": 91, "source": source}]
    outputs = [{"output": "out", "at": at, "text": "A adds, B does not"}, {"text": "so too"}]

    def edit(answer):
        answer["differences"] = [
            {"classes": [0, 1], "verdict": "different", "outputs": outputs},
            {"classes": [0, 2], "verdict": "unknown", "reason": "a loop is not followed"},
            {"classes": [1, 2], "verdict": "different", "outputs": [{"text": "elsewhere"}]},
        ]

    checker.edit = edit
    run(tuned(FOUR))
    said = capsys.readouterr().out
    assert "class 2, dropped: not proved the same: A adds, B does not (sum.py:14); 1 more\n" in said
    assert "class 3, dropped: not proved the same: a loop is not followed\n" in said
    assert "class 4, dropped: not proved the same: other bits\n" in said
    assert "elsewhere" not in said


def test_nothing_is_printed_or_explained_unasked(checker, capsys):
    checker.label = lambda kernel: warps_of(kernel) in "14"
    run(tuned(FOUR))
    assert capsys.readouterr().out == ""
    assert [each["explain"] for each in checker.requests] == [0]


def test_the_pruner_runs_once_for_each_key(checker):
    kernel = run(tuned(FOUR))
    run(kernel)
    run(kernel, scale=2.0)
    assert len(checker.requests) == 1
    run(kernel, n=40)
    assert len(checker.requests) == 2


def test_what_was_compiled_to_be_compared_is_not_compiled_again(checker, monkeypatch, fresh_cache):
    compiled = []
    monkeypatch.setattr(
        knobs.compilation, "listener", lambda **told: compiled.append(told["cache_hit"])
    )
    kernel = run(tuned(FOUR))
    assert compiled == [False] * 4  # not one more to be timed and launched
    assert len(timed(kernel)) == 4
    add_up.device_caches.clear()
    run(tuned(FOUR))
    assert compiled[4:] == [True] * 4


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setattr(knobs.cache, "dir", str(tmp_path))
    add_up.device_caches.clear()


def test_threads_compile_what_one_compiles(checker, fresh_cache, monkeypatch):
    monkeypatch.setattr(triton.bitstable.tuning.compiling, "_processors", lambda: 8)
    run(tuned(FOUR))
    threaded = [kernel["ptx"] for kernel in checker.kernels]
    add_up.device_caches.clear()
    monkeypatch.setattr(knobs.compilation, "always_compile", True)
    monkeypatch.setattr(triton.bitstable.tuning.compiling, "_processors", lambda: 1)
    run(tuned(FOUR))
    assert threaded == [kernel["ptx"] for kernel in checker.kernels]
    assert len(set(threaded)) == 4


def test_the_caller_s_own_asynchronous_mode_is_used(checker):
    from concurrent.futures import ThreadPoolExecutor

    add_up.device_caches.clear()
    with ThreadPoolExecutor(2) as pool, AsyncCompileMode(pool):
        kernel = run(tuned([config(1), config(2, N=512), config(4)]))
    assert timed(kernel) == [1, 4]


def test_a_compiled_kernel_that_a_hook_vetoes_is_dropped(checker, monkeypatch):
    add_up.device_caches.clear()
    veto = lambda **told: told["compile"]["num_warps"] == 2  # noqa: E731
    monkeypatch.setattr(knobs.runtime, "jit_cache_hook", veto)
    kernel = run(tuned([config(1), config(2), config(4)]))
    assert timed(kernel) == [1, 4]
    assert "jit_cache_hook" in kernel.early_config_prune.selection.judged[1].reason


# What the checker answers


def test_an_obstacle_keeps_equal_texts_alone(checker, shown, capsys):
    obstacle = {"what": "wgmma is not followed", "line": 7, "source": None}
    checker.extra["one"] = {"obstacle": obstacle}
    kernel = run(tuned([config(1), config(1, num_stages=4), config(4)]))
    assert kernel.early_config_prune.selection.kept == [0, 1]
    assert "not followed: wgmma is not followed (line 7 of its PTX)" in capsys.readouterr().out


def test_where_ptxas_may_contract_equal_texts_are_kept_alone(checker):
    source = {"file": "/home/user/softmax.py", "line": 14, "column": 3}
    checker.extra["one"] = {"contractions": [{"line": 88, "source": source}]}
    kernel = run(tuned([config(1), config(1, num_stages=4), config(4)]))
    assert kernel.early_config_prune.selection.kept == [0, 1]
    assert "may contract at softmax.py:14" in kernel.early_config_prune.selection.judged[2].reason
    # Told not to, it does not.
    kernel = run(tuned([config(1), config(4)]), enable_fp_fusion=False)
    assert timed(kernel) == [1, 4]


def test_what_cannot_be_read_is_dropped(checker):
    checker.label = lambda kernel: Fails("no PTX") if warps_of(kernel) == "2" else "one"
    kernel = run(tuned(FOUR))
    assert timed(kernel) == [1, 4, 8]
    assert kernel.early_config_prune.selection.judged[1].reason == "no PTX"


def test_a_reference_that_cannot_be_read_stays_alone(checker):
    checker.label = lambda kernel: Fails("no PTX") if warps_of(kernel) == "1" else "one"
    kernel = run(tuned(FOUR))
    assert kernel.best_config == config(1)
    selection = kernel.early_config_prune.selection
    assert selection.kept == [0]
    assert "the reference cannot be compared: no PTX" in selection.judged[1].reason


def test_what_is_not_answered_is_dropped(checker):
    checker.edit = lambda answer: answer["classes"][0]["kernels"].remove(2)
    assert timed(run(tuned(FOUR))) == [1, 2, 8]


# Elsewhere


def test_targets_without_ptx_are_refused(checker, monkeypatch):
    hip = GPUTarget("hip", "gfx942", 64)
    monkeypatch.setattr(EmulatedDriver, "get_current_target", lambda self: hip)
    with pytest.raises(SameBitsError, match="kernels for hip:gfx942 have none"):
        run(tuned(FOUR))


def test_a_pruner_called_by_another_one_is_refused(checker):
    inner = same_bits()
    prune = {"early_config_prune": lambda *args, **kwargs: inner(*args, **kwargs)}
    kernel = triton.autotune(FOUR, key=["n"], prune_configs_by=prune)(add_up)
    with pytest.raises(SameBitsError, match=r"same_bits\(after=…\)"):
        run(kernel)


def test_another_pruner_goes_first(checker):
    def wide(configs, named_args, **kwargs):
        assert named_args["n"] == 50 and "grid" in kwargs
        return [each for each in configs if each.num_warps > 1]

    assert timed(run(tuned(FOUR, after=wide))) == [2, 4, 8]
    with pytest.raises(SameBitsError, match="no configurations"):
        run(tuned(FOUR, after=lambda configs, named_args, **kwargs: []))


def test_one_pruner_serves_many_kernels(checker):
    prune = {"early_config_prune": same_bits()}
    one, other = (triton.autotune(FOUR, ["n"], prune_configs_by=prune)(add_up) for _ in range(2))
    assert one.early_config_prune.autotuner is one
    assert other.early_config_prune.autotuner is other
    run(one)
    assert other.early_config_prune.selection is None


def test_a_warm_up_compiles_what_is_kept(checker):
    checker.label = lambda kernel: warps_of(kernel) in "14"
    x, out = np.ones(64, np.float32), np.zeros(2, np.float32)
    with emulate("cuda:90") as emulation:
        x, out = (emulate.view(each, "fp32") for each in (x, out))
        kernels = tuned(FOUR).warmup(x, out, 50, 1.0, grid=(2,))
    assert [each.metadata.num_warps for each in kernels] == [1, 4]
    assert emulation.runs == 0
