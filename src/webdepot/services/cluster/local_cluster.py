"""A whole cluster on one machine, to try it: engines, and our own roles as processes of their own.

    up       prepare and start what does not run: OpenSearch where Java is, PostgreSQL, SeaweedFS, Dask, then
             our roles
    kill     end one of them as a power cut would; `up` starts it again
    down     stop everything, our roles first

Every step can be repeated: a command that was killed is continued by the next one.
"""

import os
import signal
import tomllib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from webdepot import durable
from webdepot.archive import is_founded
from webdepot.cluster import opensearch_server, plan
from webdepot.cluster.plan import ClusterPlan
from webdepot.cluster.processes import ProcessFolder, Program
from webdepot.config import config
from webdepot.config.config import FILE_NAME
from webdepot.errors import ConfigError, InputError, NotFound
from webdepot.services.admin import setup

_READY_S = 120.0
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterMember:
    """A process of the cluster, running or not."""

    name: str
    is_alive: bool
    pid: int | None
    age_s: float
    address: str
    log: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterUp:
    started: tuple[str, ...]
    portals: tuple[str, ...]
    environment: Path
    settings: Path
    is_elsewhere: bool
    """The archive in this home does not use the engines, so only they were started."""


def up(home: Path, counts: Mapping[str, int], *, agent: str = "", say: Say) -> ClusterUp:
    """Start what is not running, and create the archive if there is none. RemoteError if something does not
    start.
    """
    durable.make_folders(home)
    home.chmod(0o700)
    with _locked(home):
        known = plan.prepare(
            home, counts, with_opensearch=plan.load(home) is None and can_run_opensearch(say)
        )
        os.environ.update(known.environment)  # for us, as for the processes that we start
        started = _start_engines(known, say)
        is_founded_now = is_founded(config.read(home))
        if not is_founded_now:
            say("Creating the archive")
            setup.create(home, agent=agent, settings=known.settings())
        is_elsewhere = config.read(home).database.url != known.postgresql.url()
        if is_elsewhere:
            _write_settings(home, known)
        own = [] if is_elsewhere else list(known.own(home))
        _prepare_homes(home, known)
        started += _start(known, own, say)
        _stop_superfluous(known, own)
    return ClusterUp(
        started=tuple(started),
        portals=tuple(program.address for program in own if program.address),
        environment=known.folder / "environment",
        settings=known.folder / FILE_NAME,
        is_elsewhere=is_elsewhere,
    )


def can_run_opensearch(say: Say) -> bool:
    """Whether OpenSearch can be run here. The first time, its jars are fetched, which may take minutes."""
    say("Preparing OpenSearch")
    try:
        opensearch_server.fetch_jars()
    except ConfigError as error:
        say(f"The text index will be a folder. {error}")
        return False
    return True


def _prepare_homes(home: Path, known: ClusterPlan) -> None:
    """Write the configuration of the archive to the homes of roles that run as if on other machines."""
    settings = home / FILE_NAME
    for folder in known.homes():
        durable.make_folders(folder)
        durable.write_whole(
            folder / FILE_NAME, settings.read_bytes() if settings.exists() else b"", mode=0o600
        )


def _write_settings(home: Path, known: ClusterPlan) -> None:
    """Write the configuration of the archive with the engines in it, for `webdepot cluster move`."""
    file = home / FILE_NAME
    tree = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    for section, keys in tomllib.loads(known.settings()).items():
        tree[section] = tree.get(section, {}) | keys
    durable.write_whole(known.folder / FILE_NAME, setup.toml_text(tree).encode(), mode=0o600)


def down(home: Path, *, only_roles: bool = False, say: Say) -> int:
    """Stop everything, or all but the engines; return how many processes were running."""
    known = _get(home)
    with _locked(home):
        processes = ProcessFolder(known.folder)
        engines = {program.name: program.stop for program in _engines(known)}
        own = {name: signal.SIGTERM for name in processes.names() if name not in engines}
        say("Stopping portals and workers")  # they write to the engines until they end
        stopped = processes.stop(own)
        if only_roles:
            return stopped
        say("Stopping the engines")
        return stopped + processes.stop(engines)


def kill(home: Path, name: str) -> ClusterMember:
    """End one process as a power cut would; NotFound if there is none of that name, InputError if it does not
    run.
    """
    known = _get(home)
    members = {member.name: member for member in status(home)}
    if name not in members:
        raise NotFound(f"There is no {name[:60]!r} in this cluster. Its members are: {', '.join(members)}.")
    if not members[name].is_alive:
        raise InputError(f"{name} is not running. Start it again with: webdepot cluster up {home}")
    ProcessFolder(known.folder).kill(name)
    return next(member for member in status(home) if member.name == name)


def status(home: Path) -> list[ClusterMember]:
    """Every process of the cluster, in the order in which they are started."""
    known = _get(home)
    processes = ProcessFolder(known.folder)
    members = []
    for program in (*_engines(known), *known.own(home)):
        process = processes.find(program.name)
        is_alive = process is not None and process.is_alive
        members.append(
            ClusterMember(
                name=program.name,
                is_alive=is_alive,
                pid=process.pid if process is not None and is_alive else None,
                age_s=process.age_s if process is not None and is_alive else 0.0,
                address=program.address,
                log=processes.log_of(program.name),
            )
        )
    return members


def _get(home: Path) -> ClusterPlan:
    known = plan.load(home)
    if known is None:
        raise NotFound(f"There is no cluster at {home}. Create one with: webdepot cluster up {home}")
    return known


@contextmanager
def _locked(home: Path) -> Iterator[None]:
    durable.make_folders(home / plan.FOLDER)
    busy = f"Another command starts or stops the cluster at {home}. Wait until it has ended."
    with durable.locked(home / plan.FOLDER / "lock", busy=busy):
        yield


def _engines(known: ClusterPlan) -> Iterator[Program]:
    # OpenSearch, PostgreSQL and Dask take a moment to begin; SeaweedFS starts meanwhile.
    if known.opensearch is not None:
        yield known.opensearch.program()
    yield known.postgresql.program()
    yield from known.dask()
    yield from known.seaweedfs.programs()


def _start_engines(known: ClusterPlan, say: Say) -> list[str]:
    postgresql, seaweedfs = known.postgresql, known.seaweedfs
    say("Preparing PostgreSQL and SeaweedFS")
    if known.opensearch is not None:
        known.opensearch.prepare()
    postgresql.prepare()
    seaweedfs.prepare()
    started = _start(known, list(_engines(known)), say)
    postgresql.create_database()
    for bucket in (plan.DEPOT, plan.WORK):
        seaweedfs.create_bucket(bucket)
    return started


def _start(known: ClusterPlan, programs: list[Program], say: Say) -> list[str]:
    """Start those that do not run, and wait until all are ready."""
    processes, started = ProcessFolder(known.folder), []
    for program in programs:
        if processes.start(program):
            say(f"Starting {program.name}")
            started.append(program.name)
    for program in programs:
        processes.wait(program, at_most_s=_READY_S)
    return started


def _stop_superfluous(known: ClusterPlan, own: list[Program]) -> None:
    """Stop processes of roles that now need fewer of them."""
    wanted = {program.name for program in own}
    ours = tuple(f"{role.name}-" for role in plan.ROLES)
    processes = ProcessFolder(known.folder)
    extra = [name for name in processes.names() if name.startswith(ours) and name not in wanted]
    processes.stop(dict.fromkeys(extra, signal.SIGTERM))
