"""The measuring bench around its machine model: suite, workers, cache, figures, report."""

import ast
import importlib
import json
import os
import stat
import subprocess
import sys

import pytest

import checkout

sys.path.insert(0, str(checkout.ROOT / "benches"))
sys.path.insert(0, str(checkout.ROOT / "tests"))

from cost import building, command, figures, peer, suite, worker
from cost.building import Job, Triton
from cost.figures import Row
from cost.report import report

MINE = Triton(sys.executable)


def case_named(name):
    (found,) = [case for case in suite.CASES if case.name == name]
    return found


def told(name="short row sum 512x8", target="sm_90", warps=4, order=None):
    return command._told(case_named(name), target, warps, order)


def answers(*jobs, cache, slots=1):
    return building.run(list(jobs), slots, cache, lambda done, total: None)


# The suite.


def test_the_suite_has_what_it_must():
    names = [case.name for case in suite.CASES]
    assert len(names) == len(set(names)) >= 30
    types = {ty for case in suite.CASES for ty in case.signature.values()}
    assert {"*fp32", "*fp16", "*bf16", "*fp8e5"} <= types
    assert any(8192 in case.constants.values() for case in suite.CASES)
    small = [case.constants.get("N") for case in suite.CASES if case.name.startswith("short row")]
    assert small == [2, 4, 8]
    assert 10 < sum(not case.contiguous for case in suite.CASES) < len(names) - 10


@pytest.mark.parametrize("case", suite.CASES, ids=lambda case: case.name)
def test_a_case_says_every_argument_once(case):
    module, _, function = case.kernel.partition(":")
    kernel = getattr(importlib.import_module(f"corpus.kernels.{module}"), function)
    said = [*case.signature, *case.constants, "ORDER"]
    assert sorted(said) == sorted(kernel.arg_names)


def test_importing_the_suite_does_not_import_triton():
    code = "import sys, cost.suite, cost.figures, cost.report; print('triton' in sys.modules)"
    environment = {**os.environ, "PYTHONPATH": str(checkout.ROOT / "benches")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"


# Figures.


def measured(**changed):
    return {
        "instructions": 100,
        "cycles": 1000.0,
        "cycles_memory": 2000.0,
        "communication": 10,
        "registers": 32,
        "stack_bytes": 0,
        "occupancy": 64,
        "global_sectors": 512,
        "path_sectors": 512,
        "shuffles": 5,
        "shared_loads": 1,
        "shared_stores": 1,
        "barriers": 1,
    } | changed


def row(kernel="k", target="sm_90", warps=4, contiguous=True, ours=None, stock=None, **ways):
    ways |= {"ours": {"figures": measured(**(ours or {}))}} if "ours" not in ways else {}
    ways |= {"stock": {"figures": measured(**(stock or {}))}}
    return Row(kernel, target, warps, contiguous, ways)


def broken(kernel="k", way="ours", other="stock"):
    return Row(
        kernel,
        "sm_90",
        4,
        True,
        {way: {"error": "RuntimeError: no"}, other: {"figures": measured()}},
    )


def test_means_are_geometric_and_over_what_both_compile():
    rows = [row(ours={"cycles": 500.0}), row(ours={"cycles": 2000.0}), broken()]
    assert figures.mean(rows, "cycles", "ours", "stock") == pytest.approx(1.0)
    assert figures.mean(rows[:1], "cycles", "ours", "stock") == pytest.approx(0.5)
    assert figures.mean(rows, "cycles", "peer", "stock") is None


def test_no_communication_is_compared_as_one():
    assert row(ours={"communication": 0}, stock={"communication": 0}).ratio("communication") == 1
    assert row(ours={"communication": 3}, stock={"communication": 0}).ratio("communication") == 4
    assert row(ours={"communication": 0}, stock={"communication": 9}).ratio("communication") == 0.1


def test_loops_unrolled_differently_are_compared_by_the_sector():
    unrolled = {"global_sectors": 2048, "path_sectors": 4096, "cycles": 2000.0}
    rolled = {"global_sectors": 512, "path_sectors": 2048, "cycles": 1000.0}
    pair = row(ours=unrolled, stock=rolled)
    assert pair.unrolled() and pair.ratio("cycles") == 1
    straight = row(ours={"global_sectors": 1024, "path_sectors": 1024, "cycles": 2000.0})
    assert not straight.unrolled() and straight.ratio("cycles") == 2


def test_summaries_keep_targets_and_subsets_apart():
    rows = [
        row(ours={"instructions": 50}),
        row(ours={"instructions": 200}, contiguous=False),
        row(ours={"instructions": 300}, target="sm_80", warps=1),
    ]
    means = figures.summary(rows)
    assert list(means) == ["sm_90", "sm_80"]
    assert means["sm_90"]["all"]["ours/stock"]["instructions"] == pytest.approx(1.0)
    assert means["sm_90"]["axes across memory"]["ours/stock"]["instructions"] == pytest.approx(2)
    assert "4 warps or more" not in means["sm_80"] and "4 warps or more" not in means["sm_90"]
    assert "peer/stock" not in means["sm_90"]["all"]


def test_a_mean_that_is_not_reached_is_marked():
    rows = [row(ours={"communication": 4}), row(ours={"cycles": 1010.0}, target="sm_80")]
    text = report(rows, everything=False)
    assert "| cycles, ours/stock, all | 1.00 | 1.000 | 1.010 ✗ |" in text
    assert "| communication, ours/stock, all | 1.00 | 0.455 | 1.000 |" in text
    assert "ours/peer" not in text


def test_every_loss_is_named_the_dearest_first():
    rows = [
        row("even"),
        row("barely", ours={"instructions": 101}),
        row("talks", ours={"communication": 11}),
        row("slow", ours={"cycles": 1500.0}),
        row("won", ours={"cycles": 900.0}),
    ]
    assert [lost.kernel for lost in figures.losses(rows)] == ["slow", "talks", "barely"]
    text = report(rows, everything=False)
    assert "dearer than stock in anything: 3 of 5" in text
    assert "| slow, 4 warps |" in text and "| won, 4 warps |" not in text
    assert "| won, 4 warps |" in report(rows, everything=True)


@pytest.mark.parametrize(
    ("changed", "rule"),
    [
        ({"ours": {"cycles": 1160.0}}, "cycles above 1.15"),
        ({"ours": {"cycles": 1160.0}, "warps": 2}, None),
        ({"ours": {"cycles": 1510.0}, "warps": 1}, "cycles above 1.5"),
        ({"ours": {"cycles": 1150.0}}, None),
        ({"ours": {"registers": 41, "occupancy": 48}}, "registers"),
        ({"ours": {"registers": 41}}, None),
        ({"ours": {"registers": 40, "occupancy": 48}}, None),
        ({"ours": {"stack_bytes": 8}}, "stack"),
        ({"ours": {"global_sectors": 520, "path_sectors": 520}}, "sectors"),
        ({"ours": {"global_sectors": 2048}, "stock": {"global_sectors": 1024}}, None),
        ({"ours": {"registers": None}, "stock": {"registers": None}}, None),
    ],
)
def test_what_is_not_allowed_to_one_kernel(changed, rule):
    found = figures.violations([row(**changed)])
    assert [rule in violation.rule for violation in found] == ([True] if rule else [])
    if rule:
        assert found[0].rule in report([row(**changed)], everything=False)


def test_a_compile_regression_is_ours_alone():
    assert figures.regressions([broken("mine")]) != []
    assert figures.regressions([broken(way="stock", other="ours"), row()]) == []
    both = Row("both", "sm_90", 4, True, {key: {"error": "no"} for key in ("stock", "ours")})
    assert figures.regressions([both]) == []
    text = report([broken("mine"), both], everything=False)
    assert "Compile regressions: 1" in text and "mine, 4 warps: RuntimeError: no" in text
    assert "Not compiled by stock: 1" in text


def test_a_fault_of_the_bench_is_no_compile_error():
    faulty = Row("k", "sm_90", 4, True, {"stock": {"fault": "KeyError: LDX"}, "ours": {}})
    assert figures.regressions([faulty]) == [] and list(figures.faults([faulty])) == [
        "KeyError: LDX"
    ]
    assert "Faults of the bench: KeyError: LDX: 1" in report([faulty], everything=False)


def test_what_no_launch_can_run_says_so():
    assert row(target="gfx942", warps=32).name == "k, 32 warps (no launch)"
    assert row(target="gfx942", warps=16).name == "k, 16 warps"
    assert row(target="sm_90", warps=32).launchable


# Workers and their cache.


def test_both_ways_are_measured_and_remembered(tmp_path):
    jobs = [Job(MINE, told(order=order)) for order in (None, "inner_tree")]
    first = answers(*jobs, cache=tmp_path, slots=2)
    for answer in first:
        assert answer["figures"]["instructions"] > 20
        assert answer["figures"]["cycles"] > 0 and answer["figures"]["occupancy"] > 0
        assert answer["figures"]["global_sectors"] >= 512
    assert first[0]["figures"] != first[1]["figures"]
    kept = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gz")}
    assert len(kept) == 4
    assert answers(*jobs, cache=tmp_path) == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.gz")} == kept


def test_amd_is_measured_too(tmp_path):
    (answer,) = answers(Job(MINE, told(target="gfx942")), cache=tmp_path)
    assert answer["figures"]["instructions"] > 20 and answer["figures"]["registers"] > 0


def test_an_error_of_the_compiler_is_an_answer(tmp_path):
    wrong = told() | {"signature": {"x": "*fp64", "out": "*i1"}, "warps": 3}
    bad, good = answers(Job(MINE, wrong), Job(MINE, told()), cache=tmp_path)
    assert "error" in bad and "figures" in good


def script(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return Triton(str(path))


def test_a_compiler_that_dies_costs_one_job(tmp_path):
    dying = script(tmp_path / "python", "read job; echo 'LLVM ERROR: out of luck' >&2; exit 1")
    first, second = answers(Job(dying, {}), Job(dying, {}), cache=tmp_path)
    assert first == second == {"error": "compiler died: LLVM ERROR: out of luck"}


def test_a_compile_that_does_not_end_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(building, "SECONDS_A_JOB", 0.2)
    stuck = script(tmp_path / "python", "exec sleep 60")
    assert answers(Job(stuck, {}), cache=tmp_path) == [{"error": "took more than 0.2 s"}]


def test_a_cache_asks_once_and_holds_no_halves(tmp_path):
    cache, made = worker.Cache(tmp_path), []

    def make():
        made.append(1)
        return {"asm": "ä"}

    key = worker.digest("a", "b")
    assert cache.get(key, make) == cache.get(key, make) == {"asm": "ä"}
    assert made == [1]
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [f"{key}.json.gz"]
    assert worker.digest("ab", "") != worker.digest("a", "b")


def test_what_is_changed_decides_what_is_compiled_anew(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(worker, "compile_job", lambda job: compiled.append(job) or {"error": "no"})
    cache = worker.Cache(tmp_path)
    stock, ours = told(), told(order="inner_tree")

    def run(**changed):
        for name, value in changed.items():
            monkeypatch.setattr(worker, name, lambda value=value: value)
        compiled.clear()
        for job in (stock, ours):
            worker.work(job, cache)
        return compiled

    assert run(_triton="1", _bitstable="1") == [stock, ours]
    assert run() == []
    assert run(_bitstable="2") == [ours]
    assert run(_triton="2") == [stock, ours]
    assert run(_model="2") == []


def test_switches_of_ours_do_not_change_stock(monkeypatch):
    stock, ours = worker._switches(ours=False), worker._switches(ours=True)
    monkeypatch.setenv("TRITON_CACHE_DIR", "/elsewhere")
    assert (worker._switches(ours=False), worker._switches(ours=True)) == (stock, ours)
    monkeypatch.setenv("TRITON_BITSTABLE_LAYOUT", "off")
    assert worker._switches(ours=False) == stock and worker._switches(ours=True) != ours


# The peer.


def test_the_peer_gets_kernels_without_the_keyword():
    source = "tl.sum(x, axis=0, order=ORDER)\ntl.load(order=(1, 0))\n"
    assert peer.unordered(source) == "tl.sum(x, axis=0)\ntl.load(order=(1, 0))\n"
    for path in peer.KERNELS.glob("*.py"):
        assert "order=" not in peer.unordered(path.read_text())


def test_what_is_no_peer_is_refused(tmp_path):
    with pytest.raises(peer.PeerError, match="--make-peer"):
        peer.peer(sys.executable, tmp_path)
    with pytest.raises(peer.PeerError, match="does not run"):
        peer.peer(str(tmp_path / "none"), tmp_path)
    other = script(tmp_path / "python", "echo fbtriton==3.0.0").python
    with pytest.raises(peer.PeerError, match=r"has fbtriton==3\.0\.0, not fbtriton==3\.7\.4"):
        peer.peer(other, tmp_path)


def test_a_peer_reads_its_own_kernels_and_pins_all(tmp_path):
    found = peer.peer(
        script(tmp_path / "python", f"echo {peer.REQUIREMENT}").python, tmp_path / "k"
    )
    assert dict(found.environment) == {"TRITON_STRICT_REDUCTION_ORDERING": "1"}
    copies = list((tmp_path / "k" / "corpus" / "kernels").glob("*.py"))
    assert len(copies) == len(list(peer.KERNELS.glob("*.py")))
    for path in copies:
        ast.parse(path.read_text())


# The command.


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--filter", "no such kernel"], "no kernel's name contains"),
        (["--targets", "sm_70"], "sm_70 is none of"),
        (["--warps", "3"], "3 is none of"),
        (["--jobs", "0"], "at least 1"),
        (["--from", "/nowhere.json"], "is not what --json wrote"),
        (["--peer", "/nowhere/python", "--filter", "1-D"], "does not run"),
    ],
)
def test_wrong_usage_is_told(arguments, message, capsys):
    assert command.main(arguments) == 2
    told = capsys.readouterr()
    assert message in told.err and told.out == ""


def test_json_is_read_back(tmp_path, capsys):
    rows = [row(ours={"cycles": 1200.0}), broken("mine")]
    path = tmp_path / "cost.json"
    path.write_text(json.dumps(command._document(rows)))
    assert command.main(["--from", str(path), "--json", "-"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert document == json.loads(path.read_text())
    assert document["means"]["sm_90"]["all"]["ours/stock"]["cycles"] == pytest.approx(1.2)
    assert command.main(["--from", str(path), "--filter", "k", "--warps", "4"]) == 0
    assert "cycles above 1.15" in capsys.readouterr().out


def test_the_program_runs(tmp_path):
    program = [sys.executable, str(checkout.ROOT / "benches" / "cost"), "--list"]
    done = subprocess.run(program, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines() == [c.name for c in suite.CASES]


def test_plots_are_the_same_bytes_twice(tmp_path):
    pytest.importorskip("matplotlib")
    from cost import plot

    rows = [row("a"), row("b", ours={"cycles": 1500.0}, peer={"figures": measured()})]
    (first,), (second,) = plot.draw(rows, tmp_path / "1"), plot.draw(rows, tmp_path / "2")
    assert first.read_bytes() == second.read_bytes()
    assert b"b, 4 warps" in first.read_bytes()
