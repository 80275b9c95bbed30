"""Emulations that are active, innermost last, and what is replaced while there are any.

# Idea
Triton has one active driver for the process. The first emulation to begin puts its own in place and
[`interpose`]s; those that begin later take its place, and give it back. It follows that threads
share an emulation: one that begins on one thread is seen by all.

# Invariants
- **E1** When the last emulation has ended, Triton is as it was found: the same driver, even "none
  yet", the same methods, the same hook; also after an exception, and in whatever order threads end.
- **E2** The driver that is active is the innermost emulation's.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from contextlib import ContextDecorator
from types import TracebackType
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.bitstable.emulation.options import Options, parse, parse_target
from triton.bitstable.emulation.reports import Collection, Report
from triton.bitstable.errors import EmulationError
from triton.runtime import driver as registry

_lock = threading.RLock()
_active: list[emulate] = []
_replaced: Any = None


class emulate(ContextDecorator):
    """Run kernels on a CPU, exactly, as a device of another kind would.

    A context manager and a decorator. Inside, `kernel[grid](...)` takes numpy arrays, and torch
    tensors on the CPU; it compiles for `target`, such as `"cuda:90"`, and executes the PTX. Errors
    that the executor finds raise `EmulationError` when the launch is over; all that it finds, also
    what is only worth a note, is in `reports`.

    Options: `races` (look for data races; on), `strict` (also report what is harmless in practice),
    `schedule` (`"forward"`, `"reversed"` or `"random:SEED"`: in what order warps and CTAs run),
    `schedules` (run every launch under so many and compare the results; 1), `jobs` (threads),
    `step_limit` (instructions a launch may take), `mma` (how matrix instructions round:
    `"hardware"`, `"exact"` or `"sequential"`).
    """

    def __init__(self, target: str | GPUTarget, **options: Any) -> None:
        from triton.bitstable.emulation.driver import EmulatedDriver

        self.device = parse_target(target)
        self.options = _options(options)
        self.driver = EmulatedDriver(self.device)
        self.collection = Collection()
        #: How many runs there were; a launch has as many as there are `schedules`.
        self.runs = 0
        #: What the native library counted in the last run.
        self.statistics: dict[str, Any] = {}

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Decorate a function: each call of it is emulated."""
        if inspect.iscoroutinefunction(func) or inspect.isgeneratorfunction(func):
            raise TypeError(
                f"{func.__qualname__} runs after it has returned: write `with emulate(...)` in it"
            )
        return super().__call__(func)

    @property
    def reports(self) -> list[Report]:
        """All that was found so far, each fault once."""
        return self.collection.snapshot()

    def request(self, order: str) -> dict[str, Any]:
        """How the native library shall run a launch, in one of the schedules."""
        return self.options.request(order) | {"multiprocessors": self.device.multiprocessors}

    def record(self, reply: dict[str, Any]) -> None:
        """Take in what one run counted."""
        with _lock:
            self.runs += 1
            self.statistics = reply.get("statistics") or {}

    def __enter__(self) -> emulate:
        with _lock:
            _push(self)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _lock:
            _remove(self)

    @staticmethod
    def current() -> emulate | None:
        """The innermost active emulation; how to reach `reports` of one that the environment set.

        It is also what tells whether code runs emulated.
        """
        return innermost()

    @staticmethod
    def view(array: Any, dtype: Any) -> Any:
        """A numpy array for a kernel that shall see another element type; see `arguments.view`."""
        from triton.bitstable.emulation.arguments import view

        return view(array, dtype)


def _options(given: dict[str, Any]) -> Options:
    try:
        return Options(**given)
    except TypeError:
        known = set(Options.__dataclass_fields__)
        odd = ", ".join(sorted(set(given) - known))
        raise EmulationError(
            f"emulate: no such option: {odd}; the choices are {', '.join(sorted(known))}"
        ) from None


def innermost() -> emulate | None:
    """The emulation that launches ask; none outside."""
    return _active[-1] if _active else None


def _push(emulation: emulate) -> None:
    global _replaced
    from triton.bitstable.emulation.interpose import Replaced

    if not _active:
        _replaced = Replaced.begin()
    _active.append(emulation)
    _replaced.activate(emulation.driver)


def _remove(emulation: emulate) -> None:
    global _replaced
    # The last one of it: an emulation may be entered again inside itself.
    at = len(_active) - 1 - _active[::-1].index(emulation)
    del _active[at]
    if _active:
        _replaced.activate(_active[-1].driver)
    else:
        _replaced.end()
        _replaced = None


def begin_from_environment(setting: str) -> None:
    """Emulate for the rest of the process, as `TRITON_BITSTABLE_EMULATE` says."""
    try:
        target, options = parse(setting)
        emulation = emulate(target, **options)
    except EmulationError as error:
        raise EmulationError(f"TRITON_BITSTABLE_EMULATE={setting}: {error}") from None
    emulation.__enter__()
    # `reset_active` goes back to Triton's default, which on a machine without a GPU is an error.
    registry._default = emulation.driver
