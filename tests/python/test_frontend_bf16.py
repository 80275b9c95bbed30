"""bf16 under `TRITON_INTERPRET=1`: interpreter, oracle and executed PTX hold the same bytes.

`BITSTABLE_RANDOM_SEED` chooses other draws.
"""

import operator
import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from triton.bitstable import bf16

import bf16_program as program
import oracle

HERE = Path(__file__).parent
SEED = int(os.environ.get("BITSTABLE_RANDOM_SEED", "20261201"))
INFINITY = 0x7F80


def rounded(values):
    return oracle.rounded(np.asarray(values, np.float32), "bf16")


def values(patterns):
    """The numbers that 16-bit patterns stand for, written as f32."""
    return (np.asarray(patterns, np.uint16).astype(np.uint32) << 16).view(np.float32)


# ----------------------------------------------------------------------------- oracle by fractions


def exactly(pattern):
    """The number of a pattern; infinity is where the next binade would begin."""
    magnitude = pattern & 0x7FFF
    size = Fraction(2) ** 128 if magnitude == INFINITY else Fraction(float(values(magnitude)))
    return -size if pattern & 0x8000 else size


def nearest(number):
    """The pattern nearest to a fraction that is not zero: by search, ties to even."""
    low, high = 0, INFINITY
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if exactly(middle) <= abs(number) else (low, middle)
    below, above = abs(number) - exactly(low), exactly(high) - abs(number)
    pick = low if below < above or (below == above and low % 2 == 0) else high
    return pick | (0x8000 if number < 0 else 0)


def fused_once(x, y, z):
    """`x * y + z` of f32 values that bf16 holds."""
    with np.errstate(all="ignore"):
        plain = np.float32(x) * np.float32(y) + np.float32(z)
    if not all(np.isfinite([x, y, z])):
        return plain
    number = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
    return values(nearest(number)) if number else plain  # a sum of zeros has its sign


def fused(x, y, z):
    found = [fused_once(*each) for each in zip(x.flat, y.flat, z.flat, strict=True)]
    return np.float32(found).reshape(x.shape)


# ---------------------------------------------------------------------------------- the conversions


def test_widening_and_narrowing_are_inverse():
    every = np.arange(1 << 16, dtype=np.uint16)
    wide = bf16.widen(every)
    assert oracle.same_bits(wide, values(every)).all()
    back = bf16.narrow(wide)
    nan = np.isnan(wide)
    assert np.array_equal(back[~nan], every[~nan])
    assert np.isnan(values(back[nan])).all()


def test_narrowing_takes_the_nearest_and_of_two_the_even():
    low = np.arange(INFINITY, dtype=np.int64)  # finite patterns; the next one is above
    tie = (low << 16) + 0x8000
    even = low + low % 2
    for sign in (0, 0x8000):
        for offset, wanted in ((-1, low), (0, even), (1, low + 1)):
            bits = ((tie + offset) | (sign << 16)).astype(np.uint32)
            assert np.array_equal(bf16.narrow(bits.view(np.float32)), wanted | sign)


def test_a_fused_multiply_add_rounds_once():
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    x, y, z = rng.integers(0, 1 << 16, (3, 1500)).astype(np.uint16)
    # The product is a tie, and what is added decides: by a hair.
    near = rng.integers(0x3F80, 0x4080, (2, 1500)).astype(np.uint16)
    hair = rng.integers(0x0080, 0x3000, 1500).astype(np.uint16) | rng.choice([0, 0x8000], 1500)
    x, y = np.append(x, near[0]), np.append(y, near[1])
    z = np.append(z, hair.astype(np.uint16))
    with np.errstate(all="ignore"):
        found = bf16.fused_multiply_add(x, y, z)
    wanted = fused(*map(values, (x, y, z)))
    assert oracle.same_bits(values(found), wanted).all()
    with np.errstate(all="ignore"):
        twice = rounded(values(x).astype(np.float64) * values(y) + values(z))
    assert not oracle.same_bits(twice, wanted).all()  # or the draw would prove little


# ----------------------------------------------------------------------------------- whole programs


def extremum(pick, zero_is_first):
    def combine(a, b):
        (a,), (b,) = a, b
        first = np.where(a == b, zero_is_first(a), pick(a, b))
        return (np.where(np.isnan(b) | (first & ~np.isnan(a)), a, b),)

    return combine


def arg(pick):
    def combine(a, b):
        (v1, i1), (v2, i2) = a, b
        first = pick(v1, v2) | ((v1 == v2) & (i1 < i2))
        return np.where(first, v1, v2), np.where(first, i1, i2)

    return combine


def unary(function):
    return lambda a, b: (function(a[0], b[0]),)


def or_nan(combine):
    def kept(a, b):
        either = np.isnan(a[0]) | np.isnan(b[0])
        return (np.where(either, np.float32(np.nan), combine(a, b)[0]),)

    return kept


def clamped(a, b):
    (high,) = GREATEST((a,), (np.full_like(a, -0.0),))
    (inside,) = LEAST((high,), (np.full_like(a, 2.0),))
    return rounded(inside + b)


def toggled(a, b):
    bits = a.view(np.uint32) ^ b.view(np.uint32)
    return bits.view(np.float32)


# A literal is the bf16 nearest to its six decimals.
TENTH = rounded(0.1)
GREATEST = extremum(np.greater, lambda a: ~np.signbit(a))
LEAST = extremum(np.less, np.signbit)
COMBINES = {
    "sum": unary(lambda a, b: rounded(a + b)),
    "casts": unary(lambda a, b: rounded(a + b)),
    "wide sum": unary(operator.add),
    "product": unary(lambda a, b: rounded(a * b)),
    "max": GREATEST,
    "min": LEAST,
    "greatest": GREATEST,
    "least or nan": or_nan(LEAST),
    "argmax": arg(np.greater),
    "argmin": arg(np.less),
    "differing": unary(lambda a, b: rounded(rounded(a * np.float32(0.75)) - b)),
    "literal": unary(
        lambda a, b: rounded(rounded(rounded(a * TENTH) + b * np.float32(0)) + np.float32(1))
    ),
    "composing": lambda a, b: (
        rounded(a[0] * b[0]),
        rounded(rounded(a[1] * b[0]) + b[1]),
    ),
    "widening": unary(lambda a, b: rounded(a * np.float32(0.3) + b)),
    "dividing": unary(lambda a, b: rounded(a / rounded(np.abs(b) + np.float32(1)))),
    "branching": unary(lambda a, b: np.where(a > b, rounded(a - b), -b)),
    "choosing": unary(lambda a, b: np.where((a <= b) & (a != 0), rounded(a + b), b)),
    "clamping": unary(clamped),
    "fusing": unary(lambda a, b: fused(a, b, b)),
    "halving": unary(lambda a, b: rounded(a.astype(np.float16) + b.astype(np.float16))),
    "toggling": unary(toggled),
}


def expected(which, x, y, axis):
    x, y = values(x), values(y)
    operands = (x,)
    if which == "composing":
        operands = (x, y)
    elif which == "casts":
        with np.errstate(all="ignore"):
            operands = (rounded(y * np.float32(1.1)),)
    elif which.startswith("arg"):
        shape = (-1, 1) if axis == 0 else (1, -1)
        index = np.arange(x.shape[axis], dtype=np.int32).reshape(shape)
        operands = (x, np.broadcast_to(index, x.shape))
    results = oracle.canonical(COMBINES[which], operands, axis)
    if which == "composing":
        with np.errstate(all="ignore"):
            return results[0] + results[1]
    return results[-1]


def run(file, **setting):
    subprocess.run(
        [sys.executable, "-W", "ignore", HERE / "bf16_program.py", file, str(SEED)],
        env=os.environ | setting,
        check=True,
    )
    found = dict(np.load(file))
    return {k: values(v) if v.dtype == np.uint16 else v for k, v in found.items()}


@pytest.fixture(scope="module")
def interpreted(tmp_path_factory):
    return run(tmp_path_factory.mktemp("bf16") / "it.npz", TRITON_INTERPRET="1")


def differing(found, wanted):
    assert found.keys() == wanted.keys()
    return [name for name in found if not oracle.same_bits(found[name], wanted[name]).all()]


def test_the_interpreter_folds_the_oracle_s_tree(interpreted):
    print("seed", SEED)
    wanted = {
        f"{draw}, {which}, {axis}": expected(which, x, y, axis)
        for draw, (x, y) in program.draws(SEED).items()
        for which in program.FOLDS
        for axis in (0, 1)
    }
    assert not differing(interpreted, wanted)
    assert len(wanted) == 252
    finite = [v for k, v in wanted.items() if k.startswith("plain") and np.isfinite(v).all()]
    assert len(finite) > 20  # or NaN would hide all else


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90"])
def test_executed_ptx_holds_the_interpreter_s_bytes(interpreted, target, tmp_path):
    print("seed", SEED)
    emulated = run(tmp_path / "it.npz", TRITON_BITSTABLE_EMULATE=target)
    assert not differing(interpreted, emulated)
