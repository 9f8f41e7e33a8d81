"""Figures about the archive: for the home page, the status page and `webdepot status`."""

import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from sqlalchemy import func, select

from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import locations
from webdepot.depot.tables import packages
from webdepot.errors import RemoteError
from webdepot.harvest import harvest_rows
from webdepot.harvest.tables import harvests
from webdepot.model import Capture, Harvest
from webdepot.provenance import Event, latest
from webdepot.services.access import collections
from webdepot.services.access.browse import collection_view, start_pages
from webdepot.services.access.browse.collection_view import CollectionTile
from webdepot.services.access.browse.start_pages import SiteCard
from webdepot.services.index import visible_harvests

MOST_SITES, FEW_SITES = 6, 4
"""Sites on the home page; if there are fewer than the second number, earlier versions are shown too."""
MOST_COLLECTIONS = 8
MOST_HARVESTS = 60
"""Newest harvests whose start pages are looked up."""
MOST_LOOKED_THROUGH = 100
"""Newest pages whose sites are looked up, if these are too few."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """The size of the archive."""

    captures: int
    size_bytes: int
    collections: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Home:
    """What the home page shows."""

    sites: Sequence[SiteCard]
    """Start pages, one for each site, those harvested last first."""
    earlier: Sequence[SiteCard]
    """If there are few sites: how their start pages looked in earlier years."""
    years: Mapping[int, int]
    """Captures by year."""
    collections: Sequence[CollectionTile]
    figures: Figures


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchiveStatus:
    """Figures on the status page and of `webdepot status`."""

    harvests_by_state: Mapping[str, int]
    harvests: Sequence[Harvest]
    """The newest."""
    containers: int
    container_bytes: int
    packages: int
    captures: int
    texts: int | None
    """Page states in the text index; None if the search server does not answer."""
    not_indexed: int
    """Containers that are not yet indexed."""
    disk_free_bytes: int
    disk_total_bytes: int
    events: Sequence[Event]
    """The newest."""


def figures(archive: Archive) -> Figures:
    return Figures(
        captures=sum(archive.captures.years().values()),
        size_bytes=archive.database.remembered("container totals", locations.totals)[1],
        collections=len(collections.names(archive)),
    )


def home(archive: Archive, *, reader: Reader) -> Home:
    """What this reader may see on the home page. Costs the same in an archive of any size."""
    pages = list(islice(_start_pages(archive, reader), MOST_SITES))
    room = MOST_SITES - len(pages) if len(pages) < FEW_SITES else 0
    earlier = (
        capture for page in pages for capture in start_pages.earlier(archive, page, reader=reader, limit=room)
    )
    return Home(
        sites=[start_pages.card(archive, capture, reader) for capture in pages],
        earlier=[start_pages.card(archive, capture, reader) for capture in islice(earlier, room)],
        years=archive.captures.years(),
        collections=collection_view.list_tiles(archive, reader=reader, limit=MOST_COLLECTIONS),
        figures=figures(archive),
    )


def _start_pages(archive: Archive, reader: Reader) -> Iterator[Capture]:
    """The start pages of the newest harvests, then of the newest pages, the first of each site."""
    with archive.database.reading() as connection:
        newest = harvest_rows.latest(connection, MOST_HARVESTS)
    seen: set[str] = set()
    for capture in chain(
        start_pages.of_harvests(archive, start_pages.of_sites(newest), reader=reader),
        start_pages.of_newest(archive, reader=reader, limit=MOST_LOOKED_THROUGH),
    ):
        if start_pages.site_of(capture.url) not in seen:
            seen.add(start_pages.site_of(capture.url))
            yield capture


def status(archive: Archive, *, limit: int = 20) -> ArchiveStatus:
    with archive.database.reading() as connection:
        count, size_bytes = locations.totals(connection)
        counted = connection.execute(select(harvests.c.state, func.count()).group_by(harvests.c.state))
        by_state: dict[str, int] = {row[0]: row[1] for row in counted}
        package_count = connection.execute(select(func.count()).select_from(packages)).scalar_one()
        newest = harvest_rows.latest(connection, limit)
        events = latest(connection, limit)
    disk = shutil.disk_usage(archive.home)
    return ArchiveStatus(
        harvests_by_state=by_state,
        harvests=newest,
        containers=count,
        container_bytes=size_bytes,
        packages=package_count,
        captures=archive.captures.total(),
        texts=_count_texts(archive),
        not_indexed=max(
            visible_harvests.count_containers(archive) - sum(1 for _ in archive.captures.containers()), 0
        ),
        disk_free_bytes=disk.free,
        disk_total_bytes=disk.total,
        events=events,
    )


def _count_texts(archive: Archive) -> int | None:
    try:
        return archive.texts.total()
    except RemoteError:
        return None
