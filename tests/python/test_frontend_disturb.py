"""What Triton's optimiser does to reductions, and must not do to pinned ones."""

import pytest
import triton
import triton.language as tl

from compiling import SM80, TARGETS, Pipeline, name_of, pinned


@triton.jit
def product(x, out, y, ORDER: tl.constexpr):
    i = tl.arange(0, 16)
    a = tl.load(x + i[:, None] * 16 + i[None, :])
    b = tl.load(y + i[:, None] * 16 + i[None, :])
    s = tl.sum(a[:, :, None] * b[None, :, :], axis=1, order=ORDER)
    tl.store(out + i[:, None] * 16 + i[None, :], s)


@triton.jit
def loop(x, out, ORDER: tl.constexpr):
    rows = tl.arange(0, 16)
    at = x + rows[:, None] * 128 + tl.arange(0, 128)[None, :]
    total = tl.zeros([16], tl.float32)
    for step in range(8):
        total -= tl.sum(tl.load(at + step * 2048), axis=1, order=ORDER)
    tl.store(out + rows, total)


@triton.jit
def twice(x, out, ORDER: tl.constexpr):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(out, tl.sum(v, 0, order=ORDER))
    tl.store(out + 1, tl.sum(v, 0))


@triton.jit
def constant(x, out, ORDER: tl.constexpr):
    v = tl.full([64], 0.1, tl.float32)
    one = tl.load(x + tl.arange(0, 1))
    tl.store(out, tl.sum(v, 0, order=ORDER) + tl.sum(one, 0, order=ORDER))


def optimised(kernel, target, order, pointers="x:fp32 out:fp32", **options):
    pipeline = Pipeline(kernel, target, pointers=pointers, options=options, ORDER=order)
    return pipeline.run("ttir", "ttgir").text


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
@pytest.mark.parametrize("dtype", ["fp32", "fp16", "bf16"])
def test_a_sum_of_products_stays_a_reduction(target, dtype):
    text = optimised(product, target, "inner_tree", f"x:{dtype} out:fp32 y:{dtype}")
    assert "dot" not in text
    assert pinned(text) == 1


def test_control_stock_makes_a_dot_of_it():
    assert "tt.dot" in optimised(product, SM80, None, "x:fp32 out:fp32 y:fp32")


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
@pytest.mark.parametrize("stages", [1, 3])
def test_a_reduction_in_a_loop_stays_in_it(target, stages):
    text = optimised(loop, target, "inner_tree", num_stages=stages)
    inside, outside = text.rsplit("scf.yield", 1)
    assert pinned(inside) == inside.count('"tt.reduce"') == 1
    assert '"tt.reduce"' not in outside


def test_control_stock_moves_it_out_of_the_loop():
    text = optimised(loop, SM80, None, num_stages=1)
    assert '"tt.reduce"' in text.rsplit("scf.yield", 1)[1]


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_equal_reductions_of_other_orders_stay_apart(target):
    text = optimised(twice, target, "inner_tree")
    assert text.count('"tt.reduce"') == 2
    assert pinned(text) == 1


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_constants_and_single_elements_are_not_folded_away(target):
    assert pinned(optimised(constant, target, "inner_tree")) == 2
