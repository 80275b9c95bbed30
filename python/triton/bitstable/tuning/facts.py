"""What is known of a launch when it is tuned, as the checker takes it.

# Idea
The checker knows parameters by their number in the PTX: the leaves of the argument list that are
passed at run time, in order, constants left out. A scalar's value is told as bits, so that nothing
is rounded on the way.

# Invariants
- **F1** No fact is guessed: a leaf whose number or bits are not known is a symbol to the checker.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from triton.bitstable.emulation.launcher import flatten

Grid = tuple[int, int, int]
_INTEGERS = {f"{sign}{width}": width for sign in "iu" for width in (1, 8, 16, 32, 64)}


@dataclass(frozen=True)
class Facts:
    """Of one kernel, in one launch."""

    #: Name and type of what is passed at run time, in order.
    parameters: tuple[tuple[str, str], ...] = ()
    #: Number and bits (`0x…`) of scalars that are known.
    scalars: tuple[tuple[int, str], ...] = ()
    #: Numbers of pointers to one and the same buffer, in pairs.
    shared: tuple[tuple[int, int], ...] = ()
    #: Whether the numbers are those of the PTX: a tensor descriptor is several parameters there.
    numbered: bool = True

    @classmethod
    def of(
        cls, signature: Mapping[str, Any], values: Mapping[str, Any], fixed: Collection[str]
    ) -> Facts:
        """Of a kernel with this signature; the values of parameters in `fixed` are facts."""
        parameters, scalars = [], []
        counted = True
        for name, kind in signature.items():
            for leaf in flatten(kind, values.get(name, _unknown(kind)), name):
                bits = scalar_bits(leaf.type, leaf.value) if counted and name in fixed else None
                if bits is not None:
                    scalars.append((len(parameters), bits))
                parameters.append((leaf.name, leaf.type))
                # One of these is several parameters of the PTX.
                counted &= not leaf.type.startswith("tensordesc")
        return cls(tuple(parameters), tuple(scalars), _shared(signature, values), counted)

    def __str__(self) -> str:
        return "(" + ", ".join(f"{name}: {kind}" for name, kind in self.parameters) + ")"


def _shared(signature: Mapping[str, Any], values: Mapping[str, Any]) -> tuple[tuple[int, int], ...]:
    """Pointers that are equal, in pairs; no other way of overlapping is looked for."""
    first: dict[int, int] = {}
    pairs = []
    leaves = (
        leaf
        for name, kind in signature.items()
        for leaf in flatten(kind, values.get(name, _unknown(kind)), name)
    )
    for number, leaf in enumerate(leaves):
        address = leaf.value.data_ptr() if hasattr(leaf.value, "data_ptr") else 0
        if address and address in first:
            pairs.append((first[address], number))
        first.setdefault(address, number)
    return tuple(pairs)


def fixed_by(key: Iterable[str], values: Mapping[str, Any]) -> set[str]:
    """Names of the key whose bits all launches that share it have: zeros of either sign share."""
    return {name for name in key if not _is_float_zero(values.get(name))}


def _is_float_zero(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_is_float_zero(inner) for inner in value)
    return isinstance(value, float) and value == 0.0


def _unknown(kind: Any) -> Any:
    return tuple(_unknown(inner) for inner in kind) if isinstance(kind, tuple) else None


def scalar_bits(kind: str, value: Any) -> str | None:
    """A scalar's bits as Triton's launcher passes it; none where they are not known."""
    try:
        if kind in _INTEGERS:
            return hex(int(value) & ((1 << _INTEGERS[kind]) - 1))
        if kind in ("fp32", "f32"):  # too large is infinite, where `struct` refuses
            return _hex(bytes(ctypes.c_float(value)))
        if kind == "bf16":  # cut off, as Triton's launcher does
            return _hex(bytes(ctypes.c_float(value))[2:])
        if kind in ("fp16", "fp64"):
            return _hex(struct.pack({"fp16": "<e", "fp64": "<d"}[kind], value))
    except (TypeError, ValueError, OverflowError, struct.error):
        pass
    return None


def _hex(little_endian: bytes) -> str:
    return hex(int.from_bytes(little_endian, "little"))


def grid_of(grid: Any, bound: dict[str, Any]) -> Grid | None:
    """The CTAs of a launch, as Triton counts them; none where no grid is known."""
    if grid is None:
        return None
    sizes = tuple(int(size) for size in (grid(bound) if callable(grid) else grid))
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z
