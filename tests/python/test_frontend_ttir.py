"""What the front end writes: tags, shields, element order, and functions of their own."""

import re

import pytest
import triton
import triton.language as tl

from compiling import ORDER, VENDORS, Pipeline, front_end, name_of, pinned, shields


@triton.jit
def three_orders(x, out):
    v = tl.load(x + tl.arange(0, 64))
    tl.store(out + 0, tl.sum(v, 0))
    tl.store(out + 1, tl.sum(v, 0, order="inner_tree"))
    tl.store(out + 2, tl.sum(v, 0, reduction_ordering=tl.ReductionOrdering.UNORDERED))
    tl.store(out + 3, tl.sum(v, 0, order=None))


def test_calls_of_equal_types_and_other_orders_do_not_share_a_function():
    text = front_end(three_orders)
    callees = re.findall(r"tt\.call @(\S*\.sum__\S*)\(", text)
    assert len(callees) == 4
    free, tree, unordered, explicit_none = callees
    assert len({free, tree, unordered}) == 3
    assert free == explicit_none
    assert pinned(text) == 1


@triton.jit
def whole_tile(x, out, ORDER: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    tl.store(out, tl.sum(v, order=ORDER))


@triton.jit
def reshaped_by_hand(x, out, ORDER: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    tl.store(out, tl.sum(tl.reshape(v, [512]), 0, order=ORDER))


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
@pytest.mark.parametrize("kernel", [whole_tile, reshaped_by_hand], ids=lambda k: k.__name__)
def test_elements_keep_row_major_order(kernel, target):
    def reshapes(order):
        text = Pipeline(kernel, target, ORDER=order).run("ttir", "ttgir").text
        return [line for line in text.splitlines() if "tt.reshape" in line]

    assert reshapes("inner_tree") and not any("allow_reorder" in r for r in reshapes("inner_tree"))
    # The control: stock marks both, so the test above can fail.
    assert any("allow_reorder" in r for r in reshapes(None))


@triton.jit
def welford(mean1, m2_1, n1, mean2, m2_2, n2):
    n = n1 + n2
    delta = mean2 - mean1
    return mean1 + delta * (n2 / n), m2_1 + m2_2 + delta * delta * (n1 * n2 / n), n


@triton.jit
def tuple_reduction(x, out):
    v = tl.load(x + tl.arange(0, 64))
    zero = tl.zeros([64], tl.float32)
    mean, m2, n = tl.reduce((v, zero, zero + 1.0), 0, welford, order="inner_tree")
    tl.store(out, mean + m2 + n)


def test_every_operand_of_a_tuple_is_shielded():
    text = front_end(tuple_reduction)
    assert pinned(text) == 1
    assert shields(text) == 3


@triton.jit
def kept(x, out, KEEP: tl.constexpr):
    v = tl.load(x + tl.arange(0, 16)[:, None] * 32 + tl.arange(0, 32)[None, :])
    s = tl.sum(v, 1, keep_dims=KEEP, order="inner_tree")
    tl.store(out + tl.arange(0, 16), tl.reshape(s, [16]))


@pytest.mark.parametrize("keep", [False, True])
def test_keep_dims(keep):
    assert pinned(front_end(kept, KEEP=keep)) == 1


@triton.jit(noinline=True)
def noinline_sum(x, ORDERING: tl.constexpr):
    return tl.sum(tl.load(x + tl.arange(0, 64)), 0, reduction_ordering=ORDERING)


@triton.jit
def calls_noinline(x, out):
    tl.store(out, noinline_sum(x, tl.constexpr(tl.ReductionOrdering.INNER_TREE)))


def test_the_mangled_order_is_an_identifier():
    names = re.findall(
        r"tt\.func \w+ @\"?([^(\"]*noinline_sum[^(\"]*)\"?\(", front_end(calls_noinline)
    )
    assert names
    assert all("<" not in name and " " not in name for name in names)


def test_order_is_written_as_text_from_elsewhere_writes_it():
    assert ORDER in front_end(three_orders)
