"""The soundness corpus: how it is chosen and judged; a fixed slice of it against the checker."""

import copy
import hashlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

import checkout

sys.path.insert(0, str(checkout.ROOT / "tests"))

from corpus import building, checking
from corpus.building import Builder, CorpusError, Plan
from corpus.matrices import CASES, KIND

COMMAND = Path(sys.executable).with_name("bitstable")
SEED, SIZE = 0, 450
KERNELS, CONFIGURATIONS = 45, 10_000


def line(label, case="sum", **more):
    """A line of a manifest; equal texts have equal names."""
    digest = hashlib.sha256(repr((label, more)).encode()).hexdigest()[:8]
    return {"kernel": "sum_rows", "case": case, "configuration": {"target": "sm_80"},
            "ptx": f"{digest}.ptx", "entry": "f", "grid": [1, 1, 1], "threads": 32,
            "scalars": {}, "label": label, "errors": [] if label else ["race"], **more}  # fmt: skip


def answer(*classes, errors=()):
    return {
        "classes": [
            {"signature": f"{at:032x}", "kernels": list(each)} for at, each in enumerate(classes)
        ],
        "errors": [{"kernel": at, "error": "no such file"} for at in errors],
    }


def test_the_corpus_is_as_large_as_it_was_asked_to_be():
    assert len(KIND) >= KERNELS and len({case.name for case in CASES}) == len(CASES)
    configurations = {
        (case.name, building.axes_text(c.axes())) for case in CASES for c in case.configurations()
    }
    assert len(configurations) >= CONFIGURATIONS
    # No two of a case have the same name: the manifest would take one for the other.
    assert len(configurations) == sum(len(list(case.configurations())) for case in CASES)


def test_a_kernel_has_its_arguments_and_no_others():
    for case in CASES:
        named = [a.name for a in case.read()] + list(case.constants)
        for configuration in case.configurations():
            assert sorted([*named, *dict(configuration.constants)]) == sorted(
                case.kernel.arg_names
            ), case.name
            assert len(case.extent(configuration)) == 3
            break


def test_slices_part_the_corpus():
    whole = {(c.name, each) for c, found in Plan(None).chosen(CASES) for each in found}
    parts = [
        {(c.name, each) for c, found in Plan(None, part=k, parts=3).chosen(CASES) for each in found}
        for k in range(3)
    ]
    assert set.union(*parts) == whole and sum(map(len, parts)) == len(whole)
    few = Plan(None, most=SIZE).chosen(CASES)
    assert {case.name for case, _ in few} == {case.name for case in CASES}
    assert all(len(found) >= 2 for _, found in few)
    assert Plan(None, most=SIZE).chosen(CASES) == few
    assert Plan(None, seed=1, most=SIZE).chosen(CASES) != few


def test_an_over_merge_is_found():
    found = [line("a"), line("a"), line("b"), line(None)]
    assert checking.judge(found, answer((0, 1), (2,), (3,))).exit == 0
    judged = checking.judge(found, answer((0, 1, 2), (3,)))
    assert judged.exit == 1 and len(judged.over_merges) == 1
    merged = judged.over_merges[0]
    assert {merged.first["label"], merged.second["label"]} == {"a", "b"}
    assert judged.rows[0].over_merges == 1 and "different bytes" in str(merged)


def test_a_run_with_errors_is_no_witness_but_is_told():
    judged = checking.judge([line("a"), line(None)], answer((0, 1)))
    assert judged.exit == 0 and judged.rows[0].with_errors == 1
    assert judged.rows[0].observed == judged.rows[0].proved == 1


def test_proved_classes_are_counted_over_observed_ones():
    found = [line("a"), line("a", threads=64), line("b"), line("b", case="other"), line(None)]
    row = checking.judge(found, answer((0,), (1,), (2,), (3,), (4,))).rows[0]
    assert (row.observed, row.proved) == (3, 4) and row.ratio == row.ratio_across == 4 / 3


def test_precision_is_counted_within_a_target_and_across():
    there = {"configuration": {"target": "sm_90"}}
    found = [line("a"), line("a", **there), line("b", **there)]
    apart = checking.judge(found, answer((0,), (1,), (2,))).rows[0]
    assert (apart.observed, apart.proved, apart.ratio) == (3, 3, 1)
    assert (apart.observed_across, apart.proved_across, apart.ratio_across) == (2, 3, 1.5)
    merged = checking.judge(found, answer((0, 1), (2,))).rows[0]
    assert (merged.ratio, merged.ratio_across) == (1, 1)


def test_what_has_no_answer_is_no_pass():
    judged = checking.judge([line("a"), line("b")], answer((0,), errors=(1,)))
    assert judged.exit == 2 and judged.rows[0].reasons == {"no such file": 1}
    for wrong in (answer((0,)), answer((0, 0), (1,)), answer((0,), (0, 1))):
        with pytest.raises(CorpusError, match="twice, or lacks one"):
            checking.judge([line("a"), line("b")], wrong)
    with pytest.raises(CorpusError, match="several groups"):
        checking.judge([line("a"), line("b", case="other")], answer((0, 1)))


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The fixed slice, built from nothing."""
    folder = tmp_path_factory.mktemp("corpus")
    print(f"seed {SEED}, {SIZE} configurations")
    command = [sys.executable, str(checkout.ROOT / "scripts" / "bit-corpus"), str(folder)]
    command += ["--configurations", str(SIZE), "--seed", str(SEED), "--jobs", "2"]
    subprocess.run(command, check=True, timeout=600)
    return folder


def test_a_corpus_has_what_was_asked_and_is_not_built_twice(built):
    found = list(building.lines(built))
    asked = Plan(built, SEED, most=SIZE).chosen(CASES)
    assert len(found) == sum(len(each) for _, each in asked) >= SIZE
    assert all(line["label"] or line["errors"] for line in found)
    labelled = [line for line in found if line["label"]]
    assert len(labelled) > 0.9 * len(found)
    for each in labelled[::40]:
        text = (built / "ptx" / each["ptx"]).read_bytes()
        assert each["ptx"] == f"{hashlib.sha256(text).hexdigest()[:32]}.ptx"
    before = {path.name: path.read_bytes() for path in (built / "manifest").iterdir()}
    # A line that a crash cut off is made again, and nothing else.
    path = built / "manifest" / "sum_rows.jsonl"
    path.write_bytes(path.read_bytes()[:-10])
    Builder(Plan(built, SEED, most=SIZE), CASES).run(1, lambda *_: None)
    again = {path.name: path.read_bytes() for path in (built / "manifest").iterdir()}
    assert {n for n in before if before[n] != again[n]} <= {"sum_rows.jsonl"}
    assert [unmeasured(each) for each in map(json.loads, again["sum_rows.jsonl"].splitlines())] == [
        unmeasured(each) for each in map(json.loads, before["sum_rows.jsonl"].splitlines())
    ]
    with pytest.raises(CorpusError, match="take another folder"):
        Builder(Plan(built, SEED + 1), CASES)


def unmeasured(line):
    line = copy.copy(line)
    line.pop("ms", None)
    return line


def test_labels_tell_orders_apart_and_pinned_ones_agree(built):
    labels = {}
    for each in building.lines(built):
        if KIND[each["kernel"]] == "reductions" and each["label"]:
            order = each["configuration"].get("order")
            labels.setdefault((each["case"], order), set()).add(each["label"])
    assert all(len(found) == 1 for (_, order), found in labels.items() if order == "inner_tree")
    unordered = [found for (_, order), found in labels.items() if order is None]
    assert sum(len(found) > 1 for found in unordered) > 10


def test_a_checker_that_finds_everything_the_same_is_caught(built):
    found = [each for each in building.lines(built) if "ptx" in each]
    cases = {}
    for at, each in enumerate(found):
        cases.setdefault(each["case"], []).append(at)
    careless = checking.judge(found, answer(*cases.values()))
    assert careless.exit == 1
    caught = {each.first["kernel"] for each in careless.over_merges}
    assert {"sum_rows", "softmax", "matmul", "attention", "twins_rows"} <= caught


@pytest.fixture(scope="module")
def judged(built):
    """The installed checker on the fixed slice."""
    judgement = checking.check(built, list(building.lines(built)), str(COMMAND), jobs=2)
    checking.show(judgement, as_json=False)
    return judgement


def test_nothing_that_was_seen_to_differ_is_proved_the_same(judged):
    assert judged.over_merges == [], "\n".join(map(str, judged.over_merges))
    assert judged.exit == 0


# Proved classes over observed ones on the slice, by kind. It has a few configurations of every
# case, which is kinder than the whole corpus: `scripts/bit-corpus --check` prints that table.
PRECISION = {"reductions": 1.5, "norms": 1.5, "loops": 1.5, "scans": 1.0, "products": 1.0,
             "maps": 1.2, "twins": 1.2}  # fmt: skip


@pytest.mark.parametrize("kind", PRECISION)
def test_the_checker_merges_what_returned_the_same(judged, kind):
    total = judged.total(kind)
    assert total.observed and total.ratio <= PRECISION[kind]


def test_configurations_of_attention_are_merged(judged):
    (row,) = (row for row in judged.rows if row.kernel == "attention")
    assert row.proved < row.labelled and not row.not_followed
