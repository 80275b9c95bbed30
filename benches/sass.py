"""Instructions, shuffles, barriers and shared accesses of pinned kernels, beside stock's.

Compiles every kernel of `suite.py` twice, unordered (which is stock Triton's code to the byte) and
pinned, and counts SASS instructions. Prints a table with ratios and geometric means.

    .venv/bin/python benches/sass.py --warps 4 8 --arch 90
"""

from __future__ import annotations

import argparse
import json
import math
import re
from collections import Counter
from typing import Any

from suite import CASES, Case, GPUTarget

COLUMNS = ["SASS", "SHFL", "BAR", "LDS", "STS"]


def count(sass: str) -> Counter[str]:
    """Instructions of a disassembled kernel by kind; padding after the exit is not counted."""
    # Triton prints the control codes, a tab, an optional guard, the opcode and its operands.
    opcodes = re.findall(r"^\S+\t(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)", sass, re.MULTILINE)
    if not opcodes:
        raise ValueError("no instructions in the disassembly: has its format changed?")
    kinds = Counter(opcode.split(".")[0] for opcode in opcodes)
    total = sum(n for kind, n in kinds.items() if kind != "NOP")
    return Counter(
        SASS=total,
        SHFL=kinds["SHFL"],
        BAR=kinds["BAR"],
        LDS=kinds["LDS"] + kinds["LDSM"],
        STS=kinds["STS"] + kinds["STSM"],
    )


def measure(case: Case, arch: int, warps: int) -> dict[str, Any]:
    """The counts of one case at one number of warps."""
    target = GPUTarget("cuda", arch, 32)
    stock = count(case.compile(target, warps, None).asm["sass"])
    pinned = count(case.compile(target, warps, "inner_tree").asm["sass"])
    return {"kernel": case.name, "warps": warps, "stock": dict(stock), "pinned": dict(pinned)}


def geometric_mean(ratios: list[float]) -> float:
    """Of a list that is not empty."""
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def table(rows: list[dict[str, Any]]) -> str:
    """The rows as a Markdown table: stock / pinned, and the ratio of instructions."""
    lines = [
        "| kernel | warps | " + " | ".join(COLUMNS) + " | ratio |",
        "|---|---|" + "---|" * (len(COLUMNS) + 1),
    ]
    for row in rows:
        cells = [f"{row['stock'][c]} / {row['pinned'][c]}" for c in COLUMNS]
        ratio = row["pinned"]["SASS"] / row["stock"]["SASS"]
        lines.append(f"| {row['kernel']} | {row['warps']} | {' | '.join(cells)} | {ratio:.2f} |")
    mean = geometric_mean([row["pinned"]["SASS"] / row["stock"]["SASS"] for row in rows])
    lines.append(f"\nGeometric mean of SASS instructions, pinned / stock: {mean:.3f}")
    return "\n".join(lines)


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warps", type=int, nargs="+", default=[4, 8])
    parser.add_argument("--arch", type=int, default=90, help="compute capability (default: 90)")
    parser.add_argument("--filter", default="", help="only kernels whose name contains this")
    parser.add_argument("--json", action="store_true", help="print the counts as JSON")
    options = parser.parse_args()
    rows = [
        measure(case, options.arch, warps)
        for case in CASES
        if options.filter in case.name
        for warps in options.warps
    ]
    if not rows:
        parser.error(f"no kernel's name contains {options.filter!r}")
    print(json.dumps(rows, indent=1) if options.json else table(rows))


if __name__ == "__main__":
    main()
