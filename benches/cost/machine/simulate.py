"""When each instruction of a CTA issues: a multiprocessor that holds this CTA and nothing else.

# Idea
All warps take the same path, and the four schedulers hold equally many, so that they run in step:
one scheduler is simulated with its quarter of the warps, and a pipe that the four share takes four
times as long. The scheduler issues one instruction a cycle, of the warp that has been ready for
longest. A warp is ready when its last stall has passed and what it waits for is done.

Things under way are counted by scoreboards: NVIDIA's six of the control word, AMD's counters. A
wait is for all but some of a scoreboard's things.

# Invariants
- **I1** An instruction issues no earlier than its pipe is free, its warp's stall has passed, and
  what it waits for is done.
- **I2** No warp passes a barrier before every warp has reached it.
- **I3** Work queued at a shared pipe is done in the order of issue; the queue has no bound, as
  compilers already space what enters it.

# Not here
Bank conflicts and uncoalesced accesses (addresses are not known), instruction fetch, register
banks, hints for the scheduler; other CTAs on the SM, which hide what this one waits for.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

SCHEDULERS = 4
"""Of an SM, or SIMDs of a CU, each with arithmetic pipes of its own (all targets here)."""


@dataclass(frozen=True)
class Pipe:
    """A unit that one instruction occupies at a time."""

    name: str
    shared: bool = False
    """By the four schedulers."""


@dataclass(frozen=True)
class Step:
    """What issuing an instruction does. Looked up once, not for every warp and trip."""

    pipe: Pipe
    occupied: int
    """Cycles of the pipe, for one warp."""
    stall: int
    """Cycles before the warp's next instruction may issue."""
    latency: int = 0
    """From the pipe's end to the result."""
    fill: int = 0
    """Cycles that a load takes of the path from the next cache, which the schedulers share."""
    waits: tuple[tuple[int, int], ...] = ()
    """Before it issues: each scoreboard, and how many of its things may be left under way."""
    read: int | None = None
    """Scoreboard that counts it until its operands have been read."""
    write: int | None = None
    """Scoreboard that counts it until its result is there."""
    barrier: bool = False
    gathers: int | None = None
    """Scoreboard whose things must all be done for this one to be done (LDGDEPBAR)."""


@dataclass
class Warp:
    """Where one warp is on the path, and when what its scoreboards count will be done."""

    at: int = 0
    ready: int = 0
    under_way: defaultdict[int, list[int]] = field(default_factory=lambda: defaultdict(list))

    def done(self, scoreboard: int, left: int) -> int:
        """When at most `left` things of the scoreboard are under way."""
        times = self.under_way[scoreboard]
        return sorted(times)[len(times) - left - 1] if len(times) > left else 0

    def add(self, scoreboard: int, done: int, now: int) -> None:
        """Counts one more thing, and forgets those that are done by `now`."""
        self.under_way[scoreboard] = [at for at in self.under_way[scoreboard] if at > now]
        self.under_way[scoreboard].append(done)


def cycles(path: list[Step], warps: int) -> int:
    """Until the last of the CTA's warps has issued the path's last instruction."""
    siblings = min(warps, SCHEDULERS)
    held = [Warp() for _ in range(-(-warps // SCHEDULERS))]
    running = list(held)
    arrived: list[Warp] = []
    opens = 0
    free: dict[str, int] = {}
    clock = 0
    while running:
        warp = min(running, key=lambda each: each.ready)
        step = path[warp.at]
        start = max(clock, warp.ready)
        pipe_free = free.get(step.pipe.name, 0)
        if not step.pipe.shared and pipe_free > start:
            # Another warp may have something for another pipe in the meantime.
            warp.ready = pipe_free
            continue
        clock = start + 1
        done = max(start, pipe_free) + step.occupied * (siblings if step.pipe.shared else 1)
        free[step.pipe.name] = done
        result = done + step.latency
        if step.fill:
            free["fill"] = max(done, free.get("fill", 0)) + step.fill * siblings
            result = free["fill"] + step.latency
        if step.gathers is not None:
            result = max(result, warp.done(step.gathers, 0))
        if step.write is not None:
            warp.add(step.write, result, start)
        if step.read is not None:
            warp.add(step.read, done, start)
        warp.at += 1
        if warp.at == len(path):
            running.remove(warp)
            continue
        warp.ready = start + step.stall
        for scoreboard, left in path[warp.at].waits:
            warp.ready = max(warp.ready, warp.done(scoreboard, left))
        if step.barrier:
            opens = max(opens, result)
            arrived.append(warp)
            running.remove(warp)
            if len(arrived) == len(held):
                for each in arrived:
                    each.ready = max(each.ready, opens)
                running, arrived = arrived, []
    return clock
