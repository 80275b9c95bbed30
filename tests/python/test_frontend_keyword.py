"""The keywords: every function and method, both spellings, and what is refused."""

import inspect

import pytest
import triton
import triton.language as tl
from triton.compiler import CompilationError

from compiling import front_end, messages, pinned, shields


@triton.jit
def add(a, b):
    return a + b


@triton.jit
def load(x, N: tl.constexpr):
    return tl.load(x + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def by_function(x, out, WHICH: tl.constexpr, ORDER: tl.constexpr):
    v = load(x, 16)
    at = out + tl.arange(0, 16)
    if WHICH == "reduce":
        tl.store(at, tl.reduce(v, 1, add, order=ORDER))
    elif WHICH == "sum":
        tl.store(at, tl.sum(v, 1, order=ORDER))
    elif WHICH == "max":
        tl.store(at, tl.max(v, 1, order=ORDER))
    elif WHICH == "min":
        tl.store(at, tl.min(v, 1, order=ORDER))
    elif WHICH == "max_indices":
        tl.store(at, tl.max(v, 1, return_indices=True, order=ORDER)[1])
    elif WHICH == "min_indices_fast":
        pair = tl.min(v, 1, return_indices=True, return_indices_tie_break_left=False, order=ORDER)
        tl.store(at, pair[1])
    elif WHICH == "argmax":
        tl.store(at, tl.argmax(v, 1, order=ORDER))
    elif WHICH == "argmin":
        tl.store(at, tl.argmin(v, 1, tie_break_left=False, order=ORDER))
    elif WHICH == "xor_sum":
        tl.store(at, tl.xor_sum(v.to(tl.int32), 1, order=ORDER))
    elif WHICH == "reduce_or":
        tl.store(at, tl.reduce_or(v.to(tl.int32), 1, order=ORDER))


@triton.jit
def by_method(x, out, WHICH: tl.constexpr, ORDER: tl.constexpr):
    v = load(x, 16)
    at = out + tl.arange(0, 16)
    if WHICH == "reduce":
        tl.store(at, v.reduce(1, add, order=ORDER))
    elif WHICH == "sum":
        tl.store(at, v.sum(1, order=ORDER))
    elif WHICH == "max":
        tl.store(at, v.max(1, order=ORDER))
    elif WHICH == "min":
        tl.store(at, v.min(1, order=ORDER))
    elif WHICH == "argmax":
        tl.store(at, v.argmax(1, order=ORDER))
    elif WHICH == "argmin":
        tl.store(at, v.argmin(1, order=ORDER))
    elif WHICH == "xor_sum":
        tl.store(at, v.to(tl.int32).xor_sum(1, order=ORDER))
    elif WHICH == "reduce_or":
        tl.store(at, v.to(tl.int32).reduce_or(1, order=ORDER))


FUNCTIONS = (
    *("reduce", "sum", "max", "min", "max_indices", "min_indices_fast"),
    *("argmax", "argmin", "xor_sum", "reduce_or"),
)
METHODS = ("reduce", "sum", "max", "min", "argmax", "argmin", "xor_sum", "reduce_or")


@pytest.mark.parametrize("which", FUNCTIONS)
def test_function_takes_the_order(which):
    text = front_end(by_function, WHICH=which, ORDER="inner_tree")
    assert pinned(text) == 1
    assert shields(text) == (2 if "arg" in which or "indices" in which else 1)
    assert pinned(front_end(by_function, WHICH=which, ORDER=None)) == 0


@pytest.mark.parametrize("which", METHODS)
def test_method_takes_the_order(which):
    assert pinned(front_end(by_method, WHICH=which, ORDER="inner_tree")) == 1
    assert pinned(front_end(by_method, WHICH=which, ORDER=None)) == 0


@pytest.mark.parametrize("which", METHODS)
def test_stub_and_function_have_both_keywords(which):
    for holder in (tl, tl.tensor):
        function = getattr(holder, which)
        signature = getattr(function, "signature", None) or inspect.signature(function)
        for keyword in ("order", "reduction_ordering"):
            assert signature.parameters[keyword].default is None


def test_documentation_names_the_order():
    for function in (tl.sum, tl.reduce):
        assert 'order: :code:`"inner_tree"`' in function.__doc__


@triton.jit
def helper(v, axis, reduction_ordering: tl.constexpr):
    return tl.reduce(v, axis, add, reduction_ordering=reduction_ordering)


ReductionOrdering = tl.ReductionOrdering
INNER: tl.constexpr = tl.constexpr(tl.ReductionOrdering.INNER_TREE)


@triton.jit
def torch_bare(x, out):
    v = load(x, 16)
    tl.store(out, tl.sum(v, 1, reduction_ordering=tl.ReductionOrdering.INNER_TREE).sum(0))


@triton.jit
def torch_constexpr(x, out):
    v = load(x, 16)
    s = tl.sum(v, 1, reduction_ordering=tl.constexpr(tl.ReductionOrdering.INNER_TREE))
    tl.store(out, s.sum(0))


@triton.jit
def torch_helper(x, out):
    v = load(x, 16)
    s = helper(v, 1, reduction_ordering=tl.constexpr(tl.ReductionOrdering.INNER_TREE))
    tl.store(out, s.sum(0))


@triton.jit
def by_imported_name(x, out):
    tl.store(out, load(x, 16).sum(1, reduction_ordering=ReductionOrdering.INNER_TREE).sum(0))


@triton.jit
def by_global(x, out):
    tl.store(out, load(x, 16).sum(1, reduction_ordering=INNER).sum(0))


@triton.jit
def agreeing(x, out):
    ordering: tl.constexpr = tl.ReductionOrdering.INNER_TREE
    s = tl.sum(load(x, 16), 1, order="inner_tree", reduction_ordering=ordering)
    tl.store(out, s.sum(0))


SPELLINGS = (torch_bare, torch_constexpr, torch_helper, by_imported_name, by_global, agreeing)


@pytest.mark.parametrize("kernel", SPELLINGS, ids=lambda kernel: kernel.__name__)
def test_each_spelling_of_inner_tree_pins_one_reduction(kernel):
    assert pinned(front_end(kernel)) == 1


def test_torch_probe():
    from triton.language import ReductionOrdering as probed

    assert hasattr(probed, "INNER_TREE")
    assert {member.name for member in probed} == {"INNER_TREE", "UNORDERED"}


@triton.jit
def ordering_argument(x, out, ORDERING: tl.constexpr):
    tl.store(out + tl.arange(0, 16), tl.sum(load(x, 16), 1, reduction_ordering=ORDERING))


@pytest.mark.parametrize(
    ("ordering", "count"),
    [(None, 0), (tl.ReductionOrdering.UNORDERED, 0), (tl.ReductionOrdering.INNER_TREE, 1)],
)
def test_ordering_as_a_kernel_argument(ordering, count):
    assert pinned(front_end(ordering_argument, ORDERING=ordering)) == count


@triton.jit
def both(x, out, ORDER: tl.constexpr, ORDERING: tl.constexpr):
    s = tl.sum(load(x, 16), 1, order=ORDER, reduction_ordering=ORDERING)
    tl.store(out + tl.arange(0, 16), s)


@triton.jit
def runtime_order(x, out):
    v = load(x, 16)
    tl.store(out + tl.arange(0, 16), tl.reduce(v, 1, add, order=tl.program_id(0)))


@pytest.mark.parametrize("wrong", ["outer_tree", "INNER_TREE", "", "unordered", 1, True])
@pytest.mark.parametrize("which", ["reduce", "sum", "argmax", "reduce_or"])
def test_unknown_order_lists_the_choices(wrong, which):
    with pytest.raises(CompilationError) as caught:
        front_end(by_function, WHICH=which, ORDER=wrong)
    assert "order must be one of None, 'inner_tree'" in messages(caught.value)
    assert repr(wrong) in messages(caught.value)


@pytest.mark.parametrize("wrong", ["tree", 0, False])
def test_unknown_ordering_lists_the_choices(wrong):
    with pytest.raises(CompilationError) as caught:
        front_end(both, ORDER=None, ORDERING=wrong)
    assert (
        "reduction_ordering must be one of None, tl.ReductionOrdering.UNORDERED, "
        "tl.ReductionOrdering.INNER_TREE"
    ) in messages(caught.value)


def test_order_must_be_known_at_compile_time():
    with pytest.raises(CompilationError) as caught:
        front_end(runtime_order)
    assert "known at compile time" in messages(caught.value)


def test_disagreeing_spellings_are_an_error():
    with pytest.raises(CompilationError) as caught:
        front_end(both, ORDER="inner_tree", ORDERING=tl.ReductionOrdering.UNORDERED)
    assert "disagree" in messages(caught.value)
