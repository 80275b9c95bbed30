"""The installed wheel, as pip and a user see it."""

import importlib.metadata
import subprocess
import sys
from pathlib import Path

import triton
from packaging.requirements import Requirement
from packaging.version import Version
from triton.bitstable import TRITON_VERSION, __version__

from checkout import ROOT
from wheelbuild import cargo


def test_the_version_says_what_it_is():
    assert triton.__version__ == TRITON_VERSION == f"3.9.0+bitstable.{__version__}"
    assert importlib.metadata.version("triton") == TRITON_VERSION
    assert cargo.our_version(ROOT) == __version__


def test_what_depends_on_triton_accepts_it():
    for requirement in ("triton~=3.9.0", "triton==3.9.0", "triton>=3.9,<4"):
        assert Requirement(requirement).specifier.contains(triton.__version__)
    assert Version(triton.__version__) > Version("3.9.0")
    # As torch's own version checks read it.
    assert tuple(int(part) for part in triton.__version__.split(".")[:2]) == (3, 9)


def test_pip_check_is_clean():
    done = subprocess.run([sys.executable, "-m", "pip", "check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_every_installed_file_is_as_recorded():
    distribution = importlib.metadata.distribution("triton")
    for file in distribution.files:
        path = Path(distribution.locate_file(file))
        if file.size is not None and file.suffix != ".pyc":
            assert path.stat().st_size == file.size, file


def test_the_tool_is_on_the_path():
    tool = Path(sys.executable).with_name("bitstable-opt")
    done = subprocess.run([tool, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"bitstable {__version__}\n"
