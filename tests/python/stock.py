"""Stock Triton beside ours: its own Python files from the base wheel, its binaries from ours.

The binaries of the two are the same bytes (`test_wheel_contents.py`), so they are linked, not
unpacked again: half a gigabyte less, and seconds.
"""

import os
import subprocess
import sys
from pathlib import Path

import triton

from checkout import base_wheel

INSTALLED = Path(triton.__file__).parent


def unpack(directory):
    """Put stock Triton under `directory`; the folder to put on the path."""
    with base_wheel() as wheel:
        for entry in wheel.infolist():
            if entry.is_dir() or not entry.filename.startswith("triton/"):
                continue
            target = directory / entry.filename
            target.parent.mkdir(parents=True, exist_ok=True)
            ours = INSTALLED.parent / entry.filename
            if entry.filename.endswith(".py") or not ours.exists():
                target.write_bytes(wheel.read(entry))
            else:
                target.symlink_to(ours)
    return directory


def run(script, *arguments, path=None, **variables):
    """Run a script with this Python, and with `path` before everything installed."""
    environment = {**os.environ, **variables}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, script, *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
