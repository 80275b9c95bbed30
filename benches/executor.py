#!/usr/bin/env python
"""Throughput of the PTX executor on a row softmax: instructions a second a core, and seconds.

Compiles a softmax over rows of `--columns` floats for `--target` and runs it on `--rows` rows, with
and without the watch for races, on one host thread and on all. Instructions are those of threads:
masks and guards counted out. Run with the project's Python: `.venv/bin/python benches/executor.py`.
"""

import argparse
import json
import os
import subprocess
import tempfile
from pathlib import Path

import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

ROOT = Path(__file__).resolve().parents[1]


@triton.jit
def softmax(x, out, columns, BLOCK: tl.constexpr):
    """One row a program."""
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    weights = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, weights / tl.sum(weights, 0), mask=at < columns)


def compiled(columns: int, capability: int, warps: int) -> tuple[str, int]:
    """The kernel's PTX, and its bytes of shared memory."""
    signature = {"x": "*fp32", "out": "*fp32", "columns": "i32", "BLOCK": "constexpr"}
    aligned = [["tt.divisibility", 16]]
    source = ASTSource(
        softmax, signature, {"BLOCK": triton.next_power_of_2(columns)},
        {(at,): aligned for at in range(3)},
    )  # fmt: skip
    target = GPUTarget("cuda", capability, 32)
    kernel = triton.compile(source, target=target, options={"num_warps": warps})
    return kernel.asm["ptx"], kernel.metadata.shared


def main() -> None:
    """Build the runner, run every variant, print a table or JSON."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=4096, help="default 4096")
    parser.add_argument("--columns", type=int, default=4096, help="default 4096")
    parser.add_argument("--target", type=int, default=90, help="compute capability, default 90")
    parser.add_argument("--warps", type=int, default=4, help="default 4")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args()
    build = ["cargo", "build", "--release", "--locked", "--quiet"]
    runner = ["-p", "bitstable-ptx", "--example", "throughput"]
    subprocess.run([*build, *runner], cwd=ROOT, check=True)
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    program = target / "release" / "examples" / "throughput"
    results = []
    with tempfile.TemporaryDirectory() as folder:
        ptx = Path(folder) / "softmax.ptx"
        text, shared = compiled(options.columns, options.target, options.warps)
        ptx.write_text(text)
        sizes = [str(options.rows), str(options.columns), str(shared)]
        for jobs in (1, 0):
            for watch in ([], ["races"]):
                command = [program, ptx, *sizes, str(jobs), *watch]
                reply = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                cores = 1 if jobs == 1 else os.cpu_count()
                results.append({"cores": cores, "races": bool(watch), **json.loads(reply)})
    if options.json:
        print(json.dumps({"options": vars(options), "results": results}, indent=2))
        return
    print(f"row softmax {options.rows}x{options.columns} f32, sm_{options.target}")
    print(f"{'cores':>5} {'races':>5} {'seconds':>8} {'M thread instructions/s/core':>29}")
    for result in results:
        rate = result["thread_instructions_per_second"] / result["cores"] / 1e6
        watched = "yes" if result["races"] else "no"
        print(f"{result['cores']:>5} {watched:>5} {result['seconds']:>8.2f} {rate:>29.0f}")


if __name__ == "__main__":
    main()
