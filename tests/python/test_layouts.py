"""Our linear layouts are Triton's: compared on thousands of random encodings.

The oracle is Triton's own conversion, the one that Gluon's ``to_linear_layout`` calls. It takes the
attribute itself; ours takes the text that Triton prints for it, so the printed form is tested too.

``BITSTABLE_LAYOUT_SEED`` and ``BITSTABLE_LAYOUT_CASES`` change what is drawn.
"""

from __future__ import annotations

import ctypes
import math
import os
import random
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from triton._C import libtriton
from triton._C.libtriton import gluon_ir, ir
from triton.experimental.gluon.language._layouts import (
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    DotOperandLayout,
    NVMMADistributedLayout,
    SliceLayout,
)
from triton.experimental.gluon.language.amd._layouts import AMDMFMALayout, AMDWMMALayout

REPOSITORY = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("BITSTABLE_LAYOUT_SEED", "20261129"))
CASES = int(os.environ.get("BITSTABLE_LAYOUT_CASES", "6000"))
ELEMENTS = 2**15  # Triton counts registers x lanes x warps x CTAs in 32 bits

Bases = list[list[int]]
Case = tuple[DistributedLayout, list[int]]


# ---------------------------------------------------------------------------------------- drawing


def split_bits(rng: random.Random, bits: int, rank: int) -> list[int]:
    """Extents, powers of two, whose product is ``2**bits``."""
    extents = [1] * rank
    for _ in range(bits):
        extents[rng.randrange(rank)] *= 2
    return extents


def draw_shape(rng: random.Random, rank: int) -> list[int]:
    """Extents from 1 to 8192 that Triton can count with the places of any layout drawn here."""
    while True:
        shape = [1 << rng.randint(0, 13) for _ in range(rank)]
        if math.prod(shape) <= ELEMENTS:
            return shape


def unit(rank: int, dim: int, bit: int) -> list[int]:
    """The basis that moves along one dimension."""
    return [1 << bit if d == dim else 0 for d in range(rank)]


def draw_cluster(rng: random.Random, rank: int) -> Bases:
    """Bases for up to 16 CTAs in any order, some of which repeat each other's data."""
    if rng.random() < 0.6:
        return []
    extents = split_bits(rng, rng.randint(0, 3), rank)
    bases = [unit(rank, d, bit) for d in range(rank) for bit in range(extents[d].bit_length() - 1)]
    bases += [[0] * rank for _ in range(rng.randint(0, 1))]
    rng.shuffle(bases)
    return bases


def draw_order(rng: random.Random, rank: int) -> list[int]:
    """A permutation of the dimensions."""
    return rng.sample(range(rank), rank)


def draw_blocked(rng: random.Random, rank: int) -> BlockedLayout:
    """A blocked layout of warps with 32 or 64 lanes."""
    return BlockedLayout(
        split_bits(rng, rng.randint(0, 6), rank),
        split_bits(rng, rng.choice([5, 6]), rank),
        split_bits(rng, rng.randint(0, 5), rank),
        draw_order(rng, rank),
        draw_cluster(rng, rank),
    )


def draw_linear(rng: random.Random, rank: int) -> DistributedLinearLayout:
    """A permutation of index bits over registers, lanes, warps and CTAs, with broadcast bits."""
    shape = split_bits(rng, rng.randint(1, 14), rank)
    bits = [unit(rank, d, bit) for d in range(rank) for bit in range(shape[d].bit_length() - 1)]
    rng.shuffle(bits)
    lanes, warps, blocks = rng.choice([5, 6]), rng.randint(0, 5), rng.choice([0, 0, 0, 1, 2])
    places: list[Bases] = []
    for size in (lanes, warps, blocks):
        bases = [bits.pop() if bits and rng.random() < 0.8 else [0] * rank for _ in range(size)]
        places.append(bases)
    registers = bits
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        registers.insert(rng.randint(0, len(registers)), [0] * rank)
    return DistributedLinearLayout(registers, *places, shape)


def draw_nvidia(rng: random.Random, rank: int) -> NVMMADistributedLayout:
    """The result of ``mma.sync``, or of ``wgmma`` where there is no batch."""
    warps = split_bits(rng, rng.randint(0, 4), rank)
    cluster = draw_cluster(rng, rank)
    if rank == 2 and rng.random() < 0.4:
        return NVMMADistributedLayout([3, 0], warps, [16, 2 ** rng.randint(3, 8), 16], cluster)
    shape = rng.choice([[16, 8], [16, 8], [8, 8], [16, 16]])
    return NVMMADistributedLayout([2, 0], warps, [1] * (rank - 2) + shape, cluster)


def draw_mfma(rng: random.Random, rank: int) -> AMDMFMALayout:
    """The result of ``v_mfma``."""
    shape = rng.choice([[32, 32, 8], [16, 16, 16], [64, 4, 4], [4, 64, 4]])
    transposed = shape[0] == 64 or rng.random() < 0.5
    wide = shape[0] == 16 and rng.random() < 0.3
    tiles = [1] * (rank - 2) + [rng.choice([1, 1, 2, 4]) for _ in range(2)]
    warps = split_bits(rng, rng.randint(0, 4), rank)
    cluster = draw_cluster(rng, rank)
    return AMDMFMALayout(
        rng.randint(1, 4), shape, transposed, warps, 64 if wide else 32, tiles, cluster
    )


def draw_wmma(rng: random.Random, rank: int) -> AMDWMMALayout:
    """The result of ``v_wmma``. Triton prints what it cannot read where there is one warp."""
    version = rng.randint(1, 3)
    shapes = {1: [[16, 16, 16]], 2: [[16, 16, 16]], 3: [[16, 16, 32], [16, 16, 128], [32, 16, 128]]}
    extents = split_bits(rng, rng.randint(0, 4), rank)
    bits = [unit(rank, d, bit) for d in range(rank) for bit in range(extents[d].bit_length() - 1)]
    rng.shuffle(bits)
    registers = [bits.pop() for _ in range(min(len(bits), rng.choice([0, 0, 1, 2])))]
    warps = bits + [[0] * rank for _ in range(0 if bits and rng.random() < 0.7 else 1)]
    rng.shuffle(warps)
    return AMDWMMALayout(
        version,
        rng.random() < 0.5,
        warps,
        registers,
        rng.choice(shapes[version]),
        draw_cluster(rng, rank),
        rank,
    )


def draw_matrix(rng: random.Random, rank: int) -> DistributedLayout:
    """The result of a matrix product, or one of its operands."""
    result = rng.choice([draw_blocked, draw_nvidia, draw_mfma, draw_wmma])(rng, rank)
    if rng.random() < 0.5 and not isinstance(result, BlockedLayout):
        return result
    operand = rng.randrange(2)
    width = rng.choice([1, 2, 4, 8])
    if isinstance(result, BlockedLayout):
        width = 0
    elif isinstance(result, NVMMADistributedLayout) and result.version[0] == 3:
        operand = 0
    elif isinstance(result, AMDWMMALayout):
        width = rng.choice([8, 16] if result.version == 1 else [4, 8, 16])
    return DotOperandLayout(operand, result, width)


def draw_slice(rng: random.Random, rank: int) -> SliceLayout:
    """A slice of a layout of higher rank, which may be a slice as well."""
    parent: DistributedLayout
    if rank < 5 and rng.random() < 0.35:
        parent = draw_slice(rng, rank + 1)
    else:
        kinds = [draw_blocked, draw_linear] + ([draw_matrix] if rank in (1, 2) else [])
        parent = rng.choice(kinds)(rng, rank + 1)
    return SliceLayout(rng.randrange(rank + 1), parent)


def near(rng: random.Random, shape: list[int]) -> list[int]:
    """Extents around those of ``shape``: equal, larger or smaller."""
    while True:
        scales = [rng.choice([1, 1, 1, 2, 8, 0.5, 0.125]) for _ in shape]
        scaled = [max(1, int(extent * scale)) for extent, scale in zip(shape, scales)]
        if math.prod(scaled) <= ELEMENTS:
            return scaled


def draw_case(rng: random.Random) -> Case:
    """Any layout, on a shape of its rank."""
    rank = rng.randint(1, 4)
    kinds = [draw_blocked, draw_slice, draw_linear] + ([draw_matrix] if rank in (2, 3) else [])
    layout = rng.choice(kinds)(rng, rank)
    if isinstance(layout, DistributedLinearLayout) and rng.random() < 0.7:
        return layout, near(rng, layout.shape)
    return layout, draw_shape(rng, rank)


# ------------------------------------------------------------------------------- Triton's answers


class Triton:
    """Triton's own conversion and printer. Needs no GPU."""

    def __init__(self) -> None:
        self.context = ir.context()
        ir.load_dialects(self.context)
        self.builder = gluon_ir.GluonOpBuilder(self.context)

    def linear_layout(self, layout: DistributedLayout, shape: list[int]) -> str:
        """The layout of a tensor, written as the attribute is."""
        answer = self.builder.to_linear_layout(layout._to_ir(self.builder), shape)
        fields = {
            "register": answer.reg_bases,
            "lane": answer.lane_bases,
            "warp": answer.warp_bases,
            "block": answer.block_bases,
        }
        return "#ttg.linear<{" + ", ".join(f"{k} = {v}" for k, v in fields.items()) + "}>"

    def texts(self, layouts: list[DistributedLayout]) -> list[str]:
        """The attributes as Triton prints them, with no aliases."""
        module = self.builder.create_module()
        for i, layout in enumerate(layouts):
            module.set_attr(f"t.e{i:06}", layout._to_ir(self.builder))
        with generic_local_scope():
            printed = module.str_nodebug()
        dictionary = re.search(r"\{(t\.e000000 = .*)\} : \(\) -> \(\)", printed, re.DOTALL)
        assert dictionary, printed[:500]
        return [text for text in re.split(r",? ?t\.e\d{6} = ", dictionary[1]) if text]


@contextmanager
def generic_local_scope() -> Iterator[None]:
    """Lets MLIR print in generic form, with every alias written out."""
    library = ctypes.CDLL(libtriton.__file__)
    library._ZN4mlir27registerAsmPrinterCLOptionsEv()

    def switch(value: str) -> None:
        names = ("--mlir-print-op-generic", "--mlir-print-local-scope")
        arguments = [b"triton", *(f"{name}={value}".encode() for name in names)]
        array = (ctypes.c_char_p * len(arguments))(*arguments)
        library.LLVMParseCommandLineOptions(len(arguments), array, None)

    switch("true")
    try:
        yield
    finally:
        switch("false")


# ---------------------------------------------------------------------------------- our answers


def ours(questions: list[tuple[list[int], str]]) -> list[str]:
    """What the crate answers, one line for each shape and encoding."""
    lines = [f"{'x'.join(map(str, shape))}\t{text}" for shape, text in questions]
    command = "cargo run --quiet --release -p bitstable-lowering --example linear_layout"
    run = subprocess.run(
        command.split(),
        cwd=REPOSITORY,
        input="\n".join(lines) + "\n",
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert run.returncode == 0, run.stderr
    answers = run.stdout.splitlines()
    assert len(answers) == len(questions), run.stderr
    return answers


def differences(triton: Triton, cases: list[Case]) -> list[str]:
    """Where the two disagree, each in a form that can be read and tried again."""
    texts = triton.texts([layout for layout, _ in cases])
    assert len(texts) == len(cases)
    expected = [triton.linear_layout(layout, shape) for layout, shape in cases]
    found = ours([(shape, text) for (_, shape), text in zip(cases, texts)])
    return [
        f"shape {shape}, {text}\n  Triton {theirs}\n  ours   {mine}"
        for (_, shape), text, theirs, mine in zip(cases, texts, expected, found, strict=True)
        if theirs != mine
    ]


@pytest.fixture(scope="module")
def triton() -> Triton:
    """One context for all tests; it is slow to load."""
    return Triton()


def compare(triton: Triton, draw: Callable[[random.Random], Case], count: int) -> None:
    """Draws cases and demands that the two answers are equal, basis by basis."""
    print(f"seed {SEED}, {count} cases; BITSTABLE_LAYOUT_SEED draws others")
    rng = random.Random(SEED)
    different = differences(triton, [draw(rng) for _ in range(count)])
    report = "\n".join(different[:5])
    assert not different, f"seed {SEED}: {len(different)} of {count} differ, such as\n{report}"


def test_random_encodings_match_triton(triton: Triton) -> None:
    """Every kind, nested and clustered, on tensors smaller and larger than its tile."""
    compare(triton, draw_case, CASES)


def test_what_is_not_known_is_refused_by_name() -> None:
    """A wrong guess would be a wrong sum."""
    unknown = "#ttg.generic_linear<{register = []}>"
    sliced = f"#ttg.slice<{{dim = 0, parent = {unknown}}}>"
    refusal = "error: encoding #ttg.generic_linear is not understood"
    assert ours([([16], unknown), ([16], sliced)]) == [refusal, refusal]
