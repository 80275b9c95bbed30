"""Starting up costs nothing: what `import triton` loads of ours, and what not."""

import ast
import subprocess
import sys
from pathlib import Path


def _loaded_after(statement):
    probe = (
        f"{statement}; import sys; print('\\n'.join(m for m in sys.modules if 'bitstable' in m))"
    )
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_import_loads_only_the_light_modules():
    package = "triton.bitstable"
    light = {f"{package}.{name}" for name in ("_version", "frontend", "install")}
    # The interpreter is imported by Triton's own; ours comes with it.
    allowed = {package, *light, f"{package}.interpreter"}
    assert _loaded_after("import triton") <= allowed


def test_the_package_itself_needs_nothing_of_triton():
    # B1: `triton/__init__.py` reads the version before anything else exists.
    import triton.bitstable

    tree = ast.parse(Path(triton.bitstable.__file__).read_text())
    imports = [node.module for node in tree.body if isinstance(node, ast.ImportFrom)]
    assert imports == ["triton.bitstable._version"]
