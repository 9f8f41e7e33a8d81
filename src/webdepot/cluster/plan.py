"""What a cluster on one machine consists of: engines, and our own roles with their number.

HOME/cluster/cluster.json     ports and secrets, chosen once
HOME/cluster/environment      the secrets for a shell:  . HOME/cluster/environment
HOME/cluster/webdepot.toml    the configuration that uses the engines
HOME/cluster/run, log         see `processes`
HOME/cluster/seaweedfs, …     data of the engines; that of PostgreSQL is elsewhere if root starts it, because
                              PostgreSQL does not run as root and the home is closed to others
"""

import json
import os
import secrets
import shlex
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from webdepot import durable
from webdepot.cluster import dask_programs, readiness
from webdepot.cluster.free_ports import free_ports
from webdepot.cluster.opensearch_server import OpenSearchServer
from webdepot.cluster.postgresql_server import PostgresqlServer
from webdepot.cluster.processes import Program
from webdepot.cluster.seaweedfs import GRPC, VOLUMES, S3Key, SeaweedCluster
from webdepot.errors import CorruptData

FOLDER = "cluster"
DEPOT, WORK = "depot", "work"
"""Buckets."""
_OPENSEARCH = ("opensearch", "opensearch-transport")
"""Its ports, in a plan that has it."""
_KEY = "webdepot"
_ROOTS_FOLDER = Path("/var/lib/webdepot-cluster")
_CONNECTIONS = 400
"""Maximum number of connections to PostgreSQL: each of our processes opens up to 45, and some more for the
capture index.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterRole:
    """A command of ours, and how many processes run it. `{port}` and `{replay_port}` are replaced."""

    name: str
    arguments: tuple[str, ...]
    count: int = 1
    has_ports: bool = False
    has_home: bool = False
    """Whether each has a home of its own, as if it were on a machine of its own."""


ROLES = (
    # More places than parts, so that two harvesters can take over all parts of the third one.
    ClusterRole(name="harvester", arguments=("harvester", "--parts", "3"), count=3, has_home=True),
    ClusterRole(name="scheduler", arguments=("scheduler",)),
    ClusterRole(name="batch", arguments=("batch", "--processes", "2")),
    ClusterRole(
        name="portal",
        arguments=("serve", "--port", "{port}", "--replay-port", "{replay_port}"),
        count=2,
        has_ports=True,
    ),
)
"""Started in this order, after the engines."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    folder: Path
    identity: str
    """Names the folder of PostgreSQL outside the home: a new cluster in the home must not find old data."""
    ports: Mapping[str, int]
    password: str
    secret: str
    counts: Mapping[str, int]
    """How often each role runs, by its name."""

    @property
    def postgresql(self) -> PostgresqlServer:
        folder = self.folder / "postgresql"
        if os.geteuid() == 0:
            folder = _ROOTS_FOLDER / self.identity
        options = ("-c", f"max_connections={_CONNECTIONS}", "-c", "shared_buffers=64MB")
        return PostgresqlServer(
            folder=folder, port=self.ports["postgresql"], password=self.password, options=options
        )

    @property
    def seaweedfs(self) -> SeaweedCluster:
        return SeaweedCluster(
            folder=self.folder / "seaweedfs",
            master=self.ports["master"],
            volumes=[self.ports[f"volume-{number}"] for number in range(1, VOLUMES + 1)],
            filer=self.ports["filer"],
            s3=self.ports["s3"],
            keys=[S3Key(name=_KEY, secret=self.secret)],
        )

    @property
    def opensearch(self) -> OpenSearchServer | None:
        """The OpenSearch server; None if the text index is a folder, because Java was not installed when the
        cluster was created.
        """
        if _OPENSEARCH[0] not in self.ports:
            return None
        http, transport = (self.ports[name] for name in _OPENSEARCH)
        return OpenSearchServer(folder=self.folder / "opensearch", http=http, transport=transport)

    @property
    def environment(self) -> dict[str, str]:
        """The secrets, as all commands of the archive need them."""
        keys = {
            f"WEBDEPOT_PLACE_{place}_{kind}_KEY": value
            for place in ("MAIN", "WORK")
            for kind, value in (("ACCESS", _KEY), ("SECRET", self.secret))
        }
        return {"WEBDEPOT_DATABASE_PASSWORD": self.password, **keys}

    def settings(self) -> str:
        """The configuration of an archive that uses these engines."""
        endpoint, opensearch = self.seaweedfs.endpoint, self.opensearch
        text_index = f'engine = "opensearch"\nopensearch_url = "{opensearch.url}"\n' if opensearch else ""
        return (
            f'[database]\nurl = "{self.postgresql.url()}"\n\n'
            f'[depot]\nplace = "s3://{DEPOT}?endpoint={endpoint}"\n\n'
            f'[work]\nplace = "s3://{WORK}?endpoint={endpoint}"\n\n'
            f'[index]\ncaptures = "postgresql"\n{text_index}\n'
            f'[engine]\nkind = "dask"\nscheduler = "{dask_programs.address_of(self.ports["dask"])}"\n\n'
            "[cluster]\nharvesters = true\nlease_s = 10\n\n"
            "[harvest]\nprocesses = 6\n\n"
            "[schedule]\nin_server = false\n\n"
            "[jobs]\nin_server = false\n"
        )

    def dask(self) -> Iterator[Program]:
        port = self.ports["dask"]
        yield dask_programs.scheduler(port)

    def own(self, home: Path) -> Iterator[Program]:
        """Our own roles: portals, workers and so on."""
        for role in ROLES:
            for number in range(1, self.counts[role.name] + 1):
                yield self._own(role, number, home)

    def homes(self) -> Iterator[Path]:
        """The homes of roles that have one of their own."""
        for role in ROLES:
            for number in range(1, self.counts[role.name] + 1 if role.has_home else 0):
                yield self.home_of(f"{role.name}-{number}")

    def home_of(self, name: str) -> Path:
        return self.folder / "homes" / name

    def _own(self, role: ClusterRole, number: int, home: Path) -> Program:
        ports = dict[str, str]()
        if role.has_ports:
            for kind in ("port", "replay_port"):
                ports[kind] = str(self.ports[f"{role.name}-{number}-{kind}"])
        port = int(ports.get("port", 0))
        name = f"{role.name}-{number}"
        return Program(
            name=name,
            command=[
                *(
                    str(Path(sys.executable).parent / "webdepot"),
                    "--home",
                    str(self.home_of(name) if role.has_home else home),
                ),
                *(argument.format_map(ports) for argument in role.arguments),
            ],
            environment={**self.environment, "WEBDEPOT_CLUSTER_MACHINE": name if role.has_home else "here"},
            address=f"http://127.0.0.1:{port}" if port else "",
            is_ready=(lambda: readiness.answers(port, "/ready")) if port else (lambda: True),
        )


def load(home: Path) -> ClusterPlan | None:
    """The plan of a home; None if there is no cluster."""
    folder = home / FOLDER
    path = folder / "cluster.json"
    if not path.exists():
        return None
    try:
        return ClusterPlan(folder=folder, **json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        text = f"{path} is damaged: {error}. Restore it from a backup; it has the passwords of the engines."
        raise CorruptData(text, where=str(path)) from error


def prepare(home: Path, counts: Mapping[str, int], *, with_opensearch: bool = False) -> ClusterPlan:
    """The plan of a home, created if there is none; `counts` replaces what it says about our roles. A new one
    has OpenSearch if that is wanted.
    """
    known = load(home)
    wanted = {role.name: role.count for role in ROLES} | dict(known.counts if known else {}) | dict(counts)
    ports = dict(known.ports) if known else {}
    engines = ["postgresql", "dask", "master", "filer", "s3"]
    engines += [f"volume-{number}" for number in range(1, VOLUMES + 1)]
    engines += _OPENSEARCH if with_opensearch and known is None else ()
    own = [
        f"{role.name}-{number}-{kind}"
        for role in ROLES
        if role.has_ports
        for number in range(1, wanted[role.name] + 1)
        for kind in ("port", "replay_port")
    ]
    missing = [name for name in (*engines, *own) if name not in ports]
    ports |= dict(zip(missing, free_ports(len(missing), neighbour=GRPC)))
    plan = ClusterPlan(
        folder=home / FOLDER,
        identity=known.identity if known else secrets.token_hex(8),
        ports=ports,
        password=known.password if known else secrets.token_urlsafe(24),
        secret=known.secret if known else secrets.token_urlsafe(24),
        counts=wanted,
    )
    _write(plan)
    return plan


def _write(plan: ClusterPlan) -> None:
    durable.make_folders(plan.folder)
    plan.folder.chmod(0o700)
    if os.geteuid() == 0:
        durable.make_folders(_ROOTS_FOLDER)
        _ROOTS_FOLDER.chmod(0o711)  # others may enter the folder but not list it
    facts = {
        "identity": plan.identity,
        "ports": dict(plan.ports),
        "password": plan.password,
        "secret": plan.secret,
        "counts": dict(plan.counts),
    }
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in plan.environment.items()]
    for name, text in (
        ("cluster.json", json.dumps(facts, indent=2) + "\n"),
        ("environment", "".join(lines)),
    ):
        durable.write_whole(plan.folder / name, text.encode(), mode=0o600)
