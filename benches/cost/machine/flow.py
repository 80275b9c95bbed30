"""The way that a warp takes through a kernel whose values are not known.

# Idea
The shape of the code decides. A branch that is always taken is taken; one that may be taken closes
a loop if it goes back, whose body then runs `trips` times in all, and is not taken if it goes
forward. What a reader knows better (a poll that succeeds at once, a slow path that is skipped) it
says by classifying the branch.

# Invariants
- **W1** The path is a function of the ways and `trips`; data never enter.
- **W2** Every loop ends: an endless one is left through its first exit once its trips are over.

# Not here
Which instruction is what: `sass.py`, `amdgcn.py`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

MAX_PATH = 1_000_000
"""Instructions on the path of one warp; beyond it, the loops are not what a reduction has."""


class Kind(Enum):
    """What an instruction does to the flow."""

    ALWAYS = "always"
    MAYBE = "maybe"
    NEVER = "never"
    CALL = "call"
    RETURN = "return"
    END = "end"


@dataclass(frozen=True)
class Way:
    """Where an instruction that is no plain one may lead."""

    kind: Kind
    target: int = -1


def path(length: int, ways: dict[int, Way], trips: int) -> list[int]:
    """The instructions that a warp executes, in order."""
    executed: list[int] = []
    rounds: dict[int, int] = {}
    returns: list[int] = []
    at = 0
    while at < length:
        executed.append(at)
        if len(executed) > MAX_PATH:
            raise ValueError(f"a warp's path is longer than {MAX_PATH} instructions")
        following = at + 1
        if way := ways.get(at):
            back = way.target <= at
            match way.kind:
                case Kind.END:
                    break
                case Kind.CALL:
                    returns.append(following)
                    following = way.target
                case Kind.RETURN if returns:
                    following = returns.pop()
                case Kind.ALWAYS if not back:
                    following = way.target
                case Kind.ALWAYS | Kind.MAYBE if back:
                    # An inner loop starts anew each time that the outer one comes back to it.
                    rounds[at] = (rounds.get(at, 0) + 1) % max(trips, 1)
                    if rounds[at]:
                        following = way.target
                    elif way.kind is Kind.ALWAYS:
                        following = _exit(at, way.target, ways)
        at = following
    return executed


def _exit(at: int, head: int, ways: dict[int, Way]) -> int:
    """Where the first branch out of the loop between `head` and `at` leads."""
    for inside in range(head, at):
        way = ways.get(inside)
        if way and way.kind is not Kind.CALL and way.target > at:
            return way.target
    return at + 1
