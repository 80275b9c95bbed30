"""Modules as generic text: the ABI between Triton's MLIR and ours.

# Idea
Two MLIRs of different versions live in one process; what both read is the generic textual form,
with aliases and locations inlined ("local scope": an alias such as `#blocked` would be lost inside
an attribute that our side does not know). [`print_generic`] asks for exactly that form through the
C++ entry points that `libtriton.so` exports, with flags of its own. So nothing is switched process-
wide, no lock is needed, and a thread that prints a module at the same time is not disturbed.
(Triton's print options can also be set through LLVM's command line; that is process-wide.)

# Invariants
- **X1** Text goes out with locations, so that debuggers and errors find the user's file.
- **X2** Parsing verifies: a malformed module never reaches Triton's passes.

# Held by
X1 and X2: `tests/python/test_native_text.py`, which also prints from many threads at once.
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from triton._C import libtriton

ir = libtriton.ir

# Larger than the objects: `raw_fd_ostream` and `OpPrintingFlags` are a few hundred bytes.
_STREAM_BYTES = 4096
_FLAGS_BYTES = 1024
_POINTER = ctypes.c_void_p
_BOOL = ctypes.c_bool
_ENTRY_POINTS = {
    "block_parent": ("_ZN4mlir5Block11getParentOpEv", (_POINTER,)),
    "flags": ("_ZN4mlir15OpPrintingFlagsC1Ev", (_POINTER,)),
    "generic": ("_ZN4mlir15OpPrintingFlags18printGenericOpFormEb", (_POINTER, _BOOL)),
    "local_scope": ("_ZN4mlir15OpPrintingFlags13useLocalScopeEb", (_POINTER, _BOOL)),
    "debug_info": ("_ZN4mlir15OpPrintingFlags15enableDebugInfoEbb", (_POINTER, _BOOL, _BOOL)),
    "stream": (
        "_ZN4llvm14raw_fd_ostreamC1EibbNS_11raw_ostream11OStreamKindE",
        (_POINTER, ctypes.c_int, _BOOL, _BOOL, ctypes.c_int),
    ),
    "close_stream": ("_ZN4llvm14raw_fd_ostreamD1Ev", (_POINTER,)),
    "print": (
        "_ZN4mlir9Operation5printERN4llvm11raw_ostreamERKNS_15OpPrintingFlagsE",
        (_POINTER, _POINTER, _POINTER),
    ),
}


@functools.cache
def _printer() -> dict[str, Any]:
    handle = ctypes.CDLL(libtriton.__file__)
    functions = {}
    for name, (symbol, arguments) in _ENTRY_POINTS.items():
        function = getattr(handle, symbol)
        function.argtypes = arguments
        function.restype = _POINTER
        functions[name] = function
    return functions


@contextmanager
def _memory_file(content: bytes = b"") -> Iterator[int]:
    descriptor = os.memfd_create("bitstable", os.MFD_CLOEXEC)
    try:
        with open(descriptor, "wb", closefd=False) as stream:
            stream.write(content)
        yield descriptor
    finally:
        os.close(descriptor)


def print_generic(module_body: Any) -> bytes:
    """The module whose body is the block `module_body`, in generic form, local scope, locations."""
    entry = _printer()
    operation = entry["block_parent"](module_body.id())
    flags = ctypes.create_string_buffer(_FLAGS_BYTES)
    stream = ctypes.create_string_buffer(_STREAM_BYTES)
    entry["flags"](flags)
    entry["generic"](flags, True)
    entry["local_scope"](flags, True)
    entry["debug_info"](flags, True, False)
    with _memory_file() as descriptor:
        entry["stream"](stream, descriptor, False, False, 0)
        entry["print"](operation, stream, flags)
        entry["close_stream"](stream)
        os.lseek(descriptor, 0, os.SEEK_SET)
        with open(descriptor, "rb", closefd=False) as result:
            return result.read()


def parse(text: bytes, context: Any) -> Any:
    """Parse and verify a module in `context`, and keep the context alive with it."""
    with _memory_file(text) as descriptor:
        module = ir.parse_mlir_module(f"/proc/self/fd/{descriptor}", context)
    module.context = context
    return module
