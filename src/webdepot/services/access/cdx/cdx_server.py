"""The capture index for programs: answers of the CDX server, export to files, and import of other archives'
files.

Access rules come from the gate (`gate.py`), as everywhere.
"""

import gzip
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from itertools import groupby, islice
from pathlib import Path

from webdepot import cdxj, durable
from webdepot.access import cdx, lookup
from webdepot.access.cdx import CdxQuery, CdxSort, Dialect
from webdepot.access.policy import Reader
from webdepot.archive import Archive, ScratchPurpose
from webdepot.container import locations
from webdepot.errors import CorruptData
from webdepot.index import cdx as columns
from webdepot.index import zipnum
from webdepot.model import EVERYTHING, Capture
from webdepot.ports.captures import Position, place_of
from webdepot.services.access import gate
from webdepot.services.access import lookup as lookup_service
from webdepot.times import Period, from_timestamp
from webdepot.url import UrlMatch, key_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """An answer as a stream. The positions are known when it has been read."""

    captures: Iterator[Capture]
    resume: list[Position]
    """The position of the last capture, if more may follow it."""
    cut: list[Position]
    """The position of the last capture that was read, if the answer ends only because no more captures may be
    read for it.
    """


class CdxFileForm(StrEnum):
    """Format of an index file."""

    CDXJ = "cdxj"
    CDX11 = "cdx11"
    CDX9 = "cdx9"
    ZIPNUM = "zipnum"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedIndex:
    """The result of an import."""

    captures: int
    containers: int
    unknown: tuple[str, ...]
    """Containers that this archive does not have: their captures cannot be opened until they are imported."""


def find(
    archive: Archive,
    query: CdxQuery,
    *,
    reader: Reader,
    collection: str = EVERYTHING,
    is_bounded: bool = True,
) -> Lines:
    """The captures that a query asks for, in its order; if `is_bounded`, of at most `cdx.MOST_EXAMINED` that
    are read.
    """
    resume: list[Position] = []
    cut: list[Position] = []
    captures = _lines(archive, query, reader, collection)
    if is_bounded:
        captures = cdx.examined(captures, query, cut)
    captures = _current(captures)
    if query.filters or query.collapse:
        captures = cdx.selected(captures, query, _find_before(archive, query, collection))
    if query.page is not None:
        start = query.page * query.page_lines
        captures = islice(captures, start, start + min(query.page_lines, query.limit))
    elif query.last:
        captures = reversed(list(islice(captures, query.limit)))
    elif query.may_continue and (query.shows_resume_key or query.limit >= cdx.MOST_LINES):
        captures = _noting_the_last(captures, query.limit, resume)
    else:
        captures = islice(captures, query.limit)
    return Lines(captures=captures, resume=resume, cut=cut)


def find_lines(
    archive: Archive, parameters: Sequence[tuple[str, str]], *, reader: Reader, collection: str = EVERYTHING
) -> Iterator[str]:
    """CDXJ lines for the parameters of pywb's CDX server: (name, value) pairs."""
    query = cdx.parse(parameters, Dialect.PYWB)
    lines = find(archive, query, reader=reader, collection=collection, is_bounded=False)
    return map(cdxj.line, lines.captures)


def count_pages(archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING) -> int:
    """The number of pages before filters and collapsing, as other servers count them."""
    start, stop = key_range(query.url, query.match)
    lines = sum(
        archive.captures.count_keys(first, after, collection=collection, spans=cdx.within(spans, query.span))
        for first, after, spans in gate.segments(archive, start, stop, reader)
    )
    return -(-lines // query.page_lines)


def _find_before(archive: Archive, query: CdxQuery, collection: str) -> Capture | None:
    """The capture with which the previous answer ended, if captures are collapsed; else None."""
    after = query.after
    if after is None or not query.collapse:
        return None
    moment = from_timestamp(after.timestamp)
    versions = archive.captures.versions(
        after.key, collection=collection, period=Period(moment, moment), limit=cdx.PAGE_LINES
    )
    return next((capture for capture in versions if place_of(capture) == after), None)


def _current(captures: Iterator[Capture]) -> Iterator[Capture]:
    """The captures without those that a patch replaced: a harvest and its patches are one version."""
    return (capture for capture in captures if not capture.replaced)


def _lines(archive: Archive, query: CdxQuery, reader: Reader, collection: str) -> Iterator[Capture]:
    start, stop = key_range(query.url, query.match)
    if query.match is not UrlMatch.EXACT:
        for first, after, spans in gate.segments(archive, start, stop, reader):
            yield from archive.captures.scan(
                first, after, collection=collection, spans=cdx.within(spans, query.span), after=query.after
            )
        return
    spans = cdx.within(gate.of_key(archive, start, reader).spans, query.span)
    if query.allows_fuzzy and archive.captures.last(start, collection=collection, spans=spans) is None:
        start = lookup_service.find_fuzzy_key(archive, start, collection=collection, reader=reader) or start
        spans = cdx.within(gate.of_key(archive, start, reader).spans, query.span)
    if query.sort is CdxSort.CLOSEST:
        yield from lookup.iter_by_distance(
            archive.captures, start, query.closest, collection=collection, spans=spans
        )
        return
    newest_first = query.sort is CdxSort.REVERSE or query.last
    yield from archive.captures.versions(
        start, collection=collection, spans=spans, after=query.after, newest_first=newest_first
    )


def _noting_the_last(captures: Iterator[Capture], limit: int, resume: list[Position]) -> Iterator[Capture]:
    """At most `limit` captures; if there are more, the position of the last one is put into `resume`."""
    last: Capture | None = None
    for capture in islice(captures, limit):
        last = capture
        yield capture
    if last is not None and next(captures, None) is not None:
        resume.append(place_of(last))


# --- files ---


def export(archive: Archive, path: Path, form: CdxFileForm, *, collection: str = EVERYTHING) -> int:
    """Write the capture index to a file, sorted by key; access rules do not apply. Returns the number of
    lines.
    """
    every = archive.captures.scan("", "\x7f", collection=collection)
    if form is CdxFileForm.ZIPNUM:
        return zipnum.write(every, path)
    number = {CdxFileForm.CDX9: 9, CdxFileForm.CDX11: 11}.get(form)
    line_of = partial(columns.line, columns=number) if number else cdxj.line
    total = 0
    with (
        durable.whole_file(path) as file,
        gzip.GzipFile(fileobj=file, mode="wb", filename="")
        if path.suffix == ".gz"
        else nullcontext(file) as sink,
    ):
        if number:
            sink.write(f"{columns.HEADS[number]}\n".encode())
        for capture in every:
            sink.write(f"{line_of(capture)}\n".encode())
            total += 1
    return total


def import_(archive: Archive, path: Path, *, collection: str) -> ImportedIndex:
    """Add the lines of a CDX, CDXJ or ZipNum file to the index, replacing what it has of the containers named
    there.

    Lines are sorted by key, but the index takes whole containers: they are sorted again on disk, so memory
    does not grow.
    """
    with (
        archive.scratch_folder(ScratchPurpose.SORT) as folder,
        closing(_sorter(folder)) as sorter,
    ):
        sorter.executemany(
            "INSERT INTO lines VALUES (?, ?)",
            ((capture.location.container, cdxj.line(capture)) for capture in _read(path)),
        )
        ordered = sorter.execute("SELECT container, line FROM lines ORDER BY container, rowid")
        total, names = 0, []
        for name, rows in groupby(ordered, key=lambda row: str(row[0])):
            total += archive.captures.add(name, (cdxj.parse(text) for _, text in rows), collection=collection)
            names.append(name)
    with archive.database.reading() as connection:
        unknown = tuple(name for name in names if locations.find(connection, name) is None)
    return ImportedIndex(captures=total, containers=len(names), unknown=unknown)


def _sorter(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "lines.db")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE lines (container TEXT NOT NULL, line TEXT NOT NULL)")
    return connection


def _read(path: Path) -> Iterator[Capture]:
    """The captures of a file in any of the formats."""
    try:
        lines = zipnum.lines_of(path)
        first = next(lines, "")
        every: Iterable[str] = _with(first, lines)
        is_cdxj = "{" in first or first.startswith("!")
        yield from (cdxj.read if is_cdxj else columns.read)(every, name=path.name)
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorruptData(
            f"{path} is damaged or incomplete: {error}. Create the file again.", where=str(path)
        ) from error


def _with(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines
