"""Autotuning that does not move the bits: an autotuner's pruner that asks the static checker.

# Idea
`same_bits` is an `early_config_prune` ([`pruner`]): every configuration is compiled, in parallel
and into Triton's own cache ([`compiling`]); what the launch tells of it becomes facts ([`facts`]);
the checker puts the PTX into classes ([`checking`]); and those of the reference's class are left to
be timed ([`selection`]).

# Invariants
- **P1** What is kept is proved: it is in the checker's class of the reference, launched on as many
  CTAs, with parameters of the same names and types. What is not understood is dropped.
- **P2** A fact is used only where it holds for every launch that the autotuner will serve with this
  choice: scalars of its `key`, what a configuration says itself, and the grid where the caller says
  that it follows from the key.
- **P3** The reference is kept, or an error says why there is none. Nothing else is timed instead.

# Held by
`tests/python/test_same_bits*.py`. The user's guide is `docs/tuning.md`.

# Not here
The proof (the crate `equiv/`). What `ptxas` makes of PTX: where it may contract, nothing is proved.
"""

from triton.bitstable.tuning.errors import SameBitsError
from triton.bitstable.tuning.pruner import SameBits, proved_same, same_bits
from triton.bitstable.tuning.selection import Selection

__all__ = ["SameBits", "SameBitsError", "Selection", "proved_same", "same_bits"]
