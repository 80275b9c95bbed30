"""Loads and stores."""

import numpy as np

from .compile import SHARED_BASE, Context, Step, handles
from .errors import PtxError
from .floats import UNSIGNED
from .machine import Cta
from .memory import Memory
from .parser import Addr, Inst, Operand, Reg, Sym, Vec
from .symbolic import whole


def address_reader(ctx: Context, inst: Inst, operand: Operand, space: str):
    """Reads `[base + offset]` as 64-bit addresses."""
    if not isinstance(operand, Addr):
        raise inst.unknown("an address is expected")
    base, offset = operand.base, np.int64(operand.offset)
    if isinstance(base, Sym):
        if base.name != "global_smem" or space != "shared":
            raise inst.unknown(f"symbol {base.name} is not known")
        fixed = np.full(ctx.threads, SHARED_BASE + operand.offset, np.int64)
        return lambda cta: fixed
    if not isinstance(base, Reg) or ctx.bits(base) not in (32, 64):
        raise inst.unknown("address register is not known")
    if space == "global" and ctx.bits(base) != 64:
        raise inst.unknown("a global address has 64 bits")
    read = ctx.reader(base, ctx.bits(base))
    return lambda cta: read(cta).astype(np.int64) + offset


def _shape(inst: Inst, allowed: tuple[str, ...]) -> tuple[str, int, int]:
    """Space, element count and element bytes of `ld.space[.v2|.v4].type`."""
    parts = list(inst.op[1:])
    space = parts.pop(0) if parts else ""
    count = int(parts.pop(0)[1]) if parts and parts[0] in ("v2", "v4", "v8") else 1
    if space not in allowed or len(parts) != 1 or parts[0].lstrip("busf") not in (
        "8", "16", "32", "64",
    ):  # fmt: skip
        raise inst.unknown("memory access form is not known")
    return space, count, int(parts[0].lstrip("busf")) // 8


def _items(operand: Operand, count: int, inst: Inst) -> tuple:
    items = operand.items if isinstance(operand, Vec) else (operand,)
    if len(items) != count:
        raise inst.unknown(f"{count} registers are expected")
    return items


def active(cta: Cta) -> np.ndarray:
    """Indices of the threads under the mask."""
    return cta.tid if cta.full else np.flatnonzero(cta.mask)


def scatter(cta: Cta, threads: np.ndarray, values: np.ndarray, width: int) -> np.ndarray:
    """Per-thread values as a register, zero-extended."""
    out = np.zeros(cta.threads, UNSIGNED[width])
    out[threads] = values
    return out


def pieces_at(memory: Memory, at: np.ndarray, unit: int) -> np.ndarray:
    """Indices into `memory.pieces` of elements of `unit` bytes."""
    return (at // 2)[:, None] + np.arange(max(unit // 2, 1))


def _load_pieces(
    cta: Cta, memory: Memory, at: np.ndarray, unit: int, threads: np.ndarray
) -> np.ndarray | None:
    if memory.pieces is None:
        return None
    rows = memory.pieces[pieces_at(memory, at, unit)]
    if not rows.any():
        return None
    if unit == 1:
        raise PtxError("a byte of a symbolic value is read")
    out = np.zeros((rows.shape[1], cta.threads), np.int64)
    out[:, threads] = rows.T
    return out


def _extended(rows: np.ndarray | None, width: int, threads: int) -> np.ndarray | None:
    """Pieces of a zero-extended value."""
    if rows is None or len(rows) == width // 16:
        return rows
    return np.concatenate([rows, np.zeros((width // 16 - len(rows), threads), np.int64)])


@handles("ld")
def _load(ctx: Context, inst: Inst) -> Step:
    if inst.op[1:2] == ("param",):
        return _load_param(ctx, inst)
    space, count, unit = _shape(inst, ("global", "shared"))
    items = _items(inst.operands[0], count, inst)
    read = address_reader(ctx, inst, inst.operands[1], space)
    widths = [ctx.bits(item) for item in items]
    if any(width < unit * 8 for width in widths):
        raise inst.unknown("destination registers do not fit the access")
    slots = [ctx.destination(item, width) for item, width in zip(items, widths, strict=True)]

    def step(cta: Cta) -> None:
        memory, threads = cta.memory[space], active(cta)
        at = memory.offsets(read(cta)[threads], unit * count, unit)
        values = memory.load(at, unit, count, cta.who(threads))
        for k, (slot, width) in enumerate(zip(slots, widths, strict=True)):
            cta.write(slot, scatter(cta, threads, values[:, k], width))
            if cta.graph is not None:
                rows = _load_pieces(cta, memory, at + k * unit, unit, threads)
                cta.write_pieces(slot, width, _extended(rows, width, cta.threads))

    return step


def _load_param(ctx: Context, inst: Inst) -> Step:
    address = inst.operands[1]
    if len(inst.op) != 3 or not isinstance(address, Addr) or address.offset:
        raise inst.unknown("parameter load form is not known")
    width = int(inst.op[2].lstrip("busf"))
    name = address.base.name if isinstance(address.base, Sym) else ""
    if name not in ctx.params or ctx.program.params[ctx.params[name]][1] != width:
        raise inst.unknown("parameter is not known or has another width")
    slot, number = ctx.destination(inst.operands[0], width), ctx.params[name]

    def step(cta: Cta) -> None:
        value = cta.arguments[number] & ((1 << width) - 1)
        cta.write(slot, np.full(cta.threads, value, UNSIGNED[width]))
        if cta.graph is not None:
            cta.write_pieces(slot, width, None)

    return step


@handles("st")
def _store(ctx: Context, inst: Inst) -> Step:
    space, count, unit = _shape(inst, ("global", "shared"))
    items = _items(inst.operands[1], count, inst)
    read = address_reader(ctx, inst, inst.operands[0], space)
    widths = [ctx.bits(item) if isinstance(item, Reg) else unit * 8 for item in items]
    if any(width < unit * 8 for width in widths):
        raise inst.unknown("source registers do not fit the access")
    sources = [ctx.reader(item, width) for item, width in zip(items, widths, strict=True)]
    trackers = [ctx.pieces(item) for item in items]

    def step(cta: Cta) -> None:
        memory, threads = cta.memory[space], active(cta)
        at = memory.offsets(read(cta)[threads], unit * count, unit)
        columns = [source(cta)[threads].astype(UNSIGNED[unit * 8]) for source in sources]
        memory.store(at, np.stack(columns, axis=1), cta.who(threads))
        if memory.pieces is not None:
            for k, track in enumerate(trackers):
                store_pieces(cta, memory, at + k * unit, unit, track(cta), threads)

    return step


def store_pieces(
    cta: Cta, memory: Memory, at: np.ndarray, unit: int, pieces: np.ndarray | None,
    threads: np.ndarray,
) -> None:  # fmt: skip
    """Writes pieces beside the bytes; replicated stores must agree on them too."""
    rows = whole(pieces, unit * 8, cta.threads)[: max(unit // 2, 1), threads].T
    if unit == 1 and rows.any():
        raise PtxError("a byte of a symbolic value is stored")
    index = pieces_at(memory, at, unit)
    memory.pieces[index] = rows
    if not np.array_equal(memory.pieces[index], rows):
        raise PtxError("threads store values of different trees to one address")
