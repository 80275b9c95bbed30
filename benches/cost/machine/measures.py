"""What is measured of one compiled kernel, and how its parts are weighed against each other.

# Idea
One record for every target, so that a report never asks whose machine it reads.

# Invariants
- **M1** Counts are static: each instruction of the text counts once, however often it runs. Only
  `cycles` and `cycles_memory` follow loops.
- **M2** Padding (NOPs after the end, the trap loop behind the last exit) is not counted.
- **M3** `global_sectors` and `shared_transactions` say what full, conflict-free accesses of that
  width need. Addresses are not known, so that strided or broadcast accesses are not told apart.

# Not here
How a text is read (`sass.py`, `amd.py`) and what an instruction costs (`latency.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

# Issue slots of what moves data between threads. The unit is one issue of one warp instruction.
# Shared memory serves a whole SM (or CU) at 32 words a cycle, where four schedulers issue: an
# access is its issue, and one slot for every 32 words (NVIDIA: CUDA C++ Programming Guide, 32
# banks; AMD: an issue takes four cycles, in which a quarter of the LDS moves 32 words). A barrier
# is what its 23 cycles at the least (Burtscher et al., IISWC 2024) keep from issuing where other
# warps fill two thirds of them. Exchanges differ by target, so that those who read its code weigh
# them.
ACCESS_SLOTS = 1
TRANSACTION_SLOTS = 1
BARRIER_SLOTS = 8


@dataclass(frozen=True)
class Measures:
    """One kernel's figures; counts are for one warp, `global_sectors` and cycles for one CTA."""

    instructions: int
    shuffles: int
    """Exchanges between lanes: SHFL; DPP operands, permlane, ds_swizzle and ds_bpermute on AMD."""
    shuffle_slots: int
    """Issue slots that those exchanges take."""
    shared_loads: int
    shared_stores: int
    shared_transactions: int
    """Passes of 32 four-byte words that the shared loads and stores of one warp need."""
    barriers: int
    registers: int | None
    stack_bytes: int | None
    global_sectors: int
    """Sectors of 32 bytes that one CTA's global accesses touch if no two lanes share a word."""
    path_sectors: int
    """The same along the path, loops included. Where it differs between two compilations of one
    kernel, they unrolled a loop differently, and cycles a sector are what compares."""
    cycles: float
    """Estimated cycles of one CTA alone on an SM, global loads hitting L1."""
    cycles_memory: float
    """The same with global loads from DRAM."""

    @property
    def communication(self) -> int:
        """Shuffles, shared accesses and barriers, weighed in issue slots."""
        return (
            self.shuffle_slots
            + ACCESS_SLOTS * (self.shared_loads + self.shared_stores)
            + TRANSACTION_SLOTS * self.shared_transactions
            + BARRIER_SLOTS * self.barriers
        )
