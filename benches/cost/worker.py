"""Compiles and measures configurations, one JSON line in, one JSON line out.

# Idea
The program runs in any Triton's Python: ours for the unordered and the pinned code, the peer's for
its own. A compile ends as text (SASS, AMDGCN) in a file whose name is a hash of everything that the
text depends on; a measurement in one whose name is a hash of the text and of the machine model. So
a second run compiles nothing, a changed planner compiles only pinned kernels anew, and a changed
model measures all of them without compiling any.

# Invariants
- **W1** A file of the cache is there in full, or not at all.
- **W2** What stock's code depends on has nothing of ours in it but the front end: the patched files
  of Triton are part of the hash, `triton/bitstable` is only where an order is asked for.
- **W3** One job never brings down another: an exception is an answer, and a compiler that aborts is
  started anew by who runs the worker.

# Not here
Which jobs there are (`command.py`); restarting (`building.py`).
"""

from __future__ import annotations

import dataclasses
import functools
import gzip
import hashlib
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from cost import machine

TRIPS = 16
"""How often the model takes a loop's body: compilers unroll by 4, 8 or 16."""

LIBRARY_HEAD = 1 << 20
"""So many bytes of Triton's own library tell its build: it has a build id, and 300 MB."""


class Cache:
    """Texts and measurements of earlier runs, compressed, by hash."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """What is stored, or what `make` returns, which is then stored."""
        path = self.path(key)
        if path.exists():
            return json.loads(gzip.decompress(path.read_bytes()))
        value = make()
        path.parent.mkdir(parents=True, exist_ok=True)
        new = path.with_suffix(f".{os.getpid()}")
        new.write_bytes(gzip.compress(json.dumps(value).encode(), 6, mtime=0))
        new.replace(path)
        return value

    def path(self, key: str) -> Path:
        """The file of one hash."""
        return self._folder / key[:2] / f"{key}.json.gz"


def digest(*parts: str | bytes) -> str:
    """One hash of several texts, each with its length."""
    state = hashlib.sha256()
    for part in parts:
        data = part.encode() if isinstance(part, str) else part
        state.update(len(data).to_bytes(8, "little") + data)
    return state.hexdigest()


def _sources(folder: Path, without: str = "") -> str:
    """A hash of a folder's Python files."""
    parts: list[str | bytes] = []
    for path in sorted(folder.rglob("*.py")):
        name = path.relative_to(folder).as_posix()
        if not (without and name.startswith(without)):
            parts += [name, path.read_bytes()]
    return digest(*parts)


@functools.cache
def _model() -> str:
    return _sources(Path(machine.__file__).parent)


@functools.cache
def _triton() -> str:
    """What unordered code depends on."""
    import triton

    folder = Path(triton.__file__).parent
    with (folder / "_C" / "libtriton.so").open("rb") as library:
        head = library.read(LIBRARY_HEAD)
        size = library.seek(0, os.SEEK_END)
    return digest(head, str(size), _sources(folder, without="bitstable/"), _switches(ours=False))


@functools.cache
def _bitstable() -> str:
    """What pinned code depends on besides, in our Triton; nothing in another."""
    import triton

    folder = Path(triton.__file__).parent / "bitstable"
    libraries = [path.read_bytes() for path in sorted(folder.glob("*.so"))]
    return digest(_sources(folder), _switches(ours=True), *libraries)


def _switches(ours: bool) -> str:
    """Environment variables that change code; where files are kept does not."""
    kept = ("TRITON_CACHE_DIR", "TRITON_HOME", "TRITON_ALWAYS_COMPILE")
    found = {k: v for k, v in os.environ.items() if k.startswith("TRITON_") and k not in kept}
    mine = {k: v for k, v in found.items() if k.startswith("TRITON_BITSTABLE_") == ours}
    return json.dumps(mine, sort_keys=True)


def _kernel(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(f"corpus.kernels.{module}"), function)


def _target(name: str) -> Any:
    from triton.backends.compiler import GPUTarget

    if name.startswith("sm_"):
        return GPUTarget("cuda", int(name.removeprefix("sm_")), 32)
    return GPUTarget("hip", name, 64)


def compile_job(job: dict[str, Any]) -> dict[str, Any]:
    """The text of one configuration, or why there is none."""
    import triton
    from triton.compiler import ASTSource

    kernel = _kernel(job["kernel"])
    names = kernel.arg_names
    signature = {name: job["signature"].get(name, "constexpr") for name in names}
    aligned = {
        (at,): [["tt.divisibility", 16]] for at, n in enumerate(names) if signature[n][0] == "*"
    }
    source = ASTSource(kernel, signature, {**job["constants"], "ORDER": job["order"]}, aligned)
    try:
        compiled = triton.compile(
            source, target=_target(job["target"]), options={"num_warps": job["warps"]}
        )
        found = {"shared": compiled.metadata.shared}
        if "amdgcn" in compiled.asm:
            return {**found, "asm": compiled.asm["amdgcn"]}
        return {**found, "asm": compiled.asm["sass"], **_resources(compiled.asm["cubin"])}
    except Exception as error:  # whatever a compiler raises
        while error.__cause__ is not None:
            error = error.__cause__
        lines = [line for line in str(error).splitlines() if line.strip()]
        return {"error": f"{type(error).__name__}: {lines[0].strip() if lines else 'no reason'}"}


def _resources(cubin: bytes) -> dict[str, int]:
    """Registers and stack as the loader will see them; SASS does not say."""
    from triton import knobs

    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        command = [knobs.nvidia.cuobjdump.path, "-res-usage", file.name]
        told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    counts = dict(re.findall(r"\b(REG|STACK):(\d+)", told))
    return {"registers": int(counts["REG"]), "stack_bytes": int(counts["STACK"])}


def measure_text(compiled: dict[str, Any], target: str, warps: int) -> dict[str, Any]:
    """The figures of one text."""
    found = machine.measure(compiled["asm"], target, warps, TRIPS)
    told = {k: compiled[k] for k in ("registers", "stack_bytes") if k in compiled}
    figures = dataclasses.replace(found, **told)
    shared = compiled["shared"]
    return {
        **dataclasses.asdict(figures),
        "communication": figures.communication,
        "shared_bytes": shared,
        "occupancy": machine.occupancy(target, warps, figures.registers or 0, shared),
    }


def work(job: dict[str, Any], cache: Cache) -> dict[str, Any]:
    """The figures of one job, with the file that has its text; or an error."""
    ours = _bitstable() if job["order"] else ""
    told = json.dumps(job, sort_keys=True)
    key = digest(told, _kernel(job["kernel"]).cache_key, _triton(), ours)
    compiled = cache.get(key, lambda: compile_job(job))
    if "error" in compiled:
        return compiled
    target, warps = job["target"], job["warps"]
    how = (target, str(warps), str(TRIPS))
    measured = digest(json.dumps(compiled, sort_keys=True), *how, _model())
    figures = cache.get(measured, lambda: measure_text(compiled, target, warps))
    return {"figures": figures, "text": str(cache.path(key))}


def main(folder: str) -> None:
    """Answers jobs until there are none."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what compilers print is no answer
    cache = Cache(Path(folder))
    for line in sys.stdin:
        try:
            answer = work(json.loads(line), cache)
        except Exception as error:  # of the bench: no word on the kernel, and the others go on
            answer = {"fault": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()


if __name__ == "__main__":
    main(sys.argv[1])
