"""The native library: built the same from every checkout, and looked at before it ships."""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

from wheelbuild.errors import BuildError
from wheelbuild.progress import Step, run

EXPORTS = {
    *("bitstable_free", "bitstable_main", "bitstable_rewrite", "bitstable_version"),
    "bitstable_certify",
    "bitstable_equiv",
    "bitstable_resources",
    *("bitstable_ptx_load", "bitstable_ptx_launch", "bitstable_ptx_unload"),
}
# Everything else is linked in: the wheel must load where no LLVM is installed. The C++ runtime is
# everywhere where Triton's own library loads.
SYSTEM_LIBRARIES = re.compile(
    r"(libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|ld-linux-x86-64)\.so"
)


def our_version(root: Path) -> str:
    """The version of the workspace: the only place that states it."""
    manifest = tomllib.loads((root / "Cargo.toml").read_text())
    return manifest["workspace"]["package"]["version"]


def build(root: Path, cargo: Path, log: Path, step: Step) -> Path:
    """Build `libbitstable.so` in a target folder of its own, so that flags do not clash."""
    target = root / "target" / "wheel"
    home = Path(os.environ.get("CARGO_HOME", Path.home() / ".cargo"))
    flags = (
        f"--remap-path-prefix={root}=/bitstable",
        f"--remap-path-prefix={home}=/cargo",
        "-Cstrip=symbols",
    )
    environment = {**os.environ, "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(flags)}
    environment.pop("RUSTFLAGS", None)
    command = [cargo, "build", "--release", "--locked"]
    step.detail = lambda: _last_line(log)
    run(
        [*command, "--target-dir", target],
        log,
        "building the native library",
        env=environment,
        cwd=root,
        help="the whole log is there; without a network, the crates must be in cargo's cache",
    )
    return target / "release" / "libbitstable.so"


def _last_line(log: Path) -> str:
    try:
        lines = log.read_text(errors="replace").split("\n")
    except OSError:
        return ""
    words = [line.strip() for line in lines if line.strip()]
    return words[-1][:28] if words else ""


def _tool(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        raise BuildError(f"cannot look at the native library: {error}") from None


def inspect(library: Path) -> int:
    """Check what the library exports and needs; the minor version of glibc that it asks for."""
    symbols = _tool(["nm", "-D", "--defined-only", str(library)]).splitlines()
    exported = {line.split()[-1].split("@")[0] for line in symbols if line}
    if exported != EXPORTS:
        odd = ", ".join(sorted(exported ^ EXPORTS)[:8])
        raise BuildError(f"{library.name} must export its entry points alone; differs in: {odd}")
    dynamic = _tool(["readelf", "-d", str(library)])
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", dynamic)
    foreign = [name for name in needed if not SYSTEM_LIBRARIES.match(name)]
    if foreign:
        names = ", ".join(foreign)
        raise BuildError(f"{library.name} needs libraries that a user may lack: {names}")
    versions = _tool(["readelf", "-V", str(library)])
    return max((int(minor) for minor in re.findall(r"GLIBC_2\.(\d+)", versions)), default=0)
