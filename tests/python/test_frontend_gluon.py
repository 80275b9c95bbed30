"""Gluon: reductions take an order as Triton's do, and explicit layouts do not move the bits."""

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.bitstable import emulate
from triton.compiler import CompilationError
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource
from triton.experimental.gluon.language import ReductionOrdering

import oracle
from compiling import ORDER, VENDORS, messages, name_of

SEED = 20261201
M, N = 16, 128


@gluon.jit
def add(a, b):
    return a + b


@gluon.jit
def halving(a, b):
    return a * 0.5 + b


@gluon.jit
def later_maximum(value1, index1, value2, index2):
    gt = value1 > value2
    return gl.where(gt, value1, value2), gl.where(gt, index1, index2)


@gluon.jit
def load(x, layout: gl.constexpr, M: gl.constexpr, N: gl.constexpr):
    rows = gl.arange(0, M, gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    return gl.load(x + rows[:, None] * N + columns[None, :])


@gluon.jit
def by_spelling(x, out, L: gl.constexpr, WHICH: gl.constexpr, ORDER: gl.constexpr):
    v = load(x, L, 16, 128)
    i = v.to(gl.int32)
    if WHICH == "reduce":
        s = gl.reduce(v, 1, add, order=ORDER)
    elif WHICH == "sum":
        s = gl.sum(v, 1, order=ORDER)
    elif WHICH == "max":
        s = gl.max(v, 1, order=ORDER)
    elif WHICH == "min":
        s = gl.min(v, 1, order=ORDER)
    elif WHICH == "xor_sum":
        s = gl.xor_sum(i, 1, order=ORDER)
    elif WHICH == "reduce_or":
        s = gl.reduce_or(i, 1, order=ORDER)
    elif WHICH == "reduce method":
        s = v.reduce(1, add, order=ORDER)
    elif WHICH == "sum method":
        s = v.sum(1, order=ORDER)
    elif WHICH == "max method":
        s = v.max(1, order=ORDER)
    elif WHICH == "min method":
        s = v.min(1, order=ORDER)
    elif WHICH == "xor_sum method":
        s = i.xor_sum(1, order=ORDER)
    elif WHICH == "reduce_or method":
        s = i.reduce_or(1, order=ORDER)
    gl.store(out + gl.arange(0, 16, gl.SliceLayout(1, L)), s.to(gl.float32))


FUNCTIONS = ("reduce", "sum", "max", "min", "xor_sum", "reduce_or")
SPELLINGS = (*FUNCTIONS, *(f"{name} method" for name in FUNCTIONS))


@gluon.jit
def by_ordering(x, out, L: gl.constexpr, ORDERING: gl.constexpr):
    s = gl.sum(load(x, L, 16, 128), 1, reduction_ordering=ORDERING)
    gl.store(out + gl.arange(0, 16, gl.SliceLayout(1, L)), s)


@gluon.jit
def by_names(x, out, L: gl.constexpr):
    v = load(x, L, 16, 128)
    s = gl.sum(v, 1, reduction_ordering=gl.ReductionOrdering.INNER_TREE)
    s += gl.reduce(v + 1.0, 1, add, reduction_ordering=tl.ReductionOrdering.INNER_TREE)
    s += (v + 2.0).sum(1, reduction_ordering=ReductionOrdering.INNER_TREE)
    gl.store(out + gl.arange(0, 16, gl.SliceLayout(1, L)), s)


@gluon.jit
def both(x, out, L: gl.constexpr):
    unordered: gl.constexpr = gl.ReductionOrdering.UNORDERED
    s = gl.sum(load(x, L, 16, 128), 1, order="inner_tree", reduction_ordering=unordered)
    gl.store(out + gl.arange(0, 16, gl.SliceLayout(1, L)), s)


def blocked(target, warps=4):
    lanes = target.warp_size // 8
    return gl.BlockedLayout([1, 4], [8, lanes], [warps, 1], [1, 0])


def compile(kernel, target, **constants):
    constants.setdefault("L", blocked(target))
    signature = {
        name: "*fp32" if name in ("x", "out") else "constexpr" for name in kernel.arg_names
    }
    source = GluonASTSource(kernel, signature, constants)
    return triton.compile(source, target=target, options={"num_warps": 4})


def pinned(kernel):
    return kernel.asm["ttgir"].count(ORDER)


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
@pytest.mark.parametrize("which", SPELLINGS)
def test_function_and_method_take_the_order(which, target):
    kernel = compile(by_spelling, target, WHICH=which, ORDER="inner_tree")
    assert pinned(kernel) == len(kernel.metadata.bitstable["reductions"]) == 1
    assert pinned(compile(by_spelling, target, WHICH=which, ORDER=None)) == 0


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_each_name_of_the_ordering(target):
    assert gl.ReductionOrdering is tl.ReductionOrdering
    assert pinned(compile(by_names, target)) == 3
    for ordering, count in ((None, 0), ("UNORDERED", 0), ("INNER_TREE", 1)):
        said = ordering and gl.ReductionOrdering[ordering]
        assert pinned(compile(by_ordering, target, ORDERING=said)) == count


@pytest.mark.parametrize("wrong", ["outer_tree", "", "unordered", 1])
@pytest.mark.parametrize("which", ["reduce", "sum", "max method"])
def test_a_wrong_order_lists_the_choices(which, wrong):
    with pytest.raises(CompilationError) as caught:
        compile(by_spelling, VENDORS[0], WHICH=which, ORDER=wrong)
    text = messages(caught.value)
    assert f"order must be one of None, 'inner_tree', known at compile time; got {wrong!r}" in text


def test_a_wrong_ordering_and_a_disagreement_are_errors():
    with pytest.raises(CompilationError) as caught:
        compile(by_ordering, VENDORS[0], ORDERING="tree")
    assert "reduction_ordering must be one of None" in messages(caught.value)
    with pytest.raises(CompilationError) as caught:
        compile(both, VENDORS[0])
    assert "disagree" in messages(caught.value)


# ------------------------------------------------------------------------------------------- bits


@gluon.jit
def fold(
    x,
    y,
    out,
    L: gl.constexpr,
    WHICH: gl.constexpr,
    AXIS: gl.constexpr,
    M: gl.constexpr,
    N: gl.constexpr,
    ORDER: gl.constexpr,
):
    KEPT: gl.constexpr = N if AXIS == 0 else M
    at = out + gl.arange(0, KEPT, gl.SliceLayout(AXIS, L))
    v = load(x, L, M, N)
    if WHICH == "sum":
        gl.store(at, gl.sum(v, AXIS, order=ORDER))
    elif WHICH == "products":
        gl.store(at, gl.sum(v * load(y, L, M, N), AXIS, order=ORDER))
    elif WHICH == "halving":
        gl.store(at, gl.reduce(v, AXIS, halving, order=ORDER))
    elif WHICH == "max":
        gl.store(at, gl.max(v, AXIS, order=ORDER))
    elif WHICH == "kept":
        kept = gl.expand_dims(at, AXIS)
        gl.store(kept, gl.sum(v, AXIS, keep_dims=True, order=ORDER))
    elif WHICH == "argmax":
        index = gl.arange(0, v.shape[AXIS], gl.SliceLayout(1 - AXIS, L))
        index = gl.expand_dims(index, 1 - AXIS)
        index = gl.broadcast(index, v)[0]
        gl.store(at, gl.reduce((v, index), AXIS, later_maximum, order=ORDER)[1].to(gl.float32))


@gluon.jit
def fold_all(x, out, L: gl.constexpr, M: gl.constexpr, N: gl.constexpr, ORDER: gl.constexpr):
    gl.store(out, gl.sum(load(x, L, M, N), order=ORDER))


@gluon.jit
def fold_slice(x, out, L: gl.constexpr, ORDER: gl.constexpr):
    """A vector that lies in a slice, so that threads hold copies of it."""
    v = gl.load(x + gl.arange(0, 512, gl.SliceLayout(0, L)))
    gl.store(out, gl.sum(v, 0, order=ORDER))


def layouts(warps):
    across = [1, warps]
    down = [warps, 1]
    yield gl.BlockedLayout([1, 4], [8, 4], down, [1, 0])
    yield gl.BlockedLayout([1, 1], [1, 32], across, [1, 0])
    yield gl.BlockedLayout([2, 2], [4, 8], across, [0, 1])
    yield gl.BlockedLayout([4, 1], [32, 1], down, [0, 1])


def expected(which, x, y, axis):
    if which == "halving":
        return oracle.halving(x, axis)
    if which == "max":
        return x.max(axis)
    if which == "argmax":
        # Of equal values the later one, as the tree folds them.
        last = x.shape[axis] - 1 - np.flip(x, axis).argmax(axis)
        return last.astype(np.float32)
    return oracle.total(oracle.product(x, y, "f32") if which == "products" else x, axis, "f32")


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("which", ["sum", "kept", "products", "halving", "max", "argmax"])
def test_bits_on_every_layout(which, warps):
    print("seed", SEED)
    rng = np.random.default_rng(SEED)
    x, y = (oracle.draw(rng, (M, N), "f32") for _ in range(2))
    if which == "argmax":
        x = rng.integers(0, 5, (M, N)).astype(np.float32)
    for layout in layouts(warps):
        for axis in (0, 1):
            out = np.zeros(x.shape[1 - axis], np.float32)
            with emulate("cuda:90"):
                fold[(1,)](x, y, out, layout, which, axis, M, N, "inner_tree", num_warps=warps)
            assert oracle.same_bits(out, expected(which, x, y, axis)).all(), (layout, axis)


@pytest.mark.parametrize("warps", [1, 4])
def test_bits_of_all_elements_and_of_slices(warps):
    print("seed", SEED)
    x = oracle.draw(np.random.default_rng(SEED), (M, N), "f32")
    row = oracle.draw(np.random.default_rng(SEED), 512, "f32")
    for layout in layouts(warps):
        out = np.zeros(2, np.float32)
        with emulate("cuda:90"):
            fold_all[(1,)](x, out, layout, M, N, "inner_tree", num_warps=warps)
            fold_slice[(1,)](row, out[1:], layout, "inner_tree", num_warps=warps)
        wanted = [oracle.total(values.reshape(-1), 0, "f32") for values in (x, row)]
        assert oracle.same_bits(out, np.float32(wanted)).all(), layout


def test_control_layouts_move_the_bits_of_a_free_sum():
    x = oracle.draw(np.random.default_rng(SEED), (M, N), "f32")
    found = set()
    for layout in layouts(4):
        out = np.zeros(M, np.float32)
        with emulate("cuda:90"):
            fold[(1,)](x, x, out, layout, "sum", 1, M, N, None, num_warps=4)
        found.add(out.tobytes())
    assert len(found) > 1


@pytest.mark.parametrize("axis", [0, 1])
def test_amd_folds_the_same_tree(axis):
    """The plans are checked as they are made; here, that there is one for each layout."""
    signature = {"x": "*fp32", "y": "*fp32", "out": "*fp32"}
    for layout in layouts(4):
        doubled = [layout.threads_per_warp[0] * 2, layout.threads_per_warp[1]]
        wide = gl.BlockedLayout(layout.size_per_thread, doubled, layout.warps_per_cta, layout.order)
        constants = {"L": wide, "WHICH": "sum", "AXIS": axis, "M": M, "N": N, "ORDER": "inner_tree"}
        kinds = signature | dict.fromkeys(constants, "constexpr")
        source = GluonASTSource(fold, kinds, constants)
        kernel = triton.compile(source, target=VENDORS[1], options={"num_warps": 4})
        (reduction,) = kernel.metadata.bitstable["reductions"]
        assert reduction["extent"] == (M, N)[axis]
