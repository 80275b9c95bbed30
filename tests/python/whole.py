"""Whole kernels as people write them, for the executor: each uses another part of PTX."""

import triton
import triton.language as tl


@triton.jit
def layernorm_forward(
    x, w, b, y, mean, rstd, columns, eps, BLOCK: tl.constexpr, ORDER: tl.constexpr
):
    """One row a program; also stores what the backward pass needs."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0)
    m = tl.sum(v, 0, order=ORDER) / columns
    centred = tl.where(inside, v - m, 0.0)
    r = 1 / tl.sqrt(tl.sum(centred * centred, 0, order=ORDER) / columns + eps)
    tl.store(mean + row, m)
    tl.store(rstd + row, r)
    scaled = centred * r * tl.load(w + at, mask=inside, other=0.0)
    tl.store(y + row * columns + at, scaled + tl.load(b + at, mask=inside, other=0.0), mask=inside)


@triton.jit
def layernorm_backward(
    x, w, dy, mean, rstd, dx, dw, db, locks, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr
):
    """dX of one row; dW and dB are added to one of GROUPS partial sums under a lock."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    v = tl.load(x + row * columns + at, mask=inside, other=0.0)
    g = tl.load(dy + row * columns + at, mask=inside, other=0.0)
    r = tl.load(rstd + row)
    hat = tl.where(inside, (v - tl.load(mean + row)) * r, 0.0)
    wg = g * tl.load(w + at, mask=inside, other=0.0)
    c1 = tl.sum(hat * wg, 0, order="inner_tree") / columns
    c2 = tl.sum(wg, 0, order="inner_tree") / columns
    tl.store(dx + row * columns + at, (wg - (hat * c1 + c2)) * r, mask=inside)
    group = row % GROUPS
    lock = locks + group
    while tl.atomic_cas(lock, 0, 1) == 1:
        pass
    partial_w = dw + group * columns + at
    partial_b = db + group * columns + at
    tl.store(partial_w, tl.load(partial_w, mask=inside) + g * hat, mask=inside)
    tl.store(partial_b, tl.load(partial_b, mask=inside) + g, mask=inside)
    tl.debug_barrier()
    tl.atomic_xchg(lock, 0)


@triton.jit
def sum_groups(partial, out, columns, GROUPS: tl.constexpr, BLOCK: tl.constexpr):
    """The second stage of the backward pass: column sums of the partial sums."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < columns
    rows = tl.arange(0, GROUPS)[:, None]
    tile = tl.load(partial + rows * columns + at[None, :], mask=inside[None, :], other=0.0)
    tl.store(out + at, tl.sum(tile, 0, order="inner_tree"), mask=inside)


@triton.jit
def argmax_rows(x, out, columns, BLOCK: tl.constexpr):
    """The lowest index of the largest element of a row."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    tl.store(out + row, tl.argmax(v, 0))


@triton.jit
def cumsum_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    """Prefix sums of integers: exact in any order."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1))


@triton.jit
def sort_rows(x, out, M: tl.constexpr, N: tl.constexpr):
    """A bitonic network."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at), 1))


@triton.jit
def matmul(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
    PRECISION: tl.constexpr,
):  # fmt: skip
    """A tile of C a program; the loop is pipelined by num_stages."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(0, K, BK):
        live = k + depth < K
        left = tl.load(
            a + rows[:, None] * K + (k + depth)[None, :],
            mask=(rows < M)[:, None] & live[None, :], other=0.0,
        )  # fmt: skip
        right = tl.load(
            b + (k + depth)[:, None] * N + columns[None, :],
            mask=live[:, None] & (columns < N)[None, :], other=0.0,
        )  # fmt: skip
        total = tl.dot(left, right, total, input_precision=PRECISION)
    inside = (rows < M)[:, None] & (columns < N)[None, :]
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=inside)


@triton.jit
def attention(q, k, v, out, length, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr):
    """Flash attention forward, causal, one block of queries a program."""
    queries = tl.program_id(0) * BM + tl.arange(0, BM)
    lanes = tl.arange(0, D)
    qs = tl.load(q + queries[:, None] * D + lanes[None, :])
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for start in range(0, (tl.program_id(0) + 1) * BM, BN):
        keys = start + tl.arange(0, BN)
        ks = tl.load(k + keys[None, :] * D + lanes[:, None])
        scores = tl.dot(qs, ks) * scale
        scores = tl.where(queries[:, None] >= keys[None, :], scores, -float("inf"))
        higher = tl.maximum(top, tl.max(scores, 1))
        weights = tl.exp(scores - higher[:, None])
        shrink = tl.exp(top - higher)
        total = total * shrink + tl.sum(weights, 1, order="inner_tree")
        vs = tl.load(v + keys[:, None] * D + lanes[None, :])
        acc = tl.dot(weights.to(vs.dtype), vs, acc * shrink[:, None])
        top = higher
    tl.store(out + queries[:, None] * D + lanes[None, :], acc / total[:, None])


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    """Keeps an element where a counter-based random number says so."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, mask=at < n)
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0), mask=at < n)


@triton.jit
def tally(x, bins, extremes, n, BLOCK: tl.constexpr):
    """Integer atomics between programs: sums and extremes, whatever the order."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, mask=at < n, other=0)
    tl.atomic_add(bins + v % 16, 1, mask=at < n)
    tl.atomic_max(extremes, tl.max(v, 0))
    tl.atomic_min(extremes + 1, tl.min(tl.where(at < n, v, 1 << 30), 0))


@triton.jit
def add_floats(x, out, BLOCK: tl.constexpr):
    """Float atomics between programs: the result depends on who comes first."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.atomic_add(out, tl.sum(tl.load(x + at), 0))


@triton.jit
def tickets(counter, out, work, BLOCK: tl.constexpr):
    """Programs draw pieces of work from a counter until none is left."""
    ticket = tl.atomic_add(counter, 1)
    while ticket < work:
        at = ticket * BLOCK + tl.arange(0, BLOCK)
        tl.store(out + at, at * at)
        ticket = tl.atomic_add(counter, 1)
