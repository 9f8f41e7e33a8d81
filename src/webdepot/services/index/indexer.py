"""The indexes of addresses and of words: adding containers, catching up, taking out, making anew.

Indexing a container: read it once in a worker process (captures and words into two files), then put the
captures into the captures index, then the pages into the text index. Bytes come first, then the index; each
step can be repeated, and a container that is in both indexes already is left alone. A container that cannot
be read is told and stops no other.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.errors import WebdepotError
from webdepot.formats import results
from webdepot.harvest import runs
from webdepot.index import extract, sqlite_file
from webdepot.index.extract import Job
from webdepot.index.text.link_book import Link
from webdepot.model import Container, Finding, HarvestId
from webdepot.ports import PageText
from webdepot.services.access import link_texts
from webdepot.services.index import patch_merge
from webdepot.services.progress import Phase, Progress, Watch, unwatched

MOST_DEAD = 0.2
"""An index with a larger share of replaced documents is written anew after an update."""
_EXTRACTING = "extracting-"


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What came of indexing."""

    captures: int = 0
    pages: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Containers that could not be indexed, with the reason."""
    findings: Sequence[Finding] = ()
    """Damage seen on the way, not all of it."""


def update(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Index what is not in both indexes yet, and forget containers that are gone."""
    return index_containers(archive, _known(archive), watch=watch)


def rebuild(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Make both indexes anew from the containers. Readers go on with the captures index meanwhile; words come
    back as they are read.
    """
    _open_or_discard(archive)
    archive.texts.clear()
    link_texts.forget_everything(archive)
    return index_containers(archive, _known(archive), anew=True, watch=watch)


def _known(archive: Archive) -> list[Container]:
    """Every container of the archive; those that are gone are taken out of the indexes."""
    with archive.database.reading() as connection:
        known = list(shelf.iter_all(connection))
    names = {container.name for container in known}
    gone = {name for name, _ in archive.captures.containers()} | archive.texts.containers()
    forget(archive, sorted(gone - names))
    return known


def forget(archive: Archive, containers: Sequence[str]) -> None:
    """Take containers out of both indexes, and the words of their links. Captures elsewhere that repeat bytes
    which nobody has any more lose their words too. The captures go last: they are what tells which words must
    go, should this be broken off.
    """
    if not containers:
        return
    from webdepot.services.access import images  # with search and replay, for this one call

    with link_texts.book(archive) as links:
        for name in containers:
            archive.texts.remove(
                name, archive.captures.of_container(name), payloads=archive.captures.only_in(name)
            )
            links.add(name, ())
            archive.captures.remove(name)
        images.forget_thumbnails(archive)
        link_texts.settle(archive, links)


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexStatus:
    containers: int
    """Of the archive, sealed or kept."""
    with_captures: int
    with_words: int
    captures: int
    states: int
    dead: float
    size_bytes: int


def status(archive: Archive) -> IndexStatus:
    """How far the indexes are, and how large."""
    with archive.database.reading() as connection:
        names = {container.name for container in shelf.iter_all(connection)}
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
    """Index the sealed containers of one harvest."""
    with archive.database.reading() as connection:
        known = shelf.of_harvest(connection, HarvestId(harvest))
    return index_containers(archive, known, watch=watch)


def index_container(archive: Archive, name: str) -> Indexed:
    """Index one container by its name; NotFound when there is none."""
    with archive.database.reading() as connection:
        found = shelf.find(connection, name)
    if found is None:
        archive.container_path(name)
    return index_containers(archive, [found] if found else [])


def index_containers(
    archive: Archive, containers: Iterable[Container], *, anew: bool = False, watch: Watch = unwatched
) -> Indexed:
    """Index these containers in their order, read by many processes; what is in both indexes is left out
    unless `anew`.
    """
    with_captures = set() if anew else {name for name, _ in archive.captures.containers()}
    with_words = archive.texts.containers()
    waiting = [
        container
        for container in containers
        if container.name not in with_captures or container.name not in with_words
    ]
    failed: dict[str, str] = {}
    findings: list[Finding] = []
    captures = pages = 0
    archive.index_folder.mkdir(parents=True, exist_ok=True)
    _sweep(archive.index_folder)
    folder_name = f"{_EXTRACTING}{os.getpid()}-"
    with (
        tempfile.TemporaryDirectory(prefix=folder_name, dir=archive.index_folder) as folder,
        link_texts.book(archive) as links,
    ):
        jobs = _jobs(archive, waiting, Path(folder), failed)
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
            patch_merge.mend(archive, {container.harvest for container in waiting})
        if waiting or link_texts.are_due(archive):
            link_texts.settle(archive, links)
    if archive.texts.dead() > MOST_DEAD:
        archive.texts.compact()
    return Indexed(captures=captures, pages=pages, failed=failed, findings=findings)


def _with_formats(archive: Archive, pages: Iterable[PageText]) -> Iterator[PageText]:
    """Pages with the PRONOM identifier of their bytes, where these were identified."""
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


def _sweep(folder: Path) -> None:
    """Remove what processes that were killed in the middle left behind."""
    for left in folder.glob(f"{_EXTRACTING}*"):
        pid = left.name.removeprefix(_EXTRACTING).partition("-")[0]
        if pid.isdigit() and not Path(f"/proc/{pid}").exists():
            shutil.rmtree(left, ignore_errors=True)


def _open_or_discard(archive: Archive) -> None:
    """Indexes of another version or damaged ones are removed; the rebuild makes them anew."""
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
    """Jobs as the engine asks for them; a container whose file is gone fails here."""
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
