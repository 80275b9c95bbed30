"""Looking ahead: whether the code of a rewritten kernel is as good as it was meant to be.

# Idea
A cheaper layout keeps other values in registers at other times, and only ptxas knows whether they
fit. So where a layout was rewritten, the `llir` stage runs the stages after it at once, on each of
its attempts in turn, and takes the first whose code has no fault: one that compiles, fits in the
GPU's shared memory and spills nothing. If none is such, it takes the one that spills least. What
the stages made is kept, and their turn only hands it out.

# Invariants
- **L1** No stage runs twice on one input; LLVM IR, assembly and machine code are of one attempt.
- **L2** After each stage the metadata is what it would be had that stage run at its turn.
- **L3** The attempt without a rewrite fails as it would without us: at its own stage, with the
  stage's own exception and output.
- **L4** A stage is only skipped for the very object that the one before it made: a module that was
  overridden on the way is compiled.

# Held by
`tests/python/test_layout_fallback.py`.

# Not here
What the attempts are (`strategies`), how they are made (`stages`), what spills (`resources`).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from triton.bitstable import resources
from triton.bitstable.errors import ReductionOrderError

Metadata = dict[str, Any]
Stage = Callable[[Any, Metadata], Any]


@dataclass
class Step:
    """One stage's run: what it took, what it made or raised, and what it said."""

    source: Any
    result: Any = None
    error: Exception | None = None
    changes: Metadata = field(default_factory=dict)
    printed: list[tuple[tuple[Any, ...], dict[str, Any]]] = field(default_factory=list)

    @classmethod
    def of(cls, stage: Stage, source: Any, metadata: Metadata) -> Step:
        """Run `stage`, which changes `metadata`."""
        step = cls(source)
        before = dict(metadata)
        with _held_back(step.printed):
            try:
                step.result = stage(source, metadata)
            except ReductionOrderError:  # a lost pin or a refused certificate is no layout's doing
                raise
            except Exception as error:
                step.error = error
        for key, value in metadata.items():
            if key not in before or before[key] is not value:
                step.changes[key] = value
        return step

    def replay(self, metadata: Metadata) -> Any:
        """Do what the stage did."""
        for words, how in self.printed:
            print(*words, **how)
        metadata.update(self.changes)
        if self.error is not None:
            raise self.error
        return self.result


@dataclass
class Attempt:
    """One plan, compiled: the steps from LLVM IR on, the last of which may have failed."""

    plan: Any
    steps: list[Step]
    shared_limit: int | None
    metadata: Metadata

    @property
    def failure(self) -> str | None:
        """Why its code cannot be used, in a few words."""
        error = self.steps[-1].error
        if error is not None:
            reason = str(error).strip().partition("\n")[0]
            return f"it does not compile: {reason or type(error).__name__}"
        shared = self.metadata.get("shared") or 0
        if self.shared_limit is not None and shared > self.shared_limit:
            return f"it takes {shared} bytes of shared memory, the GPU has {self.shared_limit}"
        return None

    @functools.cached_property
    def spills(self) -> resources.Spills:
        """What does not fit in registers."""
        return resources.spills([step.result for step in self.steps])

    @property
    def fault(self) -> str | None:
        """Why another attempt is worth its time, in a few words."""
        return self.failure or (self.spills.text if self.spills else None)

    def annotate(self, key: str, more: Metadata) -> None:
        """Add to what the steps leave in the metadata under `key`."""
        for step in self.steps:
            if key in step.changes:
                step.changes[key] = step.changes[key] | more


class LookAhead:
    """The stages after `llir`, of one compilation, and what is known of their results."""

    def __init__(self, later: dict[str, Stage]) -> None:
        self._later = later
        self._known: dict[str, Step] = {}

    def stage(self, name: str) -> Stage:
        """The later stage of this name, which hands out what is known."""
        make = self._later[name]

        def later(src: Any, metadata: Metadata) -> Any:
            step = self._known.pop(name, None)
            if step is None or step.source is not src:
                return make(src, metadata)
            return step.replay(metadata)

        return later

    def attempt(self, plan: Any, make_llir: Stage, src: Any, metadata: Metadata) -> Attempt:
        """Compile `src` to the end, or to the first failure; `metadata` is left as it was."""
        scratch = dict(metadata)
        steps = [Step.of(make_llir, src, scratch)]
        for make in self._later.values():
            if steps[-1].error is not None:
                break
            steps.append(Step.of(make, steps[-1].result, scratch))
        return Attempt(plan, steps, resources.shared_limit(metadata.get("target")), scratch)

    def take(self, attempt: Attempt, metadata: Metadata) -> Any:
        """Make an attempt the compilation's: its LLVM IR, and its later stages at their turn."""
        first, *later = attempt.steps
        self._known = dict(zip(self._later, later, strict=False))
        return first.replay(metadata)


def best(attempts: list[Attempt]) -> Attempt:
    """The attempt to take; the last is the first without a fault, or the one without a rewrite."""
    usable = [attempt for attempt in reversed(attempts) if attempt.failure is None]
    # Of equals the first is taken: the one that rewrites least.
    return min(usable, key=lambda attempt: attempt.spills, default=attempts[-1])


# ptxas's failure is printed by the stage, whatever becomes of its exception. Redirecting standard
# output would take it from other threads as well; the name that the stage's module looks up can be
# given a meaning that depends on the thread.
_thread = threading.local()


def _print(*words: Any, **how: Any) -> None:
    printed = getattr(_thread, "printed", None)
    if printed is None:
        print(*words, **how)
    else:
        printed.append((words, how))


class _held_back:
    """Keeps what this thread's NVIDIA stages print."""

    def __init__(self, printed: list[Any]) -> None:
        self.printed = printed

    def __enter__(self) -> None:
        from triton.backends.nvidia import compiler

        compiler.print = _print
        self.outer = getattr(_thread, "printed", None)
        _thread.printed = self.printed

    def __exit__(self, *_: object) -> None:
        _thread.printed = self.outer
