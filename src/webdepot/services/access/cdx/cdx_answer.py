"""Answers of the CDX server as text: queries read from their parameters, captures written as lines.

pywb                CDXJ, one JSON object per line, columns of text, or links
Internet Archive    columns of text, or one JSON array of rows with a header row

An answer that ends before all captures were read ends with the resume key, as if `showResumeKey` had been
asked for.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from json.encoder import encode_basestring_ascii

from webdepot import cdxj
from webdepot.access import cdx
from webdepot.access.cdx import PAGE_LINES, CdxOutput, CdxQuery, Dialect
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.services.access.cdx import cdx_server
from webdepot.services.access.cdx.cdx_server import Lines
from webdepot.services.access.replay import replay
from webdepot.times import http_date

MOST_QUICK_LINES = 11
"""How many captures `find_few_lines` writes."""

NO_ROWS = "[]\n"
"""The whole answer in JSON if nothing matches."""
MakeUrl = Callable[[Capture], str]
"""Gives the address at which a capture is replayed."""
_FindOriginal = Callable[[Capture], Capture | None]


def read_query(parameters: Iterable[tuple[str, str]], dialect: Dialect) -> CdxQuery:
    """The query of a request; InputError names the parameter that is wrong."""
    return cdx.parse(parameters, dialect)


def count_pages(
    archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING
) -> tuple[int, int]:
    """The number of pages, and the size of a page in blocks."""
    pages = cdx_server.count_pages(archive, query, reader=reader, collection=collection)
    return pages, query.page_lines // PAGE_LINES


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenLines:
    """An answer as text, line by line, each with its line end."""

    lines: Iterator[str]
    captured: Lines

    @property
    def cut(self) -> str:
        """The resume key if the answer was cut, else empty; known when the answer has been read."""
        return cdx.resume_key(self.captured.cut[0]) if self.captured.cut else ""


def iter_lines(
    archive: Archive, query: CdxQuery, *, reader: Reader, collection: str, make_url: MakeUrl
) -> WrittenLines:
    """The answer to a query."""
    captured = cdx_server.find(archive, query, reader=reader, collection=collection)
    lines = _write(captured, query, make_url, partial(replay.find_original, archive))
    return WrittenLines(lines=lines, captured=captured)


def find_few_lines(
    archive: Archive, query: CdxQuery, *, reader: Reader, collection: str, make_url: MakeUrl
) -> str | None:
    """The whole answer if it is about a few captures of one address and needs no waiting; None for everything
    else.
    """
    if not query.is_plain:
        return None
    captured = cdx_server.find(archive, query, reader=reader, collection=collection)
    captures = list(islice(captured.captures, MOST_QUICK_LINES + 1))
    if not captures or len(captures) > MOST_QUICK_LINES:
        return None
    # A plain query resolves no revisits, so originals are not looked for.
    few = Lines(captures=iter(captures), resume=captured.resume, cut=captured.cut)
    return "".join(_write(few, query, make_url, lambda _: None))


def _write(captured: Lines, query: CdxQuery, make_url: MakeUrl, original: _FindOriginal) -> Iterator[str]:
    if query.output is CdxOutput.JSON and query.dialect is Dialect.INTERNET_ARCHIVE:
        yield from _rows(captured, query)
        return
    for capture in captured.captures:
        yield _line(capture, query, make_url, original) + "\n"
    if key := _key_of(captured, query):
        yield f"\n{key}\n"


def _key_of(captured: Lines, query: CdxQuery) -> str:
    """The key at the end of an answer; empty if there is no more."""
    is_ours = bool(captured.cut) or query.limit >= cdx.MOST_LINES
    position = next(iter(captured.cut or captured.resume), None)
    return cdx.resume_key(position) if position and (is_ours or query.shows_resume_key) else ""


def _rows(captured: Lines, query: CdxQuery) -> Iterator[str]:
    """The answer as one JSON array, which is empty if nothing matches."""
    start = "[" + json.dumps(query.fields)
    for capture in captured.captures:
        yield f"{start},\n{json.dumps(cdx.values(capture, query))}"
        start = ""
    key = _key_of(captured, query)
    if key:
        yield f"{start},\n[],\n{json.dumps([key])}]\n"
    else:
        yield NO_ROWS if start else "]\n"


def _line(capture: Capture, query: CdxQuery, make_url: MakeUrl, original: _FindOriginal) -> str:
    originals = _originals(capture, original) if query.resolves_revisits else {}
    match query.output:
        case CdxOutput.CDXJ if not query.has_fields and not query.resolves_revisits:
            return cdxj.line(capture)
        case CdxOutput.CDXJ:
            fields = {
                name: value
                for name, value in zip(query.fields, cdx.values(capture, query), strict=True)
                if name not in ("urlkey", "timestamp")
            } | originals
            return f"{capture.key} {capture.timestamp} {json.dumps(fields)}"
        case CdxOutput.JSON:
            fields = {**dict(zip(query.fields, cdx.values(capture, query), strict=True)), **originals}
            # json.dumps takes five times as long; the names need no escaping.
            pairs = [f'"{name}": {encode_basestring_ascii(value)}' for name, value in fields.items()]
            return "{" + ", ".join(pairs) + "}"
        case CdxOutput.TEXT:
            return " ".join([*cdx.values(capture, query), *originals.values()])
        case CdxOutput.LINK:
            date = http_date(capture.timestamp)
            return f'<{make_url(capture)}>; rel="memento"; datetime="{date}",'


def _originals(capture: Capture, original: _FindOriginal) -> dict[str, str]:
    """Where the payload of a revisit is, under pywb's names; `-` for every other capture."""
    source = original(capture) if capture.kind is RecordKind.REVISIT else None
    place = source.location if source else None
    values = (str(place.length), str(place.offset), place.container) if place else ("-", "-", "-")
    return dict(zip(("orig.length", "orig.offset", "orig.filename"), values, strict=True))
