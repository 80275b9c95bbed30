"""Generic text out and in: nothing is lost, nothing else is disturbed."""

import re
from concurrent.futures import ThreadPoolExecutor

import pytest
import triton
import triton.language as tl
from triton.bitstable import stages, text

from compiling import SM90, TARGETS, VENDORS, Pipeline, compile, name_of


@triton.jit
def kernel(x, out, N: tl.constexpr):
    rows = tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    for step in range(4):
        tile += tl.dot(tile, tile) * step
    tl.store(out + rows, tl.sum(tile, 1) + tl.max(tile.to(tl.float16), 1))


def ttgir(target, kernel=kernel, **constants):
    return Pipeline(kernel, target, **(constants or {"N": 32})).run("ttir", "ttgir").module


def generic(module):
    return text.print_generic(stages.Scan.of(module).body)


@pytest.mark.parametrize("target", TARGETS, ids=name_of)
def test_a_round_trip_changes_nothing(target):
    module = ttgir(target)
    back = text.parse(generic(module), module.context)
    assert back.str() == module.str()  # locations included


def test_text_is_generic_and_local():
    printed = generic(ttgir(SM90)).decode()
    assert '"tt.func"() <{' in printed
    assert not re.search(r"#(blocked|loc)\d*\b", printed)
    assert f'"{__file__}"' in printed


def test_parsing_verifies():
    module = ttgir(SM90)
    broken = generic(module).replace(b'"tt.reduce.return"(', b'"tt.reduce.return"(%zz, ', 1)
    with pytest.raises(RuntimeError):
        text.parse(broken, module.context)


def test_threads_print_at_once_and_disturb_nobody():
    module = ttgir(SM90)
    pretty, plain = generic(module), module.str()

    def one(number):
        own = ttgir(SM90)
        return [(own.str(), generic(own)) for _ in range(20)] if number % 2 else [own.str()] * 20

    with ThreadPoolExecutor(8) as pool:
        results = [each for part in pool.map(one, range(8)) for each in part]
    for result in results:
        assert result == plain or result == (plain, pretty)


@triton.jit
def pinned_kernel(x, out, N: tl.constexpr):
    rows = tl.arange(0, N)
    tile = tl.load(x + rows[:, None] * N + tl.arange(0, N)[None, :])
    total = tl.sum(tile, 1, order="inner_tree")
    tl.store(out + rows, total)


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_debug_lines_find_the_users_file(target):
    compiled = compile(pinned_kernel, target, N=32)
    assembly = compiled.asm["ptx" if target.backend == "cuda" else "amdgcn"]
    files = dict(re.findall(r'\.file\s+(\d+) .*?([^"/]+\.py)"', assembly))
    numbers = [number for number, name in files.items() if name == "test_native_text.py"]
    assert len(numbers) == 1
    lines = {int(n) for n in re.findall(rf"\.loc\s+{numbers[0]} (\d+)", assembly)}
    begin = pinned_kernel.starting_line_number
    # The load, the reduction (as the place it was inlined at) and the store.
    inlined = {int(n) for n in re.findall(rf"inlined_at {numbers[0]} (\d+)", assembly)}
    assert {begin + 3, begin + 5} <= lines
    assert begin + 4 in lines | inlined or target.backend == "hip"
