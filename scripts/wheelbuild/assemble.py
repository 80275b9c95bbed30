"""From base wheel, patches, Python files and library to our wheel.

# Invariants
- **A1** The wheel is a function of its inputs: two builds of one commit are the same bytes.
- **A2** `RECORD` is right: every file but itself, with its hash and size.
- **A3** A wheel appears under its name only when it is whole.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import os
import re
import tempfile
import zipfile
from dataclasses import dataclass, field
from pathlib import Path

from wheelbuild import archive, patches
from wheelbuild.base import TRITON_VERSION
from wheelbuild.errors import BuildError

_OLD_INFO = f"triton-{TRITON_VERSION}.dist-info"
_PACKAGE = "triton/bitstable"
_ENTRY_POINTS = """\
bitstable = triton.bitstable.cli:main
bitstable-opt = triton.bitstable.opt:main"""


@dataclass
class Inputs:
    """Everything that shapes the wheel."""

    root: Path
    base: Path
    library: Path
    version: str
    glibc_minor: int

    @property
    def full_version(self) -> str:
        """Triton's version with ours behind it, as PEP 440 writes a local version."""
        return f"{TRITON_VERSION}+bitstable.{self.version}"

    @property
    def tags(self) -> tuple[str, str, str]:
        """Python, ABI and platform tags of our wheel: the base's, unless our library asks more."""
        python, abi, platforms = self.base.stem.split("-")[-3:]
        return python, abi, ".".join(_platforms(platforms.split("."), self.glibc_minor))

    @property
    def wheel_name(self) -> str:
        """The file name that installers read."""
        return f"triton-{self.full_version}-{'-'.join(self.tags)}.whl"

    @property
    def patch_directory(self) -> Path:
        """Where the patches for this version of Triton are."""
        return self.root / "triton-patches" / TRITON_VERSION

    @property
    def package(self) -> Path:
        """Where the Python files that we add are."""
        return self.root / "python" / "triton" / "bitstable"

    def python_files(self) -> list[Path]:
        """The Python files that we add, those of sub-packages too."""
        return sorted(self.package.rglob("*.py"))

    def fingerprint(self) -> str:
        """A hash of every input, and of this builder."""
        builder = sorted(Path(__file__).parent.glob("*.py"))
        ours = [*self.python_files(), *sorted(self.patch_directory.iterdir())]
        licences = [self.root / "LICENSE"]
        digest = hashlib.sha256(self.wheel_name.encode())
        for path in [self.base, self.library, *ours, *licences, *builder]:
            with path.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        return digest.hexdigest()


def _platforms(base: list[str], glibc_minor: int) -> list[str]:
    able = [tag for tag in base if glibc_minor <= int(tag.split("_")[2])]
    return able or [f"manylinux_2_{glibc_minor}_x86_64"]


@dataclass
class _Contents:
    entries: dict[str, archive.Entry] = field(default_factory=dict)
    record: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, name: str, content: bytes, mode: int = 0o644) -> None:
        self.entries[name] = archive.from_bytes(name, content, mode)
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        self.record[name] = (f"sha256={digest}", len(content))


def assemble(inputs: Inputs, output: Path) -> Path:
    """Write the wheel into `output`, under its own name."""
    output.mkdir(parents=True, exist_ok=True)
    try:
        base = zipfile.ZipFile(inputs.base)
    except (OSError, zipfile.BadZipFile) as error:
        raise BuildError(f"cannot read {inputs.base}: {error}") from None
    with base, inputs.base.open("rb") as raw:
        contents = _contents(inputs, base, raw)
        descriptor, name = tempfile.mkstemp(dir=output, prefix=".wheel-")
        os.close(descriptor)
        unfinished = Path(name)
        try:
            archive.write(unfinished, contents.entries.values(), raw)
            unfinished.chmod(0o644)
            return unfinished.replace(output / inputs.wheel_name)
        finally:
            unfinished.unlink(missing_ok=True)


def _contents(inputs: Inputs, base: zipfile.ZipFile, raw: io.BufferedReader) -> _Contents:
    contents = _Contents()
    info = f"triton-{inputs.full_version}.dist-info"
    record = _read_record(base)
    patched = patches.apply(patches.read_series(inputs.patch_directory), base.read)
    for entry in base.infolist():
        name = entry.filename.replace(_OLD_INFO, info, 1)
        if entry.is_dir() or name == f"{info}/RECORD":
            continue
        mode = (entry.external_attr >> 16) & 0o777
        content = patched.get(entry.filename) or _rewritten(inputs, base, entry.filename)
        if content is not None:
            contents.add(name, content, mode)
        else:
            contents.entries[name] = archive.from_base(entry, raw, name)
            contents.record[name] = record[entry.filename]
    for path in inputs.python_files():
        name = path.relative_to(inputs.package).as_posix()
        contents.add(f"{_PACKAGE}/{name}", path.read_bytes())
    contents.add(f"{_PACKAGE}/_version.py", _version_module(inputs))
    contents.add(f"{_PACKAGE}/libbitstable.so", inputs.library.read_bytes(), 0o755)
    contents.add(f"{info}/licenses/LICENSE.bitstable", (inputs.root / "LICENSE").read_bytes())
    contents.add(f"{info}/RECORD", _record(contents.record, f"{info}/RECORD"))
    return contents


def _read_record(base: zipfile.ZipFile) -> dict[str, tuple[str, int]]:
    rows = csv.reader(io.StringIO(base.read(f"{_OLD_INFO}/RECORD").decode()))
    return {name: (digest, int(size)) for name, digest, size in rows if digest}


def _record(record: dict[str, tuple[str, int]], own_name: str) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    for name in sorted(record):
        writer.writerow([name, *record[name]])
    writer.writerow([own_name, "", ""])
    return text.getvalue().encode()


def _version_module(inputs: Inputs) -> bytes:
    return (
        '"""Written by the build, from the workspace\'s version."""\n\n'
        f'__version__ = "{inputs.version}"\n'
        f'TRITON_VERSION = "{inputs.full_version}"\n'
    ).encode()


def _rewritten(inputs: Inputs, base: zipfile.ZipFile, name: str) -> bytes | None:
    """The new text of a metadata file that must change, or nothing."""
    if not name.startswith(_OLD_INFO + "/"):
        return None
    text = base.read(name).decode()
    match name.removeprefix(_OLD_INFO + "/"):
        case "METADATA":
            text = _replace_once(
                text, rf"^Version: {re.escape(TRITON_VERSION)}$", f"Version: {inputs.full_version}"
            )
            text = _replace_once(
                text,
                r"^License-File: LICENSE$",
                "License-File: LICENSE\nLicense-File: LICENSE.bitstable",
            )
        case "WHEEL":
            python, abi, platforms = inputs.tags
            text = re.sub(r"^Tag: .*\n", "", text, flags=re.MULTILINE).rstrip("\n") + "\n"
            for platform in platforms.split("."):
                text += f"Tag: {python}-{abi}-{platform}\n"
        case "entry_points.txt":
            text = _replace_once(
                text, r"^\[console_scripts\]$", f"[console_scripts]\n{_ENTRY_POINTS}"
            )
        case _:
            return None
    return text.encode()


def _replace_once(text: str, pattern: str, replacement: str) -> str:
    text, count = re.subn(pattern, lambda _: replacement, text, flags=re.MULTILINE)
    if count != 1:
        raise BuildError(f"the base wheel's metadata has {count} lines like {pattern}, not one")
    return text
