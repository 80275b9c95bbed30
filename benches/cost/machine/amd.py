"""The figures of a kernel compiled for AMD: counts of its assembly, and the simulated cycles.

# Idea
A wave of 64 takes a SIMD of 16 lanes four cycles, and so does all else that a wave issues: every
stall is four cycles, times the states of an `s_nop`. What is under way is counted by `vmcnt` and
`lgkmcnt`, and `s_waitcnt` says how much of it may be left: those are the simulation's scoreboards.

llvm-mca was tried first (LLVM 22, gfx942 and gfx950). Its model gives every barrier 500 cycles, an
LDS access or `ds_bpermute` 5, a global load 80, and knows one wave only, so that a kernel's
estimate is that of its barriers; it does not serve.

# Sources
- **R** ROCm Compute Profiler's documentation, "Compute unit", "Local data share" and "Vector L1
  cache": four SIMDs of 16 lanes, 128 bytes of LDS and 64 bytes of L1 a cycle and CU.
- **L** LLVM's AMDGPU back end: 32-bit multiplication and transcendental functions at a quarter of
  the rate, f64 at the full rate (`AMDGPUTargetTransformInfo`); `v_permlane*_swap` as two operations
  (the scheduling model of gfx950).
- **D** AMD's data sheets of MI300X and MI355X: dense f16 peak, divided by CUs, clock and SIMDs.
- **E** Estimates: AMD publishes no latencies. LDS is said to stand an order of magnitude below
  memory (AMD, "AMD GCN Assembly: Cross-Lane Operations"); the figures are round ones of published
  measurements of MI300X, and the same for both compilations.

# Not here
Reading the text (`amdgcn.py`); hazards that the compiler has already filled with `s_nop`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import amdgcn, flow, simulate
from .amdgcn import Instruction
from .measures import Measures
from .simulate import Pipe, Step

LANES = 64
SECTOR_BYTES = 32
ISSUE = 4
"""Cycles between two instructions of one wave (R)."""

LDS_BYTES = 128
L1_BYTES = 64
FILL_BYTES = 64
"""A cycle and CU (R; from L2 to a CU: E)."""
LDS_LATENCY = 64
L1_LATENCY = 120
DRAM_LATENCY = 750
SCALAR_LATENCY = 50
BARRIER_LATENCY = 24
"""E."""
QUARTER_RATE = 4 * ISSUE

MULTIPLY_ADDS = {"gfx942": 256, "gfx950": 512}
"""Of f16 matrices, a cycle and SIMD (D)."""

VECTOR, MATRIX, SCALAR, BRANCH = (Pipe(name) for name in ("vector", "matrix", "scalar", "branch"))
LDS, L1, BARRIER = (Pipe(name, shared=True) for name in ("lds", "l1", "barrier"))

VM, LGKM = 0, 1
COUNTERS = {"vmcnt": VM, "lgkmcnt": LGKM}

SLOW = re.compile(r"v_(rcp|rsq|sqrt|exp|log|sin|cos|mul_lo_u32|mul_hi|mad_u64_u32|mad_i64_i32)")
SHAPE = re.compile(r"_(\d+)x(\d+)x(\d+)_?(?:\db_)?(\w+)$")
FLOAT = re.compile(r"v_(pk_)?(add|sub|mul|fma|fmac|mac|max|min)_f(16|32|64)|v_mfma")
PERMUTES = ("ds_swizzle", "ds_bpermute", "ds_permute")
LDS_PASSES = LANES * 4 // LDS_BYTES
"""Of 32 words, that a wave needs for one word a lane."""


def measure(asm: str, target: str, warps: int, trips: int) -> Measures:
    """Reads, counts, simulates twice: once with global loads from L1, once from memory."""
    if target not in MULTIPLY_ADDS:
        raise ValueError(f"no cost data for {target}: known are {', '.join(MULTIPLY_ADDS)}")
    program = amdgcn.parse(asm)

    def of(*prefixes: str) -> list[Instruction]:
        return [each for each in program.instructions if each.opcode.startswith(prefixes)]

    loads, stores, permutes = of("ds_read"), of("ds_write"), of(*PERMUTES)
    crossing = [each for each in program.instructions if each.crosses_lanes]
    path = flow.path(program.ways, trips, [_work(each) for each in program.instructions])

    def sectors(instructions: Iterable[Instruction]) -> int:
        moved = sum(each.bytes for each in instructions if _is_global(each))
        return -(-moved * LANES * warps // SECTOR_BYTES)

    def cycles(memory: bool) -> float:
        steps = [_step(each, target, memory) for each in program.instructions]
        return float(simulate.cycles([steps[at] for at in path], warps))

    return Measures(
        instructions=len(program.instructions),
        shuffles=len(crossing) + len(permutes),
        # Vector instructions cost their issue; those of the LDS unit a pass like an access.
        shuffle_slots=sum(2 if "_swap" in each.opcode else 1 for each in crossing)
        + (1 + LDS_PASSES) * len(permutes),
        shared_loads=len(loads),
        shared_stores=len(stores),
        shared_transactions=LDS_PASSES * sum(each.words for each in loads + stores),
        barriers=len(of("s_barrier")),
        registers=program.registers,
        stack_bytes=program.stack_bytes,
        global_sectors=sectors(program.instructions),
        path_sectors=sectors(program.instructions[at] for at in path),
        cycles=cycles(memory=False),
        cycles_memory=cycles(memory=True),
    )


def _work(instruction: Instruction) -> flow.Work:
    opcode = instruction.opcode
    moved = instruction.bytes if _is_global(instruction) else 0
    return (
        moved if "_load" in opcode else 0,
        moved if "_store" in opcode else 0,
        int(instruction.crosses_lanes or opcode.startswith(PERMUTES)),
        int(opcode.startswith("ds_read")),
        int(opcode.startswith("ds_write")),
        int(opcode == "s_barrier"),
        int(bool(FLOAT.match(opcode))),
    )


def _is_global(instruction: Instruction) -> bool:
    return bool(re.match(r"(global|buffer|flat)_(load|store)", instruction.opcode))


def _step(instruction: Instruction, target: str, memory: bool) -> Step:
    opcode = instruction.opcode
    if opcode.startswith("v_mfma"):
        return Step(MATRIX, _matrix_cycles(opcode, target), ISSUE)
    if opcode.startswith("v_"):
        slow = QUARTER_RATE if SLOW.match(opcode) else ISSUE
        return Step(VECTOR, 2 * ISSUE if "_swap" in opcode else slow, ISSUE)
    if opcode.startswith("ds_"):
        words = 1 if opcode.startswith(PERMUTES) else instruction.words
        return Step(LDS, LDS_PASSES * words, ISSUE, LDS_LATENCY, write=LGKM)
    if re.match(r"(global|buffer|flat|scratch)_", opcode):
        moved = instruction.bytes * LANES
        missed = memory and _is_global(instruction) and "_load" in opcode
        return Step(
            L1,
            -(-moved // L1_BYTES),
            ISSUE,
            DRAM_LATENCY if missed else L1_LATENCY,
            fill=-(-moved // FILL_BYTES) if missed else 0,
            write=VM,
        )
    return _scalar_step(instruction)


def _scalar_step(instruction: Instruction) -> Step:
    opcode = instruction.opcode
    if opcode.startswith(("s_load", "s_buffer_load")):
        return Step(SCALAR, ISSUE, ISSUE, SCALAR_LATENCY, write=LGKM)
    if opcode == "s_barrier":
        return Step(BARRIER, 1, ISSUE, BARRIER_LATENCY, barrier=True)
    if opcode == "s_waitcnt":
        left = re.findall(r"(vmcnt|lgkmcnt)\((\d+)\)", instruction.operands)
        return Step(BRANCH, 1, ISSUE, waits=tuple((COUNTERS[name], int(n)) for name, n in left))
    if opcode == "s_nop":
        return Step(BRANCH, 1, ISSUE * (1 + int(instruction.operands, 0)))
    if opcode.startswith(("s_branch", "s_cbranch", "s_endpgm")):
        return Step(BRANCH, 1, ISSUE)
    return Step(SCALAR, ISSUE, ISSUE)


def _matrix_cycles(opcode: str, target: str) -> int:
    """Of a product such as `v_mfma_f32_32x32x8_f16`."""
    if not (shape := SHAPE.search(opcode)):
        return QUARTER_RATE
    rate = MULTIPLY_ADDS[target]
    if shape[4] in ("f32", "f64", "xf32"):
        rate = 32
    elif "8" in shape[4]:
        rate *= 2
    return max(int(shape[1]) * int(shape[2]) * int(shape[3]) // rate, ISSUE)
