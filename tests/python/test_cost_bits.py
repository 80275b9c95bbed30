"""The bits of every kernel of `benches/cost`: whatever warps and layouts, those of its oracle.

# Idea
What is measured must be what was promised. Each kernel is compiled for every number of warps, with
the layout pass and without. The static checker proves the compilations to be of one class; all of
them run on the executor, on draws made to show an order, and return the oracle's bits.

`BITSTABLE_COST_SEED` chooses other draws and samples, `BITSTABLE_COST_SAMPLE` how many compilations
of a kernel are sampled of those that are not always run (all, where it is as many or more).

# Not here
Code that is given up for what `ptxas` makes of it (`test_layout_fallback.py`): nothing is compiled
beyond PTX, so `auto` is what the layout pass chose first.
"""

import itertools
import os
import sys

import numpy as np
import pytest
from triton.bitstable import _native, strategies

import checkout

sys.path.insert(0, str(checkout.ROOT / "benches"))
sys.path.insert(0, str(checkout.ROOT / "tests"))

from cost.suite import CASES

from bits import WARPS, Build
from compiling import SM80, SM90, SM100
from suite_launch import DRAWS, SCALARS, Bench, compile_case
from suite_oracles import EXPECT, Elementwise

SEED = int(os.environ.get("BITSTABLE_COST_SEED", "20261206"))
SAMPLE = int(os.environ.get("BITSTABLE_COST_SAMPLE", "4"))
LAYOUTS = (strategies.AUTO, strategies.OFF)

# Kernels of which the checker proves less than one class, and why.
UNPROVED = {
    "argmax 16x256": "replicas in shared memory are computed by other selections",
    "column argmax 128x32": "replicas in shared memory are computed by other selections",
    "log softmax 4x1024": "LLVM writes the integers in a logarithm in two ways",
    "cross entropy 4x1024": "LLVM writes the integers in a logarithm in two ways",
    "online softmax 4x256": "LLVM writes the integers in a logarithm in two ways",
}


def builds(target, layouts, fusion):
    return [
        Build(warps=warps, target=target, layout=layout, fusion=fusion)
        for layout, warps in itertools.product(layouts, WARPS)
    ]


def sampled(case, population):
    """Some of a population, other ones for each case."""
    rng = np.random.default_rng((SEED, CASES.index(case)))
    kept = sorted(rng.permutation(len(population))[:SAMPLE])
    return [population[at] for at in kept]


def executable(case, target):
    """The case's target where the executor has its matrix instructions, or sm_80."""
    return SM80 if case.kernel.startswith("products:") else target


def launch_of(case, build, compiled):
    """A kernel as the checker takes it: the number of a loop's rounds is known, so that it ends."""
    known = {str(at): SCALARS[name] for at, name in enumerate(case.signature) if name == "steps"}
    return {
        "ptx": compiled.ptx, "name": str(build), "entry": compiled.name, "grid": [1],
        "block": [32 * compiled.warps], "scalars": known,
    }  # fmt: skip


def classes(case, compiled):
    """The checker's answer on compilations of one case."""
    kernels = [launch_of(case, build, each) for build, each in compiled.items()]
    request = {"kernels": kernels, "confirm": True, "jobs": 1}
    answer = _native.library().equiv(request | {"explain": 0 if case.name in UNPROVED else 1})
    assert not answer["errors"] and not answer["unconfirmed"], answer
    return answer


def departures(case, compiled):
    """Where a compilation's outputs are not the oracle's."""
    ((target, fusion),) = {(build.target, build.fusion) for build in compiled}
    found = []
    for draw in DRAWS:
        bench = Bench(case, draw, SEED, Elementwise(target, fusion))
        for build, each in compiled.items():
            if difference := bench.difference(each):
                found.append(f"{case.name}, {build}, seed {SEED}, {difference}")
    return found


def every(case, builds):
    return {build: compile_case(case, build) for build in builds}


def test_every_kernel_has_an_oracle():
    assert {case.kernel for case in CASES} == EXPECT.keys()
    assert UNPROVED.keys() <= {case.name for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_warps_and_layouts_leave_the_bits(case):
    target = executable(case, SM90)
    compiled = every(case, builds(target, LAYOUTS, fusion=True))
    assert not departures(case, compiled)
    answer = classes(case, compiled)
    assert answer["same"] or case.name in UNPROVED, answer["differences"] or answer["classes"]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_other_targets_and_strategies_leave_the_bits(case):
    # Without contractions: those of elementwise work change with the packed operations of sm_100.
    others = [strategy for strategy in strategies.STRATEGIES if strategy not in LAYOUTS]
    population = builds(executable(case, SM90), others, fusion=False)
    if executable(case, SM100) == SM100:
        population += builds(SM100, strategies.STRATEGIES, fusion=False)
    print(f"seed {SEED}, {SAMPLE} of {len(population)}")
    chosen = sampled(case, population)
    for target in {build.target for build in chosen}:
        compiled = every(case, [build for build in chosen if build.target == target])
        assert not departures(case, compiled)
