"""Element types as bit patterns: what a buffer holds, made, read and compared without rounding.

# Idea
Every float format is a sign, an exponent field and a mantissa field, so one description serves
f64 and fp8, and draws place bits instead of rounding numbers ([`draws`]).

# Invariants
- **E1** A NaN is compared as *a* NaN: sign and payload are not promised by anyone, on any target
  ([`Element.canonical`]). Every other pattern is compared as it is, both zeros among them.
- **E2** [`Element.encode`] rounds once, to nearest, ties to even.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from triton.bitstable.bits.errors import UsageError


@dataclass(frozen=True)
class Element:
    """An element type, by the name that `bitstable` uses for it on every command line."""

    name: str
    bits: int
    #: How Triton's launcher is to see the bits where numpy has no such type.
    seen_as: str | None = None
    #: numpy's type, where it has one.
    native: str | None = None
    exponent_bits: int = 0
    mantissa_bits: int = 0
    signed: bool = True
    #: Whether the largest exponent means infinities and NaNs; e4m3 has one NaN a sign.
    ieee: bool = True

    @property
    def is_float(self) -> bool:
        """Whether it has an exponent."""
        return self.exponent_bits > 0

    @property
    def storage(self) -> np.dtype:
        """Of its bits in memory."""
        return np.dtype(f"u{self.bits // 8}")

    @property
    def bias(self) -> int:
        """Of the exponent field."""
        return (1 << (self.exponent_bits - 1)) - 1

    @property
    def largest_exponent(self) -> int:
        """The field of the largest finite numbers of which every mantissa is one."""
        return (1 << self.exponent_bits) - 2

    @property
    def quiet_nan(self) -> int:
        """The pattern that stands for every NaN of a float type."""
        if not self.ieee:
            return (1 << (self.bits - 1)) - 1
        exponent = ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        return exponent | 1 << (self.mantissa_bits - 1)

    @property
    def made_nan(self) -> int:
        """The NaN that an invalid operation makes: f64's is negative, the others' are all ones."""
        if self.bits == 64:
            return self.quiet_nan | 1 << 63
        return (1 << (self.bits - 1)) - 1

    def is_nan(self, bits: np.ndarray) -> np.ndarray:
        """Where patterns of a float type are NaNs."""
        magnitude = bits & self.storage.type((1 << (self.bits - 1)) - 1)
        if not self.ieee:
            return magnitude == self.quiet_nan
        return magnitude > self.storage.type(((1 << self.exponent_bits) - 1) << self.mantissa_bits)

    def canonical(self, bits: np.ndarray) -> np.ndarray:
        """The patterns, with one NaN for all."""
        if not self.is_float:
            return bits
        return np.where(self.is_nan(bits), self.storage.type(self.quiet_nan), bits)

    def encode(self, values: Any) -> np.ndarray:
        """The patterns nearest to numbers; a number that an integer type lacks is refused."""
        if not self.is_float:
            return self._integers(values)
        values = np.asarray(values, np.float64)
        magnitude = np.where(np.isfinite(values), np.abs(values), 1.0)
        # The binade of each number; below the smallest normal one, the subnormals' own.
        binade = np.maximum(np.frexp(magnitude)[1] - 1, 1 - self.bias)
        steps = np.rint(np.ldexp(np.ldexp(magnitude, -binade), self.mantissa_bits))
        pattern = ((binade + self.bias - 1).astype(np.int64) << self.mantissa_bits) + steps.astype(
            np.int64
        )
        pattern = np.where(magnitude == 0, 0, pattern)
        beyond = ((1 << self.exponent_bits) - 1) << self.mantissa_bits
        past = (pattern >= beyond) if self.ieee else (pattern >= self.quiet_nan)
        pattern = np.where(
            past | np.isinf(values), beyond if self.ieee else self.quiet_nan, pattern
        )
        pattern = np.where(np.isnan(values), self.quiet_nan, pattern)
        sign = np.signbit(values).astype(np.uint64) << np.uint64(self.bits - 1)
        return (pattern.astype(np.uint64) | sign).astype(self.storage)

    def _integers(self, values: Any) -> np.ndarray:
        low, high = self.limits
        listed = [int(value) for value in np.atleast_1d(np.asarray(values, object))]
        for value, given in zip(listed, np.atleast_1d(np.asarray(values, object)), strict=True):
            if value != given or not low <= value <= high:
                raise UsageError(f"{given} is not an {self.name}: integers from {low} to {high}")
        return np.array([value % (1 << self.bits) for value in listed], self.storage)

    @property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest integer."""
        if self.signed:
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 << self.bits) - 1

    def show(self, bits: int) -> str:
        """A pattern as a reader would write it, with its bits."""
        digits = f"0x{int(bits):0{self.bits // 4}x}"
        return f"{self._number(int(bits))!r} ({digits})"

    def _number(self, bits: int) -> float | int:
        if not self.is_float:
            return bits - (1 << self.bits) if self.signed and bits >> (self.bits - 1) else bits
        sign = -1.0 if bits >> (self.bits - 1) else 1.0
        field = bits >> self.mantissa_bits & ((1 << self.exponent_bits) - 1)
        mantissa = bits & ((1 << self.mantissa_bits) - 1)
        if bool(self.is_nan(np.array([bits], self.storage))[0]):
            return math.nan
        if self.ieee and field > self.largest_exponent:
            return sign * math.inf
        hidden = (1 << self.mantissa_bits) if field else 0
        exponent = max(field, 1) - self.bias - self.mantissa_bits
        return sign * math.ldexp(mantissa + hidden, exponent)


def _integer(name: str) -> Element:
    bits = int(name[1:])
    numpy = f"{'int' if name[0] == 'i' else 'uint'}{bits}"
    return Element(name, bits, native=numpy, signed=name[0] == "i")


ELEMENTS = {
    element.name: element
    for element in (
        Element("f64", 64, native="float64", exponent_bits=11, mantissa_bits=52),
        Element("f32", 32, native="float32", exponent_bits=8, mantissa_bits=23),
        Element("f16", 16, native="float16", exponent_bits=5, mantissa_bits=10),
        Element("bf16", 16, "bf16", exponent_bits=8, mantissa_bits=7),
        Element("e4m3", 8, "fp8e4nv", exponent_bits=4, mantissa_bits=3, ieee=False),
        Element("e5m2", 8, "fp8e5", exponent_bits=5, mantissa_bits=2),
        *(_integer(f"{sign}{bits}") for sign in "iu" for bits in (8, 16, 32, 64)),
    )
}


def element(name: str) -> Element:
    """The type of that name."""
    if name not in ELEMENTS:
        raise UsageError(f"no such element type: {name}; the choices are {' '.join(ELEMENTS)}")
    return ELEMENTS[name]


def of_array(array: np.ndarray) -> Element:
    """The type of a numpy array's elements."""
    for each in ELEMENTS.values():
        if each.native == array.dtype.name:
            return each
    raise UsageError(f"no element type for arrays of {array.dtype}")
