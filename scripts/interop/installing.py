"""Install programs of others from their registries below `.interop/`, never into the system.

PyPI into one virtual environment; npm, Maven, crates and Go into folders of their own; Debian packages are
downloaded and unpacked. A program is installed once and used again.
"""

import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACE = ROOT / ".interop"
PYPI = [
    "bagit",
    "cdx_toolkit",
    "cdxj-indexer",
    "fastwarc",
    "feedparser",
    "har2warc",
    "memento_client",
    "metsrw",
    "oaipmh-scythe",
    "ocfl-py",
    "openapi-spec-validator",
    "pymarc",
    "schemathesis",
    "setuptools<81",
    "sickle",
    "wacz",
    "warcio",
    "warcit",
    "wayback",
    "waybackpy",
]
LIMIT_S = 1800
_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>
<groupId>interop</groupId><artifactId>interop</artifactId><version>1</version><dependencies>{}</dependencies></project>"""
_COPY = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"


class Unavailable(Exception):
    """A tool cannot be run; the message says why."""


def pypi() -> None:
    """Create the environment that most tools are in."""
    if not (PLACE / "bin" / "pip").exists():
        subprocess.run([sys.executable, "-m", "venv", str(PLACE)], check=True)
    subprocess.run([str(PLACE / "bin" / "pip"), "install", "--quiet", *PYPI], check=True)


def npm(package: str, name: str) -> Path:
    """The folder of a package from npm, with its dependencies beside it."""
    program = _needed("npm", "npm is not installed: apt install npm")
    place = PLACE / name
    if not (place / "node_modules" / package).is_dir():
        place.mkdir(parents=True, exist_ok=True)
        (place / "package.json").write_text("{}")
        _install(
            [
                program,
                "install",
                "--silent",
                "--ignore-scripts",
                "--no-audit",
                "--prefix",
                str(place),
                package,
            ]
        )
    return place / "node_modules" / package


def npm_alone(package: str) -> Path:
    """The folder of a package from npm without its dependencies: it is complete for browsers."""
    program = _needed("npm", "npm is not installed: apt install npm")
    place = PLACE / package
    if not (place / "package").is_dir():
        place.mkdir(parents=True, exist_ok=True)
        _install([program, "pack", "--silent", "--ignore-scripts", package], folder=place)
        with tarfile.open(next(place.glob("*.tgz"))) as packed:
            packed.extractall(place)
    return place / "package"


def maven(name: str, *artifacts: str) -> str:
    """The class path of libraries from Maven Central (`group:artifact:version`) with all that they need."""
    program, place = _java(), PLACE / "maven" / name
    if not place.is_dir():
        parts = (artifact.split(":") for artifact in artifacts)
        text = "".join(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId><version>{version}</version></dependency>"
            for group, artifact, version in parts
        )
        pom = PLACE / "maven" / f"{name}.xml"
        pom.parent.mkdir(parents=True, exist_ok=True)
        pom.write_text(_POM.format(text))
        _install([program, "-q", "-f", str(pom), f"{_COPY}-dependencies", f"-DoutputDirectory={place}"])
    return str(place / "*")


def maven_file(artifact: str) -> Path:
    """One file from Maven Central, such as the distribution of a server."""
    program, place = _java(), PLACE / "maven"
    _, name, version, ending, *label = artifact.split(":")
    path = place / "-".join([name, version, *label])
    path = path.with_name(f"{path.name}.{ending}")
    if not path.exists():
        _install([program, "-q", _COPY, f"-Dartifact={artifact}", f"-DoutputDirectory={place}"])
    return path


def go(module: str, program: str, version: str = "latest") -> Path:
    """A program in Go, compiled. `module` is its package."""
    target = PLACE / "go"
    if not (target / program).exists():
        _needed("go", "Go is not installed: apt install golang")
        _install(["go", "install", f"{module}@{version}"], GOBIN=str(target))
        built = target / module.rsplit("/", 1)[-1]
        if built.exists() and built.name != program:
            built.rename(target / program)
    return target / program


def crate(name: str, *arguments: str) -> Path:
    """A program in Rust, compiled."""
    program = PLACE / "cargo" / "bin" / name
    if not program.exists():
        _needed("cargo", "cargo is not installed: apt install cargo")
        _install(["cargo", "install", "--quiet", "--root", str(PLACE / "cargo"), *arguments, name])
    return program


def debian(program: str, *packages: str) -> tuple[Path, dict[str, str]]:
    """A program of Debian and the variables it needs: the installed one, or from its unpacked packages."""
    installed = shutil.which(program)
    if installed:
        return Path(installed), dict(os.environ)
    place = PLACE / "debian"
    if not (place / "usr" / "bin" / program).exists():
        _needed("apt-get", f"not installed: apt install {packages[0]}")
        place.mkdir(parents=True, exist_ok=True)
        _install(["apt-get", "download", "-q", *packages], folder=place)
        for package in place.glob("*.deb"):
            _install(["dpkg", "-x", str(package), str(place)])
            package.unlink()
    libraries = ":".join(str(path) for path in (place / "usr" / "lib").glob("*-linux-gnu"))
    return place / "usr" / "bin" / program, {**os.environ, "LD_LIBRARY_PATH": libraries}


def _java() -> str:
    _needed("java", "Java is not installed: apt install default-jdk-headless")
    return _needed("mvn", "Maven is not installed: apt install maven")


def _needed(program: str, reason: str) -> str:
    path = shutil.which(program)
    if path is None:
        raise Unavailable(reason)
    return path


def _install(command: list[str], *, folder: Path | None = None, **variables: str) -> None:
    """Run an installer; Unavailable if it fails or takes too long."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env={**os.environ, **variables},
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"not installed within {LIMIT_S // 60} minutes") from None
    if done.returncode:
        words = " ".join((done.stderr or done.stdout).split())
        raise Unavailable(f"{command[0]}: {words[-200:]}")
