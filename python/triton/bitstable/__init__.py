"""Bit-stable reductions: what this wheel adds to Triton.

# Idea
A reduction that says `order="inner_tree"` folds one canonical tree, whatever the layout, the warp
count or the target. The front end tags it (`frontend`), the compiler's stages hand it to a native
library that lowers it (`stages`, `text`, `_native`), and everything else is Triton's. `emulate`
runs kernels without a GPU, to the bit (`emulation`); `same_bits` keeps an autotuner to the
configurations that are proved to return one's bits (`tuning`); `certificates` tells what was
proved of a kernel's pinned reductions (`verify`).

# Invariants
- **B1** Importing this package imports neither Triton nor the native library: `triton/__init__.py`
  reads its version from here before anything else exists.
- **B2** A kernel without a pinned reduction never reaches the native library.

# Held by
B1: `tests/python/test_frontend_import.py`. B2: `stages`, and `tests/python/test_frontend_stock.py`.
"""

from triton.bitstable._version import TRITON_VERSION, __version__

__all__ = [
    "TRITON_VERSION",
    "CertificateError",
    "EmulationError",
    "SameBitsError",
    "__version__",
    "certificates",
    "emulate",
    "native_version",
    "same_bits",
]


def native_version() -> str:
    """The version of the native library, loading it: how to see that it is there and fits."""
    from triton.bitstable import _native

    return _native.library().version


def __getattr__(name: str) -> object:
    if name in ("emulate", "EmulationError"):  # they need Triton, which may not be there yet
        from triton.bitstable import emulation

        return getattr(emulation, name)
    if name in ("certificates", "CertificateError"):
        from triton.bitstable import errors, verify

        return getattr(verify if name == "certificates" else errors, name)
    if name in ("same_bits", "SameBitsError"):
        from triton.bitstable import tuning

        return getattr(tuning, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
