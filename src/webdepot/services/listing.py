"""The captures index for machines: what a CDX server answers, what goes out as files and what comes in from others' files.

Rules of access come in through the same spans as everywhere (`replaying.gate_of`, `replaying.segments`).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from webdepot.access import cdx, lookup
from webdepot.access.cdx import CdxQuery, Sort
from webdepot.access.policy import Reader
from webdepot.archive import Archive
from webdepot.model import EVERYTHING, Capture
from webdepot.ports import Position, place_of
from webdepot.services import replaying
from webdepot.url import Match, key_range


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """An answer as a stream. `resume` is known when the stream has been read."""

    captures: Iterator[Capture]
    resume: list[Position]
    """Holds the position of the last capture where more may follow it."""


def find(archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING) -> Lines:
    """The captures that a question is about, in its order."""
    found = cdx.selected(_found(archive, query, reader, collection), query)
    resume: list[Position] = []
    if query.page is not None:
        start = query.page * query.page_lines
        return Lines(captures=islice(found, start, start + min(query.page_lines, query.limit)), resume=resume)
    if query.last:
        return Lines(captures=reversed(list(islice(found, query.limit))), resume=resume)
    return Lines(captures=_noting(found, query.limit, resume), resume=resume)


def count_pages(archive: Archive, query: CdxQuery, *, reader: Reader, collection: str = EVERYTHING) -> int:
    """How many pages there are before filters and collapsing, as other servers count them."""
    start, stop = key_range(query.url, query.match)
    lines = sum(
        archive.captures.count_keys(first, after, collection=collection, spans=cdx.within(spans, query.span))
        for first, after, spans in replaying.segments(archive, start, stop, reader)
    )
    return -(-lines // query.page_lines)


def _found(archive: Archive, query: CdxQuery, reader: Reader, collection: str) -> Iterator[Capture]:
    start, stop = key_range(query.url, query.match)
    if query.match is not Match.EXACT:
        for first, after, spans in replaying.segments(archive, start, stop, reader):
            yield from archive.captures.scan(first, after, collection=collection, spans=cdx.within(spans, query.span), after=query.after)
        return
    spans = cdx.within(replaying.gate_of(archive, start, reader).spans, query.span)
    if query.sort is Sort.CLOSEST:
        yield from lookup.iter_by_distance(archive.captures, start, query.closest, collection=collection, spans=spans)
        return
    newest_first = query.sort is Sort.REVERSE or query.last
    yield from archive.captures.versions(start, collection=collection, spans=spans, after=query.after, newest_first=newest_first)


def _noting(captures: Iterator[Capture], limit: int, resume: list[Position]) -> Iterator[Capture]:
    """At most `limit` captures; where they were cut off, the last one's position is noted."""
    last: Capture | None = None
    for capture in islice(captures, limit):
        last = capture
        yield capture
    if last is not None and next(captures, None) is not None:
        resume.append(place_of(last))
