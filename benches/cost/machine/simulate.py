"""When each instruction of a CTA issues: a multiprocessor that holds this CTA and nothing else.

# Idea
All warps take the same path; warp `n` belongs to scheduler `n mod 4`. A scheduler issues one
instruction a cycle: of those of its warps that can go first, the one that has been ready for
longest. A warp is ready when its last stall has passed and what it waits for is done. Time jumps
from one issue to the next.

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

import math
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


class Scheduler:
    """A quarter of the multiprocessor: its warps, and until when its own pipes are taken."""

    def __init__(self) -> None:
        self.warps: list[Warp] = []
        self.clock = 0
        self.free: defaultdict[str, int] = defaultdict(int)

    def start(self, warp: Warp, step: Step) -> int:
        """When a warp's next instruction can issue, as far as its scheduler is concerned."""
        start = max(warp.ready, self.clock)
        return start if step.pipe.shared else max(start, self.free[step.pipe.name])


def cycles(path: list[Step], warps: int) -> int:
    """Until the last of the CTA's warps has issued the path's last instruction."""
    return _Multiprocessor(path, warps).run()


class _Multiprocessor:
    """One CTA under way."""

    def __init__(self, path: list[Step], warps: int) -> None:
        self.path = path
        self.warps = [Warp() for _ in range(warps)]
        self.schedulers = [Scheduler() for _ in range(min(warps, SCHEDULERS))]
        for number, warp in enumerate(self.warps):
            self.schedulers[number % SCHEDULERS].warps.append(warp)
        self.shared: defaultdict[str, int] = defaultdict(int)
        """Until when the pipes that the schedulers share are taken."""
        self.arrived: list[tuple[Scheduler, Warp]] = []
        """Warps that wait at the barrier, and for nobody else."""
        self.opens = 0
        """When the barrier opens, as far as those that have arrived are concerned."""

    def run(self) -> int:
        """Issues everything, in order of time."""
        found = [self._next(each) for each in self.schedulers]
        while True:
            at = min(range(len(found)), key=lambda n: found[n][0])
            start, warp = found[at]
            if warp is None:
                return max(each.clock for each in self.schedulers)
            scheduler = self.schedulers[at]
            opened = self._issue(scheduler, warp, start)
            for n, each in enumerate(self.schedulers):
                if opened or n == at:
                    found[n] = self._next(each)

    def _next(self, scheduler: Scheduler) -> tuple[float, Warp | None]:
        """What a scheduler issues next, and when."""
        best: tuple[float, Warp | None] = (math.inf, None)
        ready = 0
        for warp in scheduler.warps:
            start = scheduler.start(warp, self.path[warp.at])
            if start < best[0] or (start == best[0] and warp.ready < ready):
                best, ready = (start, warp), warp.ready
        return best

    def _issue(self, scheduler: Scheduler, warp: Warp, start: int) -> bool:
        """Issues one instruction; says whether it opens the barrier."""
        step = self.path[warp.at]
        scheduler.clock = start + 1
        free = self.shared if step.pipe.shared else scheduler.free
        done = free[step.pipe.name] = max(start, free[step.pipe.name]) + step.occupied
        if step.fill:
            done_filling = self.shared["fill"] = max(done, self.shared["fill"]) + step.fill
            result = done_filling + step.latency
        else:
            result = done + step.latency
        if step.gathers is not None:
            result = max(result, warp.done(step.gathers, 0))
        if step.write is not None:
            warp.add(step.write, result, start)
        if step.read is not None:
            warp.add(step.read, done, start)
        warp.at += 1
        if warp.at == len(self.path):
            scheduler.warps.remove(warp)
            return False
        warp.ready = start + step.stall
        for scoreboard, left in self.path[warp.at].waits:
            warp.ready = max(warp.ready, warp.done(scoreboard, left))
        return step.barrier and self._arrive(scheduler, warp, result)

    def _arrive(self, scheduler: Scheduler, warp: Warp, opens: int) -> bool:
        """Takes a warp off its scheduler until all have come."""
        self.opens = max(self.opens, opens)
        self.arrived.append((scheduler, warp))
        scheduler.warps.remove(warp)
        if len(self.arrived) < len(self.warps):
            return False
        for home, each in self.arrived:
            each.ready = max(each.ready, self.opens)
            home.warps.append(each)
        self.arrived = []
        return True
