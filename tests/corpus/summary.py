"""What a corpus has, by kernel."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from triton.bitstable.bits.table import grid

from corpus.building import lines

COLUMNS = ("kernel", "cases", "configurations", "ptx", "labelled", "observed", "ms")


def rows(folder: Path, only: str = "") -> list[dict[str, Any]]:
    """A row for each kernel; `observed` counts labels by case."""
    by_kernel: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for line in lines(folder, only):
        by_kernel[line["kernel"]].append(line)
    return [_row(kernel, found) for kernel, found in by_kernel.items()]


def _row(kernel: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kernel": kernel,
        "cases": len({line["case"] for line in found}),
        "configurations": len(found),
        "ptx": len({line["ptx"] for line in found if "ptx" in line}),
        "labelled": sum(line["label"] is not None for line in found),
        "observed": len({(line["case"], line["label"]) for line in found if line["label"]}),
        "ms": round(sum(sum(line.get("ms", ())) for line in found) / len(found)),
        "errors": dict(Counter(kind for line in found for kind in line["errors"])),
    }


def show(folder: Path, only: str, seconds: float, as_json: bool) -> None:
    """Print the table, its totals and the errors met."""
    table = rows(folder, only)
    errors: Counter[str] = Counter()
    for row in table:
        errors.update(row["errors"])
    totals = {name: sum(row[name] for row in table) for name in COLUMNS[1:-1]}
    if as_json:
        print(json.dumps({"kernels": table, "totals": totals, "errors": errors}, indent=1))
        return
    cells = [[str(row[name]) for name in COLUMNS] for row in table]
    total = ["all", *(str(totals[name]) for name in COLUMNS[1:-1]), ""]
    print("\n".join(grid([list(COLUMNS), *cells, total])))
    for kind, count in errors.most_common():
        print(f"{count} x {kind}")
    print(f"{len(table)} kernels; this run took {seconds:.0f} s")
