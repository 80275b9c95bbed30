"""The kernels that the benchmarks compile: those whose bits the tests check."""

from __future__ import annotations

import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))
os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

import kernels


@dataclass(frozen=True)
class Case:
    """One kernel at one shape. `pointers` are the arguments that are aligned to 16 bytes."""

    name: str
    kernel: Any
    signature: dict[str, str]
    constants: dict[str, Any] = field(default_factory=dict)

    def compile(self, target: GPUTarget, num_warps: int, order: str | None) -> Any:
        """The compiled kernel, with pointers aligned as `torch` allocates them."""
        constants = {**self.constants}
        if "ORDER" in self.kernel.arg_names:
            constants["ORDER"] = order
        signature = {name: self.signature.get(name, "constexpr") for name in self.kernel.arg_names}
        attributes = {
            (at,): [["tt.divisibility", 16]]
            for at, name in enumerate(self.kernel.arg_names)
            if signature[name].startswith("*")
        }
        source = ASTSource(self.kernel, signature, constants, attributes)
        return triton.compile(source, target=target, options={"num_warps": num_warps})


def _tile(kernel: Any, extents: tuple[int, int], axis: int, name: str) -> Case:
    rows, columns = extents
    pointers = {n: "*fp32" for n in kernel.arg_names if n in ("x", "y", "out")}
    return Case(
        f"{name} {rows}x{columns}", kernel, pointers, {"M": rows, "N": columns, "AXIS": axis}
    )


TILES = [(4, 1024), (16, 256), (1, 4096), (128, 32), (64, 128), (32, 8192)]

CASES = [
    Case("1-D sum 4096", kernels.sum_vector, {"x": "*fp32", "out": "*fp32"}, {"N": 4096}),
    Case(
        "608 of 1024",
        kernels.sum_padded,
        {"x": "*fp32", "out": "*fp32", "live": "i32"},
        {"N": 1024},
    ),
    *(_tile(kernels.sum_tile, tile, 1, "row sum") for tile in TILES),
    *(_tile(kernels.sum_tile, tile, 0, "column sum") for tile in TILES),
    Case(
        "middle axis 8x32x16",
        kernels.sum_middle,
        {"x": "*fp32", "out": "*fp32"},
        {"A": 8, "B": 32, "C": 16},
    ),
    Case("axis=None 64x128", kernels.sum_all, {"x": "*fp32", "out": "*fp32"}, {"M": 64, "N": 128}),
    _tile(kernels.sum_products, (16, 256), 1, "row dot"),
    _tile(kernels.sum_products, (128, 64), 0, "column dot"),
    Case(
        "argmax 16x256",
        kernels.argmax_tile,
        {"x": "*fp32", "out": "*i32"},
        {"M": 16, "N": 256, "AXIS": 1},
    ),
    _tile(kernels.welford_tile, (16, 256), 1, "Welford"),
    _tile(kernels.halve_tile, (16, 256), 1, "a*0.5+b"),
]
