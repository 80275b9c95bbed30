"""The boundary: loading it, and what the user reads when a kernel is refused."""

import copy
import json
import pickle
import shutil
from pathlib import Path

import pytest
import triton
import triton.language as tl
from triton.bitstable import _native, native_version
from triton.bitstable._version import __version__
from triton.bitstable.errors import Diagnostic, NativeLibraryError, ReductionOrderError
from triton.compiler import CompilationError

from compiling import SM90, compile


@triton.jit
def kernel(x, out, ORDER: tl.constexpr):
    tl.store(out, tl.sum(tl.load(x + tl.arange(0, 128)), 0, order=ORDER))


def maps():
    return Path("/proc/self/maps").read_text().splitlines()


@pytest.fixture
def unloaded(monkeypatch):
    monkeypatch.setattr(_native, "_loaded", None)
    return monkeypatch


def test_versions_agree():
    assert native_version() == __version__


def test_missing_library_is_an_error_at_the_first_pinned_reduction(unloaded, tmp_path):
    unloaded.setattr(_native, "LIBRARY_PATH", tmp_path / "libbitstable.so")
    compile(kernel, SM90, options={"num_warps": 1}, ORDER=None)  # needs no library
    with pytest.raises(NativeLibraryError, match="reinstall the wheel") as caught:
        compile(kernel, SM90, options={"num_warps": 1}, ORDER="inner_tree")
    assert str(tmp_path) in str(caught.value)
    assert isinstance(caught.value, ImportError)


@pytest.mark.parametrize("kept", [0, 5, 100, 0.5, -1])
def test_a_library_cut_short_is_an_error_and_no_crash(kept, unloaded, tmp_path):
    whole = _native.LIBRARY_PATH.read_bytes()
    damaged = tmp_path / "libbitstable.so"
    damaged.write_bytes(whole[: int(len(whole) * kept) if isinstance(kept, float) else kept])
    unloaded.setattr(_native, "LIBRARY_PATH", damaged)
    with pytest.raises(NativeLibraryError, match="cannot be used"):
        _native.library()


def test_foreign_library(unloaded):
    # It loads, but has none of the entry points.
    libm = next(Path(line.split()[-1]) for line in maps() if "/libm" in line)
    unloaded.setattr(_native, "LIBRARY_PATH", libm)
    with pytest.raises(NativeLibraryError, match="bitstable_rewrite"):
        _native.library()


def test_library_of_another_version(unloaded, tmp_path):
    copied = shutil.copy(_native.LIBRARY_PATH, tmp_path / "libbitstable.so")
    unloaded.setattr(_native, "LIBRARY_PATH", copied)
    unloaded.setattr(_native, "__version__", "9.9.9")
    with pytest.raises(NativeLibraryError, match=r"version \S+, the Python files are 9.9.9"):
        _native.library()


def test_a_failure_to_load_can_be_repaired(unloaded, tmp_path):
    good = _native.LIBRARY_PATH
    unloaded.setattr(_native, "LIBRARY_PATH", tmp_path / "libbitstable.so")
    with pytest.raises(NativeLibraryError):
        _native.library()
    unloaded.setattr(_native, "LIBRARY_PATH", good)
    assert _native.library().version == __version__


@pytest.mark.parametrize("pipeline", ["pin-reduction", "pin-reduce{unknown=1}", "pin-reduce,", ""])
def test_unknown_pipeline_is_refused(pipeline):
    with pytest.raises(ReductionOrderError) as caught:
        _native.library().rewrite(b'"builtin.module"() ({}) : () -> ()', pipeline)
    assert not caught.value.bug


@pytest.mark.parametrize("module", [b"not a module", b"\xff\xfe", b"module {", b"\0" * 64])
def test_text_that_is_no_module_does_not_crash(module):
    with pytest.raises(ReductionOrderError) as caught:
        _native.library().rewrite(module, "pin-reduce")
    assert str(caught.value)


@pytest.mark.parametrize("report", [b"", b"{}", b"null", b"[1]", b'{"diagnostics": []}', b"\xff"])
@pytest.mark.parametrize("status", [1, 2, 7])
def test_a_report_that_cannot_be_read_is_still_an_error(status, report):
    error = _native._error(status, report)
    assert isinstance(error, ReductionOrderError)
    assert error.bug
    assert str(error)


def test_errors_say_whose_fault_it_is():
    entry = {"diagnostics": [{"severity": "error", "message": "no", "file": None}]}
    report = json.dumps(entry).encode()
    assert not _native._error(_native.REFUSED, report).bug
    assert _native._error(_native.BUG, report).bug


def test_diagnostics_show_place_source_notes_and_help():
    diagnostic = Diagnostic("too big", file=__file__, line=1, col=4, notes=("why",), help="do it")
    assert diagnostic.render().splitlines() == [
        f"{__file__}:1:4: error: too big",
        '    """The boundary: loading it, and what the user reads when a kernel is refused."""',
        "       ^",
        "  note: why",
        "  help: do it",
    ]


def test_diagnostics_without_a_readable_place():
    assert Diagnostic("no").render() == "error: no"
    assert (
        Diagnostic("no", file="/nowhere.py", line=3, col=1).render() == "/nowhere.py:3:1: error: no"
    )


def test_the_error_is_tritons_and_travels():
    error = ReductionOrderError([Diagnostic("no", file="k.py", line=3, col=5)])
    assert isinstance(error, CompilationError)
    for travelled in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert str(travelled) == str(error)
        assert travelled.diagnostics == error.diagnostics


@triton.jit
def refused_combine(a, b):
    tl.device_assert(a < b, "side effects are refused")
    return a + b


@triton.jit
def refused(x, out):
    v = tl.load(x + tl.arange(0, 128))
    tl.store(out, tl.reduce(v, 0, refused_combine, order="inner_tree"))


def test_a_refusal_names_the_kernels_file_and_line():
    # The place of what is refused: the assertion in the combine function.
    line = refused_combine.starting_line_number + 2
    with pytest.raises(ReductionOrderError) as caught:
        compile(refused, SM90, options={"debug": True})
    (diagnostic, *_) = caught.value.diagnostics
    assert (diagnostic.file, diagnostic.line) == (__file__, line)
    assert not caught.value.bug
    assert "side effects are refused" in str(caught.value)
