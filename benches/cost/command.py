"""The command line of the measuring bench.

# Invariants
- **C1** Standard output has the report alone, or one JSON document; progress and errors go to
  standard error.
- **C2** Exit status: 0; 1 if stock compiles what ours does not; 2 for wrong usage, or if something
  could not be measured.
"""

from __future__ import annotations

import argparse
import dataclasses
import gzip
import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from cost import peer
from cost.building import ROOT, Job, Triton, run
from cost.figures import Row, faults, regressions, summary
from cost.report import report
from cost.suite import CASES, Case

TARGETS = ("sm_80", "sm_90", "sm_100", "gfx942", "gfx950")
WARPS = (1, 2, 4, 8, 16, 32)
CACHE = ROOT / ".cache" / "cost"
PEER = CACHE / "peer" / "bin" / "python"

_EPILOG = f"""
examples:
  python benches/cost --targets sm_90 --warps 4 --no-peer     a minute: what does a change do
  python benches/cost --make-peer {PEER.parents[1].relative_to(ROOT)}
  python benches/cost --json cost.json                        everything
  python benches/cost --from cost.json --svg plots            draw it, in a Python with matplotlib

Stock is the unordered code of the Triton that runs this: to the byte what stock Triton makes.
What was compiled is kept in {CACHE.relative_to(ROOT)}, which may be deleted at any time.

exit status: 0; 1 if stock compiles a kernel that ours does not; 2 wrong usage,
or something that compiled could not be measured
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python benches/cost",
        description="What pinned reductions cost beside stock's unordered ones and the peer's.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--targets", type=_words, default=TARGETS, metavar="LIST", help=",".join(TARGETS))
    add("--warps", type=_numbers, default=WARPS, metavar="LIST", help="(1,2,4,8,16,32)")
    add("--filter", default="", metavar="TEXT", help="only kernels whose name contains this")
    add("--peer", metavar="PYTHON", help=f"a Python with {peer.REQUIREMENT} (one made before)")
    add("--no-peer", action="store_true", help="leave the peer out")
    add("--make-peer", type=Path, metavar="FOLDER", help="make a virtualenv with it, and end")
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="processes (all cores)")
    add("--json", metavar="FILE", help="write every figure; - for standard output, without report")
    add("--svg", type=Path, metavar="FOLDER", help="draw pinned against free (needs matplotlib)")
    add("--asm", type=Path, metavar="FOLDER", help="write the code that was compared")
    add("--from", dest="read", type=Path, metavar="FILE", help="report on what --json wrote")
    add("--table", action="store_true", help="a line for every kernel, not for losses alone")
    add("--list", action="store_true", help="the kernels' names, and end")
    return parser


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no list of numbers") from None


def _told(case: Case, target: str, warps: int, order: str | None) -> dict[str, Any]:
    return {
        "kernel": case.kernel,
        "signature": case.signature,
        "constants": case.constants,
        "target": target,
        "warps": warps,
        "order": order,
    }


def measure(
    cases: list[Case],
    targets: tuple[str, ...],
    warps: tuple[int, ...],
    other: Triton | None,
    slots: int,
    progress: Any,
) -> list[Row]:
    """Every case at every target and number of warps, each way."""
    mine = Triton(sys.executable)
    ways = {"stock": (mine, None), "ours": (mine, "inner_tree")}
    if other:
        ways["peer"] = (other, None)
    places = [(case, target, n) for case in cases for target in targets for n in warps]
    jobs = [
        Job(triton, _told(case, target, n, order))
        for case, target, n in places
        for triton, order in ways.values()
    ]
    answers = iter(run(jobs, slots, CACHE / "results", progress))
    return [
        Row(case.name, target, n, case.contiguous, {way: next(answers) for way in ways})
        for case, target, n in places
    ]


def _write_code(rows: list[Row], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for row in rows:
        for way, answer in row.ways.items():
            if "text" in answer:
                kept = json.loads(gzip.decompress(Path(answer["text"]).read_bytes()))
                name = re.sub(r"[^\w.=*+-]+", "-", f"{row.kernel}-{row.target}-w{row.warps}-{way}")
                (folder / f"{name}.s").write_text(kept["asm"])


def _document(rows: list[Row]) -> dict[str, Any]:
    lines = [dataclasses.asdict(row) for row in rows]
    for line in lines:
        for answer in line["ways"].values():
            answer.pop("text", None)
    return {"means": summary(rows), "rows": lines}


def _peer(options: argparse.Namespace, folder: Path) -> Triton | None:
    if options.no_peer:
        return None
    if options.peer:
        return peer.peer(options.peer, folder)
    if PEER.exists():
        return peer.peer(str(PEER), folder)
    print(f"no peer: --make-peer {PEER.parents[1]} makes one", file=sys.stderr)
    return None


def _check(options: argparse.Namespace) -> list[Case]:
    cases = [case for case in CASES if options.filter in case.name]
    if not cases:
        raise ValueError(f"no kernel's name contains {options.filter!r}: see --list")
    for target in options.targets:
        if target not in TARGETS:
            raise ValueError(f"--targets: {target} is none of {', '.join(TARGETS)}")
    for warps in options.warps:
        if warps not in WARPS:
            raise ValueError(f"--warps: {warps} is none of {', '.join(map(str, WARPS))}")
    if options.jobs < 1:
        raise ValueError("--jobs: at least 1")
    return cases


def _read(options: argparse.Namespace) -> list[Row]:
    try:
        rows = [Row(**line) for line in json.loads(options.read.read_text())["rows"]]
    except (OSError, KeyError, TypeError, json.JSONDecodeError) as error:
        raise ValueError(f"{options.read} is not what --json wrote: {error}") from None
    return [
        row
        for row in rows
        if options.filter in row.kernel
        and row.target in options.targets
        and row.warps in options.warps
    ]


def _measured(options: argparse.Namespace) -> list[Row]:
    from triton.bitstable.bits.command import Progress

    cases = _check(options)
    progress = Progress()
    try:
        with tempfile.TemporaryDirectory(prefix="bitstable-peer-") as folder:
            other = _peer(options, Path(folder))
            return measure(cases, options.targets, options.warps, other, options.jobs, progress)
    finally:
        progress.end()


def _run(options: argparse.Namespace) -> int:
    rows = _read(options) if options.read else _measured(options)
    if options.asm:
        _write_code(rows, options.asm)
    if options.svg:
        from cost import plot

        plot.draw(rows, options.svg)
    if options.json:
        text = json.dumps(_document(rows), indent=1) + "\n"
        if options.json == "-":
            sys.stdout.write(text)
        else:
            Path(options.json).write_text(text)
    if options.json != "-":
        print(report(rows, options.table))
    return 2 if faults(rows) else 1 if regressions(rows) else 0


def main(argv: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    options = _parser().parse_args(argv)
    try:
        if options.list:
            print("\n".join(case.name for case in CASES))
            return 0
        if options.make_peer:
            print(peer.make(options.make_peer))
            return 0
        return _run(options)
    except (ValueError, peer.PeerError, ImportError) as error:
        print(f"benches/cost: error: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # who reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("benches/cost: interrupted", file=sys.stderr)
        return 130
