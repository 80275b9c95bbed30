"""Runs one CTA: all its threads at once, one instruction over numpy arrays at a time.

# Idea
A register is an array over the CTA's threads. Threads at the lowest program counter run together
under a mask until the next branch, label or barrier; `bar.sync` waits for everyone.

# Invariants
- **E1** Register arrays are replaced, never changed in place, so that moves may share them.
- **E2** Every barrier is reached by all threads of the CTA at one instruction, every warp-wide
  operation by all threads it names.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .errors import Divergence, PtxError
from .floats import UNSIGNED
from .memory import EPOCHS, Memory, Who
from .symbolic import Graph, Pieces, whole

if TYPE_CHECKING:
    from .compile import Code

LANES = 32
EVERYONE = np.uint32(0xFFFFFFFF)
POISON = 0xA5A5A5A5A5A5A5A5


@dataclass(frozen=True)
class Launch:
    """What all CTAs of a launch share. `arguments` are raw parameter values."""

    threads: int
    grid: tuple[int, int, int]
    slots: int
    arguments: list[int]
    memory: Memory
    graph: Graph | None


class Cta:
    """The state of one CTA. `regs[slot]` is None until the register is first written."""

    def __init__(self, launch: Launch, number: int, shared: Memory) -> None:
        threads, (wide, high, _) = launch.threads, launch.grid
        self.threads, self.grid, self.arguments = threads, launch.grid, launch.arguments
        self.ctaid = (number % wide, number // wide % high, number // (wide * high))
        self.regs: list[np.ndarray | None] = [None] * launch.slots
        self.pieces: list[Pieces] = [None] * launch.slots
        self.graph = launch.graph
        self.memory = {"global": launch.memory, "shared": shared}
        self.tid = np.arange(threads, dtype=np.int64)
        self.warp = self.tid // LANES
        self.mask = np.ones(threads, bool)
        self.full = True
        self.threads_seen = self.tid + number * threads
        self.warps_seen = self.threads_seen // LANES
        self.epoch = number * EPOCHS
        self.warp_epoch = np.zeros(threads, np.int64)

    def write(self, slot: int, value: np.ndarray) -> None:
        """Sets a register under the mask; lanes never written hold a conspicuous pattern."""
        if not self.full:
            old = self.regs[slot]
            if old is None:
                poison = POISON & (1 << (value.dtype.itemsize * 8)) - 1
                old = np.full(self.threads, poison if value.dtype != bool else 0, value.dtype)
            value = np.where(self.mask, value, old)
        self.regs[slot] = value

    def write_pieces(self, slot: int, width: int, value: Pieces) -> None:
        """Sets a register's pieces under the mask."""
        old = self.pieces[slot]
        if not self.full and (old is not None or value is not None):
            new = whole(value, width, self.threads)
            value = np.where(self.mask, new, whole(old, width, self.threads))
        self.pieces[slot] = value if value is not None and value.any() else None

    def who(self, active: np.ndarray) -> Who:
        """The accessors of a memory operation, `active` being their indices."""
        epoch = np.full(active.shape, self.epoch, np.int64)
        seen = self.threads_seen[active], self.warps_seen[active]
        return Who(*seen, epoch, self.warp_epoch[active])

    def whole_warps(self, members: np.ndarray) -> None:
        """E2 for warp operations: `members` is each thread's member mask."""
        if self.full and (members == EVERYONE).all():
            return
        if not (members[self.mask] == EVERYONE).all():
            raise PtxError("a warp operation names only a part of its warp: not supported")
        count = np.bincount(self.warp[self.mask], minlength=self.threads // LANES)
        if not np.isin(count, (0, LANES)).all():
            raise Divergence("a warp operation names threads that do not reach it together")


def constant(value: int, width: int, threads: int) -> np.ndarray:
    """An immediate in every thread."""
    return np.full(threads, value & ((1 << width) - 1), UNSIGNED[width])


class Schedule:
    """The program counters of a CTA's threads."""

    def __init__(self, cta: Cta) -> None:
        self.pc = np.zeros(cta.threads, np.int64)
        self.waiting = np.zeros(cta.threads, bool)
        self.exited = np.zeros(cta.threads, bool)

    def pick(self, cta: Cta) -> int | None:
        """Selects the threads at the lowest counter, or None once all have exited."""
        ready = ~(self.waiting | self.exited)
        if not ready.any():
            if not self.waiting.any():
                return None
            self._release(cta)
            ready = ~self.exited
        at = int(self.pc[ready].min())
        cta.mask = ready & (self.pc == at)
        cta.full = bool(cta.mask.all())
        return at

    def _release(self, cta: Cta) -> None:
        if self.exited.any():
            raise Divergence("threads wait at a barrier that others passed by exiting")
        if (self.pc != self.pc[0]).any():
            raise Divergence("threads wait at different barriers")
        self.waiting[:] = False
        self.pc += 1
        cta.epoch += 1
        cta.warp_epoch = cta.warp_epoch + 1


def execute(cta: Cta, code: "Code") -> None:
    """Runs the CTA to its end."""
    schedule = Schedule(cta)
    while (at := _next(cta, schedule, code)) is not None:
        stop = code.next_control[at]
        for number in range(at, stop):
            try:
                code.steps[number](cta)
            except PtxError as error:
                raise _placed(error, code, number) from None
        schedule.pc[cta.mask] = stop
        if stop < len(code.steps) and code.control[stop] is not None:
            try:
                code.control[stop](cta, schedule)
            except PtxError as error:
                raise _placed(error, code, stop) from None
        elif stop == len(code.steps):
            raise PtxError("control runs off the end of the function")


def _next(cta: Cta, schedule: Schedule, code: "Code") -> int | None:
    """`Schedule.pick`, its errors placed at the barrier that threads wait at."""
    try:
        return schedule.pick(cta)
    except PtxError as error:
        raise _placed(error, code, int(schedule.pc[schedule.waiting][0])) from None


def _placed(error: PtxError, code: "Code", number: int) -> PtxError:
    """The error with the line of its instruction."""
    if error.line:
        return error
    inst = code.program.insts[number]
    return type(error)(error.message, inst.line, inst.text)
