"""The index and the list of pages of a WACZ (https://specs.webrecorder.net/wacz/1.1.1/), collected while its
containers are written.

    indexes/index.cdx    CDXJ lines, sorted; named `.cdx` because pywb looks for that
    pages/pages.jsonl    the pages with their titles

Lines are sorted on disk, so that memory does not grow with their number.
"""

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from pathlib import Path

from webdepot import cdxj
from webdepot.depot.bundle import zipped
from webdepot.depot.bundle.zipped import NewZipMember
from webdepot.model import Capture, Location
from webdepot.times import from_timestamp, to_iso

LARGEST_CONTAINER_BYTES = 1 << 30
_PAGES = b'{"format": "json-pages-1.0", "id": "pages", "title": "All pages"}\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedRecord:
    """A record to be written."""

    capture: Capture
    title: str
    """Of a page; empty for everything else."""
    pieces: Iterator[bytes]


class WaczIndex:
    """Index and pages of one WACZ. Close it when both are written."""

    def __init__(self, folder: Path) -> None:
        self._lines = sqlite3.connect(folder / "lines.db", isolation_level=None, check_same_thread=False)
        self._lines.execute("PRAGMA journal_mode = OFF")
        self._lines.execute("PRAGMA synchronous = OFF")
        self._lines.execute("CREATE TABLE lines (line BLOB NOT NULL, page BLOB)")
        self._count = 0

    def add(self, capture: Capture, title: str) -> None:
        """Add a line, and a page if there is a title."""
        page = None
        if title and capture.status == 200:
            at = to_iso(from_timestamp(capture.timestamp))
            page = zipped.json_line({"id": f"p{self._count}", "url": capture.url, "ts": at, "title": title})
        line = cdxj.line(capture).encode("ascii", "replace") + b"\n"
        self._lines.execute("INSERT INTO lines VALUES (?, ?)", (line, page))
        self._count += 1

    def containers(self, name: str, records: Iterator[ExportedRecord]) -> Iterator[NewZipMember]:
        """The records in containers, of which none is so large that it needs ZIP64, unless one record is. The
        place of each record is added to the index.
        """
        for number, part in groupby(records, key=_PartNumbers()):
            file = f"{name}-{number}.warc.gz" if number else f"{name}.warc.gz"
            first = next(part)
            yield NewZipMember(
                name=f"archive/{file}",
                size_bytes=first.capture.location.length,
                chunks=self._noted(file, first, part),  # noqa: B031 - read once, before the next
            )

    def _noted(self, file: str, first: ExportedRecord, others: Iterator[ExportedRecord]) -> Iterator[bytes]:
        offset = 0
        for record in chain([first], others):
            length = 0
            for piece in record.pieces:
                yield piece
                length += len(piece)
            place = Location(container=file, offset=offset, length=length)
            self.add(replace(record.capture, location=place), record.title)
            offset += length

    def members(self) -> Iterator[NewZipMember]:
        """Both files, when everything was added."""
        index_bytes, pages_bytes = self._lines.execute(
            "SELECT coalesce(sum(length(line)), 0), coalesce(sum(length(page)), 0) FROM lines"
        ).fetchone()
        lines = self._lines.execute("SELECT line FROM lines ORDER BY line")
        yield NewZipMember(
            name="indexes/index.cdx",
            size_bytes=index_bytes,
            chunks=(line for (line,) in lines),
            is_packed=True,
        )
        yield NewZipMember(
            name="pages/pages.jsonl", size_bytes=pages_bytes, chunks=self._iter_pages(), is_packed=True
        )

    def _iter_pages(self) -> Iterator[bytes]:
        yield _PAGES
        pages = self._lines.execute("SELECT page FROM lines WHERE page IS NOT NULL ORDER BY line")
        yield from (page for (page,) in pages)

    def close(self) -> None:
        self._lines.close()


class _PartNumbers:
    """Numbers the containers of a WACZ: a new one begins where a record would make one too large."""

    def __init__(self) -> None:
        self._number = 0
        self._size_bytes = 0

    def __call__(self, record: ExportedRecord) -> int:
        length = record.capture.location.length
        if self._size_bytes and self._size_bytes + length > LARGEST_CONTAINER_BYTES:
            self._number += 1
            self._size_bytes = 0
        self._size_bytes += length
        return self._number
