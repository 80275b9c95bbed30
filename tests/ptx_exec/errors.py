"""What a kernel can do wrong, or what this executor does not know. Nothing here is a warning."""


class PtxError(Exception):
    """A fault at one line of the PTX text."""

    def __init__(self, message: str, line: int = 0, text: str = "") -> None:
        where = f"PTX line {line}: {text.strip()}: " if line else ""
        super().__init__(where + message)
        self.message, self.line, self.text = message, line, text


class UnknownPtx(PtxError):
    """An instruction, modifier or directive outside the known set: never skipped, never guessed."""


class MemoryFault(PtxError):
    """Out of bounds, misaligned, uninitialised, or written where writing is not allowed."""


class Uninitialised(PtxError):
    """A register is read that was never written."""


class Race(PtxError):
    """Two threads touch one byte, one of them writing, with nothing that orders them."""


class Divergence(PtxError):
    """A barrier or an exchange that not all of its threads reach together."""
