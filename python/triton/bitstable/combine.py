"""What the operations of a combine function compute in Triton's interpreter.

# Idea
The front end asks a builder for each operation, and the interpreter's computes it with numpy. While
a pinned reduction folds, [`arithmetic`] puts a [`CombineBuilder`] in its place. It hands every
operation on but those that numpy gets wrong: of bf16, which are numpy's on 16-bit integers, and
minima and maxima of two zeros or of a signalling NaN.

# Invariants
- **C1** An operation on bf16 is one that this module knows, or refused by name: never one on bits
  that the interpreter takes for an integer.
- **C2** What is computed here is what the compiler emits: each operation rounds once, in its type.

# Held by
`tests/python/test_frontend_bf16.py`, against the emulated sm_90.

# Not here
The order (`interpreter`); operations outside a combine function, which are the interpreter's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import triton.language as tl
from triton.bitstable import bf16
from triton.bitstable.errors import Diagnostic, ReductionOrderError

# In f32 and rounded; see `bf16` for why that is one rounding.
_ROUNDED = {
    *("create_fadd", "create_fsub", "create_fmul", "create_fneg"),
    *("create_minnumf", "create_maxnumf", "create_minimumf", "create_maximumf"),
}
# The bits are moved, or a bit of them is cleared.
_MOVED = {"create_select", "create_bitcast", "create_fabs"}
_CASTS = {
    "create_fp_ext",
    "create_fp_trunc",
    "create_fp_to_fp",
    "create_si_to_fp",
    "create_ui_to_fp",
}
_WIDER = {"fp32": np.float32, "fp16": np.float16}
# Integers of so many bits are exact in f32.
_EXACT_BITS = 16


@contextmanager
def arithmetic() -> Iterator[None]:
    """Let the interpreter compute as compiled combine functions do, for as long as this lasts."""
    from triton.runtime.interpreter import interpreter_semantic as semantic

    before = semantic.builder
    semantic.builder = CombineBuilder(before)
    try:
        with np.errstate(all="ignore"):
            yield
    finally:
        semantic.builder = before


class CombineBuilder:
    """The interpreter's builder, but for what numpy gets wrong."""

    def __init__(self, builder: Any) -> None:
        self._builder = builder

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._builder, name)
        if not name.startswith("create_"):
            return attribute
        operation = _as_compiled(name, attribute)

        def checked(*operands: Any) -> Any:
            if not any(_is_bf16(operand) for operand in operands):
                return operation(*operands)
            return _of_bf16(name, operation, operands)

        return checked

    def create_clampf(self, value: Any, low: Any, high: Any, nans: Any) -> Any:
        """As compiled: a maximum and a minimum."""
        from triton._C.libtriton import ir

        if nans == ir.PROPAGATE_NAN.NONE:
            return self.create_minnumf(self.create_maxnumf(value, low), high)
        return self.create_minimumf(self.create_maximumf(value, low), high)

    def get_bf16(self, value: float) -> Any:
        """A literal."""
        return _handle(np.atleast_1d(bf16.constant(value)), tl.bfloat16)


def _handle(data: Any, dtype: Any) -> Any:
    from triton.runtime.interpreter import TensorHandle

    return TensorHandle(data, dtype)


def _is_bf16(operand: Any) -> bool:
    """Of a value, or of the type that a cast leads to."""
    dtype = getattr(operand, "dtype", operand)
    return isinstance(dtype, tl.dtype) and dtype.scalar == tl.bfloat16


def _of_bf16(name: str, operation: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
    if name in _MOVED:
        return operation(*operands)
    if name in _CASTS:
        return _cast(*operands)
    wide = [_widened(operand) if _is_bf16(operand) else operand for operand in operands]
    if name in _ROUNDED:
        return _handle(bf16.narrow(operation(*wide).data), tl.bfloat16)
    if name.startswith("create_fcmp"):
        return _handle(operation(*wide).data, tl.int1)
    if name == "create_fma":
        data = bf16.fused_multiply_add(*(operand.data for operand in operands))
        return _handle(data, tl.bfloat16)
    raise _refusal(name.removeprefix("create_") + " of bf16")


def _widened(operand: Any) -> Any:
    return _handle(bf16.widen(operand.data), tl.float32)


def _cast(value: Any, target: Any, rounding: Any = None) -> Any:
    """Casts from and to bf16, by way of f32."""
    from triton._C.libtriton import ir

    source, target = value.dtype.scalar, target.scalar
    cast = f"a cast from {source} to {target}"
    if rounding not in (None, ir.ROUNDING_MODE.RTNE):
        raise _refusal(f"{cast} that does not round to nearest")
    if source == tl.bfloat16:
        if target.name not in _WIDER:
            raise _refusal(cast)
        return _handle(bf16.widen(value.data).astype(_WIDER[target.name]), target)
    exact = source.is_int() and source.primitive_bitwidth <= _EXACT_BITS
    if not exact and source.name not in _WIDER:
        raise _refusal(cast)
    return _handle(bf16.narrow(value.data.astype(np.float32)), tl.bfloat16)


def _as_compiled(name: str, operation: Callable[..., Any]) -> Callable[..., Any]:
    """Minima and maxima for which -0.0 is less than 0.0, and every NaN is quiet."""
    if name in ("create_minnumf", "create_minimumf"):
        zero: Callable[[Any, Any], Any] = lambda a, b: -(-a - b)  # noqa: E731
    elif name in ("create_maxnumf", "create_maximumf"):
        zero = lambda a, b: a + b  # noqa: E731
    else:
        return operation

    def extremum(left: Any, right: Any) -> Any:
        left, right = _quiet(left), _quiet(right)
        result = operation(left, right)
        both = (left.data == 0) & (right.data == 0)
        data = np.where(both, zero(left.data, right.data), result.data)
        return _handle(data, result.dtype)

    return extremum


def _quiet(operand: Any) -> Any:
    """The C library's `fmax` returns a signalling NaN where a quiet one gives way to a number."""
    data = operand.data
    return _handle(np.where(np.isnan(data), data.dtype.type(np.nan), data), operand.dtype)


def _refusal(operation: str) -> ReductionOrderError:
    message = (
        f"the combine function of a pinned reduction holds {operation}, for which Triton's "
        "interpreter has no arithmetic"
    )
    help = "convert the operand of the reduction to tl.float32, or compile the kernel"
    return ReductionOrderError([Diagnostic(message, help=help)])
