"""The main job, shown: one tree whatever the warps and the vendor.

`python -m triton.bitstable.report` compiles a row sum and a column sum for both vendors over
`num_warps` 1 … 32, without a GPU, and prints what became of them. The tree digest comes from the
native library, whose plan checker has accepted each plan as the canonical tree; a plan that it does
not accept is a compile error.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.bitstable.stages import REPORT_KEY
from triton.compiler import ASTSource

TARGETS = (GPUTarget("cuda", 90, 32), GPUTarget("hip", "gfx942", 64))
WARPS = (1, 2, 4, 8, 16, 32)
EXTENT = 256
OTHER = 16
_MOST_THREADS = 1024

_SASS_INSTRUCTION = re.compile(
    r"^\s*(?:\S+:\S+:\S+:\S+:\S+\s+|/\*[0-9a-f]+\*/\s+)(@!?U?P\w+ )?[A-Z]"
)
_GCN_INSTRUCTION = re.compile(r"^\s+(?:[vs]|ds|global|buffer|flat|scratch)_\w+")
_GCN_EXCHANGE = re.compile(
    r"row_|ds_bpermute|ds_permute|ds_swizzle|v_permlane|quad_perm|v_readlane"
)


@triton.jit
def row_sum(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum along the contiguous axis."""
    rows = tl.arange(0, ROWS)
    tile = tl.load(x + rows[:, None] * COLUMNS + tl.arange(0, COLUMNS)[None, :])
    tl.store(out + rows, tl.sum(tile, axis=1, order="inner_tree"))


@triton.jit
def column_sum(x, out, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Sum along the other axis."""
    columns = tl.arange(0, COLUMNS)
    tile = tl.load(x + tl.arange(0, ROWS)[:, None] * COLUMNS + columns[None, :])
    tl.store(out + columns, tl.sum(tile, axis=0, order="inner_tree"))


KERNELS = ((row_sum, OTHER, EXTENT), (column_sum, EXTENT, OTHER))


@dataclass
class Row:
    """One line of the table; without counts, `remark` says why there are none."""

    kernel: str
    target: str
    warps: int
    instructions: int | None = None
    exchanges: int | None = None
    barriers: int | None = None
    digest: str | None = None
    remark: str = ""

    def cells(self) -> list[str]:
        """As text, in the order of the heading."""
        counts = (self.instructions, self.exchanges, self.barriers)
        canonical = "-" if self.remark else ("yes" if self.digest else "NO")
        return [
            *(self.kernel, self.target, str(self.warps)),
            *("-" if count is None else str(count) for count in counts),
            *(canonical, self.remark or (self.digest or "")[:16]),
        ]


def measure(kernel: Any, rows: int, columns: int, target: GPUTarget, warps: int) -> Row:
    """Compile one kernel and count what matters in its machine code."""
    row = Row(kernel.__name__, f"{target.backend}:{target.arch}", warps)
    if warps * target.warp_size > _MOST_THREADS:
        row.remark = f"no such block: {warps * target.warp_size} threads"
        return row
    signature = {"x": "*fp32", "out": "*fp32", "ROWS": "constexpr", "COLUMNS": "constexpr"}
    source = ASTSource(kernel, signature, {"ROWS": rows, "COLUMNS": columns})
    options = {"num_warps": warps, "enable_fp_fusion": True}
    compiled = triton.compile(source, target=target, options=options)
    if target.backend == "cuda":
        lines = list(filter(_SASS_INSTRUCTION.match, compiled.asm["sass"].splitlines()))
        lines = [line for line in lines if "NOP" not in line]  # padding
        row.exchanges = sum("SHFL" in line for line in lines)
        row.barriers = sum("BAR." in line for line in lines)
    else:
        lines = list(filter(_GCN_INSTRUCTION.match, compiled.asm["amdgcn"].splitlines()))
        row.exchanges = sum(bool(_GCN_EXCHANGE.search(line)) for line in lines)
        row.barriers = sum("s_barrier" in line for line in lines)
    row.instructions = len(lines)
    reductions = getattr(compiled.metadata, REPORT_KEY, {}).get("reductions", [])
    digests = {reduction["digest"] for reduction in reductions}
    row.digest = digests.pop() if len(digests) == 1 else None
    return row


def table(rows: Sequence[Row]) -> str:
    """The rows under a heading, in columns."""
    heading = ["kernel", "target", "warps", "instr", "exch", "barr", "canonical", "tree"]
    cells = [heading, *(row.cells() for row in rows)]
    widths = [max(len(line[column]) for line in cells) for column in range(len(heading))]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        for line in cells
    )


def collect() -> list[Row]:
    """Compile everything that Triton's cache does not hold."""
    shown = sys.stderr.isatty()
    rows: list[Row] = []
    jobs = [(k, t, w) for k in KERNELS for t in TARGETS for w in WARPS]
    for number, ((kernel, tile_rows, tile_columns), target, warps) in enumerate(jobs, 1):
        if shown:
            print(f"\rcompiling {number} of {len(jobs)}", end="", file=sys.stderr, flush=True)
        rows.append(measure(kernel, tile_rows, tile_columns, target, warps))
    if shown:
        print("\r" + " " * 30 + "\r", end="", file=sys.stderr, flush=True)
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Print the table; 1 unless every kernel folds one and the same tree."""
    parser = argparse.ArgumentParser(prog="python -m triton.bitstable.report", description=__doc__)
    parser.parse_args(arguments)
    print(f"Triton {triton.__version__}: sums of {EXTENT} floats, tiles of {OTHER}x{EXTENT}")
    rows = collect()
    print(table(rows))
    compiled = [row for row in rows if not row.remark]
    digests = {row.digest for row in compiled}
    if len(digests) != 1 or None in digests:
        print(f"error: {len(digests)} trees where one was expected", file=sys.stderr)
        return 1
    print(f"one tree in {len(compiled)} kernels: {digests.pop()}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
