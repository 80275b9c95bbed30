"""PTX on the executor, draw by draw, to a label.

# Idea
A kernel is loaded once and launched on every draw, on buffers of the case that stay where they are.
The label is a digest of what all buffers hold after all draws, every NaN made one.

A kernel that adds narrow floats as f32 adds them exactly unless their exponents are far apart, and
then no order shows. So [`patterns`] adds draws for them that take all binades of the type.

# Invariants
- **R1** A run with an error has no label: what a race leaves behind means nothing.
- **R2** A launch starts from fresh buffers; between buffers lies memory that nothing may touch.
"""

from __future__ import annotations

import ctypes
import hashlib
import struct
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.bitstable import EmulationError, _native
from triton.bitstable.bits.arguments import Buffer, Scalar
from triton.bitstable.bits.draws import Draw, plan

from corpus.cases import Case
from corpus.compiling import Compiled

#: Changed with what a label means: labels of two schemes are not compared.
SCHEME = 3
GUARD = 1 << 16
STEPS = 200_000_000


@dataclass(frozen=True)
class Label:
    """What was observed: a digest, or the kinds of errors."""

    digest: str | None
    errors: tuple[str, ...] = ()


# Draws of all binades, for narrow floats; how far exponents go to either side of 1, for sums to
# stay finite; and the draw that other arguments take then.
_SPREAD = tuple(Draw("all-binades", repeat) for repeat in range(3))
_BINADES = 20
_BESIDE = "wide"


def patterns(buffer: Buffer, draw: Draw, seed: int) -> np.ndarray:
    """What a buffer holds before a launch, as bits."""
    if draw not in _SPREAD:
        return buffer.patterns(draw, seed)
    if not _narrow(buffer):
        return buffer.patterns(Draw(_BESIDE, len(_SPREAD) + draw.repeat), seed)
    element, stream = buffer.element, draw.stream(seed, buffer.name)
    low = max(1, element.bias - _BINADES)
    high = min(element.largest_exponent - 1, element.bias + _BINADES)
    words = stream.words(buffer.count)
    exponent = np.uint64(low) + stream.below(high - low + 1, buffer.count)
    made = (words >> np.uint64(63)) << np.uint64(element.bits - 1)
    made |= exponent << np.uint64(element.mantissa_bits)
    made |= words & np.uint64((1 << element.mantissa_bits) - 1)
    return made.astype(element.storage)


def _narrow(buffer: Buffer) -> bool:
    drawn = buffer.fixed is None and buffer.range is None
    return drawn and buffer.element.is_float and buffer.element.bits < 32


class Bench:
    """The buffers of one case, and what they hold on each draw."""

    def __init__(self, case: Case, draws: int, seed: int) -> None:
        self.arguments = case.read()
        self.buffers = [a for a in self.arguments if isinstance(a, Buffer)]
        narrow = any(_narrow(buffer) for buffer in self.buffers)
        self._draws = [*plan(draws), *(_SPREAD if narrow else ())]
        sizes = [b.count * b.element.bits // 8 for b in self.buffers]
        self._arena = np.zeros(sum(sizes) + (len(sizes) + 1) * 2 * GUARD, np.uint8)
        base = self._arena.__array_interface__["data"][0]
        self._views: list[np.ndarray] = []
        at = GUARD + -base % GUARD
        for buffer, size in zip(self.buffers, sizes, strict=True):
            self._views.append(self._arena[at : at + size].view(buffer.element.storage))
            at += -(-size // GUARD) * GUARD + GUARD
        self._contents = [
            [patterns(buffer, draw, seed) for buffer in self.buffers] for draw in self._draws
        ]
        self._known: dict[Any, Label] = {}

    def label(self, compiled: Compiled, grid: tuple[int, int, int]) -> Label:
        """Run on every draw; equal code on an equal grid is run once."""
        key = compiled.ptx, grid, compiled.threads, compiled.shared
        if key not in self._known:
            self._known[key] = self._run(compiled, grid)
        return self._known[key]

    def _run(self, compiled: Compiled, grid: tuple[int, int, int]) -> Label:
        if compiled.scratch:
            return Label(None, ("scratch-memory",))
        library = _native.library()
        try:
            loaded = library.ptx_load(compiled.ptx.encode(), {"entry": compiled.entry})
        except EmulationError as error:
            return Label(None, (f"not-executed: {_line(error)}",))
        try:
            block = self._block(loaded)
            digest = hashlib.sha256()
            for at, contents in enumerate(self._contents):
                for view, content in zip(self._views, contents, strict=True):
                    view[...] = content
                request = self._request(compiled, grid, races=at == 0)
                reply = library.ptx_launch(loaded["handle"], request, block, ctypes.c_uint8(0))
                errors = [f["kind"] for f in reply["findings"] if f["severity"] == "error"]
                if errors or reply["errors_left_out"]:
                    return Label(None, tuple(sorted(set(errors) or {"more"})))
                for view, buffer in zip(self._views, self.buffers, strict=True):
                    digest.update(buffer.element.canonical(view).tobytes())
            return Label(digest.hexdigest()[:32])
        except EmulationError as error:
            return Label(None, (f"not-executed: {_line(error)}",))
        finally:
            library.ptx_unload(loaded["handle"])

    def _request(
        self, compiled: Compiled, grid: tuple[int, int, int], races: bool
    ) -> dict[str, Any]:
        return {
            "grid": grid,
            "block": [compiled.threads, 1, 1],
            "dynamic_shared": compiled.shared,
            "buffers": [
                {
                    "name": buffer.name,
                    "address": view.__array_interface__["data"][0],
                    "bytes": view.nbytes,
                    "writable": True,
                }
                for buffer, view in zip(self.buffers, self._views, strict=True)
            ],
            "options": {"races": races, "jobs": 1, "step_limit": STEPS},
        }

    def _block(self, loaded: dict[str, Any]) -> bytes:
        """The parameters: the arguments, then two null pointers to scratch memory."""
        views = iter(self._views)
        packed = [
            struct.pack("<Q", next(views).__array_interface__["data"][0])
            if isinstance(argument, Buffer)
            else _bits(argument)
            for argument in self.arguments
        ]
        packed += [bytes(8)] * 2
        told = [param["bytes"] for param in loaded["params"]]
        if told != [len(value) for value in packed]:
            raise EmulationError(f"parameters of {told} bytes, not {[len(v) for v in packed]}")
        block = bytearray(loaded["param_bytes"])
        for param, value in zip(loaded["params"], packed, strict=True):
            block[param["offset"] : param["offset"] + len(value)] = value
        return bytes(block)


def _bits(argument: Scalar) -> bytes:
    return struct.pack("<f" if isinstance(argument.value, float) else "<i", argument.value)


def scalars(case: Case) -> dict[str, int]:
    """The scalar parameters' bits by their place in the entry's parameter list."""
    return {
        str(at): int.from_bytes(_bits(argument), "little")
        for at, argument in enumerate(case.read())
        if isinstance(argument, Scalar)
    }


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]
