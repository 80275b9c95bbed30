"""Whether the checks can fail: what is broken in a pinned kernel's PTX, runs and trees must see.

Each mutant lacks one barrier, reads another lane, adds another value, or is given other pointers.
"""

import re
from dataclasses import replace

import pytest

from bits import Build
from test_bits import tile_sum

BUILD = Build(4)
EXTENT = 512
BARRIER = re.compile(r"^\s*bar\.sync.*\n", re.MULTILINE)
SHUFFLED = re.compile(r"shfl\.sync\.bfly\.b32\s+%r\d+, %r\d+, (\d+), 31, -1;")
ADDED = re.compile(r"add\.rn\.f32\s+%r\d+, %r\d+, (%r\d+);")


@pytest.fixture(scope="module")
def pinned():
    """A row sum over registers, lanes and four warps: its launch, and its code."""
    case = tile_sum(4, EXTENT, 1)
    return case.launch()[0], case.compile(BUILD)


def spliced(compiled, start, end, text):
    """The kernel with `text` in place of a part of its PTX."""
    return replace(compiled, ptx=compiled.ptx[:start] + text + compiled.ptx[end:])


def test_every_barrier_of_a_compiled_kernel_is_needed(pinned):
    launch, compiled = pinned
    barriers = list(BARRIER.finditer(compiled.ptx))
    assert barriers
    for barrier in barriers:
        with pytest.raises(AssertionError, match="race"):
            launch.run(spliced(compiled, *barrier.span(), ""), BUILD)


def test_code_for_aligned_pointers_needs_them(pinned):
    """Unaligned builds of the other tests run one element off, or this would pass."""
    launch, compiled = pinned
    assert launch.run(compiled, BUILD).size == 4
    with pytest.raises(AssertionError, match="misaligned"):
        launch.run(compiled, replace(BUILD, aligned=False))


def test_every_changed_shuffle_and_addition_is_seen(pinned):
    """By the trees, whatever the bits of this draw are."""
    launch, compiled = pinned
    # The partner across the next bit: lanes that differ in lower bits alone may hold one value.
    across = {"1": "2", "2": "4", "4": "8", "8": "16", "16": "1"}
    changes = [(found, across[found[1]]) for found in SHUFFLED.finditer(compiled.ptx)]
    changes += [(found, "%r1") for found in ADDED.finditer(compiled.ptx)]
    assert len(changes) > 5
    mutants = [spliced(compiled, *found.span(1), other) for found, other in changes]
    whole, *trees = launch.trees([compiled, *mutants], EXTENT)
    assert whole.canonical, whole.why
    for (found, other), tree in zip(changes, trees, strict=True):
        assert not tree.canonical, f"{found[0]} with {other}"
        assert tree.digest != whole.digest, f"{found[0]} with {other}"


def test_swapped_leaves_are_seen(pinned):
    """Additions of the wrong neighbours: a tree of another order, often with other bits."""
    launch, compiled = pinned
    first, second = list(ADDED.finditer(compiled.ptx))[:2]
    swapped = spliced(compiled, *second.span(1), first[1])
    swapped = spliced(swapped, *first.span(1), second[1])
    whole, tree = launch.trees([compiled, swapped], EXTENT)
    assert whole.canonical, whole.why
    assert not tree.canonical
    assert tree.digest != whole.digest
