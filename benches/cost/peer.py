"""The peer: the published `inner_tree` of `fbtriton`, in a virtualenv of its own.

# Idea
Both are called `triton`, so that they cannot share a Python. The peer pins every reduction when
`TRITON_STRICT_REDUCTION_ORDERING=1`, and its reductions have no `order=`: it gets copies of the
kernels in which the keyword is left out.

# Not here
What a worker does with them (`worker.py`).
"""

from __future__ import annotations

import ast
import subprocess
import sys
import venv
from pathlib import Path

from cost.building import ROOT, Triton

REQUIREMENT = "fbtriton==3.7.4"
KERNELS = ROOT / "tests" / "corpus" / "kernels"


class PeerError(Exception):
    """There is no peer to measure."""


class _Unordered(ast.NodeTransformer):
    """Leaves out `order=ORDER`; another `order=` is not a reduction's."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """A call without it."""
        self.generic_visit(node)
        node.keywords = [
            keyword
            for keyword in node.keywords
            if not (
                keyword.arg == "order"
                and isinstance(keyword.value, ast.Name)
                and keyword.value.id == "ORDER"
            )
        ]
        return node


def unordered(source: str) -> str:
    """A kernel module without the keyword."""
    return ast.unparse(_Unordered().visit(ast.parse(source))) + "\n"


def peer(python: str, folder: Path) -> Triton:
    """The peer's Triton; its kernels are written below `folder`."""
    told = "import importlib.metadata as m; print('fbtriton==' + m.version('fbtriton'))"
    try:
        asked = subprocess.run([python, "-c", told], capture_output=True, text=True)
    except OSError as error:
        raise PeerError(f"{python} does not run: {error.strerror}") from None
    if asked.returncode:
        raise PeerError(f"{python} has no {REQUIREMENT}: make one with --make-peer FOLDER")
    if (found := asked.stdout.strip()) != REQUIREMENT:
        raise PeerError(f"{python} has {found}, not {REQUIREMENT}")
    package = folder / "corpus" / "kernels"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    for path in KERNELS.glob("*.py"):
        (package / path.name).write_text(unordered(path.read_text()))
    return Triton(python, folder, (("TRITON_STRICT_REDUCTION_ORDERING", "1"),))


def make(folder: Path) -> str:
    """A virtualenv with the peer in it; the path of its Python."""
    venv.create(folder, with_pip=True)
    python = str(folder / "bin" / "python")
    print(f"installing {REQUIREMENT} into {folder}", file=sys.stderr)
    done = subprocess.run([python, "-m", "pip", "install", "--quiet", REQUIREMENT])
    if done.returncode:
        raise PeerError(f"pip could not install {REQUIREMENT}")
    return python
