"""Operations of a whole warp: shuffles, reductions, matrix loads and stores."""

import numpy as np

from . import floats
from .access import active, address_reader, pieces_at, store_pieces
from .alu import SIGNED, kind_bits
from .compile import Context, Step, handles
from .errors import PtxError
from .machine import LANES, Cta
from .memory import Who
from .parser import Inst, Pair, Vec
from .symbolic import whole


@handles("shfl")
def _shuffle(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 4 or inst.op[1] != "sync" or inst.op[3] != "b32" or len(inst.operands) != 5:
        raise inst.unknown("shuffle form is not known")
    mode = inst.op[2]
    if mode not in ("bfly", "idx", "up", "down"):
        raise inst.unknown("shuffle mode is not known")
    target = inst.operands[0]
    slot = ctx.destination(target.first if isinstance(target, Pair) else target, 32)
    hit = ctx.destination(target.second, 1) if isinstance(target, Pair) else None
    value, lane, clamp, members = (ctx.reader(operand, 32) for operand in inst.operands[1:])
    track = ctx.pieces(inst.operands[1])

    def step(cta: Cta) -> None:
        cta.whole_warps(members(cta))
        own = cta.tid % LANES
        by, control = lane(cta).astype(np.int64) & 31, clamp(cta).astype(np.int64)
        limit, segment = control & 31, (control >> 8) & 31
        top = (own & segment) | (limit & ~segment)
        bottom = own & segment
        source = {
            "bfly": own ^ by, "idx": bottom | (by & ~segment), "up": own - by, "down": own + by,
        }[mode]  # fmt: skip
        inside = source >= top if mode == "up" else source <= top
        source = np.where(inside, source, own) + cta.warp * LANES
        cta.write(slot, value(cta)[source])
        if hit is not None:
            cta.write(hit, inside)
        if cta.graph is not None:
            pieces = track(cta)
            cta.write_pieces(slot, 32, None if pieces is None else pieces[:, source])

    return step


@handles("redux")
def _redux(ctx: Context, inst: Inst) -> Step:
    *mods, kind = inst.op[2:] or ("",)
    if inst.op[1:2] != ("sync",) or not mods or len(inst.operands) != 3:
        raise inst.unknown("warp reduction form is not known")
    op, rest = mods[0], mods[1:]
    slot = ctx.destination(inst.operands[0], 32)
    value, members = (ctx.reader(operand, 32) for operand in inst.operands[1:])
    track = ctx.pieces(inst.operands[1])
    combine = _combine(inst, op, rest, kind)

    def step(cta: Cta) -> None:
        cta.whole_warps(members(cta))
        pieces = track(cta)
        if pieces is not None and pieces[:, cta.mask].any():
            raise PtxError("a warp reduction of symbolic values has no tree")
        rows = value(cta).reshape(-1, LANES)
        while rows.shape[1] > 1:
            rows = combine(rows[:, 0::2].ravel(), rows[:, 1::2].ravel()).reshape(len(rows), -1)
        cta.write(slot, np.repeat(rows[:, 0], LANES))
        if cta.graph is not None:
            cta.write_pieces(slot, 32, None)

    return step


def _combine(inst: Inst, op: str, rest: list[str], kind: str):
    """The order-insensitive operation of a warp reduction."""
    if kind == "f32" and op in ("min", "max") and set(rest) <= {"NaN"}:
        return lambda a, b: floats.extremum(op, a, b, "f32", bool(rest))
    if rest or kind_bits(inst, kind) != 32:
        raise inst.unknown("warp reduction is not known")
    logic = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    if kind == "b32" and op in logic:
        return logic[op]
    if kind in ("s32", "u32") and op == "add":
        return np.add
    if kind in ("s32", "u32") and op in ("min", "max"):
        view = SIGNED[32] if kind == "s32" else np.uint32
        choose = np.minimum if op == "min" else np.maximum
        return lambda a, b: choose(a.view(view), b.view(view)).view(np.uint32)
    raise inst.unknown("warp reduction is not known")


@handles("bar")
def _warp_barrier(ctx: Context, inst: Inst) -> Step:
    if inst.op != ("bar", "warp", "sync") or len(inst.operands) != 1:
        raise inst.unknown("barrier form is not known")
    members = ctx.reader(inst.operands[0], 32)

    def step(cta: Cta) -> None:
        cta.whole_warps(members(cta))
        cta.warp_epoch = cta.warp_epoch + cta.mask

    return step


def _matrix(inst: Inst) -> tuple[int, bool]:
    """Number of 8x8 matrices and whether they are transposed."""
    mods = list(inst.op[1:])
    if mods[:3] != ["sync", "aligned", "m8n8"] or mods[3:4] not in (["x1"], ["x2"], ["x4"]):
        raise inst.unknown("matrix access form is not known")
    transposed = mods[4:5] == ["trans"]
    if mods[4 + transposed :] != ["shared", "b16"]:
        raise inst.unknown("matrix access form is not known")
    return int(mods[3][1]), transposed


def _rows(cta: Cta, address: np.ndarray, matrix: int) -> np.ndarray:
    """Offsets of one matrix's eight rows in each active warp: shape (warps, 8)."""
    rows = address.reshape(-1, LANES)[:, 8 * matrix : 8 * matrix + 8]
    live = cta.mask.reshape(-1, LANES).any(1)
    return cta.memory["shared"].offsets(rows[live].ravel(), 16, 2).reshape(-1, 8)


def _places(transposed: bool) -> tuple[np.ndarray, np.ndarray]:
    """Row and column of the two elements each lane holds: shape (32, 2)."""
    lane, half = np.arange(LANES)[:, None], np.arange(2)[None, :]
    row, column = np.broadcast_to(lane // 4, (LANES, 2)), lane % 4 * 2 + half
    return (column, row) if transposed else (row, column)


def _accessors(cta: Cta, threads: np.ndarray) -> Who:
    """Each lane touches its two elements."""
    wide = (np.repeat(column, 2) for column in vars(cta.who(threads)).values())
    return Who(*wide)


@handles("ldmatrix")
def _load_matrix(ctx: Context, inst: Inst) -> Step:
    count, transposed = _matrix(inst)
    items = inst.operands[0].items if isinstance(inst.operands[0], Vec) else ()
    if len(items) != count or inst.guard:
        raise inst.unknown(f"{count} unguarded destinations are expected")
    slots = [ctx.destination(item, 32) for item in items]
    read = address_reader(ctx, inst, inst.operands[1], "shared")
    row, column = _places(transposed)

    def step(cta: Cta) -> None:
        cta.whole_warps(np.full(cta.threads, 0xFFFFFFFF, np.uint32))
        memory, threads, address = cta.memory["shared"], active(cta), read(cta)
        for matrix, slot in enumerate(slots):
            at = (_rows(cta, address, matrix)[:, row] + column * 2).ravel()
            halves = memory.load(at, 2, 1, _accessors(cta, threads)).reshape(-1, 2)
            value = np.zeros(cta.threads, np.uint32)
            value[threads] = np.ascontiguousarray(halves).view(np.uint32).ravel()
            cta.write(slot, value)
            if cta.graph is not None:
                rows = np.zeros((2, cta.threads), np.int64)
                found = memory.pieces[pieces_at(memory, at, 2)].reshape(-1, 2)
                rows[:, threads] = found.T
                cta.write_pieces(slot, 32, rows)

    return step


@handles("stmatrix")
def _store_matrix(ctx: Context, inst: Inst) -> Step:
    count, transposed = _matrix(inst)
    items = inst.operands[1].items if isinstance(inst.operands[1], Vec) else ()
    if len(items) != count or inst.guard:
        raise inst.unknown(f"{count} unguarded sources are expected")
    sources = [ctx.reader(item, 32) for item in items]
    trackers = [ctx.pieces(item) for item in items]
    read = address_reader(ctx, inst, inst.operands[0], "shared")
    row, column = _places(transposed)

    def step(cta: Cta) -> None:
        cta.whole_warps(np.full(cta.threads, 0xFFFFFFFF, np.uint32))
        memory, threads, address = cta.memory["shared"], active(cta), read(cta)
        for matrix, source in enumerate(sources):
            at = (_rows(cta, address, matrix)[:, row] + column * 2).ravel()
            halves = np.ascontiguousarray(source(cta)[threads]).view(np.uint16).reshape(-1, 1)
            memory.store(at, halves, _accessors(cta, threads))
            if memory.pieces is not None:
                pieces = whole(trackers[matrix](cta), 32, cta.threads)
                for half in range(2):
                    rows = pieces[half : half + 1]
                    store_pieces(cta, memory, at.reshape(-1, 2)[:, half], 2, rows, threads)

    return step
