"""Kernels whose PTX is the parser's corpus: between them they reach what Triton 3.9 emits.

`KERNELS` lists each with its arguments, constants, options and the targets it makes sense for.
"""

from dataclasses import dataclass, field
from typing import Any

import triton
import triton.language as tl
from triton.language.extra import libdevice

ALL = (75, 80, 86, 89, 90, 100, 120)


@dataclass(frozen=True)
class Case:
    """One compilation: a kernel, `name:type` of its arguments, its constants and options."""

    name: str
    kernel: Any
    arguments: str
    constants: dict = field(default_factory=dict)
    options: dict = field(default_factory=dict)
    targets: tuple = ALL


@triton.jit
def add(x, y, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, at < n) + tl.load(y + at, at < n), at < n)


@triton.jit
def softmax(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + at, at < n, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, 0))
    tl.store(out + row * stride + at, e / tl.sum(e, 0), at < n)


@triton.jit
def layernorm(x, w, b, out, mean, rstd, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
    mu = tl.sum(total, 0) / n
    square = tl.zeros([BLOCK], tl.float32)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
        d = tl.where(at < n, v - mu, 0.0)
        square += d * d
    r = 1 / tl.sqrt(tl.sum(square, 0) / n + eps)
    tl.store(mean + row, mu)
    tl.store(rstd + row, r)
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * n + at, at < n, other=0.0).to(tl.float32)
        y = (v - mu) * r * tl.load(w + at, at < n) + tl.load(b + at, at < n)
        tl.store(out + row * n + at, y, at < n)


@triton.jit
def layernorm_backward(
    dx, dy, dw, db, x, w, mean, rstd, lock, n, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    v = tl.load(x + row * n + at, mask, other=0).to(tl.float32)
    g = tl.load(dy + row * n + at, mask, other=0).to(tl.float32)
    weight = tl.load(w + at, mask).to(tl.float32)
    hat = tl.where(mask, (v - tl.load(mean + row)) * tl.load(rstd + row), 0.0)
    wdy = tl.where(mask, weight * g, 0.0)
    c1 = tl.sum(hat * wdy, 0) / n
    c2 = tl.sum(wdy, 0) / n
    tl.store(dx + row * n + at, (wdy - (hat * c1 + c2)) * tl.load(rstd + row), mask)
    group = row % GROUP
    while tl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    count = tl.load(lock + GROUP + group)
    part_w = g * hat
    part_b = g
    if count == 0:
        tl.atomic_xchg(lock + GROUP + group, 1)
    else:
        part_w += tl.load(dw + group * n + at, mask)
        part_b += tl.load(db + group * n + at, mask)
    tl.store(dw + group * n + at, part_w, mask)
    tl.store(db + group * n + at, part_b, mask)
    tl.debug_barrier()
    tl.atomic_xchg(lock + group, 0)


@triton.jit
def argmax(x, value, index, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    best, where = tl.max(tl.load(x + at), 1, return_indices=True)
    tl.store(value + tl.arange(0, M), best)
    tl.store(index + tl.arange(0, M), where)


@triton.jit
def cumsum(x, out, N: tl.constexpr, M: tl.constexpr, REVERSE: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.cumsum(tl.load(x + at), 1, reverse=REVERSE))


@triton.jit
def sort(x, out, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.sort(tl.load(x + at)))


@triton.jit
def matmul(
    a,
    b,
    c,
    m,
    n,
    k,
    sam,
    sbk,
    scm,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    ACC: tl.constexpr,
    PRECISION: tl.constexpr,
):
    row = tl.program_id(0) * M + tl.arange(0, M)
    column = tl.program_id(1) * N + tl.arange(0, N)
    inner = tl.arange(0, K)
    acc = tl.zeros((M, N), ACC)
    for start in range(0, k, K):
        left = tl.load(a + row[:, None] * sam + (start + inner)[None, :])
        right = tl.load(b + (start + inner)[:, None] * sbk + column[None, :])
        acc = tl.dot(left, right, acc, input_precision=PRECISION, out_dtype=ACC)
    mask = (row < m)[:, None] & (column < n)[None, :]
    tl.store(c + row[:, None] * scm + column[None, :], acc.to(c.dtype.element_ty), mask)


@triton.jit
def attention(q, k, v, out, scale, n, D: tl.constexpr, M: tl.constexpr, N: tl.constexpr):
    row = tl.program_id(0) * M + tl.arange(0, M)
    lane = tl.arange(0, D)
    query = tl.load(q + row[:, None] * D + lane[None, :])
    best = tl.full([M], -float("inf"), tl.float32)
    total = tl.full([M], 1.0, tl.float32)
    acc = tl.zeros([M, D], tl.float32)
    for start in range(0, n, N):
        at = start + tl.arange(0, N)
        key = tl.load(k + at[None, :] * D + lane[:, None])
        score = tl.dot(query, key) * scale
        score = tl.where(row[:, None] >= at[None, :], score, -1.0e6)
        top = tl.maximum(best, tl.max(score, 1))
        p = tl.math.exp2(score - top[:, None])
        alpha = tl.math.exp2(best - top)
        total = total * alpha + tl.sum(p, 1)
        value = tl.load(v + at[:, None] * D + lane[None, :])
        acc = tl.dot(p.to(value.dtype), value, acc * alpha[:, None])
        best = top
    tl.store(
        out + row[:, None] * D + lane[None, :], (acc / total[:, None]).to(out.dtype.element_ty)
    )


@triton.jit
def dropout(x, out, n, p, seed, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    keep = tl.rand(seed, at) > p
    v = tl.load(x + at, at < n)
    tl.store(out + at, tl.where(keep, v / (1 - p), 0.0) + tl.randn(seed, at), at < n)


@triton.jit
def atomics(x, sums, halves, tops, bits, taken, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(x + at, at < n, other=0.0)
    i = v.to(tl.int32)
    tl.atomic_add(sums + i, v, at < n)
    tl.atomic_add(halves + at, v.to(tl.float16), at < n, sem="relaxed")
    tl.atomic_max(tops + i, v, at < n)
    tl.atomic_min(bits + i, i, at < n, scope="cta")
    tl.atomic_or(bits + i, i, at < n)
    tl.atomic_and(bits + i, i, at < n, sem="acquire", scope="sys")
    tl.atomic_xor(bits + i, i, at < n, sem="release")
    old = tl.atomic_xchg(taken, 1)
    tl.store(sums + n, old.to(tl.float32))
    tl.atomic_cas(taken + 1 + at, i, i + 1)
    tl.atomic_add(bits, tl.sum(i, 0))


@triton.jit
def histogram(x, out, N: tl.constexpr, BINS: tl.constexpr):
    h = tl.histogram(tl.load(x + tl.arange(0, N)), BINS)
    tl.store(out + tl.arange(0, BINS), h)


@triton.jit
def gather(x, index, out, N: tl.constexpr, M: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(out + at, tl.gather(tl.load(x + at), tl.load(index + at), 1))


@triton.jit
def speaking(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.device_print("value\t", v, at)
    tl.device_assert(at < n, 'too "long"')
    tl.store(out + at, v)


@triton.jit(noinline=True)
def helper(v, i, n):
    if i > n:
        v = v * 2.0
    return v + 1.0, i + 1


@triton.jit
def calling(x, out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v, i = helper(tl.load(x + tl.program_id(0)), tl.program_id(0), n)
    w, j = helper(v, i, n + 1)
    tl.store(out + at, w + j)


@triton.jit
def assembly(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    r = tl.inline_asm_elementwise(
        """
        {
        .reg .b32 t;
        .reg .pred q;
        shr.u32 t, $1, 3; /* a scope of its own */
        setp.gt.u32 q, t, 7;
        @!q xor.b32 t, t, 0xFF;
        mov.u32 $0, t;
        }
        """,
        "=r,r",
        [v],
        dtype=tl.int32,
        is_pure=True,
        pack=1,
    )
    tl.store(out + at, r)


@triton.jit
def maths(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    r = tl.exp(a) + tl.log(b) + tl.sin(a) + tl.cos(b) + tl.sqrt(a) + tl.rsqrt(b) + tl.erf(a)
    r += tl.floor(a) + tl.ceil(b) + tl.abs(a) + tl.fma(a, b, a) + tl.exp2(a) + tl.log2(b)
    r += libdevice.pow(a, b) + libdevice.tanh(a) + libdevice.fmod(a, b) + libdevice.rint(a)
    r += libdevice.atan2(a, b) + libdevice.lgamma(a) + libdevice.trunc(b) + libdevice.round(a)
    r += tl.math.div_rn(a, b) + tl.math.sqrt_rn(a) + tl.clamp(a, 0.0, 1.0) + a % b
    tl.store(out + at, r)


@triton.jit
def doubles(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    r = a * b + a / b + tl.sqrt(a) + tl.exp(a) + libdevice.sin(a) + libdevice.fma(a, b, a)
    tl.store(out + at, r + a.to(tl.float32).to(tl.float64) + a.to(tl.int64).to(tl.float64))


@triton.jit
def converting(x, out, BLOCK: tl.constexpr, VIA: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at).to(VIA).to(out.dtype.element_ty))


@triton.jit
def casting(x, a, b, c, d, e, f, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    tl.store(a + at, v.to(tl.int8))
    tl.store(b + at, v.to(tl.uint16))
    tl.store(c + at, v.to(tl.int64))
    tl.store(d + at, v.to(tl.uint64))
    tl.store(e + at, v.to(tl.bfloat16))
    tl.store(f + at, v.to(tl.float16))


@triton.jit
def integers(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a = tl.load(x + at)
    b = tl.load(y + at)
    r = a // b + a % b + (a << 3) + (b >> 2) + (a & b) + (a | b) + (a ^ b) + (~a) + a * b
    r += tl.where(a < b, a, b) + tl.maximum(a, b) + tl.minimum(a, b) + tl.abs(a) - tl.cdiv(a, b)
    r += libdevice.clz(a.to(tl.int32)) + libdevice.popc(b.to(tl.int32))
    r += libdevice.brev(a.to(tl.int32)) + libdevice.ffs(a.to(tl.int32))
    r += libdevice.mulhi(a.to(tl.int32), b.to(tl.int32)) + libdevice.mul24(
        a.to(tl.int32), b.to(tl.int32)
    )
    r += libdevice.sad(a.to(tl.int32), b.to(tl.int32), b.to(tl.uint32))
    r += tl.umulhi(a.to(tl.uint32), b.to(tl.uint32)).to(r.dtype)
    tl.store(out + at, r)


@triton.jit
def reductions(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    r = tl.sum(v, 0) + tl.max(v, 0) + tl.min(v, 0) + tl.xor_sum(v, 0) + tl.reduce_or(v, 0)
    tl.store(out, r)


@triton.jit
def transpose(x, out, N: tl.constexpr, M: tl.constexpr):
    i = tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    v = tl.trans(tl.load(x + i * N + j))
    tl.store(out + tl.arange(0, N)[:, None] * M + tl.arange(0, M)[None, :], v)


@triton.jit
def descriptors(
    a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, WARP: tl.constexpr
):
    left = tl.make_tensor_descriptor(a, [m, k], [k, 1], [M, K])
    right = tl.make_tensor_descriptor(b, [k, n], [n, 1], [K, N])
    result = tl.make_tensor_descriptor(c, [m, n], [n, 1], [M, N])
    row = tl.program_id(0) * M
    column = tl.program_id(1) * N
    acc = tl.zeros((M, N), tl.float32)
    for start in tl.range(0, k, K, warp_specialize=WARP):
        acc = tl.dot(left.load([row, start]), right.load([start, column]), acc)
    result.store([row, column], acc.to(tl.float16))


@triton.jit
def descriptor_atomics(a, b, m, n, M: tl.constexpr, N: tl.constexpr):
    source = tl.make_tensor_descriptor(a, [m, n], [n, 1], [M, N])
    sink = tl.make_tensor_descriptor(b, [m, n], [n, 1], [M, N])
    sink.atomic_add([0, 0], source.load([0, 0]))


@triton.jit
def scaled(a, sa, b, sb, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, LEFT: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    k = tl.arange(0, K)
    s = tl.arange(0, K // 32)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    xs = tl.load(sa + i[:, None] * (K // 32) + s[None, :])
    ys = tl.load(sb + j[:, None] * (K // 32) + s[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot_scaled(x, xs, LEFT, y, ys, LEFT))


@triton.jit
def branching(x, out, n, kind, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    v = tl.load(x + at)
    i = 0
    while i < n:
        if kind == 0:
            v = v + 1.5
        elif kind == 1:
            v = v * v
        elif kind == 2:
            v = tl.exp(v)
        else:
            v = -v
        i += tl.load(kind + x.to(tl.int64).to(tl.pointer_type(tl.int32)))
    tl.store(out + at, v)


@triton.jit
def waiting(x, out, n, BLOCK: tl.constexpr):
    tl.extra.cuda.gdc_wait()
    at = tl.arange(0, BLOCK)
    tl.store(
        out + at,
        tl.load(x + at, at < n, cache_modifier=".cg", eviction_policy="evict_first"),
        at < n,
        cache_modifier=".cs",
    )
    tl.extra.cuda.gdc_launch_dependents()
    tl.store(out + n, tl.load(x, volatile=True))
    tl.store(out + n + 1, (tl.extra.cuda.globaltimer() + tl.extra.cuda.smid()).to(tl.float32))


def matmul_case(
    name, left, out, acc="fp32", stages=3, warps=4, m=64, n=64, k=32, precision="ieee", targets=ALL
):
    """A matrix product of one element type."""
    types = {"fp32": tl.float32, "i32": tl.int32, "fp16": tl.float16, "fp64": tl.float64}
    return Case(
        f"matmul_{name}",
        matmul,
        f"a:*{left} b:*{left} c:*{out} m:i32 n:i32 k:i32 sam:i32 sbk:i32 scm:i32",
        {"M": m, "N": n, "K": k, "ACC": types[acc], "PRECISION": precision},
        {"num_stages": stages, "num_warps": warps},
        targets,
    )


HOPPER = (90, 100, 120)
FP8 = (89, 90, 100, 120)
GEMM = "a:*fp16 b:*fp16 c:*fp16 m:i32 n:i32 k:i32"
SCALED = "a:*u8 sa:*u8 b:*u8 sb:*u8 c:*fp32"

KERNELS = [
    Case("add", add, "x:*fp32 y:*fp32 out:*fp32 n:i32", {"BLOCK": 1024}),
    Case("add_bf16", add, "x:*bf16 y:*bf16 out:*bf16 n:i32", {"BLOCK": 512}),
    Case("add_f16", add, "x:*fp16 y:*fp16 out:*fp16 n:i32", {"BLOCK": 512}),
    Case("add_i8", add, "x:*i8 y:*i8 out:*i8 n:i32", {"BLOCK": 512}),
    Case("add_i64", add, "x:*i64 y:*i64 out:*i64 n:i32", {"BLOCK": 256}, {"maxnreg": 64}),
    Case("softmax", softmax, "x:*fp32 out:*fp32 n:i32 stride:i32", {"BLOCK": 1024}),
    Case(
        "softmax_f16",
        softmax,
        "x:*fp16 out:*fp16 n:i32 stride:i32",
        {"BLOCK": 2048},
        {"num_warps": 8},
    ),
    Case(
        "layernorm",
        layernorm,
        "x:*fp16 w:*fp32 b:*fp32 out:*fp16 mean:*fp32 rstd:*fp32 n:i32 eps:fp32",
        {"BLOCK": 1024},
    ),
    Case(
        "layernorm_backward",
        layernorm_backward,
        "dx:*fp16 dy:*fp16 dw:*fp32 db:*fp32 x:*fp16 w:*fp32 mean:*fp32 rstd:*fp32 lock:*i32 n:i32",
        {"GROUP": 64, "BLOCK": 512},
    ),
    Case("argmax", argmax, "x:*fp32 value:*fp32 index:*i32", {"N": 64, "M": 32}),
    Case("argmax_i64", argmax, "x:*i64 value:*i64 index:*i32", {"N": 64, "M": 16}),
    Case("cumsum", cumsum, "x:*fp32 out:*fp32", {"N": 64, "M": 16, "REVERSE": False}),
    Case("cumsum_reverse", cumsum, "x:*i32 out:*i32", {"N": 256, "M": 2, "REVERSE": True}),
    Case("sort", sort, "x:*i32 out:*i32", {"N": 64, "M": 4}),
    Case("sort_f16", sort, "x:*fp16 out:*fp16", {"N": 32, "M": 4}),
    *(matmul_case(f"f16_{stages}", "fp16", "fp16", stages=stages) for stages in (1, 2, 3, 4)),
    matmul_case("f16_large", "fp16", "fp16", stages=4, warps=8, m=128, n=128, k=64),
    matmul_case("f16_acc16", "fp16", "fp16", acc="fp16"),
    matmul_case("bf16", "bf16", "bf16", stages=3),
    matmul_case("tf32", "fp32", "fp32", precision="tf32"),
    matmul_case("tf32x3", "fp32", "fp32", precision="tf32x3"),
    matmul_case("f32", "fp32", "fp32", m=32, n=32, k=16),
    matmul_case("f64", "fp64", "fp64", acc="fp64", m=32, n=32, k=16),
    matmul_case("i8", "i8", "i32", acc="i32", k=64),
    matmul_case("e4m3", "fp8e4nv", "fp16", k=64, targets=FP8),
    matmul_case("e5m2", "fp8e5", "fp16", k=64),
    Case(
        "attention",
        attention,
        "q:*fp16 k:*fp16 v:*fp16 out:*fp16 scale:fp32 n:i32",
        {"D": 64, "M": 64, "N": 32},
    ),
    Case(
        "attention_bf16",
        attention,
        "q:*bf16 k:*bf16 v:*bf16 out:*bf16 scale:fp32 n:i32",
        {"D": 64, "M": 128, "N": 64},
        {"num_warps": 8, "num_stages": 2},
    ),
    Case("dropout", dropout, "x:*fp32 out:*fp32 n:i32 p:fp32 seed:i32", {"BLOCK": 512}),
    Case(
        "atomics",
        atomics,
        "x:*fp32 sums:*fp32 halves:*fp16 tops:*fp32 bits:*i32 taken:*i32 n:i32",
        {"BLOCK": 256},
    ),
    Case(
        "atomics_wide",
        atomics,
        "x:*fp64 sums:*fp64 halves:*fp16 tops:*fp64 bits:*i32 taken:*i32 n:i32",
        {"BLOCK": 128},
    ),
    Case("histogram", histogram, "x:*i32 out:*i32", {"N": 512, "BINS": 64}),
    Case("gather", gather, "x:*fp32 index:*i32 out:*fp32", {"N": 32, "M": 16}),
    Case("speaking", speaking, "x:*fp32 out:*fp32 n:i32", {"BLOCK": 128}, {"debug": True}),
    Case("calling", calling, "x:*fp32 out:*fp32 n:i32", {"BLOCK": 128}),
    Case("assembly", assembly, "x:*i32 out:*i32", {"BLOCK": 256}),
    Case("maths", maths, "x:*fp32 y:*fp32 out:*fp32", {"BLOCK": 128}),
    Case("doubles", doubles, "x:*fp64 y:*fp64 out:*fp64", {"BLOCK": 128}),
    Case(
        "e4m3", converting, "x:*fp32 out:*fp16", {"BLOCK": 512, "VIA": tl.float8e4nv}, targets=FP8
    ),
    Case("e5m2", converting, "x:*fp32 out:*bf16", {"BLOCK": 512, "VIA": tl.float8e5}),
    Case("e5m2_f16", converting, "x:*fp16 out:*fp32", {"BLOCK": 512, "VIA": tl.float8e5}),
    Case(
        "e4m3_bf16",
        converting,
        "x:*bf16 out:*bf16",
        {"BLOCK": 512, "VIA": tl.float8e4nv},
        targets=FP8,
    ),
    Case("bf16_trip", converting, "x:*fp32 out:*fp32", {"BLOCK": 512, "VIA": tl.bfloat16}),
    Case("half_to_int", converting, "x:*fp16 out:*fp32", {"BLOCK": 512, "VIA": tl.int8}),
    Case("casting", casting, "x:*fp32 a:*i8 b:*u16 c:*i64 d:*u64 e:*bf16 f:*fp16", {"BLOCK": 128}),
    Case(
        "casting_i64", casting, "x:*i64 a:*i8 b:*u16 c:*i64 d:*u64 e:*bf16 f:*fp16", {"BLOCK": 128}
    ),
    Case(
        "casting_f64", casting, "x:*fp64 a:*i8 b:*u16 c:*i64 d:*u64 e:*bf16 f:*fp16", {"BLOCK": 128}
    ),
    Case("integers", integers, "x:*i32 y:*i32 out:*i32", {"BLOCK": 128}),
    Case("integers_i64", integers, "x:*i64 y:*i64 out:*i64", {"BLOCK": 128}),
    Case("integers_u32", integers, "x:*u32 y:*u32 out:*u32", {"BLOCK": 128}),
    Case("integers_i16", integers, "x:*i16 y:*i16 out:*i16", {"BLOCK": 128}),
    Case("reductions", reductions, "x:*i32 out:*i32", {"BLOCK": 1024}),
    Case("reductions_i8", reductions, "x:*i8 out:*i32", {"BLOCK": 1024}),
    Case("transpose", transpose, "x:*fp16 out:*fp16", {"N": 64, "M": 32}),
    Case("transpose_i8", transpose, "x:*i8 out:*i8", {"N": 64, "M": 64}),
    Case("transpose_f32", transpose, "x:*fp32 out:*fp32", {"N": 64, "M": 64}),
    Case("branching", branching, "x:*fp32 out:*fp32 n:i32 kind:i32", {"BLOCK": 128}),
    Case(
        "waiting", waiting, "x:*fp32 out:*fp32 n:i32", {"BLOCK": 128}, {"launch_pdl": True}, HOPPER
    ),
    Case(
        "add_cluster",
        add,
        "x:*fp32 y:*fp32 out:*fp32 n:i32",
        {"BLOCK": 1024},
        {"num_ctas": 2},
        (90, 100),
    ),
    Case(
        "softmax_cluster",
        softmax,
        "x:*fp32 out:*fp32 n:i32 stride:i32",
        {"BLOCK": 4096},
        {"num_ctas": 2},
        (90, 100),
    ),
    Case(
        "descriptors",
        descriptors,
        GEMM,
        {"M": 128, "N": 64, "K": 64, "WARP": False},
        targets=HOPPER,
    ),
    Case(
        "descriptors_warps",
        descriptors,
        GEMM,
        {"M": 128, "N": 128, "K": 64, "WARP": True},
        {"num_stages": 3},
        (90, 100),
    ),
    Case(
        "descriptor_atomics",
        descriptor_atomics,
        "a:*fp32 b:*fp32 m:i32 n:i32",
        {"M": 32, "N": 32},
        targets=HOPPER,
    ),
    Case(
        "scaled_e4m3",
        scaled,
        SCALED.replace("a:*u8", "a:*fp8e4nv").replace("b:*u8", "b:*fp8e4nv"),
        {"M": 128, "N": 128, "K": 128, "LEFT": "e4m3"},
        targets=(89, 90, 100, 120),
    ),
    Case(
        "scaled_e5m2",
        scaled,
        SCALED.replace("a:*u8", "a:*fp8e5").replace("b:*u8", "b:*fp8e5"),
        {"M": 128, "N": 64, "K": 64, "LEFT": "e5m2"},
        targets=(80, 90, 100, 120),
    ),
]
