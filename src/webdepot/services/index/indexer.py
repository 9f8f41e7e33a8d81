"""The captures index and the text index: adding containers, updating, removing, rebuilding.

Indexing a container: a worker process reads it once (captures and texts into two files), then the captures
are added to the captures index, then the pages to the text index. Each step can be repeated, and a container
that is already in both indexes is skipped. A container that cannot be read is reported and does not stop the
others.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations
from webdepot.errors import WebdepotError
from webdepot.formats import results
from webdepot.harvest import runs
from webdepot.index import extract, sqlite_file
from webdepot.index.extract import Job
from webdepot.index.text.link_book import Link
from webdepot.model import Container, Finding, Harvest, HarvestId
from webdepot.ports import PageText
from webdepot.services.access import link_texts, thumbnail_cache
from webdepot.services.index import patch_merge, shown
from webdepot.services.progress import Phase, Progress, Watch, unwatched

MOST_DEAD = 0.2
"""An index with a larger share of replaced documents is compacted after an update."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """The result of indexing."""

    captures: int = 0
    pages: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Containers that could not be indexed, with the reason."""
    findings: Sequence[Finding] = ()
    """Damage that was found; not necessarily all of it."""


def update(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Index containers that are not in both indexes yet, remove those gone or not to be shown."""
    return index_containers(archive, _known(archive), watch=watch)


def rebuild(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Rebuild both indexes from the containers. Readers keep the old captures index meanwhile; the text index
    fills up as containers are read.
    """
    _open_or_discard(archive)
    archive.texts.clear()
    link_texts.forget_everything(archive)
    return index_containers(archive, _known(archive), again=True, watch=watch)


def _known(archive: Archive) -> list[Container]:
    """All containers that readers may see; others are removed from the indexes."""
    known = shown.containers(archive)
    names = {container.name for container in known}
    indexed = {name for name, _ in archive.captures.containers()} | archive.texts.containers()
    forget(archive, sorted(indexed - names))
    return known


def forget(archive: Archive, containers: Sequence[str]) -> None:
    """Remove containers from both indexes, with the texts of their links. Captures of other containers that
    repeat bytes which no container has any more lose their text too. The captures are removed last: if this
    is interrupted, they are needed to find the texts that must go.
    """
    if not containers:
        return
    with link_texts.book(archive) as links:
        for name in containers:
            archive.texts.remove(
                name, archive.captures.of_container(name), payloads=archive.captures.only_in(name)
            )
            links.add(name, ())
            archive.captures.remove(name)
        thumbnail_cache.clear(archive)
        link_texts.settle(archive, links)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    """How complete the indexes are."""

    containers: int
    """Sealed containers that readers may see, in the depot or not."""
    with_captures: int
    with_words: int
    captures: int
    states: int
    dead: float
    size_bytes: int


def status(archive: Archive) -> IndexStatus:
    """How complete the indexes are, and how large."""
    names = {container.name for container in shown.containers(archive)}
    return IndexStatus(
        containers=len(names),
        with_captures=len(names & {name for name, _ in archive.captures.containers()}),
        with_words=len(names & archive.texts.containers()),
        captures=archive.captures.total(),
        states=archive.texts.total(),
        dead=archive.texts.dead(),
        size_bytes=sum(path.stat().st_size for path in archive.index_folder.rglob("*") if path.is_file()),
    )


def index_harvest(archive: Archive, harvest: str, *, watch: Watch = unwatched) -> Indexed:
    """Index the sealed containers of one harvest; nothing if readers may not see it."""
    with archive.database.reading() as connection:
        is_shown = shown.is_shown(archive, runs.get(connection, harvest))
        known = locations.of_harvest(connection, HarvestId(harvest)) if is_shown else []
    return index_containers(archive, known, watch=watch)


def forget_harvest(archive: Archive, harvest: Harvest) -> None:
    """Remove a harvest that readers may no longer see from both indexes."""
    with archive.database.reading() as connection:
        held = {container.name for container in locations.of_harvest(connection, harvest.id)}
    indexed = {name for name, _ in archive.captures.containers()} | archive.texts.containers()
    forget(archive, sorted(held & indexed))


def index_containers(
    archive: Archive, containers: Iterable[Container], *, again: bool = False, watch: Watch = unwatched
) -> Indexed:
    """Index these containers in their order, read by several processes; those that are already in both
    indexes are skipped, unless `again` is set.
    """
    with_captures = set() if again else {name for name, _ in archive.captures.containers()}
    with_words = archive.texts.containers()
    waiting = [
        container
        for container in containers
        if container.name not in with_captures or container.name not in with_words
    ]
    failed: dict[str, str] = {}
    findings: list[Finding] = []
    captures = pages = 0
    with (
        archive.scratch_folder(ScratchPurpose.EXTRACT) as folder,
        link_texts.book(archive) as links,
    ):
        jobs = _jobs(archive, waiting, folder, failed)
        for number, done in enumerate(archive.engine.map(extract.run, jobs), start=1):
            job = done.item
            if done.result is None:
                failed[job.name] = done.error
            else:
                captures += archive.captures.add(
                    job.name, extract.captures_in(done.result.captures), collection=job.collection
                )
                links.add(job.name, _links_in(done.result.pages))
                pages += archive.texts.add(
                    job.name, _with_formats(archive, extract.pages_in(done.result.pages))
                )
                findings += done.result.findings
                done.result.captures.unlink()
                done.result.pages.unlink()
            watch(
                Progress(
                    phase=Phase.INDEX, done=number, total=len(waiting), errors=len(failed), note=job.name
                )
            )
        if waiting:
            patch_merge.merge(archive, {container.harvest for container in waiting})
        if waiting or link_texts.are_due(archive):
            link_texts.settle(archive, links)
    if archive.texts.dead() > MOST_DEAD:
        archive.texts.compact()
    return Indexed(captures=captures, pages=pages, failed=failed, findings=findings)


def _with_formats(archive: Archive, pages: Iterable[PageText]) -> Iterator[PageText]:
    """The pages with the PRONOM identifier of their bytes, if these were identified."""
    for batch in _batches(pages, 500):
        with archive.database.reading() as connection:
            known = results.puids(connection, [page.digest for page in batch])
        yield from (
            replace(page, format=known[page.digest]) if page.digest in known else page for page in batch
        )


def _batches(pages: Iterable[PageText], size: int) -> Iterator[list[PageText]]:
    left = iter(pages)
    while batch := list(islice(left, size)):
        yield batch


def _links_in(path: Path) -> Iterator[Link]:
    for page in extract.pages_in(path):
        for target, words in page.links:
            yield Link(target=target, source=page.key, timestamp=page.timestamp, words=words)


def _open_or_discard(archive: Archive) -> None:
    """Delete indexes that are damaged or of another version; the rebuild creates them again."""
    try:
        archive.captures.total()
    except WebdepotError:
        sqlite_file.discard(archive.index_folder / "captures.db")
    try:
        archive.texts.total()
    except WebdepotError:
        shutil.rmtree(archive.texts_folder, ignore_errors=True)


def _jobs(
    archive: Archive, containers: Iterable[Container], folder: Path, failed: dict[str, str]
) -> Iterator[Job]:
    """The jobs, as a stream; a container whose file is missing is added to `failed`."""
    collections: dict[str, str] = {}
    for container in containers:
        if container.harvest not in collections:
            with archive.database.reading() as connection:
                collections[container.harvest] = runs.get(connection, container.harvest).collection
        try:
            path = archive.container_path(container.name)
        except WebdepotError as error:
            failed[container.name] = str(error)
            continue
        yield Job(
            path=path,
            name=container.name,
            collection=collections[container.harvest],
            languages=archive.config.archive.languages,
            limit_bytes=archive.config.index.limit_text_bytes,
            folder=folder,
        )
