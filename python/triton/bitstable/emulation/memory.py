"""The device's global memory for one launch: a copy of every buffer, far from every other.

# Idea
A heap puts arrays next to each other, so an access past the end of one is often inside another. So
a launch runs on copies, each with a guard around it that nothing may touch, at addresses that are
congruent to the arrays' own. Afterwards the bytes that the kernel changed are written back.

# Invariants
- **M1** A copy is congruent to its buffer modulo [`CONGRUENT`], far above any alignment that a
  kernel specialises on.
- **M2** A buffer is all the memory that the argument's owner has: a strided view, or one that does
  not begin at the owner's first element, may be read around itself, as on a GPU.
- **M3** Buffers that overlap are one, so that arguments which alias do so on the device too.
- **M4** Bytes that the kernel did not change are not written: another thread's are kept.

# Not here
Addresses that a kernel reads from memory: they are the host's, and no copy is there.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.bitstable.emulation.arguments import Array, element_bytes
from triton.bitstable.errors import EmulationError
from triton.runtime.jit import TensorWrapper

CONGRUENT = 1024
GUARD = 1 << 20


@dataclass(frozen=True)
class Span:
    """A range of host addresses that belongs together."""

    start: int
    end: int
    writable: bool

    @property
    def bytes(self) -> int:
        """How many."""
        return self.end - self.start


@dataclass(frozen=True)
class Pointer:
    """A pointer argument: what it is called, where it points, and what it may reach."""

    name: str
    address: int
    element: str
    span: Span

    @classmethod
    def of(cls, value: Any, name: str, signature: str) -> Pointer:
        """The pointer that an argument stands for; `signature` is its type, such as `*fp32`."""
        if not hasattr(value, "data_ptr"):
            raise EmulationError(
                f"argument {name}: a pointer is needed, got {type(value).__name__}: pass a numpy "
                "array or a torch tensor, so that its bounds are known"
            )
        element = signature.removeprefix("*k").removeprefix("*")
        return cls(name, int(value.data_ptr()), element, _owner(value, name))

    def element_at(self, address: int) -> int:
        """The number of the element that `address` is in, from the one pointed at."""
        return (address - self.address) // element_bytes(self.element)


def _owner(value: Any, name: str) -> Span:
    """All the memory that belongs to an argument."""
    while isinstance(value, TensorWrapper):
        value = value.base
    if isinstance(value, Array):
        root = value.array
        while isinstance(root.base, np.ndarray):
            root = root.base
        return Span(*_bounds(root), value.array.flags.writeable)
    if hasattr(value, "untyped_storage"):
        place = getattr(value, "device", None)
        if getattr(place, "type", "cpu") != "cpu":
            raise EmulationError(
                f"argument {name}: the tensor is on {place}, and the emulated device has the CPU's "
                "memory: pass tensor.cpu()"
            )
        storage = value.untyped_storage()
        start = int(storage.data_ptr())
        return Span(start, start + int(storage.nbytes()), True)
    start = int(value.data_ptr())
    if (size := getattr(value, "nbytes", None)) is not None:
        return Span(start, start + int(size), True)
    raise EmulationError(
        f"argument {name}: the bounds of a {type(value).__name__} are not known: pass a numpy "
        "array or a torch tensor, or give it `nbytes`"
    )


def _bounds(array: np.ndarray) -> tuple[int, int]:
    first = array.__array_interface__["data"][0]
    if not array.size:
        return first, first
    reach = [(extent - 1) * step for extent, step in zip(array.shape, array.strides, strict=True)]
    low, high = sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    return first + low, first + high + array.itemsize


@dataclass
class Buffer:
    """A span with its copy. `names` are the arguments that point into it."""

    span: Span
    names: list[str]
    copy: np.ndarray
    before: np.ndarray | None = None

    @property
    def address(self) -> int:
        """Of the copy: where the device sees it."""
        return self.copy.__array_interface__["data"][0]

    def distance(self, address: int) -> int:
        """How far outside a device address is; 0 inside."""
        past = address - (self.address + max(self.copy.size, 1) - 1)
        return max(self.address - address, past, 0)

    @property
    def host(self) -> np.ndarray:
        """The original's bytes, in place."""
        if not self.span.bytes:
            return np.empty(0, np.uint8)
        memory = (ctypes.c_uint8 * self.span.bytes).from_address(self.span.start)
        return np.frombuffer(memory, np.uint8)


@dataclass(frozen=True)
class Scratch:
    """Memory that a kernel wants besides its arguments'."""

    name: str
    bytes: int
    align: int


class Memory:
    """The buffers of one launch. The arguments must outlive it."""

    def __init__(self, pointers: Iterable[Pointer], scratch: Iterable[Scratch]) -> None:
        self.pointers = list(pointers)
        spans = _merged([pointer.span for pointer in self.pointers if pointer.span.bytes])
        scratch = list(scratch)
        sizes = [span.bytes for span in spans] + [wanted.bytes for wanted in scratch]
        # Untouched pages cost address space only. `empty` maps what is this large.
        arena = np.empty(sum(sizes) + (len(sizes) + 1) * (GUARD + CONGRUENT), np.uint8)
        self._arena = arena
        self._next = GUARD
        self.buffers = [self._place(span) for span in spans]
        self.scratch = {wanted.name: self._scratch(wanted) for wanted in scratch}
        self._fill()

    def _place(self, span: Span) -> Buffer:
        inside = [p for p in self.pointers if p.span.start < span.end and span.start < p.span.end]
        names = [pointer.name for pointer in inside]
        return Buffer(span, names, self._take(span.bytes, span.start % CONGRUENT, CONGRUENT))

    def _scratch(self, wanted: Scratch) -> Buffer:
        copy = self._take(wanted.bytes, 0, max(wanted.align, 1))
        start = copy.__array_interface__["data"][0]
        return Buffer(Span(start, start + wanted.bytes, True), [wanted.name], copy)

    def _take(self, size: int, remainder: int, modulus: int) -> np.ndarray:
        base = self._arena.__array_interface__["data"][0]
        start = self._next + (remainder - (base + self._next)) % modulus
        self._next = start + size + GUARD
        return self._arena[start : start + size]

    def all(self) -> list[Buffer]:
        """Every buffer, scratch too."""
        return [*self.buffers, *self.scratch.values()]

    def request(self) -> list[dict[str, Any]]:
        """The buffers as the native library is told about them."""
        return [
            {
                "name": ", ".join(buffer.names),
                "address": buffer.address,
                "bytes": buffer.copy.size,
                "writable": buffer.span.writable,
            }
            for buffer in self.all()
        ]

    def _fill(self) -> None:
        for buffer in self.buffers:
            buffer.copy[...] = buffer.host
            buffer.before = buffer.copy.copy() if buffer.span.writable else None
        for buffer in self.scratch.values():
            buffer.copy[...] = 0

    def restore(self) -> None:
        """Make every copy what it was at first, whatever its original is by now."""
        for buffer in self.buffers:
            if buffer.before is not None:
                buffer.copy[...] = buffer.before
        for buffer in self.scratch.values():
            buffer.copy[...] = 0

    def device_address(self, pointer: Pointer) -> int:
        """Where the copy of what `pointer` points at is; a pointer to nothing stays as it is."""
        for buffer in self.buffers:
            if buffer.span.start <= pointer.span.start and pointer.span.end <= buffer.span.end:
                return buffer.address + (pointer.address - buffer.span.start)
        return pointer.address

    def write_back(self) -> None:
        """Write what the kernel changed into the originals."""
        for buffer in self.buffers:
            if buffer.before is not None:
                changed = np.flatnonzero(buffer.before != buffer.copy)
                buffer.host[changed] = buffer.copy[changed]

    def outcome(self) -> list[bytes]:
        """The bytes of every writable buffer, in their order."""
        return [buffer.copy.tobytes() for buffer in self.buffers if buffer.span.writable]

    def first_difference(self, earlier: list[bytes]) -> str | None:
        """Where an earlier outcome differs from what the copies hold now, in words."""
        writable = [buffer for buffer in self.buffers if buffer.span.writable]
        for buffer, before in zip(writable, earlier, strict=True):
            differing = np.flatnonzero(np.frombuffer(before, np.uint8) != buffer.copy)
            if differing.size:
                return self.describe(buffer.address + int(differing[0]))
        return None

    def describe(self, address: int) -> str | None:
        """The element at a device address by its argument's name, also outside its bounds.

        `None` if no buffer is within reach.
        """
        near = [buffer for buffer in self.all() if buffer.distance(address) < GUARD]
        if not near:
            return None
        buffer = min(near, key=lambda each: each.distance(address))
        offset = address - buffer.address
        host = buffer.span.start + offset
        pointers = [p for p in self.pointers if p.name in buffer.names]
        if not pointers:
            return f"byte {offset} of {buffer.names[0]}, which has {buffer.copy.size}"
        before = [p for p in pointers if p.address <= host]
        pointer = max(before, key=lambda p: p.address) if before else pointers[0]
        aliases = [p.name for p in pointers if p.address == pointer.address]
        count = -(-(buffer.span.end - pointer.address) // element_bytes(pointer.element))
        at = pointer.element_at(host)
        return f"element {at} of {', '.join(aliases)}, which has {count} of {pointer.element}"


def _merged(spans: list[Span]) -> list[Span]:
    """Spans that share a byte, joined; in the order of their addresses."""
    joined: list[Span] = []
    for span in sorted(spans, key=lambda s: (s.start, s.end)):
        if joined and span.start < joined[-1].end:
            last = joined.pop()
            end, writable = max(last.end, span.end), last.writable or span.writable
            span = Span(last.start, end, writable)
        joined.append(span)
    return joined
