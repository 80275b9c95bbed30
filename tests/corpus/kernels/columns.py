"""Reductions down columns and along middle axes, and of whole tiles.

A program takes `B` columns of a dense matrix of `M` rows and `COLUMNS` columns.
"""

import triton
import triton.language as tl


@triton.jit
def _columns(B: tl.constexpr):
    return tl.program_id(0) * B + tl.arange(0, B)


@triton.jit
def _tile(x, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr):
    return tl.load(x + tl.arange(0, M)[:, None] * COLUMNS + _columns(B)[None, :])


@triton.jit
def sum_columns(
    x, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    tl.store(out + _columns(B), tl.sum(_tile(x, M, B, COLUMNS), axis=0, order=ORDER))


@triton.jit
def dot_columns(
    x, y, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    product = _tile(x, M, B, COLUMNS) * _tile(y, M, B, COLUMNS)
    tl.store(out + _columns(B), tl.sum(product, axis=0, order=ORDER))


@triton.jit
def max_columns(
    x, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    tl.store(out + _columns(B), tl.max(_tile(x, M, B, COLUMNS), axis=0, order=ORDER))


@triton.jit
def argmax_columns(
    x, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    tl.store(out + _columns(B), tl.argmax(_tile(x, M, B, COLUMNS), axis=0, order=ORDER))


@triton.jit
def _merge(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = weight_b / weight
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def welford_columns(
    x, mean, m2, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    tile = _tile(x, M, B, COLUMNS)
    first, second, _ = tl.reduce(
        (tile, tl.zeros_like(tile), tl.full([M, B], 1.0, tile.dtype)), 0, _merge, order=ORDER
    )
    tl.store(mean + _columns(B), first)
    tl.store(m2 + _columns(B), second)


@triton.jit
def softmax_columns(
    x, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    tile = _tile(x, M, B, COLUMNS)
    raised = tl.exp(tile - tl.max(tile, axis=0, order=ORDER)[None, :])
    share = raised / tl.sum(raised, axis=0, order=ORDER)[None, :]
    tl.store(out + tl.arange(0, M)[:, None] * COLUMNS + _columns(B)[None, :], share)


@triton.jit
def batch_norm(
    x, out, eps, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr
):
    """Columns to mean 0 and variance 1."""
    tile = _tile(x, M, B, COLUMNS)
    rest = tile - (tl.sum(tile, axis=0, order=ORDER) / M)[None, :]
    spread = tl.sum(rest * rest, axis=0, order=ORDER) / M
    scaled = rest * tl.rsqrt(spread + eps)[None, :]
    tl.store(out + tl.arange(0, M)[:, None] * COLUMNS + _columns(B)[None, :], scaled)


@triton.jit
def layer_norm_dwdb(
    dy, x, mean, rstd, dw, db, steps,
    M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr,
):  # fmt: skip
    """Gradients of weight and bias: column sums, `M` rows at a time."""
    scales, shifts = tl.zeros([B], tl.float32), tl.zeros([B], tl.float32)
    for step in range(steps):
        rows = step * M + tl.arange(0, M)
        places = rows[:, None] * COLUMNS + _columns(B)[None, :]
        slope = tl.load(dy + places)
        level = tl.load(x + places) - tl.load(mean + rows)[:, None]
        scales += tl.sum(slope * level * tl.load(rstd + rows)[:, None], axis=0, order=ORDER)
        shifts += tl.sum(slope, axis=0, order=ORDER)
    tl.store(dw + _columns(B), scales)
    tl.store(db + _columns(B), shifts)


@triton.jit
def sum_middle(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    """The middle axis of `A` by `B` by `C`."""
    a = (tl.program_id(0) * A + tl.arange(0, A))[:, None, None]
    b, c = tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    total = tl.sum(tl.load(x + (a * B + b) * C + c), axis=1, order=ORDER)
    rows = tl.program_id(0) * A + tl.arange(0, A)
    tl.store(out + rows[:, None] * C + tl.arange(0, C)[None, :], total)


@triton.jit
def max_middle(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    a = (tl.program_id(0) * A + tl.arange(0, A))[:, None, None]
    b, c = tl.arange(0, B)[None, :, None], tl.arange(0, C)[None, None, :]
    most = tl.max(tl.load(x + (a * B + b) * C + c), axis=1, order=ORDER)
    rows = tl.program_id(0) * A + tl.arange(0, A)
    tl.store(out + rows[:, None] * C + tl.arange(0, C)[None, :], most)


@triton.jit
def sum_first(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    """The first axis of three."""
    a, b = tl.arange(0, A)[:, None, None], tl.arange(0, B)[None, :, None]
    tile = tl.load(x + (a * B + b) * C + tl.arange(0, C)[None, None, :])
    total = tl.sum(tile, axis=0, order=ORDER)
    tl.store(out + tl.arange(0, B)[:, None] * C + tl.arange(0, C)[None, :], total)


@triton.jit
def sum_all(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Every element of a tile, in row-major order."""
    at = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.program_id(0), tl.sum(tl.load(x + at), order=ORDER))


@triton.jit
def sum_reshaped(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A tile, reshaped to one axis."""
    at = tl.program_id(0) * M * N + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    flat = tl.reshape(tl.load(x + at), [M * N])
    tl.store(out + tl.program_id(0), tl.sum(flat, axis=0, order=ORDER))


@triton.jit
def sum_transposed(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Row sums of a transposed tile, which are column sums."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + tl.arange(0, N), tl.sum(tl.trans(tl.load(x + at)), axis=1, order=ORDER))


@triton.jit
def sum_vector(x, out, N: tl.constexpr, ORDER: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0)
    tl.store(out + row, tl.sum(tl.load(x + row * N + tl.arange(0, N)), axis=0, order=ORDER))


@triton.jit
def sum_outer(x, y, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A matrix product, spelled as a sum of outer products."""
    m, k, n = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    left = tl.load(x + m[:, None] * K + k[None, :])
    right = tl.load(y + k[:, None] * N + n[None, :])
    total = tl.sum(left[:, :, None] * right[None, :, :], axis=1, order=ORDER)
    tl.store(out + m[:, None] * N + n[None, :], total)
