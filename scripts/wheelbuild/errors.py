"""The one error of a build: what is wrong, and what to do about it."""


class BuildError(Exception):
    """Stops the build with one message; `help` says what to do."""

    def __init__(self, message: str, help: str | None = None) -> None:
        super().__init__(message)
        self.help = help

    def render(self) -> str:
        """As it is printed."""
        return f"error: {self}" + (f"\n  help: {self.help}" if self.help else "")
