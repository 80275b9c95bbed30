"""One launch of a compiled kernel on the executor: compile to PTX, run or trace, read the results.

Compilation stops at PTX (no ptxas) and leaves nothing in any cache. Runs go through the native
library, and an error among its findings (a race, an access out of bounds) fails the test as it
would a launch; trees are `bitstable tree`'s.
"""

import ctypes
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import triton
from triton import knobs
from triton.bitstable import _native, strategies
from triton.bitstable.emulation.launcher import Program
from triton.bitstable.emulation.memory import Memory, Pointer, Span
from triton.bitstable.emulation.reports import Report
from triton.compiler import ASTSource

from compiling import SM90
from oracle import DTYPES, same_bits

COMMAND = Path(sys.executable).with_name("bitstable")
WARPS = (1, 2, 4, 8, 16, 32)
TRITON_NAMES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16"}


@dataclass(frozen=True)
class Build:
    """What moves a kernel's layout and code but must not move its bits."""

    warps: int = 4
    aligned: bool = True
    fusion: bool = True
    target: object = SM90
    layout: str | None = None
    """The strategy of the layout pass; the knob's, where there is none."""

    def __str__(self) -> str:
        words = [f"sm_{self.target.arch}", f"{self.warps} warps"]
        words += ["aligned" if self.aligned else "unaligned"]
        words += ["fusion" if self.fusion else "no fusion"]
        words += [f"layout {self.layout}"] if self.layout else []
        return ", ".join(words)


def _ptx_only(self=None, stages=None, *_):
    if stages is None:
        return "ptx-only", "ptx-only"
    stages["cubin"] = lambda module, metadata: b""
    return None


@dataclass(frozen=True)
class Compiled:
    """PTX with what the launch needs to know."""

    name: str
    ptx: str
    warps: int
    shared: int


def compile_ptx(kernel, types: dict[str, str], build: Build, **constants) -> Compiled:
    """Compiles to PTX and no further. `types` are those of the run-time arguments."""
    signature = {name: types.get(name, "constexpr") for name in kernel.arg_names}
    divisible = [["tt.divisibility", 16]]
    attributes = {(at,): divisible for at, ty in enumerate(signature.values()) if ty[0] == "*"}
    src = ASTSource(kernel, signature, constants, attributes if build.aligned else {})
    options = {"num_warps": build.warps, "enable_fp_fusion": build.fusion}
    if build.layout:
        options[strategies.OPTION] = build.layout
    with (
        tempfile.TemporaryDirectory() as folder,
        knobs.cache.scope(),
        knobs.runtime.scope(),
        knobs.compilation.scope(),
    ):
        knobs.cache.dir = folder
        knobs.compilation.always_compile = True
        knobs.runtime.add_stages_inspection_hook = _ptx_only
        kernel = triton.compile(src, target=build.target, options=options)
        told = kernel.metadata
        return Compiled(told.name, kernel.asm["ptx"], build.warps, told.shared)


def to_memory(values, dtype: str):
    """Values as a kernel finds them: bf16 as its 16 bits."""
    values = np.asarray(values, DTYPES[dtype])
    if dtype == "bf16":
        return (values.view(np.uint32) >> 16).astype(np.uint16)
    return values


def from_memory(data, dtype: str):
    """The inverse of `to_memory`."""
    if dtype == "bf16":
        return (data.astype(np.uint32) << 16).view(np.float32)
    return data


@dataclass(frozen=True)
class Tree:
    """What `bitstable tree` says of all outputs; `why` they are not canonical."""

    canonical: bool
    contractible: bool
    digest: str | None
    why: str

    @classmethod
    def from_json(cls, entry: dict) -> "Tree":
        """Reads one file's trees; a run with errors proves nothing."""
        groups, errors = entry["groups"], [error["message"] for error in entry["errors"]]
        departing = [group for group in groups if group["verdict"] != "canonical"]
        faults = errors + [f"{group['first']}: {group['explanation']}" for group in departing]
        return cls(
            canonical=bool(groups) and not faults,
            contractible=any(group["contractible"] for group in groups),
            digest=entry["digest"],
            why="; ".join(faults),
        )


@dataclass(frozen=True)
class Launch:
    """Arguments of one launch: inputs, output shape, scalars; types by the oracle's names."""

    inputs: tuple
    dtype: str
    out_size: int
    out_dtype: str
    scalars: tuple[int, ...] = ()

    def types(self, names: list[str]) -> dict[str, str]:
        """The signature; `names` are the kernel's run-time arguments, scalars last."""
        types = [self.dtype] * len(self.inputs) + [self.out_dtype]
        typed = [f"*{TRITON_NAMES.get(ty, ty)}" for ty in types]
        return dict(zip(names, typed + ["i32"] * len(self.scalars)))

    def buffers(self) -> list:
        """The inputs and an output that nobody wrote, as they are in memory."""
        blank = np.full(self.out_size, 77, to_memory(0, self.out_dtype).dtype)
        return [*(to_memory(values, self.dtype) for values in self.inputs), blank]

    def run(self, compiled: Compiled, build: Build):
        """Executes the launch and returns the output; what it does wrong is an AssertionError."""
        placed = [_placed(data, build.aligned) for data in self.buffers()]
        execute(compiled, placed[:-1], placed[-1:], self.scalars)
        return from_memory(placed[-1], self.out_dtype)

    def trees(self, kernels: list[Compiled], extent: int) -> list[Tree]:
        """The verdict on each kernel's dependence trees, over `extent` leaves an output.

        Buffers are aligned for all of them: the command places no other, and code for unaligned
        pointers takes any.
        """
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            files = [_write(folder / f"{at}.ptx", kernel) for at, kernel in enumerate(kernels)]
            others = [word for file in files[1:] for word in ("--compare", file)]
            options = ["--grid", "1", "--extent", str(extent), "--json", *others]
            command = [COMMAND, "tree", files[0], *options, *self._written(folder)]
            ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
        assert ended.returncode in (0, 1), ended.stderr
        return [Tree.from_json(entry) for entry in json.loads(ended.stdout)["files"]]

    def _written(self, folder: Path) -> list[str]:
        """The arguments as the command takes them, inputs in files."""
        words = []
        for number, data in enumerate(self.buffers()[:-1]):
            data.tofile(folder / f"{number}.bin")
            words.append(f"x{number}={self.dtype}:{data.size}=@{folder / f'{number}.bin'}")
        words.append(f"out={self.out_dtype}:{self.out_size}")
        return words + [f"n{at}=i32={value}" for at, value in enumerate(self.scalars)]


def _placed(data, aligned: bool):
    """A copy, off a boundary of 256 bytes by one element where it is not to be aligned."""
    arena = np.empty(data.nbytes + 512, np.uint8)
    start = -arena.ctypes.data % 256 + (0 if aligned else data.itemsize)
    placed = arena[start : start + data.nbytes].view(data.dtype)
    placed[...] = np.ravel(data)
    return placed


def _pointer(data, number: int, writable: bool) -> Pointer:
    """What may be reached through an argument: its elements, and nothing around them."""
    start = data.ctypes.data
    name = f"{'output' if writable else 'input'} {number}"
    return Pointer(name, start, f"i{8 * data.itemsize}", Span(start, start + data.nbytes, writable))


def execute(compiled: Compiled, inputs, outputs, scalars=()) -> None:
    """Runs one CTA on arrays where they lie: pointers first, scalars (as bits) last."""
    pointers = [_pointer(data, number, False) for number, data in enumerate(inputs)]
    pointers += [_pointer(data, number, True) for number, data in enumerate(outputs)]
    memory = Memory(pointers, ())
    values = [*(memory.device_address(pointer) for pointer in pointers), *scalars]
    _run(compiled, memory, values)
    memory.write_back()


def _run(compiled: Compiled, memory: Memory, values: list[int]) -> None:
    program, library = Program(compiled.name, compiled.ptx), _native.library()
    block = bytearray(program.block_bytes)
    # Triton appends two pointers to scratch memory, of which these kernels want none.
    for param, value in zip(program.params, [*values, 0, 0], strict=True):
        size, offset = param["bytes"], param["offset"]
        block[offset : offset + size] = (value % (1 << 8 * size)).to_bytes(size, "little")
    request = {
        "grid": [1, 1, 1],
        "block": [32 * compiled.warps, 1, 1],
        "dynamic_shared": compiled.shared,
        "buffers": memory.request(),
    }
    reply = library.ptx_launch(program.handle, request, bytes(block), ctypes.c_uint8(0))
    found = [Report.from_json(e, compiled.name, memory, "forward") for e in reply["findings"]]
    errors = [report.render() for report in found if report.is_error]
    assert not errors and not reply["errors_left_out"], "\n".join(errors)


def _write(path: Path, compiled: Compiled) -> Path:
    """Writes a kernel as Triton's cache has it, metadata beside the PTX."""
    path.write_text(compiled.ptx)
    told = {"num_warps": compiled.warps, "shared": compiled.shared}
    path.with_suffix(".json").write_text(json.dumps(told))
    return path


def describe(got, expected) -> str:
    """The first difference, in full."""
    wrong = np.flatnonzero(~same_bits(got, expected))
    at = int(wrong[0])
    return (
        f"{len(wrong)} of {got.size} outputs differ; output {at}: "
        f"got {got[at]!r}, canonical tree {expected[at]!r}"
    )
