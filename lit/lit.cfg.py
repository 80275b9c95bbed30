"""FileCheck tests of the passes and of what Triton makes of their output.

Run by `scripts/test lit`. FileCheck is the one that the Triton wheel ships; `bitstable-opt` is
installed with it. `%emit FILE --target T` prints the PTX or AMDGCN of a module.
"""

import os
import sys
from pathlib import Path

import lit.formats
import triton

config.name = "bitstable"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["tools"]
config.test_source_root = str(Path(__file__).parent)
config.test_exec_root = str(Path(__file__).parents[1] / ".cache" / "lit")

tools = [str(Path(sys.executable).parent), str(Path(triton.__file__).parent)]
config.environment["PATH"] = os.pathsep.join([*tools, os.environ["PATH"]])
config.environment["TRITON_DEFAULT_FP_FUSION"] = "1"
emit = Path(__file__).parent / "tools" / "emit.py"
config.substitutions.append(("%emit", f"{sys.executable} {emit}"))
