"""One launch of a compiled kernel on the executor: compile to PTX, run, read the results.

Compilation stops at PTX (no ptxas) and leaves nothing in any cache.
"""

import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import triton
from triton import knobs
from triton.compiler import ASTSource

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ptx_exec
from compiling import SM90
from oracle import DTYPES, same_bits

WARPS = (1, 2, 4, 8, 16, 32)
TRITON_NAMES = {"f64": "fp64", "f32": "fp32", "f16": "fp16", "bf16": "bf16"}


@dataclass(frozen=True)
class Build:
    """What moves a kernel's layout and code but must not move its bits."""

    warps: int = 4
    aligned: bool = True
    fusion: bool = True
    target: object = SM90

    def __str__(self) -> str:
        words = [f"sm_{self.target.arch}", f"{self.warps} warps"]
        words += ["aligned" if self.aligned else "unaligned"]
        words += ["fusion" if self.fusion else "no fusion"]
        return ", ".join(words)


def _ptx_only(self=None, stages=None, *_):
    if stages is None:
        return "ptx-only", "ptx-only"
    stages["cubin"] = lambda module, metadata: b""
    return None


@dataclass(frozen=True)
class Compiled:
    """PTX with what the launch needs to know."""

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
        return Compiled(kernel.asm["ptx"], build.warps, kernel.metadata.shared)


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

    def buffers(self, build: Build, leaves: bool = False) -> list:
        """Fresh buffers, off their boundary by one element where the build is unaligned."""
        made = []
        for values in self.inputs:
            data = to_memory(values, self.dtype)
            shift = 0 if build.aligned else data.itemsize
            made.append(ptx_exec.Buffer(data, misalign=shift, leaves=leaves))
        out = np.full(self.out_size, 77, to_memory(0, self.out_dtype).dtype)
        shift = 0 if build.aligned else out.itemsize
        return [*made, ptx_exec.Buffer(out, writable=True, misalign=shift)]

    def run(self, compiled: Compiled, build: Build, approximate: bool = False):
        """Executes the launch and returns the output."""
        buffers = self.buffers(build)
        args = [*buffers, *self.scalars]
        ptx_exec.run(compiled.ptx, (1,), args, compiled.warps, compiled.shared, approximate)
        return from_memory(buffers[-1].data, self.out_dtype)

    def tree(self, compiled: Compiled, build: Build, extent: int | None = None):
        """The verdict on the launch's dependence trees."""
        args = [*self.buffers(build, leaves=True), *self.scalars]
        return ptx_exec.tree_digest(
            compiled.ptx, (1,), args, compiled.warps, compiled.shared, extent
        )


def describe(got, expected) -> str:
    """The first difference, in full."""
    wrong = np.flatnonzero(~same_bits(got, expected))
    at = int(wrong[0])
    return (
        f"{len(wrong)} of {got.size} outputs differ; output {at}: "
        f"got {got[at]!r}, canonical tree {expected[at]!r}"
    )
