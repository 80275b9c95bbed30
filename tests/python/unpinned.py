"""Kernels without a pinned reduction, written as stock Triton knows them.

`python unpinned.py OUTPUT` compiles them for every target and writes their machine code as JSON;
`test_frontend_stock.py` runs it once with stock Triton and once with ours.
"""

import json
import os
import sys
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon._runtime import GluonASTSource

TARGETS = (
    *(GPUTarget("cuda", capability, 32) for capability in (80, 90, 100)),
    GPUTarget("hip", "gfx942", 64),
    GPUTarget("hip", "gfx1201", 32),
)


@triton.jit
def tile(x, N: tl.constexpr):
    return tl.load(x + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :])


@triton.jit
def combine(a, b):
    return a * 0.5 + b


@triton.jit
def reductions(x, out, N: tl.constexpr):
    v = tile(x, N)
    at = tl.arange(0, N)
    tl.store(out + at, tl.sum(v, 1) + tl.max(v, 0) + v.min(1) + tl.reduce(v, 0, combine))
    tl.store(out + N + at, tl.argmax(v, 1) + v.argmin(0) + tl.xor_sum(v.to(tl.int32), 1))
    tl.store(out + 2 * N, tl.sum(v) + tl.max(v.to(tl.float16)))
    tl.store(out + 3 * N + at, tl.reduce_or(v.to(tl.int32), 1))


@triton.jit
def library(x, out, N: tl.constexpr):
    v = tl.sort(tl.softmax(tile(x, N)))
    v = tl.cumsum(v, 1)
    tl.store(out + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], v)


@triton.jit
def looped(x, out, n, N: tl.constexpr):
    total = tl.zeros([N], tl.float32)
    for step in range(n):
        total += tl.sum(tile(x + step * N * N, N), 1)
    tl.store(out + tl.arange(0, N), total)


@triton.jit
def matmul(x, out, n, N: tl.constexpr):
    total = tl.zeros([N, N], tl.float32)
    for step in range(n):
        a = tile(x + step * N * N, N)
        total = tl.dot(a, a, total)
    tl.store(out + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], total)


@triton.jit
def product(x, out, N: tl.constexpr):
    v = tile(x, N)
    s = tl.sum(v[:, :, None] * v[None, :, :], axis=1)
    tl.store(out + tl.arange(0, N)[:, None] * N + tl.arange(0, N)[None, :], s)


@gluon.jit
def explicit(x, out, N: gl.constexpr, LANES: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1, 4], [LANES // 8, 8], [4, 1], [1, 0])
    rows = gl.arange(0, N, gl.SliceLayout(1, layout))
    columns = gl.arange(0, N, gl.SliceLayout(0, layout))
    v = gl.load(x + rows[:, None] * N + columns[None, :])
    i = v.to(gl.int32)
    gl.store(out + rows, gl.sum(v, 1) + v.max(1) + gl.reduce(v, 1, combine))
    gl.store(out + N + columns, v.sum(0) + gl.min(v, 0) + gl.xor_sum(i, 0) + gl.reduce_or(i, 0))


JOBS = (
    *((reductions, 32, "fp32", warps) for warps in (1, 4, 16)),
    (library, 32, "fp32", 4),
    (looped, 64, "fp32", 4),
    (looped, 64, "fp16", 8),
    (matmul, 64, "fp16", 4),
    (product, 16, "fp32", 1),
    (explicit, 32, "fp32", 4),
)


def compile(kernel, extent, dtype, warps, target):
    signature = {"x": f"*{dtype}", "out": "*fp32", "n": "i32", "N": "constexpr"}
    signature["LANES"] = "constexpr"
    signature = {name: signature[name] for name in kernel.arg_names}
    aligned = {(at,): [["tt.divisibility", 16]] for at in range(2)}
    constants = {"N": extent, "LANES": target.warp_size}
    constants = {name: value for name, value in constants.items() if name in signature}
    kind = GluonASTSource if kernel is explicit else ASTSource
    source = kind(kernel, signature, constants, aligned)
    compiled = triton.compile(source, target=target, options={"num_warps": warps})
    code = compiled.asm["ptx" if target.backend == "cuda" else "amdgcn"]
    # Debug information names Triton's own files, which lie in another folder there.
    return code.replace(os.path.dirname(triton.__file__), "TRITON")


def main(output):
    code = {"version": triton.__version__}
    for target in TARGETS:
        for kernel, extent, dtype, warps in JOBS:
            name = f"{kernel.__name__} {dtype} warps={warps} {target.backend}:{target.arch}"
            code[name] = compile(kernel, extent, dtype, warps, target)
    Path(output).write_text(json.dumps(code))


if __name__ == "__main__":
    main(*sys.argv[1:])
