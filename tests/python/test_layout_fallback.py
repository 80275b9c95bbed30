"""A rewritten layout never costs a compilation, a spill or shared memory that the GPU lacks."""

import re
import subprocess
import threading
from types import SimpleNamespace

import pytest
import triton
import triton.language as tl
from triton import knobs
from triton.bitstable import lookahead, resources, stages, strategies
from triton.runtime import driver
from triton.runtime.errors import PTXASError

import kernels
import oracle
from bits import Build
from compiling import GFX942, SM80, SM90, VENDORS, GPUTarget, Pipeline, compile, name_of
from test_bits import tile_sum

# Neighbours on the reduced axis lie in memory apart, so that both vendors' layouts are rewritten.
TILE = {"M": 64, "N": 128, "AXIS": 0, "ORDER": "inner_tree"}
GFX950 = GPUTarget("hip", "gfx950", 64)
LATER = {"cuda": ("ptx", "cubin"), "hip": ("amdgcn", "hsaco")}
# A tile whose renumbered column sum needs more registers at a time than Triton's own layout does.
CROWDED = {"M": 512, "N": 32, "AXIS": 0, "ORDER": "inner_tree"}


@pytest.fixture(autouse=True)
def private(tmp_path):
    """No caches, and knobs as they were afterwards."""
    scopes = (knobs.cache, knobs.compilation, knobs.language, knobs.runtime)
    with scopes[0].scope(), scopes[1].scope(), scopes[2].scope(), scopes[3].scope():
        knobs.cache.dir = str(tmp_path / "cache")
        knobs.compilation.always_compile = True
        yield


def build(target=SM90, options=None, **constants):
    return compile(kernels.sum_tile, target, options=options, **(constants or TILE))


def report(compiled):
    return compiled.metadata.bitstable


def watch(change):
    """Let `change` wrap each stage of the compilations to come, by its name."""

    def hook(backend=None, stages=None, *_):
        if stages is None:
            return "watched", "watched"
        for name, make in list(stages.items()):
            stages[name] = change(name, make)
        return None

    knobs.runtime.add_stages_inspection_hook = hook


def counting(calls):
    """Notes which stages run."""

    def change(name, make):
        def stage(src, metadata):
            calls.append(name)
            return make(src, metadata)

        return stage

    return change


def failing(name, times, error=PTXASError):
    """Lets the first runs of a stage fail."""
    left = [times]

    def change(stage, make):
        def wrapped(src, metadata):
            if stage == name and left[0]:
                left[0] -= 1
                raise error("no such luck\nand more")
            return make(src, metadata)

        return wrapped

    return change


def unwatched(compiled):
    """What a compilation leaves, but for the key that tells compilations apart."""
    told = compiled.metadata._asdict()
    return {key: value for key, value in told.items() if key != "hash"}


def code(compiled):
    (binary,) = {"cubin", "hsaco"} & compiled.asm.keys()
    return {key: text for key, text in compiled.asm.items() if key not in ("source", binary)}


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_every_stage_runs_once(target):
    calls = []
    watch(counting(calls))
    assert report(build(target))["layouts"]
    assert calls == ["ttir", "ttgir", "llir", *LATER[target.backend]]


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_a_look_ahead_leaves_no_trace(target, monkeypatch):
    ahead = build(target)
    monkeypatch.setattr(stages.Plan, "layouts", ())  # so that there is nothing to look ahead for
    direct = build(target)
    assert unwatched(ahead) == unwatched(direct)
    assert code(ahead) == code(direct)


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_the_metadata_is_right_after_each_stage(target, monkeypatch):
    def seen():
        pipeline = Pipeline(kernels.sum_tile, target, **TILE)
        pipeline.metadata |= {"target": target, "num_ctas": 1}
        stages.install(pipeline.stages)
        return [
            dict(pipeline.run(stage).metadata)
            for stage in ("ttir", "ttgir", "llir", *LATER[target.backend])
        ]

    ahead = seen()
    monkeypatch.setattr(stages.Plan, "layouts", ())
    assert ahead == seen()
    assert "name" not in ahead[2] and ahead[3]["name"] == "sum_tile"


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_a_failure_falls_back_to_the_layout_without_a_rewrite(target):
    off = build(target, {strategies.OPTION: "off"})
    assert "layouts" not in report(off) and "fallback" not in report(off)
    rewritten = 0
    for attempts in range(1, 4):
        watch(failing(LATER[target.backend][1], attempts))
        try:
            compiled = build(target)
        except PTXASError:
            break
        rewritten = attempts
        entries = report(compiled)["fallback"]
        assert entries[0]["strategy"] == "auto"
        assert re.fullmatch("it does not compile: .*no such luck", entries[0]["why"])
        assert len(entries) == attempts
    # The last to fail is the one without a rewrite, and it fails as it would without us.
    assert rewritten >= 1 and attempts == rewritten + 1
    assert "layouts" not in report(compiled)
    assert code(compiled) == code(off)
    assert report(compiled)["reductions"] == report(off)["reductions"]


def test_machine_code_of_the_attempt_that_is_taken():
    watch(failing("cubin", 1))
    compiled = build()
    again = Pipeline(kernels.sum_tile, SM90, **TILE)
    cubin = again.stages["cubin"](compiled.asm["ptx"], {})
    assert disassembled(cubin) == disassembled(compiled.asm["cubin"])
    assert again.stages["ptx"](compiled.asm["llir"], {}) == compiled.asm["ptx"]


def disassembled(cubin):
    from triton.tools.disasm import get_sass

    return get_sass(cubin)


def test_a_failure_of_ptxas_is_shown_once_and_at_its_own_stage(capsys):
    pipeline = Pipeline(kernels.sum_tile, SM90, options={"ptx_options": "--no-such-option"}, **TILE)
    pipeline.metadata |= {"target": SM90}
    stages.install(pipeline.stages)
    pipeline.run("ttir", "ttgir", "llir", "ptx")
    assert "reproducer" not in capsys.readouterr().out
    with pytest.raises(PTXASError, match="no-such-option"):
        pipeline.run("cubin")
    assert capsys.readouterr().out.count("reproducer") == 1


def test_a_failure_that_is_replaced_is_not_shown(capsys, monkeypatch):
    from triton.backends.nvidia import compiler

    failed = []

    def run(command, **how):
        if not failed:
            failed.append(command)
            raise subprocess.CalledProcessError(7, command)
        return subprocess.run(command, **how)

    error = subprocess.CalledProcessError
    stand_in = SimpleNamespace(run=run, CalledProcessError=error)
    monkeypatch.setattr(compiler, "subprocess", stand_in)
    compiled = build()
    assert "`ptxas` failed with error code 7" in report(compiled)["fallback"][0]["why"]
    assert "reproducer" not in capsys.readouterr().out


def test_other_threads_keep_their_output(capsys):
    def change(name, make):
        def stage(src, metadata):
            if name == "cubin":
                thread = threading.Thread(target=lookahead._print, args=("of another thread",))
                thread.start()
                thread.join()
                assert "of another thread" in capsys.readouterr().out
            return make(src, metadata)

        return stage

    watch(change)
    build()


def test_shared_memory_that_the_gpu_lacks(monkeypatch):
    rewritten, off = build(), build(options={strategies.OPTION: "off"})
    needs = rewritten.metadata.shared
    monkeypatch.setattr(resources, "shared_limit", lambda target: needs - 1)
    compiled = build()
    why = f"it takes {needs} bytes of shared memory, the GPU has {needs - 1}"
    assert report(compiled)["fallback"][0] == {"strategy": "auto", "why": why}
    assert compiled.metadata.shared == off.metadata.shared


def test_a_stage_is_not_skipped_for_another_module():
    pipeline = Pipeline(kernels.sum_tile, SM90, **TILE)
    pipeline.metadata |= {"target": SM90}
    stages.install(pipeline.stages)
    llir = pipeline.run("ttir", "ttgir", "llir").module
    other = llir.replace("sum_tile", "another_name")
    ptx = pipeline.stages["ptx"](other, pipeline.metadata)
    assert ".entry another_name" in ptx and pipeline.metadata["name"] == "another_name"


def spilled(compiled):
    return resources.spills(compiled.asm.values()).stack


def crowded(strategy, rows=512, warps=1, **more):
    options = {strategies.OPTION: strategy, "num_warps": warps} | more
    return build(SM90, options, **(CROWDED | {"M": rows}))


@pytest.mark.parametrize(
    "rows, warps, more", [(512, 1, {}), (512, 1, {"maxnreg": 32}), (256, 2, {})]
)
def test_no_spill_that_the_layout_without_a_rewrite_has_not(rows, warps, more):
    off = spilled(crowded("off", rows, warps, **more))
    for strategy in ("auto", "renumber", "convert"):
        assert spilled(crowded(strategy, rows, warps, **more)) <= off


def test_a_spill_is_a_fault(monkeypatch):
    compiled = crowded("renumber")
    assert spilled(compiled) == spilled(crowded("off")) == 0
    monkeypatch.setattr(lookahead.Attempt, "fault", None)  # so that the first attempt is taken
    alone = crowded("renumber")
    assert report(alone)["layouts"] and spilled(alone) > 0
    (entry,) = report(compiled)["fallback"]
    why = f"it takes {spilled(alone)} bytes of stack"
    assert entry == {"strategy": "renumber", "why": why}


def attempt(strategy, stack=0, failure=None):
    made = SimpleNamespace(strategy=strategy, spills=resources.Spills(stack), failure=failure)
    return made


@pytest.mark.parametrize(
    "attempts, taken",
    [
        ([attempt("auto", 8), attempt("renumber", 0)], "renumber"),
        ([attempt("auto", 8), attempt("renumber", 16), attempt("off", 24)], "auto"),
        ([attempt("auto", 8), attempt("renumber", 8), attempt("off", 8)], "off"),
        ([attempt("auto", 8), attempt("renumber", 8), attempt("off", 0, "it fails")], "renumber"),
        ([attempt("auto", 0, "it fails"), attempt("off", 0, "it fails")], "off"),
    ],
)
def test_which_of_the_attempts_is_taken(attempts, taken):
    assert lookahead.best(attempts).strategy == taken


def test_what_assembly_says_of_spills():
    said = build(GFX942).asm["amdgcn"]
    assert resources.spills([said]) == (0, 0)
    counts = {"private_segment_fixed_size": 24, "sgpr_spill_count": 2, "vgpr_spill_count": 5}
    for key, count in counts.items():
        said, found = re.subn(rf"(\.{key}:\s*)0\b", rf"\g<1>{count}", said)
        assert found == 1
    assert resources.spills(["; no metadata", said, b"no ELF"]) == (24, 7)


@pytest.mark.parametrize(
    "target, bytes",
    [(SM90, 232448), (SM80, 166912), (GFX942, 65536), (GFX950, 163840), (None, None)],
)
def test_what_a_gpu_has(target, bytes):
    assert resources.shared_limit(target) == bytes


def test_the_bits_are_the_same_whatever_is_taken():
    launch, expected = tile_sum(64, 128, 0).launch()
    for strategy in strategies.STRATEGIES:
        knobs.language.bitstable_reduce_layout = strategy
        got = launch.run(tile_sum(64, 128, 0).compile(Build()), Build())
        assert oracle.same_bits(got, expected).all()


def test_a_strategy_that_there_is_not(monkeypatch):
    expected = r"TRITON_BITSTABLE_REDUCE_LAYOUT.* auto, renumber, convert, off; got 'best'"
    with pytest.raises(ValueError, match=expected):
        build(options={strategies.OPTION: "best"})
    monkeypatch.setenv("TRITON_BITSTABLE_REDUCE_LAYOUT", "best")
    for target in VENDORS:
        with pytest.raises(ValueError, match=expected):
            # Also where no reduction is pinned.
            build(target, **(TILE | {"ORDER": None}))


@pytest.mark.parametrize("target", VENDORS, ids=name_of)
def test_the_strategy_is_part_of_the_key_on_disk(target, monkeypatch):
    knobs.compilation.always_compile = False
    compiled = []

    def listen(*, metadata, cache_hit, **_):
        if not cache_hit:
            compiled.append(metadata[strategies.OPTION])

    knobs.compilation.listener = listen
    build(target)
    for said in ("auto", "off", "renumber", "off"):
        monkeypatch.setenv("TRITON_BITSTABLE_REDUCE_LAYOUT", said)
        build(target)
    build(target, {strategies.OPTION: "renumber"})
    assert compiled == ["auto", "off", "renumber"]


class _Driver:
    """A driver for compiling alone: it answers what is asked before a launch."""

    def get_current_device(self):
        return 0

    def get_current_stream(self, device):
        return 0

    def get_current_target(self):
        return SM90


def test_the_strategy_is_part_of_the_key_in_the_process(monkeypatch):
    monkeypatch.setattr(driver, "_active", _Driver())
    argument = triton.MockTensor(tl.float32)
    found = []
    for said in ("off", "auto", "off", "auto"):
        knobs.language.bitstable_reduce_layout = said
        found.append(kernels.sum_tile.warmup(argument, argument, *TILE.values(), grid=(1,)))
    assert found[0] is found[2] and found[1] is found[3]
    assert [bool(report(kernel).get("layouts")) for kernel in found[:2]] == [False, True]


def test_remarks_go_to_the_user_and_not_into_the_kernel(capsys, monkeypatch):
    silent = build()
    assert "remark" not in capsys.readouterr().err
    monkeypatch.setenv("TRITON_BITSTABLE_REMARKS", "1")
    watch(failing("cubin", 1))
    spoken = build()
    said = capsys.readouterr().err
    assert re.search(r"^\S+kernels\.py:\d+:\d+: remark: ", said, re.MULTILINE)
    assert "remark: the code of strategy auto was not taken: it does not compile" in said
    kept = {key: value for key, value in report(spoken).items() if key != "fallback"}
    assert kept.keys() <= report(silent).keys()
