"""What the machine must have before anything is built, and how it gets it."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

from wheelbuild.errors import BuildError
from wheelbuild.progress import Step, run

LLVM_MAJOR = "22"
RUST_MINIMUM = (1, 92)
DEBIAN_PACKAGES = (
    "g++",
    "binutils",
    "libclang-common-22-dev",
    "libclang1-22",
    "libmlir-22-dev",
    "libpolly-22-dev",
    "libxml2-dev",
    "libz3-dev",
    "libzstd-dev",
    "llvm-22-dev",
    "mlir-22-tools",
    "zlib1g-dev",
)


def check_platform() -> None:
    """Triton's wheels that we start from are for Linux on x86-64 alone."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise BuildError(
            f"this build runs on Linux x86-64; this is {platform.system()} {platform.machine()}"
        )


def missing_packages() -> list[str]:
    """The Debian packages that are not installed; none where there is no dpkg."""
    query = shutil.which("dpkg-query")
    if query is None:
        return []
    command = [query, "--show", "--showformat", "${Package} ${db:Status-Status}\n"]
    done = subprocess.run([*command, *DEBIAN_PACKAGES], capture_output=True, text=True, check=False)
    installed = {
        line.split()[0] for line in done.stdout.splitlines() if line.endswith(" installed")
    }
    return [package for package in DEBIAN_PACKAGES if package not in installed]


def provide_packages(log: Path, step: Step) -> None:
    """Install what is missing, when that is ours to do; otherwise say the command."""
    missing = missing_packages()
    if not missing:
        step.outcome = "present"
        return
    command = f"apt-get install --no-install-recommends {' '.join(missing)}"
    apt = shutil.which("apt-get")
    if apt is None or os.geteuid() != 0:
        raise BuildError(f"Debian packages are missing: {' '.join(missing)}", f"sudo {command}")
    step.detail = lambda: f"installing {len(missing)}"
    quiet = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    help = f"see whether apt knows them: {command}"
    what = f"installing Debian packages ({' '.join(missing)})"
    run([apt, "-q", "update"], log, "apt-get update", env=quiet, help=help)
    run([apt, "-qy", *command.split()[1:]], log, what, env=quiet, help=help)
    step.outcome = f"installed {len(missing)}"


def check_llvm() -> str:
    """The version of LLVM 22 with MLIR's headers, where the Rust crates will look for it."""
    prefix = Path(os.environ.get("LLVM_SYS_220_PREFIX", f"/usr/lib/llvm-{LLVM_MAJOR}"))
    help = f"apt-get install libmlir-22-dev llvm-22-dev, or set LLVM_SYS_220_PREFIX (now {prefix})"
    config = prefix / "bin" / "llvm-config"
    try:
        done = subprocess.run([config, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        raise BuildError(f"LLVM {LLVM_MAJOR} is not at {prefix}", help) from None
    version = done.stdout.strip()
    if version.split(".")[0] != LLVM_MAJOR:
        raise BuildError(f"LLVM at {prefix} is {version}, and must be {LLVM_MAJOR}", help)
    if not (prefix / "include" / "mlir-c" / "IR.h").exists():
        raise BuildError(f"LLVM at {prefix} has no MLIR headers", help)
    return version


def find_cargo() -> Path:
    """The cargo to build with, new enough for the workspace."""
    help = f"install Rust {RUST_MINIMUM[0]}.{RUST_MINIMUM[1]} or newer (with rustup), then run this"
    found = shutil.which("cargo") or shutil.which("cargo", path=Path.home() / ".cargo" / "bin")
    if found is None:
        raise BuildError("cargo is not on the PATH", help)
    done = subprocess.run([found, "--version"], capture_output=True, text=True, check=False)
    match = re.search(r"(\d+)\.(\d+)", done.stdout)
    if match is None:
        raise BuildError(f"{found} does not run: {done.stderr.strip()}", help)
    if tuple(map(int, match.groups())) < RUST_MINIMUM:
        raise BuildError(f"cargo is too old: {done.stdout.strip()}", help)
    return Path(found)
