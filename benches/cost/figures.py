"""Ratios of one way of compiling to another, their means, the losses, and the figures to reach.

# Idea
A row is a kernel at a target and a number of warps, with the figures of each way: `stock`
(unordered, which is stock Triton's code to the byte), `ours` and `peer` (pinned). What is compared
is always a ratio of two ways in one row.

# Invariants
- **F1** Nothing is left out in silence: a way that does not compile is listed, and means are over
  the rows in which both ways compile.
- **F2** A kernel that is dearer in any of [`QUANTITIES`] is a loss, by name.
- **F3** `communication` may be zero, so that its ratio is `(x + 1) / (y + 1)`.
- **F4** Where loops were unrolled differently, so that the modelled paths move different amounts
  of data, cycles are compared by the sector moved. Static counts of such a row (instructions,
  communication) count an unrolled body as often as it is written; a report marks the row.

# Not here
How it is printed (`report.py`, `plot.py`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

QUANTITIES = ("instructions", "cycles", "cycles_memory", "communication")
WAYS = ("stock", "ours", "peer")
PAIRS = (("ours", "stock"), ("peer", "stock"), ("ours", "peer"))

PER_PATH = ("cycles", "cycles_memory")
"""Quantities that follow loops."""

CYCLES_AT_FOUR_WARPS = 1.15
CYCLES_ANYWHERE = 1.5
MORE_REGISTERS = 8

MOST_THREADS = 1024
"""Of a CTA or workgroup, on every target here."""


def _looped(*figures: dict[str, Any]) -> bool:
    """Whether a path moves anything but what is written, which a loop alone makes it do."""
    return any(each["path_sectors"] != each["global_sectors"] for each in figures)


@dataclass(frozen=True)
class Row:
    """One kernel at one target and number of warps."""

    kernel: str
    target: str
    warps: int
    contiguous: bool
    ways: dict[str, dict[str, Any]]
    """By way: figures under `figures`; why there is no code under `error`; why code could not be
    measured under `fault`."""

    @property
    def name(self) -> str:
        """As a report has it, without the target."""
        told = f"{self.kernel}, {self.warps} warp{'s' if self.warps > 1 else ''}"
        return told if self.launchable else f"{told} (no launch)"

    @property
    def launchable(self) -> bool:
        """Whether a CTA may have so many threads; Triton compiles 2048 for AMD all the same."""
        lanes = 64 if self.target.startswith("gfx") else 32
        return self.warps * lanes <= MOST_THREADS

    def figures(self, way: str) -> dict[str, Any] | None:
        """What was measured, or nothing where it did not compile or was not asked for."""
        return self.ways.get(way, {}).get("figures")

    def error(self, way: str) -> str | None:
        """Why it did not compile."""
        return self.ways.get(way, {}).get("error")

    def ratio(self, quantity: str, way: str = "ours", other: str = "stock") -> float | None:
        """`way` over `other`, where both compile."""
        mine, theirs = self.figures(way), self.figures(other)
        if mine is None or theirs is None:
            return None
        if quantity in PER_PATH and _looped(mine, theirs):
            mine_moved, theirs_moved = mine["path_sectors"], theirs["path_sectors"]
            if mine_moved and theirs_moved:  # F4
                return mine[quantity] / mine_moved * theirs_moved / theirs[quantity]
        more = 1 if quantity == "communication" else 0
        return (mine[quantity] + more) / (theirs[quantity] + more)

    def unrolled(self, way: str = "ours", other: str = "stock") -> bool:
        """Whether both have loops whose bodies are written a different number of times."""
        mine, theirs = self.figures(way), self.figures(other)
        if mine is None or theirs is None or not _looped(mine, theirs):
            return False
        return mine["global_sectors"] != theirs["global_sectors"]


@dataclass(frozen=True)
class Goal:
    """A mean that is to be reached at each target."""

    quantities: tuple[str, ...]
    way: str
    other: str
    subset: str
    limit: float


ALL, ACROSS = "all", "axes across memory"
GOALS = (
    Goal(("instructions", "cycles", "communication"), "ours", "stock", ALL, 1.0),
    Goal(("communication",), "ours", "peer", ALL, 0.55),
    Goal(("instructions", "cycles", "communication"), "ours", "stock", ACROSS, 0.95),
)


@dataclass(frozen=True)
class Violation:
    """A figure that was to be reached and was not."""

    row: Row
    rule: str
    found: str


def geometric_mean(ratios: Iterable[float]) -> float | None:
    """Nothing, of no ratios."""
    logs = [math.log(ratio) for ratio in ratios]
    return math.exp(sum(logs) / len(logs)) if logs else None


def mean(rows: Iterable[Row], quantity: str, way: str, other: str) -> float | None:
    """Over the rows in which both compile."""
    ratios = (row.ratio(quantity, way, other) for row in rows)
    return geometric_mean(ratio for ratio in ratios if ratio is not None)


SUBSETS: dict[str, Callable[[Row], bool]] = {
    ALL: lambda row: True,
    ACROSS: lambda row: not row.contiguous,
    "4 warps or more": lambda row: row.warps >= 4,
    "what can be launched": lambda row: row.launchable,
    "without loops unrolled differently": lambda row: not row.unrolled(),
}


def losses(rows: Iterable[Row]) -> list[Row]:
    """Rows in which ours is dearer than stock's in anything, the dearest first."""

    def worst(row: Row) -> list[float]:
        found = [ratio for q in QUANTITIES if (ratio := row.ratio(q)) is not None]
        return [row.ratio("cycles") or 0.0, max(found, default=0.0)]

    lost = [row for row in rows if any((row.ratio(q) or 0.0) > 1.0 for q in QUANTITIES)]
    return sorted(lost, key=lambda row: (*(-ratio for ratio in worst(row)), row.name))


def regressions(rows: Iterable[Row]) -> list[Row]:
    """Rows that stock compiles and ours does not."""
    return [row for row in rows if row.figures("stock") and row.error("ours")]


def faults(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """Where the bench itself failed, by what it says."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        for answer in row.ways.values():
            if "fault" in answer:
                found.setdefault(answer["fault"], []).append(row)
    return found


def violations(rows: Iterable[Row]) -> list[Violation]:
    """Where a single kernel is beyond what is allowed it."""
    found = []
    for row in rows:
        ours, stock = row.figures("ours"), row.figures("stock")
        if not ours or not stock:
            continue
        cycles = row.ratio("cycles")
        if cycles > CYCLES_ANYWHERE:
            found.append(Violation(row, f"cycles above {CYCLES_ANYWHERE}", f"{cycles:.3f}"))
        elif row.warps >= 4 and cycles > CYCLES_AT_FOUR_WARPS:
            rule = f"cycles above {CYCLES_AT_FOUR_WARPS} at 4 warps or more"
            found.append(Violation(row, rule, f"{cycles:.3f}"))
        if (
            ours["registers"] is not None
            and ours["registers"] > stock["registers"] + MORE_REGISTERS
            and ours["occupancy"] != stock["occupancy"]
        ):
            found.append(
                Violation(
                    row,
                    f"more than {MORE_REGISTERS} registers more, and another occupancy",
                    f"{stock['registers']} to {ours['registers']} registers,"
                    f" {stock['occupancy']} to {ours['occupancy']} warps",
                )
            )
        if (ours["stack_bytes"] or 0) > (stock["stack_bytes"] or 0):
            spilled = f"{stock['stack_bytes']} to {ours['stack_bytes']} bytes"
            found.append(Violation(row, "more stack", spilled))
        moved = "path_sectors" if _looped(ours, stock) else "global_sectors"
        if ours[moved] > stock[moved]:
            sectors = f"{stock[moved]} to {ours[moved]}"
            found.append(Violation(row, "more global sectors", sectors))
    return found


def summary(rows: list[Row]) -> dict[str, Any]:
    """Every mean: by target, subset, pair and quantity. A subset that has all rows is left out."""
    return {target: _means(of) for target, of in by_target(rows).items()}


def by_target(rows: Iterable[Row]) -> dict[str, list[Row]]:
    """The rows of each target, in their order."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(row.target, []).append(row)
    return found


def _means(rows: list[Row]) -> dict[str, Any]:
    found = {}
    for subset, belongs in SUBSETS.items():
        chosen = [row for row in rows if belongs(row)]
        if not chosen or (subset != ALL and len(chosen) == len(rows)):
            continue
        found[subset] = {
            f"{way}/{other}": {
                quantity: mean(chosen, quantity, way, other) for quantity in QUANTITIES
            }
            for way, other in PAIRS
            if any(row.ratio("instructions", way, other) for row in chosen)
        }
    return found


def reached(rows: list[Row], goal: Goal) -> dict[str, float]:
    """What stands at a goal, by quantity; nothing where there is nothing to compare."""
    chosen = [row for row in rows if SUBSETS[goal.subset](row)]
    found = {q: mean(chosen, q, goal.way, goal.other) for q in goal.quantities}
    return {quantity: value for quantity, value in found.items() if value is not None}
