"""The static checker, asked about compiled kernels.

# Idea
One request to the native library, one answer: classes of kernels that are proved to return the same
bits. `docs/equiv.md` describes both; this module is all that knows their JSON.

# Invariants
- **K1** Every kernel asked about is in one class or has an error. A kernel that the answer leaves
  out is an error of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable import _native
from triton.bitstable.tuning.facts import Facts, Grid


@dataclass(frozen=True)
class Question:
    """A kernel, and what is known of its launch."""

    ptx: str
    name: str
    facts: Facts
    #: CTAs, where they are a fact.
    grid: Grid | None = None
    #: Kernels are compared within one group.
    group: int = 0

    def to_json(self) -> dict[str, Any]:
        """As the library takes it."""
        told: dict[str, Any] = {"ptx": self.ptx, "name": self.name, "group": self.group}
        if self.grid is not None:
            told["grid"] = list(self.grid)
        if self.facts.scalars:
            told["scalars"] = {str(number): bits for number, bits in self.facts.scalars}
        return told


@dataclass(frozen=True)
class Class:
    """Kernels of one signature, by their numbers."""

    members: tuple[int, ...]
    #: Why they could not be followed; they are then equal by their text alone.
    obstacle: str | None = None
    #: Where `ptxas` may contract.
    contractions: tuple[str, ...] = ()
    #: Numbers of the parameters that they write through; none where that is not known.
    writes: frozenset[int] | None = None


@dataclass
class Answer:
    """What the checker says, by the numbers of the questions."""

    classes: list[Class]
    errors: dict[int, str] = field(default_factory=dict)
    #: Pairs of classes, to what differs between them.
    differences: dict[tuple[int, int], str] = field(default_factory=dict)

    def class_of(self, kernel: int) -> int | None:
        """The number of a kernel's class; none if it has an error."""
        for number, each in enumerate(self.classes):
            if kernel in each.members:
                return number
        return None

    def difference(self, one: int, other: int) -> str | None:
        """What differs between two classes, if the checker was asked and found something."""
        return self.differences.get((one, other)) or self.differences.get((other, one))


def ask(questions: Sequence[Question], explain: int = 0) -> Answer:
    """Put kernels into classes, and explain so many pairs of them."""
    request = {"kernels": [each.to_json() for each in questions], "explain": explain}
    return read(request_native(request), len(questions))


def request_native(request: dict[str, Any]) -> dict[str, Any]:
    """The native library's answer to a request."""
    return _native.library().equiv(request)


def read(document: dict[str, Any], count: int) -> Answer:
    """The answer about `count` kernels."""
    answer = Answer([_class(each) for each in document["classes"]])
    answer.errors = {each["kernel"]: each["error"] for each in document["errors"]}
    answered = set(answer.errors).union(*(each.members for each in answer.classes))
    for number in set(range(count)) - answered:
        answer.errors[number] = "the checker does not answer for it"
    for each in document.get("differences") or ():
        one, other = each["classes"]
        if text := _difference(each):
            answer.differences[one, other] = text
    return answer


def _class(told: dict[str, Any]) -> Class:
    obstacle = told.get("obstacle")
    return Class(
        tuple(told["kernels"]),
        f"{obstacle['what']} ({place(obstacle)})" if obstacle else None,
        tuple(place(each) for each in told.get("contractions") or ()),
        frozenset(told["writes"]) if told.get("writes") is not None else None,
    )


def _difference(told: dict[str, Any]) -> str | None:
    outputs = told.get("outputs")
    if not outputs:
        return told.get("reason")
    places = [place(each) for each in outputs[0].get("at") or () if each is not None]
    where = f" ({', '.join(dict.fromkeys(places))})" if places else ""
    more = f"; {len(outputs) - 1} more" if len(outputs) > 1 else ""
    return f"{outputs[0]['text']}{where}{more}"


def place(told: dict[str, Any]) -> str:
    """Where, in the user's source if it is known."""
    if source := told.get("source"):
        return f"{source['file'].rpartition('/')[2]}:{source['line']}"
    return f"line {told['line']} of its PTX"
