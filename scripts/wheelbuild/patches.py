"""Strict application of unified diffs: every line as the patch says, where the patch says.

# Invariants
- **P1** No fuzz and no offset: a hunk's old lines stand at its line number or the build stops,
  naming patch, file and hunk. A patch that no longer fits is read by a person, not by luck.
- **P2** All or nothing: files are given back patched together, or not at all.

# Not here
Creating, deleting and renaming files: our patches only change lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from wheelbuild.errors import BuildError

_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_REQUIRED_HEADERS = ("Why a patch:", "Goes when:", "Guarded by:")


@dataclass(frozen=True)
class Hunk:
    """One hunk: where its old lines begin (from 1), and both sides."""

    header: str
    start: int
    old: tuple[str, ...]
    new: tuple[str, ...]


@dataclass(frozen=True)
class Patch:
    """One patch file: its hunks by the path they change."""

    name: str
    files: dict[str, list[Hunk]]


def read_series(directory: Path) -> list[Patch]:
    """Every patch of `series`, in order; one that is not listed, or listed twice, is an error."""
    names = (directory / "series").read_text().split()
    present = {path.name for path in directory.glob("*.patch")}
    if len(set(names)) != len(names) or set(names) != present:
        odd = sorted(set(names) ^ present) or sorted({n for n in names if names.count(n) > 1})
        raise BuildError(f"{directory / 'series'} and the patches beside it disagree: {odd}")
    return [parse(name, (directory / name).read_text()) for name in names]


def parse(name: str, text: str) -> Patch:
    """Read one patch: our header, then a unified diff."""
    header, _, _ = text.partition("\n--- ")
    for field in _REQUIRED_HEADERS:
        if field not in header:
            raise BuildError(f"{name}: the header lacks '{field}'")
    files: dict[str, list[Hunk]] = {}
    lines = text.splitlines(keepends=True)
    target: str | None = None
    index = 0
    while index < len(lines):
        line = lines[index]
        if line.startswith("+++ "):
            target = line[4:].split("\t")[0].strip().removeprefix("b/")
            index += 1
        elif line.startswith("@@"):
            if target is None:
                raise BuildError(f"{name}, line {index + 1}: a hunk before any file")
            hunk, index = _parse_hunk(name, lines, index)
            files.setdefault(target, []).append(hunk)
        else:
            index += 1
    if not files:
        raise BuildError(f"{name}: no hunk found")
    return Patch(name, files)


def _parse_hunk(name: str, lines: list[str], index: int) -> tuple[Hunk, int]:
    match = _HUNK.match(lines[index])
    if not match:
        raise BuildError(f"{name}, line {index + 1}: not a hunk header: {lines[index].strip()}")
    header = match[0]
    old_left, new_left = (int(match[group] or 1) for group in (2, 4))
    old: list[str] = []
    new: list[str] = []
    index += 1
    while old_left or new_left:
        line = lines[index] if index < len(lines) else "\\"
        if line[0] not in " -+" or (line[0] != "+" and not old_left):
            raise BuildError(f"{name}, hunk {header}: ends early, at line {index + 1}")
        if line[0] != "+":
            old.append(line[1:])
            old_left -= 1
        if line[0] != "-":
            new.append(line[1:])
            new_left -= 1
        index += 1
    return Hunk(header, int(match[1]), tuple(old), tuple(new)), index


def apply(patches: list[Patch], read: Callable[[str], bytes]) -> dict[str, bytes]:
    """Apply `patches` in order over the files that `read` gives; the changed files."""
    changed: dict[str, list[str]] = {}
    for patch in patches:
        for path, hunks in patch.files.items():
            if path not in changed:
                try:
                    content = read(path)
                except KeyError:
                    raise BuildError(f"{patch.name}: {path} is not in the base wheel") from None
                changed[path] = content.decode().splitlines(keepends=True)
            changed[path] = _apply_hunks(patch.name, path, hunks, changed[path])
    return {path: "".join(lines).encode() for path, lines in changed.items()}


def _apply_hunks(name: str, path: str, hunks: list[Hunk], lines: list[str]) -> list[str]:
    result: list[str] = []
    position = 0
    for hunk in hunks:
        start = hunk.start - 1
        found = tuple(lines[start : start + len(hunk.old)])
        if start < position or found != hunk.old:
            raise BuildError(
                f"patch {name} does not apply to {path}, hunk {hunk.header}\n"
                + _first_difference(hunk, found),
                "the base wheel or the patch has changed: redo the patch against the new file",
            )
        result += lines[position:start]
        result += hunk.new
        position = start + len(hunk.old)
    return result + lines[position:]


def _first_difference(hunk: Hunk, found: tuple[str, ...]) -> str:
    for offset, expected in enumerate(hunk.old):
        actual = found[offset] if offset < len(found) else "(end of file)"
        if actual != expected:
            place = hunk.start + offset
            return (
                f"  line {place} should be: {expected.rstrip()}\n"
                f"  but it is:          {actual.rstrip()}"
            )
    return "  it overlaps the hunk before it"
