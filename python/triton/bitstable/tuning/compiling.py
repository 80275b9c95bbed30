"""Configurations compiled as the autotuner would compile them, in parallel.

# Idea
A configuration is compiled by the kernel's own `run`, with `warmup`: what is compiled is what would
be launched, hooks and heuristics included, and both of Triton's caches have it when the autotuner
comes to launch it. Triton's mode for asynchronous compilation spreads the work over threads; the
compiler runs without the GIL.

# Invariants
- **C1** A configuration is specialised on the launch's own arguments, after its `pre_hook` has run:
  hooks set what descriptors look like.
- **C2** What fails is told per configuration. A hook's failure is the caller's.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable.tuning.errors import SameBitsError
from triton.runtime import driver
from triton.runtime._async_compile import AsyncCompileMode, FutureKernel, active_mode
from triton.runtime.autotuner import Autotuner, Config, Heuristics
from triton.runtime.jit import JITFunction, MockTensor


@dataclass
class Candidate:
    """One configuration, compiled or not."""

    config: Config
    #: The kernel's arguments by name, constants and defaults included.
    bound: dict[str, Any] = field(default_factory=dict)
    #: Parameters whose values the configuration or a heuristic chose.
    chosen: frozenset[str] = frozenset()
    kernel: Any = None
    failure: str | None = None


def compile_all(
    autotuner: Autotuner,
    configs: Sequence[Config],
    named: Mapping[str, Any],
    options: Mapping[str, Any],
) -> list[Candidate]:
    """Compile `configs`, for a launch with `named` arguments and `options` (its keywords)."""
    failed: dict[int, str] = {}
    with _in_parallel(len(configs)):
        begun = [_begin(autotuner, config, named, options) for config in configs]
        for candidate in begun:
            _finish(candidate, failed)
    return begun


def innermost(kernel: Any) -> tuple[Any, list[Heuristics]]:
    """The kernel under its heuristics, and those, outermost first."""
    heuristics = []
    while isinstance(kernel, Heuristics):
        heuristics.append(kernel)
        kernel = kernel.fn
    return kernel, heuristics


def _begin(
    autotuner: Autotuner, config: Config, named: Mapping[str, Any], options: Mapping[str, Any]
) -> Candidate:
    keywords = {**options, **config.all_kwargs()}
    full = {**named, **keywords}
    if config.pre_hook is not None:
        config.pre_hook(full)
    if autotuner.user_defined_pre_hook:  # the default one saves and clears buffers: not needed here
        autotuner.pre_hook(full)
    candidate = Candidate(config)
    failure: Exception | None = None
    try:
        _specialise(autotuner, candidate, list(named.values()), keywords)
    except Exception as error:
        failure = error
        candidate.failure = reason(error)
    if autotuner.user_defined_post_hook:
        autotuner.post_hook(full, exception=failure)
    return candidate


def _specialise(
    autotuner: Autotuner, candidate: Candidate, values: list[Any], keywords: dict[str, Any]
) -> None:
    function, heuristics = innermost(autotuner.fn)
    if not isinstance(function, JITFunction):
        raise SameBitsError(f"a kernel under {type(function).__name__} is not understood")
    for each in heuristics:
        for name, value in each.values.items():
            keywords[name] = value({**dict(zip(each.arg_names, values, strict=False)), **keywords})
    computed = {name for each in heuristics for name in each.values}
    candidate.chosen = frozenset(computed | set(candidate.config.kwargs))
    values = [MockTensor.wrap_dtype(value) for value in values]
    keywords = {key: value for key, value in keywords.items() if key not in ("grid", "warmup")}
    bind = function.device_caches[driver.active.get_current_device()][-1]
    candidate.bound = bind(*values, **keywords)[0]
    candidate.kernel = function.run(*values, grid=None, warmup=True, **keywords)


def _finish(candidate: Candidate, failed: dict[int, str]) -> None:
    """Wait for the kernel. Equal ones are one, whose failure is told once, by Triton."""
    pending = candidate.kernel
    if candidate.failure is not None:
        return
    if isinstance(pending, FutureKernel):
        candidate.failure = failed.get(id(pending))
        try:
            candidate.kernel = None if candidate.failure else pending.result()
        except Exception as error:
            candidate.kernel = None
            candidate.failure = failed[id(pending)] = reason(error)
    elif pending is None:
        candidate.failure = "a jit_cache_hook kept it from being compiled"


def reason(error: Exception) -> str:
    """An exception in one line: a compiler's message has its point at the end."""
    cause = error.__cause__ if str(error).strip() == "" and error.__cause__ else error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip(" ^\t\n")]
    kind = type(cause).__name__
    if not lines:
        return kind
    if len(lines) == 1:
        return f"{kind}: {lines[0]}"
    return f"{kind}: {lines[0].rstrip(':')}: {lines[-1]}"


@contextmanager
def _in_parallel(count: int) -> Iterator[None]:
    if count < 2 or active_mode.get() is not None:  # the caller's own mode serves as well
        yield
        return
    pool = ThreadPoolExecutor(min(count, _processors()), "bitstable-compile")
    with pool, AsyncCompileMode(pool, ignore_errors=True):
        try:
            yield
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def _processors() -> int:
    return len(os.sched_getaffinity(0))
