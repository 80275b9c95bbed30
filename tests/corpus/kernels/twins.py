"""Near twins: kernels whose `VARIANT`s differ in one operand, one rounding or one place.

What a checker must keep apart stands here in one case. A few variants are equal for every input.
"""

import triton
import triton.language as tl


@triton.jit
def _rows(M: tl.constexpr):
    return tl.program_id(0) * M + tl.arange(0, M)


@triton.jit
def twins_rows(
    x, out, M: tl.constexpr, N: tl.constexpr, VARIANT: tl.constexpr, ORDER: tl.constexpr
):
    """Row sums of almost the same leaves."""
    at = tl.arange(0, N)
    if VARIANT == 1:  # one leaf is another
        at = tl.where(at == 3, 4, at)
    elif VARIANT == 2:  # two leaves change places
        at = at ^ tl.where((at >> 1) == 5, 1, 0)
    elif VARIANT == 3:  # leaves from the other end
        at = N - 1 - at
    elif VARIANT == 4:  # halves change places
        at = at ^ (N // 2)
    tile = tl.load(x + _rows(M)[:, None] * N + at[None, :])
    if VARIANT == 5:
        tile = -tile
    elif VARIANT == 6:
        tile = tile.to(tl.float16).to(tl.float32)
    elif VARIANT == 7:
        tile = tile.to(tl.float16, fp_downcast_rounding="rtz").to(tl.float32)
    elif VARIANT == 8:
        tile = tl.where(tile > 0.0, tile, 0.0)
    elif VARIANT == 9:
        tile = tl.where(tile >= 0.0, tile, 0.0)
    elif VARIANT == 10:
        tile = tl.maximum(tile, 0.0)
    elif VARIANT == 11:
        tile = tl.maximum(tile, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif VARIANT == 12:
        tile = tile + 0.0
    elif VARIANT == 13:
        tile = tl.load(x + _rows(M)[:, None] * N + at[None, :], mask=at[None, :] < N - 1, other=0.0)
    elif VARIANT == 14:
        tile = tl.load(x + _rows(M)[:, None] * N + at[None, :], mask=at[None, :] < N - 1, other=1.0)
    total = tl.sum(tile, axis=1, order=ORDER)
    if VARIANT == 15:
        total = total * 1.0000001
    elif VARIANT == 16:
        total = total.to(tl.bfloat16).to(tl.float32)
    rows = _rows(M)
    if VARIANT == 17:  # results change places
        rows = rows ^ 1
    tl.store(out + rows, total)


@triton.jit
def twins_map(x, y, z, out, n, BLOCK: tl.constexpr, VARIANT: tl.constexpr):
    """One expression over three numbers, almost the same each time."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    a, b = tl.load(x + at, live, other=0.0), tl.load(y + at, live, other=0.0)
    c = tl.load(z + at, live, other=0.0)
    if VARIANT == 0:
        r = (a + b) + c
    elif VARIANT == 1:
        r = a + (b + c)
    elif VARIANT == 2:
        r = c + (b + a)
    elif VARIANT == 3:
        r = (a - b) + c
    elif VARIANT == 4:
        r = (b - a) + c
    elif VARIANT == 5:
        r = tl.fma(a, b, c)
    elif VARIANT == 6:
        r = a * b + c
    elif VARIANT == 7:
        r = tl.fma(a, c, b)
    elif VARIANT == 8:
        r = tl.where(a < b, b, c)
    elif VARIANT == 9:
        r = tl.where(a <= b, b, c)
    elif VARIANT == 10:
        r = tl.where(a >= b, c, b)
    elif VARIANT == 11:
        r = tl.minimum(tl.maximum(a, b), c)
    elif VARIANT == 12:
        r = tl.maximum(tl.minimum(a, c), tl.minimum(b, c))
    elif VARIANT == 13:
        r = tl.minimum(tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL), c)
    elif VARIANT == 14:
        r = a / b
    elif VARIANT == 15:
        r = tl.div_rn(a, b)
    elif VARIANT == 16:
        r = a * (1.0 / b)
    elif VARIANT == 17:
        r = tl.sqrt(a)
    elif VARIANT == 18:
        r = tl.sqrt_rn(a)
    elif VARIANT == 19:
        r = tl.exp(a)
    elif VARIANT == 20:
        r = tl.exp2(a * 1.4426950408889634)
    elif VARIANT == 21:
        r = tl.abs(a)
    elif VARIANT == 22:
        r = tl.maximum(a, -a)
    elif VARIANT == 23:
        r = a * 2.0
    elif VARIANT == 24:
        r = a + a
    elif VARIANT == 25:
        r = tl.where(live & (at != 77), a, b)
    else:
        r = a
    tl.store(out + at, r, live)


@triton.jit
def twins_integers(x, y, out, n, BLOCK: tl.constexpr, VARIANT: tl.constexpr):
    """The same of integers: signs, shifts and wrapping."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    live = at < n
    a, b = tl.load(x + at, live, other=0), tl.load(y + at, live, other=0)
    if VARIANT == 0:
        r = a >> 3
    elif VARIANT == 1:
        r = (a.to(tl.uint32, bitcast=True) >> 3).to(tl.int32, bitcast=True)
    elif VARIANT == 2:
        r = a // 8
    elif VARIANT == 3:
        r = a + b
    elif VARIANT == 4:
        r = a - b
    elif VARIANT == 5:
        r = b - a
    elif VARIANT == 6:
        r = tl.maximum(a, b)
    elif VARIANT == 7:
        first, second = a.to(tl.uint32, bitcast=True), b.to(tl.uint32, bitcast=True)
        r = tl.maximum(first, second).to(tl.int32, bitcast=True)
    elif VARIANT == 8:
        r = a.to(tl.int8).to(tl.int32)
    elif VARIANT == 9:
        r = a & 255
    elif VARIANT == 10:
        r = a * b
    elif VARIANT == 11:
        r = a.to(tl.float32).to(tl.int32)
    elif VARIANT == 12:
        r = (a ^ b) ^ b
    else:
        r = a
    tl.store(out + at, r, live)
