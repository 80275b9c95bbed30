"""The way that a warp takes through a kernel whose values are not known.

# Idea
The shape of the code decides. A branch that is always taken is taken; one that may be taken closes
a loop if it goes back, whose body then runs `trips` times in all, and is not taken if it goes
forward. What a reader knows better (a poll that succeeds at once, a slow path that is skipped) it
says by classifying the branch.

Compilers unroll loops, and not both compilations of a kernel alike. A loop that does just `k` times
what the next loop does, or the next block, in every respect that is counted, is that code unrolled
and what follows is its remainder: together they run `trips` rounds of the remainder's body.

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


Work = tuple[int, ...]
"""What an instruction does, in respects that unrolling multiplies: bytes, exchanges, arithmetic."""


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


def path(ways: dict[int, Way], trips: int, work: list[Work]) -> list[int]:
    """The instructions that a warp executes, in order; `work` is what each of them does."""
    loops = _loops(ways, trips, work)
    executed: list[int] = []
    rounds: dict[int, int] = {}
    returns: list[int] = []
    at = 0
    while at < len(work):
        executed.append(at)
        if len(executed) > MAX_PATH:
            raise ValueError(f"a warp's path is longer than {MAX_PATH} instructions")
        following = at + 1
        if way := ways.get(at):
            match way.kind:
                case Kind.END:
                    break
                case Kind.CALL:
                    returns.append(following)
                    following = way.target
                case Kind.RETURN if returns:
                    following = returns.pop()
                case Kind.ALWAYS if at not in loops:
                    following = way.target
                case Kind.ALWAYS | Kind.MAYBE if at in loops:
                    # An inner loop starts anew each time that the outer one comes back to it.
                    rounds[at] = (rounds.get(at, 0) + 1) % loops[at].rounds
                    following = way.target if rounds[at] else loops[at].after
        at = following
    return executed


@dataclass
class Loop:
    """A branch back: how often its body runs, and where the path goes on."""

    rounds: int
    after: int


def _loops(ways: dict[int, Way], trips: int, work: list[Work]) -> dict[int, Loop]:
    """By the place of their branch."""
    loops: dict[int, Loop] = {}
    for at, way in sorted(ways.items()):
        if way.kind in (Kind.ALWAYS, Kind.MAYBE) and way.target <= at:
            after = at + 1 if way.kind is Kind.MAYBE else _exit(at, way.target, ways)
            loops[at] = Loop(max(trips, 1), after)
    for branch, loop in loops.items():
        start, end = _remainder(branch, ways, loops, work)
        k = _times(work[ways[branch].target : branch], work[start : end + 1])
        if not k:
            continue
        loop.rounds = max(trips // k, 1)
        left = trips % k
        if not left:
            loop.after = end + 1
        elif end in loops:
            loops[end].rounds = left
    return loops


def _remainder(
    branch: int, ways: dict[int, Way], loops: dict[int, Loop], work: list[Work]
) -> tuple[int, int]:
    """The first code behind a loop that does anything: a loop's body, or a block."""
    starts = {way.target for way in ways.values()}
    start = branch + 1
    for at in range(branch + 1, len(work)):
        if at in starts:
            start = at
        if at in loops and ways[at].target > branch:
            return ways[at].target, at
        if at in ways or at + 1 in starts:
            enclosed = any(ways[each].target <= at < each for each in loops if each > branch)
            if any(map(any, work[start : at + 1])) and not enclosed:
                return start, at
            start = at + 1
    return start, start


def _times(body: list[Work], remainder: list[Work]) -> int:
    """How often `body` does what `remainder` does; 0 if it is no multiple.

    One respect alone is no evidence: a loop of two additions before a block of one is no unrolling.
    """
    much = [sum(column) for column in zip(*body, strict=True)]
    little = [sum(column) for column in zip(*remainder, strict=True)]
    if not body or sum(map(bool, little)) < 2:
        return 0
    k = next(m // n for m, n in zip(much, little, strict=True) if n)
    return k if k > 1 and much == [k * n for n in little] else 0


def _exit(at: int, head: int, ways: dict[int, Way]) -> int:
    """Where the first branch out of the loop between `head` and `at` leads."""
    for inside in range(head, at):
        way = ways.get(inside)
        if way and way.kind is not Kind.CALL and way.target > at:
            return way.target
    return at + 1
