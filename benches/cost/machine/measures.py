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
# A shuffle and a shared access share one path per SM (or CU) that takes one warp of 4-byte words a
# cycle, where four schedulers issue: NVIDIA's guide gives 32 results a clock to shuffles and 32
# banks to shared memory. A shuffle is its issue and its pass; an access is its issue and a pass for
# every transaction. A barrier is what its latency hides at the least: about 22 cycles for a block
# (Zhang et al. 2020, arXiv:2004.05371), in which a resident second block fills two thirds.
SHUFFLE_WEIGHT = 2
ACCESS_WEIGHT = 1
TRANSACTION_WEIGHT = 1
BARRIER_WEIGHT = 8


@dataclass(frozen=True)
class Measures:
    """One kernel's figures; counts are for one warp, `global_sectors` and cycles for one CTA."""

    instructions: int
    shuffles: int
    """Exchanges between lanes: SHFL; DPP operands, permlane, ds_swizzle and ds_bpermute on AMD."""
    shared_loads: int
    shared_stores: int
    shared_transactions: int
    """Passes of 32 four-byte words that the shared loads and stores of one warp need."""
    barriers: int
    registers: int | None
    stack_bytes: int | None
    global_sectors: int
    """Sectors of 32 bytes that one CTA's global accesses touch if no two lanes share a word."""
    cycles: float
    """Estimated cycles of one CTA alone on an SM, global loads hitting L1."""
    cycles_memory: float
    """The same with global loads from DRAM."""

    @property
    def communication(self) -> int:
        """Shuffles, shared accesses and barriers, weighed in issue slots."""
        return (
            SHUFFLE_WEIGHT * self.shuffles
            + ACCESS_WEIGHT * (self.shared_loads + self.shared_stores)
            + TRANSACTION_WEIGHT * self.shared_transactions
            + BARRIER_WEIGHT * self.barriers
        )
