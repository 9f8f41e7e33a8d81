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
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path

from rapidfuzz.distance.OSA import distance

from webdepot.access import closed, query, rules
from webdepot.access.policy import ANYONE, Reader
from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.errors import InputError, NotFound, WebdepotError
from webdepot.formats import results
from webdepot.harvest import runs
from webdepot.index import cdxj, sqlite_file
from webdepot.index import fulltext as text_files
from webdepot.index import text as page_texts
from webdepot.index.links import Link, LinkBook
from webdepot.index.words import tokens as words_of
from webdepot.model import EVERYTHING, Capture, Container, Finding, HarvestId, Target
from webdepot.ports import Closed, Facet, Hit, PageText, Sort, State, TextQuery
from webdepot.selection import targets
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.url import key as key_of

MOST_FINDINGS = 200
"""So many findings of one container are told."""
EVERY_FACET = tuple(Facet)
MOST_TREND_WORDS = 6
MOST_DEAD = 0.2
"""An index with a larger share of replaced documents is written anew after an update."""
_SHORTEST_PREFIX, _MOST_SUGGESTED, _MOST_LOOKED_AT = 2, 8, 40
_FARTHEST_SPELLING, _MOST_SPELLINGS = 2, 20_000
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
    months: Mapping[int, int]
    """Matching captures by month, as the number YYYYMM."""
    facets: Mapping[Facet, Sequence[tuple[str, int]]]
    """Matching states of pages by site, domain, collection, format, language."""
    catalogue: Sequence[Target]
    """Sites in the catalogue whose name or address has the words."""
    spelling: str
    """The query with words that are there, where this one found nothing; else empty."""
    sort: Sort
    offset: int
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a page was found: a word of the query, where it stands, how often, and what that place weighs."""

    word: str
    part: str
    count: int
    weight: float
    is_stem: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """The matching versions of one page, and why the newest of them was found."""

    url: str
    title: str
    reasons: Sequence[Reason]
    states: Sequence[State]
    """By time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """Captures with a word by year, and of all pages."""

    words: Mapping[str, Mapping[int, int]]
    volume: Mapping[int, int]


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
    facets: tuple[Facet, ...] = (),
    fold: bool = False,
) -> SearchPage:
    """One hit per page, in order; InputError with the place marked for a wrong query. What is closed is neither shown nor counted."""
    asked = replace(
        ask(archive, text, reader=reader, collection=collection),
        sort=sort,
        offset=max(offset, 0),
        limit=max(limit, 1),
        facets=facets,
        fold=fold,
    )
    found = archive.texts.find(asked)
    return SearchPage(
        text=text,
        pages=found.pages,
        exact=found.exact,
        hits=[replace(hit, versions=_versions(archive, hit.key, collection, reader)) for hit in found.hits],
        years=found.years,
        months=found.months,
        facets=found.facets,
        catalogue=catalogue(archive, asked, reader=reader) if not offset else (),
        spelling=spelling(archive, text, asked) if not found.pages else "",
        sort=sort,
        offset=asked.offset,
        limit=asked.limit,
    )


def ask(archive: Archive, text: str, *, reader: Reader, collection: str = EVERYTHING) -> TextQuery:
    """What was typed, as a query that leaves out what this reader must not know."""
    return replace(query.parse(text), collection=collection, closed=_closed(archive, reader))


def _closed(archive: Archive, reader: Reader) -> tuple[Closed, ...]:
    by_prefix = archive.database.remembered("access rules", rules.by_prefix)
    return closed.areas(by_prefix.every, reader, archive.clock().date())


def _versions(archive: Archive, key: str, collection: str, reader: Reader) -> int:
    """How many versions of the page the reader can open: counted in the captures index, so that this and the list of versions agree."""
    speaking = archive.database.remembered("access rules", rules.by_prefix).speaking_about(key)
    spans = closed.open_spans(speaking, key, reader, archive.clock().date())
    return sum(tally.count for tally in archive.captures.tally(key, digits=0, collection=collection, spans=spans))


def volume(archive: Archive, *, reader: Reader, collection: str = EVERYTHING) -> Mapping[int, int]:
    """All captures with words by month, as far as this reader may know: what a histogram is set against."""
    return archive.texts.find(TextQuery(collection=collection, closed=_closed(archive, reader), limit=1)).months


def trend(archive: Archive, words: Sequence[str], *, reader: Reader, collection: str = EVERYTHING) -> Trend:
    """Several queries over the years, and the archive's volume; InputError when one is wrong or there are too many."""
    if len(words) > MOST_TREND_WORDS:
        raise InputError(f"A trend compares at most {MOST_TREND_WORDS} words.")
    found = {text: archive.texts.find(replace(ask(archive, text, reader=reader, collection=collection), limit=1)).years for text in words}
    everything = TextQuery(collection=collection, closed=_closed(archive, reader), limit=1)
    return Trend(words=found, volume=archive.texts.find(everything).years)


def explain(archive: Archive, text: str, key: str, *, reader: Reader, collection: str = EVERYTHING) -> Explained:
    """Why a page was found, and its matching versions; NotFound when it does not match or is closed."""
    asked = replace(ask(archive, text, reader=reader, collection=collection), keys=(key,))
    states = sorted(archive.texts.scan(asked), key=lambda state: state.valid_from)
    if not states:
        raise NotFound("That page has no version with these words that can be shown.")
    last = states[-1]
    return Explained(url=last.url, title=last.title, states=states, reasons=list(_reasons(asked, last)))


def _reasons(asked: TextQuery, state: State) -> Iterator[Reason]:
    parts = {
        "title": (state.title, 5.0),
        "anchor": (state.anchors, 5.0),
        "headings": (state.headings, 2.0),
        "address": (state.url, 2.0),
        "text": (state.text, 1.0),
        "image": (state.images, 0.5),
    }
    for word in (*asked.phrases, *asked.words, *(one for group in asked.alternatives for one in group), *(one for _, one in asked.parts)):
        wanted = words_of(word)
        exact = [Reason(word=word, part=name, count=_times(wanted, where), weight=weight) for name, (where, weight) in parts.items()]
        found = [reason for reason in exact if reason.count]
        yield from found or [Reason(word=word, part="text", count=0, weight=0.5, is_stem=True)]


def _times(wanted: Sequence[str], text: str) -> int:
    """How often words stand in a row in a text."""
    found = words_of(text)
    return sum(found[at : at + len(wanted)] == list(wanted) for at in range(len(found))) if wanted else 0


# --- help while typing --------------------------------------------------------------------------------------------------------


def suggest(archive: Archive, typed: str, *, reader: Reader, collection: str = EVERYTHING) -> list[str]:
    """Queries that what was typed may become: its last word completed by words that this reader can find."""
    before, _, prefix = typed[: query.LONGEST_QUERY].rpartition(" ")
    if len(prefix) < _SHORTEST_PREFIX or not prefix.isalnum():
        return []
    areas, found = _closed(archive, reader), []
    for word, _ in archive.texts.words(prefix, limit=_MOST_LOOKED_AT):
        if _is_known(archive, word, areas, collection):
            found.append(f"{before} {word}".strip())
        if len(found) >= _MOST_SUGGESTED:
            break
    return found


def spelling(archive: Archive, text: str, asked: TextQuery) -> str:
    """The query with each unknown word replaced by the most frequent one that is written nearly so; empty where that is none."""
    mended = text
    for word in (*asked.words, *(one for group in asked.alternatives for one in group)):
        if len(word) > _SHORTEST_PREFIX + 1 and word.isalnum() and not _is_known(archive, word, asked.closed, asked.collection):
            near = _nearest(archive, word, asked)
            if not near:
                return ""
            mended = mended.replace(word, near, 1)
    return mended if mended != text else ""


def _nearest(archive: Archive, word: str, asked: TextQuery) -> str:
    wanted = "".join(words_of(word))
    starts = dict.fromkeys((wanted[:2], wanted[1] + wanted[0], wanted[:1]))
    candidates = {known: count for start in starts for known, count in archive.texts.words(start, limit=_MOST_SPELLINGS)}
    near = [(distance(wanted, known, score_cutoff=_FARTHEST_SPELLING), -count, known) for known, count in candidates.items()]
    for far, _, known in sorted(near)[:_MOST_LOOKED_AT]:
        if far > _FARTHEST_SPELLING or far * 3 > len(wanted):
            return ""
        if known != wanted and _is_known(archive, known, asked.closed, asked.collection):
            return known
    return ""


def _is_known(archive: Archive, word: str, areas: tuple[Closed, ...], collection: str) -> bool:
    """Whether a search for the word would find anything: no word of what is closed is ever offered."""
    return archive.texts.find(TextQuery(words=(word,), closed=areas, collection=collection, limit=1, histogram=False)).pages > 0


def catalogue(archive: Archive, asked: TextQuery, *, reader: Reader, limit: int = 5) -> list[Target]:
    """Sites whose name or address has all the words, and of which the reader may see something."""
    wanted = [word for text in (*asked.words, *asked.phrases) for word in words_of(text)]
    if not wanted:
        return []
    with archive.database.reading() as connection:
        found = list(targets.named(connection, wanted, limit=10 * limit))
    shown = [target for target in found if any(_versions(archive, key_of(seed), EVERYTHING, reader) for seed in target.seeds)]
    return shown[:limit]


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
    folder_name = f"{_EXTRACTING}{os.getpid()}-"
    with tempfile.TemporaryDirectory(prefix=folder_name, dir=archive.index_folder) as folder, _links(archive) as links:
        jobs = _jobs(archive, waiting, Path(folder), failed)
        for number, done in enumerate(archive.engine.map(_extract, jobs), start=1):
            job = done.item
            if done.result is None:
                failed[job.name] = done.error
            else:
                captures += archive.captures.add(job.name, _captures_in(done.result.captures), collection=job.collection)
                links.add(job.name, _links_in(done.result.pages))
                pages += archive.texts.add(job.name, _with_formats(archive, _pages_in(done.result.pages)))
                findings += done.result.findings
                done.result.captures.unlink()
                done.result.pages.unlink()
            watch(Progress(phase=Phase.INDEX, done=number, total=len(waiting), errors=len(failed), note=job.name))
        if waiting:
            _anchor(archive, links)
    if archive.texts.dead() > MOST_DEAD:
        archive.texts.compact()
    return Indexed(captures=captures, pages=pages, failed=failed, findings=findings)


@contextmanager
def _links(archive: Archive) -> Iterator[LinkBook]:
    book = LinkBook(archive.index_folder / "links.db")
    try:
        yield book
    finally:
        book.close()


def _anchor(archive: Archive, links: LinkBook) -> None:
    """Give pages the words of links to them. Links on pages that the public may not see say nothing."""
    areas = _closed(archive, ANYONE)
    changed = list(links.changed())
    anchors = (links.anchors(target, lambda key, stamp: not any((key, stamp) in area for area in areas)) for target in changed)
    archive.texts.anchor(anchors)
    links.settle(changed)


def _with_formats(archive: Archive, pages: Iterable[PageText]) -> Iterator[PageText]:
    """Pages with the PRONOM identifier of their bytes, where these were identified."""
    for batch in _batches(pages, 500):
        with archive.database.reading() as connection:
            known = results.puids(connection, [page.digest for page in batch])
        yield from (replace(page, format=known[page.digest]) if page.digest in known else page for page in batch)


def _batches(pages: Iterable[PageText], size: int) -> Iterator[list[PageText]]:
    left = iter(pages)
    while batch := list(islice(left, size)):
        yield batch


def _links_in(path: Path) -> Iterator[Link]:
    for page in _pages_in(path):
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
