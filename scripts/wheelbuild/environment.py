"""The virtualenv: created once, filled from pins, left alone while nothing has changed."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path

from wheelbuild.base import sha256
from wheelbuild.errors import BuildError
from wheelbuild.progress import Step, run

_STAMP = "bitstable-stamp.json"


def create(directory: Path, python: Path, log: Path, step: Step) -> Path:
    """A virtualenv of `python` at `directory`; its interpreter."""
    inside = directory / "bin" / "python"
    if inside.exists() and _version(inside) == _version(python) and _has_pip(inside):
        step.outcome = "present"
        return inside
    run(
        [python, "-m", "venv", "--clear", directory],
        log,
        f"creating {directory}",
        help="apt-get install python3-venv, if it is Debian's Python",
    )
    return inside


def _version(python: Path) -> str:
    probe = [python, "-c", "import sys; print(sys.version)"]
    return subprocess.run(probe, capture_output=True, text=True, check=False).stdout


def _has_pip(python: Path) -> bool:
    return subprocess.run([python, "-m", "pip", "--version"], capture_output=True).returncode == 0


def pip_python(cache: Path, log: Path, step: Step, running: Path) -> Path:
    """An interpreter with pip, for downloading without an environment to install into."""
    return running if _has_pip(running) else create(cache / "tools", running, log, step)


def install(directory: Path, wheel: Path, requirements: Path, log: Path, step: Step) -> None:
    """Install the pinned packages and our wheel, unless exactly these are there."""
    python = directory / "bin" / "python"
    stamp = directory / _STAMP
    wanted = {
        "wheel": sha256(wheel),
        "requirements": hashlib.sha256(requirements.read_bytes()).hexdigest(),
    }
    if stamp.exists() and json.loads(stamp.read_text()) == wanted:
        step.outcome = "up to date"
        return
    stamp.unlink(missing_ok=True)
    pip = [python, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    help = "check the network and pip's settings (pip config list), then run this again"
    step.detail = lambda: requirements.name
    run([*pip, "--requirement", requirements], log, "installing pinned packages", help=help)
    step.detail = lambda: wheel.name[:28]
    run([*pip, "--no-deps", "--force-reinstall", wheel], log, f"installing {wheel.name}")
    run([python, "-m", "pip", "check"], log, "pip check")
    stamp.write_text(json.dumps(wanted))
    step.outcome = str(directory.name)


def check_import(python: Path, version: str) -> None:
    """The installed package is ours, and its native library loads."""
    probe = "import triton, triton.bitstable as b; print(triton.__version__, b.native_version())"
    done = subprocess.run([python, "-c", probe], capture_output=True, text=True, check=False)
    expected = f"3.9.0+bitstable.{version} {version}"
    if done.stdout.strip() != expected:
        raise BuildError(
            f"the installed wheel does not work: expected {expected!r}\n{done.stdout}{done.stderr}"
        )
