"""What the user asks of an emulation: a target and how to run, from keywords or from one string.

# Invariants
- **O1** Whatever is wrong with a target or an option is an `EmulationError` that lists the choices,
  before anything is replaced or compiled.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from triton.backends.compiler import GPUTarget
from triton.bitstable.emulation.devices import DEVICES, Device
from triton.bitstable.errors import EmulationError

MMA_MODELS = ("hardware", "exact", "sequential")
_SCHEDULE = re.compile(r"forward|reversed|random:\d{1,19}")
_TARGET = re.compile(r"(?:cuda:|sm_)(\d+)a?")


@dataclass(frozen=True)
class Options:
    """How launches are executed. `schedule` comes first where there are several `schedules`."""

    races: bool = True
    strict: bool = False
    schedule: str = "forward"
    schedules: int = 1
    jobs: int | None = None
    step_limit: int | None = None
    mma: str = "hardware"

    def __post_init__(self) -> None:
        for name in ("races", "strict"):
            _require(isinstance(getattr(self, name), bool), name, self, "True or False")
        one = isinstance(self.schedule, str) and _SCHEDULE.fullmatch(self.schedule) is not None
        _require(one, "schedule", self, "forward, reversed or random:SEED")
        _require(_is_positive(self.schedules), "schedules", self, "a number, at least 1")
        for name in ("jobs", "step_limit"):
            value = getattr(self, name)
            _require(value is None or _is_positive(value), name, self, "a number, at least 1")
        _require(self.mma in MMA_MODELS, "mma", self, ", ".join(MMA_MODELS))

    def orders(self) -> list[str]:
        """The schedules to run, each once: the chosen one, then the plainest others."""
        others = ["forward", "reversed", *(f"random:{seed}" for seed in range(1, self.schedules))]
        return [self.schedule, *(o for o in others if o != self.schedule)][: self.schedules]

    def request(self, order: str) -> dict[str, Any]:
        """What the native library is told about one run."""
        told = asdict(self) | {"schedule": order}
        del told["schedules"]
        return {name: value for name, value in told.items() if value is not None}


def _is_positive(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


def _require(holds: bool, name: str, options: Options, choices: str) -> None:
    if not holds:
        got = getattr(options, name)
        raise EmulationError(f"emulate: option {name}={got!r} must be one of: {choices}")


def parse_target(target: str | GPUTarget) -> Device:
    """The device that `target` names: `"cuda:90"`, `"sm_90"`, or a `GPUTarget`."""
    arch: Any = None
    if isinstance(target, GPUTarget) and target.backend == "cuda":
        arch = target.arch
    elif isinstance(target, str) and (match := _TARGET.fullmatch(target)):
        arch = int(match[1])
    if arch in DEVICES:
        return DEVICES[arch]
    choices = ", ".join(f"cuda:{arch}" for arch in DEVICES)
    raise EmulationError(f"emulate: no such target: {target!r}; the choices are {choices}")


def _boolean(text: str) -> bool:
    return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[text]


_READERS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys(("races", "strict"), _boolean),
    **dict.fromkeys(("schedule", "mma"), str),
    **dict.fromkeys(("schedules", "jobs", "step_limit"), int),
}


def parse(text: str) -> tuple[str, dict[str, Any]]:
    """Read `cuda:90,schedule=random:7,races=no`: the target, and the options by name."""
    target, *settings = (part.strip() for part in text.split(","))
    options: dict[str, Any] = {}
    for setting in settings:
        name, equals, value = setting.partition("=")
        if not equals or name not in _READERS:
            choices = ", ".join(f"{each}=…" for each in _READERS)
            raise EmulationError(f"emulate: no such option: {setting!r}; the choices are {choices}")
        try:
            options[name] = _READERS[name](value)
        except (ValueError, KeyError):
            kind = "a number" if _READERS[name] is int else "yes or no"
            raise EmulationError(f"emulate: option {setting!r}: the value must be {kind}") from None
    return target, options
