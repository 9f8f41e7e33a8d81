"""Tables for research, derived from the archive as a whole; the kinds that the Archives Unleashed Toolkit
made common (https://aut.docs.archivesunleashed.org/docs/dataframe-schemas):

    domains     a row for each host: how many captures, of what, from when to when    from the capture index
    web-graph   a row for each link from a page to another site, with its text        from the containers
    text        a row for each capture of a page or document, with its text           from the containers
    images      a row for each capture of a picture, with its size                    from the capture index

Containers are read by the worker processes of the engine. Everything is streamed: the memory needed is that
of a few rows, and of what the workers have read ahead. What is closed to the reader is left out, as in a
search.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from itertools import groupby, islice
from pathlib import Path

from webdepot import durable
from webdepot.access.policy import Reader
from webdepot.archive import Archive, ScratchPurpose
from webdepot.errors import Conflict, CorruptData, InputError
from webdepot.exchange import parquet
from webdepot.exchange.parquet import Column, ColumnKind, Value
from webdepot.formats import results
from webdepot.harvest import harvest_rows
from webdepot.index import extract, page_files
from webdepot.index.extract import Extract, Job
from webdepot.model import EVERYTHING, Capture
from webdepot.ports.search import PageText
from webdepot.services.access import gate
from webdepot.services.index import derived_files, visible_harvests
from webdepot.services.progress import Phase, Progress, Watch, unwatched
from webdepot.text.csv_text import written
from webdepot.times import from_timestamp, to_iso
from webdepot.url import address_of_key, domain_of
from webdepot.version import VERSION

_FIRST_KEY, _LAST_KEY = "", "\x7f"
_BATCH = 500
_TEXT, _NUMBER, _MOMENT = ColumnKind.TEXT, ColumnKind.NUMBER, ColumnKind.MOMENT
Row = Sequence[Value]


class Derivative(StrEnum):
    DOMAINS = "domains"
    WEB_GRAPH = "web-graph"
    TEXT = "text"
    IMAGES = "images"


COLUMNS: dict[Derivative, tuple[Column, ...]] = {
    Derivative.DOMAINS: (
        ("domain", _TEXT),
        ("host", _TEXT),
        ("captures", _NUMBER),
        ("pages", _NUMBER),
        ("images", _NUMBER),
        ("documents", _NUMBER),
        ("errors", _NUMBER),
        ("first", _MOMENT),
        ("last", _MOMENT),
    ),
    Derivative.WEB_GRAPH: (
        ("captured", _MOMENT),
        ("source", _TEXT),
        ("source_domain", _TEXT),
        ("target", _TEXT),
        ("target_domain", _TEXT),
        ("text", _TEXT),
    ),
    Derivative.TEXT: (
        ("url", _TEXT),
        ("domain", _TEXT),
        ("captured", _MOMENT),
        ("mime", _TEXT),
        ("format", _TEXT),
        ("language", _TEXT),
        ("title", _TEXT),
        ("text", _TEXT),
        ("digest", _TEXT),
    ),
    Derivative.IMAGES: (
        ("url", _TEXT),
        ("domain", _TEXT),
        ("captured", _MOMENT),
        ("file_name", _TEXT),
        ("mime", _TEXT),
        ("format", _TEXT),
        ("width", _NUMBER),
        ("height", _NUMBER),
        ("size", _NUMBER),
        ("digest", _TEXT),
    ),
}
"""Width, height and size are 0 where they are not known."""


def derive(
    archive: Archive,
    derivative: Derivative,
    file: Path,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    watch: Watch = unwatched,
) -> int:
    """Write a table to a new file, as Parquet or CSV by its name; return how many rows it has.

    InputError for another name, Conflict if the file exists, CorruptData if a container cannot be read.
    """
    if file.suffix not in _WRITERS:
        raise InputError(
            f"{file.name[:100]!r} is not the name of a table. Use a name that ends in .parquet or .csv."
        )
    if file.exists():
        raise Conflict(f"{file} already exists. Choose another file.")
    rows = _RowCount(_SOURCES[derivative](archive, reader, collection, watch))
    with durable.whole_file(file) as target:
        target.writelines(_WRITERS[file.suffix](COLUMNS[derivative], rows))
    return rows.count


class _RowCount:
    """Rows on their way to a file, counted."""

    def __init__(self, rows: Iterable[Row]) -> None:
        self._rows = rows
        self.count = 0

    def __iter__(self) -> Iterator[Row]:
        for row in self._rows:
            self.count += 1
            yield row


def _as_parquet(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[bytes]:
    return parquet.write(columns, rows, software=f"webdepot {VERSION}")


def _as_csv(columns: Sequence[Column], rows: Iterable[Row]) -> Iterator[bytes]:
    def cells() -> Iterator[Sequence[object]]:
        yield [name for name, _ in columns]
        for row in rows:
            yield [to_iso(value) if isinstance(value, datetime) else value for value in row]

    lines = written(cells())
    while several := list(islice(lines, 1000)):
        yield "".join(several).encode("utf-8", "replace")


_WRITERS: dict[str, Callable[[Sequence[Column], Iterable[Row]], Iterator[bytes]]] = {
    ".parquet": _as_parquet,
    ".csv": _as_csv,
}


# --- from the capture index ---


def _captures(archive: Archive, reader: Reader, collection: str, watch: Watch) -> Iterator[Capture]:
    """Every capture that the reader may see, by key; captures that a patch replaced are left out."""
    captures = (
        capture
        for start, stop, spans in gate.segments(archive, _FIRST_KEY, _LAST_KEY, reader)
        for capture in archive.captures.scan(start, stop, collection=collection, spans=spans)
    )
    for number, capture in enumerate(captures, start=1):
        if number % _BATCH == 0:
            watch(Progress(phase=Phase.EXPORT, done=number, note=capture.url))
        if not capture.replaced:
            yield capture


def _domains(archive: Archive, reader: Reader, collection: str, watch: Watch) -> Iterator[Row]:
    captures = _captures(archive, reader, collection, watch)
    for host_key, of_host in groupby(captures, key=lambda capture: capture.key.partition(")")[0]):
        host = address_of_key(f"{host_key})")
        counts = dict.fromkeys(("captures", "pages", "images", "documents", "errors"), 0)
        first, last = "9" * 14, "0" * 14
        for capture in of_host:
            counts["captures"] += 1
            counts["errors"] += capture.status >= 400
            if capture.status < 400:
                counts["pages"] += "html" in capture.mime
                counts["images"] += capture.mime.startswith("image/")
                counts["documents"] += capture.mime.startswith("application/") and _is_document(capture.mime)
            first, last = min(first, capture.timestamp), max(last, capture.timestamp)
        yield (_domain(host), host, *counts.values(), from_timestamp(first), from_timestamp(last))


def _is_document(mime: str) -> bool:
    return any(word in mime for word in ("pdf", "msword", "officedocument", "opendocument", "ms-excel"))


def _domain(host: str) -> str:
    return domain_of(f"http://{host}/") or host


def _images(archive: Archive, reader: Reader, collection: str, watch: Watch) -> Iterator[Row]:
    captures = (
        capture
        for capture in _captures(archive, reader, collection, watch)
        if capture.mime.startswith("image/") and capture.status < 400
    )
    while some := list(islice(captures, _BATCH)):
        with archive.database.reading() as connection:
            known = results.payload_facts(connection, {capture.digest for capture in some})
        for capture in some:
            facts = known.get(capture.digest)
            width, height = (
                (facts.properties.get("width"), facts.properties.get("height")) if facts else (0, 0)
            )
            yield (
                capture.url,
                domain_of(capture.url),
                from_timestamp(capture.timestamp),
                capture.url.partition("?")[0].rpartition("/")[2],
                capture.mime,
                facts.puid if facts else "",
                width if isinstance(width, int) else 0,
                height if isinstance(height, int) else 0,
                facts.size_bytes if facts else 0,
                capture.digest,
            )


# --- from the containers ---


def _text(archive: Archive, reader: Reader, collection: str, watch: Watch) -> Iterator[Row]:
    """The rows of the text table. A capture with the same bytes as an earlier one has no row of its own."""
    for extracted in _extracts(archive, collection, watch):
        for page in page_files.pages_in(extracted.pages, lambda digests: _formats(archive, digests)):
            if _has_text(page) and _is_open(archive, page.key, page.timestamp, reader):
                yield (
                    page.url,
                    domain_of(page.url),
                    from_timestamp(page.timestamp),
                    page.mime,
                    page.format,
                    page.language,
                    page.title,
                    page.text,
                    page.digest,
                )


def _has_text(page: PageText) -> bool:
    return bool(page.text) and not page.repeats and not page.gone


def _formats(archive: Archive, digests: Iterable[str]) -> dict[str, str]:
    with archive.database.reading() as connection:
        return results.puids(connection, digests)


def _web_graph(archive: Archive, reader: Reader, collection: str, watch: Watch) -> Iterator[Row]:
    for extracted in _extracts(archive, collection, watch):
        for key, timestamp, links in extract.links_in(extracted.links):
            if not _is_open(archive, key, timestamp, reader):
                continue
            source, moment = address_of_key(key), from_timestamp(timestamp)
            for target_key, label in links:
                target = address_of_key(target_key)
                yield moment, source, _domain_of(source), target, _domain_of(target), label


def _domain_of(address: str) -> str:
    return _domain(address.partition("/")[0].partition("?")[0])


def _is_open(archive: Archive, key: str, timestamp: str, reader: Reader) -> bool:
    return any(first <= timestamp <= last for first, last in gate.of_key(archive, key, reader).spans)


def _extracts(archive: Archive, collection: str, watch: Watch) -> Iterator[Extract]:
    """What the workers read in the containers of all harvests that readers may see."""
    with archive.database.reading() as connection:
        containers = visible_harvests.containers(archive)
        harvests = {each.harvest for each in containers}
        collections = {each: harvest_rows.get(connection, each).collection for each in harvests}
    wanted = [each for each in containers if collection in (EVERYTHING, collections[each.harvest])]
    with archive.scratch_folder(ScratchPurpose.EXTRACT) as folder:
        jobs: Iterator[Job] = (
            derived_files.job(
                archive, each, archive.containers.path(each.name), collections[each.harvest], folder
            )
            for each in wanted
        )
        for number, done in enumerate(archive.engine.map(extract.run, jobs), start=1):
            if done.result is None:
                raise CorruptData(
                    f"{done.item.name} could not be read: {done.error}", where=str(done.item.path)
                )
            watch(Progress(phase=Phase.EXPORT, done=number, total=len(wanted), note=done.item.name))
            with _removed_after(done.result):
                yield done.result


@contextmanager
def _removed_after(extracted: Extract) -> Iterator[None]:
    try:
        yield
    finally:
        extracted.captures.unlink(missing_ok=True)
        extracted.links.unlink(missing_ok=True)
        page_files.remove(extracted.pages)


_SOURCES: dict[Derivative, Callable[[Archive, Reader, str, Watch], Iterator[Row]]] = {
    Derivative.DOMAINS: _domains,
    Derivative.WEB_GRAPH: _web_graph,
    Derivative.TEXT: _text,
    Derivative.IMAGES: _images,
}
