"""Reductions along rows: a program takes `M` rows of `N` elements each, dense in memory."""

import triton
import triton.language as tl


@triton.jit
def _rows(M: tl.constexpr):
    return tl.program_id(0) * M + tl.arange(0, M)


@triton.jit
def _places(M: tl.constexpr, N: tl.constexpr):
    return _rows(M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def _tile(x, M: tl.constexpr, N: tl.constexpr):
    return tl.load(x + _places(M, N))


@triton.jit
def sum_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.sum(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def sum_rows_wider(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Narrow floats, added as f32 and rounded back."""
    total = tl.sum(_tile(x, M, N).to(tl.float32), axis=1, order=ORDER)
    tl.store(out + _rows(M), total.to(out.dtype.element_ty))


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def product_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.reduce(_tile(x, M, N), 1, _multiply, order=ORDER))


@triton.jit
def max_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.max(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def min_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.min(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def argmax_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.argmax(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def max_with_index_rows(x, out, at, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    best, where = tl.max(_tile(x, M, N), 1, return_indices=True, order=ORDER)
    tl.store(out + _rows(M), best)
    tl.store(at + _rows(M), where)


@triton.jit
def _merge(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = weight_b / weight
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def welford_rows(x, mean, m2, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile = _tile(x, M, N)
    first, second, _ = tl.reduce(
        (tile, tl.zeros_like(tile), tl.full([M, N], 1.0, tile.dtype)), 1, _merge, order=ORDER
    )
    tl.store(mean + _rows(M), first)
    tl.store(m2 + _rows(M), second)


@triton.jit
def _halve(a, b):
    return a * 0.5 + b


@triton.jit
def halve_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A combine that does not commute."""
    tl.store(out + _rows(M), tl.reduce(_tile(x, M, N), 1, _halve, order=ORDER))


@triton.jit
def _compose(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def compose_rows(x, y, scale, shift, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Affine maps, composed: a tuple that does not commute."""
    first, second = tl.reduce((_tile(x, M, N), _tile(y, M, N)), 1, _compose, order=ORDER)
    tl.store(scale + _rows(M), first)
    tl.store(shift + _rows(M), second)


@triton.jit
def dot_rows(x, y, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Sums of products, which may be contracted where nothing pins them."""
    tl.store(out + _rows(M), tl.sum(_tile(x, M, N) * _tile(y, M, N), axis=1, order=ORDER))


@triton.jit
def mean_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.sum(_tile(x, M, N), axis=1, order=ORDER) / N)


@triton.jit
def mean_squares_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile = _tile(x, M, N)
    tl.store(out + _rows(M), tl.sum(tile * tile, axis=1, order=ORDER) / N)


@triton.jit
def variance_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The mean, then the squares of what is left."""
    tile = _tile(x, M, N)
    rest = tile - (tl.sum(tile, axis=1, order=ORDER) / N)[:, None]
    tl.store(out + _rows(M), tl.sum(rest * rest, axis=1, order=ORDER) / N)


@triton.jit
def moments_rows(x, first, second, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Sum and sum of squares in one pass."""
    tile = _tile(x, M, N)
    tl.store(first + _rows(M), tl.sum(tile, axis=1, order=ORDER))
    tl.store(second + _rows(M), tl.sum(tile * tile, axis=1, order=ORDER))


@triton.jit
def sum_exp_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.sum(tl.exp(_tile(x, M, N)), axis=1, order=ORDER))


@triton.jit
def sum_abs_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.sum(tl.abs(_tile(x, M, N)), axis=1, order=ORDER))


@triton.jit
def sum_padded_rows(x, out, live, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows of `live` elements in tiles of `N`; what is behind them is zero."""
    at = tl.arange(0, N)[None, :]
    tile = tl.load(x + _rows(M)[:, None] * live + at, mask=at < live, other=0.0)
    tl.store(out + _rows(M), tl.sum(tile, axis=1, order=ORDER))


@triton.jit
def sum_integers_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """One result in any order."""
    tl.store(out + _rows(M), tl.sum(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def xor_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tl.store(out + _rows(M), tl.xor_sum(_tile(x, M, N), axis=1, order=ORDER))


@triton.jit
def normalise_rows(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows divided by their length."""
    tile = _tile(x, M, N)
    length = tl.sqrt(tl.sum(tile * tile, axis=1, order=ORDER))
    tl.store(out + _places(M, N), tile / length[:, None])


@triton.jit
def quantise_rows(x, out, scale, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows to i8 by their largest magnitude."""
    tile = _tile(x, M, N)
    step = tl.max(tl.abs(tile), axis=1, order=ORDER) / 127.0
    tl.store(scale + _rows(M), step)
    scaled = tl.clamp(tile / step[:, None], -127.0, 127.0)
    tl.store(out + _places(M, N), scaled.to(tl.int8))
