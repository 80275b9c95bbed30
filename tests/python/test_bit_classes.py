"""Sweeps: configurations, draws, observed bit classes, demands, and the command line over them."""

import hashlib
import itertools
import json
import os
from dataclasses import replace

import numpy as np
import pytest
import triton
import triton.language as tl
from triton.bitstable import bits, emulate
from triton.bitstable.bits import arguments, draws, grid, table
from triton.bitstable.bits.classes import Classes
from triton.bitstable.bits.elements import ELEMENTS
from triton.bitstable.bits.execution import Finding, Job, Outcome, Runner, Status, groups

import kernels
import oracle

HERE = os.path.dirname(__file__)
TILE = {"M": 16, "N": 64, "AXIS": 1}
ARGS = {"x": "f32:16x64", "out": "f32:16=zero"}


@triton.jit
def below_32_warps(x, out, N: tl.constexpr):
    tl.static_assert(tl.extra.cuda.num_warps() < 32, "too many warps for this one")
    tl.store(out + tl.arange(0, N), tl.load(x + tl.arange(0, N)))


@triton.jit
def last_program_wins(out):
    tl.store(out, tl.program_id(0))


@triton.jit
def some_nan(out, BITS: tl.constexpr):
    at = tl.arange(0, 32)
    tl.store(out + at, (at * 0 + BITS).to(tl.float32, bitcast=True))


@triton.jit
def scaled_rows(x, out, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + at, tl.load(x + at, mask=at < n, other=0.0) * 3, mask=at < n)


tuned_rows = triton.autotune(
    [triton.Config({"BLOCK": 64}, num_warps=w) for w in (1, 2)]
    + [triton.Config({"BLOCK": 128}, num_warps=4)],
    key=["n"],
)(scaled_rows)


def _ends_the_process(args):
    if args["num_warps"] == 2:
        os.write(2, b"much\nPass.cpp:1: Assertion `three' failed.\nmore\n")
        os.abort()
    return 64


aborting = triton.heuristics({"BLOCK": _ends_the_process})(scaled_rows)


def sum_classes(order, **options):
    configurations = bits.matrix(num_warps=(1, 4, 32), constants={**TILE, "ORDER": order})
    return bits.sweep(kernels.sum_tile, ARGS, 1, configurations, **options)


@pytest.fixture(scope="module")
def pinned():
    return sum_classes("inner_tree")


@pytest.fixture(scope="module")
def unordered():
    return sum_classes(None, draws=2)


def test_a_pinned_sum_is_one_class_and_it_is_the_canonical_tree_s(pinned):
    assert len(pinned) == 1 and len(pinned.outcomes) == 18 and pinned.codes <= 9
    pinned.require("one")
    outputs = pinned.classes[0].outcomes[0].outputs
    for draw, (x, out) in zip(pinned.job.draws, outputs):
        x = np.frombuffer(x, np.float32).reshape(16, 64)
        expected = oracle.total(x, 1, "f32")
        assert oracle.same_bits(np.frombuffer(out, np.float32), expected).all(), draw.name


def test_its_unordered_twin_is_several(unordered):
    assert len(unordered) > 1
    assert unordered.verdict("any").exit == 0 and unordered.verdict("one").exit == 1
    one, other = unordered.classes[:2]
    difference = unordered.difference(other, one)
    assert difference.buffer == "out" and "0x" in str(difference)
    with pytest.raises(AssertionError, match="classes where one is demanded"):
        unordered.require()
    assert other.bits[:12] in str(unordered)


def test_misaligned_pointers_are_an_axis_of_their_own():
    classes = bits.sweep(
        kernels.sum_tile,
        ARGS,
        1,
        bits.matrix(
            targets=["cuda:90"],
            num_warps=[4],
            fp_fusion=[True],
            aligned=[True, False],
            constants={**TILE, "ORDER": "inner_tree"},
        ),
        2,
    )
    assert len(classes) == 1 and classes.codes == 2


def test_several_processes_give_what_one_gives(unordered):
    assert [
        (o.configuration, o.status, o.bits) for o in sum_classes(None, draws=2, jobs=2).outcomes
    ] == [(o.configuration, o.status, o.bits) for o in unordered.outcomes]


def test_a_compiler_that_aborts_costs_its_configuration_alone():
    configurations = bits.matrix(targets=["cuda:90"], num_warps=[1, 2, 4], fp_fusion=[True])
    args = {"x": "f32:64", "out": "f32:64=zero", "n": 64}
    classes = bits.sweep(aborting, args, 1, configurations, 1, jobs=2)
    (lost,) = classes.not_run
    assert lost.configuration.num_warps == 2 and "SIGABRT" in lost.reason
    assert lost.reason.endswith("Assertion `three' failed")
    assert len(classes) == 1 and classes.verdict("one").exit == 2


def test_what_does_not_compile_or_fit_is_listed():
    configurations = bits.matrix(targets=["cuda:90"], num_warps=[4, 32, 64], fp_fusion=[True])
    args = {"x": "f32:64", "out": "f32:64=zero", "N": 64}
    classes = bits.sweep(below_32_warps, {**args, "N": 64}, 1, configurations[:2], 1)
    (refused,) = classes.not_run
    assert refused.status is Status.REFUSED and "too many warps for this one" in refused.reason
    assert "too many warps for this one" in str(classes)
    verdict = classes.verdict("one")
    assert verdict.exit == 2 and "1 configuration did not compile" in verdict.reasons[0]
    over = bits.sweep(scaled_rows, {"x": "f32:64", "out": "f32:64=zero", "n": 64}, 1, [
        replace(each, constants=(("BLOCK", 64),)) for each in (configurations[0], configurations[2])
    ], 1)  # fmt: skip
    (exceeds,) = over.not_run
    assert exceeds.status is Status.EXCEEDS and exceeds.reason.startswith("threads: 2048 needed")
    assert over.verdict("one").exit == 0


def test_a_race_is_a_failure_whatever_is_demanded():
    configuration = bits.Configuration("cuda:90")
    classes = bits.sweep(last_program_wins, {"out": "i32:1=zero"}, 4, [configuration], 1)
    assert [outcome.configuration for outcome in classes.failed] == [configuration]
    assert classes.failed[0].findings[0].kind == "race" and not classes.classes
    assert classes.verdict("any").exit == 1
    assert "[race]" in str(classes)
    quiet = bits.sweep(last_program_wins, {"out": "i32:1=zero"}, 4, [configuration], 1, races=False)
    assert len(quiet) == 1 and not quiet.failed


def test_payloads_of_nans_are_no_difference_and_signs_of_zeros_are():
    def classes(*patterns):
        configurations = bits.matrix(
            targets=["cuda:90"], num_warps=[1], fp_fusion=[True], constants={"BITS": patterns}
        )
        return bits.sweep(some_nan, {"out": "f32:32=zero"}, 1, configurations, 1)

    assert len(classes(0x7FC00000, 0x7F800001, 0x7FFFFFFF)) == 1
    assert len(classes(0x7FC00000, 0x7F800000)) == 2
    assert len(classes(0, -0x80000000)) == 2


@pytest.mark.parametrize("name", [n for n, e in ELEMENTS.items() if e.is_float])
def test_one_nan_stands_for_all_of_a_type(name):
    element = ELEMENTS[name]
    every = element.bits <= 16
    patterns = np.arange(1 << element.bits, dtype=element.storage) if every else np.array(
        [element.quiet_nan, element.made_nan, element.quiet_nan ^ 1, 0, 1 << (element.bits - 1)],
        element.storage,
    )  # fmt: skip
    numbers = np.array([float(element.show(int(p)).split()[0]) for p in patterns])
    assert np.array_equal(element.is_nan(patterns), np.isnan(numbers))
    assert len(set(element.canonical(patterns[np.isnan(numbers)]).tolist())) == 1
    kept = ~np.isnan(numbers)
    assert np.array_equal(element.canonical(patterns)[kept], patterns[kept])


@pytest.mark.parametrize("name", [n for n, e in ELEMENTS.items() if e.is_float])
def test_numbers_are_encoded_to_the_nearest_ties_to_even(name):
    element = ELEMENTS[name]
    seed = 5
    values = np.random.default_rng(seed).standard_normal(500) * 2.0 ** np.arange(-20, 30, 0.1)
    values = np.concatenate([values, [0.0, -0.0, np.inf, -np.inf, np.nan, 1 + 2.0**-11, 2.0**-24]])
    got = element.encode(values)
    if element.native:
        with np.errstate(over="ignore"):
            expected = values.astype(element.native).view(element.storage)
    elif name == "bf16":  # through f32, of which the values are chosen
        values = values.astype(np.float32)
        got = element.encode(values)
        expected = oracle.rounded(values, "bf16").view(np.uint32) >> 16
    else:
        patterns = np.arange(256, dtype=np.uint8)
        numbers = np.array([float(element.show(int(p)).split()[0]) for p in patterns])
        largest = np.nanmax(numbers[np.isfinite(numbers)])
        for value, pattern in zip(values, got):
            if abs(value) <= largest:
                distance = np.abs(np.where(np.isfinite(numbers), numbers, np.inf) - value)
                nearest = patterns[distance == np.nanmin(distance)]
                assert pattern in nearest and (len(nearest) == 1 or value == 0 or not pattern & 1)
        return
    same = element.canonical(got) == element.canonical(expected.astype(element.storage))
    assert same.all(), (seed, values[~same])


def test_draws_are_a_function_of_the_seed():
    draw = draws.plan("wide")[0]
    content = draw.patterns(ELEMENTS["f32"], 1024, 7, "x").tobytes()
    # Bits that are known by what was published or filed must stay what they are.
    assert hashlib.sha256(content).hexdigest()[:16] == "d16af891f1736542"
    assert content != draw.patterns(ELEMENTS["f32"], 1024, 8, "x").tobytes()
    assert content != draw.patterns(ELEMENTS["f32"], 1024, 7, "y").tobytes()


def test_more_draws_begin_with_the_fewer():
    assert draws.plan(9)[:4] == draws.plan(4)
    names = [draw.name for draw in draws.plan(9)]
    assert len(set(names)) == 9 and names[7] == "wide-2"
    assert [d.name for d in draws.plan("zeros,wide,zeros")] == ["zeros", "wide", "zeros-2"]
    for wrong in (0, "sideways", ()):
        with pytest.raises(bits.UsageError):
            draws.plan(wrong)


@pytest.mark.parametrize("name", ELEMENTS)
@pytest.mark.parametrize("kind", draws.KINDS)
def test_draws_are_what_they_say(name, kind):
    element, count = ELEMENTS[name], 4096
    patterns = draws.Draw(kind).patterns(element, count, 3, "x")
    assert patterns.dtype == element.storage and patterns.shape == (count,)
    numbers = [element.show(int(p)).split()[0] for p in patterns]
    if not element.is_float:
        return
    values = np.array([float(number) for number in numbers])
    assert np.isnan(values).any() == (kind == "specials")
    assert np.isinf(values).any() == (kind == "specials" and element.ieee)
    if kind == "subnormals":
        assert np.median(np.abs(values)) < 2.0 ** (2 - element.bias)
    if kind == "zeros":
        assert not values.any() and 0 < (~np.signbit(values)).sum() < count / 64
    else:
        assert 0.4 < np.signbit(values).mean() < 0.6


def test_arguments_are_read():
    x, out, n, eps, index, none = arguments.read(
        ["x=f32:16x4", "out=bf16:3=1,-2,0.5", "n=i32=5", "eps=1e-5", "i=i8:64=-3..4", "p=null"]
    )
    assert (x.count, x.fixed) == (64, None)
    assert np.frombuffer(out.fixed, np.uint16).tolist() == [0x3F80, 0xC000, 0x3F00]
    assert (n.value, eps.value, none.value) == (5, 1e-5, None)
    drawn = index.patterns(draws.Draw("wide"), 0).view(np.int8)
    assert set(drawn.tolist()) == set(range(-3, 4))
    fixed = np.arange(6, dtype=np.int16).reshape(2, 3)
    (given,) = arguments.read({"x": fixed})
    assert given.patterns(draws.Draw("wide"), 0).tolist() == list(range(6))


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "x=",
        "=f32:4",
        "x=f32",
        "x=f31:4",
        "x=f32:0",
        "x=f32:4x",
        "x=f32:2=1,2,3",
        "x=u8:1=256",
        "x=i32=1.5",
        "n=i64=5",
        "n=f64=1",
        "x=f32:4=2..1",
        "x=u8:4=0..300",
        "x=five",
        "x=i8:2=a",
    ],
)
def test_arguments_that_make_no_sense_are_refused(text):
    with pytest.raises(bits.UsageError, match="argument"):
        arguments.parse(text)


def test_grids_are_numbers_functions_and_texts():
    names = {"n": 1000, "BLOCK": 256, "ORDER": "inner_tree"}
    assert grid.resolve(4, names) == (4,)
    assert grid.resolve((2, 3), names) == (2, 3)
    assert grid.resolve(lambda meta: (meta["n"] // 2,), names) == (500,)
    assert grid.resolve("cdiv(n, BLOCK), 2 * 3 - 1, max(1, n % 7)", names) == (4, 5, 6)
    for wrong in ("n / 2", "ORDER", "m", "0", "1,1,1,1", "__import__('os')", "cdiv(n)", "n // 0"):
        with pytest.raises(bits.UsageError):
            grid.resolve(wrong, names)


def test_a_sweep_refuses_arguments_that_do_not_fit_before_it_compiles():
    configuration = bits.Configuration(constants=(("BLOCK", 64),))
    for args, said in (
        ({"x": "f32:64", "n": 1}, "also needs out="),
        ({"x": "f32:64", "out": "f32:64", "n": 1, "m": 2}, "has no m"),
        ({"x": "f32:64", "out": "f32:64", "n": 1, "BLOCK": 2}, "both argument and constant"),
    ):
        with pytest.raises(bits.UsageError, match=said):
            bits.sweep(scaled_rows, args, 1, [configuration])
    with pytest.raises(bits.UsageError, match="no such option: colour"):
        bits.sweep(scaled_rows, {"x": "f32:64", "out": "f32:64", "n": 1}, 1, [configuration],
                   colour=1)  # fmt: skip


def test_an_autotuner_s_configurations_are_swept():
    args = {"x": "f32:200", "out": "f32:200=zero", "n": 200}
    classes = bits.sweep(tuned_rows, args, "cdiv(n, BLOCK)", draws=2)
    assert len(classes) == 1 and len(classes.outcomes) == 3 * 3 * 2
    assert {dict(o.configuration.constants)["BLOCK"] for o in classes.outcomes} == {64, 128}
    hooked = triton.Config({"BLOCK": 64}, pre_hook=print)
    with pytest.raises(bits.UsageError, match="pre_hook"):
        bits.sweep(scaled_rows, args, "cdiv(n, BLOCK)", [hooked])


def test_sharing_stages_changes_nothing(monkeypatch):
    """Text for text, a loop's kernel is the same with and without shared code generation."""
    configurations = bits.matrix(
        targets=["cuda:80"],
        num_warps=[4],
        num_stages=[1, 2, 3, 4],
        constants={"M": 16, "N": 64, "ORDER": "inner_tree"},
    )
    args = arguments.read({"x": "f32:4096", "out": "f32:16=zero", "steps": 4})
    job = Job(tuple(args), 1, tuple(draws.plan(1)), 0)
    shared = Runner(kernels.loop_decay, job)
    (group,) = groups(configurations)
    codes = [outcome.code for outcome in shared.run(group)]
    assert shared.stages.shared and len(set(codes)) > 1
    kernels.loop_decay.device_caches.clear()
    monkeypatch.setattr(triton.knobs.compilation, "always_compile", True)
    alone = Runner(kernels.loop_decay, job)
    assert [alone._compile(each, (1,)) for each in group] == codes
    assert alone.stages.run == 0


def outcome(content="", status=Status.RAN, **axes):
    configuration = replace(bits.Configuration(), **axes)
    findings = (Finding("wide", "race", "error", "a race"),) if status is Status.FOUND else ()
    return Outcome(configuration, status, "why", "code", content, findings, ((b"",),))


def observed(*outcomes):
    return Classes("k", Job((), 1, (), 0), outcomes)


BY_TARGET = observed(
    outcome("a", target="cuda:80"),
    outcome("a", target="cuda:80", num_warps=8),
    outcome("b", target="cuda:90"),
    outcome("b", target="cuda:90", num_warps=8),
)


@pytest.mark.parametrize(
    ("demand", "status"),
    [
        ("any", 0),
        ("one", 1),
        ("one-per-target", 0),
        ([[{"target": "cuda:80"}], [{"target": "cuda:90"}]], 0),
        ([[{"target": ["cuda:80", "cuda:90"]}]], 1),
        ([[{"target": "cuda:80", "num_warps": 4}], [{"num_warps": 8}, {"target": "cuda:90"}]], 1),
        ([[{"num_warps": 4}], [{"num_warps": 8}]], 1),
    ],
)
def test_demands(demand, status):
    assert BY_TARGET.verdict(demand).exit == status


def test_demands_that_make_no_sense_are_refused():
    for demand, said in (
        ("two", "no such demand"),
        ([[{"target": "cuda:80"}]], "in no class"),
        ([[{}], [{"target": "cuda:80"}]], "in more than one class"),
        ([[{"colour": 1}]], "names colour"),
        ([1], "is a list of objects"),
        ({}, "is a list of classes"),
    ):
        with pytest.raises(bits.UsageError, match=said):
            BY_TARGET.verdict(demand)


def test_what_is_unknown_is_no_pass():
    def status(*outcomes):
        return int(observed(*outcomes).verdict("one").exit)

    fine, other = outcome("a"), outcome("b", num_warps=1)
    assert status(fine) == 0
    assert status(fine, outcome(status=Status.EXCEEDS, num_warps=64)) == 0
    assert status(fine, outcome(status=Status.REFUSED, num_warps=2)) == 2
    assert status(fine, other, outcome(status=Status.REFUSED, num_warps=2)) == 1
    assert status(fine, outcome(status=Status.FOUND, num_warps=2)) == 1
    assert status(outcome(status=Status.EXCEEDS)) == 2


def test_boxes_cover_a_class_and_nothing_else():
    rng = np.random.default_rng(seed := 3)
    axes = ["target", "num_warps", "fp_fusion"]
    every = bits.matrix(num_warps=(1, 2, 4))
    assert len(table.boxes(every, axes)) == 1
    for _ in range(50):
        chosen = [each for each in every if rng.random() < 0.6]
        covered = [p for box in table.boxes(chosen, axes) for p in itertools.product(*box)]
        points = [(c.target, c.num_warps, c.fp_fusion) for c in chosen]
        assert sorted(covered) == sorted(points), seed


def command(*more, order="inner_tree", json=True):
    return [
        f"{HERE}/kernels.py:sum_tile", "x=f32:16x64", "out=f32:16=zero",
        *(f"--const={name}={value}" for name, value in TILE.items()), f"--const=ORDER={order}",
        "--num-warps=1,32", "--targets=cuda:90", "--fp-fusion=on", "--draws=2", "--jobs=1",
        *(["--json"] if json else []), *more,
    ]  # fmt: skip


def test_the_command_s_statuses_and_its_json(capsys, tmp_path):
    assert bits.main(command()) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["schema"] == 1 and told["kernel"] == "sum_tile"
    assert (told["configurations"], told["codes"], told["seed"]) == (2, 2, 0)
    assert told["draws"] == ["wide", "cancelling"]
    assert told["not_run"] == [] and told["errors"] == []
    assert told["demand"] == {"name": "one", "holds": True, "exit": 0, "reasons": []}
    (only,) = told["classes"]
    assert [c["num_warps"] for c in only["configurations"]] == [1, 32]
    assert set(only["configurations"][0]) == {
        *("target", "num_warps", "num_stages", "fp_fusion", "aligned", "ORDER", *TILE)
    }
    assert bits.main(command(order="none")) == 1
    printed = capsys.readouterr().out
    assert len(json.loads(printed)["classes"]) == 2
    assert set(json.loads(printed)["classes"][1]["difference"]) == {
        *("draw", "buffer", "element", "here", "in_first_class", "elements")
    }
    (tmp_path / "two.json").write_text(printed)  # what was observed is a demand
    assert bits.main(command(f"--demand={tmp_path}/two.json", order="none", json=False)) == 0
    out = capsys.readouterr().out
    assert "two.json: holds" in out and "wide, cancelling" in out and "seed 0" in out
    assert bits.main(command("--demand=any", order="none")) == 0


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--draws=sideways"], "no such draw: sideways"),
        (["--targets=cuda:70"], "no such target"),
        (["--demand=two"], "no such demand"),
        (["--demand=missing.json"], "missing.json"),
        (["--const=AXIS=0"], "given twice"),
        (["--const=DTYPE=tl.float33"], "no type"),
        (["--num-warps=a"], "neither a number nor a range"),
        (["--fp-fusion=maybe"], "neither on nor off"),
        (["z=f32:4"], "has no z"),
        (["--jobs=0"], "at least 1"),
        (["--nonsense"], "unrecognized"),
    ],
)
def test_wrong_usage_is_status_2_with_a_reason(capsys, wrong, said):
    assert bits.main(command(*wrong)) == 2
    captured = capsys.readouterr()
    assert said in captured.err and not captured.out


def test_kernels_that_are_not_there_are_refused(capsys, tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    for place, said in (
        ("nowhere.py:k", "no such file"),
        (f"{HERE}/kernels.py", "write FILE.py:KERNEL"),
        (f"{HERE}/kernels.py:nothing", "sum_tile"),
        (f"{broken}:k", "ZeroDivisionError"),
    ):
        assert bits.main([place]) == 2
        assert said in capsys.readouterr().err


def test_nothing_of_a_sweep_stays():
    before = triton.knobs.runtime.add_stages_inspection_hook
    bits.sweep(some_nan, {"out": "f32:32=zero"}, 1,
               [bits.Configuration(constants=(("BITS", 0),))], 1)  # fmt: skip
    assert triton.knobs.runtime.add_stages_inspection_hook is before
    assert emulate.current() is None
