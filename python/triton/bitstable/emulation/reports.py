"""What the executor found, as the kernel's author reads it.

# Idea
The native library tells what happened where: instruction, thread, address. A [`Report`] adds what
only this side knows, the argument that an address belongs to, and prints as a compiler does: the
kernel's own line first, then the PTX, the threads and the address as notes.

# Invariants
- **R1** Reports of one fault, over all launches of an emulation, are one report with a count, so
  that a program of many launches does not fill memory ([`Collection`]).
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from triton.bitstable.emulation.memory import Memory
from triton.bitstable.errors import Diagnostic


@dataclass(frozen=True)
class Site:
    """One end of a finding: a thread at an instruction. Lines count from 1; 0 is unknown."""

    role: str
    cta: int
    thread: int
    ptx_line: int
    instruction: str
    file: str | None = None
    line: int = 0
    col: int = 0

    @classmethod
    def from_json(cls, entry: dict[str, Any]) -> Site:
        """Read one site as the native library writes it."""
        return cls(
            role=entry.get("role") or "",
            cta=entry["cta"],
            thread=entry["thread"],
            ptx_line=entry.get("ptx_line") or 0,
            instruction=entry.get("instruction") or "",
            file=entry.get("file"),
            line=entry.get("line") or 0,
            col=entry.get("col") or 0,
        )

    def __str__(self) -> str:
        role = f"{self.role}: " if self.role else ""
        place = f", {self.file}:{self.line}:{self.col}" if self.file else ""
        code = f", PTX line {self.ptx_line}: {self.instruction}" if self.ptx_line else ""
        return f"{role}CTA {self.cta} thread {self.thread}{place}{code}"


@dataclass(frozen=True)
class Report:
    """One finding. `kind` is its stable name; `element` says what is at `address`."""

    kernel: str
    severity: str
    kind: str
    message: str
    sites: tuple[Site, ...] = ()
    address: int | None = None
    element: str | None = None
    help: str | None = None
    count: int = 1
    schedule: str = "forward"

    @classmethod
    def from_json(cls, entry: dict[str, Any], kernel: str, memory: Memory, order: str) -> Report:
        """Read one finding as the native library writes it; addresses get their elements' names."""
        address = entry.get("address")
        return cls(
            kernel=kernel,
            severity=entry["severity"],
            kind=entry["kind"],
            message=entry["message"],
            sites=tuple(Site.from_json(site) for site in entry.get("sites") or ()),
            address=address,
            element=None if address is None else memory.describe(address),
            help=entry.get("help"),
            count=entry.get("count") or 1,
            schedule=order,
        )

    @property
    def is_error(self) -> bool:
        """Whether it fails the launch."""
        return self.severity == "error"

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two reports one fault."""
        lines = tuple((site.role, site.ptx_line) for site in self.sites)
        return self.kernel, self.severity, self.kind, lines

    def render(self) -> str:
        """As a compiler prints it."""
        first = self.sites[0] if self.sites else None
        notes = [f"at {self.element}"] if self.element else []
        if self.address is not None and not self.element:
            notes.append(f"at address {self.address:#x}")
        notes += [str(site) for site in self.sites]
        if self.count > 1:
            notes.append(f"{self.count} times; this is the first")
        if self.schedule != "forward":
            notes.append(f"with schedule={self.schedule}")
        diagnostic = Diagnostic(
            message=f"{self.message} [{self.kind}]",
            severity=self.severity,
            file=first.file if first else None,
            line=first.line if first else 0,
            col=first.col if first else 0,
            notes=tuple(notes),
            help=self.help,
        )
        return diagnostic.render()

    __str__ = render


class Collection:
    """The reports of one emulation, from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[tuple[Any, ...], Report] = {}

    def add(self, reports: Iterable[Report]) -> None:
        """Take in what one launch gave."""
        with self._lock:
            for report in reports:
                known = self._found.get(report.key)
                count = report.count + (known.count if known else 0)
                self._found[report.key] = replace(known or report, count=count)

    def snapshot(self) -> list[Report]:
        """All of them, oldest first."""
        with self._lock:
            return list(self._found.values())
