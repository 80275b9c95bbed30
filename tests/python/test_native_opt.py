"""`bitstable-opt`: TTGIR in as Triton prints it, TTGIR out as Triton prints it."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import triton
import triton.language as tl

from compiling import SM90, VENDORS, Pipeline, name_of

TOOL = Path(sys.executable).with_name("bitstable-opt")


@triton.jit
def kernel(x, out, ORDER: tl.constexpr):
    rows = tl.arange(0, 16)
    tile = tl.load(x + rows[:, None] * 64 + tl.arange(0, 64)[None, :])
    tl.store(out + rows, tl.sum(tile, 1, order=ORDER))


def ttgir(target=SM90, order="inner_tree"):
    return Pipeline(kernel, target, ORDER=order).run("ttir", "ttgir").module


def opt(*arguments, text=None, cwd=None):
    return subprocess.run(
        [TOOL, *map(str, arguments)], input=text, capture_output=True, text=True, cwd=cwd
    )


def output(*arguments, text=None):
    done = opt(*arguments, text=text)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_without_passes_text_comes_back(target):
    module = ttgir(target)
    assert output("-", text=module.str_nodebug()).strip() == module.str_nodebug().strip()
    assert output("-", "--print-debuginfo", text=module.str()).strip() == module.str().strip()


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_pinned_text_is_ttgir_that_triton_compiles(target, tmp_path):
    path = tmp_path / "kernel.ttgir"
    path.write_text(ttgir(target).str())
    pinned = tmp_path / "pinned.ttgir"
    output(path, "--pass-pipeline=pin-reduce", "-o", pinned)
    assert '"tt.reduce"' not in pinned.read_text()
    assert "bitstable.pin" not in pinned.read_text()
    compiled = triton.compile(str(pinned), target=target)
    assert not hasattr(compiled.metadata, "bitstable")


def test_unpinned_reductions_are_left_alone():
    module = ttgir(order=None)
    assert output("-", "--pass-pipeline=pin-reduce", text=module.str_nodebug()).strip() == (
        module.str_nodebug().strip()
    )


def test_generic_form():
    printed = output("-", "--generic", text=ttgir().str())
    assert printed.startswith('"builtin.module"() ({')
    assert "#blocked" not in printed


def test_plan_and_report(tmp_path):
    report = tmp_path / "report.json"
    text = ttgir().str()
    printed = output("-", "--pass-pipeline=pin-reduce", "--print-plan", "--json", report, text=text)
    (reduction,) = json.loads(report.read_text())["reductions"]
    heading, *lines = [line for line in printed.splitlines() if line.startswith("//")]
    line = kernel.starting_line_number + 4
    assert heading == f"// axis 1 of 64 at {__file__}:{line}"
    told = [line.removeprefix("//   ") for line in lines]
    assert told == reduction["explained"]
    steps = [line for line in told if re.match(r"\d+\. ", line)]
    assert len(steps) == len(reduction["plan"]) >= 6
    costs = [int(line.rpartition("; cost ")[2]) for line in steps]
    assert told[-1] == f"cost {sum(costs)} in all"


WRONG = """module {
  tt.func @f(%a: i32) {
    tt.retur
  }
}
"""
RIGHT = "module {\n  tt.func @g(%arg0: i32) {\n    tt.return\n  }\n}\n"


def test_syntax_errors_name_the_place_and_the_exit_status_says_so(tmp_path):
    (tmp_path / "k.ttgir").write_text(WRONG)
    done = opt("k.ttgir", cwd=tmp_path)
    assert done.returncode == 1
    assert "k.ttgir\":3:5): error: custom op 'tt.retur' is unknown" in done.stderr
    assert "k.ttgir:1:1: error: " in done.stderr
    assert done.stdout == ""


def test_split_pieces_keep_their_line_numbers_and_go_on_after_an_error():
    text = f"{RIGHT}// -----\n{WRONG}// ----- again\n{RIGHT}"
    done = opt("-", "-split-input-file", text=text)
    assert done.returncode == 1
    assert '"<stdin>":9:5): error: custom op' in done.stderr
    assert done.stdout == f"{RIGHT}\n// -----\n{RIGHT}"


def test_refusals_point_into_the_text():
    text = ttgir().str_nodebug().replace('tt.order = "inner_tree"', 'tt.order = "outer_tree"')
    done = opt("-", "--pass-pipeline=pin-reduce", text=text)
    assert done.returncode == 1
    line = next(n for n, line in enumerate(text.splitlines(), 1) if '"tt.reduce"' in line)
    assert done.stderr.startswith(f"<stdin>:{line}:")
    assert ": error: " in done.stderr
    assert "inner_tree" in done.stderr


@pytest.mark.parametrize("pipeline", ["reduce-pin", "pin-reduce{x=1}"])
def test_unknown_passes_list_the_choices(pipeline):
    done = opt("-", f"--pass-pipeline={pipeline}", text=RIGHT)
    assert done.returncode == 1
    assert "error: " in done.stderr
    assert "pin-reduce" in done.stderr


def test_a_file_that_is_not_there():
    done = opt("/no/such/file.ttgir")
    assert done.returncode == 1
    assert done.stderr.startswith("/no/such/file.ttgir: error: ")


def test_help_teaches():
    for word in ("pin-reduce", "shield-reduce", "-split-input-file", "examples:", "FileCheck"):
        assert word in output("--help")
