"""Certificates: a pinned reduction's PTX folds the canonical tree, checked as it compiles.

# Idea
With `TRITON_BITSTABLE_VERIFY=1`, the lowering marks elements, combines and results with comments
that reach PTX, and the native library walks that PTX symbolically (`docs/verify.md`). The PTX with
the comments is what is shipped, so the certificate is about what runs.

# Invariants
- **V1** A pinned reduction without a certificate is an error, whatever the reason: a kernel that
  could not be followed, marks that did not reach PTX, another order.
- **V2** Whether a kernel is verified is a compile option, so a kernel that was not is never taken
  from a cache for one that is.

# Held by
V1: [`check`], and `tests/python/test_verify_errors.py`. V2: `tests/python/test_verify_knob.py`.

# Not here
AMD GPUs, whose machine code is not followed: a warning says so, once.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from triton.bitstable import _native
from triton.bitstable.errors import PLEASE_REPORT, CertificateError, Diagnostic

OPTION = "bitstable_verify"
CERTIFICATES_KEY = "certificates"
_OFF = (
    "to compile without certificates: unset TRITON_BITSTABLE_VERIFY, "
    "or set triton.knobs.language.bitstable_verify = False"
)


@dataclass(frozen=True)
class Certificate:
    """What was found of one pinned reduction in a kernel's PTX."""

    file: str | None
    line: int
    extent: int
    """How many elements are reduced to one."""
    combines: int
    """Combines that were checked, in every execution that was followed; equal terms count once."""
    results: int
    """Results that were checked."""
    pattern: tuple[str, ...]
    """What a combine does, for each operand: `L0` and `R0` are operand 0's lower and upper part."""
    until: str | None
    """Where the walk ended, if it did not reach the kernel's end; every mark was seen before."""


def certificates(compiled: Any) -> list[Certificate]:
    """The certificates of a compiled kernel, in the order of its pinned reductions.

    Reductions whose order does not matter have none, nor has a kernel that was not verified.
    """
    report = getattr(compiled.metadata, "bitstable", None) or {}
    found = report.get(CERTIFICATES_KEY, ())
    return [Certificate(**{**entry, "pattern": tuple(entry["pattern"])}) for entry in found]


def marks(metadata: dict[str, Any]) -> bool:
    """Whether a kernel's reductions are to be marked; for AMD, a warning instead."""
    if not metadata.get(OPTION):
        return False
    if metadata["target"].backend == "cuda":
        return True
    _warn_once(metadata["target"].backend)
    return False


def checked(make_ptx: Callable[..., Any], report_key: str) -> Callable[..., Any]:
    """The stage `make_ptx`, with what it makes checked if it was marked."""

    def ptx(src: Any, metadata: dict[str, Any]) -> Any:
        text = make_ptx(src, metadata)
        report = metadata.get(report_key)
        if report is not None and marks(metadata):
            metadata[report_key] = report | {CERTIFICATES_KEY: check(text, report["reductions"])}
        return text

    return ptx


def check(ptx: str, reductions: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The certificates of the pinned reductions that the lowering reported.

    Raises `CertificateError` when one of them has none.
    """
    wanted = {pin: entry for pin, entry in enumerate(reductions) if entry["digest"]}
    if not wanted:
        return []
    answer = _native.library().certify(ptx.encode())
    verdict = answer["verdict"]
    if verdict == "refuted":
        entry = wanted.get(answer["pin"], {})
        raise CertificateError([_refuted(entry, answer)], refuted=True)
    if verdict != "certified":
        entry = next(iter(wanted.values()))
        raise CertificateError([_unknown(entry, answer["what"], answer["at"])], refuted=False)
    found = {entry["pin"]: entry for entry in answer["certificates"]}
    for pin, entry in wanted.items():
        if pin not in found or not found[pin]["results"]:
            what = "none of its results is in the PTX"
            raise CertificateError([_unknown(entry, what, None)], refuted=False)
    return [_certificate(entry, found[pin]) for pin, entry in wanted.items()]


def _certificate(reduction: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    place = {"file": reduction.get("file"), "line": reduction.get("line") or 0}
    kept = ("extent", "combines", "results", "pattern", "until")
    return place | {key: found[key] for key in kept}


def _place(reduction: dict[str, Any]) -> dict[str, Any]:
    keys = ("file", "line", "col")
    return {key: reduction[key] for key in keys if reduction.get(key)}


def _refuted(reduction: dict[str, Any], answer: dict[str, Any]) -> Diagnostic:
    return Diagnostic(
        f"this pinned reduction's PTX does not fold the canonical tree: {answer['what']}",
        notes=(_where(answer["at"]),),
        help=PLEASE_REPORT,
        **_place(reduction),
    )


def _unknown(reduction: dict[str, Any], what: str, at: dict[str, Any] | None) -> Diagnostic:
    return Diagnostic(
        f"this pinned reduction has no certificate, its PTX could not be checked: {what}",
        notes=(_where(at),) if at and at["ptx_line"] else (),
        help=_OFF,
        **_place(reduction),
    )


def _where(at: dict[str, Any]) -> str:
    place = f"line {at['ptx_line']} of the PTX"
    return f"at {place}, made from {at['file']}:{at['line']}" if at["file"] else f"at {place}"


@functools.cache
def _warn_once(backend: str) -> None:
    warnings.warn(
        f"TRITON_BITSTABLE_VERIFY: machine code for {backend} is not checked; certificates are for "
        "NVIDIA GPUs",
        stacklevel=2,
    )
