"""Running kernels without a GPU: the emulated driver over the PTX executor.

# Idea
`triton.runtime.driver` takes any object that answers as a device does. Ours ([`driver`]) says it is
the target asked for, so kernels are compiled for it by Triton's own pipeline; its launcher
([`launcher`]) hands the PTX, a copy of the arguments' memory ([`memory`]) and the parameters to the
native library, and turns what that finds into [`reports`]. [`session`] puts the driver in place,
[`interpose`] lists what else has to be replaced meanwhile.

# Invariants
- **N1** Outside an emulation nothing of Triton is changed.
- **N2** A launch either runs as on the device or raises `EmulationError`; nothing is skipped.

# Held by
`tests/python/test_emulate_*.py`. The native library's side is `src/emulation.rs` and the crate
`ptx/`; the user's guide is `docs/emulation.md`.
"""

from triton.bitstable.emulation.arguments import view
from triton.bitstable.emulation.reports import Report, Site
from triton.bitstable.emulation.session import begin_from_environment, emulate
from triton.bitstable.errors import EmulationError

__all__ = ["EmulationError", "Report", "Site", "begin_from_environment", "emulate", "view"]
