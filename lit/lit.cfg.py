"""FileCheck tests of the passes and of what Triton makes of their output.

Run by `scripts/test lit`. FileCheck is the one that the Triton wheel ships; `bitstable-opt` is
installed with it. `%emit FILE --target T` prints the PTX or AMDGCN of a module.
"""

import os
import sys
from pathlib import Path

import lit.formats
import triton

config.name = "bitstable"  # noqa: F821
config.test_format = lit.formats.ShTest(execute_external=False)  # noqa: F821
config.suffixes = [".mlir", ".test"]  # noqa: F821
config.excludes = ["tools"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parents[1] / ".cache" / "lit")  # noqa: F821

tools = [str(Path(sys.executable).parent), str(Path(triton.__file__).parent)]
config.environment["PATH"] = os.pathsep.join([*tools, os.environ["PATH"]])  # noqa: F821
config.environment["TRITON_DEFAULT_FP_FUSION"] = "1"  # noqa: F821
emit = Path(__file__).parent / "tools" / "emit.py"
config.substitutions.append(("%emit", f"{sys.executable} {emit}"))  # noqa: F821
