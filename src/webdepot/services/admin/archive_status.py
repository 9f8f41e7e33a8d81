"""What is there: figures for the home page, the status page and `webdepot status`."""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from sqlalchemy import func, select

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.container.tables import containers
from webdepot.depot.tables import packages
from webdepot.harvest import runs
from webdepot.harvest.tables import harvests
from webdepot.model import EVERYTHING, Capture, Harvest
from webdepot.provenance import Event, latest
from webdepot.services.access import gate

MOST_LOOKED_THROUGH = 200
"""Of the newest pages, where there are rules of access."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Collection:
    name: str
    harvests: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What the first page shows."""

    newest: Sequence[Capture]
    collections: Sequence[Collection]
    captures: int
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """What staff want to see at a glance."""

    harvests_by_state: Mapping[str, int]
    harvests: Sequence[Harvest]
    """The newest."""
    containers: int
    container_bytes: int
    packages: int
    captures: int
    texts: int
    """Page states in the text index."""
    not_indexed: int
    """Containers that wait for the index."""
    disk_free_bytes: int
    disk_total_bytes: int
    events: Sequence[Event]
    """The newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harvested:
    """How often and when last a target was harvested."""

    count: int
    last_at: datetime
    last: str


def harvests_of_targets(archive: Archive, targets: Sequence[int]) -> Mapping[int, Harvested]:
    """For the targets of a page; those that were never harvested are left out."""
    if not targets:
        return {}
    chosen = (
        select(
            harvests.c.target,
            func.count().label("times"),
            func.max(harvests.c.started_at).label("last_at"),
            func.max(harvests.c.id).label("last"),
        )
        .where(harvests.c.target.in_(targets))
        .group_by(harvests.c.target)
    )
    with archive.database.reading() as connection:
        rows = connection.execute(chosen).all()
    return {row.target: Harvested(count=row.times, last_at=row.last_at, last=row.last) for row in rows}


def home(archive: Archive, *, reader: Reader, limit: int = 12) -> Home:
    return Home(
        newest=_newest(archive, reader, limit),
        collections=collections(archive),
        captures=archive.captures.total(),
        size_bytes=_container_totals(archive)[1],
    )


def _newest(archive: Archive, reader: Reader, limit: int) -> list[Capture]:
    """The newest pages that this reader may see; where rules close very many of them, fewer than could be
    found.
    """
    newest = archive.captures.newest(MOST_LOOKED_THROUGH if gate.has_rules(archive) else limit)
    return list(islice(gate.filter_open(archive, newest, reader), limit))


def collections(archive: Archive) -> list[Collection]:
    """Every collection with its size; `all` is not among them."""
    chosen = (
        select(
            harvests.c.collection,
            func.count(harvests.c.id.distinct()),
            func.coalesce(func.sum(containers.c.size_bytes), 0),
        )
        .join(containers, containers.c.harvest == harvests.c.id)
        .where(harvests.c.collection != EVERYTHING)
        .group_by(harvests.c.collection)
        .order_by(harvests.c.collection)
    )
    with archive.database.reading() as connection:
        return [
            Collection(name=row[0], harvests=row[1], size_bytes=int(row[2]))
            for row in connection.execute(chosen)
        ]


def status(archive: Archive, *, limit: int = 20) -> Status:
    count, size_bytes = _container_totals(archive)
    with archive.database.reading() as connection:
        by_state: dict[str, int] = dict(
            connection.execute(select(harvests.c.state, func.count()).group_by(harvests.c.state))
            .tuples()
            .all()
        )
        package_count = connection.execute(select(func.count()).select_from(packages)).scalar_one()
        newest = runs.latest(connection, limit)
        events = latest(connection, limit)
    disk = shutil.disk_usage(archive.home)
    return Status(
        harvests_by_state=by_state,
        harvests=newest,
        containers=count,
        container_bytes=size_bytes,
        packages=package_count,
        captures=archive.captures.total(),
        texts=archive.texts.total(),
        not_indexed=max(count - sum(1 for _ in archive.captures.containers()), 0),
        disk_free_bytes=disk.free,
        disk_total_bytes=disk.total,
        events=events,
    )


def _container_totals(archive: Archive) -> tuple[int, int]:
    with archive.database.reading() as connection:
        return shelf.totals(connection)
