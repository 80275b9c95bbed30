"""What each kernel of `benches/cost` returns, in numpy: canonical trees between elementwise steps.

# Idea
A kernel of the suite is a few reductions with elementwise work around them. The reductions are
`oracle`'s trees. What numpy has no exact word for (`exp`, a division that is not rounded correctly,
a contracted product, a matrix product) is asked of a kernel of one operation, which cannot reduce
anything, on the same executor and for the same target ([`Elementwise`]).

# Invariants
- **O1** An oracle depends on neither warps nor layouts.
- **O2** Every product in a combine, and every one that a reduction reads, is rounded on its own.
  Outside, `multiply_add` shows where LLVM contracts a product, if it may. On sm_90 it does so for
  all warps and layouts or for none; on sm_100 packed subtractions take some products away from it.

# Not here
Shapes and memory (`suite_launch.py`).
"""

import functools

import numpy as np
import triton
import triton.language as tl

import oracle
from bits import Build, compile_ptx, execute
from corpus.kernels import products

F32 = np.float32
BLOCK = 1024


@triton.jit
def _apply(x, y, z, out, BLOCK: tl.constexpr, OPERATION: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b, c = tl.load(x + at), tl.load(y + at), tl.load(z + at)
    if OPERATION == "exp":
        r = tl.exp(a)
    elif OPERATION == "log":
        r = tl.log(a)
    elif OPERATION == "rsqrt":
        r = tl.rsqrt(a)
    elif OPERATION == "divide":
        r = a / b
    else:
        tl.static_assert(OPERATION == "fma")
        r = tl.fma(a, b, c)
    tl.store(out + at, r)


@functools.cache
def _compiled(operation, target):
    types = dict.fromkeys(("x", "y", "z", "out"), "*fp32")
    return compile_ptx(_apply, types, Build(target=target), BLOCK=BLOCK, OPERATION=operation)


@functools.cache
def _multiplication(m, n, k, target):
    types = {"a": "*fp16", "b": "*fp16", "c": "*fp32", "k": "i32"}
    constants = {"M": m, "N": n, "K": k, "COLUMNS": n, "PRECISION": "tf32"}
    return compile_ptx(products.matmul, types, Build(target=target), **constants)


class Elementwise:
    """Operations on f32 arrays as a target computes them, element by element."""

    def __init__(self, target, fusion):
        self.target, self.fusion = target, fusion

    def _of(self, operation, *operands):
        operands = np.broadcast_arrays(*(np.asarray(each, F32) for each in operands))
        shape, size = operands[0].shape, operands[0].size
        blocks = -(-size // BLOCK)
        flat = [np.resize(each.ravel(), blocks * BLOCK).reshape(blocks, BLOCK) for each in operands]
        flat += [flat[0]] * (3 - len(flat))
        results = np.empty((blocks, BLOCK), F32)
        for at in range(blocks):
            inputs = [np.ascontiguousarray(each[at]) for each in flat]
            execute(_compiled(operation, self.target), inputs, [results[at]])
        return results.ravel()[:size].reshape(shape)

    def exp(self, x):
        return self._of("exp", x)

    def log(self, x):
        return self._of("log", x)

    def rsqrt(self, x):
        return self._of("rsqrt", x)

    def divide(self, x, y):
        return self._of("divide", x, y)

    def multiply_add(self, x, y, z):
        return self._of("fma", x, y, z) if self.fusion else x * y + z

    def matmul(self, a, b):
        out = np.empty((a.shape[0], b.shape[1]), F32)
        compiled = _multiplication(*out.shape, a.shape[1], self.target)
        execute(compiled, [a.copy(), b.copy()], [out], [a.shape[1]])
        return out


def _sum(values, axis, dtype="f32"):
    return oracle.total(values, axis, dtype)


def _max(values, axis):
    """NaNs are passed over; of two zeros, the positive one is the larger."""

    def larger(a, b):
        tied = np.where(np.signbit(a[0]), b[0], a[0])
        return (np.where(a[0] == b[0], tied, np.fmax(a[0], b[0])),)

    return oracle.canonical(larger, (values,), axis)[0]


def _argmax(values, axis):
    """Of equal ones, the first."""

    def better(a, b):
        first = (a[0] > b[0]) | ((a[0] == b[0]) & (a[1] < b[1]))
        return tuple(np.where(first, left, right) for left, right in zip(a, b))

    places = np.arange(values.shape[axis], dtype=np.int32)
    places = np.broadcast_to(np.expand_dims(places, 1 - axis), values.shape)
    return oracle.canonical(better, (values, places), axis)[1]


def _padded(values, live):
    """Zeros behind the `live` elements of a row, up to a power of two."""
    width = 1 << (live - 1).bit_length()
    return np.pad(values, ((0, 0), (0, width - live)))


def _tiles(values, axis, width):
    """A loop's tiles, in its order; what lacks of the last one is zero."""
    missing = -values.shape[axis] % width
    padding = [(0, missing if at == axis else 0) for at in range(values.ndim)]
    padded = np.pad(values, padding)
    return np.split(padded, padded.shape[axis] // width, axis)


def _chained(parts):
    """Added up from zero, one after the other."""
    total = F32(0)
    for part in parts:
        total = total + part
    return total


# Sums and folds: `c` has the constants and scalars, `e` the elementwise operations.


def sums(axis, wide=False):
    """Of one axis, in the type of the elements, or in f32 and rounded to it."""

    def expect(a, c, e):
        values = a["x"].astype(F32) if wide else a["x"]
        return {"out": _sum(values, axis, "f32" if wide else c["dtype"])}

    return expect


def sum_all(a, c, e):
    return {"out": _sum(a["x"].reshape(-1), 0)[None]}


def sum_vector(a, c, e):
    return {"out": _sum(a["x"], 0, c["dtype"])[None]}


def sum_padded_rows(a, c, e):
    return {"out": _sum(_padded(a["x"], c["live"]), 1)}


def dots(axis):
    return lambda a, c, e: {
        "out": _sum(oracle.product(a["x"], a["y"], c["dtype"]), axis, c["dtype"])
    }


def sum_exp_rows(a, c, e):
    return {"out": _sum(e.exp(a["x"]), 1)}


def _variance(e, tile, axis, count):
    """What is left of a tile beside its mean, and the squares of that, added up.

    LLVM makes divisions by a constant of which there are several multiplications.
    """
    rest = e.multiply_add(-np.expand_dims(_sum(tile, axis), axis), F32(1 / count), tile)
    return rest, _sum(rest * rest, axis)


def variance_rows(a, c, e):
    return {"out": _variance(e, a["x"], 1, c["N"])[1] * F32(1 / c["N"])}


def product_rows(a, c, e):
    return {"out": oracle.canonical(lambda p, q: (p[0] * q[0],), (a["x"],), 1)[0]}


def argmaxes(axis):
    return lambda a, c, e: {"out": _argmax(a["x"], axis)}


def welfords(axis):
    return lambda a, c, e: dict(zip(("mean", "m2"), oracle.welford(a["x"], axis)))


def halve_rows(a, c, e):
    return {"out": oracle.halving(a["x"], 1)}


# Norms.


def _raised(e, tile, axis):
    """What is left of a tile below its maximum, and the exponentials' sum."""
    rest = tile - np.expand_dims(_max(tile, axis), axis)
    raised = e.exp(rest)
    return rest, raised, np.expand_dims(_sum(raised, axis), axis)


def softmaxes(axis):
    def expect(a, c, e):
        _, raised, total = _raised(e, a["x"], axis)
        return {"out": e.divide(raised, total)}

    return expect


def softmax_padded(a, c, e):
    tile = np.pad(a["x"], ((0, 0), (0, c["N"] - c["live"])), constant_values=-np.inf)
    _, raised, total = _raised(e, tile, 1)
    return {"out": e.divide(raised, total)[:, : c["live"]]}


def log_softmax(a, c, e):
    rest, _, total = _raised(e, a["x"], 1)
    return {"out": rest - e.log(total)}


def layer_norm(a, c, e):
    x = a["x"].astype(F32)
    rest, spread = _variance(e, x, 1, c["N"])
    spread = e.multiply_add(spread, F32(1 / c["N"]), c["eps"])
    scaled = rest * e.divide(1, np.sqrt(spread))[:, None]
    moved = e.multiply_add(scaled, a["weight"].astype(F32), a["bias"].astype(F32))
    return {"out": moved.astype(a["x"].dtype)}


def layer_norm_padded(a, c, e):
    live = c["live"]
    rest = a["x"] - e.divide(_sum(_padded(a["x"], live), 1), live)[:, None]
    spread = e.divide(_sum(_padded(rest * rest, live), 1), live)
    return {"out": rest * e.rsqrt(spread + c["eps"])[:, None] * a["weight"]}


def layer_norm_dx(a, c, e):
    scale = a["rstd"][:, None]
    hat = (a["x"] - a["mean"][:, None]) * scale
    weighed = a["dy"] * a["weight"]
    along = _sum(hat * weighed, 1)[:, None] * F32(1 / c["N"])
    level = _sum(weighed, 1)[:, None] * F32(1 / c["N"])
    moved = e.multiply_add(hat, along, level)
    return {"dx": e.multiply_add(a["dy"], a["weight"], -moved) * scale}


def layer_norm_dwdb(a, c, e):
    level = a["x"] - a["mean"][:, None]
    scaled = a["dy"] * level * a["rstd"][:, None]
    found = {"dw": scaled, "db": a["dy"]}
    return {
        name: _chained(_sum(part, 0) for part in _tiles(values, 0, c["M"]))
        for name, values in found.items()
    }


def rms_norm(a, c, e):
    x = a["x"]
    root = e.rsqrt(e.multiply_add(_sum(x * x, 1), F32(1 / c["N"]), c["eps"]))
    return {"out": x * root[:, None] * a["weight"]}


def batch_norm(a, c, e):
    rest, spread = _variance(e, a["x"], 0, c["M"])
    return {"out": rest * e.rsqrt(e.multiply_add(spread, F32(1 / c["M"]), c["eps"]))}


def cross_entropy(a, c, e):
    x = a["x"]
    _, _, total = _raised(e, x, 1)
    right = x[np.arange(len(x)), a["target"]]
    return {"out": _max(x, 1) + e.log(total[:, 0]) - right}


# Loops and matrix products.


def sum_chained(a, c, e):
    return {"out": _chained(_sum(tile, 1) for tile in _tiles(a["x"], 1, c["N"]))}


def sum_gathered(a, c, e):
    return {"out": _sum(_chained(_tiles(a["x"], 1, c["N"])), 1)}


def sum_columns_looped(a, c, e):
    return {"out": _chained(_sum(tile, 0) for tile in _tiles(a["x"], 0, c["M"]))}


def matrix_vector(a, c, e):
    tiles = _tiles(a["x"] * a["y"], 1, c["N"])
    return {"out": _chained(_sum(tile, 1) for tile in tiles)}


def softmax_online(a, c, e):
    most, total = np.full(c["M"], -np.inf, F32), np.zeros(c["M"], F32)
    for tile in _tiles(a["x"], 1, c["N"]):
        top = _max(np.stack([most, _max(tile, 1)]), 0)
        part = _sum(e.exp(tile - top[:, None]), 1)
        total = e.multiply_add(total, e.exp(most - top), part)
        most = top
    return {"out": most + e.log(total)}


def matmul_sums(axis):
    return lambda a, c, e: {"out": _sum(e.matmul(a["a"], a["b"]), axis)}


EXPECT = {
    "columns:sum_vector": sum_vector,
    "columns:sum_columns": sums(0),
    "columns:sum_transposed": sums(0),
    "columns:sum_middle": sums(1),
    "columns:sum_first": sums(0),
    "columns:sum_all": sum_all,
    "columns:dot_columns": dots(0),
    "columns:argmax_columns": argmaxes(0),
    "columns:welford_columns": welfords(0),
    "columns:softmax_columns": softmaxes(0),
    "columns:layer_norm_dwdb": layer_norm_dwdb,
    "columns:batch_norm": batch_norm,
    "rows:sum_padded_rows": sum_padded_rows,
    "rows:sum_rows": sums(1),
    "rows:sum_rows_wider": sums(1, wide=True),
    "rows:dot_rows": dots(1),
    "rows:sum_exp_rows": sum_exp_rows,
    "rows:variance_rows": variance_rows,
    "rows:product_rows": product_rows,
    "rows:argmax_rows": argmaxes(1),
    "rows:welford_rows": welfords(1),
    "rows:halve_rows": halve_rows,
    "norms:softmax": softmaxes(1),
    "norms:softmax_padded": softmax_padded,
    "norms:log_softmax": log_softmax,
    "norms:layer_norm": layer_norm,
    "norms:layer_norm_padded": layer_norm_padded,
    "norms:layer_norm_dx": layer_norm_dx,
    "norms:rms_norm": rms_norm,
    "norms:cross_entropy": cross_entropy,
    "loops:sum_chained": sum_chained,
    "loops:sum_gathered": sum_gathered,
    "loops:sum_bounded": sum_gathered,
    "loops:softmax_online": softmax_online,
    "loops:matrix_vector": matrix_vector,
    "loops:sum_columns_looped": sum_columns_looped,
    "products:dot_row_sums": matmul_sums(1),
    "products:dot_column_sums": matmul_sums(0),
}
"""By the suite's name of a kernel: from inputs, constants and operations to its outputs."""
