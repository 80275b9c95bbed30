"""The errors that this package raises, and whose fault each one is."""

from __future__ import annotations

import linecache
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from triton.compiler.errors import CompilationError

PLEASE_REPORT = (
    "this is a bug in bitstable, not in your kernel; please report it with the kernel and the "
    "target"
)


class NativeLibraryError(ImportError):
    """The native library is missing, damaged, or of another version than the Python files."""


@dataclass(frozen=True)
class Diagnostic:
    """One message of the native library, with the place it is about."""

    message: str
    severity: str = "error"
    file: str | None = None
    line: int = 0
    col: int = 0
    notes: tuple[str, ...] = field(default=())
    help: str | None = None

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Diagnostic:
        """Read one entry of the native library's `diagnostics` list."""
        return cls(
            message=entry["message"],
            severity=entry.get("severity") or "error",
            file=entry.get("file"),
            line=entry.get("line") or 0,
            col=entry.get("col") or 0,
            notes=tuple(entry.get("notes") or ()),
            help=entry.get("help"),
        )

    def render(self) -> str:
        """As a compiler prints it: place, message, the source line if it can be read, notes."""
        place = f"{self.file}:{self.line}:{self.col}: " if self.file else ""
        lines = [f"{place}{self.severity}: {self.message}"]
        lines += self._excerpt()
        lines += [f"  note: {note}" for note in self.notes]
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)

    def _excerpt(self) -> list[str]:
        source = linecache.getline(self.file, self.line).rstrip() if self.file else ""
        if not source:
            return []
        return ["    " + source, "    " + " " * max(self.col - 1, 0) + "^"]


class ReductionOrderError(CompilationError):
    """A pinned reduction that cannot be compiled: refused, or a bug of ours.

    `diagnostics` holds every message; `bug` says whose fault it is.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], bug: bool = False) -> None:
        self.diagnostics = tuple(diagnostics)
        self.bug = bug
        super().__init__(None, None, "\n".join(d.render() for d in self.diagnostics))

    def _format_message(self) -> str:
        head = "bitstable failed" if self.bug else "a pinned reduction cannot be compiled"
        return f"{head}:\n{self.error_message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.bug)


class CertificateError(ReductionOrderError):
    """A pinned reduction whose PTX has no certificate (`TRITON_BITSTABLE_VERIFY=1`).

    `refuted` tells whether it folds something else, or could not be checked.
    """

    def __init__(self, diagnostics: Sequence[Diagnostic], refuted: bool) -> None:
        self.refuted = refuted
        super().__init__(diagnostics, bug=refuted)

    def _format_message(self) -> str:
        head = "a certificate was refused" if self.refuted else "a certificate cannot be given"
        return f"{head}:\n{self.error_message}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.diagnostics, self.refuted)


class EquivalenceError(RuntimeError):
    """A question to the static checker that it did not understand, or a bug of ours."""


class EmulationError(RuntimeError):
    """A launch on the emulated driver that was refused, or in which the executor found errors.

    `reports` holds what was found (`triton.bitstable.emulation.Report`); a refusal has none.
    """

    def __init__(self, message: str, reports: Sequence[Any] = ()) -> None:
        self.reports = tuple(reports)
        super().__init__(message)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.reports)
