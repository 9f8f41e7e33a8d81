"""The text that a browser showed for pages: records `urn:text:ADDRESS` of a container, with the title in the
field `Webdepot-Page-Title`.

Our own harvests write them before the page. Browsertrix writes them after it, when the page has already been
read: of these only the place is remembered, and the container is read a second time with them.
"""

from bisect import bisect
from dataclasses import dataclass, field
from typing import BinaryIO

from webdepot.container.new_records import PAGE_TITLE
from webdepot.container.reader import read_record
from webdepot.container.record import Record
from webdepot.errors import CorruptData
from webdepot.model import Location, RecordKind

SHOWN = "urn:text:"
_MOST_REMEMBERED = 50_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownText:
    """The text that a browser showed for one page."""

    url: str = ""
    text: str = ""
    title: str = ""


@dataclass(slots=True, kw_only=True)
class LateTexts:
    """Texts that come after their page in a container."""

    locations: dict[str, list[Location]] = field(default_factory=dict)
    """By the address of the page, in the order of the container."""
    _pages: set[str] = field(default_factory=set)
    """Addresses of pages that were read without a text."""

    def note_page(self, url: str, *, is_shown: bool) -> None:
        """Note that a page was read; if `is_shown`, the last text belongs to it and is not late."""
        if is_shown:
            late = self.locations.get(url)
            if late:
                late.pop()
                if not late:
                    del self.locations[url]
        elif len(self._pages) < _MOST_REMEMBERED:
            self._pages.add(url)

    def note_text(self, url: str, location: Location) -> None:
        if url in self._pages:
            self.locations.setdefault(url, []).append(location)

    def find(self, url: str, page: Location, container: BinaryIO, limit_bytes: int) -> ShownText | None:
        """The first text of a page after it in the container."""
        known = self.locations.get(url, [])
        number = bisect(known, page.offset, key=lambda location: location.offset)
        if number == len(known):
            return None
        try:
            return read(read_record(container, known[number]), limit_bytes)
        except CorruptData:
            return None


def is_shown_text(record: Record) -> bool:
    return record.kind is RecordKind.RESOURCE and record.url.startswith(SHOWN)


def read(record: Record, limit_bytes: int) -> ShownText:
    text = record.payload().read(limit_bytes).decode("utf-8", "replace")
    return ShownText(url=record.url.removeprefix(SHOWN), text=text, title=record.fields.get(PAGE_TITLE) or "")
