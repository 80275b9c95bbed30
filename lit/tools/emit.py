"""Print the PTX or AMDGCN that Triton makes of a TTGIR file.

$ python emit.py kernel.mlir --target cuda:90
$ python emit.py kernel.mlir --target hip:gfx942
"""

import argparse
import os
import shutil
import tempfile
from pathlib import Path


def main() -> None:
    """Compiles in a private cache, and prints the assembly."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    parser.add_argument("--target", required=True, help="cuda:90, hip:gfx942, …")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TRITON_CACHE_DIR"] = folder
        import triton
        from triton.backends.compiler import GPUTarget

        backend, arch = options.target.split(":")
        wave = 64 if arch.startswith("gfx9") else 32
        source = Path(folder) / "kernel.ttgir"
        shutil.copy(options.file, source)
        target = GPUTarget(backend, int(arch) if backend == "cuda" else arch, wave)
        kernel = triton.compile(str(source), target=target)
        print(kernel.asm["ptx" if backend == "cuda" else "amdgcn"])


if __name__ == "__main__":
    main()
