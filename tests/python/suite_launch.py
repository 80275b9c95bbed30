"""One program of a kernel of `benches/cost`'s suite: inputs, memory, results beside the oracle's.

# Idea
A kernel's arguments have shapes that follow from its constants. Arrays are filled by the draws of
`triton.bitstable.bits`, which are made to show an order, lie once in memory as the kernel finds
them (columns of a wide matrix, narrow floats as bits), and each compilation runs on the same ones.

# Invariants
- **L1** Outputs are overwritten before each run, so that nothing of an earlier one is taken for it.
- **L2** Columns that are not reduced hold NaNs where they lie beside those that are.

# Not here
What is expected (`suite_oracles.py`); which compilations there are (`test_cost_bits.py`).
"""

import importlib
import struct
from dataclasses import dataclass

import numpy as np
from triton.bitstable.bits.draws import Draw
from triton.bitstable.bits.elements import ELEMENTS

from bits import compile_ptx, execute
from oracle import same_bits
from suite_oracles import EXPECT

ELEMENT_OF = {"fp32": "f32", "fp16": "f16", "bf16": "bf16", "fp8e5": "e5m2", "i32": "i32"}
SCALARS = {"steps": 4, "live": 608, "eps": np.float32(1e-5)}
DRAWS = tuple(
    map(Draw, ("wide", "cancelling", "normals", "subnormals", "specials", "zeros", "huge"))
)


def kernel_of(case):
    module, _, function = case.kernel.partition(":")
    return getattr(importlib.import_module(f"corpus.kernels.{module}"), function)


def compile_case(case, build):
    """The PTX of one compilation, pinned."""
    return compile_ptx(kernel_of(case), case.signature, build, **case.constants, ORDER="inner_tree")


def values_of(patterns, element):
    """Bits as the numbers that numpy computes with: bf16 in f32, e5m2 in f16."""
    if element == "bf16":
        return (patterns.astype(np.uint32) << 16).view(np.float32)
    if element == "e5m2":
        return (patterns.astype(np.uint16) << 8).view(np.float16)
    return patterns.view({"f32": np.float32, "f16": np.float16, "i32": np.int32}[element])


def patterns_of(values, element):
    """The inverse of `values_of`."""
    if element == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    if element == "e5m2":
        return (values.view(np.uint16) >> 8).astype(np.uint8)
    return np.ascontiguousarray(values).view(ELEMENTS[element].storage)


@dataclass(frozen=True)
class Shape:
    """A tile in memory; rows of a column kernel's tile lie `stride` elements apart."""

    sizes: tuple[int, ...]
    stride: int | None = None

    def allocate(self, dtype, blank):
        """Memory for it, and the part of that which is the tile."""
        if self.stride is None or len(self.sizes) < 2:
            memory = np.full(self.sizes, blank, dtype)
            return memory, memory
        rows, columns = self.sizes
        memory = np.zeros((rows, self.stride), dtype)
        memory[:, columns : 2 * columns] = blank
        return memory, memory[:, :columns]


def _inputs(case):
    """The shape of every argument that may be read, by name."""
    c, told = case.constants, case.signature
    steps = SCALARS["steps"] if "steps" in told else 1
    if "COLUMNS" in c:
        tile, rows = (c["M"] * steps, c["B"]), c["M"] * steps
        shapes = dict.fromkeys(("x", "y", "dy"), tile) | dict.fromkeys(("mean", "rstd"), (rows,))
    elif "K" in c:
        shapes = {"a": (c["M"], c["K"]), "b": (c["K"], c["N"])}
    elif "A" in c:
        shapes = {"x": (c["A"], c["B"], c["C"])}
    elif "M" not in c:
        shapes = {"x": (c["N"],)}
    else:
        width = SCALARS["live"] if "live" in told else c["N"] * steps
        shapes = dict.fromkeys(("x", "y", "dy"), (c["M"], width))
        shapes |= dict.fromkeys(("weight", "bias"), (width,))
        shapes |= dict.fromkeys(("mean", "rstd", "target"), (c["M"],))
        if case.kernel == "loops:matrix_vector":
            shapes["y"] = (width,)
    return {name: Shape(sizes, c.get("COLUMNS")) for name, sizes in shapes.items()}


class Bench:
    """One case on one draw, with what it must return on a target."""

    def __init__(self, case, draw, seed, elementwise):
        self.case, self.draw = case, draw
        self.types = {name: ty.lstrip("*") for name, ty in case.signature.items()}
        self.scalars = {name: SCALARS[name] for name in case.signature if name in SCALARS}
        shapes, given, self._inputs = _inputs(case), {}, []
        pointers = [name for name, ty in case.signature.items() if ty.startswith("*")]
        results = _results(case)
        for name in pointers:
            if name in results:
                continue
            values = self._draw(name, shapes[name].sizes, seed)
            element = ELEMENT_OF[self.types[name]]
            nan = ELEMENTS[element].quiet_nan if ELEMENTS[element].is_float else 0
            memory, tile = shapes[name].allocate(ELEMENTS[element].storage, nan)
            tile[...] = patterns_of(values, element)
            given[name] = values
            self._inputs.append(memory)
        constants = case.constants | self.scalars | {"dtype": ELEMENT_OF[self.types[pointers[0]]]}
        with np.errstate(all="ignore"):
            expected = EXPECT[case.kernel](given, constants, elementwise)
        assert set(expected) == set(results)
        self._expected = {name: expected[name] for name in pointers if name in results}

    def _draw(self, name, sizes, seed):
        count, element = int(np.prod(sizes)), ELEMENT_OF[self.types[name]]
        if name == "target":
            drawn = self.draw.stream(seed, name).below(self.case.constants["N"], count)
            return drawn.astype(np.int32).reshape(sizes)
        patterns = self.draw.patterns(ELEMENTS[element], count, seed, name)
        return values_of(patterns, element).reshape(sizes)

    def difference(self, compiled):
        """What is wrong with the outputs of a run; nothing, where every bit is as expected."""
        outputs = []
        for name, expected in self._expected.items():
            element = ELEMENTS[ELEMENT_OF[self.types[name]]]
            shape = Shape(expected.shape, self.case.constants.get("COLUMNS"))
            outputs.append(shape.allocate(element.storage, 77))
        memories = [memory for memory, _ in outputs]
        execute(compiled, self._inputs, memories, map(_bits, self.scalars.values()))
        for (name, expected), (_, tile) in zip(self._expected.items(), outputs):
            got = values_of(np.ascontiguousarray(tile), ELEMENT_OF[self.types[name]])
            wrong = np.argwhere(~same_bits(got, expected))
            if len(wrong):
                at = tuple(map(int, wrong[0]))
                return (
                    f"draw {self.draw.name}: {name}{list(at)} is {got[at]!r}, not "
                    f"{expected[at]!r}; {len(wrong)} of {got.size} differ"
                )
        return ""


def _results(case):
    """The names of what a kernel writes: they stand last among the pointers."""
    known = [{"dw", "db"}, {"mean", "m2"}, {"dx"}, {"out"}]
    return next(names for names in known if names <= case.signature.keys())


def _bits(value):
    if isinstance(value, np.float32):
        return int.from_bytes(struct.pack("<f", value), "little")
    return value
