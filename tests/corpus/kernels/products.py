"""Matrix products on the matrix unit, and attention."""

import triton
import triton.language as tl


@triton.jit
def matmul(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COLUMNS: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * COLUMNS + column[None, :])
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
    tl.store(c + row[:, None] * COLUMNS + column[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def matmul_transposed(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COLUMNS: tl.constexpr
):
    """The right operand has its columns in rows."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + column[None, :] * k + (start + inner)[:, None])
        acc = tl.dot(left, right, acc)
    tl.store(c + row[:, None] * COLUMNS + column[None, :], acc)


@triton.jit
def matmul_biased(
    a, b, bias, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COLUMNS: tl.constexpr
):
    """A product, a bias, and what is below zero cut off."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, k, K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * COLUMNS + column[None, :])
        acc += tl.dot(left, right)
    acc = tl.maximum(acc + tl.load(bias + column)[None, :], 0.0)
    tl.store(c + row[:, None] * COLUMNS + column[None, :], acc.to(c.dtype.element_ty))


@triton.jit
def matmul_split(
    a, b, c, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, COLUMNS: tl.constexpr,
    ROWS: tl.constexpr, SPLIT: tl.constexpr,
):  # fmt: skip
    """Every program takes one slice of the inner axis, and leaves a partial product."""
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    first = tl.program_id(2) * (k // SPLIT)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(first, first + k // SPLIT, K):
        left = tl.load(a + row[:, None] * k + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * COLUMNS + column[None, :])
        acc = tl.dot(left, right, acc)
    part = c + tl.program_id(2) * ROWS * COLUMNS
    tl.store(part + row[:, None] * COLUMNS + column[None, :], acc)


@triton.jit
def sum_partials(c, out, BLOCK: tl.constexpr, SPLIT: tl.constexpr, SIZE: tl.constexpr):
    """Partial products added up, in their order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.load(c + at)
    for part in tl.static_range(1, SPLIT):
        total += tl.load(c + part * SIZE + at)
    tl.store(out + at, total)


@triton.jit
def dot_row_sums(a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ORDER: tl.constexpr):
    """A product whose rows are added: the operand has the matrix unit's layout."""
    m, n, k = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    product = tl.dot(left, tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(out + m, tl.sum(product, axis=1, order=ORDER))


@triton.jit
def dot_column_sums(
    a, b, out, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, ORDER: tl.constexpr
):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    left = tl.load(a + m[:, None] * K + k[None, :])
    product = tl.dot(left, tl.load(b + k[:, None] * N + n[None, :]))
    tl.store(out + n, tl.sum(product, axis=0, order=ORDER))


@triton.jit
def attention(
    q, k, v, out, scale, LENGTH: tl.constexpr, D: tl.constexpr, M: tl.constexpr,
    N: tl.constexpr, CAUSAL: tl.constexpr, ORDER: tl.constexpr,
):  # fmt: skip
    """Flash attention, forward; one head."""
    first = tl.program_id(0) * M
    row, lane = first + tl.arange(0, M), tl.arange(0, D)
    query = tl.load(q + row[:, None] * D + lane[None, :])
    most = tl.full([M], -float("inf"), tl.float32)
    total = tl.zeros([M], tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    last = LENGTH if not CAUSAL else tl.minimum(first + M, LENGTH)
    for start in range(0, last, N):
        at = start + tl.arange(0, N)
        key = tl.load(k + at[None, :] * D + lane[:, None])
        score = tl.dot(query, key) * scale
        if CAUSAL:
            score = tl.where(row[:, None] >= at[None, :], score, -float("inf"))
        top = tl.maximum(most, tl.max(score, axis=1, order=ORDER))
        share = tl.math.exp2(score - top[:, None])
        fade = tl.math.exp2(most - top)
        total = total * fade + tl.sum(share, axis=1, order=ORDER)
        value = tl.load(v + at[:, None] * D + lane[None, :])
        acc = tl.dot(share.to(value.dtype), value, acc * fade[:, None])
        most = top
    acc = acc / total[:, None]
    tl.store(out + row[:, None] * D + lane[None, :], acc.to(out.dtype.element_ty))


@triton.jit
def attention_decode(
    q, k, v, out, scale, LENGTH: tl.constexpr, D: tl.constexpr, N: tl.constexpr,
    ORDER: tl.constexpr,
):  # fmt: skip
    """One query a program against all keys, without the matrix unit."""
    head, lane = tl.program_id(0), tl.arange(0, D)
    query = tl.load(q + head * D + lane)
    most, total = -float("inf"), 0.0
    acc = tl.zeros([D], tl.float32)
    for start in range(0, LENGTH, N):
        at = (head * LENGTH + start + tl.arange(0, N))[:, None] * D + lane[None, :]
        score = tl.sum(query[None, :] * tl.load(k + at), axis=1, order=ORDER) * scale
        top = tl.maximum(most, tl.max(score, axis=0, order=ORDER))
        share = tl.math.exp2(score - top)
        fade = tl.math.exp2(most - top)
        total = total * fade + tl.sum(share, axis=0, order=ORDER)
        acc = acc * fade + tl.sum(share[:, None] * tl.load(v + at), axis=0, order=ORDER)
        most = top
    tl.store(out + head * D + lane, acc / total)
