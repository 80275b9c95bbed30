"""What ends a sweep before it has an answer."""

from __future__ import annotations


class UsageError(ValueError):
    """What was asked for makes no sense; the message says what to write instead."""
