"""Answers of the CDX server as text: queries read from their parameters, captures written as lines.

pywb                CDXJ, one JSON object a line, columns of text, or links
Internet Archive    columns of text, or one JSON array of rows with a header row
"""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import islice
from json.encoder import encode_basestring_ascii

from webdepot import cdxj
from webdepot.access import cdx
from webdepot.access.cdx import PAGE_LINES, CdxOutput, CdxQuery, Dialect
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.model import EVERYTHING, Capture, RecordKind
from webdepot.services.access import cdx_server, replay
from webdepot.services.access.cdx_server import Lines
from webdepot.times import http_date

MOST_QUICK_LINES = 11
"""How many captures `find_few_lines` writes."""

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


def iter_lines(
    archive: Archive, query: CdxQuery, *, reader: Reader, collection: str, make_url: MakeUrl
) -> Iterator[str]:
    """The answer, line by line, each with its line end."""
    found = cdx_server.find(archive, query, reader=reader, collection=collection)
    return _write(found, query, make_url, partial(replay.find_original, archive))


def find_few_lines(
    archive: Archive, query: CdxQuery, *, reader: Reader, collection: str, make_url: MakeUrl
) -> str | None:
    """The whole answer where it is about a few captures of one address, so that it needs no waiting; None for
    everything else.
    """
    if not query.is_plain:
        return None
    found = cdx_server.find(archive, query, reader=reader, collection=collection)
    captures = list(islice(found.captures, MOST_QUICK_LINES + 1))
    if not captures or len(captures) > MOST_QUICK_LINES:
        return None
    # A plain query resolves no revisits, so originals are not looked for.
    few = Lines(captures=iter(captures), resume=found.resume)
    return "".join(_write(few, query, make_url, lambda _: None))


def _write(found: Lines, query: CdxQuery, make_url: MakeUrl, original: _FindOriginal) -> Iterator[str]:
    if query.output is CdxOutput.JSON and query.dialect is Dialect.INTERNET_ARCHIVE:
        yield from _rows(found, query)
        return
    for capture in found.captures:
        yield _line(capture, query, make_url, original) + "\n"
    if query.shows_resume_key and found.resume:
        yield f"\n{cdx.resume_key(found.resume[0])}\n"


def _rows(found: Lines, query: CdxQuery) -> Iterator[str]:
    """One array; an empty one when nothing matches."""
    start = "[" + json.dumps(query.fields)
    for capture in found.captures:
        yield f"{start},\n{json.dumps(cdx.values(capture, query))}"
        start = ""
    if start:
        yield "[]\n"
    elif query.shows_resume_key and found.resume:
        yield f",\n[],\n{json.dumps([cdx.resume_key(found.resume[0])])}]\n"
    else:
        yield "]\n"


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
