"""The figures of a kernel compiled for NVIDIA: counts of its SASS, and the simulated cycles."""

from __future__ import annotations

from . import latency, sass, simulate
from .measures import Measures

SECTOR_BYTES = 32
LANES = 32


def measure_sass(asm: str, target: str, warps: int, trips: int) -> Measures:
    """Reads, counts, simulates twice: once with global loads from L1, once from memory."""
    on = latency.machine(target)
    program = sass.parse(asm)

    def of(kinds: set[str]) -> list[sass.Instruction]:
        return [each for each in program.instructions if each.kind in kinds]

    # LDGSTS fills shared memory from global memory: that is the kernel's load, no exchange.
    loads, stores = of(latency.SHARED_LOADS), of(latency.SHARED_STORES)
    global_bytes = sum(each.bytes for each in of(latency.GLOBAL_LOADS | latency.GLOBAL_STORES))
    return Measures(
        instructions=len(program.instructions),
        shuffles=len(of(latency.SHUFFLES)),
        shared_loads=len(loads),
        shared_stores=len(stores),
        shared_transactions=sum(each.words for each in loads + stores),
        barriers=len(of({"BAR"})),
        registers=program.registers,
        stack_bytes=program.stack_bytes,
        global_sectors=-(-global_bytes * LANES * warps // SECTOR_BYTES),
        cycles=float(simulate.cycles(program, target, warps, trips, on.l1)),
        cycles_memory=float(simulate.cycles(program, target, warps, trips, on.dram)),
    )
