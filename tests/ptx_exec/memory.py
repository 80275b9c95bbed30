"""Byte-addressed memory that knows who touched what, and when.

# Idea
Global memory is one arena with a guard before, between and behind the buffers; shared memory is an
arena with one region. Each byte remembers its last writer and readers with the barrier epochs of
the moment, so an access that nothing orders after a conflicting one is reported, not executed.

# Invariants
- **M1** An access lies in one region, is aligned to its size, and reads initialised bytes only.
- **M2** Two accesses to a byte, one of them a write, are ordered: same thread, or a `bar.sync`
  between them, or one warp and a `bar.warp.sync` between them. Writing the bytes that already
  stand there is no conflict with their writer: Triton stores replicated values from every thread.
"""

from dataclasses import dataclass, field

import numpy as np

from .errors import MemoryFault, Race
from .floats import UNSIGNED

GUARD = 256
NOBODY, MANY = -1, -2


@dataclass(eq=False)
class Buffer:
    """An argument in global memory. `data` is what the kernel reads, and holds what it wrote.

    `misalign` moves the address off its 256-byte boundary by so many bytes; `leaves` makes the
    elements leaves of the dependence tree in symbolic mode.
    """

    data: np.ndarray
    writable: bool = False
    misalign: int = 0
    leaves: bool = False
    address: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.data = np.ascontiguousarray(self.data)


@dataclass(frozen=True)
class Who:
    """The threads of one access and their place in time, one entry per access."""

    thread: np.ndarray
    warp: np.ndarray
    epoch: np.ndarray
    warp_epoch: np.ndarray


class Touches:
    """Per byte: who touched it last, and at which epochs."""

    def __init__(self, size: int) -> None:
        self.thread = np.full(size, NOBODY, np.int64)
        self.warp = np.full(size, NOBODY, np.int64)
        self.epoch = np.zeros(size, np.int64)
        self.warp_epoch = np.zeros(size, np.int64)

    def unordered(self, at: np.ndarray, who: Who) -> np.ndarray:
        """Where the last touch of `at` is neither the accessor's own nor ordered before it."""
        thread = self.thread[at]
        own = (thread == NOBODY) | (thread == who.thread)
        # Epochs only compare within a CTA; another CTA's threads are never ordered.
        older = (self.epoch[at] < who.epoch) & (self.epoch[at] >= who.epoch - who.epoch % EPOCHS)
        warp = (self.warp[at] == who.warp) & (self.warp_epoch[at] < who.warp_epoch)
        return ~(own | older | warp)

    def record(self, at: np.ndarray, who: Who) -> None:
        """Adds touches, replacing those that are ordered before them."""
        fresh = (self.thread[at] == NOBODY) | (self.epoch[at] < who.epoch)
        fresh |= (self.warp[at] == who.warp) & (self.warp_epoch[at] < who.warp_epoch)
        for table, mine in ((self.thread, who.thread), (self.warp, who.warp)):
            mixed = ~fresh & (table[at] != mine)
            table[at] = mine
            mixed |= table[at] != mine  # one instruction touched the byte from several threads
            table[at[mixed]] = MANY
        self.epoch[at] = who.epoch
        self.warp_epoch[at] = who.warp_epoch


# Epochs of CTA number c run from c * EPOCHS.
EPOCHS = 1 << 20


class Memory:
    """An arena of regions with bounds, initialisation and race checks."""

    def __init__(self, name: str, base: int, size: int, initialised: bool) -> None:
        self.name, self.base = name, base
        self.data = np.zeros((size + 15) // 16 * 16, np.uint8)
        self.region = np.full(self.data.size, NOBODY, np.int16)
        self.initialised = np.full(self.data.size, initialised)
        self.writable = np.zeros(self.data.size, bool)
        self.written, self.read = Touches(self.data.size), Touches(self.data.size)
        # Dependence-tree ids, one per 16 bits; allocated by symbolic mode.
        self.pieces: np.ndarray | None = None

    def place(self, start: int, size: int, region: int, writable: bool) -> None:
        """Opens `[start, start + size)` for access."""
        self.region[start : start + size] = region
        self.writable[start : start + size] = writable

    def offsets(self, address: np.ndarray, size: int, unit: int) -> np.ndarray:
        """M1's bounds and alignment; the offsets in the arena. `unit` is one element's size."""
        at = address.astype(np.int64) - self.base
        inside = (at >= 0) & (at + size <= self.data.size)
        if not inside.all():
            raise MemoryFault(f"{self.name} access outside memory: {self._show(address, ~inside)}")
        region = self.region[at]
        same = (region != NOBODY) & (region == self.region[at + size - 1])
        if not same.all():
            raise MemoryFault(f"{self.name} access out of bounds: {self._show(address, ~same)}")
        crooked = address.astype(np.int64) % size != 0
        if crooked.any():
            raise MemoryFault(
                f"{self.name} access of {size} bytes misaligned: {self._show(address, crooked)}"
            )
        assert size % unit == 0
        return at

    @staticmethod
    def _show(address: np.ndarray, bad: np.ndarray) -> str:
        return hex(int(address[bad][0]))

    def _bytes(self, at: np.ndarray, size: int, who: Who) -> tuple[np.ndarray, Who]:
        index = (at[:, None] + np.arange(size)).ravel()
        wide = (np.repeat(column, size) for column in vars(who).values())
        return index, Who(*wide)

    def load(self, at: np.ndarray, unit: int, count: int, who: Who) -> np.ndarray:
        """Reads `count` elements of `unit` bytes at each offset: shape (accesses, count)."""
        index, each = self._bytes(at, unit * count, who)
        if not self.initialised[index].all():
            raise MemoryFault(f"{self.name} read of uninitialised bytes")
        shared = self.writable[index]
        if shared.any():
            bad = self.written.unordered(index, each)
            if bad.any():
                raise Race(self._race("reads", index, each, bad, self.written))
            self.read.record(index, each)
        view = self.data.view(UNSIGNED[unit * 8])
        return view[(at // unit)[:, None] + np.arange(count)]

    def store(self, at: np.ndarray, values: np.ndarray, who: Who) -> None:
        """Writes `values` of shape (accesses, count) at each offset."""
        unit = values.dtype.itemsize
        index, each = self._bytes(at, unit * values.shape[1], who)
        if not self.writable[index].all():
            raise MemoryFault(f"{self.name} write to a read-only buffer")
        new = np.ascontiguousarray(values).view(np.uint8).ravel()
        changed = (self.data[index] != new) | ~self.initialised[index]
        bad = self.written.unordered(index, each) & changed
        if bad.any():
            raise Race(self._race("overwrites", index, each, bad, self.written))
        bad = self.read.unordered(index, each) & changed
        if bad.any():
            raise Race(self._race("overwrites what was read", index, each, bad, self.read))
        self.data[index] = new
        if not np.array_equal(self.data[index], new):
            raise Race(f"{self.name}: one instruction writes different bytes to one address")
        self.initialised[index] = True
        self.written.record(index, each)

    def _race(self, what: str, index: np.ndarray, who: Who, bad: np.ndarray, seen: Touches) -> str:
        k = int(np.flatnonzero(bad)[0])
        other = int(seen.thread[index[k]])
        named = "several threads" if other == MANY else f"thread {other}"
        return (
            f"{self.name}: thread {int(who.thread[k])} {what} byte {int(index[k])} "
            f"that {named} touched, with no barrier between"
        )


def global_memory(buffers: list[Buffer]) -> Memory:
    """One arena for all buffers; sets their addresses."""
    base, starts, end = 0x7F00_0000_0000, [], GUARD
    for buffer in buffers:
        starts.append(end + buffer.misalign)
        end = (starts[-1] + buffer.data.nbytes + 2 * GUARD - 1) // GUARD * GUARD
    memory = Memory("global", base, end + GUARD, initialised=True)
    for number, (buffer, start) in enumerate(zip(buffers, starts, strict=True)):
        buffer.address = base + start
        memory.place(start, buffer.data.nbytes, number, buffer.writable)
        raw = buffer.data.reshape(-1).view(np.uint8)
        memory.data[start : start + raw.size] = raw
    return memory


def copy_back(memory: Memory, buffers: list[Buffer]) -> None:
    """Stores what the kernel wrote into the buffers' arrays."""
    for buffer in buffers:
        if buffer.writable:
            start = buffer.address - memory.base
            raw = memory.data[start : start + buffer.data.nbytes]
            buffer.data = raw.copy().view(buffer.data.dtype).reshape(buffer.data.shape)


def shared_memory(size: int) -> Memory:
    """A CTA's shared memory: one region, nothing initialised."""
    memory = Memory("shared", 0x400, size, initialised=False)
    memory.place(0, size, 0, writable=True)
    return memory
