"""`TRITON_INTERPRET=1` folds the same tree."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def test_the_interpreter_folds_the_canonical_tree():
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    script = HERE / "interpreted.py"
    done = subprocess.run(
        [sys.executable, script], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok") == 15
