"""One program, run in a process of its own on the interpreter or on an emulated device.

`python emulated.py FILE` writes the results of a few pinned reductions. Under `TRITON_INTERPRET=1`
the arrays are dressed as tensors; under `TRITON_BITSTABLE_EMULATE` they are passed as they are.
"""

import os
import sys

import numpy as np

import kernels
from interpreted import Tensor

INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"
SHAPE = M, N = 8, 64


def run(kernel, inputs, size, dtype, *constants):
    out = np.zeros(size, dtype)
    arrays = [*inputs, out]
    kernel[(1,)](*(Tensor(array) if INTERPRETED else array for array in arrays), *constants)
    return out


def main():
    rng = np.random.default_rng(11)

    def draw():
        values = rng.standard_normal(SHAPE) * 2.0 ** rng.integers(-20, 20, SHAPE)
        return values.astype(np.float32)

    x, y, ties = draw(), draw(), rng.integers(0, 5, SHAPE).astype(np.float32)
    order = "inner_tree"
    results = {}
    for axis, kept in ((0, N), (1, M)):
        tile = (M, N, axis, order)
        results[f"sum {axis}"] = run(kernels.sum_tile, [x], kept, np.float32, *tile)
        results[f"argmax {axis}"] = run(kernels.argmax_tile, [ties], kept, np.int32, *tile)
        results[f"welford {axis}"] = run(kernels.welford_tile, [x], 3 * kept, np.float32, *tile)
        results[f"halving {axis}"] = run(kernels.halve_tile, [y], kept, np.float32, *tile)
        results[f"maps {axis}"] = run(kernels.compose_tile, [x, y], 2 * kept, np.float32, *tile)
    results["all"] = run(kernels.sum_all, [x], 1, np.float32, M, N, order)
    np.savez(sys.argv[1], **results)


if __name__ == "__main__":
    main()
