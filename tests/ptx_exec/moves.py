"""Moves, selections and bit manipulation: what carries a value along without computing on it."""

import numpy as np

from . import symbolic
from .alu import SIGNED, join, kind_bits, opaque, pack, unpack
from .compile import Context, Step, handles, operation
from .floats import UNSIGNED
from .machine import Cta
from .parser import Imm, Inst, Sym, Vec
from .symbolic import Pieces


def _held(kind: str) -> int:
    """The width of a move's type, floats included."""
    return 1 if kind == "pred" else int(kind.lstrip("usbf"))


@handles("mov")
def _mov(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2 or len(inst.operands) != 2:
        raise inst.unknown("move form is not known")
    width = _held(inst.op[1])
    target, source = inst.operands
    if isinstance(target, Vec):
        return _unpack(ctx, inst, target.items, width)
    if isinstance(source, Vec):
        return _pack(ctx, inst, source.items, width)
    if width == 1 and isinstance(source, Imm):
        slot, value = ctx.destination(target, 1), np.full(ctx.threads, source.value != 0)
        return lambda cta: cta.write(slot, value)
    return operation(ctx, inst, (width, width), lambda a: a, lambda cta, values, pieces: pieces[0])


def _pack(ctx: Context, inst: Inst, items: tuple, width: int) -> Step:
    part = width // len(items)
    slot = ctx.destination(inst.operands[0], width)
    readers = [ctx.reader(item, part) for item in items]
    trackers = [ctx.pieces(item) for item in items]

    def step(cta: Cta) -> None:
        cta.write(slot, pack([read(cta) for read in readers]))
        if cta.graph is not None:
            rows = join([track(cta) for track in trackers], part, cta.threads)
            cta.write_pieces(slot, width, rows)

    return step


def _unpack(ctx: Context, inst: Inst, items: tuple, width: int) -> Step:
    part = width // len(items)
    read, track = ctx.reader(inst.operands[1], width), ctx.pieces(inst.operands[1])
    slots = [None if item == Sym("_") else ctx.destination(item, part) for item in items]

    def step(cta: Cta) -> None:
        parts, pieces = unpack(read(cta), part, len(slots)), track(cta)
        for at, slot in enumerate(slots):
            if slot is None:
                continue
            cta.write(slot, parts[at])
            if cta.graph is not None:
                per = part // 16
                rows = None if pieces is None else pieces[at * per : (at + 1) * per]
                cta.write_pieces(slot, part, rows)

    return step


@handles("selp")
def _selp(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2:
        raise inst.unknown("selection form is not known")
    width = _held(inst.op[1])

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        a, b = (symbolic.whole(piece, width, cta.threads) for piece in pieces[:2])
        return np.where(values[2], a, b)

    return operation(ctx, inst, (width, width, width, 1), lambda a, b, p: np.where(p, a, b), shadow)


def _keeping(op: str, cta: Cta, values: list, pieces: list, width: int) -> Pieces:
    """Pieces of and, or, xor where each half either keeps one operand's half or is a number."""
    a, b = (symbolic.whole(piece, width, cta.threads) for piece in pieces)
    x, y = (symbolic.halves(value, width) for value in values)
    keep = 0xFFFF if op == "and" else 0
    out = np.where((b == 0) & (y == keep), a, np.where((a == 0) & (x == keep), b, -1))
    number = (a == 0) & (b == 0)
    if op == "and":
        number |= ((a == 0) & (x == 0)) | ((b == 0) & (y == 0))
    if op == "or":
        number |= ((a == 0) & (x == 0xFFFF)) | ((b == 0) & (y == 0xFFFF))
    out = np.where(number, 0, out)
    lost = (out == -1).any(0)
    if (lost & cta.mask).any():
        rest = symbolic.opaque(cta.graph, cta.mask & lost, op, width, pieces)
        out = np.where(lost, symbolic.whole(rest, width, cta.threads), out)
    return np.where(out == -1, 0, out)


@handles("and", "or", "xor")
def _logic(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2:
        raise inst.unknown("form is not known")
    op, width = inst.op[0], _held(inst.op[1])
    apply = {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}[op]

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        return _keeping(op, cta, values, pieces, width)

    return operation(ctx, inst, (width,) * 3, apply, shadow)


@handles("not")
def _not(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2:
        raise inst.unknown("form is not known")
    width = _held(inst.op[1])
    return operation(ctx, inst, (width,) * 2, np.invert, opaque("not", width))


@handles("shl", "shr")
def _shift(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2 or len(inst.operands) != 3:
        raise inst.unknown("shift form is not known")
    op, kind = inst.op
    width = kind_bits(inst, kind)
    signed = op == "shr" and kind[0] == "s"

    def compute(a: np.ndarray, amount: np.ndarray) -> np.ndarray:
        limit = np.minimum(amount, width - 1).astype(UNSIGNED[width])
        if signed:
            return (a.view(SIGNED[width]) >> limit.view(SIGNED[width])).view(UNSIGNED[width])
        moved = a << limit if op == "shl" else a >> limit
        return np.where(amount >= width, 0, moved).astype(UNSIGNED[width])

    fixed = inst.operands[2].value if isinstance(inst.operands[2], Imm) else None

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        if fixed is None or fixed % 16 or signed:
            return symbolic.opaque(cta.graph, cta.mask, op, width, pieces)
        by, out = fixed // 16, np.zeros_like(pieces[0])
        if by < len(out):
            if op == "shl":
                out[by:] = pieces[0][: len(out) - by]
            else:
                out[: len(out) - by] = pieces[0][by:]
        return out

    return operation(ctx, inst, (width, width, 32), compute, shadow)


@handles("bfe")
def _extract(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) != 2 or inst.op[1] not in ("u32", "s32", "u64", "s64"):
        raise inst.unknown("form is not known")
    width, signed = kind_bits(inst, inst.op[1]), inst.op[1][0] == "s"
    position, length = inst.operands[2:]
    if not isinstance(position, Imm) or not isinstance(length, Imm):
        raise inst.unknown("bit fields at run time are not supported")
    low, count = position.value, length.value
    if not (count > 0 and low + count <= width):
        raise inst.unknown("bit field does not lie in the register")

    def compute(a: np.ndarray, _p: np.ndarray, _l: np.ndarray) -> np.ndarray:
        top = (a << a.dtype.type(width - low - count)).view(SIGNED[width] if signed else a.dtype)
        return (top >> top.dtype.type(width - count)).view(UNSIGNED[width])

    return operation(ctx, inst, (width, width, 32, 32), compute, opaque("bfe", width))


@handles("prmt")
def _permute(ctx: Context, inst: Inst) -> Step:
    if inst.op != ("prmt", "b32") or len(inst.operands) != 4:
        raise inst.unknown("form is not known")
    selector = inst.operands[3]

    def compute(a: np.ndarray, b: np.ndarray, chosen: np.ndarray) -> np.ndarray:
        both = a.astype(np.uint64) | (b.astype(np.uint64) << np.uint64(32))
        out = np.zeros_like(a)
        for byte in range(4):
            nibble = (chosen >> np.uint32(4 * byte)) & np.uint32(0xF)
            shift = ((nibble & np.uint32(7)) * np.uint32(8)).astype(np.uint64)
            value = ((both >> shift) & np.uint64(0xFF)).astype(np.uint32)
            sign = np.where(value & np.uint32(0x80), np.uint32(0xFF), np.uint32(0))
            value = np.where(nibble & np.uint32(8), sign, value)
            out |= value << np.uint32(8 * byte)
        return out

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        rows = _permuted(selector.value, pieces, cta) if isinstance(selector, Imm) else None
        if rows is None:
            return symbolic.opaque(cta.graph, cta.mask, "prmt", 32, pieces)
        return rows

    return operation(ctx, inst, (32,) * 4, compute, shadow)


def _permuted(selector: int, pieces: list, cta: Cta) -> Pieces:
    """Pieces of a permutation that moves whole halves; None for any other."""
    source = np.concatenate([symbolic.whole(piece, 32, cta.threads) for piece in pieces[:2]])
    rows = []
    for half in range(2):
        low, high = (selector >> (8 * half)) & 0xF, (selector >> (8 * half + 4)) & 0xF
        if low % 2 == 0 and high == low + 1 and low < 8:
            rows.append(source[low // 2])
        elif source[(low & 7) // 2].any() or source[(high & 7) // 2].any():
            return None
        else:
            rows.append(np.zeros(cta.threads, np.int64))
    return np.stack(rows)


@handles("lop3")
def _lop3(ctx: Context, inst: Inst) -> Step:
    if inst.op != ("lop3", "b32") or not isinstance(inst.operands[-1], Imm):
        raise inst.unknown("form is not known")
    table = inst.operands[-1].value

    def compute(a: np.ndarray, b: np.ndarray, c: np.ndarray, _t: np.ndarray) -> np.ndarray:
        out = np.zeros_like(a)
        for row in range(8):
            if table >> row & 1:
                out |= (a if row & 4 else ~a) & (b if row & 2 else ~b) & (c if row & 1 else ~c)
        return out

    return operation(ctx, inst, (32,) * 5, compute, opaque("lop3", 32))


@handles("cvta")
def _cvta(ctx: Context, inst: Inst) -> Step:
    if inst.op not in (("cvta", "to", "global", "u64"), ("cvta", "global", "u64")):
        raise inst.unknown("address conversion is not known")
    return operation(ctx, inst, (64, 64), lambda a: a, lambda cta, values, pieces: None)
