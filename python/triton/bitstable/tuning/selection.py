"""Which configurations may be timed, and why the others may not.

# Idea
The reference comes first; every other configuration is compared with it or has a reason why it
cannot be. What the checker compares is one CTA, or a grid that both are told; so without that fact,
kernels on grids of different sizes are never one class, nor are kernels with other parameters.

# Invariants
- **S1** Kept is what shares the reference's class. Where `ptxas` may contract, or the checker could
  not follow, only the reference's own text with its own facts does.
- **S2** Every configuration is kept or has its reason.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable.tuning import checking
from triton.bitstable.tuning.checking import Answer, Class, Question
from triton.bitstable.tuning.facts import Facts, Grid


@dataclass(frozen=True)
class Assembly:
    """What besides its PTX decides a kernel's machine code."""

    target: str = ""
    #: Whether `ptxas` may make one operation of a product and the sum that takes it.
    contracts: bool = True
    options: str = ""


@dataclass(frozen=True)
class Subject:
    """A compiled kernel to compare: PTX and facts, or why there are none."""

    label: str
    ptx: str = ""
    facts: Facts = field(default_factory=Facts)
    assembly: Assembly = field(default_factory=Assembly)
    #: Told to the checker if `grid_known`, else only compared.
    grid: Any = None
    grid_known: bool = False
    failure: str | None = None

    def runs_like(self, other: Subject) -> bool:
        """Whether both are one machine code, launched in one way."""
        ours, theirs = ((each.ptx, each.facts, each.assembly, each.grid) for each in (self, other))
        return ours == theirs


@dataclass(frozen=True)
class Judged:
    """A configuration's fate. `class_number` counts from 1, the reference's class first."""

    label: str
    class_number: int | None
    kept: bool
    reason: str = ""


@dataclass(frozen=True)
class Selection:
    """All configurations, judged, in their order; `str` shows the classes."""

    kernel: str
    reference: str
    judged: tuple[Judged, ...]

    @property
    def kept(self) -> list[int]:
        """Their numbers, in the order given."""
        return [number for number, each in enumerate(self.judged) if each.kept]

    @property
    def classes(self) -> list[list[int]]:
        """Numbers of the configurations of each class, the reference's first."""
        found: dict[int, list[int]] = {1: []}
        for number, each in enumerate(self.judged):
            if each.class_number is not None:
                found.setdefault(each.class_number, []).append(number)
        return [found[number] for number in sorted(found)]

    def __str__(self) -> str:
        kept = len(self.kept)
        several = "es" * (len(self.classes) != 1)
        lines = [
            f"same_bits: {self.kernel}: {kept} of {len(self.judged)} configurations kept, "
            f"{len(self.classes)} class{several}",
            f"  reference: {self.reference}",
        ]
        for number, members in enumerate(self.classes, 1):
            head = f"  class {number}" + ", the reference's" * (number == 1)
            lines += _listed(head, [self.judged[member] for member in members])
        if outside := [each for each in self.judged if each.class_number is None]:
            lines += _listed("  in no class", outside)
        return "\n".join(lines)


def _listed(head: str, members: Sequence[Judged]) -> list[str]:
    """Members under a heading, which has their reason if they share it."""
    reasons = {each.reason for each in members}
    if len(reasons) == 1 and (shared := reasons.pop()):
        return [f"{head}, dropped: {shared}", *(f"    {each.label}" for each in members)]
    lines = [f"    {'kept' if each.kept else 'dropped: ' + each.reason}" for each in members]
    pairs = zip(members, lines, strict=True)
    return [f"{head}:", *(f"    {each.label}: {line.strip()}" for each, line in pairs)]


def select(
    kernel: str, reference: Subject, subjects: Sequence[Subject], explain: bool = False
) -> Selection:
    """Judge `subjects` by `reference`, which may be one of them (the same object)."""
    asked = [reference, *(each for each in subjects if each is not reference)]
    asked = [each for each in asked if each.failure is None]
    answer = _ask(asked, len(asked) - 1 if explain else 0)
    numbers = {id(each): number for number, each in enumerate(asked)}
    order = _classes_in_order(answer, len(asked))
    judged = tuple(
        Judged(each.label, None, False, each.failure)
        if each.failure is not None
        else _judge(reference, each, numbers[id(each)], answer, order)
        for each in subjects
    )
    return Selection(kernel, reference.label, judged)


def _ask(asked: Sequence[Subject], explain: int) -> Answer:
    groups: list[Any] = []
    questions = []
    for each in asked:
        compared = None if each.grid_known else each.grid
        group = (each.assembly.target, each.facts.parameters, each.grid_known, compared)
        if group not in groups:
            groups.append(group)
        grid: Grid | None = each.grid if each.grid_known else None
        number = groups.index(group)
        questions.append(Question(each.ptx, each.label, each.facts, grid, number))
    return checking.ask(questions, explain)


def _classes_in_order(answer: Answer, count: int) -> dict[int, int]:
    """From the answer's numbers to ours: by first member, so that the reference's is 1."""
    found: dict[int, int] = {}
    for kernel in range(count):
        number = answer.class_of(kernel)
        if number is not None:
            found.setdefault(number, len(found) + 1)
        elif kernel == 0:
            found[-1] = 1  # the reference is a class of its own
    return found


def _judge(
    reference: Subject, each: Subject, number: int, answer: Answer, order: dict[int, int]
) -> Judged:
    its, theirs = answer.class_of(0), answer.class_of(number)
    if each is reference:
        return Judged(each.label, 1, True)
    if theirs is None:
        return Judged(each.label, None, False, answer.errors[number])
    if its != theirs:
        why = _apart(reference, each, its, theirs, answer)
    else:
        why = _doubt(reference, each, answer.classes[theirs])
    return Judged(each.label, order[theirs], not why, why)


def _doubt(reference: Subject, each: Subject, both: Class) -> str:
    """Why one class is not enough; empty if it is."""
    if each.runs_like(reference):
        return ""
    for one, other in each.facts.shared:
        # Buffers that are only read may be one.
        known = both.writes is not None and each.facts.numbered
        if not known or not both.writes.isdisjoint({one, other}):
            names = " and ".join(each.facts.parameters[at][0] for at in (one, other))
            return f"{names} are one buffer, and a proof is about several"
    if both.contractions and (each.assembly.contracts or reference.assembly.contracts):
        return (
            f"ptxas may contract at {both.contractions[0]}, and differently than in the "
            "reference; enable_fp_fusion=False keeps it from doing so"
        )
    return f"not followed: {both.obstacle}" if both.obstacle else ""


def _apart(reference: Subject, each: Subject, its: int | None, theirs: int, answer: Answer) -> str:
    if its is None:
        return f"the reference cannot be compared: {answer.errors[0]}"
    if each.assembly.target != reference.assembly.target:
        return f"it is for {each.assembly.target}, the reference for {reference.assembly.target}"
    if each.facts.parameters != reference.facts.parameters:
        return f"its parameters are {each.facts}, the reference's {reference.facts}"
    if not each.grid_known and each.grid != reference.grid:
        return f"it is launched on {_grid(each.grid)}, the reference on {_grid(reference.grid)}"
    for obstacle in (answer.classes[theirs].obstacle, answer.classes[its].obstacle):
        if obstacle:
            return f"not followed: {obstacle}"
    return f"not proved the same: {answer.difference(its, theirs) or 'other bits'}"


def _grid(grid: Any) -> str:
    return "×".join(str(size) for size in grid) + " CTAs" if isinstance(grid, tuple) else str(grid)
