"""What instructions cost on NVIDIA's multiprocessors: pipes, rates and latencies, as data.

# Idea
An instruction of fixed latency needs no table: ptxas has written its stall count. Tables say which
pipe it takes and for how long, and how late a variable one clears its scoreboard.

# Sources
- **G** CUDA C++ Programming Guide, "Throughput of Native Arithmetic Instructions": results a clock
  per SM; a quarter of that is a scheduler's, and 32 lanes divided by it the pipe's cycles a warp.
- **A** Abdelkhalik et al., "Demystifying the Nvidia Ampere Architecture through Microbenchmarking
  and Instruction-level Analysis", 2022, arXiv:2208.11174: A100.
- **H** Luo et al., "Benchmarking and Dissecting the Nvidia Hopper GPU Architecture via
  Microbenchmarking", 2024, arXiv:2402.13499: memory latencies of A100 and H800 by pointer chase,
  which takes 6 cycles of its own: on an A100 it gives 29 and 38 where A gives 23 and 33.
- **B** Burtscher et al., "Characterizing CUDA and OpenMP Synchronization Primitives", IISWC 2024,
  with its logs: on an A100 a barrier of W warps takes 21 + 2 W cycles (23 for one, 85 for 32), a
  shuffle 25.
- **P** The stall counts of ptxas 13 itself, read off kernels of this suite: the distance it keeps
  between independent instructions of one pipe.
- **E** An estimate; what it rests on stands beside it.

sm_100 has no published table of the kind for data-centre parts: Hopper's latencies stand in (E);
rates are of the guide and of ptxas. Products of `tcgen05` run beside the warps, and their opcode
does not say their size: they are not in the estimate. Neither are the cycles that a warp waits for
a barrier in memory that other units arrive at.

# Not here
The order in which things happen: `simulate.py`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from .simulate import Pipe


@dataclass(frozen=True)
class Cost:
    """What issuing one instruction does."""

    pipe: Pipe
    cycles: int
    """For which the pipe takes no other instruction; per word a lane moves if `per_word`."""
    latency: int = 0
    """From the pipe's end to the result, where a scoreboard waits for it."""
    per_word: bool = False


@dataclass(frozen=True)
class Machine:
    """One generation of multiprocessors."""

    fp32: int
    """Cycles of the FMA pipe a warp: 32 lanes over the FP32 lanes of one scheduler (G, P)."""
    integer: int
    """Cycles of the ALU pipe a warp: integer, logic, selections, comparisons (G, P)."""
    packed: int
    """Cycles of a packed pair of FP32 operations (P)."""
    half: int
    """Cycles of a packed pair of f16 operations (G)."""
    fp64: int
    """Cycles of a double-precision operation (G)."""
    tensor: int
    """Multiply-adds of f16 a cycle and scheduler: dense peak of the data sheet, divided."""
    l1: int
    """Latency of a global load that hits L1 (A, H)."""
    dram: int
    """Latency of a global load from memory (H)."""
    shared: int
    """Latency of a shared load behind its passes (A; on sm_90: H)."""
    shuffle: int
    """Latency of a shuffle behind its pass (B)."""


MACHINES = {
    "sm_80": Machine(2, 2, 4, 1, 4, 256, l1=33, dram=466, shared=22, shuffle=24),
    "sm_90": Machine(1, 2, 2, 1, 2, 512, l1=35, dram=479, shared=22, shuffle=24),
    "sm_100": Machine(1, 2, 2, 1, 2, 1024, l1=35, dram=479, shared=22, shuffle=24),
}

SPECIAL_LATENCY = 16
"""Of MUFU behind its pipe's 8 cycles: A measures 18 to 24 in all."""
REGISTER_READ_LATENCY = 20
"""Of S2R, S2UR, R2UR and constant loads to registers: E, from the distance P keeps to their use."""
DOUBLE_LATENCY = 8
"""E."""
TENSOR_LATENCY = 18
"""Of what waits for a matrix product behind its pipe's cycles (E)."""
BARRIER_LATENCY = 21
BARRIER_CYCLES = 2
"""For each arriving warp (B)."""
ATOMIC_LATENCY = 263
"""Of an atomic that returns: it is done in L2 (H)."""
DEFAULT_LATENCY = 20
"""Of what carries a scoreboard and stands in no table (E)."""
FILL_BYTES = 64
"""A cycle from L2 to an SM: the width of its port (E; all of an A100's SMs together get 5120)."""

FMA = {"FADD", "FMUL", "FFMA"}
PACKED = {"FADD2", "FMUL2", "FFMA2"}
IMAD = {"IMAD", "IDP"}
HALF = {"HADD2", "HFMA2", "HMUL2", "HMNMX2", "HSET2", "HSETP2"}
DOUBLE = {"DADD", "DMUL", "DFMA", "DSETP", "DMNMX", "DSET"}
FLOAT = FMA | PACKED | HALF | DOUBLE
SPECIAL = {"MUFU", "I2F", "F2I", "F2F", "FRND", "POPC", "FLO", "BREV", "FCHK"}
LOCAL = {"LDL", "STL"}
GLOBAL_LOADS = {"LDG", "LD", "LDGSTS"}
GLOBAL_STORES = {"STG", "ST"}
GLOBAL = GLOBAL_LOADS | GLOBAL_STORES
SHARED_LOADS = {"LDS", "LDSM"}
SHARED_STORES = {"STS", "STSM"}
ATOMICS = {"ATOM", "ATOMG", "RED", "REDG", "ATOMS"}
SHUFFLES = {"SHFL", "REDUX"}
"""REDUX folds 32 lanes of integers at once: half the rate of a shuffle (G)."""
REGISTER_READS = {"S2R", "S2UR", "R2UR", "LDC", "LDCU", "ULDC", "CS2R"}
CONTROL = {"BRA", "EXIT", "BSSY", "BSYNC", "CALL", "RET", "WARPSYNC", "YIELD", "NOP", "DEPBAR"}

# One for the SM: shuffles, shared memory and L1 take turns on it.
MEMORY = Pipe("memory", shared=True)
BARRIER = Pipe("barrier", shared=True)
FMA_PIPE, ALU, FP64, SPECIAL_PIPE, TENSOR, UNIFORM, BRANCH, TENSOR_MEMORY = (
    Pipe(name)
    for name in ("fma", "alu", "fp64", "special", "tensor", "uniform", "branch", "tensor memory")
)


def machine(target: str) -> Machine:
    """The data of a target such as "sm_90" or "sm_90a"."""
    if found := MACHINES.get(target.rstrip("af")):
        return found
    raise ValueError(f"no cost data for {target}: known are {', '.join(MACHINES)}")


@lru_cache(maxsize=4096)
def cost(target: str, opcode: str, memory: bool) -> Cost:
    """What one instruction costs; global loads come from memory, or else hit L1."""
    on = machine(target)
    kind = opcode.partition(".")[0]
    if kind in FMA:
        return Cost(FMA_PIPE, on.fp32)
    if kind in PACKED:
        return Cost(FMA_PIPE, on.packed)
    if kind in IMAD:
        return Cost(FMA_PIPE, 2)  # G: 64 a clock on all three.
    if kind in HALF:
        return Cost(FMA_PIPE, on.half)
    if kind in DOUBLE:
        return Cost(FP64, on.fp64, DOUBLE_LATENCY)
    if kind in SPECIAL:
        return Cost(SPECIAL_PIPE, 8, SPECIAL_LATENCY)  # G: 16 a clock on all three.
    if kind in SHUFFLES:
        return Cost(MEMORY, 2 if kind == "REDUX" else 1, on.shuffle)  # G: 32 a clock.
    if kind in SHARED_LOADS | SHARED_STORES:
        return Cost(MEMORY, 1, on.shared, per_word=True)
    if kind in LOCAL:
        return Cost(MEMORY, 1, on.l1, per_word=True)
    if kind in GLOBAL_LOADS | GLOBAL_STORES:
        return Cost(MEMORY, 1, on.dram if memory else on.l1, per_word=True)
    if kind in ATOMICS:
        return Cost(MEMORY, 1, on.shared if kind == "ATOMS" else ATOMIC_LATENCY, per_word=True)
    if kind in REGISTER_READS:
        return Cost(UNIFORM, 1, REGISTER_READ_LATENCY)
    if kind == "BAR":
        return Cost(BARRIER, BARRIER_CYCLES, BARRIER_LATENCY)
    if kind in ("HMMA", "IMMA", "QMMA", "DMMA"):
        return Cost(TENSOR, _multiply_adds(opcode) // on.tensor or 1, TENSOR_LATENCY)
    if kind in ("HGMMA", "QGMMA", "IGMMA"):
        # One instruction of four warps, each of which issues it: a quarter of the tile a scheduler.
        return Cost(TENSOR, _multiply_adds(opcode) // (4 * on.tensor) or 1, TENSOR_LATENCY)
    if kind in ("LDTM", "STTM"):
        return Cost(TENSOR_MEMORY, 1, DEFAULT_LATENCY, per_word=True)  # E
    if kind in CONTROL:
        return Cost(BRANCH, 1)
    if kind.startswith("U"):
        return Cost(UNIFORM, 1, DEFAULT_LATENCY)
    return Cost(ALU, on.integer, DEFAULT_LATENCY)


def _multiply_adds(opcode: str) -> int:
    """Of a matrix instruction whose opcode names its shape: HMMA.16816, HGMMA.64x128x16."""
    for part in opcode.split("."):
        if shape := re.fullmatch(r"(\d+)x(\d+)x(\d+)", part):
            return int(shape[1]) * int(shape[2]) * int(shape[3])
        if shape := re.fullmatch(r"(16)(8)(\d+)", part):
            return int(shape[1]) * int(shape[2]) * int(shape[3])
    return 16 * 8 * 16
