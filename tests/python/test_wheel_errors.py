"""What the build says when the machine or the network is not as it should be."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from checkout import ROOT, inputs
from wheelbuild import archive, assemble, base, cargo, cli, environment, system
from wheelbuild.errors import BuildError
from wheelbuild.progress import Step, run


def build(*arguments, **variables):
    """Run the script; a variable set to `None` is removed."""
    merged = {**os.environ, **variables}
    return subprocess.run(
        [ROOT / "scripts" / "build-wheel", *arguments],
        env={name: value for name, value in merged.items() if value is not None},
        capture_output=True,
        text=True,
        timeout=120,
    )


def errors(done):
    """The error of a failed build; there must be exactly one."""
    assert done.returncode == 1, done.stdout + done.stderr
    assert done.stderr.count("error:") == 1, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def fake_tool(directory, name, script):
    path = directory / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def path(tmp_path, monkeypatch):
    """A PATH with nothing but what the test puts there."""
    tools = tmp_path / "bin"
    tools.mkdir()
    monkeypatch.setenv("PATH", str(tools))
    monkeypatch.setenv("HOME", str(tmp_path))
    return tools


def test_help_teaches():
    done = build("--help")
    assert done.returncode == 0
    for word in ("--python", "--output", "--no-install", "Debian", "PyPI"):
        assert word in done.stdout


@pytest.mark.parametrize("version", ["3.10", "3.9", "3.16", "2.7", "three"])
def test_unsupported_pythons_are_refused_at_once(version):
    message = errors(build("--python", version))
    if version == "3.10":
        assert "Triton 3.9.0 has no wheel for Python 3.10" in message
        assert "3.11" in message
    assert "help:" in message


def test_no_python(tmp_path):
    message = errors(build(PYTHON=str(tmp_path / "none")))
    assert "no Python 3.11 or newer" in message


def test_missing_llvm(tmp_path):
    message = errors(build("--no-install", LLVM_SYS_220_PREFIX=str(tmp_path)))
    assert f"LLVM 22 is not at {tmp_path}" in message
    assert "apt-get install libmlir-22-dev" in message


def test_another_llvm(tmp_path, monkeypatch):
    (tmp_path / "bin").mkdir()
    fake_tool(tmp_path / "bin", "llvm-config", "echo 21.1.0")
    monkeypatch.setenv("LLVM_SYS_220_PREFIX", str(tmp_path))
    with pytest.raises(BuildError, match=r"is 21\.1\.0, and must be 22"):
        system.check_llvm()
    fake_tool(tmp_path / "bin", "llvm-config", "echo 22.1.8")
    with pytest.raises(BuildError, match="no MLIR headers"):
        system.check_llvm()


def test_missing_debian_packages(path, monkeypatch, tmp_path):
    fake_tool(path, "dpkg-query", "echo 'g++ installed'; exit 1")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(BuildError, match=r"missing: binutils .*libmlir-22-dev") as caught:
        system.provide_packages(tmp_path / "log", Step("packages"))
    assert caught.value.help.startswith("sudo apt-get install --no-install-recommends binutils")
    assert "g++" not in caught.value.help


def test_root_installs_the_missing_packages(path, monkeypatch, tmp_path):
    fake_tool(path, "dpkg-query", "echo 'g++ installed'")
    fake_tool(path, "apt-get", f'echo "$@" >> {tmp_path}/calls')
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    system.provide_packages(tmp_path / "log", Step("packages"))
    update, install = (tmp_path / "calls").read_text().splitlines()
    assert update == "-q update"
    assert install.startswith("-qy install --no-install-recommends binutils libclang-common-22-dev")


def test_apt_that_fails(path, monkeypatch, tmp_path):
    fake_tool(path, "dpkg-query", "exit 1")
    fake_tool(path, "apt-get", "echo 'E: Unable to locate package libmlir-22-dev'; exit 100")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(BuildError, match="Unable to locate package libmlir-22-dev"):
        system.provide_packages(tmp_path / "log", Step("packages"))


def test_missing_cargo(path):
    with pytest.raises(BuildError, match="cargo is not on the PATH") as caught:
        system.find_cargo()
    assert "rustup" in caught.value.help


def test_old_cargo(path):
    fake_tool(path, "cargo", "echo cargo 1.63.0")
    with pytest.raises(BuildError, match=r"too old: cargo 1\.63\.0"):
        system.find_cargo()


def test_a_failing_cargo_shows_the_end_of_its_log(path, tmp_path):
    broken = fake_tool(path, "cargo", "echo 'error[E0425]: cannot find value' >&2; exit 101")
    with pytest.raises(BuildError, match=r"(?s)native library failed.*E0425"):
        cargo.build(ROOT, broken, tmp_path / "log", Step("library"))


def test_no_network(tmp_path):
    offline = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple", "PIP_RETRIES": "0"}
    offline |= {"PIP_FIND_LINKS": "", "PIP_NO_INDEX": "0", "PIP_CONFIG_FILE": os.devnull}
    before = dict(os.environ)
    os.environ.update(offline)
    try:
        with pytest.raises(BuildError, match="package index cannot be reached") as caught:
            base.fetch("3.11", Path(sys.executable), tmp_path / "base", Step("wheel"))
    finally:
        os.environ.clear()
        os.environ.update(before)
    assert "network" in caught.value.help
    assert list((tmp_path / "base").iterdir()) == []


@pytest.fixture
def published(tmp_path, monkeypatch):
    """Stands for the index: any wheel is this small file."""

    def download(python, pip_python, scratch, step):
        wheel = scratch / "triton-3.9.0-cp311-cp311-manylinux_2_28_x86_64.whl"
        wheel.write_bytes(b"not what was published")
        return wheel

    monkeypatch.setattr(base, "_download", download)
    return tmp_path / "base"


def test_a_wrong_hash_is_refused_and_not_kept(published):
    with pytest.raises(BuildError, match="not the wheel that this build was made for") as caught:
        base.fetch("3.11", Path("python"), published, Step("wheel"))
    assert base.PINS["3.11"].sha256 in str(caught.value)
    assert list(published.iterdir()) == []


def test_a_damaged_cache_is_downloaded_anew(published, monkeypatch):
    published.mkdir()
    damaged = published / "triton-3.9.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    damaged.write_bytes(b"half")
    good = hashlib.sha256(b"not what was published").hexdigest()
    monkeypatch.setitem(base.PINS, "3.11", base.Pin("cp311-cp311", good))
    fetched = base.fetch("3.11", Path("python"), published, Step("wheel"))
    assert fetched.read_bytes() == b"not what was published"


def test_a_library_with_other_exports_is_refused(tmp_path):
    with pytest.raises(BuildError, match="must export its entry points alone"):
        cargo.inspect(_any_library())


def _any_library():
    maps = Path("/proc/self/maps").read_text().splitlines()
    return next(Path(line.split()[-1]) for line in maps if "/libm" in line)


def test_a_wheel_that_is_no_zip(tmp_path):
    made = inputs()
    made.base = tmp_path / made.base.name
    made.base.write_bytes(b"PK\x03\x04 and then nothing")
    with pytest.raises(BuildError, match="cannot read"):
        assemble.assemble(made, tmp_path / "dist")
    assert list((tmp_path / "dist").iterdir()) == []


def test_a_second_build_waits_for_the_first(tmp_path, capsys):
    places = cli._Places(cache=tmp_path)
    with cli._lock(places):
        waiting = subprocess.Popen(
            ["flock", "--nonblock", tmp_path / "build.lock", "true"], stdout=subprocess.DEVNULL
        )
        assert waiting.wait() == 1
    with cli._lock(places):
        pass
    assert "waiting" not in capsys.readouterr().out


def test_commands_that_do_not_exist_are_build_errors(tmp_path):
    with pytest.raises(BuildError, match="cannot run"):
        run([tmp_path / "nothing"], tmp_path / "log", "trying")


def test_an_environment_that_does_not_work_is_noticed(tmp_path):
    fake = fake_tool(tmp_path, "python", "echo 3.9.0 none")
    with pytest.raises(BuildError, match="installed wheel does not work"):
        environment.check_import(fake, "0.1.0")


def test_archives_past_four_gigabytes_are_refused(tmp_path):
    huge = archive.Entry("a", 0o644, archive.STORED, 0, 1, archive._LIMIT, data=b"")
    with pytest.raises(BuildError, match="zip64"):
        archive.write(tmp_path / "a.zip", [huge], None)


def test_flock_is_here():
    assert shutil.which("flock"), "util-linux is part of Debian's base system"
