"""What is installed is what was pinned: every package by SHA-256, every browser file by SHA-512, and a bill of
materials that names them all. The threat model names tests that exist.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from webdepot import browser_files
from webdepot.services.admin import setup
from webdepot.services.admin.doctor import installation

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PIN = re.compile(r"^([A-Za-z0-9._-]+)==([^\s;\\]+)")


def pinned(name: str) -> dict[str, tuple[str, int]]:
    """Package -> version and number of hashes, of one file of constraints."""
    found: dict[str, tuple[str, int]] = {}
    last = ""
    for line in (ROOT / "constraints" / f"{name}.txt").read_text().splitlines():
        if match := PIN.match(line):
            last = canonicalize_name(match[1])
            found[last] = (match[2], 0)
        found |= {last: (found[last][0], found[last][1] + 1)} if "--hash=sha256:" in line else {}
    return found


@pytest.mark.parametrize("name", ["build", "run", "test", "pywb", "node", "tools"])
def test_every_line_is_pinned_and_has_a_hash(name: str) -> None:
    packages = pinned(name)
    assert packages
    assert [package for package, (_, hashes) in packages.items() if not hashes] == []
    lines = (ROOT / "constraints" / f"{name}.txt").read_text().splitlines()
    other = [
        line
        for line in lines
        if line and not line.startswith(("#", "    --hash=sha256:")) and not PIN.match(line)
    ]
    assert other == [], "no address, no option, nothing without a version"


@pytest.mark.parametrize(("name", "extras"), [("run", ()), ("test", ("dev",))])
def test_the_constraints_have_what_the_project_needs(name: str, extras: tuple[str, ...]) -> None:
    packages, project = pinned(name), PROJECT["project"]
    needed = [
        *project["dependencies"],
        *(line for extra in extras for line in project["optional-dependencies"][extra]),
    ]
    for line in needed:
        requirement = Requirement(line)
        version, _ = packages[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{line}: run make constraints"


def test_tests_run_with_the_versions_that_are_installed_elsewhere() -> None:
    run, test, build = (pinned(name) for name in ("run", "test", "build"))
    assert {name: version for name, version in run.items() if test.get(name) != version} == {}
    assert {name for name in build.keys() & test.keys() if build[name] != test[name]} == set()


def test_the_build_backend_is_the_pinned_one() -> None:
    build = pinned("build")
    for line in PROJECT["build-system"]["requires"]:
        requirement = Requirement(line)
        assert str(requirement.specifier) == f"=={build[canonicalize_name(requirement.name)][0]}"


def test_the_installation_takes_nothing_without_a_hash() -> None:
    script = (ROOT / "scripts" / "setup.sh").read_text()
    installs = [line for line in script.splitlines() if "pip_install ." in line]
    assert len(installs) == 6
    assert [line for line in installs if "--require-hashes" not in line] == [
        "  pip_install .venv/bin/python -e ."
    ]
    assert "--no-deps --no-build-isolation" in script


def test_pip_refuses_a_package_with_another_hash(tmp_path: Path) -> None:
    """With the options of the installation, on a package that pip has no other source for."""
    wheel = tmp_path / "wheels" / "demo-1.0-py3-none-any.whl"
    wheel.parent.mkdir()
    write_wheel(wheel)
    listed = tmp_path / "list.txt"
    listed.write_text(f"demo==1.0 --hash=sha256:{'0' * 64}\n")
    options = ["--no-index", "--find-links", str(wheel.parent), "--no-deps", "--require-hashes"]
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        *options,
        "--target",
        str(tmp_path / "into"),
        "-r",
        str(listed),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "DO NOT MATCH" in done.stderr
    assert not (tmp_path / "into" / "demo.py").exists()


def write_wheel(path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("demo.py", "x = 1\n")
        packed.writestr("demo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: demo\nVersion: 1.0\n")
        packed.writestr(
            "demo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        packed.writestr("demo-1.0.dist-info/RECORD", "")


# --- browser files ---


def test_a_changed_or_missing_browser_file_is_found(tmp_path: Path) -> None:
    vendor = Path(browser_files.__file__).parent / "web" / "vendor"
    assert browser_files.find_wrong() == []
    for file in vendor.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    assert browser_files.find_wrong(tmp_path) == []
    (tmp_path / "sw.js").write_bytes((tmp_path / "sw.js").read_bytes() + b"\n")
    (tmp_path / "htmx.min.js").unlink()
    assert browser_files.find_wrong(tmp_path) == ["sw.js", "htmx.min.js"]


def test_the_server_does_not_start_with_changed_browser_files(tmp_path: Path) -> None:
    setup.create(tmp_path / "home")
    program = (
        "import sys; from webdepot import browser_files; from webdepot.cli.main import main;"
        "browser_files.find_wrong.__defaults__ = (__import__('pathlib').Path(sys.argv.pop(1)),); main()"
    )
    command = [
        sys.executable,
        "-c",
        program,
        str(tmp_path / "empty"),
        "--home",
        str(tmp_path / "home"),
        "serve",
    ]
    done = subprocess.run(
        [*command, "--port", "0", "--replay-port", "0"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 2
    assert "sw.js" in done.stderr and "make install" in done.stderr


def test_doctor_checks_the_browser_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert installation.check_browser_files().state == "ok"
    monkeypatch.setattr(browser_files.find_wrong, "__defaults__", (tmp_path,))
    assert installation.check_browser_files().state == "error"


# --- the bill of materials, and the threat model ---


def test_the_bill_of_materials_names_every_package_and_file() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "sbom.py")]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
        for _ in range(2)
    )
    assert first == second
    bill = json.loads(first)
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    named = {component["name"]: component for component in bill["components"]}
    for name, (version, hashes) in pinned("run").items():
        if name in named:
            assert named[name]["version"] == version
            assert len(named[name]["properties"]) == hashes
    assert {canonicalize_name(Requirement(line).name) for line in PROJECT["project"]["dependencies"]} <= set(
        named
    )
    assert {package["name"] for package in browser_files.packages()} <= set(named)
    references = {component["bom-ref"] for component in bill["components"]}
    references.add(bill["metadata"]["component"]["bom-ref"])
    assert len(references) == len(bill["components"]) + 1
    assert {row["ref"] for row in bill["dependencies"]} | {
        each for row in bill["dependencies"] for each in row["dependsOn"]
    } <= references
    assert [name for name, component in named.items() if not component.get("licenses")] == []


def test_the_threat_model_names_tests_that_exist() -> None:
    text = (ROOT / "docs" / "explanation" / "threat-model.md").read_text()
    rows = [line for line in text.partition("## Boundaries")[2].splitlines() if line.startswith("| ")][1:]
    named = set()
    for row in rows:
        tests = re.findall(r"`(tests/[^`]+)`", row)
        assert tests, f"no test: {row}"
        named.update(tests)
    assert sorted(path for path in named if not (ROOT / path).is_file()) == []
    ours = {f"tests/security/{path.name}" for path in (ROOT / "tests" / "security").glob("test_*.py")}
    assert sorted(ours - named) == [], "tests of security that the threat model does not name"
