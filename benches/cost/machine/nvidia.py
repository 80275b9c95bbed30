"""The figures of a kernel compiled for NVIDIA: counts of its SASS, and the simulated cycles.

# Idea
The control word becomes what the simulation waits for: its wait mask names scoreboards that must be
clear, its read and write fields the scoreboards that the instruction holds. Two more scoreboards
stand beside the six: one counts warpgroup products, one copies to shared memory.

# Not here
What instructions cost (`latency.py`), in which order they issue (`simulate.py`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import flow, latency, sass, simulate
from .measures import Measures
from .simulate import Step

SECTOR_BYTES = 32
LANES = 32
SHUFFLE_SLOTS = 2
"""A shuffle is its issue and its pass through the memory pipe, which schedulers share four to one
at one warp a cycle: see `measures.py`."""

SCOREBOARDS = 6
WARPGROUP = 6
COPIES = 7
KEEP = re.compile(r"(?:SB(?P<board>\d)|gsb0), (?P<left>0x[0-9a-f]+)")


def measure(asm: str, target: str, warps: int, trips: int) -> Measures:
    """Reads, counts, simulates twice: once with global loads from L1, once from memory."""
    program = sass.parse(asm)

    def of(kinds: set[str]) -> list[sass.Instruction]:
        return [each for each in program.instructions if each.kind in kinds]

    # LDGSTS fills shared memory from global memory: that is the kernel's load, no exchange.
    loads, stores = of(latency.SHARED_LOADS), of(latency.SHARED_STORES)
    shuffles = of(latency.SHUFFLES)
    path = way(program, trips)

    def sectors(instructions: Iterable[sass.Instruction]) -> int:
        moved = sum(each.bytes for each in instructions if each.kind in latency.GLOBAL)
        return -(-moved * LANES * warps // SECTOR_BYTES)

    def cycles(memory: bool) -> float:
        todo = steps(program, target, memory)
        return float(simulate.cycles([todo[at] for at in path], warps))

    return Measures(
        instructions=len(program.instructions),
        shuffles=len(shuffles),
        shuffle_slots=SHUFFLE_SLOTS * len(shuffles),
        shared_loads=len(loads),
        shared_stores=len(stores),
        shared_transactions=sum(each.words for each in loads + stores),
        barriers=len(of({"BAR"})),
        registers=program.registers,
        stack_bytes=program.stack_bytes,
        global_sectors=sectors(program.instructions),
        path_sectors=sectors(program.instructions[at] for at in path),
        cycles=cycles(memory=False),
        cycles_memory=cycles(memory=True),
    )


def way(program: sass.Program, trips: int) -> list[int]:
    """The instructions that a warp executes, in order."""
    return flow.path(program.ways, trips, [_work(each) for each in program.instructions])


def steps(program: sass.Program, target: str, memory: bool) -> list[Step]:
    """What issuing each instruction does; global loads come from memory, or else hit L1."""
    return [_step(each, target, memory) for each in program.instructions]


def _work(instruction: sass.Instruction) -> flow.Work:
    kind = instruction.kind
    # ptxas moves constants with the arithmetic pipes, too: HFMA2 R0, -RZ, RZ, 0, 0.
    computes = kind in latency.FLOAT and "-RZ, RZ" not in instruction.operands
    return (
        instruction.bytes if kind in latency.GLOBAL_LOADS else 0,
        instruction.bytes if kind in latency.GLOBAL_STORES else 0,
        int(kind in latency.SHUFFLES),
        int(kind in latency.SHARED_LOADS),
        int(kind in latency.SHARED_STORES),
        int(kind == "BAR"),
        int(computes),
    )


def _step(instruction: sass.Instruction, target: str, memory: bool) -> Step:
    cost = latency.cost(target, instruction.opcode, memory)
    kind = instruction.kind
    waits = [(board, 0) for board in range(SCOREBOARDS) if instruction.waits >> board & 1]
    keep = KEEP.match(instruction.operands) if "DEPBAR.LE" in instruction.opcode else None
    if keep:
        waits.append((int(keep["board"] or WARPGROUP), int(keep["left"], 16)))
    write = instruction.write
    if keep is None and "gsb0" in instruction.operands:
        write = WARPGROUP
    elif kind == "LDGSTS":
        write = COPIES
    missed = memory and kind in latency.GLOBAL_LOADS
    return Step(
        pipe=cost.pipe,
        occupied=cost.cycles * (instruction.words if cost.per_word else 1),
        stall=max(instruction.stall, 1),
        latency=cost.latency,
        fill=-(-instruction.bytes * LANES // latency.FILL_BYTES) if missed else 0,
        waits=tuple(waits),
        read=instruction.read,
        write=write,
        barrier=kind == "BAR" and not instruction.opcode.startswith("BAR.ARV"),
        gathers=COPIES if kind == "LDGDEPBAR" else None,
    )
