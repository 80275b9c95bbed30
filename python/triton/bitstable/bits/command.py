"""`bitstable bits`: the command line.

# Invariants
- **C1** Standard output has the result alone, as a table or as one JSON document; progress and
  errors go to standard error, progress only where somebody watches.
- **C2** The exit status is [`Exit`]: 0 the demand is met, 1 it is not or a run had errors, 2 there
  is no answer.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import triton.language as tl
from triton.bitstable.bits import kernels
from triton.bitstable.bits.classes import Classes, Exit, read_partition
from triton.bitstable.bits.configurations import TARGETS, WARPS, Configuration, matrix
from triton.bitstable.bits.draws import KINDS
from triton.bitstable.bits.errors import UsageError
from triton.bitstable.bits.sweeping import DRAWS, sweep

_EPILOG = f"""
arguments, one for each parameter of the kernel that is not a constexpr:
  x=f32:4096  x=f32:16x256      a buffer, filled anew on each draw
  out=f32:16=zero               zeros; also iota, one number for all, or 1,2,3
  i=i32:64=0..100               drawn from a range: 0 to 99
  n=608  eps=1e-5  mask=null    scalars, and null pointers
  types: f16 bf16 f32 f64 e4m3 e5m2, i8 to i64, u8 to u64
All buffers are compared after a launch, NaNs as equal whatever their payload.

draws: {", ".join(KINDS)}

demands:
  one             all configurations that run give the same bits
  one-per-target  those of each target do
  any             report only; errors in a run still fail
  FILE.json       a partition: what --json wrote, or [[{{"target": "cuda:80"}}, ...], ...]

exit status: 0 the demand is met; 1 it is not, or a run had errors; 2 wrong usage, or something did
not compile. A configuration that its target has no room for is listed and is no failure.

example:
  bitstable bits kernels.py:row_sum x=f32:16x256 out=f32:16=zero --const M=16 --const N=256 \\
      --const ORDER=inner_tree --num-warps 1,2,4,8 --num-stages 1..4 --fp-fusion on,off
"""
_SWITCH = {"on": True, "off": False, "yes": True, "no": False, "true": True, "false": False}


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bitstable bits",
        description="Group the configurations of a Triton kernel by the bits that they give.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("kernel", metavar="FILE.py:KERNEL", help="a @triton.jit function; @triton.autotune is used")
    add("arguments", nargs="*", metavar="ARG", help="NAME=TYPE:COUNT[=FILL] or NAME=NUMBER")
    add("--grid", default="1", metavar="G", help="such as 4, '4, 2' or 'cdiv(n, BLOCK)' (1)")
    add("--num-warps", type=_integers, metavar="LIST", help="such as 1,2,4,8 (default) or 1..4")
    add("--num-stages", type=_integers, metavar="LIST", help="(3)")
    add("--fp-fusion", type=_switches, default=(True, False), metavar="LIST", help="(on,off)")
    add(
        "--aligned",
        type=_switches,
        default=(True,),
        metavar="LIST",
        help="whether pointers are aligned to 16 bytes (on)",
    )
    add("--targets", type=_words, default=TARGETS, metavar="LIST", help=f"({','.join(TARGETS)})")
    add(
        "--const",
        action="append",
        default=[],
        metavar="NAME=A,B,…",
        help="a constant of the kernel, and the values to sweep it over",
    )
    add("--draws", type=_draws, default=DRAWS, metavar="N|KINDS", help=f"({DRAWS})")
    add("--seed", type=int, default=0, metavar="S", help="of the draws (0)")
    add(
        "--demand", default="one", metavar="D", help="one (default), one-per-target, any, or a file"
    )
    add("--jobs", type=int, default=os.cpu_count() or 1, metavar="J", help="processes (all cores)")
    add("--json", action="store_true", help="print JSON")
    add("--strict", action="store_true", help="count as errors what is harmless in practice")
    add("--no-races", action="store_true", help="do not look for data races")
    add("--schedules", type=int, default=1, metavar="K", help="run under so many schedules (1)")
    add("--mma", default="hardware", metavar="MODEL", help="hardware (default), exact, sequential")
    return parser


def _integers(text: str) -> tuple[int, ...]:
    found: list[int] = []
    for part in text.split(","):
        if match := re.fullmatch(r"(\d+)\.\.(\d+)", part):
            found += range(int(match[1]), int(match[2]) + 1)
        elif part.isdecimal():
            found.append(int(part))
        else:
            raise argparse.ArgumentTypeError(f"{part!r} is neither a number nor a range LO..HI")
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} holds no number")
    return tuple(found)


def _switches(text: str) -> tuple[bool, ...]:
    try:
        return tuple(_SWITCH[part] for part in text.split(","))
    except KeyError as error:
        raise argparse.ArgumentTypeError(f"{error.args[0]!r} is neither on nor off") from None


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split(","))


def _draws(text: str) -> Any:
    return int(text) if text.isdecimal() else text


def _constants(settings: list[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for setting in settings:
        name, equals, values = setting.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"--const {setting}: write NAME=VALUE or NAME=A,B")
        if name in found:
            raise UsageError(f"--const {name}: given twice; write {name}=A,B")
        found[name] = [_constant(value) for value in values.split(",")]
    return found


def _constant(text: str) -> Any:
    """A literal of Python, a type of Triton's language, or a word."""
    if text.startswith("tl."):
        value = getattr(tl, text.removeprefix("tl."), None)
        if not isinstance(value, tl.dtype):
            raise UsageError(f"--const: Triton has no type {text}")
        return value
    if text in ("none", "true", "false"):
        return {"none": None, "true": True, "false": False}[text]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _configurations(options: argparse.Namespace, tuned: Any) -> list[Configuration]:
    axes = {
        "targets": options.targets,
        "fp_fusion": options.fp_fusion,
        "aligned": options.aligned,
        "constants": _constants(options.const),
    }
    if tuned and options.num_warps is None and options.num_stages is None:
        return matrix(configs=tuned, **axes)
    warps, stages = options.num_warps or WARPS, options.num_stages or (3,)
    return matrix(num_warps=warps, num_stages=stages, **axes)


def _demand(text: str) -> Any:
    return read_partition(Path(text)) if text.endswith(".json") else text


class Progress:
    """One line on standard error, where that is a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stderr.isatty()
        self._begun = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """So many of so many."""
        if self._shown:
            seconds = time.monotonic() - self._begun
            filled = 24 * done // total
            bar = "█" * filled + "░" * (24 - filled)
            print(f"\r\033[K{bar} {done}/{total} {seconds:.0f} s", end="", file=sys.stderr)
            sys.stderr.flush()

    def end(self) -> None:
        """Take the line away."""
        if self._shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _run(options: argparse.Namespace, progress: Callable[[int, int], None]) -> tuple[Classes, Any]:
    demand = _demand(options.demand)
    kernel = kernels.Place.parse(options.kernel).load()
    _, tuned = kernels.untuned(kernel)
    if options.jobs < 1:
        raise UsageError("--jobs: at least 1")
    classes = sweep(
        kernel,
        options.arguments,
        options.grid,
        _configurations(options, tuned),
        options.draws,
        seed=options.seed,
        jobs=options.jobs,
        progress=progress,
        strict=options.strict,
        races=not options.no_races,
        schedules=options.schedules,
        mma=options.mma,
    )
    return classes, demand


def main(argv: list[str] | None = None) -> int:
    """Run the command; the exit status."""
    try:
        options = _parser().parse_intermixed_args(argv)
    except SystemExit as ended:  # after --help, or a message on standard error
        return int(Exit.UNKNOWN) if ended.code else int(Exit.HOLDS)
    progress = Progress()
    try:
        classes, demand = _run(options, progress)
        verdict = classes.verdict(demand)
        progress.end()
        if options.json:
            print(json.dumps(classes.to_json(demand), indent=2))
        else:
            print(classes)
            word = {Exit.HOLDS: "holds", Exit.BROKEN: "does not hold", Exit.UNKNOWN: "is open"}
            print(f"\ndemand {options.demand}: {word[verdict.exit]}")
            for reason in verdict.reasons:
                print(f"  {reason}")
    except UsageError as error:
        progress.end()
        print(f"bitstable bits: error: {error}", file=sys.stderr)
        return int(Exit.UNKNOWN)
    except KeyboardInterrupt:
        progress.end()
        print("bitstable bits: interrupted", file=sys.stderr)
        return 130
    return int(verdict.exit)
