"""How many warps of a kernel one multiprocessor holds.

# Sources
- NVIDIA: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 64 warps,
  32 blocks and 64 Ki registers an SM on all three targets, in four equal partitions; 164 or 228 KiB
  of shared memory, of which a block costs 1 KiB more than it asks for. Registers are given to a
  warp in units of 256.
- AMD: "AMD Instinct MI300" and "MI350" (CDNA 4) ISA guides and LLVM's AMDGPU usage guide: four
  SIMDs a CU, 512 vector registers a lane in units of 8, 8 waves a SIMD, 64 or 160 KiB of LDS a CU.

# Not here
Scalar registers (never the limit since gfx90a) and launch limits of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass

PARTITIONS = 4
"""Of an SM or a CU: each has registers and issue slots of its own (all targets here)."""


@dataclass(frozen=True)
class Limits:
    """What one SM, or one CU, has."""

    warps: int
    """Of one partition."""
    blocks: int
    registers: int
    """Of one lane, for all warps of a partition (a scheduler's share of an SM, or a SIMD)."""
    register_unit: int
    shared_bytes: int
    shared_unit: int
    shared_reserved: int
    """Bytes that each block costs beside its own."""


LIMITS = {
    "sm_80": Limits(16, 32, 512, 8, 164 << 10, 128, 1 << 10),
    "sm_90": Limits(16, 32, 512, 8, 228 << 10, 128, 1 << 10),
    "sm_100": Limits(16, 32, 512, 8, 228 << 10, 128, 1 << 10),
    "gfx942": Limits(8, 16, 512, 8, 64 << 10, 512, 0),
    "gfx950": Limits(8, 16, 512, 8, 160 << 10, 1280, 0),
}


def occupancy(target: str, warps: int, registers: int | None, shared_bytes: int) -> int:
    """Resident warps per SM (NVIDIA) or waves per SIMD (AMD); 0 if not even one block fits."""
    try:
        has = LIMITS[target.rstrip("af")] if target.startswith("sm_") else LIMITS[target]
    except KeyError:
        raise ValueError(f"no limits for {target}: known are {', '.join(LIMITS)}") from None
    each = has.warps
    if registers:
        each = min(each, has.registers // (-(-registers // has.register_unit) * has.register_unit))
    blocks = min(PARTITIONS * each // warps, has.blocks)
    shared = -(-(shared_bytes + has.shared_reserved) // has.shared_unit) * has.shared_unit
    if shared:
        blocks = min(blocks, has.shared_bytes // shared)
    resident = blocks * warps
    return resident if target.startswith("sm_") else -(-resident // PARTITIONS)
