"""Search by words and time; and the indexes it rests on: adding containers, catching up, making anew.

Indexing a container: read it once in a worker process (captures and words into two files), then put the captures into the captures
index, then the pages into the text index. Bytes come first, then the index; each step can be repeated, and a container that is in both
indexes already is left alone. A container that cannot be read is told and stops no other.
"""

import gzip
import os
import pickle
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from webdepot.access import closed, lookup, query, rules
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.errors import WebdepotError
from webdepot.harvest import runs
from webdepot.index import cdxj, sqlite_file
from webdepot.index import fulltext as text_files
from webdepot.index import text as page_texts
from webdepot.model import EVERYTHING, Capture, Container, Finding, HarvestId
from webdepot.ports import Closed, Hit, PageText, Sort
from webdepot.services.progress import Phase, Progress, Watch, unwatched

MOST_FINDINGS = 200
"""So many findings of one container are told."""
MOST_WALKED = 2000
"""Versions of a page are looked at one by one up to so many; beyond it all of them are counted, redirects to themselves too."""
_EXTRACTING = "extracting-"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchPage:
    """One page of results."""

    text: str
    """The query as typed."""
    pages: int
    """How many pages match in all."""
    exact: bool
    """Whether that is counted or estimated."""
    hits: Sequence[Hit]
    years: Mapping[int, int]
    """Matching captures by year."""
    sort: Sort
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What came of indexing."""

    captures: int = 0
    pages: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Containers that could not be indexed, with the reason."""
    findings: Sequence[Finding] = ()
    """Damage seen on the way, not all of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Job:
    """One container for a worker process."""

    path: Path
    name: str
    collection: str
    languages: tuple[str, ...]
    limit_bytes: int
    folder: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class _Extract:
    """What a worker made of a container: two files."""

    captures: Path
    pages: Path
    findings: tuple[Finding, ...]


# --- searching ---------------------------------------------------------------------------------------------------------------


def search(
    archive: Archive,
    text: str,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    sort: Sort = Sort.RELEVANCE,
    offset: int = 0,
    limit: int = 10,
) -> SearchPage:
    """One hit per page, in order; InputError with the place marked for a wrong query. What is closed is neither shown nor counted."""
    with archive.database.reading() as connection:
        areas = closed.areas(rules.every(connection), reader, archive.clock().date())
    asked = replace(query.parse(text), collection=collection, closed=areas, sort=sort, offset=max(offset, 0), limit=max(limit, 1))
    found = archive.texts.find(asked)
    return SearchPage(
        text=text,
        pages=found.pages,
        exact=found.exact,
        hits=[replace(hit, versions=_versions(archive, hit.key, collection, areas)) for hit in found.hits],
        years=found.years,
        sort=sort,
        offset=asked.offset,
        limit=asked.limit,
    )


def _versions(archive: Archive, key: str, collection: str, areas: Sequence[Closed]) -> int:
    """How many versions of the page the reader can open: counted in the captures index, so that this and the list of versions agree."""
    total = archive.captures.count(key, collection=collection)
    if total > MOST_WALKED:
        return total
    return sum(
        not lookup.redirects_to_itself(capture) and not any((key, capture.timestamp) in area for area in areas)
        for capture in archive.captures.versions(key, collection=collection)
    )


# --- indexing ----------------------------------------------------------------------------------------------------------------


def update(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Index what is not in both indexes yet, and forget containers that are gone."""
    return index_containers(archive, _known(archive), watch=watch)


def rebuild(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Make both indexes anew from the containers. Readers go on with the captures index meanwhile; words come back as they are read."""
    _open_or_discard(archive)
    archive.texts.clear()
    return index_containers(archive, _known(archive), anew=True, watch=watch)


def _known(archive: Archive) -> list[Container]:
    """Every container of the archive; those that are gone are taken out of the captures index."""
    with archive.database.reading() as connection:
        known = list(shelf.iter_all(connection))
    names = {container.name for container in known}
    for name in [name for name, _ in archive.captures.containers() if name not in names]:
        archive.captures.remove(name)
    return known


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


def index_containers(archive: Archive, containers: Iterable[Container], *, anew: bool = False, watch: Watch = unwatched) -> Indexed:
    """Index these containers in their order, read by many processes; what is in both indexes is left out unless `anew`."""
    with_captures = set() if anew else {name for name, _ in archive.captures.containers()}
    with_words = archive.texts.containers()
    waiting = [container for container in containers if container.name not in with_captures or container.name not in with_words]
    failed: dict[str, str] = {}
    findings: list[Finding] = []
    captures = pages = 0
    archive.index_folder.mkdir(parents=True, exist_ok=True)
    _sweep(archive.index_folder)
    with tempfile.TemporaryDirectory(prefix=f"{_EXTRACTING}{os.getpid()}-", dir=archive.index_folder) as folder:
        jobs = _jobs(archive, waiting, Path(folder), failed)
        for number, done in enumerate(archive.engine.map(_extract, jobs), start=1):
            job = done.item
            if done.result is None:
                failed[job.name] = done.error
            else:
                captures += archive.captures.add(job.name, _captures_in(done.result.captures), collection=job.collection)
                pages += archive.texts.add(job.name, _pages_in(done.result.pages))
                findings += done.result.findings
                done.result.captures.unlink()
                done.result.pages.unlink()
            watch(Progress(phase=Phase.INDEX, done=number, total=len(waiting), errors=len(failed), note=job.name))
    return Indexed(captures=captures, pages=pages, failed=failed, findings=findings)


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
        text_files.discard(archive.index_folder / "text")


def _jobs(archive: Archive, containers: Iterable[Container], folder: Path, failed: dict[str, str]) -> Iterator[_Job]:
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
        yield _Job(
            path=path,
            name=container.name,
            collection=collections[container.harvest],
            languages=archive.config.archive.languages,
            limit_bytes=archive.config.index.limit_text_bytes,
            folder=folder,
        )


def _extract(job: _Job) -> _Extract:
    """In a worker: read a container once and write what both indexes need."""
    findings: list[Finding] = []

    def noted(finding: Finding) -> None:
        if len(findings) < MOST_FINDINGS:
            findings.append(finding)

    captures, pages = job.folder / f"{job.name}.cdxj", job.folder / f"{job.name}.pages"
    read = page_texts.read_container(job.path, job.name, job.collection, job.languages, job.limit_bytes, on_finding=noted)
    with captures.open("w", encoding="ascii") as lines, gzip.open(pages, "wb", compresslevel=1) as words:
        for capture, page in read:
            lines.write(cdxj.line(capture) + "\n")
            if page is not None:
                pickle.dump(page, words, protocol=pickle.HIGHEST_PROTOCOL)
    return _Extract(captures=captures, pages=pages, findings=tuple(findings))


def _captures_in(path: Path) -> Iterator[Capture]:
    with path.open(encoding="ascii") as lines:
        yield from cdxj.read(lines, name=path.name)


def _pages_in(path: Path) -> Iterator[PageText]:
    with gzip.open(path, "rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301 - our own file, written by our worker a moment ago
            except EOFError:
                return
