"""The definition, in numpy: the canonical tree, every operation rounded once in its type.

Shares nothing with the executor or the compiler. bf16 travels as f32 values that bf16 can hold; an
operation computes in f32 and rounds, which equals one rounding for add and mul.
"""

import numpy as np

FLOATS = {"f64": np.float64, "f32": np.float32, "f16": np.float16, "bf16": np.float32}
INTEGERS = {"i64": np.int64, "i32": np.int32, "i16": np.int16, "i8": np.int8}
DTYPES = FLOATS | INTEGERS


def rounded(values, dtype):
    """Rounds f32 values to the nearest bf16, ties to even; leaves other types alone."""
    if dtype != "bf16":
        return values
    bits = np.asarray(values, np.float32).view(np.uint32).astype(np.uint64)
    even = (bits + 0x7FFF + (bits >> 16 & 1)) >> 16 << 16
    nan = np.isnan(values)
    return np.where(nan, np.float32(np.nan), even.astype(np.uint32).view(np.float32))


def canonical(combine, operands, axis):
    """The canonical tree over `axis` of a tuple of arrays; `combine` maps two tuples to one."""
    columns = [np.moveaxis(np.asarray(operand), axis, -1) for operand in operands]
    extent = columns[0].shape[-1]
    assert extent & (extent - 1) == 0
    with np.errstate(all="ignore"):
        while columns[0].shape[-1] > 1:
            left = tuple(column[..., 0::2] for column in columns)
            right = tuple(column[..., 1::2] for column in columns)
            columns = combine(left, right)
    return tuple(column[..., 0] for column in columns)


def total(values, axis, dtype):
    """The canonical sum."""
    add = lambda a, b: (rounded(a[0] + b[0], dtype),)  # noqa: E731
    return canonical(add, (values,), axis)[0]


def product(a, b, dtype):
    """An elementwise product, rounded on its own."""
    with np.errstate(all="ignore"):
        return rounded(a * b, dtype)


def welford(values, axis):
    """Mean, second moment and weight, as `kernels.welford_tile` combines them."""

    def combine(a, b):
        mean_a, m2_a, weight_a = a
        mean_b, m2_b, weight_b = b
        delta = mean_b - mean_a
        weight = weight_a + weight_b
        share = weight_b / weight
        m2 = m2_a + m2_b + delta * delta * weight_a * share
        return mean_a + delta * share, m2, weight

    zeros = values * values.dtype.type(0)
    return canonical(combine, (values, zeros, zeros + values.dtype.type(1)), axis)


def halving(values, axis):
    """`a * 0.5 + b`: does not commute."""
    half = values.dtype.type(0.5)
    return canonical(lambda a, b: (a[0] * half + b[0],), (values,), axis)[0]


def composition(scale, shift, axis):
    """Affine maps composed from left to right."""
    combine = lambda a, b: (a[0] * b[0], a[1] * b[0] + b[1])  # noqa: E731
    return canonical(combine, (scale, shift), axis)


def same_bits(got, expected):
    """Where two arrays hold the same bytes, any NaN being equal to any other."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype and got.shape == expected.shape
    unsigned = f"u{got.dtype.itemsize}"
    left, right = (np.ascontiguousarray(values).view(unsigned) for values in (got, expected))
    equal = left == right
    if got.dtype.kind == "f":
        equal |= np.isnan(got) & np.isnan(expected)
    return equal


def draw(rng, shape, dtype):
    """Values of mixed signs and wide exponents, so that a changed order shows."""
    if dtype in INTEGERS:
        info = np.iinfo(INTEGERS[dtype])
        return rng.integers(info.min, info.max, shape, INTEGERS[dtype], endpoint=True)
    reach = {"f64": 40, "f32": 20, "f16": 5, "bf16": 10}[dtype]
    values = rng.standard_normal(shape) * np.exp2(rng.integers(-reach, reach + 1, shape))
    return rounded(values.astype(FLOATS[dtype]), dtype)


def specials(rng, shape, dtype):
    """Subnormals, both zeros and cancelling values; here and there an infinity or a NaN."""
    tiny = {"f64": 2.0**-1070, "f32": 2.0**-145, "f16": 2.0**-22, "bf16": 2.0**-130}[dtype]
    with np.errstate(all="ignore"):
        values = (rng.standard_normal(shape) * tiny * 8).astype(FLOATS[dtype])
    values = np.where(rng.random(shape) < 0.3, FLOATS[dtype](-0.0), values)
    for odd in (np.inf, -np.inf, np.nan):
        values = np.where(rng.random(shape) < 0.0005, FLOATS[dtype](odd), values)
    return rounded(values.astype(FLOATS[dtype]), dtype)
