"""Arithmetic, comparison and conversion."""

from collections.abc import Callable

import numpy as np

from . import floats, symbolic
from .compile import Context, Step, handles, operation
from .errors import PtxError, UnknownPtx
from .floats import UNSIGNED, WIDTH
from .machine import Cta
from .parser import Inst, Pair
from .symbolic import Pieces

SIGNED = {8: np.int8, 16: np.int16, 32: np.int32, 64: np.int64}
_PACKED = {"f16x2": ("f16", 2), "bf16x2": ("bf16", 2), "f32x2": ("f32", 2)}


def kind_bits(inst: Inst, kind: str) -> int:
    """The width of an integer type such as `s32`."""
    if kind[:1] in "sub" and kind[1:].isdigit() and int(kind[1:]) in UNSIGNED:
        return int(kind[1:])
    raise inst.unknown(f"type {kind} is not known here")


def opaque(name: str, width: int) -> Callable[[Cta, list, list], Pieces]:
    """The shadow of an operation without a rule."""
    return lambda cta, values, pieces: symbolic.opaque(cta.graph, cta.mask, name, width, pieces)


def _lanes(kind: str) -> tuple[str, int]:
    return _PACKED.get(kind, (kind, 1))


def unpack(bits: np.ndarray, width: int, count: int) -> list[np.ndarray]:
    """A packed register's elements, low first."""
    if count == 1:
        return [bits]
    pairs = np.ascontiguousarray(bits).view(UNSIGNED[width]).reshape(-1, count)
    return [np.ascontiguousarray(pairs[:, at]) for at in range(count)]


def pack(parts: list[np.ndarray]) -> np.ndarray:
    """The inverse of `unpack`."""
    if len(parts) == 1:
        return parts[0]
    wide = UNSIGNED[parts[0].dtype.itemsize * 8 * len(parts)]
    return np.ascontiguousarray(np.stack(parts, axis=1)).view(wide).ravel()


def _slices(pieces: list[Pieces], per: int, at: int) -> list[Pieces]:
    return [None if p is None else p[at * per : (at + 1) * per] for p in pieces]


def float_step(
    ctx: Context, inst: Inst, kind: str, sources: int, op: str, compute: Callable, ftz: bool
) -> Step:
    """One rounded operation, element by element of a packed type."""
    element, count = _lanes(kind)
    if element not in WIDTH:
        raise inst.unknown(f"type {kind} is not known here")
    width = WIDTH[element]

    def elementwise(*operands: np.ndarray) -> np.ndarray:
        columns = [unpack(bits, width, count) for bits in operands]
        results = []
        for row in zip(*columns, strict=True):
            if ftz:
                row = [floats.flush(bits, element) for bits in row]
            result = compute(element, *row)
            results.append(floats.flush(result, element) if ftz else result)
        return pack(results)

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        columns = [unpack(bits, width, count) for bits in values]
        per, results = width // 16, []
        for at in range(count):
            parts = [column[at] for column in columns]
            results.append(
                symbolic.apply(cta.graph, cta.mask, op, element, parts, _slices(pieces, per, at))
            )
        return join(results, width, cta.threads)

    return operation(ctx, inst, (width * count,) * (sources + 1), elementwise, shadow)


def join(parts: list[Pieces], width: int, threads: int) -> Pieces:
    """Pieces of neighbouring elements, low first."""
    if all(part is None for part in parts):
        return None
    return np.concatenate([symbolic.whole(part, width, threads) for part in parts])


def _modifiers(inst: Inst, allowed: tuple[str, ...]) -> tuple[set[str], str]:
    *mods, kind = inst.op[1:] or ("",)
    if not kind or not set(mods) <= set(allowed) or len(set(mods)) != len(mods):
        raise inst.unknown("modifiers are not known")
    return set(mods), kind


def _is_float(kind: str) -> bool:
    return _lanes(kind)[0] in WIDTH


@handles("add", "sub")
def _add(ctx: Context, inst: Inst) -> Step:
    op = inst.op[0]
    mods, kind = _modifiers(inst, ("rn", "ftz"))
    if _is_float(kind):
        compute = lambda k, a, b: floats.binary(op, a, b, k)  # noqa: E731
        return float_step(ctx, inst, kind, 2, op, compute, "ftz" in mods)
    if mods:
        raise inst.unknown("modifiers are not known")
    apply = np.add if op == "add" else np.subtract
    if kind in ("s16x2", "u16x2"):
        packed = lambda a, b: pack(  # noqa: E731
            [apply(x, y) for x, y in zip(unpack(a, 16, 2), unpack(b, 16, 2), strict=True)]
        )
        return operation(ctx, inst, (32,) * 3, packed, opaque(op, 32))
    width = kind_bits(inst, kind)
    return operation(ctx, inst, (width,) * 3, apply, opaque(op, width))


@handles("mul")
def _mul(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("rn", "ftz", "lo", "wide", "hi"))
    if _is_float(kind):
        if not mods <= {"rn", "ftz"}:
            raise inst.unknown("modifiers are not known")
        compute = lambda k, a, b: floats.binary("mul", a, b, k)  # noqa: E731
        return float_step(ctx, inst, kind, 2, "mul", compute, "ftz" in mods)
    return _integer_product(ctx, inst, mods, kind, 2)


@handles("mad")
def _mad(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("lo", "wide", "hi"))
    return _integer_product(ctx, inst, mods, kind, 3)


def _integer_product(ctx: Context, inst: Inst, mods: set, kind: str, sources: int) -> Step:
    width = kind_bits(inst, kind)
    signed = kind[0] == "s"
    out = width * 2 if mods == {"wide"} else width
    if len(mods) != 1 or kind[0] == "b" or (mods != {"lo"} and width > 32):
        raise inst.unknown("product form is not known")

    def compute(a: np.ndarray, b: np.ndarray, *c: np.ndarray) -> np.ndarray:
        if mods == {"lo"}:
            product = a * b
        else:
            view = SIGNED[width] if signed else UNSIGNED[width]
            wide = SIGNED[64] if signed else UNSIGNED[64]
            product = a.view(view).astype(wide) * b.view(view).astype(wide)
            product = (product >> wide(width) if mods == {"hi"} else product).astype(UNSIGNED[out])
        return product + c[0] if c else product

    widths = (out, width, width, out)[: sources + 1]
    return operation(ctx, inst, widths, compute, opaque(inst.op[0], out))


@handles("fma")
def _fma(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("rn", "ftz"))
    if "rn" not in mods:
        raise inst.unknown("fma without .rn")
    compute = lambda k, a, b, c: floats.fma(a, b, c, k)  # noqa: E731
    return float_step(ctx, inst, kind, 3, "fma", compute, "ftz" in mods)


@handles("div")
def _div(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("rn", "ftz", "full"))
    if not _is_float(kind):
        return _integer_division(ctx, inst, mods, kind)
    if "full" in mods and "approximate" not in ctx.options:
        raise inst.unknown("div.full approximates; IEEE division is div.rn")
    if not mods & {"rn", "full"}:
        raise inst.unknown("division form is not known")
    compute = lambda k, a, b: floats.binary("div", a, b, k)  # noqa: E731
    return float_step(ctx, inst, kind, 2, "div", compute, "ftz" in mods)


@handles("rem")
def _rem(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ())
    return _integer_division(ctx, inst, mods, kind)


def _integer_division(ctx: Context, inst: Inst, mods: set, kind: str) -> Step:
    width = kind_bits(inst, kind)
    if mods or kind[0] != "u":
        raise inst.unknown("division form is not known")
    divide = np.floor_divide if inst.op[0] == "div" else np.remainder

    def compute(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        if (b == 0).any():
            raise PtxError("integer division by zero")
        return divide(a, b)

    return operation(ctx, inst, (width,) * 3, compute, opaque(inst.op[0], width))


@handles("sqrt")
def _sqrt(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("rn", "ftz"))
    if "rn" not in mods:
        raise inst.unknown("square root without .rn")
    return float_step(ctx, inst, kind, 1, "sqrt", lambda k, a: floats.sqrt(a, k), "ftz" in mods)


@handles("neg", "abs")
def _sign(ctx: Context, inst: Inst) -> Step:
    mods, kind = _modifiers(inst, ("ftz",))
    negative = inst.op[0] == "neg"
    if _is_float(kind):
        change = floats.negate if negative else floats.absolute
        step = lambda k, a: change(a, k)  # noqa: E731
        return float_step(ctx, inst, kind, 1, inst.op[0], step, "ftz" in mods)
    width = kind_bits(inst, kind)
    if mods or kind[0] != "s":
        raise inst.unknown("form is not known")

    def compute(a: np.ndarray) -> np.ndarray:
        minus = (~a) + a.dtype.type(1)
        return minus if negative else np.where(a.view(SIGNED[width]) < 0, minus, a)

    return operation(ctx, inst, (width,) * 2, compute, opaque(inst.op[0], width))


@handles("min", "max")
def _extremum(ctx: Context, inst: Inst) -> Step:
    op = inst.op[0]
    mods, kind = _modifiers(inst, ("NaN", "ftz"))
    if _is_float(kind):
        sources = len(inst.operands) - 1
        if sources not in (2, 3):
            raise inst.unknown("two or three sources are expected")

        def compute(element: str, a: np.ndarray, *rest: np.ndarray) -> np.ndarray:
            for b in rest:
                a = floats.extremum(op, a, b, element, "NaN" in mods)
            return a

        return float_step(ctx, inst, kind, sources, op, compute, "ftz" in mods)
    width = kind_bits(inst, kind)
    if mods or kind[0] == "b":
        raise inst.unknown("form is not known")
    choose = np.minimum if op == "min" else np.maximum
    view = SIGNED[width] if kind[0] == "s" else UNSIGNED[width]
    compute = lambda a, b: choose(a.view(view), b.view(view)).view(UNSIGNED[width])  # noqa: E731
    return operation(ctx, inst, (width,) * 3, compute, opaque(op, width))


_INTEGER_TESTS = {"eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
                  "gt": np.greater, "ge": np.greater_equal, "lo": np.less, "ls": np.less_equal,
                  "hi": np.greater, "hs": np.greater_equal}  # fmt: skip
_FLOAT_TESTS = ("eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu",
                "num", "nan")  # fmt: skip


@handles("setp")
def _setp(ctx: Context, inst: Inst) -> Step:
    if len(inst.op) not in (3, 4) or len(inst.operands) != 3:
        raise inst.unknown("setp form is not known")
    test, kind, ftz = inst.op[1], inst.op[-1], inst.op[2:-1] == ("ftz",)
    if len(inst.op) == 4 and not ftz:
        raise inst.unknown("modifiers are not known")
    element, count = _lanes(kind)
    width = WIDTH[element] if element in WIDTH else kind_bits(inst, kind)
    if element in WIDTH and test in _FLOAT_TESTS:
        change = (lambda bits: floats.flush(bits, element)) if ftz else (lambda bits: bits)
        run = lambda a, b: floats.compare(test, change(a), change(b), element)  # noqa: E731
    elif element not in WIDTH and test in _INTEGER_TESTS and not ftz:
        if (kind[0] == "b" and test not in ("eq", "ne")) or (kind[0] != "u" and len(test) > 2):
            raise inst.unknown("comparison does not fit its type")
        view = SIGNED[width] if kind[0] == "s" else UNSIGNED[width]
        run = lambda a, b: _INTEGER_TESTS[test](a.view(view), b.view(view))  # noqa: E731
    else:
        raise inst.unknown("comparison is not known")
    target = inst.operands[0]
    pair = (target.first, target.second) if isinstance(target, Pair) else (target,)
    if len(pair) != count:
        raise inst.unknown("one predicate per compared element is expected")
    slots = [ctx.destination(reg, 1) for reg in pair]
    readers = [ctx.reader(operand, width * count) for operand in inst.operands[1:]]
    trackers = [ctx.pieces(operand) for operand in inst.operands[1:]]

    def step(cta: Cta) -> None:
        columns = [unpack(read(cta), width, count) for read in readers]
        for slot, a, b in zip(slots, *columns, strict=True):
            cta.write(slot, run(a, b))
        if cta.graph is not None:
            for track in trackers:
                pieces = track(cta)
                if pieces is not None and pieces[:, cta.mask].any():
                    raise PtxError("a comparison depends on the data: not a fixed tree")

    return step


@handles("cvt")
def _cvt(ctx: Context, inst: Inst) -> Step:
    mods, target, source = set(inst.op[1:-2]), inst.op[-2], inst.op[-1]
    if target in ("bf16x2", "f16x2") and source == "f32" and mods == {"rn"}:
        return _narrow_pair(ctx, inst, target.removesuffix("x2"))
    if target in WIDTH and source in WIDTH:
        narrows = WIDTH[target] < WIDTH[source]
        if mods != ({"rn"} if narrows else set()) or WIDTH[target] == WIDTH[source]:
            raise inst.unknown("conversion form is not known")
        return operation(
            ctx, inst, (WIDTH[target], WIDTH[source]),
            lambda a: floats.convert(a, source, target),
            lambda cta, values, pieces: symbolic.convert(
                cta.graph, cta.mask, source, target, values[0], pieces[0]),
        )  # fmt: skip
    if target in WIDTH:
        width = kind_bits(inst, source)
        if mods != {"rn"} or source[0] == "b":
            raise inst.unknown("conversion form is not known")
        view = SIGNED[width] if source[0] == "s" else UNSIGNED[width]
        compute = lambda a: floats.from_integer(a.view(view), target)  # noqa: E731
        shadow = opaque("cvt", WIDTH[target])
        return operation(ctx, inst, (WIDTH[target], width), compute, shadow)
    if source in WIDTH or mods:
        raise inst.unknown("conversion form is not known")
    return _integer_conversion(ctx, inst, target, source)


def _narrow_pair(ctx: Context, inst: Inst, kind: str) -> Step:
    def compute(high: np.ndarray, low: np.ndarray) -> np.ndarray:
        return pack([floats.convert(low, "f32", kind), floats.convert(high, "f32", kind)])

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        rows = [
            symbolic.convert(cta.graph, cta.mask, "f32", kind, value, piece)
            for value, piece in zip(values, pieces, strict=True)
        ]
        return join(rows[::-1], 16, cta.threads)

    return operation(ctx, inst, (32, 32, 32), compute, shadow)


def _integer_conversion(ctx: Context, inst: Inst, target: str, source: str) -> Step:
    to, of = kind_bits(inst, target), kind_bits(inst, source)
    if "b" in (target[0], source[0]) or len(inst.operands) != 2:
        raise inst.unknown("conversion form is not known")
    held = [ctx.bits(reg) if hasattr(reg, "name") else 0 for reg in inst.operands]
    if held[0] != max(to, 16) or held[1] < of:
        raise UnknownPtx("conversion between registers of these widths is not known")
    signed = source[0] == "s"

    def compute(a: np.ndarray) -> np.ndarray:
        value = a.astype(UNSIGNED[of]).view(SIGNED[of] if signed else UNSIGNED[of])
        narrow = value.astype(SIGNED[to] if target[0] == "s" else UNSIGNED[to])
        return narrow.astype(SIGNED[held[0]] if target[0] == "s" else UNSIGNED[held[0]]).view(
            UNSIGNED[held[0]]
        )

    def shadow(cta: Cta, values: list, pieces: list) -> Pieces:
        plain = not signed or to <= of
        if min(to, of) < 16 or not plain:
            return symbolic.opaque(cta.graph, cta.mask, "cvt", held[0], pieces)
        rows = pieces[0][: to // 16]
        missing = held[0] // 16 - len(rows)
        return np.concatenate([rows, np.zeros((missing, cta.threads), np.int64)])

    return operation(ctx, inst, (held[0], held[1]), compute, shadow)
