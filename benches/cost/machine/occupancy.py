"""How many warps of a kernel one multiprocessor holds.

# Sources
- NVIDIA: CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 64 warps,
  32 blocks and 64 Ki registers an SM on all three targets; 164 or 228 KiB of shared memory, of which
  each block costs 1 KiB more than it asks for. Registers are given to a warp in units of 256.
- AMD: "AMD Instinct MI300" and "MI350" (CDNA 4) ISA guides and LLVM's AMDGPU usage guide: four
  SIMDs a CU, 512 vector registers a lane in units of 8, 8 waves a SIMD, 64 or 160 KiB of LDS a CU.

# Not here
Scalar registers (never the limit since gfx90a) and launch limits of a cluster.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What one SM, or one CU, has."""

    warps: int
    blocks: int
    registers: int
    """That a lane's warps share: per SM on NVIDIA (over 32 lanes), per SIMD on AMD."""
    register_unit: int
    shared_bytes: int
    shared_unit: int
    shared_reserved: int
    """Bytes that each block costs beside its own."""
    partitions: int
    """Among which blocks' warps are spread, where the answer is per partition."""


LIMITS = {
    "sm_80": Limits(64, 32, 2048, 8, 164 << 10, 128, 1 << 10, 1),
    "sm_90": Limits(64, 32, 2048, 8, 228 << 10, 128, 1 << 10, 1),
    "sm_100": Limits(64, 32, 2048, 8, 228 << 10, 128, 1 << 10, 1),
    "gfx942": Limits(8, 16, 512, 8, 64 << 10, 512, 0, 4),
    "gfx950": Limits(8, 16, 512, 8, 160 << 10, 1280, 0, 4),
}


def occupancy(target: str, warps: int, registers: int | None, shared_bytes: int) -> int:
    """Resident warps per SM (NVIDIA) or waves per SIMD (AMD); 0 if not even one block fits."""
    try:
        has = LIMITS[target.rstrip("af")] if target.startswith("sm_") else LIMITS[target]
    except KeyError:
        raise ValueError(f"no limits for {target}: known are {', '.join(LIMITS)}") from None
    each = -(-warps // has.partitions)
    """Warps of one block that one partition must hold."""
    fits = has.warps
    if registers:
        fits = min(fits, has.registers // (-(-registers // has.register_unit) * has.register_unit))
    blocks = fits // each if has.partitions == 1 else fits * has.partitions // warps
    blocks = min(blocks, has.blocks)
    shared = -(-(shared_bytes + has.shared_reserved) // has.shared_unit) * has.shared_unit
    if shared:
        blocks = min(blocks, has.shared_bytes // shared)
    return blocks * warps // has.partitions
