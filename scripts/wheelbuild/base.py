"""The wheel we start from: Triton's own, from PyPI, by name, version and hash."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from dataclasses import dataclass
from pathlib import Path

from wheelbuild.errors import BuildError
from wheelbuild.progress import Step

TRITON_VERSION = "3.9.0"
_PLATFORMS = ("manylinux_2_27_x86_64", "manylinux_2_28_x86_64")


@dataclass(frozen=True)
class Pin:
    """One published wheel: the tags in its name that tell it from the others, and its hash."""

    tags: str
    sha256: str


_CP311 = Pin("cp311-cp311", "1622118a038b0c6e16fa4a0305da62c8b3c15904ee1cc4d4e65846a25969e41e")
_ABI3 = Pin("cp312-abi3", "5e52ab4e2f1d64f0ac494c9aa723697b793f81a91c4cae4c36608ca0bc4267bf")
_CP314T = Pin("cp314-cp314t", "eab30be40d412e947f3b74b20f50e4f8e07dd11439e7ddc6bd6184cabda2be79")
_CP315T = Pin("cp315-cp315t", "bac2ed42a2b7aa232aeec57c2f7b0d88b61a74a29b3bf358f4cec6b20be356f6")
PINS = {
    "3.11": _CP311,
    **dict.fromkeys(("3.12", "3.13", "3.14", "3.15"), _ABI3),
    "3.14t": _CP314T,  # free-threaded
    "3.15t": _CP315T,
}


def pin_for(python: str) -> Pin:
    """The published wheel for a Python version such as `3.12`."""
    if not re.fullmatch(r"3\.\d+t?", python):
        raise BuildError(f"not a Python version: {python!r}", "write it as --python 3.12")
    if python in PINS:
        return PINS[python]
    raise BuildError(
        f"Triton {TRITON_VERSION} has no wheel for Python {python}: it supports 3.11 to 3.15",
        f"choose one of {', '.join(PINS)}",
    )


def sha256(path: Path) -> str:
    """The hash of a file, read in pieces."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def fetch(python: str, pip_python: Path, cache: Path, step: Step) -> Path:
    """The base wheel for `python`, from the cache or from PyPI; its hash is checked either way."""
    pin = pin_for(python)
    cache.mkdir(parents=True, exist_ok=True)
    for kept in sorted(cache.glob(f"triton-{TRITON_VERSION}-{pin.tags}-*.whl")):
        if sha256(kept) == pin.sha256:
            step.outcome = "cached"
            return kept
        kept.unlink()  # damaged: an interrupted disk, an old pin
    with tempfile.TemporaryDirectory(dir=cache, prefix="download-") as scratch:
        wheel = _download(python, pip_python, Path(scratch), step)
        found = sha256(wheel)
        if found != pin.sha256:
            raise BuildError(
                f"{wheel.name} is not the wheel that this build was made for\n"
                f"  expected sha256 {pin.sha256}\n  downloaded      {found}",
                "do not use it; if the package index is a mirror, ask who runs it",
            )
        return wheel.replace(cache / wheel.name)


def _download(python: str, pip_python: Path, scratch: Path, step: Step) -> Path:
    platforms = [part for platform in _PLATFORMS for part in ("--platform", platform)]
    command = [
        *(str(pip_python), "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"),
        *("--implementation", "cp", "--python-version", python.removesuffix("t"), *platforms),
        *(("--abi", f"cp{python.replace('.', '')}") if python.endswith("t") else ()),
        *("--dest", str(scratch), "--disable-pip-version-check", f"triton=={TRITON_VERSION}"),
    ]
    # Partial downloads go where the step can see them grow.
    environment = {**os.environ, "TMPDIR": str(scratch)}
    step.detail = lambda: f"{_size(scratch) / 1e6:.0f} MB"
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, stdin=subprocess.DEVNULL
    )
    wheels = list(scratch.glob("triton-*.whl"))
    if done.returncode or len(wheels) != 1:
        raise BuildError(
            f"cannot download triton=={TRITON_VERSION} for Python {python}: {_reason(done.stderr)}",
            "check the network and pip's settings (pip config list), then run this again",
        )
    return wheels[0]


def _size(directory: Path) -> int:
    total = 0
    for path in directory.rglob("*"):
        try:
            total += path.stat().st_size if path.is_file() else 0
        except OSError:
            continue  # pip moved it away between the two looks
    return total


def _reason(stderr: str) -> str:
    lines = stderr.splitlines()
    lines = [line for line in lines if line.startswith("ERROR")] or lines
    network = ("Connection", "resolve", "timed out", "Proxy", "Network")
    if any(word in stderr for word in network):
        return "the package index cannot be reached"
    if "from versions: none" in stderr:
        return "the package index cannot be reached, or does not have it"
    return lines[-1].removeprefix("ERROR: ") if lines else "pip said nothing"


_PROBE = (
    "import sys, sysconfig as s; "
    "print('%d.%d' % sys.version_info[:2] + 't' * bool(s.get_config_var('Py_GIL_DISABLED')))"
)


def running_python() -> str:
    """The version of the Python that runs this, as `--python` writes it."""
    free_threaded = bool(sysconfig.get_config_var("Py_GIL_DISABLED"))
    return f"{sys.version_info.major}.{sys.version_info.minor}{'t' * free_threaded}"


def find_python(version: str) -> Path | None:
    """An interpreter of that version: this one, or one on the PATH that really runs."""
    if version == running_python():
        return Path(sys.executable)
    found = shutil.which(f"python{version}")
    if found is None:
        return None
    done = subprocess.run([found, "-c", _PROBE], capture_output=True, text=True, check=False)
    return Path(found) if done.stdout.strip() == version else None
