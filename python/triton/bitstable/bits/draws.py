"""Draws: inputs that show an order of evaluation, made from a seed.

# Idea
A reduction of ordinary random numbers hides its order: one ulp, in the last place, sometimes. Each
kind of draw makes one thing that depends on order, or on how a target treats a number, likely:

| kind | floats | what it shows |
|---|---|---|
| `wide` | mantissas at random, exponents over as many binades as the mantissa has bits | what |
|        | | is absorbed by a large partial sum and what is not |
| `cancelling` | one large magnitude of either sign, small numbers between | the same, made worse |
| `normals` | between 1/4 and 8, either sign | the last places; contraction |
| `subnormals` | subnormals, the smallest normal numbers, zeros | flushing to zero |
| `specials` | normals, now and then an infinity or a NaN | NaN rules of min and max; `inf - inf` |
| `zeros` | -0.0, rarely +0.0 | identities that are padded in, and their sign |
| `huge` | the two largest binades, either sign | overflow of a partial sum |

All NaNs of a type are one pattern, that which `inf - inf` makes: nobody promises payloads, and two
of them in one f64 sum would make lanes disagree, and race, about what does not matter.

Integers get the patterns that such kinds suggest: all bits, a few equal magnitudes, small ones
with ties, 0 and 1, the extremes, zeros, and what is near the extremes.

# Invariants
- **D1** A draw is a function of seed, its place in the list, the argument's name and the element
  type. No library's generator enters: the bits are SplitMix64's, on every platform and version.
- **D2** The first draws of a longer list are those of a shorter one.

# Held by
`tests/python/test_bit_classes.py`, which pins the bytes of one draw.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from triton.bitstable.bits.elements import Element
from triton.bitstable.bits.errors import UsageError

_GAMMA = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


class Stream:
    """64 random bits at a time: SplitMix64, as a function of position."""

    def __init__(self, *key: object) -> None:
        digest = hashlib.sha256("\0".join(map(str, key)).encode()).digest()
        self._state = int.from_bytes(digest[:8], "little")

    def words(self, count: int) -> np.ndarray:
        """The next `count`."""
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(_GAMMA)
        mixed = steps + np.uint64(self._state)
        self._state = (self._state + count * _GAMMA) & _MASK
        mixed = (mixed ^ mixed >> np.uint64(30)) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ mixed >> np.uint64(27)) * np.uint64(0x94D049BB133111EB)
        return mixed ^ mixed >> np.uint64(31)

    def below(self, bound: int, count: int) -> np.ndarray:
        """Numbers from 0 to `bound` - 1, for a bound far below 2**32."""
        return (self.words(count) >> np.uint64(32)) % np.uint64(bound)

    def chance(self, one_in: int, count: int) -> np.ndarray:
        """True once in so many."""
        return self.below(one_in, count) == 0

    def units(self, count: int) -> np.ndarray:
        """Floats in [0, 1), of 53 bits."""
        return (self.words(count) >> np.uint64(11)).astype(np.float64) / float(1 << 53)


@dataclass(frozen=True)
class Draw:
    """One draw of a sweep: its kind, and how often the kind came before it in the list."""

    kind: str
    repeat: int = 0

    @property
    def name(self) -> str:
        """Unique in its list."""
        return self.kind if not self.repeat else f"{self.kind}-{self.repeat + 1}"

    def stream(self, seed: int, argument: str) -> Stream:
        """The bits that an argument is made from."""
        return Stream("bitstable draw", seed, self.kind, self.repeat, argument)

    def patterns(self, element: Element, count: int, seed: int, argument: str) -> np.ndarray:
        """The elements of a buffer, as their bits."""
        floats, integers = KINDS[self.kind]
        make = floats if element.is_float else integers
        made = make(element, count, self.stream(seed, argument))
        return made.astype(np.uint64).astype(element.storage)


def plan(draws: int | str | Iterable[str | Draw]) -> list[Draw]:
    """So many draws, going through the kinds again and again; or those of the kinds named."""
    if isinstance(draws, int):
        if draws < 1:
            raise UsageError(f"draws: at least 1, not {draws}")
        names = list(KINDS)
        return [Draw(names[at % len(names)], at // len(names)) for at in range(draws)]
    if isinstance(draws, str):
        draws = draws.split(",")
    planned: list[Draw] = []
    for each in draws:
        kind = each.kind if isinstance(each, Draw) else each
        if kind not in KINDS:
            raise UsageError(f"no such draw: {kind}; the choices are {', '.join(KINDS)}")
        planned.append(Draw(kind, sum(before.kind == kind for before in planned)))
    if not planned:
        raise UsageError("draws: at least 1")
    return planned


def _floats(
    element: Element, stream: Stream, low: int, high: int, count: int, mantissa: bool = True
) -> np.ndarray:
    """Either sign, exponent fields from `low` to `high`, mantissas at random or zero."""
    words = stream.words(count)
    sign = (words >> np.uint64(63)) << np.uint64(element.bits - 1)
    exponent = np.uint64(low) + stream.below(high - low + 1, count)
    pattern = sign | exponent << np.uint64(element.mantissa_bits)
    if mantissa:
        pattern |= words & np.uint64((1 << element.mantissa_bits) - 1)
    return pattern


def _reach(element: Element) -> int:
    """Binades to either side of 1: as the mantissa has bits, but sums and products stay finite."""
    return min(element.mantissa_bits, (1 << (element.exponent_bits - 1)) // 3)


def _wide(element: Element, count: int, stream: Stream) -> np.ndarray:
    reach = _reach(element)
    return _floats(element, stream, element.bias - reach, element.bias + reach, count)


def _cancelling(element: Element, count: int, stream: Stream) -> np.ndarray:
    top = element.bias + _reach(element)
    large = _floats(element, stream, top, top, count, mantissa=False)
    small = _floats(element, stream, element.bias - 2, element.bias, count)
    return np.where(stream.chance(2, count), large, small)


def _normals(element: Element, count: int, stream: Stream) -> np.ndarray:
    return _floats(element, stream, element.bias - 2, element.bias + 2, count)


def _subnormals(element: Element, count: int, stream: Stream) -> np.ndarray:
    made = _floats(element, stream, 0, 0, count)
    normal = _floats(element, stream, 1, 2, count)
    made = np.where(stream.chance(8, count), normal, made)
    sign = np.uint64(1 << (element.bits - 1))
    return np.where(stream.chance(16, count), made & sign, made)


def _specials(element: Element, count: int, stream: Stream) -> np.ndarray:
    made = _normals(element, count, stream)
    sign = stream.words(count) & np.uint64(1 << (element.bits - 1))
    if element.ieee:
        infinity = np.uint64(((1 << element.exponent_bits) - 1) << element.mantissa_bits)
        made = np.where(stream.chance(256, count), sign | infinity, made)
    return np.where(stream.chance(512, count), np.uint64(element.made_nan), made)


def _zeros(element: Element, count: int, stream: Stream) -> np.ndarray:
    negative = np.uint64(1 << (element.bits - 1))
    return np.where(stream.chance(512, count), np.uint64(0), negative)


def _huge(element: Element, count: int, stream: Stream) -> np.ndarray:
    top = element.largest_exponent
    return _floats(element, stream, top - 1, top, count)


def _small_integers(low: int, high: int) -> Callable[[Element, int, Stream], np.ndarray]:
    def make(element: Element, count: int, stream: Stream) -> np.ndarray:
        start = low if element.signed else 0
        return np.uint64(start & _MASK) + stream.below(high - start + 1, count)

    return make


def _all_bits(element: Element, count: int, stream: Stream) -> np.ndarray:
    return stream.words(count) >> np.uint64(64 - element.bits)


def _magnitudes(element: Element, count: int, stream: Stream) -> np.ndarray:
    large = np.uint64(1 << (element.bits - 3))
    negative = np.uint64(element.signed) * stream.below(2, count)
    signed = np.where(negative == 1, ~large + np.uint64(1), large)
    return np.where(stream.chance(2, count), signed, stream.below(4, count))


def _extremes(element: Element, count: int, stream: Stream) -> np.ndarray:
    low, high = element.limits
    values = np.array([v & _MASK for v in (low, high, 0, 1, -1)], np.uint64)
    return values[stream.below(len(values), count)]


def _near_extremes(element: Element, count: int, stream: Stream) -> np.ndarray:
    low, high = element.limits
    inset = stream.below(8, count)
    upper = np.uint64(high & _MASK) - inset
    return np.where(stream.chance(2, count), upper, np.uint64(low & _MASK) + inset)


# The order is part of D2: what shows an order soonest comes first.
KINDS: dict[str, tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]] = {
    "wide": (_wide, _all_bits),
    "cancelling": (_cancelling, _magnitudes),
    "normals": (_normals, _small_integers(-8, 8)),
    "subnormals": (_subnormals, _small_integers(0, 1)),
    "specials": (_specials, _extremes),
    "zeros": (_zeros, _small_integers(0, 0)),
    "huge": (_huge, _near_extremes),
}
