"""Fetching the files for browsers: only the pinned bytes are accepted, and existing files are left alone."""

import dataclasses
import importlib.util
import io
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "vendor.py"


@pytest.fixture
def vendor():
    spec = importlib.util.spec_from_file_location("vendor", SCRIPT)
    module = importlib.util.module_from_spec(spec)
    sys.modules["vendor"] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["vendor"]


def packed(**files: bytes) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as archive:
        for name, content in files.items():
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return made.getvalue()


@pytest.fixture
def npm(tmp_path: Path):
    """A program that packs what a test tells it to: a registry that may misbehave."""
    tarball = tmp_path / "registry.tgz"
    program = tmp_path / "npm"
    program.write_text(
        f'#!/bin/sh\nwhile [ "$1" != --pack-destination ]; do shift; done\ncp {tarball} "$2/packed.tgz"\n'
    )
    program.chmod(0o755)
    return tarball, [str(program)]


def test_the_pinned_files_are_there_and_nothing_is_fetched():
    done = subprocess.run(
        [sys.executable, SCRIPT],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": "/nonexistent"},
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "Browser files: up to date.\n")


def test_the_right_bytes_are_put_in_place(vendor, npm, tmp_path: Path):
    tarball, command = npm
    tarball.write_bytes(packed(sw=b"worker", LICENSE=b"words"))
    package = vendor.Package(
        name="x",
        version="1",
        integrity=vendor.integrity_of(tarball.read_bytes()),
        folder=tmp_path / "vendor",
        files=(("sw", "sw.js", vendor.integrity_of(b"worker")),),
    )
    assert not vendor.is_there(package)
    vendor.fetch(package, command, tmp_path)
    assert vendor.is_there(package) and [path.name for path in package.folder.iterdir()] == ["sw.js"]
    (package.folder / "sw.js").write_bytes(b"worker, changed")
    assert not vendor.is_there(package)


@pytest.mark.parametrize("wrong", ["package", "file", "absent"])
def test_other_bytes_are_refused_with_a_message_and_change_nothing(vendor, npm, tmp_path: Path, wrong):
    tarball, command = npm
    tarball.write_bytes(packed(sw=b"worker"))
    right = vendor.Package(
        name="x",
        version="1",
        integrity=vendor.integrity_of(tarball.read_bytes()),
        folder=tmp_path / "vendor",
        files=(("sw", "sw.js", vendor.integrity_of(b"worker")),),
    )
    changed = {
        "package": {"integrity": vendor.integrity_of(b"other")},
        "file": {"files": (("sw", "sw.js", vendor.integrity_of(b"other")),)},
        "absent": {"files": (("gone", "sw.js", ""),)},
    }
    with pytest.raises(vendor.CannotFetch, match=r"has a wrong checksum|has no file"):
        vendor.fetch(dataclasses.replace(right, **changed[wrong]), command, tmp_path)
    assert not (right.folder / "sw.js").exists()


def test_a_registry_that_fails_is_explained(vendor, tmp_path: Path):
    with pytest.raises(
        vendor.CannotFetch, match=r"npm failed with exit code 1\. Is the package registry reachable"
    ):
        vendor.run(["false"], tmp_path, "npm")
    with pytest.raises(vendor.CannotFetch, match="npm could not be run"):
        vendor.run([str(tmp_path / "nothing")], tmp_path, "npm")


def test_a_wheel_built_from_an_sdist_contains_the_browser_files(vendor, tmp_path: Path):
    """Without npm and without a network: the sdist contains them."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(tmp_path / "dist"), "-t"]
    subprocess.run([*command, "sdist"], cwd=vendor.ROOT, check=True, capture_output=True, timeout=120)
    (packed,) = (tmp_path / "dist").iterdir()
    with tarfile.open(packed) as archive:
        archive.extractall(tmp_path / "source")
    (source,) = (tmp_path / "source").iterdir()
    alone = {"PATH": str(Path(sys.executable).parent), "HOME": str(tmp_path)}
    subprocess.run([*command, "wheel"], cwd=source, check=True, capture_output=True, timeout=120, env=alone)
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as made:
        names = set(made.namelist())
    assert {
        f"webdepot/web/vendor/{file[1]}" for package in vendor.PACKAGES for file in package.files
    } <= names
