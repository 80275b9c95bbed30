"""What a kernel's author says about a reduction's order, and how it enters the IR.

# Idea
Two spellings mean one thing: `order="inner_tree"`, and the spelling of PyTorch's Inductor,
`reduction_ordering=tl.ReductionOrdering.INNER_TREE`. [`resolve`] makes one `ReductionOrdering` (or
`None`, "nothing said") of both; [`is_pinned`] adds the strict knob; [`create_reduce`] writes the
answer into the IR.

# The shield
A pinned reduction reads its operands through `tt.extern_elementwise` with the symbol
`bitstable.pin`: pure and elementwise, so layouts flow through it, but opaque, so neither
`triton-combine` (which makes a dot of a sum of products, and lets reshapes reorder) nor
`tritongpu-optimize-thread-locality` (which splits reductions in loops) recognises what it feeds.
`pin-reduce` strips it.

# Invariants
- **F1** The answer depends on the call's own arguments and the compile options alone, never on
  Python state, so that equal calls share a function and unequal ones do not.
- **F2** What was said explicitly beats the knob, in both directions.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

ORDER_ATTRIBUTE = "tt.order"
SHIELD_SYMBOL = "bitstable.pin"
ORDERS = ("inner_tree",)


class ReductionOrdering(StrEnum):
    """The order in which a reduction combines its values.

    `INNER_TREE` is the canonical tree: neighbours pair first, the lower index is the left operand,
    and the tree is a function of the extent alone. `UNORDERED` leaves the order to the compiler.
    The members are strings so that they survive JSON, where Triton keeps specialisations.
    """

    UNORDERED = "unordered"
    INNER_TREE = "inner_tree"

    def __repr__(self) -> str:
        return f"ReductionOrdering.{self.name}"

    __str__ = __repr__

    def mangle(self) -> str:
        """The part of a function's name that stands for this value; a valid PTX identifier."""
        return f"ReductionOrdering_{self.name}"


# Kernels may use it as a global under Triton's own rule: it lives in `triton.language`.
ReductionOrdering.__module__ = "triton.language"
ReductionOrdering.__qualname__ = "ReductionOrdering"


def resolve(order: Any, reduction_ordering: Any) -> ReductionOrdering | None:
    """One answer from both spellings; both arguments are already unwrapped from `constexpr`."""
    said = _from_order(order)
    also = _from_ordering(reduction_ordering)
    if said is not None and also is not None and said is not also:
        raise ValueError(
            f"order={order!r} and reduction_ordering={also!r} disagree: "
            "say one of them, or the same with both"
        )
    return said if said is not None else also


def _from_order(order: Any) -> ReductionOrdering | None:
    if order is None:
        return None
    if isinstance(order, str) and order in ORDERS:
        return ReductionOrdering(order)
    choices = ", ".join(["None", *(repr(choice) for choice in ORDERS)])
    raise ValueError(f"order must be one of {choices}, known at compile time; got {order!r}")


def _from_ordering(ordering: Any) -> ReductionOrdering | None:
    if ordering is None:
        return None
    if isinstance(ordering, str):
        for member in ReductionOrdering:
            if ordering == member.value:
                return member
    choices = ", ".join(["None", *(f"tl.{member!r}" for member in ReductionOrdering)])
    raise ValueError(
        f"reduction_ordering must be one of {choices}, known at compile time; got {ordering!r}"
    )


def is_pinned(ordering: ReductionOrdering | None, options: Any) -> bool:
    """Whether a reduction is pinned: as it says itself, else as the compile options say."""
    if ordering is not None:
        return ordering is ReductionOrdering.INNER_TREE
    strict = getattr(options, "strict_reduction_ordering", None)
    if strict is None:  # a back end from elsewhere, or the interpreter
        from triton import knobs

        strict = knobs.language.strict_reduction_ordering
    return bool(strict)


def create_reduce(builder: Any, inputs: Sequence[Any], axis: int, pinned: bool) -> Any:
    """Create `tt.reduce` over `inputs`; a pinned one is shielded and carries `tt.order`."""
    if not pinned:
        return builder.create_reduce([t.handle for t in inputs], axis)
    handles = [
        builder.create_extern_elementwise(
            "", "", SHIELD_SYMBOL, [t.handle], t.type.to_ir(builder), True
        )
        for t in inputs
    ]
    reduce_op = builder.create_reduce(handles, axis)
    inner_tree = builder.get_string_attr(ReductionOrdering.INNER_TREE.value)
    reduce_op.set_attr(ORDER_ATTRIBUTE, inner_tree)
    return reduce_op
