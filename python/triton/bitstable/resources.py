"""What a compiled kernel takes of the machine, as far as it can be too much.

# Idea
The machine code says what did not fit in registers: a cubin in its ELF records, AMD's assembly in
its metadata. Only the comparison with another compilation of the same kernel says whose doing it
is: a kernel that indexes an array has a stack frame as well.

# Sources
NVIDIA: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability", maximum
amount of shared memory per thread block. AMD: LLVM's `AMDGPU.td`, `AddressableLocalMemorySize`;
and the "AMDGPU Code Object Metadata" for the keys of the assembly.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, NamedTuple

from triton.bitstable import _native

_KIB = 1024
_NVIDIA_SHARED = {
    70: 96 * _KIB,
    72: 96 * _KIB,
    75: 64 * _KIB,
    80: 163 * _KIB,
    86: 99 * _KIB,
    87: 163 * _KIB,
    89: 99 * _KIB,
    90: 227 * _KIB,
    100: 227 * _KIB,
    103: 227 * _KIB,
    110: 227 * _KIB,
    120: 99 * _KIB,
    121: 99 * _KIB,
}
_AMD_SHARED = {"gfx950": 160 * _KIB, "gfx1250": 320 * _KIB}
_AMD_SHARED_ELSE = 64 * _KIB
_AMD_SPILLS = re.compile(
    r"^\s*\.(private_segment_fixed_size|[sv]gpr_spill_count):\s*(\d+)\s*$", re.MULTILINE
)


class Spills(NamedTuple):
    """What did not fit in registers; compares by what it costs, and is false if all did."""

    stack: int = 0
    """Bytes of memory of each thread."""
    registers: int = 0
    """Registers that were spilled, where the code tells; to memory or to other registers."""

    def __bool__(self) -> bool:
        return self != (0, 0)

    @property
    def text(self) -> str:
        """For people."""
        spilled = f", {self.registers} registers spilled" if self.registers else ""
        return f"it takes {self.stack} bytes of stack{spilled}"


def spills(products: Iterable[Any]) -> Spills:
    """What the stages' products say; nothing, if none of them is machine code or assembly."""
    found = Spills()
    for product in products:
        if isinstance(product, bytes):
            kernels = _native.library().resources(product) or []
            found = max([found, *(Spills(kernel["stack"]) for kernel in kernels)])
        elif isinstance(product, str):
            found = max(found, _of_assembly(product))
    return found


def _of_assembly(text: str) -> Spills:
    said = [(key, int(count)) for key, count in _AMD_SPILLS.findall(text)]
    stack = sum(count for key, count in said if key.startswith("private"))
    return Spills(stack, sum(count for key, count in said if key.endswith("spill_count")))


def shared_limit(target: Any) -> int | None:
    """The bytes of shared memory that a kernel may take on `target`, if that is known."""
    if target is None:
        return None
    if target.backend == "cuda":
        return _NVIDIA_SHARED.get(target.arch)
    return _AMD_SHARED.get(str(target.arch).split("-")[0], _AMD_SHARED_ELSE)
