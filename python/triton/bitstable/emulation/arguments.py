"""Arguments of a launch as Triton takes them: numpy arrays dressed as tensors, scalars as Python's.

# Idea
Triton specialises a kernel on what an argument says through `data_ptr()` and `dtype`; a bare
ndarray says neither and is refused. [`Array`] adds the first, and passes everything else on to the
array, so that a grid function, a heuristic or a hook that asks for `shape` gets an answer.

# Invariants
- **A1** The address that Triton sees is the array's own, so that alignment is specialised on as it
  is on a GPU.
- **A2** What cannot be passed is refused by name, before anything is compiled.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import triton.language as tl
from triton._utils import type_canonicalisation_dict
from triton.bitstable.errors import EmulationError


class Array:
    """A numpy array as Triton's launcher takes tensors."""

    def __init__(self, array: np.ndarray, dtype: Any = None) -> None:
        self.array = array
        self.dtype = array.dtype if dtype is None else dtype

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self.array.__array_interface__["data"][0]

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.array.itemsize

    def numel(self) -> int:
        """How many elements there are."""
        return self.array.size

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements, as torch counts them."""
        strides = tuple(step // self.array.itemsize for step in self.array.strides)
        return strides if dim is None else strides[dim]

    # What the autotuner's `reset_to_zero` and `restore_value` ask of an argument.

    def zero_(self) -> Array:
        """Fill with zeros."""
        self.array[...] = 0
        return self

    def clone(self) -> Array:
        """A copy with memory of its own."""
        return Array(self.array.copy(), self.dtype)

    def copy_(self, other: Any) -> Array:
        """Take over the values of another."""
        self.array[...] = other.array if isinstance(other, Array) else other
        return self

    def __getattr__(self, name: str) -> Any:
        if name == "array":  # not there yet: a copy in the making
            raise AttributeError(name)
        return getattr(self.array, name)

    def __getitem__(self, index: Any) -> Any:
        return self.array[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.array[index] = value

    def __len__(self) -> int:
        return len(self.array)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.array(self.array, dtype=dtype, copy=copy)

    def __repr__(self) -> str:
        return f"Array({self.array!r}, {self.dtype})"


def view(array: np.ndarray, dtype: str | tl.dtype) -> Array:
    """`array` for a kernel that shall see elements of `dtype`: of a type that numpy lacks.

    `view(bits, "bf16")` takes an array of `uint16`, and `view(bits, "fp8e5")` one of `uint8`.
    """
    name = str(dtype).removeprefix("tl.")
    if name not in type_canonicalisation_dict or name == "void":
        choices = ", ".join(sorted({*type_canonicalisation_dict.values()} - {"void"}))
        raise EmulationError(f"view: no such element type: {dtype!r}; the choices are {choices}")
    name = type_canonicalisation_dict[name]
    if not isinstance(array, np.ndarray):
        raise EmulationError(f"view: a numpy array is needed, not {type(array).__name__}")
    wanted = element_bytes(name)
    if array.dtype.itemsize != wanted:
        raise EmulationError(
            f"view: {name} takes {wanted} bytes an element, the array has {array.dtype.itemsize} "
            f"({array.dtype}): view it as uint{8 * wanted} first"
        )
    # The language's types call unsigned integers uint8, the compiler's u8.
    return Array(array, getattr(tl, _LANGUAGE_NAMES.get(name, name)))


_LANGUAGE_NAMES = {
    "u1": "int1",
    **{f"u{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"fp{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    **{f"fp8{kind}": f"float8{kind}" for kind in ("e4nv", "e4b15", "e4b8", "e5", "e5b16")},
}


def element_bytes(name: str) -> int:
    """Bytes of one element of a type, by Triton's short name."""
    if name.startswith("fp8") or name == "void":
        return 1
    return max(int(name.lstrip("iufpb")) // 8, 1)


def adapt(arguments: Iterable[Any], names: Iterable[str]) -> list[Any]:
    """The arguments as Triton takes them; `names` says what to call them in an error."""
    return [_adapted(value, name) for value, name in zip(arguments, names, strict=True)]


def _adapted(value: Any, name: str) -> Any:
    if isinstance(value, np.ndarray):
        if str(value.dtype) not in type_canonicalisation_dict:
            raise EmulationError(
                f"argument {name}: an array of {value.dtype} cannot be passed to a kernel; "
                "convert it, or give its bits a type with triton.bitstable.emulate.view"
            )
        return Array(value)
    if isinstance(value, (np.bool_, np.integer, np.floating)):
        return value.item()
    if isinstance(value, tuple):
        items = adapt(value, [f"{name}[{at}]" for at in range(len(value))])
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    return value
