"""The patches: applied strictly, or refused by name."""

import pytest

from checkout import ROOT, base_wheel
from wheelbuild import patches
from wheelbuild.errors import BuildError

HEADER = "Why a patch:  a\nGoes when:    b\nGuarded by:   c\n\n"
DIFF = """--- a/one.py
+++ b/one.py
@@ -2,3 +2,4 @@
 two
-three
+3
+3.5
 four
@@ -6,2 +7,1 @@
 six
-seven
"""
FILE = b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def apply(text, content=FILE):
    files = {"one.py": content}
    return patches.apply([patches.parse("it.patch", text)], files.__getitem__)


def test_hunks_apply():
    assert apply(HEADER + DIFF) == {"one.py": b"one\ntwo\n3\n3.5\nfour\nfive\nsix\n"}


@pytest.mark.parametrize(
    ("content", "hunk", "line"),
    [
        (FILE.replace(b"three", b"drei"), "-2,3 +2,4", "line 3 should be: three"),
        (b"zero\n" + FILE, "-2,3 +2,4", "line 2 should be: two"),  # no offsets
        (FILE.replace(b"seven\n", b""), "-6,2 +7,1", r"it is: +\(end of file\)"),
        (FILE.replace(b"four", b"four "), "-2,3 +2,4", "line 4"),  # no fuzz, blanks count
        (FILE.replace(b"\n", b"\r\n"), "-2,3 +2,4", "line 2"),
    ],
)
def test_a_hunk_that_does_not_fit_is_named(content, hunk, line):
    with pytest.raises(BuildError, match=line) as caught:
        apply(HEADER + DIFF, content)
    assert "it.patch" in str(caught.value)
    assert "one.py" in str(caught.value)
    assert hunk in str(caught.value)


def test_a_file_that_is_gone_is_named():
    with pytest.raises(BuildError, match=r"two\.py is not in the base wheel"):
        apply(HEADER + DIFF.replace("one.py", "two.py"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (DIFF, "lacks 'Why a patch:'"),
        (HEADER, "no hunk"),
        (HEADER + "--- a/one.py\n+++ b/one.py\n@@ nonsense @@\n", "not a hunk header"),
        (HEADER + DIFF[: DIFF.index(" four")], "ends early"),
        (HEADER + "\n--- a\n@@ -1 +1 @@\n-a\n+b\n", "before any file"),
        (HEADER + DIFF.replace("-6,2 +7,1", "-4,2 +5,1"), "does not apply"),
    ],
)
def test_malformed_patches_are_refused(text, message):
    with pytest.raises(BuildError, match=message):
        apply(text)


def series(tmp_path, names):
    (tmp_path / "one.patch").write_text(HEADER + DIFF)
    (tmp_path / "series").write_text("".join(f"{name}\n" for name in names))
    return patches.read_series(tmp_path)


def test_series_must_list_each_patch_once(tmp_path):
    assert [patch.name for patch in series(tmp_path, ["one.patch"])] == ["one.patch"]
    for names in ([], ["one.patch", "one.patch"], ["one.patch", "two.patch"]):
        with pytest.raises(BuildError, match="disagree"):
            series(tmp_path, names)


def test_every_patch_names_tests_that_exist():
    directory = ROOT / "triton-patches" / "3.9.0"
    for patch in patches.read_series(directory):
        header = (directory / patch.name).read_text().partition("\n--- ")[0]
        guards = header.partition("Guarded by:")[2].replace(",", " ").split()
        assert guards
        for guard in guards:
            path = ROOT / guard if "/" in guard else ROOT / "tests" / "python" / guard
            assert path.exists(), f"{patch.name}: {guard}"


def test_our_patches_apply_and_keep_the_library_functions_lines():
    with base_wheel() as base:
        directory = ROOT / "triton-patches" / "3.9.0"
        changed = patches.apply(patches.read_series(directory), base.read)
        standard = "triton/language/standard.py"
        old, new = base.read(standard).decode(), changed[standard].decode()
    # PTX names these lines: an unpinned kernel's must stay stock's.
    assert len(old.splitlines()) == len(new.splitlines())
    for before, after in zip(old.splitlines(), new.splitlines()):
        assert before.split("(")[0] == after.split("(")[0]
    for content in changed.values():
        compile(content, "patched", "exec")
