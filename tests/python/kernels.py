"""The kernels whose compiled bits are checked: small, one reduction idea each.

Every kernel takes its order as the constexpr `ORDER`, so that one source serves the pinned test and
its negative control (`ORDER=None`). Tiles are dense and row-major.
"""

import triton
import triton.language as tl


@triton.jit
def sum_vector(x, out, N: tl.constexpr, ORDER: tl.constexpr):
    """One row to one scalar."""
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, N)), axis=0, order=ORDER))


@triton.jit
def sum_padded(x, out, live, N: tl.constexpr, ORDER: tl.constexpr):
    """`live` elements, padded with zeros to a tile of `N`."""
    at = tl.arange(0, N)
    tl.store(out, tl.sum(tl.load(x + at, mask=at < live, other=0.0), axis=0, order=ORDER))


@triton.jit
def _tile(x, M: tl.constexpr, N: tl.constexpr):
    return tl.load(x + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def _store_kept(out, value, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr):
    if AXIS == 0:
        tl.store(out + tl.arange(0, N), value)
    else:
        tl.store(out + tl.arange(0, M), value)


@triton.jit
def sum_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr):
    """Row sums (`AXIS=1`) or column sums (`AXIS=0`) of an M x N tile."""
    _store_kept(out, tl.sum(_tile(x, M, N), axis=AXIS, order=ORDER), M, N, AXIS)


@triton.jit
def sum_middle(x, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr, ORDER: tl.constexpr):
    """The middle axis of a rank-3 tile."""
    a = tl.arange(0, A)[:, None, None]
    b = tl.arange(0, B)[None, :, None]
    c = tl.arange(0, C)[None, None, :]
    total = tl.sum(tl.load(x + (a * B + b) * C + c), axis=1, order=ORDER)
    tl.store(out + tl.arange(0, A)[:, None] * C + tl.arange(0, C)[None, :], total)


@triton.jit
def sum_all(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """`axis=None`: every element, in row-major order."""
    tl.store(out, tl.sum(_tile(x, M, N), order=ORDER))


@triton.jit
def sum_reshaped(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """An explicit reshape to one dimension feeds the sum; its element order is row-major."""
    flat = tl.reshape(_tile(x, M, N), [M * N])
    tl.store(out, tl.sum(flat, axis=0, order=ORDER))


@triton.jit
def sum_products(
    x, y, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr
):
    """`sum(x * y)`: the products must round on their own."""
    product = _tile(x, M, N) * _tile(y, M, N)
    _store_kept(out, tl.sum(product, axis=AXIS, order=ORDER), M, N, AXIS)


@triton.jit
def sum_outer(x, y, out, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The spelling that Triton likes to turn into a matrix product."""
    total = tl.sum(_tile(x, M, K)[:, :, None] * _tile(y, K, N)[None, :, :], axis=1, order=ORDER)
    tl.store(out + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :], total)


@triton.jit
def argmax_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr):
    """Index of the maximum; the lowest index wins a tie."""
    _store_kept(out, tl.argmax(_tile(x, M, N), axis=AXIS, order=ORDER), M, N, AXIS)


@triton.jit
def max_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr):
    """Plain maximum: insensitive to the order, whatever lowering it takes."""
    _store_kept(out, tl.max(_tile(x, M, N), axis=AXIS, order=ORDER), M, N, AXIS)


@triton.jit
def _welford_combine(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    delta = mean_b - mean_a
    weight = weight_a + weight_b
    share = weight_b / weight
    return mean_a + delta * share, m2_a + m2_b + delta * delta * weight_a * share, weight


@triton.jit
def welford_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr):
    """Mean, second moment and weight in one tuple reduction with a division."""
    tile = _tile(x, M, N)
    mean, m2, weight = tl.reduce(
        (tile, tile * 0.0, tile * 0.0 + 1.0), AXIS, _welford_combine, order=ORDER
    )
    K: tl.constexpr = N if AXIS == 0 else M
    _store_kept(out, mean, M, N, AXIS)
    _store_kept(out + K, m2, M, N, AXIS)
    _store_kept(out + 2 * K, weight, M, N, AXIS)


@triton.jit
def _halving(a, b):
    return a * 0.5 + b


@triton.jit
def halve_tile(x, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr):
    """A combine that does not commute: the lower index must be the left operand."""
    _store_kept(out, tl.reduce(_tile(x, M, N), AXIS, _halving, order=ORDER), M, N, AXIS)


@triton.jit
def _compose(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def compose_tile(
    x, y, out, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, ORDER: tl.constexpr
):
    """Composes affine maps: a tuple reduction that does not commute."""
    K: tl.constexpr = N if AXIS == 0 else M
    pair = (_tile(x, M, N), _tile(y, M, N))
    scale, shift = tl.reduce(pair, AXIS, _compose, order=ORDER)
    _store_kept(out, scale, M, N, AXIS)
    _store_kept(out + K, shift, M, N, AXIS)


@triton.jit
def loop_subtract(x, out, steps, N: tl.constexpr, ORDER: tl.constexpr):
    """`acc -= sum(load)`: stock Triton 3.9 adds instead."""
    acc = 0.0
    for i in range(steps):
        acc -= tl.sum(tl.load(x + i * N + tl.arange(0, N)), axis=0, order=ORDER)
    tl.store(out, acc)


@triton.jit
def loop_decay(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """`acc * 0.5 + sum(load)` by row."""
    acc = tl.zeros([M], tl.float32)
    for i in range(steps):
        acc = acc * 0.5 + tl.sum(_tile(x + i * M * N, M, N), axis=1, order=ORDER)
    tl.store(out + tl.arange(0, M), acc)


@triton.jit
def branch_sum(x, out, flag, N: tl.constexpr, ORDER: tl.constexpr):
    """A pinned sum on each side of a branch the compiler cannot decide."""
    at = tl.arange(0, N)
    if flag > 0:
        tl.store(out, tl.sum(tl.load(x + at), axis=0, order=ORDER))
    else:
        tl.store(out, tl.sum(-tl.load(x + at) * 3.0, axis=0, order=ORDER))


@triton.jit
def two_orders(x, out, N: tl.constexpr, FIRST: tl.constexpr, SECOND: tl.constexpr):
    """Two calls of equal type and different order must not share one function."""
    at = tl.arange(0, N)
    tl.store(out, tl.sum(tl.load(x + at), axis=0, order=FIRST))
    tl.store(out + 1, tl.sum(tl.load(x + N + at), axis=0, order=SECOND))
