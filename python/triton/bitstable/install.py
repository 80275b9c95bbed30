"""What Triton's own files import at start-up; everything heavier is imported at first use."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


def install_stages(stages: dict[str, Callable[..., Any]]) -> None:
    """Wrap one compilation's stages; see `stages`."""
    from triton.bitstable import stages as ours

    ours.install(stages)


def begin_emulation() -> None:
    """Emulate from here on, if the environment says so; `import triton` ends with this."""
    if setting := os.environ.get("TRITON_BITSTABLE_EMULATE"):
        from triton.bitstable.emulation import begin_from_environment

        begin_from_environment(setting)


def bitstable_hashes() -> list[str]:
    """A hash of each file of this package, in a fixed order, for the key of the cache on disk.

    What lies in folders of it (`emulation`) runs kernels and does not shape them.
    """
    package = Path(__file__).parent
    files = sorted(path for path in package.iterdir() if path.suffix in {".py", ".so"})
    return [hashlib.sha256(path.read_bytes()).hexdigest() for path in files]
