"""One code generation for kernels that are equal: what Triton's cache cannot see is equal.

# Idea
Triton's cache is keyed by options, and most kernels do not depend on most options: `num_stages`
changes nothing where no loop loads. So within a sweep the two expensive stages, to LLVM IR and to
PTX, are remembered by the *text* they start from and by the options they read.

# Invariants
- **S1** A remembered stage gives what it would have given: text, and what it says in the metadata.
  `make_llir` and `make_ptx` do not read `num_stages`, and `make_llir` not `enable_fp_fusion`; all
  other options are part of the key.
- **S2** A stage hook of the user's is left alone, and nothing is shared then.

# Held by
S1: `tests/python/test_bit_classes.py`, which compares with compilations that share nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from triton import knobs

_UNREAD = {"llir": ("num_stages", "enable_fp_fusion"), "ptx": ("num_stages",)}


class SharedStages:
    """The stage hook of a sweep, and what it remembers."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Any, dict[str, Any]]] = {}
        #: How many stages were run, and how many were remembered.
        self.run = self.shared = 0

    def __call__(
        self,
        backend: Any = None,
        stages: Any = None,
        options: Any = None,
        language: Any = None,
        capability: Any = None,
    ) -> tuple[str, str] | None:
        """Called without stages for the key of the cache, which stays as it is."""
        if stages is None:
            return "", ""
        for name, unread in _UNREAD.items():
            if name in stages:
                told = {k: v for k, v in vars(options).items() if k not in unread}
                stages[name] = self._remembering(stages[name], f"{name} {capability} {told!r}")
        return None

    def _remembering(self, stage: Callable[..., Any], options: str) -> Callable[..., Any]:
        def remembering(source: Any, metadata: dict[str, Any]) -> Any:
            module = source if isinstance(source, str) else source.str()
            text = f"{options}\n{module}"
            key = hashlib.sha256(text.encode()).hexdigest()
            if key not in self._known:
                before = dict(metadata)
                result = stage(source, metadata)
                said = {k: v for k, v in metadata.items() if k not in before or before[k] is not v}
                self._known[key] = result, said
                self.run += 1
                return result
            self.shared += 1
            result, said = self._known[key]
            metadata.update(said)
            return result

        return remembering

    @contextmanager
    def active(self) -> Iterator[None]:
        """Share what is compiled meanwhile."""
        if knobs.runtime.add_stages_inspection_hook is not None:
            yield
            return
        knobs.runtime.add_stages_inspection_hook = self
        try:
            yield
        finally:
            knobs.runtime.add_stages_inspection_hook = None
