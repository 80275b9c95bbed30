"""A corpus on disk: what it has, what it lacks, and worker processes that fill it.

# Idea
| path | content |
|---|---|
| `corpus.json` | draws, seed, Triton's version: what every label depends on |
| `manifest/KERNEL.jsonl` | a line for each configuration, appended when it is done |
| `ptx/DIGEST.ptx` | each PTX text once |

A worker is a fork that compiles and runs configurations of one case and sends lines; the parent
alone writes manifests. A compiler that aborts takes its worker with it, and one configuration.

# Invariants
- **B1** Whatever ends a build, the next one goes on: a line is there in full, or not at all.
- **B2** A folder has one seed, one number of draws and one version of Triton; another is refused.
- **B3** Which configurations a slice has is a function of their names and the seed.
"""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import re
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import triton
from triton.bitstable.bits.command import Progress
from triton.bitstable.errors import NativeLibraryError
from triton.runtime.jit import JITFunction

from corpus.cases import Case, Configuration
from corpus.compiling import Compiler
from corpus.running import SCHEME, Bench, Label, scalars

# A failed assertion of LLVM's, or MLIR's word for a pass that failed.
_REASON = re.compile(
    r"Assertion `.*' failed|LLVM ERROR: .*|Pipeline failed while executing \[`\w+`"
)


class CorpusError(Exception):
    """The folder is not what was asked for."""


@dataclass(frozen=True)
class Plan:
    """What is asked of a build. `part` is the K of `--slice K/N`, which keeps one in N."""

    out: Path
    seed: int = 0
    draws: int = 20
    only: str = ""
    most: int | None = None
    part: int = 0
    parts: int = 1

    def chosen(self, cases: Iterable[Case]) -> list[tuple[Case, list[Configuration]]]:
        """The configurations of each case, in an order that compiles like things together."""
        found = [
            (case, list(enumerate(case.configurations())))
            for case in cases
            if self.only in case.family
        ]
        found = [(case, [c for c in each if self._keeps(case, c[1])]) for case, each in found]
        total = sum(len(each) for _, each in found)
        share = 1.0 if self.most is None or not total else min(1.0, self.most / total)
        chosen = []
        for case, each in found:
            ranked = sorted(each, key=lambda numbered: self._rank(case, numbered[1]))
            kept = sorted(
                ranked[: max(2, round(len(each) * share))], key=lambda numbered: numbered[0]
            )
            chosen.append((case, [configuration for _, configuration in kept]))
        return [(case, each) for case, each in chosen if each]

    def _keeps(self, case: Case, configuration: Configuration) -> bool:
        return self._rank(case, configuration) % self.parts == self.part

    def _rank(self, case: Case, configuration: Configuration) -> int:
        text = f"{self.seed}\n{case.name}\n{axes_text(configuration.axes())}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")


def axes_text(axes: dict[str, Any]) -> str:
    """A configuration as one string; equal ones are equal."""
    return json.dumps(axes, sort_keys=True)


def lines(folder: Path, only: str = "") -> Iterator[dict[str, Any]]:
    """What a corpus has; a line that was cut off by a crash is left out."""
    for path in sorted((folder / "manifest").glob("*.jsonl")):
        if only in path.stem:
            for line in path.read_text().splitlines():
                try:
                    yield json.loads(line)
                except json.JSONDecodeError:
                    continue


def _forget_paths(cases: Iterable[Case]) -> None:
    """Let debug information name a kernel's file without the folder it happens to be in."""
    for case in cases:
        for function in vars(sys.modules[case.kernel.__module__]).values():
            if isinstance(function, JITFunction):
                function.file_name = Path(function.file_name).name


class Builder:
    """Builds one corpus."""

    def __init__(self, plan: Plan, cases: Iterable[Case]) -> None:
        self.plan = plan
        self.cases = list(cases)
        self.seconds = 0.0
        _forget_paths(self.cases)
        self._open()

    def _open(self) -> None:
        folder = self.plan.out
        for name in ("manifest", "ptx"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        told = {
            "seed": self.plan.seed,
            "draws": self.plan.draws,
            "triton": triton.__version__,
            "scheme": SCHEME,
        }
        path = folder / "corpus.json"
        if not path.exists():
            path.write_text(json.dumps(told) + "\n")
        elif (there := json.loads(path.read_text())) != told:
            raise CorpusError(f"{folder} was built with {there}, not {told}: take another folder")
        for path in (folder / "manifest").glob("*.jsonl"):
            if (text := path.read_text()) and not text.endswith("\n"):  # cut off: B1
                path.write_text(text[: text.rfind("\n") + 1])

    def run(self, jobs: int, progress: Progress) -> None:
        """Do what is not done yet."""
        done = {(e["case"], axes_text(e["configuration"])) for e in lines(self.plan.out)}
        chosen = self.plan.chosen(self.cases)
        total = sum(len(each) for _, each in chosen)
        waiting = [
            (case, [c for c in each if (case.name, axes_text(c.axes())) not in done])
            for case, each in chosen
        ]
        waiting = [(case, each) for case, each in waiting if each]
        left = sum(len(each) for _, each in waiting)
        began = time.monotonic()
        count = total - left
        workers: dict[Connection, _Worker] = {}
        try:
            while waiting or workers:
                while waiting and len(workers) < jobs:
                    worker = _Worker(self.plan, *waiting.pop(0))
                    workers[worker.pipe] = worker
                for pipe in wait(list(workers)):
                    worker = workers[pipe]
                    line = worker.take()
                    if line is not None:
                        self._write(line)
                        count += 1
                        progress(count, total)
                    if worker.ended:
                        del workers[pipe]
                        worker.process.join()
                        if worker.left:
                            waiting.insert(0, (worker.case, worker.left))
        finally:
            for worker in workers.values():
                worker.process.kill()
                worker.process.join()
            self.seconds += time.monotonic() - began

    def _write(self, line: dict[str, Any]) -> None:
        with (self.plan.out / "manifest" / f"{line['kernel']}.jsonl").open("a") as stream:
            stream.write(json.dumps(line) + "\n")


class _Worker:
    """A process on some configurations of one case."""

    def __init__(self, plan: Plan, case: Case, left: list[Configuration]) -> None:
        self.case = case
        self.left = left
        self.ended = False
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as we do
        context = multiprocessing.get_context("fork")
        self.pipe, theirs = context.Pipe(duplex=False)
        arguments = plan, case, left, theirs, self._printed.fileno()
        self.process = context.Process(target=_work, args=arguments, daemon=True)
        self.process.start()
        theirs.close()

    def take(self) -> dict[str, Any] | None:
        """The next line; after a crash, one that says so."""
        try:
            line = self.pipe.recv()
        except EOFError:
            self.ended = True
            if not self.left:
                return None
            configuration = self.left.pop(0)
            return {**_head(self.case, configuration), "label": None, "errors": [self._reason()]}
        if isinstance(line, CorpusError):
            raise line
        self.left.pop(0)
        return line

    def _reason(self) -> str:
        self._printed.seek(0)
        text = self._printed.read().decode(errors="replace")
        found = _REASON.search(text)
        return f"compiler-died: {found[0].strip() if found else 'no reason given'}"


def _work(
    plan: Plan, case: Case, configurations: list[Configuration], pipe: Connection, printed: int
) -> None:
    os.dup2(printed, 2)
    compiler, bench = Compiler(case), Bench(case, plan.draws, plan.seed)
    for configuration in configurations:
        try:
            pipe.send(_one(plan, case, configuration, compiler, bench))
        except (ImportError, NativeLibraryError) as error:  # installed anew under our feet
            pipe.send(CorpusError(f"nothing can be built: {error}"))
            break
    pipe.close()


def _head(case: Case, configuration: Configuration) -> dict[str, Any]:
    return {"kernel": case.family, "case": case.name, "configuration": configuration.axes()}


def _one(
    plan: Plan, case: Case, configuration: Configuration, compiler: Compiler, bench: Bench
) -> dict[str, Any]:
    head = _head(case, configuration)
    began = time.perf_counter()
    try:
        compiled = compiler.compile(configuration)
    except (ImportError, NativeLibraryError):
        raise
    except Exception as error:  # whatever a compiler raises
        while error.__cause__ is not None:
            error = error.__cause__
        told = (str(error).splitlines() or [""])[0]
        return {**head, "label": None, "errors": [f"not-compiled: {type(error).__name__}: {told}"]}
    between = time.perf_counter()
    grid = case.extent(configuration)
    label: Label = bench.label(compiled, grid)
    ended = time.perf_counter()
    return {
        **head,
        "ptx": _kept(plan.out / "ptx", compiled.ptx),
        "entry": compiled.entry,
        "grid": list(grid),
        "threads": compiled.threads,
        "shared": compiled.shared,
        "scalars": scalars(case),
        "label": label.digest,
        "errors": list(label.errors),
        "ms": [round(1000 * (between - began)), round(1000 * (ended - between))],
    }


def _kept(folder: Path, ptx: str) -> str:
    """The name of the file that has this text, written if there is none."""
    name = f"{hashlib.sha256(ptx.encode()).hexdigest()[:32]}.ptx"
    if not (folder / name).exists():
        new = folder / f"{name}.{os.getpid()}"
        new.write_text(ptx)
        new.replace(folder / name)
    return name
