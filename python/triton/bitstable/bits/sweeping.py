"""Sweeps, as a library: a kernel over its configurations.

# Invariants
- **W1** The result is a function of kernel, arguments, configurations, draws and seed; how many
  processes did the work does not show.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import triton
from triton.bitstable.bits import kernels, workers
from triton.bitstable.bits.arguments import Argument, read
from triton.bitstable.bits.classes import Classes
from triton.bitstable.bits.configurations import Configuration, collect
from triton.bitstable.bits.draws import Draw, plan
from triton.bitstable.bits.errors import UsageError
from triton.bitstable.bits.execution import Job, Outcome, Runner, groups
from triton.bitstable.bits.grid import Grid

DRAWS = 7  # every kind once
Progress = Callable[[int, int], None]


def sweep(
    kernel: Any,
    args: Mapping[str, Any] | Iterable[str | Argument],
    grid: Grid = 1,
    configs: Iterable[Configuration | triton.Config] | None = None,
    draws: int | str | Iterable[str | Draw] = DRAWS,
    *,
    seed: int = 0,
    jobs: int = 1,
    progress: Progress | None = None,
    **options: Any,
) -> Classes:
    """Compile and run `kernel` in every configuration, on every draw, and compare.

    `args` are as the module `arguments` says, `{"x": "f32:4096", "out": "f32:16=zero", "n": 608}`;
    `grid` is a tuple, a function of the constants, or a text such as `"cdiv(n, BLOCK)"`. `configs`
    comes from `matrix`, or is an autotuner's list; an autotuned kernel has one of its own. With
    `jobs` above 1, so many processes work; a kernel made inside a function stays in this one.
    `progress` is called with how many configurations are done, and of how many. `options` are
    those of `emulate`, such as `strict`, `races`, `schedules` and `mma`.
    """
    plain, tuned = kernels.untuned(kernel)
    configurations = collect(configs if configs is not None else tuned or [Configuration()])
    arguments = read(args)
    kernels.check(plain, arguments, configurations)
    asked = _executor_options(options, {each.target for each in configurations})
    job = Job(tuple(arguments), grid, tuple(plan(draws)), seed, tuple(asked.items()))
    work = groups(configurations)
    done = _counted(progress, len(configurations))
    place = kernels.Place.of(kernel) if jobs > 1 and len(work) > 1 else None
    if place is not None:
        outcomes = workers.run(place, job, work, jobs, done)
    else:
        runner, outcomes = Runner(plain, job), []
        for group in work:
            outcomes += (ran := runner.run(group))
            done(ran)
    order = {configuration: at for at, configuration in enumerate(configurations)}
    outcomes.sort(key=lambda outcome: order[outcome.configuration])
    return Classes(plain.__name__ if hasattr(plain, "__name__") else "kernel", job, outcomes)


def _executor_options(options: dict[str, Any], targets: set[str]) -> dict[str, Any]:
    """The options of every launch, once they and the targets are known to be good."""
    from triton.bitstable import EmulationError, emulate

    # Processes are the parallelism, and their number must not depend on a launch's.
    asked = {"jobs": 1, **options}
    try:
        for target in sorted(targets):
            emulate(target, **asked)
    except EmulationError as error:
        raise UsageError(str(error)) from None
    return asked


def _counted(progress: Progress | None, total: int) -> Callable[[list[Outcome]], None]:
    count = 0

    def done(outcomes: list[Outcome]) -> None:
        nonlocal count
        count += len(outcomes)
        if progress is not None:
            progress(count, total)

    return done
