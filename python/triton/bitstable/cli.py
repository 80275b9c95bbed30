"""`bitstable`: run a kernel's PTX on the CPU, judge its reductions, compare its bits.

# Idea
`bits` compiles kernels and is Python; every other command is the native library's, which writes to
the process's own streams. It runs on a second thread, so that this one can be interrupted.

# Invariants
- **C1** An interrupt ends the process at once, with status 130: the native call cannot be stopped
  half-way, and nothing is lost but its answer.
"""

from __future__ import annotations

import os
import sys
import threading

from triton.bitstable import _native
from triton.bitstable.errors import NativeLibraryError

INTERRUPTED = 130
ERROR = 2


def main(arguments: list[str] | None = None) -> int:
    """Run the command; its exit status."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        return _bits(arguments[1:]) if arguments[:1] == ["bits"] else _run(arguments)
    except NativeLibraryError as error:
        print(error, file=sys.stderr)
        return ERROR
    except KeyboardInterrupt:
        sys.stderr.flush()
        os._exit(INTERRUPTED)


def _bits(arguments: list[str]) -> int:
    try:
        from triton.bitstable import bits
    except ModuleNotFoundError as error:
        if error.name != "triton.bitstable.bits":
            raise
        print("error: this build has no `bitstable bits`", file=sys.stderr)
        return ERROR
    return bits.main(arguments)


def _run(arguments: list[str]) -> int:
    """Run a native command, so that this thread can still be interrupted."""
    library = _native.library()
    sys.stdout.flush()
    status = [ERROR]

    def call() -> None:
        status[0] = library.main(["bitstable", *arguments])

    thread = threading.Thread(target=call, name="bitstable", daemon=True)
    thread.start()
    thread.join()
    return status[0]


if __name__ == "__main__":
    sys.exit(main())
