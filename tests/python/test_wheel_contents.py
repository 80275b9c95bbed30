"""The wheel: reproducible, its RECORD right, and Triton's apart from what the patches say."""

import base64
import csv
import hashlib
import io
import zipfile

import pytest

from checkout import base_wheel, inputs
from wheelbuild import assemble, patches


@pytest.fixture(scope="module")
def made():
    return inputs()


@pytest.fixture(scope="module")
def wheel(made, tmp_path_factory):
    return assemble.assemble(made, tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def archive(wheel):
    with zipfile.ZipFile(wheel) as opened:
        yield opened


def digest(path):
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def test_two_builds_are_the_same_bytes(made, wheel, tmp_path):
    again = assemble.assemble(made, tmp_path)
    assert again.name == wheel.name
    assert digest(again) == digest(wheel)
    assert [path.name for path in tmp_path.iterdir()] == [wheel.name]


def test_entries_are_sorted_and_timeless(archive):
    names = archive.namelist()
    package = [name for name in names if ".dist-info/" not in name]
    assert package == sorted(package)
    assert names[len(package) :] == sorted(names[len(package) :])
    assert len(set(names)) == len(names)
    assert {entry.date_time for entry in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}


def test_every_entry_unpacks(archive):
    assert archive.testzip() is None


def test_record_is_complete_and_right(archive, made):
    record_name = f"triton-{made.full_version}.dist-info/RECORD"
    rows = list(csv.reader(io.StringIO(archive.read(record_name).decode())))
    assert [row for row in rows if not row[1]] == [[record_name, "", ""]]
    assert sorted(row[0] for row in rows) == sorted(archive.namelist())
    for name, recorded, size in rows:
        if recorded:
            content = archive.read(name)
            raw = hashlib.sha256(content).digest()
            assert recorded == "sha256=" + base64.urlsafe_b64encode(raw).rstrip(b"=").decode()
            assert int(size) == len(content)


def test_only_what_the_patches_say_differs_from_tritons_wheel(archive, made):
    changed = {name for patch in patches.read_series(made.patch_directory) for name in patch.files}
    old_info, info = "triton-3.9.0.dist-info", f"triton-{made.full_version}.dist-info"
    with base_wheel() as base:
        theirs = {e.filename: (e.CRC, e.external_attr >> 16 & 0o777)
                  for e in base.infolist() if not e.is_dir()}  # fmt: skip
    ours = {e.filename.replace(info, old_info): (e.CRC, e.external_attr >> 16 & 0o777)
            for e in archive.infolist()}  # fmt: skip
    differing = {name for name in theirs if ours.get(name) != theirs[name]}
    metadata = {
        f"{old_info}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")
    }
    assert changed <= differing <= changed | metadata
    added = set(ours) - set(theirs)
    assert all(name.startswith("triton/bitstable/") for name in added - {
        f"{old_info}/licenses/LICENSE.bitstable"})  # fmt: skip
    assert "triton/bitstable/libbitstable.so" in added
    assert "triton/bitstable/emulation/__init__.py" in added
    for path in made.python_files():
        assert f"triton/bitstable/{path.relative_to(made.package).as_posix()}" in added


def test_metadata(archive, made):
    info = f"triton-{made.full_version}.dist-info"
    metadata = archive.read(f"{info}/METADATA").decode()
    assert f"\nVersion: {made.full_version}\n" in metadata
    tags = archive.read(f"{info}/WHEEL").decode()
    python, abi, platforms = made.tags
    assert [line[5:] for line in tags.splitlines() if line.startswith("Tag: ")] == [
        f"{python}-{abi}-{platform}" for platform in platforms.split(".")
    ]
    entry_points = archive.read(f"{info}/entry_points.txt").decode()
    assert "bitstable = triton.bitstable.cli:main" in entry_points
    assert "bitstable-opt = triton.bitstable.opt:main" in entry_points
    assert "proton = triton.profiler.proton:main" in entry_points


@pytest.mark.parametrize(
    ("glibc", "expected"),
    [
        (14, ["manylinux_2_27_x86_64", "manylinux_2_28_x86_64"]),
        (28, ["manylinux_2_28_x86_64"]),
        (34, ["manylinux_2_34_x86_64"]),
    ],
)
def test_platform_tags_tell_the_truth_about_glibc(glibc, expected):
    base = ["manylinux_2_27_x86_64", "manylinux_2_28_x86_64"]
    assert assemble._platforms(base, glibc) == expected
