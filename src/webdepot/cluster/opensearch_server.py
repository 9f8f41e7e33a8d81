"""An OpenSearch server on this machine, if Java and Maven are installed.

Its jars come from a Maven repository, once for a machine and account (about 55 MB, in the folder for caches).
`opensearch/Launcher.java` runs them, because no Maven repository has the distribution itself. The server has
no passwords: all users of this machine can reach it.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from webdepot import durable
from webdepot.cluster import readiness
from webdepot.cluster.processes import Program
from webdepot.errors import ConfigError

_SOURCE = Path(__file__).parent / "opensearch"
_NEEDED = ("java", "javac", "mvn")
_FETCH_S = 600
_HEAP_MB = 512


def jars_folder() -> Path:
    """Where the jars and our launcher are, once they were fetched."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "webdepot"
    # Other sources need another folder.
    sources = b"".join((_SOURCE / name).read_bytes() for name in ("Launcher.java", "pom.xml"))
    return cache / f"opensearch-{hashlib.sha256(sources).hexdigest()[:8]}"


def fetch_jars() -> Path:
    """Fill the folder of the jars unless that was done before, and return it. ConfigError if Java or Maven is
    not installed, or if they fail.
    """
    missing = [program for program in _NEEDED if shutil.which(program) is None]
    if missing:
        raise ConfigError(
            f"OpenSearch cannot be run here: {', '.join(missing)} not found. "
            "Install Java and Maven (Debian: apt install default-jdk-headless maven)."
        )
    complete = jars_folder()
    if not complete.exists():
        durable.make_folders(complete.parent)
        with tempfile.TemporaryDirectory(prefix="opensearch-", dir=complete.parent) as name:
            folder = Path(name) / "whole"
            folder.mkdir()
            _run(
                "mvn", "-B", "-q", "-f", str(_SOURCE / "pom.xml"), "dependency:copy-dependencies",
                f"-DoutputDirectory={folder}",
            )  # fmt: skip
            _run("javac", "-cp", f"{folder}/*", "-d", str(folder), str(_SOURCE / "Launcher.java"))
            try:
                folder.rename(complete)
            except OSError:
                if not complete.exists():  # no other process was faster
                    raise
    return complete


def _run(*command: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - the commands are ours
            command, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(
            f"OpenSearch cannot be run here: {command[0]} took longer than {_FETCH_S} seconds."
        ) from error
    if done.returncode:
        end = " ".join((done.stdout + done.stderr).strip()[-500:].split())
        raise ConfigError(f"OpenSearch cannot be run here: {command[0]} failed: {end}")


def java_command(
    jars: Path, settings: Mapping[str, str], *, heap_mb: int = _HEAP_MB, options: Sequence[str] = ()
) -> list[str]:
    """The command of a node with these settings; `options` are those of Java."""
    memory = [f"-Xms{heap_mb}m", f"-Xmx{heap_mb}m"]
    quiet = ["-Dopensearch.set.netty.runtime.available.processors=false", "-Dlog4j2.disable.jmx=true"]
    arguments = [f"{name}={value}" for name, value in settings.items()]
    return ["java", *memory, *quiet, *options, "-cp", f"{jars}:{jars}/*", "Launcher", *arguments]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenSearchServer:
    """A server of one node."""

    folder: Path
    http: int
    transport: int
    """Ports."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}"

    def prepare(self) -> None:
        """Create its folder, and fetch the jars if they are missing."""
        fetch_jars()
        durable.make_folders(self.folder / "config")

    def program(self) -> Program:
        settings = {
            "cluster.name": "webdepot",
            "node.name": "opensearch",
            "path.home": str(self.folder),
            "network.host": "127.0.0.1",
            "http.port": str(self.http),
            "transport.port": str(self.transport),
            "discovery.type": "single-node",
            "indices.query.bool.max_clause_count": "8192",
            # A trial must also work on a disk that is nearly full.
            "cluster.routing.allocation.disk.threshold_enabled": "false",
        }
        return Program(
            name="opensearch",
            command=java_command(jars_folder(), settings),
            folder=self.folder,
            address=self.url,
            is_ready=lambda: readiness.answers(self.http, "/_cluster/health"),
        )
