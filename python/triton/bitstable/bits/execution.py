"""One configuration: compiled, launched on every draw, and what came out.

# Idea
Configurations are run in groups that can be equal as code ([`groups`]): those which differ in
`num_stages` and fusion alone. Within a group, code that was run is not run again: PTX, grid and
launch are the whole of what decides a launch's bytes.

# Invariants
- **X1** Nothing is dropped: every configuration has an [`Outcome`], which ran or says why not.
- **X2** Bits are those of all buffers on all draws. A run with errors has none: what a race leaves
  behind means nothing.
- **X3** Every launch starts from fresh buffers with exact bounds.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from triton.bitstable import EmulationError, emulate
from triton.bitstable.bits import kernels
from triton.bitstable.bits.arguments import Argument, Buffer, Scalar
from triton.bitstable.bits.configurations import Configuration
from triton.bitstable.bits.draws import Draw
from triton.bitstable.bits.elements import Element
from triton.bitstable.bits.grid import Grid, resolve
from triton.bitstable.bits.sharing import SharedStages
from triton.bitstable.errors import NativeLibraryError
from triton.runtime.errors import OutOfResources

_ALIGNMENT = 64  # more than any kernel is specialised on


class Status(enum.Enum):
    """What became of a configuration."""

    RAN = "ran"
    #: It asks for more threads or memory than the target has: no such kernel exists there.
    EXCEEDS = "exceeds"
    #: It does not compile, or holds what the executor does not run: its bits are unknown.
    REFUSED = "refused"
    #: The executor found errors in it.
    FOUND = "found"


@dataclass(frozen=True)
class Finding:
    """What the executor reported on one draw; later draws' reports of the same fault are left out.

    `severity` is "error", which fails the configuration, or "note".
    """

    draw: str
    kind: str
    severity: str
    text: str


Outputs = tuple[tuple[bytes, ...], ...]


@dataclass(frozen=True)
class Outcome:
    """Of one configuration. `outputs` has the canonical bytes by draw and buffer, if it ran."""

    configuration: Configuration
    status: Status
    reason: str = ""
    code: str = ""
    bits: str = ""
    findings: tuple[Finding, ...] = ()
    outputs: Outputs | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True)
class Job:
    """What all configurations of a sweep have in common. `options` are `emulate`'s."""

    arguments: tuple[Argument, ...]
    grid: Grid
    draws: tuple[Draw, ...]
    seed: int
    options: tuple[tuple[str, Any], ...] = ()

    @property
    def buffers(self) -> list[Buffer]:
        """The arguments that are compared."""
        return [each for each in self.arguments if isinstance(each, Buffer)]

    @property
    def scalars(self) -> dict[str, Any]:
        """The others, by name."""
        return {each.name: each.value for each in self.arguments if isinstance(each, Scalar)}


def groups(configurations: Iterable[Configuration]) -> list[list[Configuration]]:
    """Configurations that may be equal as code, together."""
    found: dict[Configuration, list[Configuration]] = {}
    for each in configurations:
        found.setdefault(replace(each, num_stages=0, fp_fusion=False), []).append(each)
    return list(found.values())


class Runner:
    """Runs groups of a job's configurations, in this process."""

    def __init__(self, kernel: Any, job: Job) -> None:
        self.job = job
        self.kernel, _ = kernels.untuned(kernel)
        self.stages = SharedStages()

    def run(self, group: Iterable[Configuration]) -> list[Outcome]:
        """An outcome for each; of equal code, the first alone has the outputs."""
        known: dict[str, Outcome] = {}
        with self.stages.active():
            return [self._one(each, known) for each in group]

    def _one(self, configuration: Configuration, known: dict[str, Outcome]) -> Outcome:
        try:
            grid = resolve(self.job.grid, {**self.job.scalars, **dict(configuration.constants)})
            code = self._compile(configuration, grid)
            if code in known:
                return replace(known[code], configuration=configuration, outputs=None)
            outcome = self._execute(configuration, grid, code)
        except NativeLibraryError:  # nothing will run
            raise
        except OutOfResources as error:
            return Outcome(configuration, Status.EXCEEDS, _exceeds(error))
        except Exception as error:  # whatever a compiler raises
            return Outcome(configuration, Status.REFUSED, explain(error))
        known[code] = outcome
        return outcome

    def _compile(self, configuration: Configuration, grid: tuple[int, ...]) -> str:
        """Compile, or find in Triton's cache; what identifies the code and its launch."""
        placed = self._placed(configuration, self.job.draws[0])
        with emulate(configuration.target):
            compiled = self.kernel.warmup(
                grid=grid, **placed, **self.job.scalars, **configuration.keywords()
            )
        told = compiled.metadata
        launch = (grid, told.num_warps, told.shared, told.global_scratch_size)
        return hashlib.sha256(f"{launch}\n{compiled.asm['ptx']}".encode()).hexdigest()

    def _execute(self, configuration: Configuration, grid: tuple[int, ...], code: str) -> Outcome:
        outputs: list[tuple[bytes, ...]] = []
        findings: dict[Any, Finding] = {}
        for draw in self.job.draws:
            reports, failed = [], False
            placed = self._placed(configuration, draw)
            with emulate(configuration.target, **dict(self.job.options)) as emulation:
                try:
                    self.kernel[grid](**placed, **self.job.scalars, **configuration.keywords())
                except EmulationError as error:
                    if not error.reports:
                        raise
                    failed = True
                reports = emulation.reports
            for each in reports:
                found = Finding(draw.name, each.kind, each.severity, each.render())
                findings.setdefault(each.key, found)
            if failed:
                told = tuple(findings.values())
                return Outcome(configuration, Status.FOUND, code=code, findings=told)
            outputs.append(tuple(_outcome(placed[b.name], b.element) for b in self.job.buffers))
        bits = hashlib.sha256()
        for by_buffer in outputs:
            for content in by_buffer:
                bits.update(content)
        return Outcome(
            configuration,
            Status.RAN,
            code=code,
            bits=bits.hexdigest(),
            findings=tuple(findings.values()),
            outputs=tuple(outputs),
        )

    def _placed(self, configuration: Configuration, draw: Draw) -> dict[str, Any]:
        """Fresh buffers."""
        return {
            buffer.name: place(
                buffer.patterns(draw, self.job.seed), buffer.element, configuration.aligned
            )
            for buffer in self.job.buffers
        }


def place(patterns: np.ndarray, element: Element, aligned: bool) -> Any:
    """Bits in memory of their own, at an aligned address or one element after it."""
    memory = bytearray(patterns.nbytes + 2 * _ALIGNMENT)
    address = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    offset = -address % _ALIGNMENT + (0 if aligned else patterns.itemsize)
    array = np.frombuffer(memory, element.storage, patterns.size, offset)
    array[...] = patterns
    if element.seen_as is not None:
        return emulate.view(array, element.seen_as)
    return array.view(element.native)


def _outcome(placed: Any, element: Element) -> bytes:
    array = placed if isinstance(placed, np.ndarray) else placed.array
    return element.canonical(array.view(element.storage)).tobytes()


def _exceeds(error: OutOfResources) -> str:
    return f"{error.name}: {error.required} needed, the target has {error.limit}"


def explain(error: BaseException) -> str:
    """The innermost reason of an error, in one line: Triton wraps errors call by call."""
    while error.__cause__ is not None:
        error = error.__cause__
    if diagnostics := getattr(error, "diagnostics", None):
        return "; ".join(each.message for each in diagnostics)
    message = getattr(error, "error_message", None) or str(error)
    lines = [line.strip() for line in str(message).splitlines() if line.strip()]
    kind = type(error).__name__
    if isinstance(error, EmulationError):  # a heading, then the reason
        return " ".join(lines[:2]) if lines else kind
    return f"{kind}: {lines[0]}" if lines else kind
