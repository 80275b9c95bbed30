"""What certificates add to compile time.

Compiles each kernel cold, several times, pinned without and with verification in turn. Reports
medians: the compile without, the ratio of the compile with it, and what the check of the PTX takes
of the latter. A kernel that is refused a certificate is named, and the status is then 1.

    .venv/bin/python benches/verify.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from typing import Any

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="bitstable-bench-"))

from compile_time import Clock
from suite import CASES, Case, GPUTarget
from triton import knobs
from triton.bitstable import CertificateError, _native


def compiled(case: Case, target: GPUTarget, warps: int, verified: bool) -> float:
    """How long a pinned compile takes, in seconds."""
    knobs.language.bitstable_verify = verified
    start = time.perf_counter()
    case.compile(target, warps, "inner_tree")
    return time.perf_counter() - start


def measure(
    case: Case, check: Clock, target: GPUTarget, warps: int, repeats: int
) -> dict[str, Any]:
    """Medians over `repeats` compiles, times in milliseconds."""
    rows: list[tuple[float, float, float]] = []
    for _ in range(repeats):
        plain = compiled(case, target, warps, verified=False)
        check.seconds = 0.0
        verified = compiled(case, target, warps, verified=True)
        rows.append((plain, verified, check.seconds))
    return {
        "kernel": case.name,
        "plain_ms": 1e3 * statistics.median(row[0] for row in rows),
        "check_ms": 1e3 * statistics.median(row[2] for row in rows),
        "ratio": statistics.median(row[1] / row[0] for row in rows),
    }


def main() -> int:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("--capability", type=int, default=90, help="90 for sm_90")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--filter", default="", help="only kernels whose name contains this")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    options = parser.parse_args()
    cases = [case for case in CASES if options.filter in case.name]
    if not cases:
        parser.error(f"no kernel's name contains {options.filter!r}")
    check = Clock()
    check.watch(_native.Library, "certify")
    target = GPUTarget("cuda", options.capability, 32)
    compiled(cases[0], target, options.warps, verified=True)  # warm up
    rows, refused = [], []
    for case in cases:
        try:
            rows.append(measure(case, check, target, options.warps, options.repeats))
        except CertificateError as error:
            refused.append(f"{case.name}: {error.diagnostics[0].message}")
    if options.json:
        print(json.dumps({"kernels": rows, "refused": refused}, indent=1))
    else:
        show(rows, refused)
    return 1 if refused else 0


def show(rows: list[dict[str, Any]], refused: list[str]) -> None:
    """Prints a table, and a summary."""
    print(f"{'kernel':24} {'compile':>11} {'check':>11} {'verified/plain':>15}")
    for row in rows:
        print(
            f"{row['kernel']:24} {row['plain_ms']:8.1f} ms {row['check_ms']:8.2f} ms"
            f" {row['ratio']:15.3f}"
        )
    if rows:
        ratio = statistics.median(row["ratio"] for row in rows)
        check = statistics.median(row["check_ms"] for row in rows)
        print(f"{'median':24} {'':11} {check:8.2f} ms {ratio:15.3f}")
        whole = sum(row["plain_ms"] for row in rows)
        added = sum((row["ratio"] - 1) * row["plain_ms"] for row in rows)
        print(f"{'all of them':24} {whole:8.1f} ms {'':11} {1 + added / whole:15.3f}")
    for line in refused:
        print(f"no certificate: {line}", file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
