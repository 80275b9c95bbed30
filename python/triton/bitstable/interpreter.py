"""The canonical tree in Triton's interpreter (`TRITON_INTERPRET=1`).

# Idea
The definition, run on numpy data: axis bit 0 folds first, so one round combines each even element
with its odd neighbour, and the rounds halve the axis until one element is left.

# Invariants
- **I1** The lower index is the left operand.
- **I2** Each combine is evaluated by the interpreter's own operations. Triton's own elementwise
  combines take whole arrays at once; any other combine is called on scalars, because a branch or
  an `and` inside it means something else on arrays.
- **I3** Arguments and result have one type: what a combine returns is not converted.

# Not here
What each operation of the combine computes, and how it rounds (`combine`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl
from triton.bitstable.combine import arithmetic
from triton.bitstable.errors import Diagnostic, ReductionOrderError


def reduce_inner_tree(
    inputs: tuple[Any, ...],
    axis: int | None,
    combine_fn: Any,
    keep_dims: bool,
    to_tensor: Callable[[Any, Any], Any],
) -> tuple[Any, ...]:
    """Fold `inputs` along `axis` (all of them flattened for `None`) in canonical order.

    `to_tensor` is the interpreter's own conversion of numpy data to its tensors.
    """
    dtypes = [t.dtype for t in inputs]
    arrays = [t.handle.data for t in inputs]
    rank = arrays[0].ndim
    if axis is None:
        arrays = [array.reshape(-1) for array in arrays]
    arrays = [np.moveaxis(array, axis or 0, 0) for array in arrays]
    combine = _on_arrays if _is_elementwise(combine_fn) else _on_scalars
    with arithmetic():
        while arrays[0].shape[0] > 1:
            left = [array[0::2] for array in arrays]
            right = [array[1::2] for array in arrays]
            arrays = combine(combine_fn, left, right, dtypes, to_tensor)
    arrays = [array[0] for array in arrays]
    if keep_dims:
        shape = [1] * rank
        arrays = [
            np.reshape(array, shape) if axis is None else np.expand_dims(array, axis)
            for array in arrays
        ]
    return tuple(
        to_tensor(array if array.ndim else array.item(), dtype)
        for array, dtype in zip(arrays, dtypes, strict=True)
    )


def _is_elementwise(combine_fn: Any) -> bool:
    standard = tl.standard
    known = (
        standard._sum_combine,
        standard._elementwise_max,
        standard._elementwise_min,
        standard._prod_combine,
        standard._xor_combine,
        standard._or_combine,
    )
    return any(combine_fn is each for each in known)


def _call(combine_fn: Any, left: list[Any], right: list[Any], dtypes: list[Any]) -> tuple[Any, ...]:
    result = combine_fn.fn(*left, *right)
    results = tuple(result) if isinstance(result, (tuple, tl.tuple)) else (result,)
    for value, dtype in zip(results, dtypes, strict=True):
        if isinstance(value, tl.tensor) and not _is_one_type(value.dtype, dtype):
            message = (
                f"the combine function of a pinned reduction returns {value.dtype.scalar} for an "
                f"operand of {dtype.scalar}"
            )
            raise ReductionOrderError([Diagnostic(message, help="convert what it returns")])
    return results


def _is_one_type(left: Any, right: Any) -> bool:
    """Whether two types are one in compiled code, where integers have no sign."""
    left, right = left.scalar, right.scalar
    width = left.primitive_bitwidth == right.primitive_bitwidth
    return left == right or (left.is_int() and right.is_int() and width)


def _on_arrays(
    combine_fn: Any, left: list[Any], right: list[Any], dtypes: list[Any], to_tensor: Any
) -> list[Any]:
    def tensors(arrays: list[Any]) -> list[Any]:
        return [to_tensor(np.ascontiguousarray(a), d) for a, d in zip(arrays, dtypes, strict=True)]

    results = _call(combine_fn, tensors(left), tensors(right), dtypes)
    return [result.handle.data for result in results]


def _on_scalars(
    combine_fn: Any, left: list[Any], right: list[Any], dtypes: list[Any], to_tensor: Any
) -> list[Any]:
    results = [np.empty_like(array) for array in left]

    def scalars(arrays: list[Any], index: tuple[int, ...]) -> list[Any]:
        return [to_tensor(a[index], d) for a, d in zip(arrays, dtypes, strict=True)]

    for index in np.ndindex(left[0].shape):
        combined = _call(combine_fn, scalars(left, index), scalars(right, index), dtypes)
        for result, value in zip(results, combined, strict=True):
            result[index] = value.handle.data.item() if hasattr(value, "handle") else value
    return results
