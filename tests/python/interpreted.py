"""Kernels for the interpreter's test, run in a process of their own: `python interpreted.py`.

The interpreter is chosen when Triton is imported, so this must not run inside pytest.
"""

import sys

import numpy as np
import triton
import triton.language as tl
from triton.runtime.errors import InterpreterError

import oracle
from compiling import messages


class Tensor:
    """As much of a torch tensor as the interpreter asks for, over numpy memory."""

    def __init__(self, array, dtype=None):
        self.array = array
        self.dtype = dtype or {"float32": tl.float32, "int32": tl.int32}[array.dtype.name]

    def data_ptr(self):
        return self.array.ctypes.data

    def untyped_storage(self):
        return self

    def cpu(self):
        return self

    def new_empty(self, *_, **__):
        return Tensor(np.empty(0, self.array.dtype), self.dtype)

    def set_(self, storage, *_):
        self.array = storage.array

    def copy_(self, other):
        self.array[...] = other.array

    def storage_offset(self):
        return 0

    size = stride = storage_offset


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def left_heavy(a, b):
    return a * 2.0 + b


@triton.jit
def branching(a, b):
    r = b * 0.5
    if a > b:
        r = a - b
    return r


@triton.jit
def sums(x, out, AXIS: tl.constexpr, KEEP: tl.constexpr, ORDER: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :])
    r = tl.sum(v, AXIS, keep_dims=KEEP, order=ORDER)
    tl.store(out + tl.arange(0, r.numel), tl.reshape(r, [r.numel]))


@triton.jit
def total(x, out, ORDER: tl.constexpr):
    v = tl.load(x + tl.arange(0, 8)[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out, tl.sum(v, order=ORDER))


@triton.jit
def unlike(x, out, WHICH: tl.constexpr):
    v = tl.load(x + tl.arange(0, 64))
    if WHICH == 0:
        tl.store(out, tl.reduce(v, 0, left_heavy, order="inner_tree"))
    else:
        tl.store(out, tl.reduce(v, 0, branching, order="inner_tree"))


@triton.jit
def narrow(x, out):
    v = tl.load(x + tl.arange(0, 64)).to(tl.bfloat16)
    tl.store(out, tl.sum(v, 0, order="inner_tree").to(tl.float32))


@triton.jit
def from_integers(a, b):
    return (a.to(tl.int32) + b.to(tl.int32)).to(tl.bfloat16)


@triton.jit
def from_doubles(a, b):
    return (a.to(tl.float64) + b.to(tl.float64)).to(tl.bfloat16)


@triton.jit
def by_way_of_fp8(a, b):
    return (a + b).to(tl.float8e5).to(tl.bfloat16)


@triton.jit
def cut_off(a, b):
    return (a.to(tl.float32) + b.to(tl.float32)).to(tl.bfloat16, fp_downcast_rounding="rtz")


@triton.jit
def left_wide(a, b):
    return a.to(tl.float32) + b.to(tl.float32)


@triton.jit
def refused(x, out, WHICH: tl.constexpr):
    v = tl.load(x + tl.arange(0, 64)).to(tl.bfloat16)
    if WHICH == 0:
        r = tl.reduce(v, 0, from_integers, order="inner_tree")
    elif WHICH == 1:
        r = tl.reduce(v, 0, cut_off, order="inner_tree")
    elif WHICH == 2:
        r = tl.reduce(v, 0, from_doubles, order="inner_tree")
    elif WHICH == 3:
        r = tl.reduce(v, 0, by_way_of_fp8, order="inner_tree")
    else:
        r = tl.reduce(v, 0, left_wide, order="inner_tree")
    tl.store(out, r.to(tl.float32))


REFUSALS = (
    "a cast from int32 to bf16, for which",
    "a cast from fp32 to bf16 that does not round to nearest",
    "a cast from fp64 to bf16, for which",
    "a cast from bf16 to fp8e5, for which",
    "returns fp32 for an operand of bf16",
)


@triton.jit
def extremes(x, out):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(out, tl.max(v, 0, order="inner_tree"))
    tl.store(out + 1, tl.min(v, 0, order="inner_tree"))


@triton.jit
def index(x, out):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(out, tl.argmax(v, 0, order="inner_tree"))
    tl.store(out + 1, tl.max(v, 0, reduction_ordering=tl.ReductionOrdering.INNER_TREE).to(tl.int32))


def tree(values, combine=np.add, axis=0):
    values = np.moveaxis(values, axis, 0)
    while len(values) > 1:
        values = combine(values[0::2], values[1::2])
    return values[0]


def run(kernel, x, size, *constants):
    out = np.zeros(size, np.int32 if kernel is index else np.float32)
    kernel[(1,)](Tensor(x), Tensor(out), *constants)
    return out


def expect(found, wanted, what):
    wanted = np.asarray(wanted, np.float32)
    if found.astype(np.float32).tobytes() != wanted.tobytes():
        sys.exit(f"{what}: {found} is not {wanted}")
    print("ok", what)


def main():
    rng = np.random.default_rng(7)
    x = (rng.standard_normal((8, 64)) * 2.0 ** rng.integers(-20, 20, (8, 64))).astype(np.float32)
    for keep in (False, True):
        expect(run(sums, x, 8, 1, keep, "inner_tree"), tree(x, axis=1), f"rows, keep_dims={keep}")
        expect(run(sums, x, 64, 0, keep, "inner_tree"), tree(x, axis=0), f"columns {keep}")
    expect(run(total, x, 1, "inner_tree"), [tree(x.reshape(-1))], "axis=None")
    plain = rng.standard_normal((8, 64)).astype(np.float32)
    free, pinned = (run(sums, plain, 8, 1, False, order) for order in (None, "inner_tree"))
    if free.tobytes() == pinned.tobytes():
        sys.exit("the control must differ: numpy's own order is another")
    row = x[0].copy()
    two = np.float32(2)
    expect(run(unlike, row, 1, 0), [tree(row, lambda a, b: a * two + b)], "not commutative")
    half = np.float32(0.5)
    branch = tree(row, lambda a, b: np.where(a > b, a - b, b * half))
    expect(run(unlike, row, 1, 1), [branch], "a combine that branches")
    ties = np.tile(np.float32([1, 3, 3, 2]), 16)
    expect(run(index, ties, 2), [1, 3], "argmax with ties")
    zeros = np.where(rng.random(64) < 0.5, np.float32(-0.0), np.float32(0.0))
    expect(run(extremes, zeros, 2), [0.0, -0.0], "zeros have an order")
    narrow_row = oracle.rounded(row, "bf16")
    expect(run(narrow, row, 1), [oracle.total(narrow_row, 0, "bf16")], "bf16")
    for which, message in enumerate(REFUSALS):
        try:
            sys.exit(f"{message!r} is not said: {run(refused, row, 1, which)}")
        except InterpreterError as error:
            if message not in messages(error):
                raise
            print("ok", message)


if __name__ == "__main__":
    main()
