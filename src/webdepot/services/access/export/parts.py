"""The parts of a page: the captures that a browser fetches with it, each as near as possible in time.

1. The record of the page is read and its embedded addresses are extracted: images, style sheets, scripts,
   frames, fonts.
2. The part is the capture of each address that is nearest in time; a redirect is also a part, and so is its
   target.
3. Style sheets and frames have parts themselves: they are read in turn, up to a depth that real pages have.

Captures that are closed to the reader are left out. A page has a few hundred parts at most, and the addresses
in a style sheet that many pages share are cached.
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from io import BytesIO
from itertools import islice

from webdepot.access import lookup
from webdepot.archive import Archive
from webdepot.container.http import HttpHead
from webdepot.container.reader import read_record
from webdepot.errors import WebdepotError
from webdepot.harvest.links import bodies, extract
from webdepot.model import Capture, Hop, Location, RecordKind
from webdepot.ports.search import TextQuery
from webdepot.url import Url, find_canonical
from webdepot.url import key as key_of

MOST_PARTS = 500
"""Most parts of one page."""
_DEEPEST = 4
_MOST_REDIRECTS = 5
_LARGEST_READ_BYTES = 4 << 20
_MOST_REMEMBERED = 2000
_READ_MIMES = frozenset({"text/html", "application/xhtml+xml", "text/css", "image/svg+xml"})
_CODINGS = ("content-encoding", "transfer-encoding")


class Parts:
    """Finds the parts of pages, one page after the other."""

    def __init__(self, archive: Archive, query: TextQuery) -> None:
        self._archive = archive
        self._closed = query.closed
        self._embedded: dict[Location, tuple[Url, ...]] = {}

    def of(self, page: Capture, *, collection: str) -> Iterator[Capture]:
        """The parts of a page, each once, direct parts first; without the page itself."""
        seen, count = {page.location}, 0
        level = [page]
        for _ in range(_DEEPEST):
            below: list[Capture] = []
            for url in dict.fromkeys(url for capture in level for url in self._embeds(capture)):
                for part in self._nearest(url, page.timestamp, collection):
                    if part.location in seen:
                        continue
                    seen.add(part.location)
                    below.append(part)
                    yield part
                    count += 1
                    if count >= MOST_PARTS:
                        return
            level = below

    def original_of(self, capture: Capture) -> Capture | None:
        """The capture that has the bytes of a revisit; None if the capture is not a revisit."""
        if capture.kind is not RecordKind.REVISIT:
            return None
        (original,) = self._archive.captures.find_digests([(capture.digest, capture.url)])
        return original if original is not None and self.is_open(original) else None

    def is_open(self, capture: Capture) -> bool:
        """Whether the reader of the query may see this capture."""
        return not any((capture.key, capture.timestamp) in area for area in self._closed)

    def _nearest(self, url: Url, timestamp: str, collection: str) -> Iterator[Capture]:
        """The open capture of an address nearest to a moment, as replay would show it, and the captures that
        its redirects lead to.
        """
        for _ in range(_MOST_REDIRECTS):
            near = lookup.iter_by_distance(
                self._archive.captures, key_of(url), timestamp, collection=collection
            )
            capture = next(filter(self.is_open, islice(near, lookup.FARTHEST_STEPS)), None)
            if capture is None:
                return
            yield capture
            target = (
                find_canonical(capture.redirect, capture.url)
                if capture.redirect and 300 <= capture.status < 400
                else None
            )
            if target is None or key_of(target) == capture.key:
                return
            url = target

    def _embeds(self, capture: Capture) -> tuple[Url, ...]:
        source = self.original_of(capture) or capture
        if (
            source.mime not in _READ_MIMES
            or source.kind is RecordKind.REVISIT
            or not 200 <= source.status < 300
        ):
            return ()
        known = self._embedded.get(source.location)
        if known is None:
            if len(self._embedded) >= _MOST_REMEMBERED:
                self._embedded.clear()
            known = self._embedded[source.location] = self._read(source)
        return known

    def _read(self, capture: Capture) -> tuple[Url, ...]:
        # A capture that cannot be read has no parts; `webdepot doctor` reports it.
        with (
            suppress(WebdepotError, OSError, ValueError),
            self._archive.containers.open(capture.location.container) as stream,
        ):
            record = read_record(stream, capture.location)
            head = record.head or HttpHead(
                version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", capture.mime),)
            )
            plain = replace(
                head, headers=tuple(header for header in head.headers if header[0].lower() not in _CODINGS)
            )
            body = BytesIO(record.content(_LARGEST_READ_BYTES).read(_LARGEST_READ_BYTES))
            page = extract.extract(Url(capture.url), plain, body, bodies.LinkLimits(links=4 * MOST_PARTS))
            return tuple(url for url, hop in page.links if hop is Hop.EMBED)
        return ()
