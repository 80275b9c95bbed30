"""Reduction kernels for `bit_classes.py` that `tests/python/kernels.py` does not have.

Each takes its order as the constexpr `ORDER`, so that one source serves the pinned kernel and its
unordered twin. Rows are dense; a program works on one tile.
"""

# ruff: noqa: ANN001, ANN201, ANN202 - kernels have no annotations but constexpr

import triton
import triton.language as tl


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _tile(x, M: tl.constexpr, N: tl.constexpr):
    return tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def product_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Products of rows."""
    total = tl.reduce(_tile(x, M, N), 1, _multiply, order=ORDER)
    tl.store(out + tl.arange(0, M), total)


@triton.jit
def sum_wider(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Narrow floats, added as f32."""
    tl.store(out + tl.arange(0, M), tl.sum(_tile(x, M, N).to(tl.float32), axis=1, order=ORDER))


@triton.jit
def mean_squares(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The mean of squares."""
    tile = _tile(x, M, N)
    tl.store(out + tl.arange(0, M), tl.sum(tile * tile, axis=1, order=ORDER) / N)


@triton.jit
def variance(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Two passes over a row: the mean, then the squares of what is left."""
    tile = _tile(x, M, N)
    mean = tl.sum(tile, axis=1, order=ORDER) / N
    rest = tile - mean[:, None]
    tl.store(out + tl.arange(0, M), tl.sum(rest * rest, axis=1, order=ORDER) / N)


@triton.jit
def sum_exp(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The sum of exponentials."""
    tl.store(out + tl.arange(0, M), tl.sum(tl.exp(_tile(x, M, N)), axis=1, order=ORDER))


@triton.jit
def logsumexp(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """With the maximum taken out."""
    tile = _tile(x, M, N)
    most = tl.max(tile, axis=1, order=ORDER)
    total = tl.sum(tl.exp(tile - most[:, None]), axis=1, order=ORDER)
    tl.store(out + tl.arange(0, M), most + tl.log(total))


@triton.jit
def softmax(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Of rows."""
    tile = _tile(x, M, N)
    raised = tl.exp(tile - tl.max(tile, axis=1, order=ORDER)[:, None])
    share = raised / tl.sum(raised, axis=1, order=ORDER)[:, None]
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], share)


@triton.jit
def layer_norm(x, weight, bias, out, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows to mean 0 and variance 1, then scaled and shifted."""
    tile = _tile(x, M, N)
    at = tl.arange(0, N)
    rest = tile - (tl.sum(tile, axis=1, order=ORDER) / N)[:, None]
    spread = tl.sum(rest * rest, axis=1, order=ORDER) / N
    scaled = rest * (1.0 / tl.sqrt_rn(spread + eps))[:, None]
    moved = scaled * tl.load(weight + at)[None, :] + tl.load(bias + at)[None, :]
    tl.store(out + tl.arange(0, M)[:, None] * N + at[None, :], moved)


@triton.jit
def rms_norm(x, weight, out, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows divided by the root of their mean square."""
    tile = _tile(x, M, N)
    at = tl.arange(0, N)
    root = tl.sqrt_rn(tl.sum(tile * tile, axis=1, order=ORDER) / N + eps)
    scaled = tl.div_rn(tile, root[:, None]) * tl.load(weight + at)[None, :]
    tl.store(out + tl.arange(0, M)[:, None] * N + at[None, :], scaled)


@triton.jit
def matrix_vector(x, y, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A row's products with a vector, block by block; the loads are pipelined."""
    rows, at = tl.arange(0, M), tl.arange(0, N)
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        tile = tl.load(x + rows[:, None] * (steps * N) + step * N + at[None, :])
        part = tl.load(y + step * N + at)
        total += tl.sum(tile * part[None, :], axis=1, order=ORDER)
    tl.store(out + rows, total)


@triton.jit
def dot_row_sums(x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ORDER: tl.constexpr):
    """A matrix product whose rows are added: the operand has the matrix unit's layout."""
    product = tl.dot(_tile(x, M, K), _tile(y, K, N))
    tl.store(out + tl.arange(0, M), tl.sum(product, axis=1, order=ORDER))


@triton.jit
def dot_column_sums(
    x, y, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ORDER: tl.constexpr
):
    """The same by columns."""
    product = tl.dot(_tile(x, M, K), _tile(y, K, N))
    tl.store(out + tl.arange(0, N), tl.sum(product, axis=0, order=ORDER))


@triton.jit
def bucket_sums(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows by a program each, of a grid; the last step of a reduction in two launches."""
    row = tl.program_id(0)
    at = row * N + tl.arange(0, N)
    tl.store(out + row, tl.sum(tl.load(x + at), axis=0, order=ORDER))
