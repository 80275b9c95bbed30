"""Which layouts a pinned reduction's operands may be given, as a user says it.

# Idea
`auto` tries every rewrite that `reduce-layout` knows and takes the cheapest; `renumber` and
`convert` keep to one kind; `off` leaves Triton's layouts alone. All of them return the same bits.
A compile option, `bitstable_reduce_layout`, says which, so the choice is in both of Triton's cache
keys; the knob is its default.

# Not here
What becomes of a rewrite that makes worse code (`lookahead`). This file is imported by Triton's own
at start-up, so it imports nothing.
"""

from __future__ import annotations

AUTO, RENUMBER, CONVERT, OFF = STRATEGIES = ("auto", "renumber", "convert", "off")
OPTION = "bitstable_reduce_layout"
_VARIABLE = "TRITON_BITSTABLE_REDUCE_LAYOUT"


def strategy(said: str | None, knob: str | None = None) -> str:
    """The strategy of one compilation, from its option and from the knob."""
    chosen = next((choice for choice in (said, knob) if choice is not None), AUTO)
    if chosen in STRATEGIES:
        return chosen
    choices = ", ".join(STRATEGIES)
    raise ValueError(f"{OPTION} ({_VARIABLE}) must be one of {choices}; got {chosen!r}")


def fallbacks(chosen: str) -> tuple[str, ...]:
    """What is tried, in this order, until the code has no fault; the last rewrites nothing."""
    if chosen == AUTO:
        return (AUTO, RENUMBER, OFF)
    return (chosen, OFF) if chosen != OFF else (OFF,)
