"""Which kernels, on which arguments, over which configurations: the whole corpus as a list.

Tiles are small, so that a configuration costs a tenth of a second: what is varied is how the work
is laid out, not how much there is.
"""

from __future__ import annotations

from typing import Any

from corpus.cases import Case
from corpus.kernels import columns, loops, norms, products, rows, twins

ALL = (80, 90, 100)
TILED = (1, 2, 4, 8, 16)
FEW = (1, 4, 16)


def _rows(
    kernel: Any,
    dtype: str = "f32",
    n: int = 128,
    inputs: tuple[str, ...] = ("x",),
    results: tuple[str, ...] = ("out",),
    tiles: tuple[int, ...] = FEW,
    **how: Any,
) -> Case:
    """16 rows of `n` elements to a number a row, for each of `results`."""
    fill, out = how.pop("fill", ""), how.pop("out", dtype)
    arguments = (
        *(f"{x}={dtype}:16x{n}{fill}" for x in inputs),
        *(f"{r}={how.pop(r, out)}:16=zero" for r in results),
    )
    return Case(kernel, arguments, "16 // M", {"N": n}, {"M": tiles}, **how)


def _mapped(
    kernel: Any,
    dtype: str = "f32",
    n: int = 128,
    inputs: tuple[str, ...] = ("x",),
    extra: tuple[str, ...] = (),
    result: str = "out",
    tiles: tuple[int, ...] = FEW,
    **how: Any,
) -> Case:
    """16 rows of `n` elements to as many; `extra` comes before the result or, scalars, after."""
    fill, out = how.pop("fill", ""), how.pop("out", dtype)
    arguments = (
        *(f"{x}={dtype}:16x{n}{fill}" for x in inputs),
        *extra,
        f"{result}={out}:16x{n}=zero",
    )
    return Case(kernel, arguments, "16 // M", {"N": n}, {"M": tiles}, **how)


def _columns(
    kernel: Any,
    dtype: str = "f32",
    m: int = 64,
    inputs: tuple[str, ...] = ("x",),
    results: tuple[str, ...] = ("out",),
    extra: tuple[str, ...] = (),
    **how: Any,
) -> Case:
    """`m` rows of 32 columns to a number a column, or to as many where `mapped`."""
    mapped, out = how.pop("mapped", False), how.pop("out", dtype)
    arguments = (
        *(f"{x}={dtype}:{m}x32" for x in inputs),
        *(f"{r}={out}:{f'{m}x32' if mapped else '32'}=zero" for r in results),
        *extra,
    )
    blocks = how.pop("blocks", (4, 16, 32))
    return Case(kernel, arguments, "32 // B", {"M": m, "COLUMNS": 32}, {"B": blocks}, **how)


def _looped(
    kernel: Any, steps: int = 4, n: int = 64, extra: tuple[str, ...] = (), **how: Any
) -> Case:
    """8 rows of `steps` tiles of `n`."""
    arguments = (f"x=f32:8x{steps * n}", *extra, "out=f32:8=zero", f"steps={steps}")
    how = {"stages": (1, 3), "warps": (1, 2, 4, 8, 16), "targets": (80, 90), **how}
    return Case(kernel, arguments, "8 // M", {"N": n}, {"M": (1, 4, 8)}, **how)


REDUCTIONS = [
    _rows(rows.sum_rows, tiles=TILED, targets=ALL),
    _rows(rows.sum_rows, n=1024, tiles=(1, 4)),
    _rows(rows.sum_rows, n=32, tiles=TILED),
    *(_rows(rows.sum_rows, dtype) for dtype in ("f64", "f16", "bf16")),
    *(_rows(rows.sum_rows_wider, dtype, out="f32") for dtype in ("f16", "bf16")),
    _rows(rows.sum_rows_wider, "e5m2", targets=(90,), out="f32"),
    _rows(rows.sum_rows_wider, "e4m3", targets=(90, 100), out="f32"),
    _rows(rows.product_rows, fill="=0.75..1.25"),
    _rows(rows.product_rows, "f16", fill="=0.75..1.25"),
    _rows(rows.max_rows),
    _rows(rows.max_rows, "bf16"),
    _rows(rows.min_rows, "f16"),
    _rows(rows.argmax_rows, out="i32", targets=ALL),
    _rows(rows.argmax_rows, "f16", out="i32"),
    _rows(rows.max_with_index_rows, results=("out", "at"), at="i32"),
    _rows(rows.welford_rows, results=("mean", "m2")),
    _rows(rows.welford_rows, "f64", n=64, results=("mean", "m2"), warps=(1, 4, 16)),
    _rows(rows.halve_rows, targets=ALL),
    _rows(rows.halve_rows, "f64"),
    _rows(rows.compose_rows, inputs=("x", "y"), results=("scale", "shift")),
    _rows(rows.dot_rows, inputs=("x", "y"), tiles=TILED),
    *(_rows(rows.dot_rows, dtype, inputs=("x", "y")) for dtype in ("f64", "f16", "bf16")),
    _rows(rows.mean_rows, n=256),
    _rows(rows.mean_squares_rows),
    _rows(rows.variance_rows),
    _rows(rows.moments_rows, results=("first", "second")),
    _rows(rows.sum_exp_rows),
    _rows(rows.sum_abs_rows, "f16"),
    _rows(rows.sum_integers_rows, "i32"),
    _rows(rows.sum_integers_rows, "i64", warps=(1, 4, 16)),
    _rows(rows.xor_rows, "i32"),
    _mapped(rows.normalise_rows),
    *(
        Case(
            rows.sum_padded_rows,
            (f"x=f32:16x{live}", "out=f32:16=zero", f"live={live}"),
            "16 // M",
            {},
            {"M": FEW, "N": tiles},
        )
        for live, tiles in ((100, (128, 256)), (96, (128,)))
    ),
]

COLUMNS = [
    _columns(columns.sum_columns, targets=ALL),
    _columns(columns.sum_columns, m=256, blocks=(4, 16)),
    *(_columns(columns.sum_columns, dtype) for dtype in ("f64", "f16", "bf16")),
    _columns(columns.dot_columns, inputs=("x", "y")),
    _columns(columns.dot_columns, "f16", inputs=("x", "y")),
    _columns(columns.max_columns, "f16"),
    _columns(columns.argmax_columns, out="i32"),
    _columns(columns.welford_columns, results=("mean", "m2")),
    _columns(columns.softmax_columns, mapped=True),
    *(
        Case(
            kernel,
            (f"x={dtype}:8x16x16", f"out={dtype}:8x16=zero"),
            "8 // A",
            {"B": 16, "C": 16},
            {"A": (1, 2, 8)},
        )
        for kernel, dtype in ((columns.sum_middle, "f32"), (columns.max_middle, "f32"))
    ),
    Case(
        columns.sum_middle,
        ("x=f16:4x64x8", "out=f16:4x8=zero"),
        "4 // A",
        {"B": 64, "C": 8},
        {"A": (1, 4)},
    ),
    Case(
        columns.sum_first,
        ("x=f32:16x8x8", "out=f32:8x8=zero"),
        "1",
        {"A": 16, "B": 8, "C": 8},
        targets=ALL,
    ),
    *(
        Case(kernel, ("x=f32:2x16x64", "out=f32:2=zero"), "2", {"M": 16, "N": 64}, targets=ALL)
        for kernel in (columns.sum_all, columns.sum_reshaped)
    ),
    Case(columns.sum_transposed, ("x=f32:64x16", "out=f32:16=zero"), "1", {"M": 64, "N": 16},
         targets=ALL),
    *(
        Case(columns.sum_vector, (f"x={dtype}:2x1024", f"out={dtype}:2=zero"), "2", {"N": 1024},
             targets=ALL)
        for dtype in ("f32", "f64", "f16", "bf16")
    ),
    Case(
        columns.sum_outer,
        ("x=f32:8x16", "y=f32:16x8", "out=f32:8x8=zero"),
        "1",
        {"M": 8, "K": 16, "N": 8},
        targets=ALL,
    ),
]  # fmt: skip

_PLACE = "target=i32:16=0..128"
_GRADIENT = ("weight=f32:128",)
NORMS = [
    _mapped(norms.softmax, tiles=TILED, targets=ALL),
    _mapped(norms.softmax, "f16"),
    _mapped(norms.softmax, "bf16", n=256, tiles=(1, 4)),
    Case(
        norms.softmax_padded,
        ("x=f32:16x100", "out=f32:16x100=zero", "live=100"),
        "16 // M",
        {},
        {"M": FEW, "N": (128, 256)},
    ),
    _mapped(norms.softmax_backward, inputs=("dy", "y"), result="dx"),
    _mapped(norms.log_softmax),
    _rows(norms.logsumexp),
    _rows(norms.logsumexp, "bf16", out="f32"),
    *(
        Case(kernel, ("x=f32:16x128", _PLACE, "out=f32:16=zero"), "16 // M", {"N": 128},
             {"M": FEW})
        for kernel in (norms.cross_entropy, norms.cross_entropy_selected)
    ),
    _rows(norms.squared_error, inputs=("x", "y")),
    _rows(norms.squared_error, "f16", inputs=("x", "y"), out="f32"),
    _rows(norms.divergence, inputs=("x", "y")),
    *(
        Case(
            norms.layer_norm,
            (f"x={dtype}:16x128", "weight=f32:128", "bias=f32:128", f"out={dtype}:16x128=zero",
             "eps=1e-5"),
            "16 // M",
            {"N": 128},
            {"M": tiles},
        )
        for dtype, tiles in (("f32", TILED), ("f16", FEW))
    ),
    Case(
        norms.layer_norm_padded,
        ("x=f32:16x100", "weight=f32:100", "out=f32:16x100=zero", "live=100", "eps=1e-5"),
        "16 // M",
        {},
        {"M": FEW, "N": (128,)},
    ),
    Case(
        norms.layer_norm_dx,
        ("dy=f32:16x128", "x=f32:16x128", "weight=f32:128", "mean=f32:16", "rstd=f32:16",
         "dx=f32:16x128=zero"),
        "16 // M",
        {"N": 128},
        {"M": FEW},
    ),
    Case(
        norms.rms_norm,
        ("x=f32:16x128", "weight=f32:128", "out=f32:16x128=zero", "eps=1e-5"),
        "16 // M",
        {"N": 128},
        {"M": TILED},
    ),
    Case(
        norms.rms_norm,
        ("x=bf16:16x128", "weight=f32:128", "out=bf16:16x128=zero", "eps=1e-5"),
        "16 // M",
        {"N": 128},
        {"M": FEW},
    ),
    Case(
        norms.rms_norm_dx,
        ("dy=f32:16x128", "x=f32:16x128", "weight=f32:128", "dx=f32:16x128=zero", "eps=1e-5"),
        "16 // M",
        {"N": 128},
        {"M": FEW},
    ),
    Case(
        norms.group_norm,
        ("x=f32:8x4x32", "out=f32:8x4x32=zero", "eps=1e-5"),
        "8 // M",
        {"G": 4, "N": 32},
        {"M": (1, 2, 8)},
    ),
    _columns(columns.batch_norm, mapped=True, extra=("eps=1e-5",)),
    Case(
        columns.layer_norm_dwdb,
        (
            *(f"{name}=f32:64x32" for name in ("dy", "x")),
            *(f"{name}=f32:64" for name in ("mean", "rstd")),
            *(f"{name}=f32:32=zero" for name in ("dw", "db")),
            "steps=2",
        ),
        "32 // B",
        {"M": 32, "COLUMNS": 32},
        {"B": (8, 32)},
        stages=(1, 3),
        warps=(1, 2, 4, 8, 16),
    ),
]  # fmt: skip

LOOPS = [
    _looped(loops.sum_chained),
    _looped(loops.sum_chained, steps=3, n=128, stages=(3,)),
    _looped(loops.sum_gathered),
    _looped(loops.sum_decayed, stages=(3,)),
    _looped(loops.matrix_vector, extra=("y=f32:256",)),
    _looped(loops.softmax_online, stages=(3,)),
    _looped(loops.max_looped, stages=(3,)),
    Case(
        loops.sum_bounded,
        ("x=f32:8x200", "out=f32:8=zero", "live=200"),
        "8 // M",
        {"N": 64},
        {"M": (1, 4, 8)},
        stages=(1, 3),
        warps=(1, 2, 4, 8, 16),
    ),
    Case(
        loops.sum_columns_looped,
        ("x=f32:128x32", "out=f32:32=zero", "steps=4"),
        "32 // B",
        {"M": 32, "COLUMNS": 32},
        {"B": (8, 32)},
        stages=(1, 3),
        warps=(1, 2, 4, 8, 16),
    ),
]

SCANS = [
    *(
        Case(loops.cumulate_rows, (f"x={dtype}:16x64", f"out={dtype}:16x64=zero"), "16 // M",
             {"N": 64}, {"M": FEW, "REVERSE": (False, True)}, fusion=(True,), targets=ALL)
        for dtype in ("f32", "f16")
    ),
    Case(loops.cumulate_columns, ("x=f32:64x32", "out=f32:64x32=zero"), "32 // B",
         {"M": 64, "COLUMNS": 32}, {"B": (4, 16, 32)}, fusion=(True,), targets=ALL),
    Case(loops.cumulate_products, ("x=f32:16x64=0.75..1.25", "out=f32:16x64=zero"), "16 // M",
         {"N": 64}, {"M": FEW}, fusion=(True,)),
    Case(loops.recurrence, ("x=f32:16x64=-1..1", "y=f32:16x64", "out=f32:16x64=zero"), "16 // M",
         {"N": 64}, {"M": FEW}),
    Case(loops.running_max, ("x=f32:16x64", "out=f32:16x64=zero"), "16 // M",
         {"N": 64}, {"M": FEW}, fusion=(True,)),
]  # fmt: skip

MAPS = [
    Case(
        rows.quantise_rows,
        ("x=f32:16x128", "out=i8:16x128=zero", "scale=f32:16=zero"),
        "16 // M",
        {"N": 128},
        {"M": FEW},
    ),
    Case(loops.axpy, ("x=f32:1000", "y=f32:1000", "out=f32:1000=zero", "a=1.7", "n=1000"),
         "cdiv(n, BLOCK)", {}, {"BLOCK": (128, 512, 1024)}),
    Case(loops.gated, ("x=f16:1000", "y=f16:1000", "out=f16:1000=zero", "n=1000"),
         "cdiv(n, BLOCK)", {}, {"BLOCK": (128, 512, 1024)}),
    Case(loops.bell, ("x=f32:1000", "out=f32:1000=zero", "n=1000"),
         "cdiv(n, BLOCK)", {}, {"BLOCK": (128, 512, 1024)}),
    Case(loops.transpose, ("x=f32:32x32", "out=f32:32x32=zero"), "32 // M",
         {"N": 32, "ROWS": 32}, {"M": (8, 16, 32)}, fusion=(True,), targets=ALL),
    Case(loops.sort_rows, ("x=f32:8x32", "out=f32:8x32=zero"), "8 // M",
         {"N": 32}, {"M": (1, 4, 8)}, fusion=(True,), warps=(1, 2, 4, 8)),
]  # fmt: skip


def _matmul(kernel: Any, dtype: str, c: str = "f32", k: int = 64, **how: Any) -> Case:
    """32 by `k` by 32. How inputs are rounded is an axis: products that must be kept apart."""
    extra = how.pop("extra", ())
    axes = {"M": (16, 32), "N": (16, 32), "K": how.pop("inner", (16, 32, 64))}
    if "PRECISION" in kernel.arg_names:
        axes["PRECISION"] = how.pop("precisions", ("tf32",))
    how = {"targets": (80, 86), "warps": (1, 2, 4, 8), "stages": (1, 2, 3), "fusion": (True,)} | how
    return Case(
        kernel,
        (f"a={dtype}:32x{k}", f"b={dtype}:{k}x32", *extra, f"c={c}:32x32=zero", f"k={k}"),
        "32 // M, 32 // N",
        {"COLUMNS": 32},
        axes,
        **how,
    )


def _split(dtype: str, split: int) -> Case:
    return Case(
        products.matmul_split,
        (f"a={dtype}:32x128", f"b={dtype}:128x32", f"c=f32:{split}x32x32=zero", "k=128"),
        f"32 // M, 32 // N, {split}",
        {"COLUMNS": 32, "ROWS": 32, "SPLIT": split},
        {"M": (16, 32), "N": (32,), "K": (16, 32)},
        targets=(80,),
        warps=(1, 2, 4),
        stages=(1, 3),
        fusion=(True,),
    )


PRODUCTS = [
    _matmul(products.matmul, "f16"),
    _matmul(products.matmul, "f16", "f16", k=128, targets=(80,), stages=(1, 3)),
    _matmul(products.matmul, "bf16"),
    _matmul(products.matmul, "f32", targets=(80,), inner=(16, 32), stages=(1, 3),
            precisions=("tf32", "ieee", "tf32x3"), fusion=(True, False)),
    _matmul(products.matmul, "e4m3", targets=(89, 120), inner=(32, 64)),
    _matmul(products.matmul, "e5m2", targets=(89,), inner=(32, 64), stages=(1, 3)),
    _matmul(products.matmul_transposed, "f16", targets=(80,)),
    _matmul(products.matmul_transposed, "bf16", targets=(80,), stages=(1, 3)),
    _matmul(products.matmul_biased, "f16", "f16", extra=("bias=f32:32",), targets=(80,)),
    _split("f16", 2),
    _split("bf16", 4),
    _split("f32", 4),
    Case(products.sum_partials, ("c=f32:4x32x32", "out=f32:32x32=zero"), "1024 // BLOCK",
         {"SPLIT": 4, "SIZE": 1024}, {"BLOCK": (128, 256, 1024)}),
    Case(products.dot_row_sums, ("a=f16:32x32", "b=f16:32x32", "out=f32:32=zero"), "32 // M",
         {"N": 32, "K": 32}, {"M": (16, 32)}, targets=(80,)),
    Case(products.dot_column_sums, ("a=f16:32x32", "b=f16:32x32", "out=f32:32=zero"), "1",
         {"M": 32, "N": 32, "K": 32}, targets=(80, 86)),
]  # fmt: skip


def _attention(dtype: str, length: int, **how: Any) -> Case:
    shape = f"{dtype}:{length}x32"
    how = {"warps": (1, 2, 4, 8), "stages": (1, 2, 3), "fusion": (True,), "targets": (80,)} | how
    return Case(
        products.attention,
        (f"q={shape}", f"k={shape}", f"v={shape}", f"out={shape}=zero", "scale=0.25"),
        f"{length} // M",
        {"LENGTH": length, "D": 32},
        {"M": (16, 32, 64), "N": (16, 32), "CAUSAL": (False, True)},
        **how,
    )


ATTENTION = [
    _attention("f16", 64),
    _attention("bf16", 128, stages=(1, 3), warps=(2, 4)),
    Case(
        products.attention_decode,
        ("q=f32:2x32", "k=f32:2x64x32", "v=f32:2x64x32", "out=f32:2x32=zero", "scale=0.25"),
        "2",
        {"LENGTH": 64, "D": 32},
        {"N": (16, 32)},
        stages=(1, 3),
        warps=(1, 2, 4, 8),
    ),
]

TWINS = [
    Case(twins.twins_rows, ("x=f32:16x64", "out=f32:16=zero"), "16 // M", {"N": 64},
         {"M": (4, 16), "VARIANT": tuple(range(18))}, warps=(1, 4, 16), targets=(90,),
         fusion=(True,)),
    Case(twins.twins_map,
         ("x=f32:500", "y=f32:500", "z=f32:500", "out=f32:500=zero", "n=500"),
         "cdiv(n, BLOCK)", {}, {"BLOCK": (128, 512), "VARIANT": tuple(range(27))},
         warps=(1, 4), targets=(90,)),
    Case(twins.twins_integers, ("x=i32:500", "y=i32:500", "out=i32:500=zero", "n=500"),
         "cdiv(n, BLOCK)", {}, {"BLOCK": (128, 512), "VARIANT": tuple(range(14))},
         warps=(1, 4), targets=(90,), fusion=(True,)),
]  # fmt: skip

KINDS = {
    "twins": TWINS,
    "reductions": [*REDUCTIONS, *COLUMNS],
    "norms": NORMS,
    "loops": LOOPS,
    "scans": SCANS,
    "maps": MAPS,
    "products": PRODUCTS,
    "attention": ATTENTION,
}
CASES = [case for cases in KINDS.values() for case in cases]
KIND = {case.family: kind for kind, cases in KINDS.items() for case in cases}
