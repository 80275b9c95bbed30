"""What pinning adds to compile time.

Compiles each kernel cold, several times, unordered and pinned in turn. Reports medians: the time
spent in the native library and in the whole detour (scanning, printing, rewriting, parsing), both
relative to the pinned compile, and the pinned compile relative to the unordered one, in which
Triton lowers the reduction itself.

    .venv/bin/python benches/compile_time.py
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import tempfile
import time
from typing import Any

os.environ["TRITON_ALWAYS_COMPILE"] = "1"
os.environ.setdefault("TRITON_CACHE_DIR", tempfile.mkdtemp(prefix="bitstable-bench-"))

from suite import CASES, Case, GPUTarget
from triton.bitstable import _native, stages


class Clock:
    """Adds up the time spent in some functions."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def watch(self, owner: Any, name: str) -> None:
        """Counts the time of `owner.name`, a module's function or a class method."""
        inner = getattr(owner, name)

        def timed(*args: Any, **kwargs: Any) -> Any:
            start = time.perf_counter()
            try:
                return inner(*args, **kwargs)
            finally:
                self.seconds += time.perf_counter() - start

        setattr(owner, name, timed)


def measure(
    case: Case, native: Clock, detour: Clock, warps: int, repeats: int
) -> dict[str, float | str]:
    """Medians over `repeats` compiles, times in milliseconds."""
    target = GPUTarget("cuda", 90, 32)
    rows: list[tuple[float, float, float, float]] = []
    for _ in range(repeats):
        native.seconds = detour.seconds = 0.0
        start = time.perf_counter()
        case.compile(target, warps, None)
        between = time.perf_counter()
        case.compile(target, warps, "inner_tree")
        end = time.perf_counter()
        rows.append((native.seconds, detour.seconds, end - between, between - start))
    return {
        "kernel": case.name,
        "pinned_ms": 1e3 * statistics.median(row[2] for row in rows),
        "native": statistics.median(row[0] / row[2] for row in rows),
        "detour": statistics.median(row[1] / row[2] for row in rows),
        "ratio": statistics.median(row[2] / row[3] for row in rows),
    }


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--filter", default="", help="only kernels whose name contains this")
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    options = parser.parse_args()
    cases = [case for case in CASES if options.filter in case.name]
    if not cases:
        parser.error(f"no kernel's name contains {options.filter!r}")
    native, detour = Clock(), Clock()
    native.watch(_native.Library, "rewrite")
    detour.watch(stages, "rewrite")
    detour.watch(stages.Scan, "of")
    cases[0].compile(GPUTarget("cuda", 90, 32), options.warps, "inner_tree")  # warm up
    rows = [measure(case, native, detour, options.warps, options.repeats) for case in cases]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'kernel':24} {'compile':>10} {'native':>8} {'detour':>8} {'pinned/free':>12}")
    for row in rows:
        print(
            f"{row['kernel']:24} {row['pinned_ms']:7.1f} ms {100 * row['native']:6.2f} %"
            f" {100 * row['detour']:6.2f} % {row['ratio']:12.3f}"
        )
    median = {k: statistics.median(row[k] for row in rows) for k in ("native", "detour", "ratio")}
    print(
        f"{'median':24} {'':10} {100 * median['native']:6.2f} % {100 * median['detour']:6.2f} %"
        f" {median['ratio']:12.3f}"
    )


if __name__ == "__main__":
    main()
