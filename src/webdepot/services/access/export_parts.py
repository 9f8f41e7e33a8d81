"""The parts of a page: what a browser fetches with it, each as it was captured nearest to the page's own
time.

1. The page's own record is read and its embedded addresses are taken out of it: pictures, styles, scripts,
   frames, fonts.
2. Of each address the capture nearest in time is the part; a redirect is a part too, and so is what it leads
   to.
3. Styles and frames have parts themselves: they are read in turn, so deep as pages really nest.

What is closed to the reader is no part. A page has some hundreds of parts at most, and what was read of a
style that many pages share is remembered.
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
from webdepot.ports import TextQuery
from webdepot.url import Url, find_canonical
from webdepot.url import key as key_of

MOST_PARTS = 500
"""Of one page."""
_DEEPEST = 4
_MOST_REDIRECTS = 5
_LARGEST_READ_BYTES = 4 << 20
_MOST_REMEMBERED = 2000
_READ_MIMES = frozenset({"text/html", "application/xhtml+xml", "text/css", "image/svg+xml"})
_WITHOUT_CODING = ("content-encoding", "transfer-encoding")


class Parts:
    """Finds the parts of pages, one page after the other."""

    def __init__(self, archive: Archive, asked: TextQuery) -> None:
        self._archive = archive
        self._asked = asked
        self._embedded: dict[Location, tuple[Url, ...]] = {}

    def of(self, page: Capture, *, collection: str) -> Iterator[Capture]:
        """The parts of a page, each once, nearer ones first; without the page itself."""
        seen, count = {page.location}, 0
        level = [page]
        for _ in range(_DEEPEST):
            below: list[Capture] = []
            for url in dict.fromkeys(url for each in level for url in self._embeds(each)):
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
        """Where the bytes of a revisit stand; None for what has its own."""
        if capture.kind is not RecordKind.REVISIT:
            return None
        found = self._archive.captures.find_digest(capture.digest, url=capture.url)
        return found if found is not None and self.is_open(found) else None

    def is_open(self, capture: Capture) -> bool:
        return not any((capture.key, capture.timestamp) in area for area in self._asked.closed)

    def _nearest(self, url: Url, timestamp: str, collection: str) -> Iterator[Capture]:
        """The open capture of an address nearest to a moment, as replay would show it, and where redirects
        lead from it.
        """
        for _ in range(_MOST_REDIRECTS):
            near = lookup.iter_by_distance(
                self._archive.captures, key_of(url), timestamp, collection=collection
            )
            found = next((one for one in islice(near, lookup.FARTHEST_STEPS) if self.is_open(one)), None)
            if found is None:
                return
            yield found
            further = (
                find_canonical(found.redirect, found.url)
                if found.redirect and 300 <= found.status < 400
                else None
            )
            if further is None or key_of(further) == found.key:
                return
            url = further

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
        # What cannot be read has no parts; `webdepot doctor` names it.
        with (
            suppress(WebdepotError, OSError, ValueError),
            self._archive.open_container(capture.location.container) as stream,
        ):
            record = read_record(stream, capture.location)
            head = record.head or HttpHead(
                version="HTTP/1.1", status=200, reason="", headers=(("Content-Type", capture.mime),)
            )
            plain = replace(
                head, headers=tuple(each for each in head.headers if each[0].lower() not in _WITHOUT_CODING)
            )
            body = BytesIO(record.content(_LARGEST_READ_BYTES).read(_LARGEST_READ_BYTES))
            found = extract.extract(Url(capture.url), plain, body, bodies.LinkLimits(links=4 * MOST_PARTS))
            return tuple(url for url, hop in found.links if hop is Hop.EMBED)
        return ()
