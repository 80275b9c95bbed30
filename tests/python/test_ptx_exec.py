"""The executor itself: arithmetic against exact fractions, and every fault it must report."""

import re
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ptx_exec
from ptx_exec import Buffer, Divergence, MemoryFault, PtxError, Race, UnknownPtx, floats
from ptx_exec.symbolic import Graph

# Precision and smallest exponent of a normal number.
FORMATS = {"f32": (24, -126), "f16": (11, -14), "bf16": (8, -126)}
LARGEST = {"f32": 127, "f16": 15, "bf16": 127}


def nearest(exact, kind):
    """An exact value rounded to nearest even, from the definition; None where it overflows."""
    if exact == 0:
        return Fraction(0)
    precision, smallest = FORMATS[kind]
    top = abs(exact.numerator).bit_length() - exact.denominator.bit_length()
    while abs(exact) < Fraction(2) ** top:
        top -= 1
    while abs(exact) >= Fraction(2) ** (top + 1):
        top += 1
    quantum = Fraction(2) ** (max(top, smallest) - precision + 1)
    result = round(exact / quantum) * quantum  # Python rounds halves to even
    return None if abs(result) >= Fraction(2) ** (LARGEST[kind] + 1) else result


def patterns(rng, kind, count):
    """Finite bit patterns of every exponent, with many close ones."""
    width = floats.WIDTH[kind]
    bits = rng.integers(0, 1 << width, count).astype(floats.UNSIGNED[width])
    value = floats.decode(bits, kind)
    return np.where(np.isfinite(value), bits, floats.UNSIGNED[width](0))


def exact(bits, kind):
    return [Fraction(float(value)) for value in floats.decode(bits, kind)]


def agree(got, wanted, kind):
    """Rounded results against fractions; an overflow must be infinite."""
    for value, fraction in zip(floats.decode(got, kind).tolist(), wanted):
        rounded = nearest(fraction, kind)
        if rounded is None:
            assert np.isinf(value) and (value > 0) == (fraction > 0)
        else:
            assert Fraction(value) == rounded


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(all="ignore"):
        yield


@pytest.fixture
def rng():
    return np.random.default_rng(7)


@pytest.mark.parametrize("kind", FORMATS)
def test_fma_rounds_once(rng, kind):
    a, b, c = (patterns(rng, kind, 3000) for _ in range(3))
    # Half of the addends nearly cancel the product, or sit half an ulp beside it.
    near = floats.negate(floats.binary("mul", a, b, kind), kind)
    c = np.where((rng.random(3000) < 0.5) & np.isfinite(floats.decode(near, kind)), near, c)
    x, y, z = (exact(bits, kind) for bits in (a, b, c))
    agree(floats.fma(a, b, c, kind), [p * q + r for p, q, r in zip(x, y, z)], kind)


def test_fma_of_f32_at_a_double_rounding_trap():
    """1 + 2^-24 + 2^-54: rounding to f64 first loses the last term, and the rest ties to even."""
    factors = 812825 * 2.0**-27, 1321 * 2.0**-27, 1.0  # 812825 * 1321 = 2^30 + 1
    bits = [np.array([value], np.float32).view(np.uint32) for value in factors]
    assert np.float32(factors[0] * factors[1] + factors[2]) == 1.0
    assert floats.fma(*bits, "f32").view(np.float32)[0] == np.float32(1 + 2.0**-23)


def test_fma_of_f64():
    rng = np.random.default_rng(3)
    a, b, c = (rng.standard_normal(200) for _ in range(3))
    c = np.where(np.arange(200) % 2 == 0, -(a * b), c)
    bits = [values.view(np.uint64) for values in (a, b, c)]
    got = floats.fma(*bits, "f64").view(np.float64)
    for x, y, z, value in zip(a, b, c, got):
        assert value == float(Fraction(x) * Fraction(y) + Fraction(z))


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("op", ("add", "sub", "mul", "div"))
def test_binary_operations_round_once(rng, kind, op):
    a, b = patterns(rng, kind, 2000), patterns(rng, kind, 2000)
    x, y = exact(a, kind), exact(b, kind)
    keep = [at for at in range(2000) if op != "div" or y[at] != 0]
    table = {
        "add": lambda p, q: p + q, "sub": lambda p, q: p - q,
        "mul": lambda p, q: p * q, "div": lambda p, q: p / q,
    }  # fmt: skip
    got = floats.binary(op, a, b, kind)[keep]
    agree(got, [table[op](x[at], y[at]) for at in keep], kind)


@pytest.mark.parametrize("kind", ("f16", "bf16"))
def test_narrowing_rounds_once(rng, kind):
    a = patterns(rng, "f32", 5000)
    a = np.where(rng.random(5000) < 0.3, a & np.uint32(0xFFFF8000), a)  # ties of bf16
    agree(floats.convert(a, "f32", kind), exact(a, "f32"), kind)
    wide = rng.standard_normal(2000) * np.exp2(rng.integers(-30, 16, 2000))
    agree(floats.convert(wide.view(np.uint64), "f64", kind), [Fraction(v) for v in wide], kind)
    whole = rng.integers(-(2**31), 2**31, 2000).astype(np.int32)
    agree(floats.from_integer(whole, kind), [Fraction(int(v)) for v in whole], kind)


def test_minimum_and_maximum_of_nans_and_zeros():
    nan, one, zero, minus = (
        np.array([v], np.float32).view(np.uint32) for v in (np.nan, 1.0, 0.0, -0.0)
    )
    quiet = np.uint32(0x7FFFFFFF)
    for op in ("min", "max"):
        assert floats.extremum(op, nan, one, "f32", False) == one
        assert floats.extremum(op, one, nan, "f32", False) == one
        assert floats.extremum(op, nan, nan, "f32", False) == quiet
        assert floats.extremum(op, one, nan, "f32", True) == quiet
    for a, b in ((zero, minus), (minus, zero)):
        assert floats.extremum("min", a, b, "f32", False) == minus
        assert floats.extremum("max", a, b, "f32", False) == zero


def test_a_nan_result_is_canonical():
    odd = np.array([0xFFC12345], np.uint32)
    assert floats.binary("add", odd, odd, "f32") == np.uint32(0x7FFFFFFF)


def program(body, threads=32):
    """A kernel of two pointers around `body`."""
    return f"""
.version 8.8
.target sm_90a
.address_size 64
.extern .shared .align 16 .b8 global_smem[];
.visible .entry kernel(
    .param .u64 .ptr .global .align 1 x,
    .param .u64 .ptr .global .align 1 out
)
.reqntid {threads}
{{
    .reg .pred %p<4>;
    .reg .b16 %rs<8>;
    .reg .b32 %r<32>;
    .reg .b64 %rd<8>;
    ld.param.b64 %rd1, [x];
    ld.param.b64 %rd2, [out];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd3, %r1, 4;
    add.s64 %rd4, %rd1, %rd3;
    add.s64 %rd5, %rd2, %rd3;
    shl.b32 %r2, %r1, 2;
    mov.b32 %r3, global_smem;
    add.s32 %r4, %r3, %r2;
{body}
    ret;
}}
"""


def execute(body, values=None, threads=32, **options):
    """Runs a body on one element a thread; returns the output."""
    values = np.arange(threads, dtype=np.uint32) if values is None else values
    out = Buffer(np.zeros(threads, values.dtype), writable=True)
    ptx_exec.run(program(body, threads), (1,), [Buffer(values), out], threads // 32, **options)
    return out.data


LOAD, STORE = "ld.global.b32 %r10, [%rd4];", "st.global.b32 [%rd5], %r11;"


@pytest.mark.parametrize(
    ("mode", "by", "clamp", "source"),
    [
        ("bfly", 5, 31, lambda lane: lane ^ 5),
        ("idx", 7, 31, lambda lane: 7),
        ("up", 3, 0, lambda lane: lane if lane < 3 else lane - 3),
        ("down", 3, 31, lambda lane: lane if lane > 28 else lane + 3),
        ("bfly", 1, 0x1C1F, lambda lane: lane ^ 1),
        ("idx", 2, 0x1807, lambda lane: (lane & 0x18) | 2),
    ],
)
def test_shuffles(mode, by, clamp, source):
    got = execute(f"{LOAD} shfl.sync.{mode}.b32 %r11, %r10, {by}, {clamp}, -1; {STORE}")
    assert got.tolist() == [source(lane) for lane in range(32)]


def test_shuffle_of_two_warps_stays_in_each():
    got = execute(f"{LOAD} shfl.sync.bfly.b32 %r11, %r10, 16, 31, -1; {STORE}", threads=64)
    assert got.tolist() == [thread ^ 16 for thread in range(64)]


def test_warp_reduction():
    got = execute(f"{LOAD} mov.b32 %r12, -1; redux.sync.add.s32 %r11, %r10, %r12; {STORE}")
    assert set(got.tolist()) == {31 * 16}


def test_matrix_load_and_store():
    """A lane holds elements 2c and 2c + 1 of row lane / 4, and of the column if transposed."""
    fill = f"{LOAD} st.shared.b32 [%r4], %r10; bar.warp.sync -1; and.b32 %r5, %r1, 7;"
    fill += "shl.b32 %r6, %r5, 4; add.s32 %r7, %r3, %r6;"
    halves = np.arange(64, dtype=np.uint16)
    values = halves.view(np.uint32)
    plain = execute(
        f"{fill} ldmatrix.sync.aligned.m8n8.x1.shared.b16 {{%r11}}, [%r7]; {STORE}", values
    )
    assert plain.view(np.uint16).tolist() == halves.tolist()
    turned = execute(
        f"{fill} ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16 {{%r11}}, [%r7]; {STORE}", values
    )
    assert turned.view(np.uint16).tolist() == halves.reshape(8, 8).T.ravel().tolist()
    stored = execute(
        f"{LOAD} and.b32 %r5, %r1, 7; shl.b32 %r6, %r5, 4; add.s32 %r7, %r3, %r6;"
        "stmatrix.sync.aligned.m8n8.x1.trans.shared.b16 [%r7], {%r10}; bar.warp.sync -1;"
        f"ld.shared.b32 %r11, [%r4]; {STORE}",
        values,
    )
    assert stored.view(np.uint16).tolist() == halves.reshape(8, 8).T.ravel().tolist()


def test_divergence_rejoins():
    got = execute(
        f"{LOAD} setp.lt.u32 %p1, %r10, 9; @%p1 bra $L1; add.s32 %r11, %r10, 100; bra $L2;\n"
        f"$L1: add.s32 %r11, %r10, 200;\n$L2: shfl.sync.bfly.b32 %r11, %r11, 1, 31, -1; {STORE}"
    )
    assert got.tolist() == [(t ^ 1) + (200 if (t ^ 1) < 9 else 100) for t in range(32)]


def test_inner_blocks_have_their_own_registers():
    got = execute(f"{LOAD} {{ .reg .b32 %r10; mov.b32 %r10, 5; }} mov.b32 %r11, %r10; {STORE}")
    assert got.tolist() == list(range(32))


EXCHANGE = f"{LOAD} st.shared.b32 [%r4], %r10; %BARRIER% xor.b32 %r5, %r2, 4;"
EXCHANGE += f"add.s32 %r6, %r3, %r5; ld.shared.b32 %r11, [%r6]; {STORE}"


@pytest.mark.parametrize("barrier", ("bar.sync 0;", "bar.warp.sync -1;"))
def test_a_barrier_orders_a_store_and_a_load(barrier):
    got = execute(EXCHANGE.replace("%BARRIER%", barrier))
    assert got.tolist() == [thread ^ 1 for thread in range(32)]


def test_without_a_barrier_the_exchange_races():
    with pytest.raises(Race, match="no barrier between"):
        execute(EXCHANGE.replace("%BARRIER%", ""))


def test_a_warp_barrier_does_not_order_two_warps():
    far = EXCHANGE.replace("xor.b32 %r5, %r2, 4;", "xor.b32 %r5, %r2, 128;")
    assert execute(far.replace("%BARRIER%", "bar.sync 0;"), threads=64)[0] == 32
    with pytest.raises(Race):
        execute(far.replace("%BARRIER%", "bar.warp.sync -1;"), threads=64)


def test_a_store_after_a_read_races():
    again = EXCHANGE.replace("%BARRIER%", "bar.sync 0;") + "st.shared.b32 [%r4], 7;"
    with pytest.raises(Race, match="overwrites what was read"):
        execute(again)


def test_one_instruction_may_store_replicas_but_not_differences():
    execute("st.shared.b32 [%r3], 7;")
    with pytest.raises(Race, match="different bytes"):
        execute("st.shared.b32 [%r3], %r1;")


@pytest.mark.parametrize(
    ("body", "fault", "message"),
    [
        ("ld.shared.b32 %r5, [%r4];", MemoryFault, "uninitialised"),
        ("ld.global.b32 %r5, [%rd4+4];", MemoryFault, "out of bounds"),
        ("ld.global.b64 %rd6, [%rd1+4];", MemoryFault, "misaligned"),
        ("st.global.b32 [%rd4], 1;", MemoryFault, "read-only"),
        ("mov.b64 %rd6, 64; ld.global.b32 %r5, [%rd6];", MemoryFault, "outside"),
        ("st.shared.b32 [%r4+300000], 1;", MemoryFault, "outside"),
        ("setp.lt.u32 %p1, %r1, 9; @%p1 bar.sync 0;", UnknownPtx, "barrier form"),
        ("setp.lt.u32 %p1, %r1, 9; @%p1 bra $L1; bar.sync 0;\n$L1:", Divergence, "exiting"),
        ("setp.lt.u32 %p1, %r1, 9; @%p1 bar.warp.sync -1;", Divergence, "together"),
        (
            "setp.lt.u32 %p1, %r1, 9; @%p1 shfl.sync.bfly.b32 %r5, %r1, 1, 31, -1;",
            Divergence, "together",
        ),
        ("add.s32 %r5, %r6, 1; mov.b32 %r6, 2;", PtxError, "never written"),
        ("add.s32 %r5, %r99, 1;", PtxError, "not declared"),
        ("add.rz.f32 %r5, %r1, %r1;", UnknownPtx, "modifiers"),
        ("add.f32 %r5, %rd1, %r1;", UnknownPtx, "32 bits"),
        ("tanh.approx.f32 %r5, %r1;", UnknownPtx, "instruction"),
        ("ret; ex2.approx.f32 %r5, %r1;", UnknownPtx, "instruction"),
        ("div.full.f32 %r5, %r1, %r1;", UnknownPtx, "approximates"),
        (".local .b8 depot[8];", UnknownPtx, "directive"),
        ("fma.f32 %r5, %r1, %r1, %r1;", UnknownPtx, "without .rn"),
    ],
)  # fmt: skip
def test_faults_are_reported(body, fault, message):
    with pytest.raises(fault, match=message) as caught:
        execute(body)
    assert caught.value.line > 20


def test_narrow_additions_through_f32_are_one_node():
    """cvt(bf16 -> f32), add, cvt back rounds as `add.bf16` does, and so does an fma by one."""
    graph = Graph()
    a, b = (int(piece) >> 2 for piece in graph.leaves(0, 2, 2))
    direct = graph.operation("add", "bf16", (a, b))
    wide = graph.operation(
        "add", "f32", (graph.widen("bf16", "f32", a), graph.widen("bf16", "f32", b))
    )
    assert graph.narrow("f32", "bf16", wide) == direct
    one = graph.constant("bf16", 0x3F80)
    assert graph.operation("fma", "bf16", (a, one, b)) == direct


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("mul.f32 %r5, %r1, %r2; add.f32 %r6, %r5, %r3;", 1),
        ("mul.f32 %r5, %r1, %r2; mov.b32 %r7, %r5; sub.f32 %r6, %r3, %r7;", 1),
        ("mul.f32 %r5, %r1, %r2; add.rn.f32 %r6, %r5, %r3;", 0),
        ("mul.rn.f32 %r5, %r1, %r2; add.f32 %r6, %r5, %r3;", 0),
        ("mul.lo.s32 %r5, %r1, %r2; add.s32 %r6, %r5, %r3;", 0),
    ],
)
def test_what_ptxas_may_contract_is_found(body, found):
    assert len(ptx_exec.contractions(program(body))) == found


@pytest.fixture(scope="module")
def pinned():
    """A pinned row sum over four warps, with its inputs."""
    from bits import Build
    from test_bits import tile_sum

    case = tile_sum(4, 512, 1)
    return case.launch()[0], case.compile(Build(4)), Build(4)


def changed(compiled, ptx):
    return type(compiled)(ptx, compiled.warps, compiled.shared)


def test_every_barrier_of_a_compiled_kernel_is_needed(pinned):
    launch, compiled, build = pinned
    barriers = list(re.finditer(r"^\s*bar\.sync.*\n", compiled.ptx, re.M))
    assert barriers
    for barrier in barriers:
        without = compiled.ptx[: barrier.start()] + compiled.ptx[barrier.end() :]
        with pytest.raises(Race):
            launch.run(changed(compiled, without), build)


def outcome(launch, compiled, build):
    """Whether the tree is canonical, and the bits; a race or a torn value counts as seen."""
    try:
        return launch.tree(compiled, build).canonical, launch.run(compiled, build).tobytes()
    except PtxError:
        return False, b""


def test_every_changed_shuffle_and_addition_is_seen(pinned):
    launch, compiled, build = pinned
    canonical, bits = outcome(launch, compiled, build)
    assert canonical
    masks = r"(shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+, )(\d+)(, 31, -1;)"
    sums = r"(add\.rn\.f32\s+%r\d+, %r\d+, )(%r\d+)(;)"
    mutants = []
    for found in re.finditer(masks, compiled.ptx):
        mutants.append((found, f"{int(found[2]) % 16 + 1}"))
    mutants += [(found, "%r1") for found in re.finditer(sums, compiled.ptx)]
    assert len(mutants) > 5
    for found, other in mutants:
        ptx = compiled.ptx[: found.start(2)] + other + compiled.ptx[found.end(2) :]
        still, after = outcome(launch, changed(compiled, ptx), build)
        assert not still or after != bits, found[0]


def test_swapped_leaves_are_seen(pinned):
    """Additions of the wrong neighbours: a tree of another order, often with other bits."""
    launch, compiled, build = pinned
    first, second = re.findall(r"add\.rn\.f32\s+%r\d+, %r\d+, %r\d+;", compiled.ptx)[:2]
    left, right = first.rsplit(" ", 1), second.rsplit(" ", 1)
    swapped = compiled.ptx.replace(first, f"{left[0]} {right[1]}").replace(
        second, f"{right[0]} {left[1]}"
    )
    tree = launch.tree(changed(compiled, swapped), build)
    assert not tree.canonical
    assert tree.digest != launch.tree(compiled, build).digest
