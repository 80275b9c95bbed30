"""This checkout as the build sees it: its modules, its base wheel, its built wheel."""

import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "scripts"))

from wheelbuild import assemble, base, cargo  # noqa: E402


def base_wheel_path():
    """Triton's own wheel for this Python, from the build's cache."""
    pin = base.pin_for(base.running_python())
    found = sorted(
        (ROOT / ".cache" / "base").glob(f"triton-{base.TRITON_VERSION}-{pin.tags}-*.whl")
    )
    if not found:
        pytest.fail("no base wheel in .cache/base: run scripts/build-wheel first")
    return found[0]


def base_wheel():
    return zipfile.ZipFile(base_wheel_path())


def inputs():
    """What scripts/build-wheel made the wheel from."""
    library = ROOT / "target" / "wheel" / "release" / "libbitstable.so"
    version = cargo.our_version(ROOT)
    return assemble.Inputs(ROOT, base_wheel_path(), library, version, cargo.inspect(library))
