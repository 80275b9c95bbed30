"""Whole kernels on the executor, against numpy: nothing may race, and results must be right.

Each kernel runs under two schedules whose bytes must agree. Draws are seeded.
"""

import numpy as np
import pytest
from triton.bitstable import EmulationError, emulate

import whole

SEED = 20261130


def device(target="cuda:90", **options):
    return emulate(target, **({"schedules": 2} | options))


def normal(*shape, dtype=np.float32):
    return np.random.default_rng(SEED).standard_normal(shape).astype(dtype)


def layernorm(rows=6, columns=100):
    """Inputs, and everything that a layer norm and its gradients give, in double precision."""
    x, dy = normal(2, rows, columns)
    w, b = normal(2, columns) + np.float32(1)
    wide = x.astype(np.float64)
    mean = wide.mean(1)
    rstd = 1 / np.sqrt(wide.var(1) + 1e-5)
    hat = (wide - mean[:, None]) * rstd[:, None]
    wg = w * dy.astype(np.float64)
    c1, c2 = (hat * wg).mean(1, keepdims=True), wg.mean(1, keepdims=True)
    dx = (wg - (hat * c1 + c2)) * rstd[:, None]
    return (x, w, b, dy), (hat * w + b, mean, rstd), (dx, (dy * hat).sum(0), dy.sum(0))


@pytest.mark.parametrize("target", ["cuda:80", "cuda:90", "cuda:100"])
def test_layernorm_forward(target):
    (x, w, b, _), expected, _ = layernorm()
    outs = [np.zeros_like(x), np.zeros(6, np.float32), np.zeros(6, np.float32)]
    with device(target):
        whole.layernorm_forward[(6,)](x, w, b, *outs, 100, 1e-5, BLOCK=128, ORDER="inner_tree")
    for out, wanted in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=2e-6)


def test_an_unordered_sum_of_squares_races_with_itself():
    """Stock Triton contracts `sum(x * x)` differently from lane to lane: replicas of one partial
    sum disagree, and all of them are stored to one word of shared memory."""
    (x, w, b, _), *_ = layernorm()
    outs = [np.zeros_like(x), np.zeros(6, np.float32), np.zeros(6, np.float32)]
    with device("cuda:80"), pytest.raises(EmulationError, match="a write and a write of 4 bytes"):
        whole.layernorm_forward[(6,)](x, w, b, *outs, 100, 1e-5, BLOCK=128, ORDER=None)


def test_layernorm_backward():
    """Rows of a group wait for each other's lock; the order in which they get it moves bits."""
    (x, w, _, dy), (_, mean, rstd), expected = layernorm()
    mean, rstd = mean.astype(np.float32), rstd.astype(np.float32)
    dx, dw, db = np.zeros_like(x), np.zeros((2, 100), np.float32), np.zeros((2, 100), np.float32)
    locks = np.zeros(2, np.int32)
    outs = [dx, np.zeros(100, np.float32), np.zeros(100, np.float32)]
    with device("cuda:80", schedules=1):
        whole.layernorm_backward[(6,)](
            x, w, dy, mean, rstd, dx, dw, db, locks, 100, GROUPS=2, BLOCK=128
        )
        for partial, out in zip((dw, db), outs[1:], strict=True):
            whole.sum_groups[(1,)](partial, out, 100, GROUPS=2, BLOCK=128)
    assert not locks.any()
    for out, wanted in zip(outs, expected, strict=True):
        np.testing.assert_allclose(out, wanted, rtol=2e-5, atol=5e-6)


def test_argmax():
    x = np.random.default_rng(SEED).integers(0, 50, (7, 300)).astype(np.float32)
    out = np.zeros(7, np.int32)
    with device():
        whole.argmax_rows[(7,)](x, out, 300, BLOCK=512)
    assert np.array_equal(out, x.argmax(1))


def test_cumsum():
    x = np.random.default_rng(SEED).integers(-1000, 1000, (4, 256)).astype(np.int32)
    out = np.zeros_like(x)
    with device():
        whole.cumsum_rows[(1,)](x, out, 4, 256)
    assert np.array_equal(out, x.cumsum(1))


def test_sort():
    x = normal(4, 128)
    out = np.zeros_like(x)
    with device():
        whole.sort_rows[(1,)](x, out, 4, 128)
    assert np.array_equal(out, np.sort(x, 1))


@pytest.mark.parametrize("stages", [1, 3])
@pytest.mark.parametrize(
    "dtype,precision,most", [(np.float16, "ieee", 2e-3), (np.float32, "tf32", 4e-3)]
)
def test_matmul_on_tensor_cores(dtype, precision, most, stages):
    """Odd sizes, so that masks and zero-filled copies matter; cp.async with three stages."""
    a, b = normal(70, 100, dtype=dtype), normal(100, 48, dtype=dtype)
    c = np.zeros((70, 48), np.float32)
    with device("cuda:80"):
        compiled = whole.matmul[(3, 2)](
            a, b, c, 70, 48, 100, 32, 32, 32, precision, num_stages=stages
        )
    assert "mma.sync" in compiled.asm["ptx"]
    assert ("cp.async" in compiled.asm["ptx"]) == (stages > 1)
    np.testing.assert_allclose(c, a.astype(np.float64) @ b, atol=most * 20, rtol=most)


def test_matmul_of_integers_is_exact():
    """Products and sums that fit in 24 bits leave nothing to round, in any order."""
    rng = np.random.default_rng(SEED)
    a, b = rng.integers(-8, 9, (2, 64, 64)).astype(np.float16)
    c = np.zeros((64, 64), np.float32)
    with device("cuda:80"):
        whole.matmul[(2, 2)](a, b, c, 64, 64, 64, 32, 32, 32, "ieee", num_stages=3)
    assert np.array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


def test_flash_attention():
    q, k, v = normal(3, 64, 32, dtype=np.float16)
    out = np.zeros((64, 32), np.float32)
    with device("cuda:80"):
        compiled = whole.attention[(2,)](q, k, v, out, 64, 0.2, 32, 32, 32, num_stages=2)
    assert "mma.sync" in compiled.asm["ptx"]
    scores = q.astype(np.float64) @ k.T.astype(np.float64) * 0.2
    scores[np.triu_indices(64, 1)] = -np.inf
    weights = np.exp(scores - scores.max(1, keepdims=True))
    expected = weights / weights.sum(1, keepdims=True) @ v.astype(np.float64)
    np.testing.assert_allclose(out, expected, atol=4e-3)


def philox(seed, counters):
    """The first word of Philox 4x32-10, as `tl.rand` uses it: counter, zeros; key from the seed."""
    mask = np.uint64(0xFFFFFFFF)
    c = [counters.astype(np.uint64), *(np.zeros(counters.size, np.uint64) for _ in range(3))]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        left, right = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [
            (right >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), right & mask,
            (left >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), left & mask,
        ]  # fmt: skip
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c[0].astype(np.uint32)


def test_dropout():
    x, out = normal(1000), np.zeros(1000, np.float32)
    with device():
        whole.dropout[(4,)](x, out, 1000, 0.25, 1234, BLOCK=256)
    words = philox(1234, np.arange(1000)).view(np.int32)
    words = np.where(words < 0, -words - 1, words)
    keep = words * np.float32(4.6566127342e-10) > np.float32(0.25)
    assert 600 < keep.sum() < 900
    wanted = np.where(keep, x / np.float32(0.75), np.float32(0))
    np.testing.assert_allclose(out, wanted, rtol=3e-7)


def test_integer_atomics_give_one_result_in_any_order():
    x = np.random.default_rng(SEED).integers(0, 10_000, 1000).astype(np.int32)
    bins, extremes = np.zeros(16, np.int32), np.array([0, 1 << 30], np.int32)
    with device(schedules=5) as e:
        whole.tally[(8,)](x, bins, extremes, 1000, BLOCK=128)
    assert np.array_equal(bins, np.bincount(x % 16, minlength=16))
    assert extremes.tolist() == [x.max(), x.min()]
    assert not [report for report in e.reports if report.is_error]


def test_float_atomics_depend_on_the_order_and_that_is_found():
    x = (normal(1024) * 2.0 ** np.random.default_rng(SEED).integers(-20, 20, 1024)).astype(
        np.float32
    )
    out = np.zeros(1, np.float32)
    with device(), pytest.raises(EmulationError, match="arrival"):
        whole.add_floats[(8,)](x, out, BLOCK=128)


def test_work_drawn_by_ticket_ends_alike_under_every_schedule():
    counter, out = np.zeros(1, np.int32), np.zeros(16 * 64, np.int32)
    with device(schedules=8) as e:
        whole.tickets[(3,)](counter, out, 16, BLOCK=64)
    at = np.arange(out.size, dtype=np.int32)
    assert np.array_equal(out, at * at) and counter[0] == 19
    assert not [report for report in e.reports if report.is_error]
