"""The console script: native commands through the library, `bits` in Python."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
KERNELS = ROOT / "cli" / "tests" / "kernels"
COMMAND = Path(sys.executable).with_name("bitstable")
# Loops for as long as the step limit lets it.
ENDLESS = """
.version 8.7
.target sm_90
.address_size 64
.visible .entry endless()
.reqntid 32
{
$L_loop:
    bra $L_loop;
}
"""


def run(*arguments, **options):
    command = [COMMAND, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def test_help_lists_all_commands():
    ended = run("--help")
    assert ended.returncode == 0
    words = {line.split()[0] for line in ended.stdout.split("\n") if line}
    assert {"run", "tree", "equiv", "bits"} <= words


def test_a_kernel_runs():
    ended = run("run", KERNELS / "add.ptx", "--grid", 1, "x=f32:4=1,2,3,4", "y=f32:4=iota",
                "out=f32:4", "n=4", "--json", "--print", "out")  # fmt: skip
    assert (ended.returncode, ended.stderr) == (0, "")
    report = json.loads(ended.stdout)
    assert report["buffers"][2]["values"] == ["1.0", "3.0", "5.0", "7.0"]


@pytest.mark.parametrize(("kernel", "status"), [("row_sum.ptx", 0), ("row_sum_stock.ptx", 1)])
def test_trees_are_judged(kernel, status):
    ended = run("tree", KERNELS / kernel, "--grid", 2, "--shared", 8,
                "x=f32:128=random:1", "out=f32:2")  # fmt: skip
    assert (ended.returncode, ended.stderr) == (status, "")
    assert ("not canonical" in ended.stdout) == bool(status)


def test_kernels_are_compared():
    ended = run("equiv", KERNELS / "row_sum.ptx", KERNELS / "row_sum_stock.ptx", "--json")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert [each["kernels"] for each in json.loads(ended.stdout)["classes"]] == [[0], [1]]
    listed = f"{KERNELS / 'row_sum.ptx'}\n" * 2
    assert run("equiv", "--files-from", "-", input=listed).returncode == 0


def test_ptx_from_standard_input():
    text = (KERNELS / "racy.ptx").read_text()
    ended = run("run", "-", "--grid", 1, "--shared", 128, "out=i32:64", input=text)
    assert ended.returncode == 1
    assert "error: race" in ended.stdout


def test_failures_are_on_standard_error():
    ended = run("run", "none.ptx", "--grid", 1)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert ended.stderr.startswith("error: none.ptx: ")
    ended = run("run", os.fsdecode(b"\xff.ptx"), "--grid", 1)
    assert (ended.returncode, ended.stderr) == (2, "error: an argument is not UTF-8\n")


def test_bits_is_pythons():
    ended = run("bits", "--help")
    assert ended.returncode == 0
    assert ended.stdout.startswith("usage: bitstable bits")


def test_an_interrupt_ends_it_at_once(tmp_path):
    kernel = tmp_path / "endless.ptx"
    kernel.write_text(ENDLESS)
    arguments = [COMMAND, "run", kernel, "--grid", "1", "--step-limit", str(2**62)]
    # A background job begins with SIGINT ignored, and hands that on.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        process = subprocess.Popen(arguments, stderr=subprocess.PIPE)
    finally:
        signal.signal(signal.SIGINT, before)
    try:
        time.sleep(3)
        assert process.poll() is None
        process.send_signal(signal.SIGINT)
        begun = time.monotonic()
        assert process.wait(timeout=20) == 130
        assert time.monotonic() - begun < 5
        assert process.stderr.read() == b""
    finally:
        process.kill()
        process.communicate()


def test_a_failure_to_load_the_library_is_said(monkeypatch, capsys):
    from triton.bitstable import _native, cli

    monkeypatch.setattr(_native, "_loaded", None)
    monkeypatch.setattr(_native, "LIBRARY_PATH", Path("/nowhere/libbitstable.so"))
    assert cli.main(["run"]) == 2
    assert "/nowhere/libbitstable.so" in capsys.readouterr().err
