"""The native boundary: one module loads the library, and it is this one.

# Idea
`libbitstable.so` speaks a plain C ABI over text, so that one build serves every CPython, the
free-threaded ones too (which have no stable ABI). It is loaded at the first pinned reduction, not
at import.

# Who owns, who fails
The library owns the reply's buffers; [`Library.rewrite`] copies them and frees the reply before it
returns. A panic or an abort inside is a reply with status 2, never a signal. A library that does
not load is a [`NativeLibraryError`] that says what to do.
"""

from __future__ import annotations

import ctypes
import json
import os
import struct
import threading
from pathlib import Path
from typing import Any

from triton.bitstable._version import __version__
from triton.bitstable.errors import (
    PLEASE_REPORT,
    Diagnostic,
    NativeLibraryError,
    ReductionOrderError,
)

LIBRARY_PATH = Path(__file__).with_name("libbitstable.so")
REWRITTEN, REFUSED, BUG = range(3)


class _Reply(ctypes.Structure):
    _fields_ = (
        ("status", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
        ("text", ctypes.c_void_p),
        ("text_len", ctypes.c_size_t),
        ("report", ctypes.c_void_p),
        ("report_len", ctypes.c_size_t),
    )


class Library:
    """The loaded library. Its methods may be called from any thread; calls run without the GIL."""

    def __init__(self, path: Path) -> None:
        try:
            _check_whole(path)
            handle = ctypes.CDLL(str(path))
            self._rewrite = handle.bitstable_rewrite
            self._free = handle.bitstable_free
            version = handle.bitstable_version
        except (OSError, AttributeError) as error:
            raise NativeLibraryError(_load_failure(path, error)) from error
        buffer = (ctypes.c_char_p, ctypes.c_size_t)
        self._rewrite.argtypes = (*buffer, *buffer, ctypes.POINTER(_Reply))
        self._rewrite.restype = None
        self._free.argtypes = (ctypes.POINTER(_Reply),)
        self._free.restype = None
        version.argtypes = ()
        version.restype = ctypes.c_char_p
        self.version: str = version().decode()
        if self.version != __version__:
            wrong = f"it says version {self.version}, the Python files are {__version__}"
            raise NativeLibraryError(_load_failure(path, wrong))

    def rewrite(self, module: bytes, pipeline: str) -> tuple[bytes, dict[str, Any]]:
        """Run `pipeline` over a module in generic form; the new text and the report.

        Raises `ReductionOrderError` when the library refuses, or fails.
        """
        passes = pipeline.encode()
        reply = _Reply()
        self._rewrite(module, len(module), passes, len(passes), ctypes.byref(reply))
        try:
            status = reply.status
            text = ctypes.string_at(reply.text, reply.text_len) if reply.text else b""
            report = ctypes.string_at(reply.report, reply.report_len) if reply.report else b""
        finally:
            self._free(ctypes.byref(reply))
        if status == REWRITTEN:
            return text, json.loads(report)
        raise _error(status, report)


# Of an ELF header, 64 bits: where the section table is, how large an entry, and how many.
_ELF_SECTIONS = struct.Struct("<40xQ10xHH2x")


def _check_whole(path: Path) -> None:
    """Refuse a file that was cut short: loading it would end the process with a bus error."""
    with path.open("rb") as stream:
        header = stream.read(_ELF_SECTIONS.size)
        size = stream.seek(0, os.SEEK_END)
    if len(header) < _ELF_SECTIONS.size or not header.startswith(b"\x7fELF\x02\x01"):
        raise OSError("it is not a 64-bit ELF library")
    offset, entry_size, count = _ELF_SECTIONS.unpack(header)
    if offset + entry_size * count > size:
        raise OSError(f"it is cut short, at {size} bytes")


def _load_failure(path: Path, reason: object) -> str:
    return (
        f"pinned reductions need bitstable's native library, which cannot be used: {reason}\n"
        f"  library: {path}\n"
        "  help: reinstall the wheel (pip install --force-reinstall), or rebuild it with "
        "scripts/build-wheel"
    )


def _error(status: int, report: bytes) -> ReductionOrderError:
    try:
        entries = json.loads(report)["diagnostics"]
        diagnostics = [Diagnostic.from_json(entry) for entry in entries]
    except (ValueError, KeyError, TypeError):
        unread = report[:500].decode(errors="replace")
        diagnostics = [Diagnostic(f"unreadable report from the native library: {unread!r}")]
        status = BUG
    if not diagnostics:
        diagnostics = [Diagnostic(f"status {status} without a reason", help=PLEASE_REPORT)]
        status = BUG
    return ReductionOrderError(diagnostics, bug=status != REFUSED)


_lock = threading.Lock()
_loaded: Library | None = None


def library() -> Library:
    """The native library, loaded once; a failure is not remembered, so that it can be repaired."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = Library(LIBRARY_PATH)
        return _loaded
