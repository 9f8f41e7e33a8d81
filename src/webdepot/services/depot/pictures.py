"""Make pictures of archived pages that have none, and keep them with their harvest.

1. Go through the harvests that readers see and that are in the depot, the newest first.
2. Choose the pages of each: the start pages; then, if more are wanted, others in the order of their capture.
   Pages that have a picture are left out, so that a run continues where the last one ended.
3. Take the pictures (`picture_maker`), each within a limited time.
4. Write those of a harvest into its package as a new version: `resource` records `urn:view:URL`, as the
   browser of a harvest makes them, in a container of their own. They are not captures, and not files of the
   site.
"""

from collections.abc import Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from io import BytesIO
from itertools import islice

from webdepot import event_loop
from webdepot.access.policy import ANYONE
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations, new_records
from webdepot.container.writer import ContainerWriter, Sealed
from webdepot.depot import holdings, package_content
from webdepot.harvest import harvest_rows
from webdepot.harvest.harvest_rows import HarvestFilter
from webdepot.model import Capture, Harvest, HarvestKind, HarvestState, Package
from webdepot.provenance import Outcome
from webdepot.quality import screenshots
from webdepot.services.access import gate
from webdepot.services.access.browse import page_pictures, start_pages
from webdepot.services.depot import picture_maker, versions
from webdepot.services.depot.picture_maker import PictureMaker
from webdepot.services.index import indexer
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.services.quality import harvest_check
from webdepot.times import to_timestamp
from webdepot.version import VERSION

MOST_START_PAGES = 20
"""Most start pages of one harvest."""
_PAGES = frozenset({"text/html", "application/xhtml+xml"})
_NAME = "-pictures-"
"""Part of the names of containers with pictures."""


@dataclass(slots=True, kw_only=True)
class PicturesReport:
    """The result of a run."""

    made: int = 0
    harvests: int = 0
    """Harvests that got pictures."""
    failed: dict[str, str] = field(default_factory=dict)
    """Address to the reason."""


def build(
    archive: Archive,
    *,
    harvest: str = "",
    collection: str = "",
    pages: int = 0,
    most: int | None = None,
    watch: Watch = unwatched,
) -> PicturesReport:
    """Make the pictures that are missing, of one harvest, of one collection or of all; at most `most`.

    `pages` is how many pages of a harvest get one in all; 0 means its start pages. ConfigError if there is
    no browser that can be used, NotFound if there is no such harvest.
    """
    picture_maker.require_browser(archive)
    chosen = _harvests(archive, harvest, collection)
    return event_loop.run(_build(archive, chosen, pages, most, watch))


async def _build(
    archive: Archive, chosen: Iterator[Harvest], pages: int, most: int | None, watch: Watch
) -> PicturesReport:
    report = PicturesReport()
    async with AsyncExitStack() as stack:
        maker: PictureMaker | None = None
        for each in chosen:
            left = None if most is None else most - report.made
            if left is not None and left <= 0:
                break
            with archive.database.reading() as connection:
                package = holdings.find_of_harvest(connection, each.id)
            missing = _missing(archive, each, pages)[:left] if package is not None else []
            if package is not None and missing:
                if maker is None:
                    maker = await stack.enter_async_context(picture_maker.opened(archive))
                await _take_and_keep(archive, maker, each, package, missing, report, watch)
    return report


def build_page(archive: Archive, capture: Capture) -> None:
    """Make the picture of one page, if it has none and its harvest is in the depot."""
    if page_pictures.find(archive, capture) is not None:
        return
    with archive.database.reading() as connection:
        container = locations.find(connection, capture.location.container)
        package = holdings.find_of_harvest(connection, container.harvest) if container else None
        harvest = harvest_rows.get(connection, container.harvest) if container and package else None
    if harvest is not None and package is not None:
        event_loop.run(_build_page(archive, harvest, package, capture))


async def _build_page(archive: Archive, harvest: Harvest, package: Package, capture: Capture) -> None:
    async with picture_maker.opened(archive) as maker:
        await _take_and_keep(archive, maker, harvest, package, [capture], PicturesReport(), unwatched)


def _harvests(archive: Archive, harvest: str, collection: str) -> Iterator[Harvest]:
    """The harvests in the depot, the newest first; patches are parts of other harvests."""
    if harvest:
        with archive.database.reading() as connection:
            yield harvest_rows.get(connection, harvest)
        return
    page, has_more = 1, True
    while has_more:
        query = HarvestFilter(state=HarvestState.KEPT, collection=collection, page=page)
        with archive.database.reading() as connection:
            listed = harvest_rows.list_page(connection, query)
        yield from (each for each in listed.rows if each.kind is not HarvestKind.PATCH)
        page, has_more = page + 1, listed.has_more


def _missing(archive: Archive, harvest: Harvest, pages: int) -> list[Capture]:
    """The pages of a harvest that should have a picture and have none."""
    _note_kept(archive, harvest)
    start = list(islice(_start_pages(archive, harvest), MOST_START_PAGES))
    others = _other_pages(archive, harvest, {capture.url for capture in start}) if pages else iter(())
    chosen = [*start, *islice(others, max(pages - len(start), 0))]
    return [capture for capture in chosen if page_pictures.find(archive, capture) is None]


def _start_pages(archive: Archive, harvest: Harvest) -> Iterator[Capture]:
    """The start pages that this harvest has itself; of an import, the front page of each host."""
    for capture in start_pages.of_harvests(archive, [harvest], reader=ANYONE, collection=harvest.collection):
        with archive.database.reading() as connection:
            container = locations.find(connection, capture.location.container)
        if container is not None and container.harvest == harvest.id:
            yield capture
    if not harvest.seeds:
        yield from (
            capture for capture in _other_pages(archive, harvest, set()) if capture.key.endswith(")/")
        )


def _other_pages(archive: Archive, harvest: Harvest, seen: set[str]) -> Iterator[Capture]:
    """The pages of a harvest in the order of their capture, each address once."""
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
    for container in containers:
        for _, capture in archive.captures.of_container(container.name):
            if capture.status == 200 and capture.mime in _PAGES and capture.url not in seen:
                seen.add(capture.url)
                if gate.is_open(archive, capture, ANYONE):
                    yield capture


async def _take_and_keep(
    archive: Archive,
    maker: PictureMaker,
    harvest: Harvest,
    package: Package,
    captures: Sequence[Capture],
    report: PicturesReport,
    watch: Watch,
) -> None:
    sealed: list[Sealed] = []
    taken = 0
    with archive.scratch_folder(ScratchPurpose.PICTURE) as folder:
        writer = ContainerWriter(
            folder,
            prefix=f"{harvest.id}{_NAME}{to_timestamp(archive.clock())}",
            size_bytes=archive.config.container.size_bytes,
            info={"software": f"webdepot {VERSION}", "description": "pictures of archived pages"},
            clock=archive.clock,
            on_sealed=sealed.append,
        )
        for capture in captures:
            watch(
                Progress(
                    phase=Phase.PICTURE, done=report.made + taken, errors=len(report.failed), note=capture.url
                )
            )
            snapshot = await maker.open(capture.url, capture.timestamp)
            if not snapshot.picture:
                report.failed[capture.url] = snapshot.failure or "the browser took no picture"
                continue
            picture, url = BytesIO(snapshot.picture), f"{screenshots.VIEW}{capture.url}"
            writer.write(
                [
                    new_records.resource(
                        url, archive.clock(), snapshot.picture_mime, picture, len(snapshot.picture)
                    )
                ]
            )
            taken += 1
        writer.close()
        if taken:
            _keep(archive, package, sealed, taken)
    _note_kept(archive, harvest)
    report.made += taken
    report.harvests += bool(taken)


def _keep(archive: Archive, package: Package, sealed: Sequence[Sealed], count: int) -> None:
    """Write a version of the package with the containers."""
    message = f"{count} pictures of pages"
    event = archive.event(
        "pictured",
        "package",
        package.id,
        outcome=Outcome.SUCCESS,
        message=message,
        detail={"pictures": count},
    )
    sources = tuple(map(package_content.source_of, sealed))
    with versions.newest(archive, package.id) as facts:
        versions.add(archive, facts, {}, event=event, message=message, containers=sources)
    indexer.index_harvest(archive, package.harvest)


def _note_kept(archive: Archive, harvest: Harvest) -> None:
    """Note where the pictures in the package are, unless that is known: a run may have been killed before
    it, and an import may have brought pictures of its own.
    """
    with archive.database.reading() as connection:
        containers = locations.of_harvest(connection, harvest.id)
        known = screenshots.containers(connection, harvest.id)
    is_new_import = harvest.kind is HarvestKind.IMPORT and not known
    for container in containers:
        if container.name not in known and (is_new_import or _NAME in container.name):
            harvest_check.note_screenshots_in(archive, harvest, [container])
