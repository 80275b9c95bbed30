"""The way that a warp takes through a kernel whose values are not known.

# Idea
The shape of the code decides. A branch that is always taken is taken; one that may be taken closes
a loop if it goes back, whose body then runs `trips` times in all, and is not taken if it goes
forward. What a reader knows better (a poll that succeeds at once, a slow path that is skipped) it
says by classifying the branch.

Compilers unroll loops, and not both compilations of a kernel alike. A loop that does just `k` times
what the next loop does, or the next block, in every respect that is counted, is that code unrolled,
and what follows is its remainder, which may have a remainder of its own; a block before it that
does the same as the last body is a round peeled off. Together they run `trips` rounds.

# Invariants
- **W1** The path is a function of the ways and `trips`; data never enter.
- **W2** Every loop ends: an endless one is left through its first exit once its trips are over.
- **W3** Where unrolling is recognised, the path does the work of `trips` rounds, neither more nor
  less.

# Not here
Which instruction is what: `sass.py`, `amdgcn.py`.
"""

from __future__ import annotations

import itertools
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
    loops = {
        at: max(trips, 1)
        for at, way in sorted(ways.items())
        if way.kind in (Kind.ALWAYS, Kind.MAYBE) and way.target <= at
    }
    skipped = _share(loops, ways, trips, work)
    executed: list[int] = []
    rounds: dict[int, int] = {}
    returns: list[int] = []
    at = 0
    while at < len(work):
        if at in skipped:
            at = skipped[at]
            continue
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
                    rounds[at] = (rounds.get(at, 0) + 1) % loops[at]
                    if rounds[at]:
                        following = way.target
                    elif way.kind is Kind.ALWAYS:
                        following = _exit(at, way.target, ways)
        at = following
    return executed


def _share(
    loops: dict[int, int], ways: dict[int, Way], trips: int, work: list[Work]
) -> dict[int, int]:
    """Shares the rounds among an unrolled loop and its remainders, where there are any.

    Changes the rounds of `loops`, and returns what gets none: from its start to what follows it.
    """
    blocks = _blocks(ways, len(work))
    skipped: dict[int, int] = {}
    shared: set[int] = set()
    for branch in loops:
        if branch in shared:
            continue
        chain = [(ways[branch].target, branch)]
        while region := _next_region(chain[-1], blocks, ways, loops, work):
            if _times(_work(chain[-1], work), _work(region, work)) < 2:
                break
            chain.append(region)
        if len(chain) == 1:
            continue
        body = _work(chain[-1], work)
        before = _previous_block(chain[0], blocks, ways, loops, work)
        left = trips - 1 if before and _work(before, work) == body else trips
        for start, end in chain:
            rounds, left = divmod(left, _times(_work((start, end), work), body))
            if end in loops:
                loops[end] = max(rounds, 1)
                shared.add(end)
            if not rounds:
                skipped[start] = end + 1
    return skipped


Region = tuple[int, int]
"""A loop's body or a block: its first instruction and its last."""


def _blocks(ways: dict[int, Way], length: int) -> list[Region]:
    """What runs from its first instruction to its last, or not at all."""
    targets = {way.target for way in ways.values()} & set(range(length))
    edges = sorted({0, length} | targets | {at + 1 for at in ways})
    return [(start, end - 1) for start, end in itertools.pairwise(edges)]


def _next_region(
    after: Region,
    blocks: list[Region],
    ways: dict[int, Way],
    loops: dict[int, int],
    work: list[Work],
) -> Region | None:
    """The first code behind a region that does anything: a loop's body, or a block."""
    for start, end in blocks:
        if start <= after[1]:
            continue
        if inner := next((at for at in loops if ways[at].target == start), None):
            return start, inner
        if any(_work((start, end), work)):
            return start, end
    return None


def _previous_block(
    before: Region,
    blocks: list[Region],
    ways: dict[int, Way],
    loops: dict[int, int],
    work: list[Work],
) -> Region | None:
    """The last block before a region that does anything, unless it is in another loop."""
    for start, end in reversed(blocks):
        if end < before[0] and any(_work((start, end), work)):
            inside = any(ways[at].target <= start <= at < before[0] for at in loops)
            return None if inside else (start, end)
    return None


def _work(region: Region, work: list[Work]) -> Work:
    """Of a whole region."""
    start, end = region
    return tuple(sum(column) for column in zip(*work[start : end + 1], strict=True))


def _times(body: Work, remainder: Work) -> int:
    """How often `body` does what `remainder` does, if that is more than once or they are the same.

    One respect alone is no evidence: a loop of two additions before a block of one is no unrolling.
    """
    if body == remainder:
        return 1
    if sum(map(bool, remainder)) < 2:
        return 0
    k = next(m // n for m, n in zip(body, remainder, strict=True) if n)
    return k if k > 1 and body == tuple(k * n for n in remainder) else 0


def _exit(at: int, head: int, ways: dict[int, Way]) -> int:
    """Where the first branch out of the loop between `head` and `at` leads."""
    for inside in range(head, at):
        way = ways.get(inside)
        if way and way.kind is not Kind.CALL and way.target > at:
            return way.target
    return at + 1
