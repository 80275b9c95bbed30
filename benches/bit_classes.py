"""How many bit classes reduction kernels have, pinned and unordered, over everything that is tuned.

`python benches/bit_classes.py -o FOLDER` sweeps each kernel, and its twin without an order, over
warps, stages, fusion and architectures (`triton.bitstable.bits`), and writes `bit_classes.md` and
`bit_classes.json`. What the JSON has already is not run again, so a run can be interrupted.

What the numbers say: PTX executed exactly, on draws made to show an order. What they leave open:
`ptxas` may contract a `mul` and an `add` that say no rounding, which a pinned reduction's never
leave unsaid; approximate functions (exp, log) are one model here for all architectures, where
hardware promises equal bits on one architecture only.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "python"))

import bit_class_kernels as more
from triton.bitstable.bits import Classes, matrix, sweep
from triton.bitstable.bits.command import Progress

import kernels

WARPS = (1, 2, 4, 8, 16, 32)
STAGES = (1, 2, 3, 4)
TARGETS = ("cuda:80", "cuda:90", "cuda:100")
ORDERS = {"pinned": "inner_tree", "unordered": None}


@dataclass(frozen=True)
class Case:
    """One kernel at one shape. `demand` is what its pinned form is held to."""

    name: str
    kernel: Any
    args: tuple[str, ...]
    constants: dict[str, Any] = field(default_factory=dict)
    grid: int = 1
    demand: Any = "one"
    approximate: bool = False

    def sweep(self, order: str | None, options: argparse.Namespace, progress: Progress) -> Classes:
        """The classes over all configurations."""
        orders = {name: order for name in self.kernel.arg_names if name in _ORDER_NAMES}
        configurations = matrix(
            targets=options.targets,
            num_warps=options.warps,
            num_stages=STAGES,
            fp_fusion=(True, False),
            constants={**self.constants, **orders},
        )
        return sweep(
            self.kernel,
            self.args,
            self.grid,
            configurations,
            options.draws,
            seed=options.seed,
            jobs=options.jobs,
            progress=progress,
        )


_ORDER_NAMES = ("ORDER", "FIRST", "SECOND")


def _tile(name: str, kernel: Any, m: int, n: int, **how: Any) -> Case:
    """A kernel over an M x N tile that keeps rows, or by `axis` columns."""
    axis, dtype = how.pop("axis", 1), how.pop("dtype", "f32")
    inputs, results = how.pop("inputs", ("x",)), how.pop("results", 1)
    fill, out = how.pop("fill", ""), how.pop("out", dtype)
    kept = (m if axis else n) * results
    constants = {"M": m, "N": n} | ({"AXIS": axis} if "AXIS" in kernel.arg_names else {})
    args = *(f"{x}={dtype}:{m * n}{fill}" for x in inputs), f"out={out}:{kept}=zero"
    return Case(f"{name} {m}x{n} {dtype}", kernel, args, constants, **how)


def _vector(dtype: str) -> Case:
    args = f"x={dtype}:1024", f"out={dtype}:1=zero"
    return Case(f"sum 1024 {dtype}", kernels.sum_vector, args, {"N": 1024})


def _rows(name: str, kernel: Any, m: int, n: int, extra: tuple[str, ...] = (), **how: Any) -> Case:
    """A kernel from a tile to a tile."""
    args = f"x=f32:{m * n}", *extra, f"out=f32:{m * n}=zero"
    return Case(f"{name} {m}x{n} f32", kernel, args, {"M": m, "N": n}, **how)


def _dot(name: str, kernel: Any, kept: int) -> Case:
    args = "x=f16:1024", "y=f16:1024", f"out=f32:{kept}=zero"
    return Case(f"{name} 32x32x32 f16", kernel, args, {"M": 32, "N": 32, "K": 32},
                demand="one-per-target")  # fmt: skip


# Outside a reduction a product and a sum may be contracted, and the option says whether.
BY_FUSION = [[{"fp_fusion": True}], [{"fp_fusion": False}]]
NEAR_ONE = "=0.75..1.25"
CASES = [
    *(_vector(dtype) for dtype in ("f32", "f64", "f16", "bf16")),
    Case(
        "sum 608 of 1024 f32",
        kernels.sum_padded,
        ("x=f32:1024", "out=f32:1=zero", "live=608"),
        {"N": 1024},
    ),
    _tile("sum rows", kernels.sum_tile, 16, 128),
    _tile("sum columns", kernels.sum_tile, 128, 16, axis=0),
    _tile("sum rows", kernels.sum_tile, 16, 128, dtype="f16"),
    _tile("sum columns", kernels.sum_tile, 128, 16, axis=0, dtype="bf16"),
    _tile("sum rows as f32", more.sum_wider, 16, 128, dtype="bf16", out="f32"),
    Case(
        "sum middle 4x32x16 f32",
        kernels.sum_middle,
        ("x=f32:2048", "out=f32:64=zero"),
        {"A": 4, "B": 32, "C": 16},
    ),
    Case("sum all 16x128 f32", kernels.sum_all, ("x=f32:2048", "out=f32:1=zero"),
         {"M": 16, "N": 128}),
    Case("sum reshaped 16x128 f32", kernels.sum_reshaped, ("x=f32:2048", "out=f32:1=zero"),
         {"M": 16, "N": 128}),
    Case("sum of program 1024 f32", more.bucket_sums, ("x=f32:4096", "out=f32:4=zero"),
         {"M": 4, "N": 1024}, grid=4),
    _tile("sum products, rows", kernels.sum_products, 16, 128, inputs=("x", "y")),
    _tile("sum products, columns", kernels.sum_products, 128, 16, axis=0, inputs=("x", "y")),
    _tile("sum products, rows", kernels.sum_products, 16, 128, inputs=("x", "y"), dtype="f16"),
    Case("sum outer 16x32x16 f32", kernels.sum_outer,
         ("x=f32:512", "y=f32:512", "out=f32:256=zero"), {"M": 16, "K": 32, "N": 16}),
    _tile("product rows", more.product_rows, 16, 128, fill=NEAR_ONE),
    _tile("argmax rows", kernels.argmax_tile, 16, 128, out="i32"),
    _tile("max rows", kernels.max_tile, 16, 128),
    _tile("Welford rows", kernels.welford_tile, 16, 128, results=3),
    _tile("Welford columns", kernels.welford_tile, 128, 16, axis=0, results=3),
    _tile("a/2 + b rows", kernels.halve_tile, 16, 128),
    _tile("a/2 + b columns", kernels.halve_tile, 128, 16, axis=0),
    _tile("affine maps", kernels.compose_tile, 16, 128, inputs=("x", "y"), results=2,
          fill=NEAR_ONE),
    Case("loop acc -= sum 512 f32", kernels.loop_subtract,
         ("x=f32:2048", "out=f32:1=zero", "steps=4"), {"N": 512}),
    Case("loop acc/2 + sum 16x64 f32", kernels.loop_decay,
         ("x=f32:4096", "out=f32:16=zero", "steps=4"), {"M": 16, "N": 64},
         demand=BY_FUSION),
    Case("loop matrix x vector 16x64 f32", more.matrix_vector,
         ("x=f32:4096", "y=f32:256", "out=f32:16=zero", "steps=4"), {"M": 16, "N": 64}),
    Case("branch 1024 f32", kernels.branch_sum,
         ("x=f32:1024", "out=f32:1=zero", "flag=0"), {"N": 1024}),
    _tile("mean squares", more.mean_squares, 16, 128),
    _tile("variance", more.variance, 16, 128),
    _rows("layer norm", more.layer_norm, 16, 128,
          ("weight=f32:128", "bias=f32:128", "eps=1e-5"), demand=BY_FUSION),
    _rows("RMS norm", more.rms_norm, 16, 128, ("weight=f32:128", "eps=1e-5")),
    _tile("sum exp", more.sum_exp, 16, 128, approximate=True),
    _tile("log sum exp", more.logsumexp, 16, 128, approximate=True),
    _rows("softmax", more.softmax, 16, 128, approximate=True),
    _dot("dot, sum rows", more.dot_row_sums, 32),
    _dot("dot, sum columns", more.dot_column_sums, 32),
]  # fmt: skip


def _entry(case: Case, classes: Classes, seconds: float) -> dict[str, Any]:
    """What is kept of one sweep."""
    told = classes.to_json(case.demand)
    ran = [outcome for outcome in classes.outcomes if outcome.bits]
    targets = {
        target: len({o.bits for o in ran if o.configuration.target == target})
        for target in dict.fromkeys(o.configuration.target for o in classes.outcomes)
    }
    kinds = {
        kind: sorted({each["kind"] for each in told.pop(kind)}) for kind in ("errors", "notes")
    }
    failed = len(classes.failed)
    return {**told, **kinds, "failed": failed, "by_target": targets, "seconds": round(seconds, 1)}


def _cell(entry: dict[str, Any] | None, demanded: bool) -> str:
    if entry is None:
        return "…"
    unknown = sum(not each["exceeds"] for each in entry["not_run"])
    cell = str(len(entry["classes"]))
    by_target = sorted(set(entry["by_target"].values()))
    if len(entry["classes"]) > 1:
        span = "-".join(map(str, dict.fromkeys((by_target[0], by_target[-1]))))
        cell += f" ({span} a target)"
    if unknown:
        cell += f", {unknown} unknown"
    if entry["failed"]:
        cell += f", {entry['failed']} with {', '.join(entry['errors'])}"
    return f"**{cell}**" if demanded and entry["demand"]["exit"] == 1 else cell


def _demanded(case: Case) -> str:
    return case.demand if isinstance(case.demand, str) else f"{len(case.demand)}, by fusion"


def markdown(results: dict[str, dict[str, Any]], options: argparse.Namespace) -> str:
    """The table."""
    lines = [
        "| kernel | configurations | codes | classes, pinned | demanded | classes, unordered |",
        "|---|---|---|---|---|---|",
    ]
    for case in CASES:
        pinned, free = (results.get(f"{case.name}: {how}") for how in ORDERS)
        if pinned is None and free is None:
            continue
        either = pinned or free
        mark = " ≈" if case.approximate else ""
        lines.append(
            f"| {case.name}{mark} | {either['configurations']} | {either['codes']} "
            f"| {_cell(pinned, True)} | {_demanded(case)} | {_cell(free, False)} |"
        )
    seconds = sum(entry["seconds"] for entry in results.values())
    lines += [
        "",
        f"{len(results)} sweeps, {seconds:.0f} s, seed {options.seed}. Bold: not as demanded. "
        "≈: uses approximate functions, whose model is one for all targets.",
    ]
    return "\n".join(lines) + "\n"


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("-o", "--output", type=Path, default=Path("target/bit_classes"), help="folder to write to")
    add("--only", default="", metavar="TEXT", help="kernels whose name has this in it")
    add("--warps", type=lambda t: tuple(map(int, t.split(","))), default=WARPS)
    add("--targets", type=lambda t: tuple(t.split(",")), default=TARGETS)
    add("--draws", type=int, default=7)
    add("--seed", type=int, default=0)
    add("--jobs", type=int, default=2)
    return parser.parse_args()


def main() -> int:
    """Sweep what is missing; 1 if a pinned kernel is not as demanded."""
    options = _options()
    options.output.mkdir(parents=True, exist_ok=True)
    store = options.output / "bit_classes.json"
    results: dict[str, dict[str, Any]] = json.loads(store.read_text()) if store.exists() else {}
    for case in CASES:
        for how, order in ORDERS.items():
            name = f"{case.name}: {how}"
            if options.only not in case.name or name in results:
                continue
            progress, begun = Progress(), time.monotonic()
            classes = case.sweep(order, options, progress)
            progress.end()
            results[name] = _entry(case, classes, time.monotonic() - begun)
            store.write_text(json.dumps(results, indent=1) + "\n")
            (options.output / "bit_classes.md").write_text(markdown(results, options))
            verdict = results[name]["demand"]
            outcome = ("holds", "broken", "open")[verdict["exit"]] if order else ""
            print(f"{name}: {len(classes)} classes, {classes.codes} codes, "
                  f"{results[name]['seconds']} s {outcome}", flush=True)  # fmt: skip
    broken = [n for n, e in results.items() if n.endswith(": pinned") and e["demand"]["exit"] == 1]
    for name in broken:
        print(f"not as demanded: {name}: {'; '.join(results[name]['demand']['reasons'])}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
