"""`python -m wheelbuild`; `scripts/build-wheel` sets the path and calls it."""

import sys

from wheelbuild.cli import main

sys.exit(main())
