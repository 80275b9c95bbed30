"""A small, strict executor of the PTX that Triton compiles, for tests on machines without a GPU.

# Idea
`run` executes every CTA of a launch bit for bit and reports races, divergence at barriers, and
accesses out of bounds, misaligned or uninitialised. `tree` executes once more with dependence trees
beside the bits and judges whether each output is the canonical tree over its leaves.

# Not here
Anything fast or complete: an instruction outside the known set is an error (`errors.UnknownPtx`).
"""

import gc
from functools import lru_cache

import numpy as np

from . import access, alu, exchange, moves  # noqa: F401 (register their handlers)
from .compile import Code, bind, compile_program
from .errors import Divergence, MemoryFault, PtxError, Race, UnknownPtx
from .floats import UNSIGNED
from .machine import Cta, Launch, execute
from .memory import Buffer, copy_back, global_memory, shared_memory
from .parser import Program, parse, registers
from .symbolic import Graph, Tree, verdict

__all__ = [
    "Buffer", "Divergence", "MemoryFault", "Program", "PtxError", "Race", "Tree", "UnknownPtx",
    "contractions", "parse", "run", "tree_digest",
]  # fmt: skip

SHARED_LIMIT = 227 * 1024
Argument = Buffer | int | float | np.generic


@lru_cache(maxsize=8)
def _compiled(ptx: str, options: frozenset[str]) -> Code:
    # Hundreds of thousands of small objects, none of them garbage.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return compile_program(parse(ptx), options)
    finally:
        if collecting:
            gc.enable()


def _arguments(code: Code, args: list[Argument]) -> list[int]:
    values = []
    for arg, (_, width) in zip(args, code.program.params, strict=False):
        if isinstance(arg, Buffer):
            values.append(arg.address)
        elif isinstance(arg, (float, np.floating)):
            native = {16: np.float16, 32: np.float32, 64: np.float64}[width]
            values.append(int(native(arg).view(UNSIGNED[width])))
        else:
            values.append(int(arg))
    return bind(code, values)


def _launch(
    ptx: str, grid: tuple[int, ...], args: list[Argument], num_warps: int, shared: int,
    approximate: bool, graph: Graph | None,
):  # fmt: skip
    code = _compiled(ptx, frozenset({"approximate"} if approximate else ()))
    threads = code.program.threads
    if threads != 32 * num_warps:
        raise PtxError(f"compiled for {threads} threads, launched with {num_warps} warps")
    buffers = [arg for arg in args if isinstance(arg, Buffer)]
    memory = global_memory(buffers)
    values = _arguments(code, args)
    if graph is not None:
        memory.pieces = np.zeros(memory.data.size // 2, np.int64)
        for number, buffer in enumerate(buffers):
            if buffer.leaves:
                start = (buffer.address - memory.base) // 2
                pieces = graph.leaves(number, buffer.data.size, buffer.data.itemsize)
                memory.pieces[start : start + pieces.size] = pieces
    grid = (*grid, 1, 1)[:3]
    launch = Launch(threads, grid, code.slots, values, memory, graph)
    with np.errstate(all="ignore"):
        for number in range(grid[0] * grid[1] * grid[2]):
            local = shared_memory(shared)
            if graph is not None:
                local.pieces = np.zeros(local.data.size // 2, np.int64)
            cta = Cta(launch, number, local)
            execute(cta, code)
    copy_back(memory, buffers)
    return memory, buffers


def run(
    ptx: str, grid: tuple[int, ...], args: list[Argument], num_warps: int,
    shared: int = SHARED_LIMIT, approximate: bool = False,
) -> None:  # fmt: skip
    """Runs a launch; results are in the writable buffers' `data` afterwards.

    `shared` is the launch's shared memory in bytes. `approximate` lets `div.full` through as if it
    were correctly rounded, for kernels whose bits are not under test.
    """
    _launch(ptx, grid, args, num_warps, shared, approximate, None)


def tree_digest(
    ptx: str, grid: tuple[int, ...], args: list[Argument], num_warps: int,
    shared: int = SHARED_LIMIT, extent: int | None = None,
) -> Tree:  # fmt: skip
    """Judges the dependence trees of all outputs computed from buffers marked `leaves`.

    The result unpacks as (canonical, digest); `extent` is the number of leaves each must have.
    """
    graph = Graph()
    memory, buffers = _launch(ptx, grid, args, num_warps, shared, False, graph)
    outputs = []
    for number, buffer in enumerate(buffers):
        if not buffer.writable:
            continue
        unit = buffer.data.itemsize
        start = (buffer.address - memory.base) // 2
        rows = memory.pieces[start : start + buffer.data.nbytes // 2].reshape(-1, unit // 2)
        bits = buffer.data.reshape(-1).view(UNSIGNED[unit * 8])
        kind = {2: "f16", 4: "f32", 8: "f64"}[unit]
        ids = graph.ids(rows.T, bits, kind, np.ones(len(rows), bool))
        outputs += [(number, at * unit, int(node)) for at, node in enumerate(ids) if node]
    return verdict(graph, outputs, extent)


def contractions(ptx: str) -> list[str]:
    """Additions that ptxas may fuse with a product: neither states its rounding.

    A product without `.rn` whose result reaches, at most through moves, an addition or subtraction
    without `.rn`.
    """
    program, products, found = parse(ptx), set(), []
    for inst in program.insts:
        target, *sources = (registers(operand) for operand in inst.operands or ((),))
        reads_product = any(products & set(source) for source in sources)
        if inst.op[0] == "mov" and reads_product:
            products.update(target)
        elif "rn" in inst.op or not inst.op[-1].startswith(("f", "bf")):
            continue
        elif inst.op[0] == "mul":
            products.update(target)
        elif inst.op[0] in ("add", "sub") and reads_product:
            found.append(f"line {inst.line}: {inst.text}")
    return found
