"""Zip entries copied raw: hundreds of megabytes keep the compression that PyPI gave them.

# Invariants
- **Z1** The bytes written depend on names, contents and modes alone: entries are sorted, every
  timestamp is the zip epoch, and no platform field varies.
- **Z2** An entry taken over is copied compressed, byte for byte, with its own CRC.

# Not here
Zip64, encryption, data descriptors: a base wheel that needs them is refused.
"""

from __future__ import annotations

import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from wheelbuild.errors import BuildError

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_EPOCH_DATE = (0 << 9) | (1 << 5) | 1  # 1980-01-01, as DOS writes it
_UTF8_NAME = 0x800
_UNIX = 3
_VERSION = 20
_LIMIT = 0xFFFFFFFF
DEFLATED = zipfile.ZIP_DEFLATED
STORED = zipfile.ZIP_STORED


@dataclass(frozen=True)
class Entry:
    """One file of the archive to be written: compressed data, and what describes it."""

    name: str
    mode: int
    method: int
    crc: int
    size: int
    compressed_size: int
    data: bytes | None = None
    """The compressed bytes; `None` for an entry whose bytes lie in the base archive."""
    offset: int = 0
    """Where they lie there."""


def from_bytes(name: str, content: bytes, mode: int) -> Entry:
    """A new entry, compressed if that makes it smaller."""
    compressor = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = compressor.compress(content) + compressor.flush()
    method = DEFLATED if len(packed) < len(content) else STORED
    data = packed if method == DEFLATED else content
    return Entry(name, mode, method, zlib.crc32(content), len(content), len(data), data)


def from_base(info: zipfile.ZipInfo, base: BinaryIO, name: str | None = None) -> Entry:
    """An entry of the base archive, taken over as it is (under another name, if one is given)."""
    base.seek(info.header_offset)
    header = base.read(_LOCAL.size)
    if len(header) < _LOCAL.size or not header.startswith(b"PK\x03\x04"):
        raise BuildError(f"the base wheel is damaged at {info.filename}")
    name_length, extra_length = _LOCAL.unpack(header)[-2:]
    offset = info.header_offset + _LOCAL.size + name_length + extra_length
    if info.compress_type not in (DEFLATED, STORED) or info.flag_bits & 0x1:
        raise BuildError(f"the base wheel packs {info.filename} in a way this build does not know")
    mode = (info.external_attr >> 16) & 0o777
    return Entry(
        name or info.filename,
        mode,
        info.compress_type,
        info.CRC,
        info.file_size,
        info.compress_size,
        offset=offset,
    )


def write(target: Path, entries: Iterable[Entry], base: BinaryIO) -> None:
    """Write an archive of `entries`, sorted by name except that `*.dist-info` goes last."""
    ordered = sorted(entries, key=lambda entry: (".dist-info/" in entry.name, entry.name))
    directory: list[bytes] = []
    with target.open("wb") as out:
        for entry in ordered:
            position = out.tell()
            if position + entry.compressed_size >= _LIMIT:
                raise BuildError("the wheel would pass 4 GiB, which needs zip64")
            name = entry.name.encode()
            out.write(_local_header(entry, name))
            _copy_data(entry, base, out)
            directory.append(_central_header(entry, name, position))
        start = out.tell()
        central = b"".join(directory)
        out.write(central)
        count = len(ordered)
        out.write(_END.pack(b"PK\x05\x06", 0, 0, count, count, len(central), start, 0))


def _flags(name: bytes) -> int:
    return 0 if name.isascii() else _UTF8_NAME


def _local_header(entry: Entry, name: bytes) -> bytes:
    sizes = (entry.crc, entry.compressed_size, entry.size)
    fields = (_VERSION, _flags(name), entry.method, 0, _EPOCH_DATE)
    return _LOCAL.pack(b"PK\x03\x04", *fields, *sizes, len(name), 0) + name


def _central_header(entry: Entry, name: bytes, position: int) -> bytes:
    sizes = (entry.crc, entry.compressed_size, entry.size)
    fields = (_UNIX << 8 | _VERSION, _VERSION, _flags(name), entry.method, 0, _EPOCH_DATE)
    attributes = (0o100000 | entry.mode) << 16
    tail = (len(name), 0, 0, 0, 0, attributes, position)
    return _CENTRAL.pack(b"PK\x01\x02", *fields, *sizes, *tail) + name


def _copy_data(entry: Entry, base: BinaryIO, out: BinaryIO) -> None:
    if entry.data is not None:
        out.write(entry.data)
        return
    base.seek(entry.offset)
    left = entry.compressed_size
    while left:
        chunk = base.read(min(left, shutil.COPY_BUFSIZE))
        if not chunk:
            raise BuildError(f"the base wheel ends inside {entry.name}")
        out.write(chunk)
        left -= len(chunk)
