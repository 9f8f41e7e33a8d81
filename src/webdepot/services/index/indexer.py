"""The capture index and the text index: adding containers, updating, removing, rebuilding.

Indexing a container: a worker process reads it once (captures, pages and links into files), unless that was
done when its files were identified (`derived_files`); then the captures are added to the capture index, then
the pages, with those of other containers and by all workers, to the text index. Each step can be repeated,
and a container that is already in both indexes is skipped. A container that cannot be read is reported and
does not stop the others.

While the server of the text index does not answer, captures are indexed, and a job is added that adds the
words when it answers again (`services/jobs`).
"""

import shutil
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations
from webdepot.engine import job_queue
from webdepot.errors import Conflict, CorruptData, RemoteError, WebdepotError
from webdepot.formats import results
from webdepot.harvest import harvest_rows
from webdepot.index import extract, page_files
from webdepot.index.extract import Job
from webdepot.index.text.link_book import Link, LinkBook
from webdepot.model import Container, Finding, Harvest, HarvestId
from webdepot.ports.search import PageFile
from webdepot.services.access import link_texts
from webdepot.services.access.browse import thumbnail_cache
from webdepot.services.index import batch_jobs, derived_files, patch_merge, visible_harvests
from webdepot.services.index.harvest_texts import HarvestTexts
from webdepot.services.progress import Phase, Progress, Watch, unwatched

MOST_FINDINGS = 1000
MOST_DEAD = 0.75
"""A part of the text index with a larger share of replaced documents is rewritten after an update."""
_WORDS_AT_ONCE_BYTES = 32 << 20
"""Compressed pages that are added to the text index in one commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """The result of indexing."""

    captures: int = 0
    pages: int = 0
    failed: Mapping[str, str] = field(default_factory=dict)
    """Containers that could not be indexed, with the reason."""
    findings: Sequence[Finding] = ()
    """Damage that was found; not necessarily all of it."""
    away: str = ""
    """Why words are missing, if the server of the text index does not answer."""


def update(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Index containers that are not in both indexes yet, remove those gone or not to be shown. RemoteError if
    the server of the text index does not answer; a worker repeats this when it answers.
    """
    try:
        known = _known(archive)
    except RemoteError:
        _catch_up_later(archive)
        raise
    return _index_all(archive, known, again=False, watch=watch)


def rebuild(archive: Archive, *, watch: Watch = unwatched) -> Indexed:
    """Rebuild both indexes from the containers. Readers keep the old capture index meanwhile; the text index
    fills up as containers are read.
    """
    _open_or_discard(archive)
    archive.texts.clear()
    link_texts.forget_everything(archive)
    return _index_all(archive, _known(archive), again=True, watch=watch)


def _index_all(archive: Archive, known: Sequence[Container], *, again: bool, watch: Watch) -> Indexed:
    """Index containers while other processes may deposit some of them: one whose file was moved to the depot
    before it could be read is read there.
    """
    done = index_containers(archive, known, again=again, watch=watch)
    with archive.database.reading() as connection:
        now = [locations.find(connection, each.name) for each in known if each.name in done.failed]
    before = {each.name: each.place for each in known}
    moved = [each for each in now if each is not None and each.place != before[each.name]]
    if not moved:
        return done
    rest = index_containers(archive, moved, again=again, watch=watch)
    names = {each.name for each in moved}
    return Indexed(
        captures=done.captures + rest.captures,
        pages=done.pages + rest.pages,
        failed={name: why for name, why in done.failed.items() if name not in names} | dict(rest.failed),
        findings=[*done.findings, *rest.findings],
        away=rest.away or done.away,
    )


def _known(archive: Archive) -> list[Container]:
    """All containers that readers may see; others are removed from the indexes."""
    known = visible_harvests.containers(archive)
    names = {container.name for container in known}
    indexed = {name for name, _ in archive.captures.containers()} | archive.texts.containers()
    forget(archive, sorted(indexed - names))
    return known


def forget(archive: Archive, containers: Sequence[str]) -> None:
    """Remove containers from both indexes, with the texts of their links. Captures of other containers lose
    their text too if then no container has their bytes. The captures are removed last: if this is
    interrupted, they are needed to find the texts that must go.
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
    names = {container.name for container in visible_harvests.containers(archive)}
    return IndexStatus(
        containers=len(names),
        with_captures=len(names & {name for name, _ in archive.captures.containers()}),
        with_words=len(names & archive.texts.containers()),
        captures=archive.captures.total(),
        states=archive.texts.total(),
        dead=archive.texts.dead(),
        size_bytes=sum(path.stat().st_size for path in archive.index_folder.rglob("*") if path.is_file()),
    )


def are_indexed(archive: Archive, names: Collection[str]) -> bool:
    """Whether these containers are in both indexes, or a job will add their words (`CATCH_UP`)."""
    try:
        with_words = archive.texts.having(names)
    except RemoteError:
        with_words = frozenset(names)
    return set(names) <= with_words & archive.captures.having(names)


def index_harvest(archive: Archive, harvest: str, *, watch: Watch = unwatched) -> Indexed:
    """Index the sealed containers of one harvest; nothing if readers may not see it."""
    with archive.database.reading() as connection:
        is_shown = visible_harvests.is_shown(archive, harvest_rows.get(connection, harvest))
        known = locations.of_harvest(connection, HarvestId(harvest)) if is_shown else []
    return index_containers(archive, known, watch=watch)


def forget_harvest(archive: Archive, harvest: Harvest) -> None:
    """Remove a harvest that readers may no longer see from both indexes."""
    with archive.database.reading() as connection:
        held = [container.name for container in locations.of_harvest(connection, harvest.id)]
    derived_files.forget_harvest(archive, harvest.id)
    forget(archive, sorted(archive.captures.having(held) | archive.texts.having(held)))


def index_containers(
    archive: Archive, containers: Iterable[Container], *, again: bool = False, watch: Watch = unwatched
) -> Indexed:
    """Index these containers in their order, read by several processes; those that are already in both
    indexes are skipped, unless `again` is set.
    """
    given = list(containers)
    names = [container.name for container in given]
    failed: dict[str, str] = {}
    words = _Words(archive, failed)
    complete = frozenset() if again else archive.captures.having(names) & words.having(names)
    waiting = [container for container in given if container.name not in complete]
    findings: list[Finding] = []
    captures = 0
    with (
        archive.scratch_folder(ScratchPurpose.EXTRACT) as folder,
        link_texts.book(archive) as links,
        ExitStack() as files,
    ):
        shown_texts = HarvestTexts(archive, folder, files)
        harvest_of = {container.name: container.harvest for container in waiting}
        if waiting:
            watch(Progress(phase=Phase.INDEX, done=0, total=len(waiting)))
        tasks = _jobs(archive, waiting, folder, failed)
        for number, done in enumerate(batch_jobs.run_tasks(archive, extract.run, tasks), start=1):
            job = done.item
            if done.result is None:
                failed[job.name] = done.error
            else:
                captures += archive.captures.add(
                    job.name, extract.captures_in(done.result.captures), collection=job.collection
                )
                links.add(job.name, _links_in(done.result.links))
                pages = shown_texts.completed(harvest_of[job.name], done.result.pages)
                words.add(PageFile(container=job.name, path=pages))
                findings += done.result.findings[: MOST_FINDINGS - len(findings)]
                done.result.captures.unlink()
                done.result.links.unlink()
            watch(
                Progress(
                    phase=Phase.INDEX, done=number, total=len(waiting), errors=len(failed), note=job.name
                )
            )
        findings += shown_texts.findings
        words.flush()
        if waiting:
            patch_merge.merge(archive, {container.harvest for container in waiting})
        words.end(links, is_changed=bool(waiting))
    derived_files.forget(archive, (container for container in given if container.name not in failed))
    if words.away:
        _catch_up_later(archive)
    return Indexed(captures=captures, pages=words.pages, failed=failed, findings=findings, away=words.away)


def _catch_up_later(archive: Archive) -> None:
    with archive.database.transaction() as connection:
        job_queue.add(connection, job_queue.CATCH_UP, "", {}, by=archive.agent, now=archive.clock())


class _Words:
    """Adds pages to the text index, those of several containers at a time: each commit costs something, and
    the workers share the pages of one.
    """

    def __init__(self, archive: Archive, failed: dict[str, str]) -> None:
        self._archive = archive
        self._failed = failed
        self._files: list[PageFile] = []
        self._size_bytes = 0
        self.pages = 0
        self.away = ""
        """Why the server of the index does not answer; then nothing more is asked of it."""

    def having(self, names: Sequence[str]) -> frozenset[str]:
        """Which of these containers have their words in the index; all, if it cannot be asked."""
        try:
            return frozenset(self._archive.texts.having(names))
        except RemoteError as error:
            self.away = str(error)
            return frozenset(names)

    def add(self, file: PageFile) -> None:
        if self.away:
            self._failed[file.container] = self.away
            page_files.remove(file.path)
            return
        self._files.append(file)
        self._size_bytes += file.path.stat().st_size
        if self._size_bytes > _WORDS_AT_ONCE_BYTES:
            self.flush()

    def flush(self) -> None:
        files, self._files, self._size_bytes = self._files, [], 0
        if not files:
            return
        try:
            self.pages += self._archive.texts.add_files(files, self._archive.engine, formats=self._formats)
        except WebdepotError as error:
            self._failed.update((file.container, str(error)) for file in files)
            if isinstance(error, RemoteError):
                self.away = str(error)
        for file in files:
            page_files.remove(file.path)

    def end(self, links: LinkBook, *, is_changed: bool) -> None:
        """Update link texts, and rewrite parts of the index with many replaced documents."""
        if self.away:
            return
        archive = self._archive
        try:
            if is_changed or link_texts.are_due(archive) or links.changed(limit=1):
                link_texts.settle(archive, links)
            if is_changed:
                archive.texts.compact(archive.engine, most_dead=MOST_DEAD)
        except RemoteError as error:
            self.away = str(error)

    def _formats(self, digests: Iterable[str]) -> dict[str, str]:
        """PRONOM identifiers of the payloads that were identified, by digest."""
        left, formats = iter(digests), dict[str, str]()
        while some := list(islice(left, 500)):
            with self._archive.database.reading() as connection:
                formats.update(results.puids(connection, some))
        return formats


def _links_in(path: Path) -> Iterator[Link]:
    for source, timestamp, links in extract.links_in(path):
        for target, text in links:
            yield Link(target=target, source=source, timestamp=timestamp, words=text)


def _open_or_discard(archive: Archive) -> None:
    """Delete indexes that are damaged or of another version; the rebuild creates them again."""
    try:
        archive.captures.total()
    except (Conflict, CorruptData):
        archive.discard_captures()
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
                collections[container.harvest] = harvest_rows.get(connection, container.harvest).collection
        try:
            path = batch_jobs.path_for_task(archive, container.name)
        except WebdepotError as error:
            failed[container.name] = str(error)
            continue
        job = derived_files.job(archive, container, path, collections[container.harvest], folder)
        yield replace(job, ready=derived_files.find_extract(archive, container))
