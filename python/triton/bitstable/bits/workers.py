"""Worker processes: groups of configurations in, outcomes out.

# Idea
A worker is a fresh interpreter, told on its standard input which kernel to import and which group
to run. It shares nothing with the parent but Triton's cache on disk, so a compiler that aborts
takes a worker with it and not the sweep: the group is then run one configuration at a time, and
what still aborts is an outcome.

# Invariants
- **W1** The outcomes are those of one process, in the same order.
- **W2** The pipe carries outcomes alone. What a kernel prints goes to standard error; what a
  compiler that fails prints is thousands of lines, of which the one with the reason is kept.
- **W3** No worker outlives the sweep, however it ends.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, BinaryIO

import triton
from triton.bitstable.bits.configurations import Configuration
from triton.bitstable.bits.errors import UsageError
from triton.bitstable.bits.execution import Job, Outcome, Runner, Status
from triton.bitstable.bits.kernels import Place
from triton.bitstable.errors import NativeLibraryError

Group = list[Configuration]
# A failed assertion of LLVM's, or MLIR's word for a pass that failed.
_REASON = re.compile(
    r"Assertion `.*' failed|LLVM ERROR: .*|Pipeline failed while executing \[`\w+`"
)
_SERVE = "from triton.bitstable.bits.workers import serve; serve()"


def run(
    place: Place,
    job: Job,
    groups: list[Group],
    count: int,
    done: Callable[[list[Outcome]], None],
) -> list[Outcome]:
    """Run all groups on `count` workers; `done` is called after each, from any thread."""
    try:
        setup = pickle.dumps((list(sys.path), place, job))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise UsageError(
            f"several processes need a grid and constants that can be pickled ({error}): "
            "write the grid as text, or take one process"
        ) from None
    pool = _Pool(setup, groups, done)
    threads = [threading.Thread(target=pool.serve) for _ in range(min(count, len(groups)))]
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    except BaseException:
        pool.stop()
        raise
    if pool.failures:
        raise pool.failures[0]
    return [outcome for at in range(len(groups)) for outcome in pool.outcomes[at]]


class _Pool:
    """Groups that wait, workers that run, outcomes by the group's number."""

    def __init__(self, setup: bytes, groups: list[Group], done: Callable[..., None]) -> None:
        self._setup = setup
        self._done = done
        self._waiting: queue.SimpleQueue[tuple[int, Group]] = queue.SimpleQueue()
        for numbered in enumerate(groups):
            self._waiting.put(numbered)
        self._stopped = threading.Event()
        self._workers: set[_Worker] = set()
        self.outcomes: dict[int, list[Outcome]] = {}
        self.failures: list[BaseException] = []

    def serve(self) -> None:
        """One worker's thread."""
        worker: _Worker | None = None
        try:
            while not self._stopped.is_set():
                try:
                    at, group = self._waiting.get_nowait()
                except queue.Empty:
                    break
                worker, outcomes = self._run(worker, group)
                self.outcomes[at] = outcomes
                self._done(outcomes)
        except BaseException as error:
            self.failures.append(error)
            self.stop()
        finally:
            if worker is not None:
                self._end(worker)

    def _run(self, worker: _Worker | None, group: Group) -> tuple[_Worker | None, list[Outcome]]:
        if worker is None:
            worker = _Worker(self._setup)
            self._workers.add(worker)
        reply = worker.ask(group)
        if isinstance(reply, Exception):
            raise reply
        if reply is not None:
            return worker, worker.explained(reply)
        died = self._end(worker)
        if self._stopped.is_set():
            return None, []
        if len(group) == 1:
            return None, worker.explained([Outcome(group[0], Status.REFUSED, died)])
        worker, outcomes = None, []
        for each in group:
            worker, one = self._run(worker, [each])
            outcomes += one
        return worker, outcomes

    def _end(self, worker: _Worker) -> str:
        ended = worker.end()
        self._workers.discard(worker)
        return ended

    def stop(self) -> None:
        """End everything."""
        self._stopped.set()
        for worker in list(self._workers):
            worker.process.kill()


class _Worker:
    """One process, and a file with what it prints."""

    def __init__(self, setup: bytes) -> None:
        # The same Triton, wherever it was imported from.
        home = str(Path(triton.__file__).parents[1])
        paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as we do
        self._read = 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        with contextlib.suppress(OSError):  # it has died: asking it will show that
            self.process.stdin.write(setup)
            self.process.stdin.flush()

    def ask(self, group: Group) -> list[Outcome] | Exception | None:
        """Its answer, or what ends the sweep; none if it died."""
        try:
            pickle.dump(group, self.process.stdin)
            self.process.stdin.flush()
            return pickle.load(self.process.stdout)
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def explained(self, outcomes: list[Outcome]) -> list[Outcome]:
        """The outcomes, refusals with what the compiler printed about them."""
        descriptor = self._printed.fileno()
        printed = os.pread(descriptor, os.fstat(descriptor).st_size - self._read, self._read)
        self._read += len(printed)
        text = printed.decode(errors="replace")
        if not any(outcome.status is Status.REFUSED for outcome in outcomes):
            sys.stderr.write(text)
            return outcomes
        said = _REASON.search(text)
        if said is None:
            return outcomes
        return [
            replace(outcome, reason=f"{outcome.reason}: {said[0].strip()}")
            if outcome.status is Status.REFUSED
            else outcome
            for outcome in outcomes
        ]

    def end(self) -> str:
        """End it; in words, how it ended."""
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.stdout.close()
        code = self.process.wait()
        if code >= 0:
            return f"the process ended with status {code}"
        return f"the process was ended by {signal.Signals(-code).name}"


def serve() -> None:
    """A worker's whole life."""
    requests = sys.stdin.buffer
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent has it too, and ends us
    replies = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    path, place, job = pickle.load(requests)
    sys.path[:] = [*path, *(each for each in sys.path if each not in path)]
    runner: Runner | None = None
    while (group := _next(requests)) is not None:
        try:
            runner = runner or Runner(place.load(), job)
            reply: Any = runner.run(group)
        except (UsageError, NativeLibraryError) as error:
            reply = error
        pickle.dump(reply, replies)
        replies.flush()


def _next(requests: BinaryIO) -> Any:
    try:
        return pickle.load(requests)
    except EOFError:
        return None
