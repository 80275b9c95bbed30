"""`python benches/cost`: a folder run as a program has to find its own package first."""

import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parents[1])

from cost.command import main  # noqa: E402 - found by the line above

if __name__ == "__main__":
    sys.exit(main())
