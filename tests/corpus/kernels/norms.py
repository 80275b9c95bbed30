"""Softmax, norms and losses by row: a program takes `M` rows of `N` elements each."""

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
    return tl.load(x + _places(M, N)).to(tl.float32)


@triton.jit
def softmax(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile = _tile(x, M, N)
    raised = tl.exp(tile - tl.max(tile, axis=1, order=ORDER)[:, None])
    share = raised / tl.sum(raised, axis=1, order=ORDER)[:, None]
    tl.store(out + _places(M, N), share.to(out.dtype.element_ty))


@triton.jit
def softmax_padded(x, out, live, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows of `live` elements in tiles of `N`."""
    at = tl.arange(0, N)[None, :]
    places = _rows(M)[:, None] * live + at
    tile = tl.load(x + places, mask=at < live, other=-float("inf"))
    raised = tl.exp(tile - tl.max(tile, axis=1, order=ORDER)[:, None])
    share = raised / tl.sum(raised, axis=1, order=ORDER)[:, None]
    tl.store(out + places, share, mask=at < live)


@triton.jit
def softmax_backward(dy, y, dx, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    share, slope = _tile(y, M, N), _tile(dy, M, N)
    along = tl.sum(share * slope, axis=1, order=ORDER)
    tl.store(dx + _places(M, N), share * (slope - along[:, None]))


@triton.jit
def log_softmax(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile = _tile(x, M, N)
    rest = tile - tl.max(tile, axis=1, order=ORDER)[:, None]
    total = tl.sum(tl.exp(rest), axis=1, order=ORDER)
    tl.store(out + _places(M, N), rest - tl.log(total)[:, None])


@triton.jit
def logsumexp(x, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile = _tile(x, M, N)
    most = tl.max(tile, axis=1, order=ORDER)
    total = tl.sum(tl.exp(tile - most[:, None]), axis=1, order=ORDER)
    tl.store(out + _rows(M), most + tl.log(total))


@triton.jit
def cross_entropy(x, target, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The target's element is loaded by an index that is data."""
    tile = _tile(x, M, N)
    most = tl.max(tile, axis=1, order=ORDER)
    total = tl.sum(tl.exp(tile - most[:, None]), axis=1, order=ORDER)
    right = tl.load(x + _rows(M) * N + tl.load(target + _rows(M))).to(tl.float32)
    tl.store(out + _rows(M), most + tl.log(total) - right)


@triton.jit
def cross_entropy_selected(x, target, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """The target's element is picked out by a sum."""
    tile = _tile(x, M, N)
    most = tl.max(tile, axis=1, order=ORDER)
    total = tl.sum(tl.exp(tile - most[:, None]), axis=1, order=ORDER)
    hit = tl.arange(0, N)[None, :] == tl.load(target + _rows(M))[:, None]
    right = tl.sum(tl.where(hit, tile, 0.0), axis=1, order=ORDER)
    tl.store(out + _rows(M), most + tl.log(total) - right)


@triton.jit
def squared_error(x, y, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    apart = _tile(x, M, N) - _tile(y, M, N)
    tl.store(out + _rows(M), tl.sum(apart * apart, axis=1, order=ORDER) * (1.0 / N))


@triton.jit
def divergence(x, y, out, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Kullback and Leibler's, of logarithms."""
    p, q = _tile(x, M, N), _tile(y, M, N)
    tl.store(out + _rows(M), tl.sum(tl.exp(q) * (q - p), axis=1, order=ORDER))


@triton.jit
def layer_norm(x, weight, bias, out, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile, at = _tile(x, M, N), tl.arange(0, N)
    rest = tile - (tl.sum(tile, axis=1, order=ORDER) / N)[:, None]
    spread = tl.sum(rest * rest, axis=1, order=ORDER) / N
    scaled = rest * (1.0 / tl.sqrt_rn(spread + eps))[:, None]
    moved = scaled * tl.load(weight + at)[None, :] + tl.load(bias + at)[None, :]
    tl.store(out + _places(M, N), moved.to(out.dtype.element_ty))


@triton.jit
def layer_norm_padded(
    x, weight, out, live, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr
):
    """Rows of `live` elements; the mean is taken out of the live ones alone."""
    at = tl.arange(0, N)[None, :]
    places, mask = _rows(M)[:, None] * live + at, at < live
    tile = tl.load(x + places, mask=mask, other=0.0)
    rest = tl.where(mask, tile - (tl.sum(tile, axis=1, order=ORDER) / live)[:, None], 0.0)
    spread = tl.sum(rest * rest, axis=1, order=ORDER) / live
    scaled = rest * tl.rsqrt(spread + eps)[:, None]
    tl.store(out + places, scaled * tl.load(weight + at, mask=mask, other=0.0), mask=mask)


@triton.jit
def layer_norm_dx(
    dy, x, weight, mean, rstd, dx, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr
):
    slope, at = _tile(dy, M, N), tl.arange(0, N)
    scale = tl.load(rstd + _rows(M))[:, None]
    hat = (_tile(x, M, N) - tl.load(mean + _rows(M))[:, None]) * scale
    weighed = slope * tl.load(weight + at)[None, :]
    along = tl.sum(hat * weighed, axis=1, order=ORDER) / N
    level = tl.sum(weighed, axis=1, order=ORDER) / N
    moved = (weighed - (hat * along[:, None] + level[:, None])) * scale
    tl.store(dx + _places(M, N), moved)


@triton.jit
def rms_norm(x, weight, out, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile, at = _tile(x, M, N), tl.arange(0, N)
    root = tl.rsqrt(tl.sum(tile * tile, axis=1, order=ORDER) / N + eps)
    scaled = tile * root[:, None] * tl.load(weight + at)[None, :]
    tl.store(out + _places(M, N), scaled.to(out.dtype.element_ty))


@triton.jit
def rms_norm_dx(dy, x, weight, dx, eps, M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    tile, at = _tile(x, M, N), tl.arange(0, N)
    weighed = _tile(dy, M, N) * tl.load(weight + at)[None, :]
    root = tl.rsqrt(tl.sum(tile * tile, axis=1, order=ORDER) / N + eps)[:, None]
    along = tl.sum(weighed * tile, axis=1, order=ORDER)[:, None] / N
    tl.store(dx + _places(M, N), root * (weighed - tile * root * root * along))


@triton.jit
def group_norm(x, out, eps, M: tl.constexpr, G: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr):
    """Rows of `G` groups of `N` elements; each group to mean 0 and variance 1."""
    row = _rows(M)[:, None, None] * G + tl.arange(0, G)[None, :, None]
    places = row * N + tl.arange(0, N)[None, None, :]
    tile = tl.load(x + places)
    rest = tile - (tl.sum(tile, axis=2, order=ORDER) / N)[:, :, None]
    spread = tl.sum(rest * rest, axis=2, order=ORDER) / N
    tl.store(out + places, rest * tl.rsqrt(spread + eps)[:, :, None])
