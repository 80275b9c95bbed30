"""Arguments of a swept kernel: what each is called, and what it holds on each draw.

# Idea
| text | argument |
|---|---|
| `x=f32:4096`, `x=f32:16x256` | a buffer, drawn anew on each draw |
| `out=f32:16=zero` | a buffer of zeros; also `iota`, one number for all, or `1,2,3` |
| `i=i32:64=0..100` | a buffer, drawn from 0 to 99 on each draw; floats from a range likewise |
| `n=608`, `eps=1e-5`, `n=i32=608` | a scalar; Triton types it, `i32`, `i64` or `f32` |
| `mask=null` | a null pointer |

Nothing says which buffers are outputs: after a launch *all* are compared, so that a write to what
was meant as an input is seen as well.

# Invariants
- **A1** What a buffer holds is a function of its text, the draw and the seed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.bitstable.bits.draws import Draw
from triton.bitstable.bits.elements import ELEMENTS, Element, element, of_array
from triton.bitstable.bits.errors import UsageError

_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?|[-+]?inf|nan"
_RANGE = re.compile(rf"({_NUMBER})\.\.({_NUMBER})")
_SCALAR_TYPES = {"i32": (-(1 << 31), 1 << 31), "i64": (-(1 << 63), 1 << 63), "f32": None}


@dataclass(frozen=True)
class Range:
    """Elements from `low` on and below `high`."""

    low: float
    high: float

    def patterns(self, element: Element, count: int, draw: Draw, seed: int, name: str) -> Any:
        """Drawn anew on each draw, whatever its kind."""
        stream = draw.stream(seed, name)
        if not element.is_float:
            low, span = int(self.low), int(self.high) - int(self.low)
            return element.encode([low + int(step) for step in stream.below(span, count)])
        return element.encode(self.low + stream.units(count) * (self.high - self.low))


@dataclass(frozen=True)
class Buffer:
    """A pointer argument. `fixed` has the elements' bits where draws do not make them."""

    name: str
    element: Element
    count: int
    fixed: bytes | None = None
    range: Range | None = None

    def patterns(self, draw: Draw, seed: int) -> np.ndarray:
        """What it holds before a launch, as bits."""
        if self.fixed is not None:
            return np.frombuffer(self.fixed, self.element.storage)
        if self.range is not None:
            return self.range.patterns(self.element, self.count, draw, seed, self.name)
        return draw.patterns(self.element, self.count, seed, self.name)


@dataclass(frozen=True)
class Scalar:
    """A number, or `None` for a null pointer; the same on every draw."""

    name: str
    value: Any


Argument = Buffer | Scalar


def parse(text: str) -> Argument:
    """Read `NAME=…`, as the module says."""
    name, equals, rest = text.partition("=")
    name = name.strip()
    if not equals or not name.isidentifier() or not rest:
        raise UsageError(f"argument {text!r}: write NAME=TYPE:COUNT[=FILL] or NAME=NUMBER")
    try:
        return _parse(name, rest.strip())
    except UsageError as error:
        raise UsageError(f"argument {text!r}: {error}") from None


def _parse(name: str, rest: str) -> Argument:
    if rest == "null":
        return Scalar(name, None)
    head, equals, fill = rest.partition("=")
    kind, colon, extent = head.partition(":")
    if colon:
        return _buffer(name, element(kind), _count(extent), fill if equals else None)
    if equals:
        if kind not in _SCALAR_TYPES:
            raise UsageError(
                f"a scalar is passed as {', '.join(_SCALAR_TYPES)}; a buffer of {kind} needs a "
                f"count, such as {kind}:1024"
            )
        return Scalar(name, _typed(fill, kind))
    if rest in ELEMENTS:
        raise UsageError(f"a buffer needs a count ({rest}:1024), a scalar a value")
    if rest in ("true", "false"):
        return Scalar(name, rest == "true")
    return Scalar(name, _number(rest))


def _typed(text: str, kind: str) -> int | float:
    value = _number(text)
    if kind == "f32":
        return float(value)
    low, high = _SCALAR_TYPES[kind]
    if not isinstance(value, int) or not low <= value < high:
        raise UsageError(f"{text} is not an {kind}")
    narrow = _SCALAR_TYPES["i32"]
    if kind == "i64" and narrow[0] <= value < narrow[1]:
        raise UsageError(f"Triton passes {text} as i32: drop the type")
    return value


def _count(text: str) -> int:
    extents = text.split("x")
    if not all(each.isdecimal() for each in extents):
        raise UsageError(f"{text!r} is not a count, such as 4096 or 16x256")
    count = 1
    for each in extents:
        count *= int(each)
    if not 0 < count <= 1 << 28:
        raise UsageError(f"a buffer has 1 to {1 << 28} elements, not {count}")
    return count


def _number(text: str) -> int | float:
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        raise UsageError(f"{text!r} is not a number") from None


def _buffer(name: str, element: Element, count: int, fill: str | None) -> Buffer:
    if fill is None:
        return Buffer(name, element, count)
    if match := _RANGE.fullmatch(fill):
        return Buffer(name, element, count, range=_range(element, *map(_number, match.groups())))
    if fill in ("zero", "iota"):
        values: Any = [0] * count if fill == "zero" else list(range(count))
    else:
        values = [_number(each) for each in fill.split(",")]
        if len(values) == 1:
            values *= count
        if len(values) != count:
            raise UsageError(f"{len(values)} numbers for {count} elements")
    return Buffer(name, element, count, element.encode(values).tobytes())


def _range(element: Element, low: float, high: float) -> Range:
    if not low < high or np.isinf([low, high]).any():
        raise UsageError(f"{low}..{high} holds no number")
    if not element.is_float:
        element.encode([low, high - 1])  # refuses what it lacks
        if high - low >= 1 << 31:
            raise UsageError(f"{low}..{high}: leave the range out for integers of any value")
    return Range(low, high)


def read(args: Mapping[str, Any] | Iterable[str | Argument]) -> list[Argument]:
    """Arguments as the library takes them.

    Texts and `Argument`s; or a mapping from names to the text after `NAME=`, to numpy arrays, which
    are then the same on every draw, and to numbers.
    """
    if isinstance(args, Mapping):
        found = [_named(name, value) for name, value in args.items()]
    else:
        found = [parse(each) if isinstance(each, str) else each for each in args]
    names = [each.name for each in found]
    if twice := {name for name in names if names.count(name) > 1}:
        raise UsageError(f"given more than once: {', '.join(sorted(twice))}")
    return found


def _named(name: str, value: Any) -> Argument:
    if isinstance(value, str):
        return parse(f"{name}={value}")
    if isinstance(value, (Buffer, Scalar)):
        return value
    if isinstance(value, np.ndarray):
        content = np.ascontiguousarray(value)
        return Buffer(name, of_array(content), content.size, content.tobytes())
    return Scalar(name, value)
