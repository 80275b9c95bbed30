"""The native boundary: one module loads the library, and it is this one.

# Idea
`libbitstable.so` speaks a plain C ABI over text, so that one build serves every CPython, the
free-threaded ones too (which have no stable ABI). It is loaded at the first pinned reduction, or
the first emulated launch, not at import.

# Who owns, who fails
The library owns the reply's buffers; each call copies them and frees the reply before it returns.
A panic or an abort inside is a reply with status 2, never a signal. A library that does not load is
a [`NativeLibraryError`] that says what to do.
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
    EmulationError,
    EquivalenceError,
    NativeLibraryError,
    ReductionOrderError,
)

LIBRARY_PATH = Path(__file__).with_name("libbitstable.so")
DONE, REFUSED, BUG = range(3)
_BUFFER = (ctypes.c_char_p, ctypes.c_size_t)


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
            reply = ctypes.POINTER(_Reply)
            self._rewrite = _function(handle.bitstable_rewrite, *_BUFFER, *_BUFFER, reply)
            self._free = _function(handle.bitstable_free, reply)
            cancel = ctypes.POINTER(ctypes.c_uint8)
            self._ptx_load = _function(handle.bitstable_ptx_load, *_BUFFER, *_BUFFER, reply)
            self._ptx_launch = _function(
                handle.bitstable_ptx_launch, ctypes.c_uint64, *_BUFFER, *_BUFFER, cancel, reply
            )
            self._ptx_unload = _function(handle.bitstable_ptx_unload, ctypes.c_uint64)
            self._equiv = _function(handle.bitstable_equiv, *_BUFFER, reply)
            self._certify = _function(handle.bitstable_certify, *_BUFFER, reply)
            self._resources = _function(handle.bitstable_resources, *_BUFFER, reply)
            self._main = handle.bitstable_main
            version = handle.bitstable_version
        except (OSError, AttributeError) as error:
            raise NativeLibraryError(_load_failure(path, error)) from error
        self._main.argtypes = _BUFFER
        self._main.restype = ctypes.c_int
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
        status, text, report = self._call(self._rewrite, module, len(module), passes, len(passes))
        if status == DONE:
            return text, json.loads(report)
        raise _error(status, report)

    def ptx_load(self, ptx: bytes, options: dict[str, Any]) -> dict[str, Any]:
        """Parse and decode PTX: its `handle`, its `params`, and `param_bytes` of them all.

        Raises `EmulationError` when something in it is not understood.
        """
        told = json.dumps(options).encode()
        return self._emulate("load", self._ptx_load, ptx, len(ptx), told, len(told))

    def ptx_launch(
        self, handle: int, request: dict[str, Any], params: bytes, cancel: ctypes.c_uint8
    ) -> dict[str, Any]:
        """Run a launch to its end, or until another thread makes `cancel` other than 0.

        The buffers that `request` lists must live, and stay where they are, until it returns.
        """
        told = json.dumps(request).encode()
        inputs = (handle, told, len(told), params, len(params), ctypes.byref(cancel))
        return self._emulate("launch", self._ptx_launch, *inputs)

    def ptx_unload(self, handle: int) -> None:
        """Free what `ptx_load` made; a launch of it that still runs is not disturbed."""
        self._ptx_unload(handle)

    def equiv(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask the static checker; `docs/equiv.md` describes the request and the answer.

        Raises `EquivalenceError` when the request is not understood.
        """
        told = json.dumps(request).encode()
        status, text, report = self._call(self._equiv, told, len(told))
        if status == DONE:
            return json.loads(text)
        diagnostics, bug = _diagnostics(status, report)
        head = "bitstable failed to compare kernels" if bug else "cannot compare kernels"
        raise EquivalenceError("\n".join([f"{head}:", *(d.render() for d in diagnostics)]))

    def certify(self, ptx: bytes) -> dict[str, Any]:
        """Check the marked reductions of a kernel's PTX; `docs/verify.md` describes the answer.

        Raises `ReductionOrderError` when the text is no kernel.
        """
        status, text, report = self._call(self._certify, ptx, len(ptx))
        if status == DONE:
            return json.loads(text)
        raise _error(status, report)

    def resources(self, cubin: bytes) -> list[dict[str, Any]] | None:
        """The kernels of a cubin: `name`, `registers`, `stack` in bytes; None if it is no cubin."""
        status, text, report = self._call(self._resources, cubin, len(cubin))
        if status == DONE:
            return json.loads(text)["kernels"]
        if status == REFUSED:
            return None
        raise _error(status, report)

    def main(self, arguments: list[str]) -> int:
        """Run the `bitstable` command, which writes to the process's streams; its exit status."""
        told = json.dumps(arguments).encode()
        return self._main(told, len(told))

    def _emulate(self, what: str, function: Any, *inputs: Any) -> dict[str, Any]:
        status, text, report = self._call(function, *inputs)
        if status == DONE:
            return json.loads(text)
        diagnostics, bug = _diagnostics(status, report)
        head = f"bitstable failed to {what} a kernel" if bug else f"cannot {what} a kernel"
        raise EmulationError("\n".join([f"{head}:", *(d.render() for d in diagnostics)]))

    def _call(self, function: Any, *inputs: Any) -> tuple[int, bytes, bytes]:
        """Status, text and report, as bytes of our own."""
        reply = _Reply()
        function(*inputs, ctypes.byref(reply))
        try:
            text = ctypes.string_at(reply.text, reply.text_len) if reply.text else b""
            report = ctypes.string_at(reply.report, reply.report_len) if reply.report else b""
            return reply.status, text, report
        finally:
            self._free(ctypes.byref(reply))


def _function(function: Any, *arguments: Any) -> Any:
    """Declare a function of the library; none returns anything but through its reply."""
    function.argtypes = arguments
    function.restype = None
    return function


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
    diagnostics, bug = _diagnostics(status, report)
    return ReductionOrderError(diagnostics, bug=bug)


def _diagnostics(status: int, report: bytes) -> tuple[list[Diagnostic], bool]:
    """What a failed call said, and whether the failure is the library's."""
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
    return diagnostics, status != REFUSED


_lock = threading.Lock()
_loaded: Library | None = None


def library() -> Library:
    """The native library, loaded once; a failure is not remembered, so that it can be repaired."""
    global _loaded
    with _lock:
        if _loaded is None:
            _loaded = Library(LIBRARY_PATH)
        return _loaded
