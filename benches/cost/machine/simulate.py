"""When each instruction of a CTA issues: an SM that holds this CTA and nothing else.

# Idea
All warps take the same path, and the four schedulers hold equally many, so that they run in step:
one scheduler is simulated with its quarter of the warps, and a pipe that the four share takes four
times as long. The scheduler issues one instruction a cycle, of the warp that has been ready for
longest. A warp is ready when its last stall count has passed and the scoreboards it waits for are
clear.

# Invariants
- **I1** An instruction issues no earlier than its pipe is free, its warp's stall count has passed,
  and the scoreboards of its mask are clear.
- **I2** No warp passes a barrier before every warp has reached it.
- **I3** Work queued at a shared pipe is done in the order of issue; the queue has no bound, as
  ptxas already spaces what enters it.

# Not here
Bank conflicts and uncoalesced accesses (addresses are not known), instruction fetch, register
banks, the yield flag, dual issue; other CTAs on the SM, which hide what this one waits for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from . import latency
from .sass import Instruction, Program

SCOREBOARDS = 7
"""Six of the control word, and the one that warpgroup products (`gsb0`) count."""
WARPGROUP = 6
LANES = 32
KEEP = re.compile(r"(SB\d|gsb0), (0x[0-9a-f]+)")


@dataclass
class Warp:
    """Where one warp is on the path, and what it has under way."""

    at: int = 0
    ready: int = 0
    scoreboards: list[int] = field(default_factory=lambda: [0] * SCOREBOARDS)
    """When each will be clear."""
    pending: list[list[int]] = field(default_factory=lambda: [[] for _ in range(SCOREBOARDS)])
    """When each thing that a scoreboard counts will be done, for DEPBAR."""
    copies: int = 0
    """When the last copy to shared memory will be done."""


@dataclass(frozen=True)
class Step:
    """An instruction with its costs looked up once, not for every warp and trip."""

    pipe: str
    occupied: int
    latency: int
    stall: int
    waits: tuple[int, ...]
    read: int | None
    write: int | None
    barrier: bool
    copies: bool
    commits: bool
    keep: tuple[int, int] | None
    """Of DEPBAR: the scoreboard, and how many may be left under way."""
    fill: int
    """Cycles that a load from memory takes of the path from L2, which all schedulers share."""


def cycles(program: Program, target: str, warps: int, trips: int, memory_latency: int) -> int:
    """Until the last warp has issued its exit."""
    siblings = min(warps, latency.SCHEDULERS)
    steps = [
        _step(instruction, target, siblings, memory_latency) for instruction in program.instructions
    ]
    path = [steps[at] for at in program.path(trips)]
    held = [Warp() for _ in range(-(-warps // latency.SCHEDULERS))]
    return _run(path, held)


def _run(path: list[Step], warps: list[Warp]) -> int:
    free: dict[str, int] = {}
    clock = 0
    running = list(warps)
    arrived: list[tuple[Warp, int]] = []
    while running:
        warp = min(running, key=lambda each: each.ready)
        step = path[warp.at]
        start = max(clock, warp.ready)
        shared = step.pipe in latency.SHARED_PIPES
        if not shared:
            start = max(start, free.get(step.pipe, 0))
            if start > max(clock, warp.ready) and len(running) > 1:
                # Another warp may have something for another pipe in the meantime.
                warp.ready = start
                continue
        clock = start + 1
        done = max(start, free.get(step.pipe, 0)) + step.occupied
        free[step.pipe] = done
        if step.fill:
            free["fill"] = max(done, free.get("fill", 0)) + step.fill
            _account(warp, step, start, done, free["fill"] + step.latency)
        else:
            _account(warp, step, start, done, done + step.latency)
        warp.at += 1
        if warp.at == len(path):
            running.remove(warp)
            continue
        warp.ready = max(start + step.stall, *(warp.scoreboards[n] for n in path[warp.at].waits), 0)
        following = path[warp.at]
        if following.keep:
            board, left = following.keep
            under_way = sorted(warp.pending[board])
            if len(under_way) > left:
                warp.ready = max(warp.ready, under_way[len(under_way) - left - 1])
        if step.barrier:
            arrived.append((warp, done + step.latency))
            running.remove(warp)
            if len(arrived) == len(warps):
                opens = max(at for _, at in arrived)
                for each, _ in arrived:
                    each.ready = max(each.ready, opens)
                    running.append(each)
                arrived = []
    return clock


def _account(warp: Warp, step: Step, start: int, done: int, result: int) -> None:
    """Sets the scoreboards that the instruction holds."""
    if step.copies:
        warp.copies = max(warp.copies, result)
    if step.commits:
        result = max(result, warp.copies)
    if step.write is not None:
        warp.scoreboards[step.write] = max(warp.scoreboards[step.write], result)
        under_way = [at for at in warp.pending[step.write] if at > start]
        warp.pending[step.write] = [*under_way, result]
    if step.read is not None:
        warp.scoreboards[step.read] = max(warp.scoreboards[step.read], done)


def _step(instruction: Instruction, target: str, siblings: int, memory_latency: int) -> Step:
    cost = latency.cost(target, instruction.opcode, memory_latency)
    occupied = cost.cycles * (instruction.words if cost.per_word else 1)
    write = WARPGROUP if "gsb0" in instruction.operands else instruction.write
    keep = None
    if match := KEEP.match(instruction.operands) if "DEPBAR.LE" in instruction.opcode else None:
        keep = (WARPGROUP if match[1] == "gsb0" else int(match[1][2:]), int(match[2], 16))
    # Loads that hit L1 come from nowhere else.
    misses = (
        instruction.kind in latency.GLOBAL_LOADS and memory_latency > latency.machine(target).l1
    )
    fill = -(-instruction.bytes * LANES * siblings // latency.FILL_BYTES) if misses else 0
    return Step(
        cost.pipe,
        occupied * siblings if cost.pipe in latency.SHARED_PIPES else occupied,
        cost.latency,
        max(instruction.stall, 1),
        tuple(n for n in range(SCOREBOARDS) if instruction.waits >> n & 1),
        instruction.read,
        write if keep is None else None,
        barrier=instruction.kind == "BAR" and not instruction.opcode.startswith("BAR.ARV"),
        copies=instruction.kind == "LDGSTS",
        commits=instruction.kind in ("LDGDEPBAR", "ARRIVES"),
        keep=keep,
        fill=fill,
    )
