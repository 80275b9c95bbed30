"""Worker processes: each job goes to a process of the Triton it wants, and comes back as figures.

# Idea
A thread a slot. A slot keeps one process for every Triton that it was asked for, writes a job to
it, and waits for a line. A process that ends without an answer (a failed assertion of LLVM's) or
that takes too long costs the one job that it had.

# Invariants
- **B1** Every job has exactly one answer, in the order of the jobs.
- **B2** Nothing outlives [`run`]: processes end with it, however it ends.
"""

from __future__ import annotations

import json
import os
import queue
import re
import subprocess
import tempfile
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SECONDS_A_JOB = 300
"""Beyond which a compile is given up."""

_DEATH = re.compile(r"Assertion `.*' failed|LLVM ERROR: .*|\w*Error: .*")


@dataclass(frozen=True)
class Triton:
    """A Python that has a Triton, and where the kernels are that it can read."""

    python: str
    kernels: Path = ROOT / "tests"
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Job:
    """What is asked of a worker."""

    triton: Triton
    told: dict[str, Any]


@dataclass
class Process:
    """A worker, started when it is first needed."""

    triton: Triton
    cache: Path
    scratch: str
    """Where Triton keeps what it compiles, for as long as this run lasts."""
    _child: subprocess.Popen[str] | None = None
    _printed: Any = field(default_factory=tempfile.TemporaryFile)

    def ask(self, told: dict[str, Any]) -> dict[str, Any]:
        """The answer to one job."""
        child = self._child or self._start()
        late = threading.Event()
        timer = threading.Timer(SECONDS_A_JOB, lambda: (late.set(), child.kill()))
        timer.start()
        try:
            child.stdin.write(json.dumps(told) + "\n")
            child.stdin.flush()
            line = child.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            timer.cancel()
        if line:
            return json.loads(line)
        self.end()
        if late.is_set():
            return {"error": f"took more than {SECONDS_A_JOB} s"}
        return {"error": f"compiler died: {self._reason()}"}

    def _start(self) -> subprocess.Popen[str]:
        self._printed.truncate(0)
        environment = {
            name: value
            for name, value in os.environ.items()
            if name != "TRITON_STRICT_REDUCTION_ORDERING"
        }
        environment |= {
            "PYTHONPATH": f"{ROOT / 'benches'}{os.pathsep}{self.triton.kernels}",
            "TRITON_CACHE_DIR": self.scratch,
            "TRITON_ALWAYS_COMPILE": "1",
            "TRITON_DEFAULT_FP_FUSION": "1",
            **dict(self.triton.environment),
        }
        self._child = subprocess.Popen(
            [self.triton.python, "-m", "cost.worker", str(self.cache)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            text=True,
            env=environment,
        )
        return self._child

    def _reason(self) -> str:
        self._printed.seek(0)
        text = self._printed.read().decode(errors="replace")
        found = _DEATH.findall(text)
        return found[-1].strip() if found else "no reason given"

    def end(self) -> None:
        """Let it go; another job starts it again."""
        if self._child:
            self._child.kill()
            self._child.wait()
            for pipe in (self._child.stdin, self._child.stdout):
                pipe.close()
            self._child = None


def run(
    jobs: list[Job], slots: int, cache: Path, progress: Callable[[int, int], None]
) -> list[dict[str, Any]]:
    """The answers, in the order of the jobs."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for at in range(len(jobs)):
        waiting.put(at)
    answers: list[dict[str, Any]] = [{} for _ in jobs]
    done: queue.SimpleQueue[Exception | None] = queue.SimpleQueue()
    processes: list[Process] = []
    stop = threading.Event()
    scratch = tempfile.TemporaryDirectory(prefix="bitstable-cost-", ignore_cleanup_errors=True)

    def work() -> None:
        mine: dict[Triton, Process] = {}
        try:
            while not stop.is_set():
                at = waiting.get_nowait()
                job = jobs[at]
                if job.triton not in mine:
                    mine[job.triton] = Process(job.triton, cache, scratch.name)
                    processes.append(mine[job.triton])
                answers[at] = mine[job.triton].ask(job.told)
                done.put(None)
        except queue.Empty:
            pass
        except Exception as error:
            done.put(error)

    threads = [threading.Thread(target=work, daemon=True) for _ in range(min(slots, len(jobs)))]
    for thread in threads:
        thread.start()
    try:
        for count in range(len(jobs)):
            if error := done.get():
                raise error
            progress(count + 1, len(jobs))
    finally:
        stop.set()
        for process in processes:
            process.end()
        scratch.cleanup()
    return answers
