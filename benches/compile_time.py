"""What pinning adds to compile time: the share of our stages in a whole compile.

Compiles each kernel cold, several times, and takes the time spent in the native detour (printing,
rewriting, parsing) relative to the whole compile of the same run. Reports medians.

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
from triton.bitstable import stages


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


def measure(case: Case, clock: Clock, warps: int, repeats: int) -> dict[str, Any]:
    """Medians over `repeats` compiles, in milliseconds."""
    target = GPUTarget("cuda", 90, 32)
    ours, whole = [], []
    for _ in range(repeats):
        clock.seconds = 0.0
        start = time.perf_counter()
        case.compile(target, warps, "inner_tree")
        whole.append(time.perf_counter() - start)
        ours.append(clock.seconds)
    return {
        "kernel": case.name,
        "ours_ms": 1e3 * statistics.median(ours),
        "compile_ms": 1e3 * statistics.median(whole),
        "share": statistics.median(o / w for o, w in zip(ours, whole, strict=True)),
    }


def main() -> None:
    """Parses the command line, measures, prints."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--warps", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", action="store_true", help="print the medians as JSON")
    options = parser.parse_args()
    clock = Clock()
    clock.watch(stages, "rewrite")
    clock.watch(stages.Scan, "of")
    CASES[0].compile(GPUTarget("cuda", 90, 32), options.warps, "inner_tree")  # warm up
    rows = [measure(case, clock, options.warps, options.repeats) for case in CASES]
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for row in rows:
        print(
            f"{row['kernel']:24} {row['ours_ms']:7.2f} ms of {row['compile_ms']:8.1f} ms"
            f"  {100 * row['share']:5.2f} %"
        )
    print(f"{'median':24} {100 * statistics.median(r['share'] for r in rows):32.2f} %")


if __name__ == "__main__":
    main()
