"""The order of the steps, and the options."""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wheelbuild import assemble, base, cargo, environment, system
from wheelbuild.errors import BuildError
from wheelbuild.progress import Step, step

ROOT = Path(__file__).resolve().parents[2]
_EPILOG = """
What it does: checks the machine (as root it installs missing Debian packages), builds the native
library with cargo, takes Triton's wheel from PyPI by version and hash, patches it, installs the
result into .venv with the pinned test tools, and compiles a few kernels with it. A second run
skips what has not changed.
"""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="scripts/build-wheel",
        description="Build the bit-stable Triton wheel and install it.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--python",
        metavar="3.X",
        default=base.running_python(),
        help="the Python to build for (%(default)s); another than the running one is installed "
        "into .venv-3.X, if there is such an interpreter",
    )
    parser.add_argument(
        "--output", metavar="DIR", type=Path, default=ROOT / "dist", help="where to (dist)"
    )
    parser.add_argument("--no-install", action="store_true", help="only build the wheel")
    parser.add_argument("--no-report", action="store_true", help="compile no kernels at the end")
    return parser


@dataclass
class _Places:
    cache: Path = ROOT / ".cache"

    def log(self, name: str) -> Path:
        return self.cache / "logs" / f"{name}.log"


@contextmanager
def _lock(places: _Places) -> Iterator[None]:
    places.cache.mkdir(exist_ok=True)
    with (places.cache / "build.lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("waiting for another build of this checkout", flush=True)
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def main(arguments: list[str] | None = None) -> int:
    """Run the build; the exit status."""
    options = _parser().parse_args(arguments)
    places = _Places()
    try:
        base.pin_for(options.python)
        with _lock(places):
            python = _build(options, places)
    except BuildError as error:
        print(error.render(), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; nothing half-built is left under a final name", file=sys.stderr)
        return 130
    if python is None or options.no_report:
        return 0
    print(flush=True)
    # A cache of our own: the kernels of an unchanged build are compiled once.
    variables = {**os.environ, "TRITON_CACHE_DIR": str(places.cache / "triton")}
    command = [python, "-m", "triton.bitstable.report"]
    return subprocess.run(command, env=variables, check=False).returncode


def _build(options: argparse.Namespace, places: _Places) -> Path | None:
    """All steps; the interpreter that the wheel was installed for, if it was."""
    cargo_path = _check_machine(places)
    interpreter = None if options.no_install else base.find_python(options.python)
    same = options.python == base.running_python()
    directory = ROOT / (".venv" if same else f".venv-{options.python}")
    with step("virtual environment") as running:
        log = places.log("venv")
        if interpreter is None:
            pip = environment.pip_python(places.cache, log, running, Path(sys.executable))
            running.outcome = "not asked for" if options.no_install else "no such Python here"
        else:
            pip = environment.create(directory, interpreter, log, running)
    wheel, version = _make_wheel(options, places, cargo_path, pip)
    if interpreter is None:
        print(f"\n{wheel}")
        return None
    with step("install") as running:
        requirements = ROOT / "requirements.txt"
        environment.install(directory, wheel, requirements, places.log("install"), running)
        environment.check_import(pip, version)
    print(f"\n{wheel}")
    return pip


def _check_machine(places: _Places) -> Path:
    system.check_platform()
    with step("Debian packages") as running:
        system.provide_packages(places.log("apt"), running)
    with step("LLVM and MLIR") as running:
        running.outcome = system.check_llvm()
    with step("Rust") as running:
        found = system.find_cargo()
        running.outcome = "present"
    return found


def _make_wheel(
    options: argparse.Namespace, places: _Places, cargo_path: Path, pip: Path
) -> tuple[Path, str]:
    with step("Triton's wheel") as running:
        fetched = base.fetch(options.python, pip, places.cache / "base", running)
    with step("native library") as running:
        library = cargo.build(ROOT, cargo_path, places.log("cargo"), running)
        glibc = cargo.inspect(library)
    version = cargo.our_version(ROOT)
    inputs = assemble.Inputs(ROOT, fetched, library, version, glibc)
    with step("wheel") as running:
        return _assemble_once(inputs, options.output.resolve(), places, running), version


def _assemble_once(inputs: assemble.Inputs, output: Path, places: _Places, running: Step) -> Path:
    wheel = output / inputs.wheel_name
    stamp = places.cache / f"{inputs.wheel_name}.stamp"
    wanted = {"inputs": inputs.fingerprint(), "output": str(wheel)}
    if wheel.exists() and stamp.exists():
        kept = json.loads(stamp.read_text())
        if kept == {**wanted, "wheel": base.sha256(wheel)}:
            running.outcome = "up to date"
            return wheel
    assemble.assemble(inputs, output)
    stamp.write_text(json.dumps({**wanted, "wheel": base.sha256(wheel)}))
    running.outcome = f"{wheel.stat().st_size / 1e6:.1f} MB"
    return wheel
