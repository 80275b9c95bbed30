"""Reductions over loops, scans, and kernels that only move or map elements."""

import triton
import triton.language as tl


@triton.jit
def _rows(M: tl.constexpr):
    return tl.program_id(0) * M + tl.arange(0, M)


@triton.jit
def sum_chained(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A sum a tile, added up over the loop."""
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        at = _rows(M)[:, None] * (steps * N) + step * N + tl.arange(0, N)[None, :]
        total += tl.sum(tl.load(x + at), axis=1, order=ORDER)
    tl.store(out + _rows(M), total)


@triton.jit
def sum_gathered(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Tiles added up over the loop, then one sum."""
    total = tl.zeros([M, N], tl.float32)
    for step in range(steps):
        at = _rows(M)[:, None] * (steps * N) + step * N + tl.arange(0, N)[None, :]
        total += tl.load(x + at)
    tl.store(out + _rows(M), tl.sum(total, axis=1, order=ORDER))


@triton.jit
def sum_decayed(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """A loop whose update is no plain sum."""
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        at = _rows(M)[:, None] * (steps * N) + step * N + tl.arange(0, N)[None, :]
        total = total * 0.5 + tl.sum(tl.load(x + at), axis=1, order=ORDER)
    tl.store(out + _rows(M), total)


@triton.jit
def sum_bounded(x, out, live, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows of any length, in tiles of `N`, the last one masked."""
    total = tl.zeros([M, N], tl.float32)
    for start in range(0, live, N):
        at = start + tl.arange(0, N)[None, :]
        total += tl.load(x + _rows(M)[:, None] * live + at, mask=at < live, other=0.0)
    tl.store(out + _rows(M), tl.sum(total, axis=1, order=ORDER))


@triton.jit
def matrix_vector(x, y, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows by a vector, block by block; the loads are pipelined."""
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        at = step * N + tl.arange(0, N)
        tile = tl.load(x + _rows(M)[:, None] * (steps * N) + at[None, :])
        total += tl.sum(tile * tl.load(y + at)[None, :], axis=1, order=ORDER)
    tl.store(out + _rows(M), total)


@triton.jit
def softmax_online(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Maximum and sum of exponentials in one pass; the sum is rescaled where the maximum moves."""
    most = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    for step in range(steps):
        at = _rows(M)[:, None] * (steps * N) + step * N + tl.arange(0, N)[None, :]
        tile = tl.load(x + at)
        top = tl.maximum(most, tl.max(tile, axis=1, order=ORDER))
        part = tl.sum(tl.exp(tile - top[:, None]), axis=1, order=ORDER)
        total = total * tl.exp(most - top) + part
        most = top
    tl.store(out + _rows(M), most + tl.log(total))


@triton.jit
def max_looped(x, out, steps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    most = tl.full([M], -float("inf"), tl.float32)
    for step in range(steps):
        at = _rows(M)[:, None] * (steps * N) + step * N + tl.arange(0, N)[None, :]
        most = tl.maximum(most, tl.max(tl.load(x + at), axis=1, order=ORDER))
    tl.store(out + _rows(M), most)


@triton.jit
def sum_columns_looped(
    x, out, steps,
    M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr, ORDER: tl.constexpr,
):  # fmt: skip
    """Columns, `M` rows at a time."""
    columns = tl.program_id(0) * B + tl.arange(0, B)
    total = tl.zeros([B], tl.float32)
    for step in range(steps):
        rows = step * M + tl.arange(0, M)
        tile = tl.load(x + rows[:, None] * COLUMNS + columns[None, :])
        total += tl.sum(tile, axis=0, order=ORDER)
    tl.store(out + columns, total)


@triton.jit
def _places(M: tl.constexpr, N: tl.constexpr):
    return _rows(M)[:, None] * N + tl.arange(0, N)[None, :]


@triton.jit
def cumulate_rows(x, out, M: tl.constexpr, N: tl.constexpr, REVERSE: tl.constexpr):
    at = _places(M, N)
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1, reverse=REVERSE))


@triton.jit
def cumulate_columns(x, out, M: tl.constexpr, B: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * B + tl.arange(0, B)
    at = tl.arange(0, M)[:, None] * COLUMNS + columns[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 0))


@triton.jit
def cumulate_products(x, out, M: tl.constexpr, N: tl.constexpr):
    at = _places(M, N)
    tl.store(out + at, tl.cumprod(tl.load(x + at), 1))


@triton.jit
def _follow(scale_a, shift_a, scale_b, shift_b):
    return scale_a * scale_b, shift_a * scale_b + shift_b


@triton.jit
def recurrence(x, y, out, M: tl.constexpr, N: tl.constexpr):
    """Affine maps, composed from the left."""
    at = _places(M, N)
    _, shift = tl.associative_scan((tl.load(x + at), tl.load(y + at)), 1, _follow)
    tl.store(out + at, shift)


@triton.jit
def _larger(a, b):
    return tl.maximum(a, b)


@triton.jit
def running_max(x, out, M: tl.constexpr, N: tl.constexpr):
    at = _places(M, N)
    tl.store(out + at, tl.associative_scan(tl.load(x + at), 1, _larger))


@triton.jit
def axpy(x, y, out, a, n, BLOCK: tl.constexpr):
    """A product and a sum, which fusion contracts."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    tl.store(out + at, a * tl.load(x + at, mask) + tl.load(y + at, mask), mask)


@triton.jit
def gated(x, y, out, n, BLOCK: tl.constexpr):
    """SwiGLU."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    gate = tl.load(x + at, mask, other=0.0).to(tl.float32)
    value = gate * tl.sigmoid(gate) * tl.load(y + at, mask, other=0.0).to(tl.float32)
    tl.store(out + at, value.to(out.dtype.element_ty), mask)


@triton.jit
def bell(x, out, n, BLOCK: tl.constexpr):
    """GELU, by its cube."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0.0)
    inner = 0.7978845608028654 * (v + 0.044715 * v * v * v)
    tl.store(out + at, v / (1.0 + tl.exp(-2.0 * inner)), at < n)


@triton.jit
def transpose(x, out, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr):
    """A tile moved through shared memory."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    at = tl.arange(0, N)
    tile = tl.trans(tl.load(x + rows[:, None] * N + at[None, :]))
    tl.store(out + at[:, None] * ROWS + rows[None, :], tile)


@triton.jit
def sort_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    at = _places(M, N)
    tl.store(out + at, tl.sort(tl.load(x + at)))
