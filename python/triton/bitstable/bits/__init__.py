"""Which configurations of a kernel give the same bits: observed bit classes.

# Idea
A kernel is compiled for every configuration ([`configurations`]: target, warps, stages, fusion,
pointer alignment, constants), each is run on the CPU executor on draws that show an order of
evaluation ([`draws`]), and configurations whose buffers were equal on all draws are one class
([`classes`]). `bitstable bits` prints the classes and judges them ([`command`]); [`sweep`] gives
them to a test.

# Invariants
- **B1** A class is observed, never proved. Different classes are proved different: their draw can
  be run again.
- **B2** No configuration is dropped. Every one is in a class, or is listed with the reason why it
  is in none.

# Held by
`tests/python/test_bit_classes.py`. The user's guide is `docs/bits.md`.

# Not here
Executing PTX (`triton.bitstable.emulation` and the crate `ptx/`), and what happens below PTX:
`ptxas` may still contract a `mul` and an `add` that say no rounding.
"""

from triton.bitstable.bits.arguments import Argument, Buffer, Scalar
from triton.bitstable.bits.classes import BitClass, Classes, Difference, Exit, Verdict
from triton.bitstable.bits.command import main
from triton.bitstable.bits.configurations import Configuration, matrix
from triton.bitstable.bits.draws import Draw
from triton.bitstable.bits.errors import UsageError
from triton.bitstable.bits.execution import Finding, Outcome, Status
from triton.bitstable.bits.sweeping import sweep

__all__ = [
    "Argument",
    "BitClass",
    "Buffer",
    "Classes",
    "Configuration",
    "Difference",
    "Draw",
    "Exit",
    "Finding",
    "Outcome",
    "Scalar",
    "Status",
    "UsageError",
    "Verdict",
    "main",
    "matrix",
    "sweep",
]
