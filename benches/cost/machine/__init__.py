"""A model of the machines that reductions are compiled for: what a kernel's text costs on them.

# Idea
No GPU is needed: ptxas writes into each instruction how long it must be waited for, and the rest is
tables. `measure` reads a kernel's assembly, counts what it does, and estimates how many cycles one
CTA takes alone on a multiprocessor. The estimate is for comparing two compilations of one kernel
for one target; it is no prediction of a launch's time.

| module | question |
|---|---|
| `sass`, `amdgcn` | what does the text say? |
| `flow` | which way does a warp take? |
| `latency` | what does an instruction cost (NVIDIA; AMD's data are in `amd`)? |
| `simulate` | when does each instruction issue? |
| `nvidia`, `amd` | one vendor's figures, from all of these |
| `measures`, `occupancy` | what is reported, and how many warps fit |

# Invariants
- **X1** Deterministic: the same text gives the same figures.
- **X2** What is not known is assumed to be the same for both compilations: addresses, and so bank
  conflicts and coalescing; values, and so which branches are taken.

# Not here
Compiling, tables, plots: the rest of `benches/cost`.
"""

from __future__ import annotations

from . import amd, nvidia
from .measures import Measures
from .occupancy import occupancy

__all__ = ["Measures", "measure", "occupancy"]


def measure(asm: str, target: str, warps: int, trips: int = 4) -> Measures:
    """The figures of one kernel that runs with `warps` warps, its loops `trips` times.

    `asm` is `asm["sass"]` of a compiled kernel for a target like "sm_90", and `asm["amdgcn"]` for
    one like "gfx942". Compilers unroll loops by 4 or 8: `trips` that are a multiple of it run the
    unrolled bodies, fewer the remainders.
    """
    vendor = nvidia if target.startswith("sm_") else amd
    return vendor.measure(asm, target, warps, trips)
