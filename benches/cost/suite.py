"""The kernels that are measured, as data: which, at which shape, on which types.

# Idea
The kernels are those of `tests/corpus`, whose bits are checked there. A case fixes everything but
the target, the number of warps and the order. Tiles have at most 16,384 elements, so that one warp
can hold them without its registers overflowing by orders of magnitude.

# Invariants
- **S1** Names are unique; a report names a kernel by them.
- **S2** Nothing here imports Triton: which one compiles a case is decided by who runs the worker.
- **S3** Pointers are aligned to 16 bytes, as `torch` allocates them; numbers are any number.

# Not here
Targets, warps and orders (`command.py`); compiling (`worker.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

TYPES = {"f32": "fp32", "f16": "fp16", "bf16": "bf16", "e5m2": "fp8e5"}
"""Spellings of this list on the left, Triton's on the right; others are the same in both."""


@dataclass(frozen=True)
class Case:
    """One kernel at one shape."""

    name: str
    kernel: str
    """`module:function` below `corpus.kernels`."""
    signature: dict[str, str]
    """Types of the arguments that are no constants, as Triton has them."""
    constants: dict[str, Any]
    contiguous: bool
    """Whether neighbours along the reduced axis are neighbours in memory."""


def _case(
    name: str, kernel: str, arguments: str, contiguous: bool = True, **constants: Any
) -> Case:
    """`arguments` lists `name:type`, pointers with a star: `*x:f32 *out:f32 steps:i32`."""
    signature = {}
    for argument in arguments.split():
        called, _, ty = argument.partition(":")
        star = "*" if called.startswith("*") else ""
        signature[called.lstrip("*")] = star + TYPES.get(ty, ty)
    return Case(name, kernel, signature, constants, contiguous)


def _rows(
    name: str, kernel: str, m: int, n: int, arguments: str = "*x:f32 *out:f32", **more: Any
) -> Case:
    """`m` rows of `n` elements, reduced along memory."""
    module = more.pop("module", "rows")
    return _case(f"{name} {m}x{n}", f"{module}:{kernel}", arguments, M=m, N=n, **more)


def _columns(
    name: str, kernel: str, m: int, b: int, arguments: str = "*x:f32 *out:f32", **more: Any
) -> Case:
    """`m` rows of `b` columns out of 4096, reduced across memory."""
    module = more.pop("module", "columns")
    return _case(
        f"{name} {m}x{b}",
        f"{module}:{kernel}",
        arguments,
        contiguous=False,
        M=m,
        B=b,
        COLUMNS=4096,
        **more,
    )


SUMS = [
    _case("1-D sum 4096", "columns:sum_vector", "*x:f32 *out:f32", N=4096),
    _case("1-D sum 8192", "columns:sum_vector", "*x:f32 *out:f32", N=8192),
    _case("1-D sum f16 8192", "columns:sum_vector", "*x:f16 *out:f16", N=8192),
    _rows("masked sum, 608 of", "sum_padded_rows", 1, 1024, "*x:f32 *out:f32 live:i32"),
    *(
        _rows("row sum", "sum_rows", m, n)
        for m, n in ((4, 1024), (16, 256), (64, 128), (128, 32), (2, 8192))
    ),
    _rows("row sum f16", "sum_rows", 16, 256, "*x:f16 *out:f16"),
    _rows("row sum bf16", "sum_rows", 16, 256, "*x:bf16 *out:bf16"),
    _rows("row sum f16 as f32", "sum_rows_wider", 4, 1024, "*x:f16 *out:f32"),
    _rows("row sum fp8 as f32", "sum_rows_wider", 16, 256, "*x:e5m2 *out:f32"),
    *(_rows("short row sum", "sum_rows", m, n) for m, n in ((1024, 2), (1024, 4), (512, 8))),
    *(
        _columns("column sum", "sum_columns", m, b)
        for m, b in ((1024, 4), (256, 16), (64, 128), (32, 128), (8192, 2))
    ),
    _columns("column sum f16", "sum_columns", 128, 64, "*x:f16 *out:f16"),
    _columns("column sum bf16", "sum_columns", 128, 64, "*x:bf16 *out:bf16"),
    *(
        _columns("short column sum", "sum_columns", m, b)
        for m, b in ((2, 1024), (4, 512), (8, 256))
    ),
    _case("transposed sum 64x128", "columns:sum_transposed", "*x:f32 *out:f32", False, M=64, N=128),
    _case("middle sum 8x32x16", "columns:sum_middle", "*x:f32 *out:f32", False, A=8, B=32, C=16),
    _case("middle sum f16 4x64x8", "columns:sum_middle", "*x:f16 *out:f16", False, A=4, B=64, C=8),
    _case("first sum 16x8x64", "columns:sum_first", "*x:f32 *out:f32", False, A=16, B=8, C=64),
    _case("axis=None sum 64x128", "columns:sum_all", "*x:f32 *out:f32", M=64, N=128),
]

FOLDS = [
    _rows("row dot", "dot_rows", 16, 256, "*x:f32 *y:f32 *out:f32"),
    _columns("column dot", "dot_columns", 128, 64, "*x:f32 *y:f32 *out:f32"),
    _columns("column dot f16", "dot_columns", 128, 64, "*x:f16 *y:f16 *out:f16"),
    _rows("sum of exp", "sum_exp_rows", 16, 256),
    _rows("variance", "variance_rows", 4, 1024),
    _rows("product", "product_rows", 16, 256),
    _rows("argmax", "argmax_rows", 16, 256, "*x:f32 *out:i32"),
    _columns("column argmax", "argmax_columns", 128, 32, "*x:f32 *out:i32"),
    _rows("Welford", "welford_rows", 16, 256, "*x:f32 *mean:f32 *m2:f32"),
    _columns("column Welford", "welford_columns", 128, 32, "*x:f32 *mean:f32 *m2:f32"),
    _rows("a*0.5+b", "halve_rows", 16, 256),
]

NORMS = [
    _rows("softmax", "softmax", 4, 1024, module="norms"),
    _rows(
        "masked softmax", "softmax_padded", 1, 1024, "*x:f32 *out:f32 live:i32", module="norms"
    ),
    _rows("log softmax", "log_softmax", 4, 1024, module="norms"),
    _columns("column softmax", "softmax_columns", 128, 32),
    _rows(
        "layer norm", "layer_norm", 4, 1024,
        "*x:f32 *weight:f32 *bias:f32 *out:f32 eps:f32", module="norms",
    ),
    _rows(
        "layer norm f16", "layer_norm", 4, 1024,
        "*x:f16 *weight:f16 *bias:f16 *out:f16 eps:f32", module="norms",
    ),
    _rows(
        "masked layer norm", "layer_norm_padded", 1, 1024,
        "*x:f32 *weight:f32 *out:f32 live:i32 eps:f32", module="norms",
    ),
    _rows(
        "layer norm dX", "layer_norm_dx", 4, 1024,
        "*dy:f32 *x:f32 *weight:f32 *mean:f32 *rstd:f32 *dx:f32", module="norms",
    ),
    _columns(
        "layer norm dW dB", "layer_norm_dwdb", 32, 64,
        "*dy:f32 *x:f32 *mean:f32 *rstd:f32 *dw:f32 *db:f32 steps:i32",
    ),
    _rows(
        "RMS norm", "rms_norm", 4, 1024, "*x:f32 *weight:f32 *out:f32 eps:f32", module="norms"
    ),
    _columns("batch norm", "batch_norm", 128, 32, "*x:f32 *out:f32 eps:f32"),
    _rows("cross entropy", "cross_entropy", 4, 1024, "*x:f32 *target:i32 *out:f32", module="norms"),
]  # fmt: skip

LOOPS = [
    _rows("looped sum", "sum_chained", 4, 256, "*x:f32 *out:f32 steps:i32", module="loops"),
    _rows("gathered sum", "sum_gathered", 4, 256, "*x:f32 *out:f32 steps:i32", module="loops"),
    _rows("masked looped sum", "sum_bounded", 4, 256, "*x:f32 *out:f32 live:i32", module="loops"),
    _rows("online softmax", "softmax_online", 4, 256, "*x:f32 *out:f32 steps:i32", module="loops"),
    _rows(
        "matrix by vector", "matrix_vector", 16, 256, "*x:f32 *y:f32 *out:f32 steps:i32",
        module="loops",
    ),
    _columns(
        "looped column sum", "sum_columns_looped", 32, 64, "*x:f32 *out:f32 steps:i32",
        module="loops",
    ),
    _case("matmul row sums 64x64x32", "products:dot_row_sums", "*a:f16 *b:f16 *out:f32",
          M=64, N=64, K=32),
    _case("matmul column sums 64x64x32", "products:dot_column_sums", "*a:f16 *b:f16 *out:f32",
          False, M=64, N=64, K=32),
]  # fmt: skip

CASES = [*SUMS, *FOLDS, *NORMS, *LOOPS]
