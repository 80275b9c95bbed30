"""What keeps `same_bits` from choosing."""

from __future__ import annotations

from triton.runtime.errors import AutotunerError


class SameBitsError(AutotunerError):
    """There is nothing that may be timed: the message says why, and what to do."""

    def __str__(self) -> str:
        return f"same_bits: {self.error_message}"
