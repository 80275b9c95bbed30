"""Observed bit classes: which configurations gave the same bytes, and what was demanded of them.

# Idea
Two configurations are in one class when all buffers were equal on all draws. A class is an
observation: draws can tell configurations apart, and cannot prove them equal.

# Invariants
- **K1** Every configuration of the sweep is in one class, or in `not_run`, or in `failed`.
- **K2** A demand is met or not met by what ran; a configuration whose bits are unknown leaves it
  open, which is never a pass. What exceeds its target has no bits there, and is no obstacle.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from triton.bitstable.bits.configurations import Configuration
from triton.bitstable.bits.errors import UsageError
from triton.bitstable.bits.execution import Finding, Job, Outcome, Status


class Exit(enum.IntEnum):
    """The exit status of `bitstable bits`."""

    HOLDS = 0
    #: The demand is not met, or a run had errors.
    BROKEN = 1
    #: There is no answer: the command line is wrong, or something did not compile.
    UNKNOWN = 2


@dataclass(frozen=True)
class BitClass:
    """Configurations that cannot be told apart. `bits` identifies their bytes, on any machine."""

    bits: str
    outcomes: tuple[Outcome, ...]

    @property
    def configurations(self) -> list[Configuration]:
        """Its members."""
        return [outcome.configuration for outcome in self.outcomes]


@dataclass(frozen=True)
class Difference:
    """The first place where two classes differ, and how many elements differ on that draw."""

    draw: str
    buffer: str
    element: int
    values: tuple[str, str]
    differing: int

    def __str__(self) -> str:
        here, there = self.values
        more = f"; {self.differing} elements differ" if self.differing > 1 else ""
        return f"draw {self.draw}: {self.buffer}[{self.element}] is {here}, there {there}{more}"


@dataclass(frozen=True)
class Verdict:
    """Whether a demand is met. `reasons` say why not, or what is not known."""

    demand: str
    exit: Exit
    reasons: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return self.exit is Exit.HOLDS


class Classes:
    """The result of a sweep."""

    def __init__(self, kernel: str, job: Job, outcomes: Iterable[Outcome]) -> None:
        self.kernel = kernel
        self.job = job
        self.outcomes = list(outcomes)
        found: dict[str, list[Outcome]] = {}
        for outcome in self._with(Status.RAN):
            found.setdefault(outcome.bits, []).append(outcome)
        #: The largest first.
        self.classes = [
            BitClass(bits, tuple(members))
            for bits, members in sorted(found.items(), key=lambda each: -len(each[1]))
        ]

    def __len__(self) -> int:
        return len(self.classes)

    def _with(self, *statuses: Status) -> list[Outcome]:
        return [outcome for outcome in self.outcomes if outcome.status in statuses]

    @property
    def not_run(self) -> list[Outcome]:
        """Configurations without bits, each with its reason."""
        return self._with(Status.EXCEEDS, Status.REFUSED)

    @property
    def failed(self) -> list[Outcome]:
        """Configurations in which the executor found errors."""
        return self._with(Status.FOUND)

    @property
    def notes(self) -> list[Finding]:
        """What the executor reported that is no error, each once."""
        found = [f for o in self.outcomes for f in o.findings if f.severity != "error"]
        return list(dict.fromkeys(found))

    @property
    def codes(self) -> int:
        """How many different codes were run."""
        return len({outcome.code for outcome in self.outcomes if outcome.code})

    def class_of(self, configuration: Configuration) -> BitClass | None:
        """The class of a configuration; none if it has no bits."""
        for each in self.classes:
            if configuration in each.configurations:
                return each
        return None

    def difference(self, one: BitClass, other: BitClass) -> Difference | None:
        """Where the first class differs from the second."""
        outputs = [next(o.outputs for o in each.outcomes if o.outputs) for each in (one, other)]
        for at, draw in enumerate(self.job.draws):
            for buffer, here, there in zip(
                self.job.buffers, outputs[0][at], outputs[1][at], strict=True
            ):
                if here == there:
                    continue
                left, right = (np.frombuffer(b, buffer.element.storage) for b in (here, there))
                differing = np.flatnonzero(left != right)
                first = int(differing[0])
                values = tuple(buffer.element.show(int(each[first])) for each in (left, right))
                return Difference(draw.name, buffer.name, first, values, len(differing))
        return None

    def verdict(self, demand: Any = "one") -> Verdict:
        """Judge: `"one"`, `"any"`, `"one-per-target"`, or a partition; see [`read_partition`]."""
        named = demand if isinstance(demand, str) else "partition"
        broken = self._violations(demand)
        if self.failed:
            broken.append(f"{count(len(self.failed), 'configuration')} ran with errors")
        if broken:
            return Verdict(named, Exit.BROKEN, tuple(broken))
        unknown = []
        if refused := self._with(Status.REFUSED):
            many = count(len(refused), "configuration")
            unknown.append(f"{many} did not compile or run: their bits are unknown")
        if not self.classes:
            unknown.append("no configuration has bits")
        return Verdict(named, Exit.UNKNOWN if unknown else Exit.HOLDS, tuple(unknown))

    def _violations(self, demand: Any) -> list[str]:
        if demand == "any":
            return []
        if demand == "one":
            return [] if len(self) <= 1 else [f"{len(self)} classes where one is demanded"]
        if demand == "one-per-target":
            return self._per_target()
        if isinstance(demand, str):
            raise UsageError(
                f"no such demand: {demand}; the choices are one, any, one-per-target, or a file"
            )
        return self._against(read_partition(demand))

    def _per_target(self) -> list[str]:
        seen: dict[str, set[str]] = {}
        for outcome in self._with(Status.RAN):
            seen.setdefault(outcome.configuration.target, set()).add(outcome.bits)
        return [
            f"{target}: {len(bits)} classes where one is demanded"
            for target, bits in seen.items()
            if len(bits) > 1
        ]

    def _against(self, partition: list[list[Mapping[str, Any]]]) -> list[str]:
        wanted: dict[int, set[str]] = {}
        for outcome in self._with(Status.RAN):
            axes = outcome.configuration.axes()
            inside = [
                at
                for at, patterns in enumerate(partition)
                if any(_matches(axes, p) for p in patterns)
            ]
            if len(inside) != 1:
                how = "in no class" if not inside else "in more than one class"
                raise UsageError(f"the demanded partition has {how}: {outcome.configuration}")
            wanted.setdefault(inside[0], set()).add(outcome.bits)
        broken = [
            f"demanded class {at + 1} is {len(bits)} classes"
            for at, bits in sorted(wanted.items())
            if len(bits) > 1
        ]
        together = [(a, b) for a in wanted for b in wanted if a < b and wanted[a] & wanted[b]]
        return broken + [
            f"demanded classes {a + 1} and {b + 1} have the same bits" for a, b in sorted(together)
        ]

    def require(self, demand: Any = "one") -> None:
        """Raise an `AssertionError` that shows the classes, unless the demand is met."""
        verdict = self.verdict(demand)
        if not verdict:
            raise AssertionError("\n".join([str(self), *verdict.reasons]))

    def __str__(self) -> str:
        from triton.bitstable.bits import table

        return table.render(self)

    def to_json(self, demand: Any = "one") -> dict[str, Any]:
        """What `--json` prints; `docs/bits.md` describes it."""
        from triton.bitstable.bits import table

        return table.to_json(self, self.verdict(demand))


def count(number: int, noun: str) -> str:
    """`1 class`, `2 classes`."""
    plural = "es" if noun.endswith("s") else "s"
    return f"{number} {noun}{plural if number != 1 else ''}"


def _matches(axes: Mapping[str, Any], pattern: Mapping[str, Any]) -> bool:
    if odd := sorted(set(pattern) - set(axes)):
        known = ", ".join(axes)
        raise UsageError(f"the demanded partition names {', '.join(odd)}; the axes are {known}")
    return all(
        axes[name] in value if isinstance(value, list) else axes[name] == value
        for name, value in pattern.items()
    )


def read_partition(demand: Any) -> list[list[Mapping[str, Any]]]:
    """A partition as patterns: a list of classes, each a list of `{axis: value or values}`.

    A configuration is in the class with a pattern that it matches. What `--json` wrote is such a
    partition; a `Path` is read as JSON.
    """
    if isinstance(demand, Path):
        try:
            demand = json.loads(demand.read_text())
        except (OSError, ValueError) as error:
            raise UsageError(f"{demand}: {error}") from None
    if isinstance(demand, Mapping):
        demand = demand.get("classes")
    if not isinstance(demand, list):
        raise UsageError("a partition is a list of classes, or an object with `classes`")
    classes = [each.get("configurations") if isinstance(each, Mapping) else each for each in demand]
    for each in classes:
        if not isinstance(each, list) or not all(isinstance(p, Mapping) for p in each):
            raise UsageError("a class of a partition is a list of objects, axis to value")
    return classes
