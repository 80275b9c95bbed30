"""What the user sees of a build: one line a step, moving while it runs on a terminal."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from wheelbuild.errors import BuildError

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_PERIOD = 0.1


class Step:
    """A running step; `detail` is shown beside the clock."""

    def __init__(self, title: str) -> None:
        self.title = title
        self.detail: Callable[[], str] = str
        self.outcome = "done"
        self._begin = time.monotonic()

    def line(self, mark: str, word: str) -> str:
        """The step as one line of the display."""
        seconds = time.monotonic() - self._begin
        return f"{mark} {self.title:<34} {word:<28} {seconds:6.1f} s"


@contextmanager
def step(title: str) -> Iterator[Step]:
    """Show a step while the body runs, and how long it took after."""
    running = Step(title)
    live = sys.stdout.isatty()
    finished = threading.Event()

    def animate() -> None:
        frame = 0
        while not finished.wait(_PERIOD):
            mark = _FRAMES[frame % len(_FRAMES)]
            print("\r" + running.line(mark, running.detail()), end="", flush=True)
            frame += 1

    thread = threading.Thread(target=animate, daemon=True)
    if live:
        thread.start()
    try:
        yield running
    except BaseException:
        running.outcome = "failed"
        raise
    finally:
        finished.set()
        if live:
            thread.join()
        mark = "✗" if running.outcome == "failed" else "✓"
        print(("\r" if live else "") + running.line(mark, running.outcome), flush=True)


def run(
    command: Sequence[str | Path],
    log: Path,
    what: str,
    *,
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
    help: str | None = None,
) -> None:
    """Run a command with its output in `log`; if it fails, say so with the end of the log."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("wb") as output:
        try:
            done = subprocess.run(
                [str(part) for part in command],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=env,
                cwd=cwd,
                check=False,
            )
        except OSError as error:
            raise BuildError(f"{what}: cannot run {command[0]}: {error.strerror}", help) from None
    if done.returncode:
        tail = "\n".join(log.read_text(errors="replace").splitlines()[-15:])
        raise BuildError(f"{what} failed; the end of {log}:\n{tail}", help)
