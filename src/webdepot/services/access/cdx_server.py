"""The captures index for machines: what a CDX server answers, what goes out as files and what comes in from
others' files.

Rules of access come in through the same spans as everywhere (`replay.gate_of`, `replay.segments`).
"""

import gzip
import os
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby, islice
from pathlib import Path

from webdepot import cdxj
from webdepot.access import cdx, lookup
from webdepot.access.cdx import CdxQuery, Sort
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.container import shelf
from webdepot.errors import CorruptData
from webdepot.index import cdx as columns
from webdepot.index import zipnum
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import Position, place_of
from webdepot.services.access import replay
from webdepot.url import UrlMatch, key_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """An answer as a stream. `resume` is known when the stream has been read."""

    captures: Iterator[Capture]
    resume: list[Position]
    """Holds the position of the last capture where more may follow it."""


class Form(StrEnum):
    """How an index is written to a file."""

    CDXJ = "cdxj"
    CDX11 = "cdx11"
    CDX9 = "cdx9"
    ZIPNUM = "zipnum"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    captures: int
    containers: int
    unknown: tuple[str, ...]
    """Containers that this archive does not have: what is listed of them cannot be opened before they are
    imported.
    """


def find(archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING) -> Lines:
    """The captures that a question is about, in its order."""
    found = _found(archive, query, reader, collection)
    if query.filters or query.collapse:
        found = cdx.selected(found, query)
    resume: list[Position] = []
    if query.page is not None:
        start = query.page * query.page_lines
        return Lines(captures=islice(found, start, start + min(query.page_lines, query.limit)), resume=resume)
    if query.last:
        return Lines(captures=reversed(list(islice(found, query.limit))), resume=resume)
    if not query.shows_resume_key:
        return Lines(captures=islice(found, query.limit), resume=resume)
    return Lines(captures=_noting(found, query.limit, resume), resume=resume)


def count_pages(archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING) -> int:
    """How many pages there are before filters and collapsing, as other servers count them."""
    start, stop = key_range(query.url, query.match)
    lines = sum(
        archive.captures.count_keys(first, after, collection=collection, spans=cdx.within(spans, query.span))
        for first, after, spans in replay.segments(archive, start, stop, reader)
    )
    return -(-lines // query.page_lines)


def _found(archive: Archive, query: CdxQuery, reader: Reader, collection: str) -> Iterator[Capture]:
    """What a patch replaced is left out: a harvest and its patches are one version."""
    return (capture for capture in _lines(archive, query, reader, collection) if not capture.replaced)


def _lines(archive: Archive, query: CdxQuery, reader: Reader, collection: str) -> Iterator[Capture]:
    start, stop = key_range(query.url, query.match)
    if query.match is not UrlMatch.EXACT:
        for first, after, spans in replay.segments(archive, start, stop, reader):
            yield from archive.captures.scan(
                first, after, collection=collection, spans=cdx.within(spans, query.span), after=query.after
            )
        return
    spans = cdx.within(replay.gate_of(archive, start, reader).spans, query.span)
    if query.allows_fuzzy and archive.captures.last(start, collection=collection, spans=spans) is None:
        start = replay.find_fuzzy_key(archive, start, collection=collection, reader=reader) or start
        spans = cdx.within(replay.gate_of(archive, start, reader).spans, query.span)
    if query.sort is Sort.CLOSEST:
        yield from lookup.iter_by_distance(
            archive.captures, start, query.closest, collection=collection, spans=spans
        )
        return
    newest_first = query.sort is Sort.REVERSE or query.last
    yield from archive.captures.versions(
        start, collection=collection, spans=spans, after=query.after, newest_first=newest_first
    )


def _noting(captures: Iterator[Capture], limit: int, resume: list[Position]) -> Iterator[Capture]:
    """At most `limit` captures; where they were cut off, the last one's position is noted."""
    last: Capture | None = None
    for capture in islice(captures, limit):
        last = capture
        yield capture
    if last is not None and next(captures, None) is not None:
        resume.append(place_of(last))


# --- files ---


def export(archive: Archive, path: Path, form: Form, *, collection: str = EVERYTHING) -> int:
    """Write the index of captures to a file, sorted by key; rules of access do not apply. Returns how many
    lines.
    """
    every = archive.captures.scan("", "\x7f", collection=collection)
    if form is Form.ZIPNUM:
        return zipnum.write(every, path)
    heads = {Form.CDX9: [columns.HEADS[9]], Form.CDX11: [columns.HEADS[11]], Form.CDXJ: []}[form]
    total, temporary = 0, path.with_name(path.name + ".part")
    with (
        gzip.open(temporary, "wt", encoding="utf-8")
        if path.suffix == ".gz"
        else temporary.open("w", encoding="utf-8") as file
    ):
        file.writelines(head + "\n" for head in heads)
        for capture in every:
            file.write(
                (
                    cdxj.line(capture)
                    if form is Form.CDXJ
                    else columns.line(capture, 9 if form is Form.CDX9 else 11)
                )
                + "\n"
            )
            total += 1
        file.flush()
    with temporary.open("rb") as written:
        os.fsync(written.fileno())
    temporary.replace(path)
    return total


def import_(archive: Archive, path: Path, *, collection: str) -> Imported:
    """Take the lines of a CDX, CDXJ or ZipNum file into the index. What the index had of the containers named
    there is replaced.

    Lines are sorted by key, the index takes containers whole: between the two stands a file on disk, so
    memory does not grow.
    """
    with (
        tempfile.TemporaryDirectory(dir=archive.index_folder, prefix="import-") as folder,
        closing(_sorter(Path(folder))) as sorter,
    ):
        sorter.executemany(
            "INSERT INTO lines VALUES (?, ?)",
            ((one.location.container, cdxj.line(one)) for one in _read(path)),
        )
        ordered = sorter.execute("SELECT container, line FROM lines ORDER BY container, rowid")
        total, names = 0, []
        for name, rows in groupby(ordered, key=lambda row: str(row[0])):
            total += archive.captures.add(name, (cdxj.parse(text) for _, text in rows), collection=collection)
            names.append(name)
    with archive.database.reading() as connection:
        unknown = tuple(name for name in names if shelf.find(connection, name) is None)
    return Imported(captures=total, containers=len(names), unknown=unknown)


def _sorter(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "lines.db")
    connection.execute("PRAGMA synchronous = OFF")
    connection.execute("CREATE TABLE lines (container TEXT NOT NULL, line TEXT NOT NULL)")
    return connection


def _read(path: Path) -> Iterator[Capture]:
    """The captures of a file in whichever of the forms it has."""
    try:
        lines = zipnum.lines_of(path)
        first = next(lines, "")
        every: Iterable[str] = _with(first, lines)
        is_cdxj = "{" in first or first.startswith("!")
        yield from (cdxj.read if is_cdxj else columns.read)(every, name=path.name)
    except (EOFError, gzip.BadGzipFile) as error:
        raise CorruptData(
            f"{path} is damaged or cut off: {error}. Make the file anew.", where=str(path)
        ) from error


def _with(first: str, lines: Iterator[str]) -> Iterator[str]:
    yield first
    yield from lines
